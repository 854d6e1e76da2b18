"""Devices as the verbs need them: which one, its limits, its machine description."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lbmtune.backend.registry import available, backend_of, open_device
from lbmtune.catalogue.families.rules import Limits, cuda_limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.cli.format.output import note
from lbmtune.cores import usable_cores
from lbmtune.errors import DeviceUnavailableError, InputError

if TYPE_CHECKING:
    from lbmtune.measure.workers.evaluate import Predict
    from lbmtune.model.machine.description import Machine


@dataclass(frozen=True)
class Bounds:
    """Limits, and whether they are those of a device that is known: one that is here, or a machine."""

    limits: Limits
    known: bool
    machine: Machine | None = None

    @property
    def whose(self) -> str:
        """Whose they are in words, as they follow 'legal'; empty: of the device that is here."""
        if self.machine:
            return f" on {self.machine.name}"
        return "" if self.known else " by the limits of any such device"


def chosen(device: str | None, backend: str | None = None, machine: Machine | None = None) -> str:
    """The device to use: what a machine stands for, or the one asked for, else the first that is here, of a backend."""
    if machine is not None:
        return "cpu" if machine.environment.backend == "cpu" else "0"
    if device is not None:
        backend_of(device)
        return device
    if backend is not None:
        return "cpu" if backend == "cpu" else "0"
    return available()[0]


def place(device: str, machine: Machine | None = None) -> str:
    """A machine, or else a device, in words."""
    return machine.name if machine else f"device {device}"


def bounds(device: str, machine: Machine | None = None) -> Bounds:
    """The limits of a machine, or else of a device; where it is not here, those that every device of its kind has."""
    if machine:
        return Bounds(limits_of(machine), True, machine)
    try:
        return Bounds(open_device(device).limits, True)
    except DeviceUnavailableError:
        return Bounds(Limits(cores=usable_cores()), False)


def widest(device: str) -> Limits:
    """What the device allows at most, known without asking it: of a CPU the cores, of a GPU what the largest have."""
    if device == "cpu":
        return Limits(cores=usable_cores())
    return cuda_limits("sm_100", 1 << 10, Limits.memory_bytes)


def machine(
    device: str, *, refresh: bool = False, max_age_s: float | None = None, calibration: bool = False
) -> Machine:
    """The measured description of a device, not older than that. Raises DeviceUnavailableError, InputError."""
    from lbmtune.measure.calibration.machines import describe
    from lbmtune.search.lock import device_lock

    described = describe(
        device, refresh=refresh, progress=note, max_age_s=max_age_s, calibration=calibration, alone=device_lock
    )
    if remark := disturbance(described):
        note(remark)
    return described


def kept_in(described: Machine) -> Path | None:
    """The file of what `machine` found; None where it could not be written, and an older one may still lie there."""
    from lbmtune.measure.calibration.machines import machine_path
    from lbmtune.model.machine.toml import read_machine

    path = machine_path(described.environment)
    try:
        return path if read_machine(path) == described else None
    except InputError:
        return None


def disturbance(described: Machine) -> str:
    """One sentence where parts of a description were measured while other programs used the processor; else empty."""
    from lbmtune.records.disturbance import description_disturbance

    return description_disturbance(described.conditions.cpu_share, described.calibration_cpu_share)


def limits_of(described: Machine) -> Limits:
    """What a device allows that is known by its description alone."""
    environment = described.environment
    if environment.backend == "cpu":
        cores, bits = environment.cores, environment.vector_bits
        return Limits(cores=cores, vector_bits=bits, memory_bytes=environment.memory_bytes)
    return cuda_limits(environment.architecture, described.multiprocessors, environment.memory_bytes)


def doubt(described: Machine) -> str:
    """What to know before what is expected of a machine is believed; empty where it was calibrated itself."""
    if described.calibrated_as:
        return (
            f"{described.name} is known by its data sheet alone, with curves of {described.calibrated_as}: take speeds "
            "for an order, and calibrate where the device is."
        )
    if not described.calibrated:
        return (
            f"{described.name} is not calibrated: speeds are estimated from bandwidths and instructions alone, and too "
            "high where something else binds; lbmtune devices --calibrate measures the rest."
        )
    return ""


def predictor(case: Case, described: Machine) -> Predict:
    """What the model expects of a configuration on a machine."""
    from lbmtune.model.predict import predict

    return partial(predict, case, machine=described)
