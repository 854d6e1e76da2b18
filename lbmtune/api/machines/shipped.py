"""Shipped machine descriptions by name: measured ones, and those of data sheets."""

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.errors import InputError, given_path, suggestion
from lbmtune.model.machine.datasheet_scaling import with_scaled_calibration
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import described, read_machine

_LENDER = "h200"
_MEASURED = ("h100", _LENDER)
_RECORDED = "studies/recorded/nvidia-{name}/machine.toml"
"""Measured machines of a checkout; a wheel has all in one folder."""


def as_machine(machine: Machine | str | Path) -> Machine:
    """Return a machine description given as one, as a file, or by the name of a shipped one. Raises InputError."""
    return machine if isinstance(machine, Machine) else named_machine(str(machine))


def named_machine(reference: str) -> Machine:
    """Return the description in a file, or the shipped one of that name. Raises InputError.

    One from a data sheet gets the scaled calibration of a measured one.
    """
    path = given_path(reference)
    if path.suffix or path.is_file():
        return _with_curves(_in_file(path))
    shipped = shipped_machines()
    if reference.lower() in shipped:
        return _with_curves(read_machine(shipped[reference.lower()]))
    hint = suggestion(reference.lower(), shipped, "or give a file that lbmtune devices wrote.")
    raise InputError(f"there is no machine {reference!r}; known are {', '.join(shipped)}; {hint}")


def _with_curves(found: Machine) -> Machine:
    """Return a GPU of a data sheet with scaled curves of a measured one; a measured machine as it is."""
    if found.measured or found.calibrated or found.datasheet is None or BACKENDS[found.environment.backend].shares_host:
        return found
    return with_scaled_calibration(found, read_machine(shipped_machines()[_LENDER]))


def _in_file(path: Path) -> Machine:
    """Return the description in the user's file. Raises InputError."""
    try:
        return described(path)
    except (OSError, ValueError) as error:
        why = f"cannot read {path}: {error.strerror}" if isinstance(error, OSError) else f"{path}: {error}"
        known = ", ".join(shipped_machines())
        raise InputError(f"{why}; give a file that lbmtune devices wrote, or one of {known}.") from error


def machine_of(device: str) -> Machine | None:
    """Return the shipped description of devices with this name, or None."""
    names = (name for name, path in shipped_machines().items() if read_machine(path).environment.device == device)
    return next(map(named_machine, names), None)


def measured_cards() -> Iterator[Machine]:
    """Yield the GPUs that ship with a measured calibration."""
    shipped = shipped_machines()
    yield from (read_machine(shipped[name]) for name in _MEASURED if name in shipped)


def shipped_machines() -> dict[str, Path]:
    """Return the files of the shipped descriptions by name."""
    package = Path(str(resources.files("lbmtune")))
    root = package if (package / "machines").is_dir() else package.parent
    found = {path.stem: path for path in (root / "machines").glob("*.toml")}
    measured = {name: root / _RECORDED.format(name=name) for name in _MEASURED}
    found |= {name: path for name, path in measured.items() if path.is_file()}
    return dict(sorted(found.items()))
