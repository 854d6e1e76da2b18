"""Machine descriptions of the devices that are here: measured once, then kept in a file."""

from pathlib import Path

from lbmtune.api.devices import LOG
from lbmtune.errors import InputError
from lbmtune.measure.calibration.machines import describe, machine_path
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.records.remarks import description_disturbance
from lbmtune.search.lock import device_lock


def measured_machine(
    device: str, *, refresh: bool = False, max_age_s: float | None = None, calibration: bool = False
) -> Machine:
    """Return the description of a device, from its file or measured now (a GPU: seconds, a CPU: half a minute).

    refresh: measure in any case; max_age_s: measure again what is older; calibration: also what the model needs
    besides bandwidths, about a minute. Raises DeviceUnavailableError, InputError.
    """
    machine = describe(
        device, refresh=refresh, progress=LOG.info, max_age_s=max_age_s, calibration=calibration, alone=device_lock
    )
    if remark := disturbance(machine):
        LOG.warning(remark)
    return machine


def machine_file(machine: Machine) -> Path | None:
    """Return the file that holds a measured description; None if it could not be written."""
    path = machine_path(machine.environment)
    try:
        return path if read_machine(path) == machine else None
    except InputError:
        return None


def disturbance(machine: Machine) -> str:
    """Return a sentence if parts of a description were measured beside other programs; else an empty text."""
    return description_disturbance(machine.conditions.cpu_share, machine.calibration_cpu_share)
