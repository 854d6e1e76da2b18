"""What the model expects of each rung of a ladder, by the machine and what was compiled, whatever was measured."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.catalogue.config import CudaConfig, KernelConfig, from_flat
from lbmtune.catalogue.problem.case import NO_COLLISION
from lbmtune.model.cpu.terms import CALIBRATED
from lbmtune.model.gpu.copy_terms import plain_bandwidth
from lbmtune.model.gpu.inputs import Subject
from lbmtune.model.gpu.l2_refetch import memory_bytes
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import ceiling, predict
from lbmtune.records import Resources, Term
from lbmtune.records.profile import COPY, DATASHEET, KERNEL, STREAMING, STREAMS, Profile, Rung
from lbmtune.units import format_rate


def expected(profile: Profile, machine: Machine) -> Profile:
    """The profile with what the model expects now, by a description of its machine."""
    rungs = tuple(_expected(profile, rung, machine) for rung in profile.rungs)
    moved = memory_bytes(profile.case, from_flat(profile.config), machine, _at_once(profile, machine))
    return replace(profile, rungs=rungs, machine=machine.name, machine_date=machine.date, memory_bytes=moved)


def _at_once(profile: Profile, machine: Machine) -> int:
    """Blocks of the whole kernel that run at the same time; 0 where that is not known."""
    config, resources = from_flat(profile.config), profile.rungs[-1].resources
    if not isinstance(config, CudaConfig) or config.resident or not machine.calibration or not resources:
        return 0
    subject = Subject(profile.case, config, machine, machine.calibration, resources)
    return subject.blocks * machine.multiprocessors


def _expected(profile: Profile, rung: Rung, machine: Machine) -> Rung:
    case, config = profile.case, from_flat(profile.config)
    if rung.name == DATASHEET:  # it is given
        return _of_bytes(rung, profile.bytes_per_update, profile.bytes_per_update / rung.seconds, "the data sheet")
    if rung.name == COPY:
        return _of_bytes(rung, profile.bytes_per_update, machine.copy_bytes_per_s, "copy of one array")
    if rung.name == STREAMS:
        return _of_bytes(rung, profile.bytes_per_update, *_streams(profile, config, machine))
    assert rung.name in (STREAMING, KERNEL)
    solved = replace(case, collision=NO_COLLISION) if rung.name == STREAMING else case
    found = predict(solved, config, machine, rung.resources)
    return replace(rung, model_s=1e-6 / found.mlups, model=found.terms)


def _streams(profile: Profile, config: KernelConfig, machine: Machine) -> tuple[float, str]:
    if isinstance(config, CudaConfig) and machine.calibration:
        subject = Subject(profile.case, config, machine, machine.calibration, Resources())
        return plain_bandwidth(subject), CALIBRATED
    found = ceiling(config, machine)
    return found.bytes_per_s, found.source


def _of_bytes(rung: Rung, moved: float, bytes_per_s: float, source: str) -> Rung:
    sentence = f"{moved:g} bytes per update at {format_rate(bytes_per_s)}"
    term = Term(name=rung.name, seconds=moved / bytes_per_s, sentence=sentence, source=source)
    return replace(rung, model_s=term.seconds, model=(term,))
