"""Devices as the verbs need them: which one, its limits, its machine description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lbmtune.backend.registry import available, backend_of, open_device
from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.rules import Limits, cuda_limits
from lbmtune.cli.output import note
from lbmtune.cores import usable_cores
from lbmtune.errors import DeviceUnavailableError
from lbmtune.records import Prediction

if TYPE_CHECKING:
    from lbmtune.model.machine import Machine


@dataclass(frozen=True)
class Bounds:
    """Limits, and whether they are those of a device that is here."""

    limits: Limits
    known: bool


def chosen(device: str | None, backend: str | None = None) -> str:
    """The device to use: the one asked for, else the first that is here, of a backend if one is given."""
    if device is not None:
        backend_of(device)
        return device
    if backend is not None:
        return "cpu" if backend == "cpu" else "0"
    return available()[0]


def bounds(device: str) -> Bounds:
    """The limits of a device; where it is not here, those that every device of its kind has."""
    try:
        return Bounds(open_device(device).limits, True)
    except DeviceUnavailableError:
        return Bounds(Limits(cores=usable_cores()), False)


def machine(
    device: str, *, refresh: bool = False, max_age_s: float | None = None, calibration: bool = False
) -> Machine:
    """The measured description of a device, not older than that. Raises DeviceUnavailableError, InputError."""
    from lbmtune.measure.devices import describe, left_alone
    from lbmtune.search.lock import device_held

    described = describe(
        device, refresh=refresh, say=note, max_age_s=max_age_s, calibration=calibration, alone=device_held
    )
    if not left_alone(described):
        share = described.conditions.cpu_share
        note(
            f"other programs left {share:.0%} of the processor when its bandwidths were measured: predictions come out "
            "too low, shares of the ceiling too high; lbmtune devices --refresh measures again."
        )
    return described


def limits_of(described: Machine) -> Limits:
    """What a device allows that is known by its description alone."""
    environment = described.environment
    if environment.backend == "cpu":
        cores, bits = environment.cores, environment.vector_bits
        return Limits(cores=cores, vector_bits=bits, memory_bytes=environment.memory_bytes)
    return cuda_limits(environment.architecture, described.multiprocessors, environment.memory_bytes)


def predictor(case: Case, described: Machine) -> Callable[[KernelConfig], Prediction]:
    """What the model expects of a configuration on a machine."""
    from lbmtune.model.predict import predict

    return partial(predict, case, machine=described)
