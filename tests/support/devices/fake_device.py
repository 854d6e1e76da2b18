"""Fake a device: its kernel is one oracle step through the placements, or a planted fault.

The text of the program names the fault; the renderer takes it from the configuration's padding.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.immediate import HostMemory
from lbmtune.backend.protocol import (
    Binary,
    CompileError,
    DeviceFaultError,
    OutOfMemoryError,
    TooManyResourcesError,
)
from lbmtune.catalogue.config import KernelConfig, cpu, cuda
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.layouts import SoA
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.program import Launch, Program
from lbmtune.errors import DeviceUnavailableError
from lbmtune.measure.verification import oracle
from lbmtune.records import Conditions, Environment, Resources
from lbmtune.runtime.placement import PopulationPlaces

CASE = box("d2q9", "bgk", (16, 12, 1))
FAULTS = (
    "right",
    "segfault",
    "endless",
    "nan",
    "refused",
    "broken compiler",
    "compiler crash",
    "out of memory",
    "too many resources",
    "device fault",
    "killed",
    "wrong cell",
    "idle",
    "segfault when timed",
    "endless compilation",
    "segfault when repeated",
    "nan when repeated",
    "endless when repeated",
    "litter",
    "touchy",
    "killed once",
    "compiler killed once",
    "full disk",
    "compiler on a full disk",
    "end of file",
    "forks and dies",
    "forks",
    "chatter",
    "busy compilation",
    "slow compilation",
    "waits for the other",
    "is waited for",
)
MEETING = ("waits for the other", "is waited for")
"""Kernels that run once the other one runs as well."""
ONCE = "LBMTUNE_TEST_ONCE"
"""Variable with the file that says that a fault which happens once has happened."""
_REPEATED = 3
"""Launches of a verification at full size."""


def config(fault: str = "right", backend: str = "cpu") -> KernelConfig:
    """Return a legal configuration whose kernel has a fault."""
    padding = 16 * FAULTS.index(fault)
    if backend == "cuda":
        return cuda.Direct(block=(16, 1, 1), layout=SoA(padding=padding), storage="fp64", compute="fp64")
    return cpu.Direct(vector_bits=0, layout=SoA(padding=padding), storage="fp64", compute="fp64")


def renderer(case: Case, config: KernelConfig) -> Program:
    launch = Launch("step", ("f0", "f1", "nx", "ny", "nz"))
    assert isinstance(config.layout, SoA)
    fault = FAULTS[config.layout.padding // 16]
    return Program(config.backend, case, config, fault, (), ((launch,),) * config.propagation.period)


def compiler(program: Program) -> Binary:
    fault = program.source
    if fault == "refused":
        raise CompileError("line 7: expected a ';'")
    if fault == "broken compiler":
        raise ZeroDivisionError("planted")
    if fault == "compiler crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "endless compilation":
        time.sleep(3600)
    if fault == "compiler killed once":
        die_once()
    if fault == "compiler on a full disk":
        raise OSError(errno.EDQUOT, "Disk quota exceeded", "/cache/lbm.nbc")
    if fault == "end of file":
        raise EOFError("Ran out of input")
    if fault == "slow compilation":
        time.sleep(1.2)
    while fault == "busy compilation":
        pass
    return Binary(fault.encode(), f"digest of {fault}", Resources(registers=32))


def die_once() -> None:
    """Kill this process, unless that was done before."""
    if not (mark := Path(os.environ[ONCE])).exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def fork() -> None:
    """Start a process that holds the pipe and a session of its own, and outlives a signal to end."""
    mark = Path(os.environ[ONCE])
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.setsid()
        # every launch starts one, and the mark of an earlier one must not be seen half written over
        own = mark.with_name(f"{mark.name} of {os.getpid()}")
        own.write_text(str(os.getpid()))
        own.replace(mark)
        time.sleep(3600)
    while not mark.exists():
        time.sleep(0.01)


def meet(fault: str) -> None:
    """Say that this kernel runs, and wait for the other."""
    marks = {one: Path(os.environ[ONCE]).with_name(one) for one in MEETING}
    marks[fault].touch()
    while not all(mark.exists() for mark in marks.values()):
        time.sleep(0.01)


def open_cpu() -> FakeDevice:
    return FakeDevice("cpu")


def open_cuda() -> FakeDevice:
    return FakeDevice("cuda")


def open_second() -> FakeDevice:
    return FakeDevice("cuda", number=1)


def open_another() -> FakeDevice:
    return FakeDevice("cuda", number=1, name="another")


def open_second_once() -> FakeDevice:
    """Open the second device, which is gone from then on."""
    if (mark := Path(os.environ[ONCE])).exists():
        raise DeviceUnavailableError("it has fallen off the bus.")
    mark.touch()
    return open_second()


def open_first_once() -> FakeDevice:
    """Open the first device, which is gone from then on."""
    open_second_once()
    return open_cuda()


def open_second_gone() -> FakeDevice:
    """Open the second device, which is gone from then on, as the first one is."""
    if (mark := Path(os.environ[ONCE]).with_name("second")).exists():
        raise DeviceUnavailableError("it has fallen off the bus.")
    mark.touch()
    return open_second()


def open_late() -> FakeDevice:
    """Open the device after minutes, so that every shorter time limit is exceeded."""
    time.sleep(300)
    return FakeDevice("cpu")


def open_nothing() -> FakeDevice:
    raise DeviceUnavailableError("there is no such device; plug one in.")


@dataclass
class FakeExecutable:
    program: Program
    resources: Resources = field(default_factory=Resources)
    launches: int = 0

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        source, target, *extents = arguments
        domain = (int(extents[0]), int(extents[1]), int(extents[2]))
        fault = self.program.source
        self.launches += 1
        if self.launches > _REPEATED:
            fault = fault.removesuffix(" when repeated")
        if fault == "segfault" or (fault == "segfault when timed" and domain == self.program.case.domain):
            ctypes.string_at(0)
        if fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "killed once":
            die_once()
        if fault == "full disk":
            raise OSError(errno.ENOSPC, "No space left on device")
        if fault == "chatter":
            print("so it goes" * 1_000_000, flush=True)
        if fault.startswith("forks"):
            fork()
        if fault == "forks and dies":
            os._exit(3)
        if fault in MEETING:
            meet(fault)
        while fault == "endless":
            time.sleep(0.01)
        if fault == "device fault":
            raise DeviceFaultError("an illegal memory access was encountered")
        if fault != "idle" or domain != self.program.case.domain:
            step(replace(self.program.case, domain=domain), self.program.config, source, target, fault)


def step(case: Case, config: KernelConfig, source: Any, target: Any, fault: str) -> None:
    """Take a pull step of unscaled storage."""
    places = list(PopulationPlaces(case, config, 0, np).each())
    weights = np.asarray([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
    f = np.stack([source[place.indices] for place in places]) + weights
    after = oracle.step(f, case) - weights
    if fault == "nan":
        after[1, 0, 2, 3] = np.nan
    if fault == "wrong cell":
        after[5, 0, 1, 4] += 1e-3
    if fault == "touchy" and abs(f).max() > 2:
        after[:] = np.nan
    if fault == "litter":
        target[:] = 3  # what is not its own; alone it does not read that
    for place, values in zip(places, after, strict=True):
        target[place.indices] = values


@dataclass
class FakeDevice(HostMemory):
    """Times runs by `durations_s`, or by a clock; conditions come from `weather`."""

    backend: str = "cpu"
    xp: ModuleType = np
    limits: Limits = field(default_factory=Limits)
    durations_s: Callable[[], float] | None = None
    weather: Callable[[], Conditions] = Conditions
    counter_j: Callable[[], float | None] = lambda: None
    number: int = 0
    name: str = "fake"

    @property
    def environment(self) -> Environment:
        return Environment(
            backend=self.backend,
            device=self.name,
            device_id=f"fake-{self.number}",
            architecture="none",
            max_sm_clock_hz=2e9 if self.backend == "cuda" else None,
        )

    def empty(self, elements: int, dtype: str, placing: Any = None) -> Any:
        return np.empty(elements, dtype)

    def load(self, program: Program, binary: Binary) -> FakeExecutable:
        if program.source == "out of memory":
            raise OutOfMemoryError("40 GiB were asked for")
        if program.source == "too many resources":
            raise TooManyResourcesError("70000 registers per block")
        return FakeExecutable(program)

    def synchronize(self) -> None:
        pass

    def time_s(self, run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return self.durations_s() if self.durations_s else time.perf_counter() - start

    def slices_s(self, run: Callable[[], None], count: int, look: Callable[[], None]) -> list[float]:
        found = []
        for _ in range(count):
            found.append(self.time_s(run))
            look()
        return found

    def conditions(self) -> Conditions:
        return self.weather()

    def marked(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()

    def looked_at(self) -> AbstractContextManager[None]:
        return nullcontext()

    def datasheet_bytes_per_s(self) -> float | None:
        return None

    def energy_j(self) -> float | None:
        return self.counter_j()
