"""The model: what a configuration is expected to do on a machine. docs/design/gpu.md has its equations.

On a machine that is not calibrated it is bytes per update over the bandwidth measured for such accesses, and the issue
of instructions: on a GPU for kernels of several steps per launch, on a CPU by the clock of its cores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.cpu.terms import CALIBRATED, CPU_TERMS, CpuSubject, cpu_terms, estimated_arithmetic
from lbmtune.model.gpu import temporal_blocking as marches
from lbmtune.model.gpu.copy_terms import bandwidth
from lbmtune.model.gpu.direct import ONCE, SECONDS, SHARES
from lbmtune.model.gpu.inputs import AGAIN, ISSUE, LATENCY, LAUNCH, MEETING, OVERTAKEN, RINGS, STAGES, WALLS, Subject
from lbmtune.model.gpu.spills import estimated
from lbmtune.model.gpu.temporal_blocking import EXCHANGE, memory_term
from lbmtune.model.machine.description import ACCESS_BYTES, Machine
from lbmtune.records import Prediction, Resources, Term, worth_telling

_OF_MARCHES = (EXCHANGE, WALLS, STAGES, LATENCY, OVERTAKEN, AGAIN)
TERMS = (*SECONDS, *SHARES, RINGS, ISSUE, *_OF_MARCHES, LAUNCH, MEETING, *CPU_TERMS)
"""What can be left out to see what it is worth."""
DATASHEET = "data sheet, not measured"


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
    Sources: Williams et al. 2009 (roofline); Wellein et al. 2006 (bytes per update); those of `model.gpu.direct`.
    """
    found = ceiling(config, machine)
    if isinstance(config, CpuConfig):
        if machine.cpu is None:
            return _told(
                case, config, found, [_memory(case, config, found), *estimated_arithmetic(case, config, machine)]
            )
        parts = cpu_terms(CpuSubject(case, config, machine, machine.cpu), without)
        reached = bytes_per_update(case, config) / parts[0].seconds
        return _told(case, config, Ceiling(reached, CALIBRATED), parts)
    assert isinstance(config, CudaConfig)
    if config.resident:
        from lbmtune.model.gpu.persistent import terms  # here: it prints kernels, which needs SymPy

        on_chip = terms(case, config, machine, resources or estimated(case, config), without)
        return _told(case, config, found, on_chip or [_memory(case, config, found)])
    if machine.calibration is None:
        return _told(case, config, found, _roofline_terms(case, config, machine, found))
    subject = Subject(case, config, machine, machine.calibration, resources or estimated(case, config))
    source = f"{DATASHEET}; curves of {machine.calibrated_as} scaled to it" if machine.calibrated_as else CALIBRATED
    found = Ceiling(bandwidth(subject, by_runs="runs" not in without), source)
    return _told(case, config, found, _terms(config)(subject, without))


def _terms(config: CudaConfig) -> Callable[[Subject, Collection[str]], list[Term]]:
    """Those of its kind of kernel."""
    if config.by_faces:
        from lbmtune.model.gpu.face_exchange import terms  # here: it prints kernels, which needs SymPy

        return terms
    return marches.terms if config.marches else _one_step_terms


def _told(case: Case, config: KernelConfig, rate: Ceiling, terms: Sequence[Term]) -> Prediction:
    """Terms added up and said in words, the largest first."""
    largest_first = tuple(sorted((one for one in terms if one.seconds), key=lambda one: -one.seconds))
    return Prediction(
        mlups=1e-6 / sum(one.seconds for one in terms),
        bytes_per_update=bytes_per_update(case, config),
        bandwidth_bytes_per_s=rate.bytes_per_s,
        footprint_bytes=footprint_bytes(case, config),
        limit="; ".join(
            f"{one.name}: {one.sentence}, {one.seconds * 1e12:.3g} ps" for one in worth_telling(largest_first)
        ),
        ceiling_source=rate.source,
        terms=largest_first,
    )


def _memory(case: Case, config: KernelConfig, rate: Ceiling) -> Term:
    """Bytes of an update over the bandwidth."""
    return memory_term(bytes_per_update(case, config), rate.bytes_per_s, rate.source)


def _one_step_terms(subject: Subject, without: Collection[str]) -> list[Term]:
    """Bytes, what `model.gpu.direct` adds to them, and what both take more where they use a part of the bandwidth
    only.
    """
    memory = _memory(subject.case, subject.config, Ceiling(bandwidth(subject, by_runs=False), CALIBRATED))
    terms = [memory, *(term(subject) for name, term in SECONDS.items() if name not in without)]
    for name, share in SHARES.items():
        if name not in without:
            terms.append(_unused(name, share(subject), sum(one.seconds for one in terms)))
    terms += [term(subject) for name, term in ONCE.items() if name not in without]
    return terms


def _unused(name: str, share: float, seconds: float) -> Term:
    """What goes through memory takes longer where a share of its bandwidth is in use."""
    return Term(name=name, seconds=seconds / share - seconds, sentence=f"{share:.1%} of it in use", source=CALIBRATED)


def _roofline_terms(case: Case, config: CudaConfig, machine: Machine, rate: Ceiling) -> list[Term]:
    """On a machine that is not calibrated: bytes, and the issue of instructions at the rates of the architecture."""
    from lbmtune.model.gpu.instruction_issue import issue, together  # here: they print kernels, which needs SymPy

    memory = _memory(case, config, rate)
    found = issue(case, config, machine)
    if found is None:
        return [memory]
    there = together(case, config)
    return marches.overlapped(case, config, memory, marches.issued(found), (), there)


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
    source = f"{machine.streams}-stream copy, {name} bytes at once" if machine.measured else DATASHEET
    return Ceiling(measured[name], source)
