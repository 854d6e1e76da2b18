"""Machine descriptions: measured once, kept as TOML, measured again when the device or its software has changed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import platformdirs

from lbmtune.backend.protocol import Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.codegen.streams import streams_digest
from lbmtune.cores import usable_cores
from lbmtune.errors import InputError
from lbmtune.measure.calibration.gpu import calibrate, texts
from lbmtune.measure.calibration.microbench import Rate, Say, measure_bandwidths
from lbmtune.measure.timing.cpu_share import Usage, cpu_share, usage
from lbmtune.measure.workers.precompile import compiled_ahead
from lbmtune.measure.workers.processes import (
    Answer,
    Death,
    Event,
    Greeting,
    Report,
    Session,
    Stage,
    Worker,
    scratch_folder,
    unavailable,
)
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine, write_machine
from lbmtune.records import Conditions, Environment
from lbmtune.records.disturbance import left_alone

CONFIG_VARIABLE = "LBMTUNE_CONFIG"
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNKNOWN_CACHE_BYTES = 64 << 20
_STEP_LIMIT_S = 180.0
_POLL_S = 0.5
_COMPILE_PROCESSES = 4
"""That get all texts of a calibration ready while bandwidths are measured; each takes a while to start."""


def describe(
    spec: str,
    refresh: bool = False,
    say: Say | None = None,
    opener: Callable[[str], Device] = open_device,
    max_age_s: float | None = None,
    calibration: bool = False,
    alone: Callable[[Environment], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> Machine:
    """The description of a device, from its file, or measured in a process of its own.

    refresh: measure in any case; say: hears what is being measured; max_age_s: a file older than that does not count,
    nor does one measured while other programs used the processor; calibration: also what the model needs besides.
    What is on file of that is kept where bandwidths alone are measured again, and measured again with them where other
    programs used the processor. alone: holds the device while it is measured.
    Raises InputError, DeviceUnavailableError.
    """
    folder = scratch_folder()
    worker = Worker(
        "devices", partial(open_describer, partial(opener, spec)), {}, folder / "devices.log", _STEP_LIMIT_S
    )
    try:
        environment: Environment = heard(worker, None)
        path = machine_path(environment)
        on_file = _known(path, environment, None)
        known = None if refresh else _known(path, environment, max_age_s)
        if known and not (calibration and _lacks_calibration(known)):
            return known
        again = bool(on_file and on_file.calibrated and _lacks_calibration(on_file))
        if again and not calibration and say:
            say("the calibration on file was measured while other programs used the processor: it is measured again")
        with alone(environment):
            worker.ask(spec, calibration or again)
            machine: Machine = heard(worker, say)
        if on_file and not (calibration or again):
            machine = replace(machine, calibration=on_file.calibration, cpu=on_file.cpu)
    finally:
        worker.end()
        shutil.rmtree(folder, ignore_errors=True)
    try:
        write_machine(path, machine)
    except InputError as error:
        if say:
            why, left_out = str(error).partition(";")[0], "the description of this device is not kept"
            say(f"{why}: {left_out}; set {CONFIG_VARIABLE} to another folder.")
    return machine


def open_describer(opener: Callable[[], Device]) -> tuple[Environment, Session]:
    """A session that answers with a Machine; the request says whether to calibrate it."""
    device = opener()

    def session(calibration: bool, report: Report) -> Machine:
        return measured(device, report, calibration)

    return device.environment, session


def measured(device: Device, say: Say, calibration: bool = False) -> Machine:
    """Measures the bandwidths of an open device; calibration: also what the model needs besides."""
    environment, caches = device.environment, caches_bytes(device)
    last_cache_bytes = max(caches.values(), default=_UNKNOWN_CACHE_BYTES)
    compiler = compiler_for(environment)
    of_gpu = calibration and environment.backend == "cuda"
    gpu = cpu = None
    # nothing of ours may run beside a sample of a CPU; that of a GPU does not mind
    with compiled_ahead(compiler, texts(device.limits) if of_gpu else (), _compile_processes()) as ready:
        before = usage()
        found = measure_bandwidths(device, ready, last_cache_bytes, say)
        share = _cpu_share(environment, before)
        if of_gpu:
            gpu = calibrate(device, ready, say)
    if calibration and environment.backend == "cpu":
        from lbmtune.measure.calibration.cpu import calibrate_cpu  # here: it needs SymPy

        before = usage()
        cpu = calibrate_cpu(device, compiler, caches, say)
        cpu = replace(cpu, conditions=Conditions(cpu_share=_cpu_share(environment, before)))
    named: dict[str, Rate] = {"copy": found.copy, "in_place": found.in_place, **found.streams}
    return Machine(
        name=environment.device,
        environment=environment,
        copy_bytes_per_s=found.copy.bytes_per_s,
        in_place_bytes_per_s=found.in_place.bytes_per_s,
        stream_bytes_per_s={width: one.bytes_per_s for width, one in found.streams.items()},
        spread={name: one.spread for name, one in named.items()},
        caches_bytes=caches,
        thread_bytes_per_s=found.thread.bytes_per_s if found.thread else None,
        multiprocessors=getattr(device, "multiprocessors", 0),
        core_clock_hz=getattr(device, "core_clock_hz", None),
        calibration=gpu,
        cpu=cpu,
        conditions=replace(device.conditions(), cpu_share=share),
        streams_digest=_streams_digest(environment),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _compile_processes() -> int:
    """Beside this one."""
    return min(_COMPILE_PROCESSES, usable_cores() - 1)


def _cpu_share(environment: Environment, before: Usage) -> float | None:
    """Of a CPU what this process had of it since then."""
    return cpu_share(before, usage(), environment.cores) if environment.backend == "cpu" else None


def caches_bytes(device: Device) -> dict[str, int]:
    """Level -> bytes; of a CPU, one instance of each level, instruction caches left out."""
    if device.environment.backend != "cpu":
        own: dict[str, int] = getattr(device, "caches_bytes", {})
        return own
    found = {}
    for index in sorted(_CACHES.glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction" and size.endswith("K"):
            found[f"L{level}"] = int(size[:-1]) << 10
    return found


def machine_path(environment: Environment) -> Path:
    """Where the description of a device lies; LBMTUNE_CONFIG overrides the user's configuration folder."""
    chosen = os.environ.get(CONFIG_VARIABLE)
    base = Path(chosen) if chosen else Path(platformdirs.user_config_dir("lbmtune"))
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{environment.device} {environment.device_id}").strip("-").lower()
    return base / "machines" / f"{name}.toml"


def _known(path: Path, environment: Environment, max_age_s: float | None) -> Machine | None:
    """The description on file, if it still speaks of this device and software.

    Where its age matters, its figures do: those of a processor that others used at the time do not count either.
    """
    try:
        machine = read_machine(path)
    except InputError:
        return None  # missing, of another version, or damaged: it is measured and written anew
    here = replace(machine, environment=environment, streams_digest=_streams_digest(environment))
    fit = max_age_s is None or (_age_s(machine) <= max_age_s and left_alone(machine.conditions.cpu_share))
    return machine if fit and _identity(machine) == _identity(here) else None


def _lacks_calibration(machine: Machine) -> bool:
    """Whether nothing is known of it but bandwidths, or nothing that may be believed."""
    return not (machine.calibrated and left_alone(machine.calibration_cpu_share))


def _identity(machine: Machine) -> tuple[object, ...]:
    e = machine.environment
    software = (e.driver, e.runtime, e.compiler, e.packages, machine.streams_digest)
    return (e.device_id, *software, e.ecc, e.power_limit_w, e.cores, e.vector_bits)


def _streams_digest(environment: Environment) -> str:
    return streams_digest("cpu" if environment.backend == "cpu" else "cuda")


def _age_s(machine: Machine) -> float:
    """Seconds since the measurement; infinite where its date is not known."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(machine.date)).total_seconds()
    except (ValueError, TypeError):  # no date, or one without a time zone
        return inf


def heard(worker: Worker, say: Say | None) -> Any:
    """The next greeting or answer of the worker."""
    while True:
        event = _event(worker)
        if isinstance(event, (Greeting, Answer)):
            return event.value
        if isinstance(event, Death):
            raise unavailable("the device could not be measured", event)
        if isinstance(event, Stage) and say:
            say(event.name)


def _event(worker: Worker) -> Event:
    while (event := worker.event()) is None:
        wait([worker.connection], timeout=_POLL_S)
    return event
