"""Measure kernels again in other processes with other memory: how far the speeds of one kernel lie apart."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from math import log

from lbmtune.backend.protocol import Device
from lbmtune.backend.registry import compiler_for
from lbmtune.catalogue.config import completed, flat_values, from_flat
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.cores import usable_cores
from lbmtune.errors import LbmtuneError
from lbmtune.measure.processes.precompile import precompiled
from lbmtune.measure.processes.worker import Progress, Session, await_answer, temporary_worker
from lbmtune.measure.timing.pooled_device import PooledDevice, pooled_bytes
from lbmtune.measure.timing.protocol import measure
from lbmtune.measure.timing.state import stable_case
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime import Simulation

_KERNELS: Mapping[str, tuple[str, ...]] = {
    "cuda": ("scheme=pull", "scheme=aa", "scheme=esoteric-pull", "scheme=pull,layout=aosoa,width=32"),
    "cpu": ("scheme=pull", "scheme=aa", "scheme=esoteric-twist", "scheme=push"),
}
"""Kernels of different schemes and layouts, by backend."""
_DOMAINS: Mapping[str, tuple[tuple[int, int, int], ...]] = {
    "cuda": ((256, 128, 128), (192, 192, 192), (256, 256, 256)),
    "cpu": ((64, 64, 64), (128, 64, 64), (96, 96, 96)),
}
"""Domains by backend: arrays that lie in other places. The text of a kernel is the same for all."""
_PROTOCOL = TimingProtocol(max_samples=8)
_LIMIT_S = 8.0
"""Seconds after which a visit measures no further domain."""
_MANY_CORES = 8
"""Cores above which other processes compile the kernels, all at once."""
_START_LIMIT_S = 60.0
Speeds = Mapping[str, float]
"""MLUPS by kernel and domain."""


def visit(opener: Callable[[], Device], progress: Progress) -> Speeds:
    """Return the speeds of all kernels in a process of its own; none, with a reason, if it fails."""
    try:
        with temporary_worker("repeats", partial(_open, opener), _START_LIMIT_S) as worker:
            await_answer(worker, None)
            worker.send(None, None)
            speeds: Speeds = await_answer(worker, progress)
            return speeds
    except LbmtuneError as error:
        progress(f"the spread between runs is not measured: {error}")
        return {}


def apart(first: Speeds, again: Speeds) -> tuple[float, ...]:
    """Return the logarithm of the ratio of two speeds of each kernel that both visits measured."""
    return tuple(log(again[name] / first[name]) for name in first if name in again)


def _open(opener: Callable[[], Device]) -> tuple[None, Session]:
    device = opener()

    def session(_: None, progress: Progress) -> Speeds:
        return measured_speeds(device, progress)

    return None, session


def measured_speeds(device: Device, progress: Progress) -> Speeds:
    """Return the speed of each kernel and domain; those that time or memory does not allow are left out."""
    progress("the same kernels in another process")
    pooled, end = PooledDevice(device), time.monotonic() + _LIMIT_S
    programs = dict(_programs(device))
    processes = len(_KERNELS[device.environment.backend]) if usable_cores() > _MANY_CORES else 0
    speeds: dict[str, float] = {}
    with precompiled(compiler_for(device.environment), (of for _, of in programs.values()), processes) as compiler:
        for name, (case, program) in programs.items():
            if speeds and time.monotonic() > end:
                break
            pooled.reset(pooled_bytes(program.array_bytes(case.domain)))
            pooled.reset()
            simulation = Simulation(program, compiler(program), pooled, case)
            speeds[name] = measure(simulation, _PROTOCOL).mlups
    return speeds


def _programs(device: Device) -> Iterator[tuple[str, tuple[Case, Program]]]:
    """Yield each kernel and domain of which a device can hold two, by name."""
    backend, limits = device.environment.backend, device.limits
    for domain, text in product(_DOMAINS[backend], _KERNELS[backend]):
        case = stable_case(
            Case(flow="taylor-green", lattice="d3q19", collision="bgk", domain=domain, relaxation_rate=1.6)
        )
        config = from_flat(completed({"backend": backend, **flat_values(text)}, limits))
        program = render(case, config)
        too_large = 2 * pooled_bytes(program.array_bytes(domain)) > limits.memory_bytes > 0
        if not (too_large or broken(case, config, limits)):
            yield f"{text}, {domain}", (case, program)
