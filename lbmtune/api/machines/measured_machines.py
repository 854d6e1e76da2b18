"""Machine descriptions of the devices that are here: measured once, then kept in a file."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lbmtune.api.machines.devices import LOG
from lbmtune.api.machines.shipped import measured_cards
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.errors import InputError
from lbmtune.measure.calibration.machines import describe, machine_path
from lbmtune.model.machine.datasheet_scaling import with_borrowed_calibration
from lbmtune.model.machine.description import Extent, Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Environment
from lbmtune.records.remarks import description_disturbance
from lbmtune.search.lock import device_lock


def measured_machine(
    device: str, *, refresh: bool = False, max_age_s: float | None = None, extent: Extent = "bandwidths"
) -> Machine:
    """Return the description of a device, from its file or measured now.

    refresh: measure in any case; max_age_s: measure again what is older; extent: bandwidths alone (seconds), also what
    ranks kernels ('quick', a quarter of a minute), or all that the model looks up ('full', a minute). A quick
    calibration of a GPU scales what is known of the same card, or of the most similar one.
    Raises DeviceUnavailableError, InputError.
    """
    machine = describe(
        device,
        refresh=refresh,
        progress=LOG.info,
        max_age_s=max_age_s,
        extent=extent,
        lender=lender,
        alone=device_lock,
    )
    if remark := disturbance(machine):
        LOG.warning(remark)
    return machine


def how_calibrated(machine: Machine) -> str:
    """Return in words by what a machine is calibrated."""
    if not machine.calibrated:
        return "not calibrated, by bandwidths alone; lbmtune devices --calibrate measures the rest"
    if machine.calibrated_as and not machine.quick and machine.calibrated_as != machine.name:
        return (
            f"calibrated on {machine.calibrated_as}, scaled by the bandwidths of this card, which may rank kernels "
            "otherwise; lbmtune devices --calibrate measures it"
        )
    if machine.calibrated_as == machine.name:
        return (
            f"calibrated on another {machine.name}, scaled by the bandwidths of this one; lbmtune devices --calibrate "
            "measures it"
        )
    others = f", other figures of {machine.calibrated_as}, scaled" if machine.calibrated_as else ""
    return f"{'quickly ' * machine.quick}calibrated on this device{others}"


def lender(environment: Environment) -> Machine | None:
    """Return the calibrated machine that is most like a GPU: the same card, or the same architecture; a CPU: None."""
    if BACKENDS[environment.backend].shares_host:
        return None
    cards = [*_kept_cards(machine_path(environment).parent), *measured_cards()]
    here = environment.device, environment.architecture

    def unlike(card: Machine) -> tuple[bool, ...]:
        there = card.environment.device, card.environment.architecture
        return tuple(one != other for one, other in zip(here, there, strict=True))

    return min(cards, key=unlike, default=None)


def borrowing(machine: Machine) -> Machine:
    """Return a machine with the scaled tables of the most similar GPU, if it has none of its own.

    A CPU stays as it is, and so does a GPU whose multiprocessors are not known.
    """
    if machine.calibrated or not machine.multiprocessors:
        return machine
    card = lender(machine.environment)
    return with_borrowed_calibration(machine, card) if card else machine


def _kept_cards(folder: Path) -> Iterator[Machine]:
    """Yield the fully calibrated GPUs among the descriptions that are kept."""
    for path in sorted(folder.glob("*.toml")):
        with suppress(InputError):  # damaged, or of another version
            machine = read_machine(path)
            if machine.calibration and not machine.quick:
                yield machine


def machine_file(machine: Machine) -> Path | None:
    """Return the file that holds a measured description; None if it could not be written."""
    path = machine_path(machine.environment)
    try:
        return path if read_machine(path) == machine else None
    except InputError:
        return None


def disturbance(machine: Machine) -> str:
    """Return a sentence if parts of a description were measured beside other programs; else an empty text."""
    return description_disturbance(*machine.cpu_shares)
