"""Links between the GPUs of this host, in their descriptions."""

from collections.abc import Mapping

from lbmtune.api.machines.devices import LOG
from lbmtune.backend.registry import backend_of
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.measure.calibration.links import describe_links
from lbmtune.model.machine.description import Machine
from lbmtune.search.lock import device_locks


def linked(machines: Mapping[str, Machine]) -> dict[str, Machine]:
    """Return those of some described devices that have links to each other: the GPUs, if they are several."""
    found = {name: machine for name, machine in machines.items() if not BACKENDS[backend_of(name)].shares_host}
    return found if len(found) > 1 else {}


def measured_links(machines: Mapping[str, Machine], *, refresh: bool = False) -> dict[str, Machine]:
    """Return descriptions with the links of their GPUs, from their files or measured now, in some seconds.

    machines: by the names of the devices; without several GPUs they remain as they are; refresh: measure in any case.
    Raises DeviceUnavailableError, InputError.
    """
    gpus = linked(machines)
    if not gpus or (not refresh and all(_has_links(machine, gpus) for machine in gpus.values())):
        return dict(machines)
    return {**machines, **describe_links(gpus, LOG.info, alone=device_locks)}


def _has_links(machine: Machine, gpus: Mapping[str, Machine]) -> bool:
    """Return whether links to all others were measured."""
    others = {one.environment.device_id for one in gpus.values()} - {machine.environment.device_id}
    return machine.links is not None and others <= set(machine.links.peers)
