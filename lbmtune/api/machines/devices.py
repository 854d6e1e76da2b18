"""Devices: which one to use, what it allows, and the model of a case on it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lbmtune.backend.registry import available, backend_of, default_device, open_device
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.families.rules import Limits, cuda_limits
from lbmtune.cores import physical_cores, usable_cores
from lbmtune.errors import DeviceUnavailableError, InputError

if TYPE_CHECKING:
    from lbmtune.model.machine.description import Machine
    from lbmtune.records import Environment

LOG = logging.getLogger("lbmtune")
"""Remarks are warnings, progress is information."""


@dataclass(frozen=True)
class Bounds:
    """Limits of a device. known: it is here, or it is `machine`; otherwise every device of its backend has them."""

    limits: Limits
    known: bool
    machine: Machine | None = None

    @property
    def place(self) -> str:
        """Return where they hold, as it follows 'legal'; empty for the device that is here."""
        if self.machine:
            return f" on {self.machine.name}"
        return "" if self.known else " by the limits that all GPUs share"


def chosen(device: str | None, backend: str | None = None, machine: Machine | None = None) -> str:
    """Return the name of the device to use: that of a machine, the named one, or the first of a backend or of all.

    Raises InputError for a name that is neither 'cpu' nor a number.
    """
    if machine is not None:
        return default_device(machine.environment.backend)
    if device is not None:
        backend_of(device)
        return device
    return default_device(backend) if backend is not None else available()[0]


def several(devices: str) -> tuple[str, ...]:
    """Return the names of GPUs in a list such as '0,1', or of all that are here.

    Raises InputError for another device, or one named twice, DeviceUnavailableError for one that is not here.
    """
    here = tuple(one for one in available() if not _shares_host(one))
    names = here if devices == "all" else tuple(one.strip() for one in devices.split(","))
    if devices == "all" and not here:
        raise DeviceUnavailableError("devices=all: there is no GPU here; choose --device cpu.")
    if len(set(names)) < len(names) or any(map(_shares_host, names)):
        raise InputError(
            f"devices={devices} is not supported (use all, or indices of GPUs such as 0,1): each has one worker, and "
            "the cores of a host are one device."
        )
    if missing := [name for name in names if name not in here]:
        raise DeviceUnavailableError(
            f"GPU {missing[0]} does not exist: this machine has {len(here)}, counted from 0; choose other --devices."
        )
    return names


def _shares_host(device: str) -> bool:
    return BACKENDS[backend_of(device)].shares_host


def folder_name(device: str) -> str:
    """Return the part of a folder's name that stands for a device: 'cpu', 'gpu0'."""
    return device if _shares_host(device) else f"gpu{device}"


def place(device: str, machine: Machine | None = None) -> str:
    """Return a machine or a device in words."""
    return machine.name if machine else f"device {device}"


def bounds(device: str, machine: Machine | None = None) -> Bounds:
    """Return the limits of a machine, of a device that is here, or those of every device of its backend."""
    if machine:
        return Bounds(limits_of(machine), True, machine)
    try:
        return Bounds(open_device(device).limits, True)
    except DeviceUnavailableError:
        return Bounds(Limits(cores=usable_cores(), physical_cores=physical_cores()), False)


def widest(device: str) -> Limits:
    """Return upper limits of a device without opening it: the cores of a CPU, those of the largest GPU."""
    if _shares_host(device):
        return Limits(cores=usable_cores(), physical_cores=physical_cores())
    return cuda_limits("sm_100", 1 << 10, Limits.memory_bytes)


def limits_of(machine: Machine) -> Limits:
    """Return the limits that follow from a machine description."""
    environment = machine.environment
    if BACKENDS[environment.backend].shares_host:
        return host_limits(environment)
    return cuda_limits(environment.architecture, machine.multiprocessors, environment.memory_bytes)


def host_limits(environment: Environment) -> Limits:
    """Return the limits of a processor that was recorded."""
    cores, bits = environment.cores, environment.vector_bits
    return Limits(cores=cores, vector_bits=bits, memory_bytes=environment.memory_bytes)


def doubt(machine: Machine) -> str:
    """Return a sentence on how far predictions for a machine hold; empty if it is calibrated itself."""
    if machine.calibrated_as and not machine.measured:
        return (
            f"{machine.name} is known by its data sheet alone, with curves of {machine.calibrated_as}: use the "
            "speeds for ranking only, and calibrate on the device."
        )
    if not machine.calibrated:
        return (
            f"{machine.name} is not calibrated: speeds are estimated from bandwidths and instructions alone, and too "
            "high if something else limits; lbmtune devices --calibrate measures the rest."
        )
    return ""
