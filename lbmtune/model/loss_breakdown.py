"""Predictions of the rungs of a loss breakdown, by the machine and the compiled resources."""

from dataclasses import replace

from lbmtune.catalogue.collisions import NO_COLLISION
from lbmtune.catalogue.config import KernelConfig
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import MODELS, predict
from lbmtune.records import Term
from lbmtune.records.legacy.configurations import config_of
from lbmtune.records.profile import COPY, DATASHEET, KERNEL, STREAMING, STREAMS, Profile, Rung
from lbmtune.units import format_rate


def expected(profile: Profile, machine: Machine) -> Profile:
    """Return the profile with predictions by a description of its machine."""
    config = config_of(profile.config)
    rungs = tuple(_expected(profile, config, rung, machine) for rung in profile.rungs)
    memory_bytes = MODELS[config.backend].memory_bytes
    moved = memory_bytes(profile.case, config, machine, profile.rungs[-1].resources)
    return replace(profile, rungs=rungs, machine=machine.name, machine_date=machine.date, memory_bytes=moved)


def _expected(profile: Profile, config: KernelConfig, rung: Rung, machine: Machine) -> Rung:
    if rung.name == DATASHEET:  # it is given
        return _of_bytes(rung, profile.bytes_per_update, profile.bytes_per_update / rung.seconds, "the data sheet")
    if rung.name == COPY:
        return _of_bytes(rung, profile.bytes_per_update, machine.copy_bytes_per_s, "copy of one array")
    if rung.name == STREAMS:
        streams = MODELS[config.backend].streams_ceiling(profile.case, config, machine)
        return _of_bytes(rung, profile.bytes_per_update, *streams)
    assert rung.name in (STREAMING, KERNEL)
    solved = replace(profile.case, collision=NO_COLLISION) if rung.name == STREAMING else profile.case
    found = predict(solved, config, machine, rung.resources)
    return replace(rung, model_s=1e-6 / found.mlups, model=found.terms)


def _of_bytes(rung: Rung, moved: float, bytes_per_s: float, source: str) -> Rung:
    term = Term(rung.name, moved / bytes_per_s, f"{moved:g} bytes per update at {format_rate(bytes_per_s)}", source)
    return replace(rung, model_s=term.seconds, model=(term,))
