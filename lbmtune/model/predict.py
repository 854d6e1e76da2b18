"""The model: what a configuration is expected to do on a machine. docs/model.md has its equations.

On a machine that is not calibrated, and on CPUs, it is bytes per update over the bandwidth measured for such accesses,
and the issue of instructions for kernels of several steps per launch.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import hypot, prod
from typing import NamedTuple

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.model.machine import ACCESS_BYTES, Machine
from lbmtune.model.terms import SECONDS, Subject, bandwidth, estimated, in_flight, local_s, waves
from lbmtune.records import Prediction, Resources
from lbmtune.units import format_rate

THREADS, WAVES, ISSUE = "threads in flight", "waves", "instructions"
TERMS = (*(name for name in SECONDS if name != "streams"), THREADS, WAVES, ISSUE)
"""What can be left out to see what it is worth."""

_ALL = 0.995
"""What rounds to all."""


class Ceiling(NamedTuple):
    """A bandwidth and where it comes from."""

    bytes_per_s: float
    source: str


def predict(
    case: Case,
    config: KernelConfig,
    machine: Machine,
    resources: Resources | None = None,
    without: Collection[str] = (),
) -> Prediction:
    """What a kernel is expected to do on a machine. Needs no device.

    resources: of the compiled kernel, where that is known; estimated otherwise. without: `TERMS` to leave out.
    Sources: Williams et al. 2009 (roofline); Wellein et al. 2006 (bytes per update); those of `model.terms`.
    """
    by_memory = _by_memory(case, config, machine)
    if not isinstance(config, CudaConfig):
        return by_memory
    if config.resident:
        return _on_chip(by_memory, case, config, machine)
    if machine.calibration is None:
        return _marching(by_memory, case, config, machine) if config.marches else by_memory
    subject = Subject(case, config, machine, machine.calibration, resources or estimated(case, config))
    return (_march if config.marches else _one_step)(by_memory, subject, without)


def _one_step(by_memory: Prediction, subject: Subject, without: Collection[str]) -> Prediction:
    """The terms of `model.terms` added up."""
    seconds = {name: term(subject) for name, term in SECONDS.items() if name not in without}
    used = (1.0 if THREADS in without else in_flight(subject)) * (1.0 if WAVES in without else waves(subject))
    memory = f"memory: {by_memory.bytes_per_update:g} bytes per update at {format_rate(bandwidth(subject))}"
    more = {name: value for name, value in seconds.items() if name not in ("streams", "runs")}
    said = [f"{name} {value * 1e12:.1f} ps" for name, value in more.items() if value]
    said += [f"{used:.0%} of it in use"] if used < _ALL else []
    return replace(
        by_memory,
        mlups=used / sum(seconds.values()) / 1e6,
        bandwidth_bytes_per_s=bandwidth(subject),
        limit=", ".join([memory, *said]),
        ceiling_source="calibrated by micro-benchmarks",
    )


def _march(by_memory: Prediction, subject: Subject, without: Collection[str]) -> Prediction:
    """Kernels of moments, and of several steps per launch, on a calibrated machine.

    Their few warps meet in each stage, so that neither memory nor instructions hide behind the other: the root of the
    sum of squares stands between the larger of both, which would be perfect, and their sum, which would be none.
    """
    from lbmtune.model.issue import issue  # here: it prints kernels, which needs SymPy

    config = subject.config
    rate = bandwidth(subject, by_runs="runs" not in without)
    if THREADS not in without:
        rate *= in_flight(subject)
    if WAVES not in without:
        rate *= waves(subject)
    memory_s = by_memory.bytes_per_update / rate
    found = issue(subject.case, config, subject.machine, together=subject.threads // prod(config.block))
    issue_s = 1e-6 / found.mlups if found and ISSUE not in without else 0.0
    useful = found.useful if found else 1.0
    local = 0.0 if "local memory" in without else local_s(subject) / useful
    parts = {f"memory: {by_memory.bytes_per_update:g} bytes per update at {format_rate(rate)}": memory_s}
    if found:
        parts[f"instructions: {found.slots:.0f} issue slots per update, halos included"] = issue_s
    parts["local memory"] = local
    said = [f"{name}, {part * 1e12:.1f} ps" for name, part in sorted(parts.items(), key=lambda item: -item[1]) if part]
    return replace(
        by_memory,
        mlups=1e-6 / (hypot(memory_s, issue_s) + local),
        bandwidth_bytes_per_s=rate,
        limit="; ".join(said),
        ceiling_source="calibrated by micro-benchmarks" + (f"; {found.source}" if found else ""),
    )


def _marching(by_memory: Prediction, case: Case, config: CudaConfig, machine: Machine) -> Prediction:
    """Kernels of moments, and of several steps per launch."""
    from lbmtune.model.issue import issue  # here: it prints kernels, which needs SymPy

    found = issue(case, config, machine)
    if found is None or found.mlups >= by_memory.mlups:
        return by_memory
    limit = f"instructions: {found.slots:.0f} issue slots per update, halos included"
    return replace(by_memory, mlups=found.mlups, limit=limit, ceiling_source=found.source)


def _on_chip(by_memory: Prediction, case: Case, config: CudaConfig, machine: Machine) -> Prediction:
    """Blocks meet in every step, and issue instructions in between; what they send stays in the caches."""
    from lbmtune.model.meeting import MEETING_S, step  # here: it prints kernels, which needs SymPy

    found = step(case, config, machine)
    if found is None:
        return by_memory
    limit = f"a meeting of blocks, {MEETING_S * 1e6:g} us per step, and {found.slots:.0f} issue slots per update"
    return replace(by_memory, mlups=case.fluid_sites / found.seconds / 1e6, limit=limit, ceiling_source=found.source)


def _by_memory(case: Case, config: KernelConfig, machine: Machine) -> Prediction:
    moved = bytes_per_update(case, config)
    found = ceiling(config, machine)
    return Prediction(
        mlups=found.bytes_per_s / moved / 1e6,
        bytes_per_update=moved,
        bandwidth_bytes_per_s=found.bytes_per_s,
        footprint_bytes=footprint_bytes(case, config),
        limit=f"memory: {moved:g} bytes per update at {format_rate(found.bytes_per_s)}",
        ceiling_source=found.source,
    )


def ceiling(config: KernelConfig, machine: Machine) -> Ceiling:
    """The measured bandwidth that fits the accesses of a configuration."""
    if isinstance(config, CudaConfig):
        return _streams(machine, str(min(config.cells_per_thread * config.pack * config.stored.bytes, ACCESS_BYTES)))
    assert isinstance(config, CpuConfig)
    return _by_threads(config, machine, _cpu(config, machine))


def _cpu(config: CpuConfig, machine: Machine) -> Ceiling:
    if config.propagation.in_place:
        return Ceiling(machine.in_place_bytes_per_s, "update in place")
    if config.streaming_stores:
        return _streams(machine, "64 streaming")
    return _streams(machine, str(config.vector_bits // 8 or config.stored.bytes))


def _by_threads(config: CpuConfig, machine: Machine, full: Ceiling) -> Ceiling:
    """A few threads reach no more than so many times what one does."""
    alone = machine.thread_bytes_per_s
    if alone is None or config.threads * alone >= full.bytes_per_s:
        return full
    return Ceiling(config.threads * alone, f"{config.threads} x update in place by one thread")


def _streams(machine: Machine, name: str) -> Ceiling:
    """The copy of that access width; where it was not measured, of the nearest one that was."""
    measured = machine.stream_bytes_per_s
    if name not in measured:
        plain = [key for key in measured if key.isdecimal()]
        name = min(plain, key=lambda key: abs(int(key) - int(name.split()[0])))
    return Ceiling(measured[name], f"{machine.streams}-stream copy, {name} bytes at once")
