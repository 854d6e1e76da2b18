"""Files that lbmtune brings along: studies, and published documents."""

from importlib import resources
from pathlib import Path

from lbmtune.errors import InputError, given_path, suggestion


def find_study(reference: str) -> Path:
    """Return the path of a study file, or of a shipped study by its name. Raises InputError."""
    if not reference.strip():
        known = ", ".join(shipped_studies())
        raise InputError(f"{reference!r} names no study; give a study file, or one of the shipped studies {known}.")
    path = given_path(reference)
    if path.suffix == ".toml" or path.is_file() or len(path.parts) > 1:  # a folder of its name hides no study
        if path.is_file():
            return path
        raise InputError(f"there is no study file {path}; shipped studies are {', '.join(shipped_studies())}.")
    shipped = shipped_studies()
    if reference in shipped:
        return shipped[reference]
    others = f"shipped studies are {', '.join(shipped)}."
    raise InputError(f"unknown study {reference!r}; {suggestion(reference, shipped, others)}")


def shipped_studies() -> dict[str, Path]:
    """Return the files of the shipped studies by name."""
    return {path.stem: path for path in sorted(_folder().glob("*.toml"))}


def published() -> dict[str, Path]:
    """Return the files of the shipped documents by name."""
    return {path.stem: path for path in sorted((_folder() / "published").glob("*.toml"))}


def _folder() -> Path:
    """Return the folder of the shipped studies: in a wheel beside the modules, in a checkout at its root."""
    package = Path(str(resources.files("lbmtune")))
    return next((f for f in (package / "studies", package.parent / "studies") if f.is_dir()), package)
