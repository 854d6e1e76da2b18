"""Machine descriptions that come with the package, by name: measured ones, and what data sheets say."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.errors import InputError, suggestion
from lbmtune.model.machine.datasheet_scaling import with_scaled_calibration
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import described, read_machine

_LENDER = "h200"
_MEASURED = ("h100", _LENDER)
_RECORDED = "studies/recorded/nvidia-{name}/machine.toml"
"""Where a checkout has what was measured; a wheel has all in one folder."""


def as_machine(machine: Machine | str | Path) -> Machine:
    """Return a machine description given as one, as a file, or by the name of a shipped one. Raises InputError."""
    return machine if isinstance(machine, Machine) else named_machine(str(machine))


def named_machine(reference: str) -> Machine:
    """The description in a file, or the shipped one of that name. Raises InputError.

    One from a data sheet has the calibration of a measured one, scaled, whether it is shipped or somebody's own.
    """
    path = Path(reference)
    if path.suffix or path.is_file():
        return _with_curves(_in_file(path))
    shipped = shipped_machines()
    if reference.lower() in shipped:
        return _with_curves(read_machine(shipped[reference.lower()]))
    hint = suggestion(reference.lower(), shipped, "or give a file that lbmtune devices wrote.")
    raise InputError(f"there is no machine {reference!r}; known are {', '.join(shipped)}; {hint}")


def _with_curves(found: Machine) -> Machine:
    """With those of the lender where a GPU is known by its data sheet alone; what was measured is left as it is."""
    if found.measured or found.calibrated or found.datasheet is None or BACKENDS[found.environment.backend].shares_host:
        return found
    return with_scaled_calibration(found, read_machine(shipped_machines()[_LENDER]))


def _in_file(path: Path) -> Machine:
    """The description in a file that the user named, which is nobody else's to delete. Raises InputError."""
    try:
        return described(path)
    except (OSError, ValueError) as error:
        why = f"cannot read {path}: {error.strerror}" if isinstance(error, OSError) else f"{path}: {error}"
        known = ", ".join(shipped_machines())
        raise InputError(f"{why}; give a file that lbmtune devices wrote, or one of {known}.") from error


def machine_of(device: str) -> Machine | None:
    """The shipped description of devices with this name, if there is one."""
    names = (name for name, path in shipped_machines().items() if read_machine(path).environment.device == device)
    return next(map(named_machine, names), None)


def shipped_machines() -> dict[str, Path]:
    """By name."""
    package = Path(str(resources.files("lbmtune")))
    root = package if (package / "machines").is_dir() else package.parent
    found = {path.stem: path for path in (root / "machines").glob("*.toml")}
    measured = {name: root / _RECORDED.format(name=name) for name in _MEASURED}
    found |= {name: path for name, path in measured.items() if path.is_file()}
    return dict(sorted(found.items()))
