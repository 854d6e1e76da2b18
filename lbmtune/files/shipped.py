"""Files that lbmtune brings along: studies, and published documents."""

from importlib import resources
from pathlib import Path

from lbmtune.errors import InputError, given_path, suggestion


def find_study(reference: str) -> Path:
    """Return the path of a study file, or of a shipped study by its name. Raises InputError."""
    names = ", ".join(shipped_studies())
    if not reference.strip():
        raise InputError(f"{reference!r} names no study; give a study file, or one of the shipped studies {names}.")
    path = given_path(reference)
    if path.suffix == ".toml" or path.is_file() or len(path.parts) > 1:  # a folder of its name hides no study
        if path.is_file():
            return path
        raise InputError(f"there is no study file {path}; shipped studies are {names}.")
    known = {**spaces(), **shipped_studies()}
    if reference in known:
        return known[reference]
    listed = f"shipped studies are {names}; spaces are {', '.join(spaces())}."
    raise InputError(f"unknown study {reference!r}; {suggestion(reference, known, listed)}")


def shipped_studies() -> dict[str, Path]:
    """Return the files of the shipped studies by name: cases whose values are made, and a quick one."""
    return _files("")


def spaces() -> dict[str, Path]:
    """Return the studies whose files list all values, by name: the recorded sets are of these spaces."""
    return _files("spaces")


def published() -> dict[str, Path]:
    """Return the files of the shipped documents by name."""
    return _files("published")


def _files(folder: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted((_folder() / folder).glob("*.toml"))}


def _folder() -> Path:
    """Return the folder of the shipped studies: in a wheel beside the modules, in a checkout at its root."""
    package = Path(str(resources.files("lbmtune")))
    return next((f for f in (package / "studies", package.parent / "studies") if f.is_dir()), package)
