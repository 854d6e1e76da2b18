"""Machine descriptions: measured once, kept as TOML, measured again when the device or its software has changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, cast

import platformdirs

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.codegen.streams import streams_digest
from lbmtune.cores import usable_cores
from lbmtune.errors import InputError
from lbmtune.measure.calibration import repeats
from lbmtune.measure.calibration.gpu import calibrate, calibrate_quickly, texts
from lbmtune.measure.calibration.microbench import Rate, measure_bandwidths
from lbmtune.measure.processes.precompile import precompiled
from lbmtune.measure.processes.worker import Progress, Session, await_answer, temporary_worker
from lbmtune.measure.timing.processor_time import Usage, cpu_share, usage
from lbmtune.model.machine.datasheet_scaling import with_borrowed_calibration
from lbmtune.model.machine.description import EXTENTS, Extent, Machine
from lbmtune.model.machine.toml import read_machine, write_machine
from lbmtune.records import Conditions, Environment
from lbmtune.records.output import OutputRates
from lbmtune.records.remarks import left_alone
from lbmtune.records.spec import TimingProtocol

if TYPE_CHECKING:
    from lbmtune.codegen.program import Program, Target

CONFIG_VARIABLE = "LBMTUNE_CONFIG"
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_OUTPUT_BYTES = 64 << 20
"""Bytes of the fields by which rates of output are measured."""
_UNKNOWN_CACHE_BYTES = 64 << 20
_STEP_LIMIT_S = 180.0
_QUICK_SHARE, _LEFT_ALONE = 0.8, TimingProtocol().min_cpu_share
"""Least share of the processor for a quick calibration, and for one that replaces a disturbed one."""
_COMPILE_PROCESSES = 8
"""Processes that compile the texts of a calibration while bandwidths are measured; each takes a while to start."""


def describe(
    spec: str,
    refresh: bool = False,
    progress: Progress | None = None,
    opener: Callable[[str], Device] = open_device,
    max_age_s: float | None = None,
    extent: Extent = "bandwidths",
    lender: Callable[[Environment], Machine | None] = lambda _: None,
    alone: Callable[[Environment], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> Machine:
    """Return the description of a device, from its file, or measured in a process of its own.

    refresh: measure in any case; max_age_s: ignore an older file, and one measured while other programs used the
    processor; extent: what it has to hold; lender: gives the machine whose tables a quick calibration of a GPU scales;
    alone: holds the device meanwhile. A calibration on file is kept if it holds as much as is asked for. One that other
    programs disturbed is measured again if one is asked for, or to refresh it; what is quiet is not replaced by what
    they disturbed. Raises InputError, DeviceUnavailableError.
    """
    with temporary_worker("devices", partial(open_describer, partial(opener, spec)), _STEP_LIMIT_S) as worker:
        environment: Environment = await_answer(worker, None)
        path = machine_path(environment)
        on_file = _known(path, environment, None)
        known = None if refresh else _known(path, environment, max_age_s)
        if known and not _lacking(known, extent, refresh=refresh):
            return known
        lacking, least = _lacking(on_file, extent, refresh=refresh), _QUICK_SHARE
        if on_file and on_file.calibrated:
            least = _LEFT_ALONE  # one that is no better would be made in vain
        if progress and (reason := _reason(on_file, extent, lacking)):
            progress(reason)
        with alone(environment):
            visit = partial(repeats.visit, partial(opener, spec), progress or (lambda _: None))
            first = visit() if lacking == "full" else {}
            worker.send(spec, (lacking or "bandwidths", lender(environment) if lacking == "quick" else None, least))
            machine: Machine = await_answer(worker, progress)
            machine = replace(machine, repeats=repeats.apart(first, visit() if first else {}))
        if on_file:
            machine = _trusted(machine, on_file, progress or (lambda _: None), calibrated=lacking is not None)
            machine = replace(machine, links=on_file.links)
    keep(machine, progress)
    return machine


_OF_CALIBRATION = ("calibration", "cpu", "repeats", "quick", "calibrated_as")
"""Fields of `Machine` that come from its calibration."""


def _lacking(known: Machine | None, extent: Extent, *, refresh: bool) -> Extent | None:
    """Return the extent to which a device has to be calibrated besides its bandwidths; None if it was."""
    held: Extent = known.extent if known else "bandwidths"
    if known and not left_alone(known.calibration_cpu_share) and (refresh or extent != "bandwidths"):
        return held if extent == "bandwidths" else extent
    return extent if EXTENTS.index(extent) > EXTENTS.index(held) else None


def _reason(on_file: Machine | None, asked: Extent, lacking: Extent | None) -> str:
    """Return why a device is calibrated although that was not asked for in full; else an empty text."""
    if on_file and on_file.calibrated and lacking and asked != "full":
        return "calibration: measured again, because other programs used the processor during the one on file"
    return "calibrating in about 15 s: this device is not known yet" if lacking == "quick" else ""


def _trusted(machine: Machine, on_file: Machine, progress: Progress, *, calibrated: bool) -> Machine:
    """Return a description without parts that other programs disturbed and that are on file as quiet ones.

    calibrated: a calibration was asked for.
    """
    now, then = machine.conditions.cpu_share, on_file.conditions.cpu_share
    found = machine
    if left_alone(then) and not left_alone(now):
        progress(f"bandwidths: those on file are kept, because other programs left {now:.0%} of the processor")
        found = on_file
    better = max(machine, on_file, key=_trust)  # the new one of equals
    if better is on_file and calibrated:
        progress("calibration: the one on file is kept, because other programs use the processor")
    return replace(found, **{name: getattr(better, name) for name in _OF_CALIBRATION})


def _trust(machine: Machine) -> tuple[object, ...]:
    """Return by what the calibrations of a device are compared: quiet ones first, then those that hold more."""
    share = machine.calibration_cpu_share
    return machine.calibrated, left_alone(share), EXTENTS.index(machine.extent), share or 1.0


def keep(machine: Machine, progress: Progress | None) -> None:
    """Write the description of a device into its file, or report why it is not kept."""
    try:
        write_machine(machine_path(machine.environment), machine)
    except InputError as error:
        if progress:
            reason = str(error).partition(";")[0]
            progress(f"{reason}: the description of this device is not kept; set {CONFIG_VARIABLE} to another folder.")


def open_describer(opener: Callable[[], Device]) -> tuple[Environment, Session]:
    """Open a session that answers with a Machine; a request has the arguments of `measured` from the extent on."""
    device = opener()

    def session(request: tuple[Extent, Machine | None, float], progress: Progress) -> Machine:
        return measured(device, progress, *request)

    return device.environment, session


def measured(
    device: Device,
    progress: Progress,
    extent: Extent = "bandwidths",
    lender: Machine | None = None,
    least: float = _QUICK_SHARE,
) -> Machine:
    """Measure an open device.

    lender: the machine whose tables a quick calibration of a GPU scales; least: share of the processor below which a
    quick one of a CPU is left out.
    """
    environment, caches = device.environment, caches_bytes(device)
    last_cache_bytes = max(caches.values(), default=_UNKNOWN_CACHE_BYTES)
    # no compilation beside samples of a CPU
    beforehand = extent != "bandwidths" and not BACKENDS[environment.backend].shares_host
    programs = _texts(device, lender) if beforehand else ()
    with precompiled(compiler_for(environment), programs, min(_COMPILE_PROCESSES, usable_cores() - 1)) as compiler:
        before = usage()
        found = measure_bandwidths(device, compiler, last_cache_bytes, progress)
        share = _cpu_share(environment, before)
        named: dict[str, Rate] = {"copy": found.copy, "in_place": found.in_place, **found.streams}
        machine = Machine(
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
            quick=extent == "quick",
            conditions=Conditions(cpu_share=share),
            streams_digest=_streams_digest(environment),
        )
        if extent != "bandwidths":
            machine = _CALIBRATIONS[environment.backend](machine, device, compiler, progress, lender, least)
    return replace(
        machine,
        output=None if extent == "quick" else _output_rates(device),  # a study with output measures them itself
        conditions=replace(device.conditions(), cpu_share=share),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _output_rates(device: Device) -> OutputRates | None:
    """Return the rates of output; None if the folder for temporary files takes no file."""
    from lbmtune.measure.timing.output import measure_rates  # here: it needs the code of simulations

    with suppress(InputError):
        return measure_rates(device, _OUTPUT_BYTES, None)
    return None


def _texts(device: Device, lender: Machine | None) -> Iterator[Program]:
    """Yield the programs of a calibration of a GPU."""
    if not _twin(device.environment, lender):
        yield from texts(device.limits, ranking=lender is not None)


def _twin(environment: Environment, lender: Machine | None) -> bool:
    """Return whether all tables of a lender hold for a device, scaled by its bandwidths: it is the same card."""
    return lender is not None and lender.environment.device == environment.device


def _calibrated_gpu(
    machine: Machine, device: Device, compiler: Compiler, progress: Progress, lender: Machine | None, _: float
) -> Machine:
    borrowed = with_borrowed_calibration(machine, lender) if lender else machine
    if borrowed.calibration is None:
        return replace(machine, calibration=calibrate(device, compiler, progress), quick=False)
    if _twin(machine.environment, lender):
        return borrowed
    return replace(borrowed, calibration=calibrate_quickly(device, compiler, progress, borrowed.calibration))


def _calibrated_cpu(
    machine: Machine, device: Device, compiler: Compiler, progress: Progress, _: Machine | None, least: float
) -> Machine:
    from lbmtune.measure.calibration.cpu import calibrate_cpu  # here: it needs SymPy

    before, share = usage(), machine.conditions.cpu_share

    def idle() -> bool:
        # one sample of each benchmark says nothing beside others: threads that wait for each other take many times
        return not machine.quick or share is None or share >= least

    if idle():
        found = calibrate_cpu(device, compiler, machine.caches_bytes, progress, quick=machine.quick)
        share = _cpu_share(device.environment, before)
        if idle():
            return replace(machine, cpu=replace(found, conditions=Conditions(cpu_share=share)))
    progress(f"calibration: left out, because other programs left {share:.0%} of the processor")
    return replace(machine, quick=False)


_CALIBRATIONS: Mapping[str, Callable[[Machine, Device, Compiler, Progress, Machine | None, float], Machine]] = {
    "cuda": _calibrated_gpu,
    "cpu": _calibrated_cpu,
}
"""Benchmarks of a backend, which complete a machine."""


def _cpu_share(environment: Environment, before: Usage) -> float | None:
    """Return this process's share of the processor since then; None for a device that shares no host."""
    shared = BACKENDS[environment.backend].shares_host
    return cpu_share(before, usage(), environment.cores) if shared else None


def caches_bytes(device: Device) -> dict[str, int]:
    """Return level -> bytes; of a CPU, one instance of each level without instruction caches."""
    if not BACKENDS[device.environment.backend].shares_host:
        own: dict[str, int] = getattr(device, "caches_bytes", {})
        return own
    found = {}
    for index in sorted(_CACHES.glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction" and size.endswith("K"):
            found[f"L{level}"] = int(size[:-1]) << 10
    return found


def machine_path(environment: Environment) -> Path:
    """Return the file of a device's description; LBMTUNE_CONFIG overrides the user's configuration folder."""
    chosen = os.environ.get(CONFIG_VARIABLE)
    base = Path(chosen) if chosen else Path(platformdirs.user_config_dir("lbmtune"))
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{environment.device} {environment.device_id}").strip("-").lower()
    return base / "machines" / f"{name}.toml"


def _known(path: Path, environment: Environment, max_age_s: float | None) -> Machine | None:
    """Return the description on file if it is of this device and software, else None.

    max_age_s: also reject an older one, and one measured while other programs used the processor.
    """
    try:
        machine = read_machine(path)
    except InputError:
        return None  # missing, of another version, or damaged: measure again
    here = replace(machine, environment=environment, streams_digest=_streams_digest(environment))
    fit = max_age_s is None or (_age_s(machine) <= max_age_s and left_alone(machine.conditions.cpu_share))
    return machine if fit and _identity(machine) == _identity(here) else None


def _identity(machine: Machine) -> tuple[object, ...]:
    e = machine.environment
    software = (e.driver, e.runtime, e.compiler, e.packages, machine.streams_digest)
    return (e.device_id, *software, e.ecc, e.power_limit_w, e.cores, e.vector_bits)


def _streams_digest(environment: Environment) -> str:
    return streams_digest(cast("Target", environment.backend))


def _age_s(machine: Machine) -> float:
    """Return the seconds since the measurement; infinite if its date is unknown."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(machine.date)).total_seconds()
    except (ValueError, TypeError):  # no date, or one without a time zone
        return inf
