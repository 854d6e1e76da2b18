"""Folders of studies: where a new one goes, and where a finished one is."""

from collections.abc import Iterator
from pathlib import Path

from lbmtune.api.machines.devices import folder_name
from lbmtune.errors import InputError, given_path
from lbmtune.records.portfolio_store import holds_portfolio
from lbmtune.records.store import holds_study, read_study
from lbmtune.records.whole_files import HEADER, check_writable

RESULTS = Path("lbmtune-studies")
"""The folder of all studies, unless another one is named."""


def new_folder(name: str, device: str, *, resume: bool = False, holds: str = HEADER) -> Path:
    """Return the first free folder for a study on a device; to resume, the last one that is not free.

    holds: the file that one which is not free has.
    """
    base = RESULTS / f"{name}-{folder_name(device)}"
    last, number = base, 1
    while True:
        candidate = base if number == 1 else base.with_name(f"{base.name}-{number}")
        if not (candidate / holds).exists():
            return last if resume else candidate
        last, number = candidate, number + 1


def check_folder(folder: Path, backend: str, *, resume: bool) -> None:
    """Check that a folder can take the records. Raises InputError."""
    exists = holds_study(folder)
    check_begun(folder, "a study", exists=exists, resume=resume)
    if exists and (kept := read_study(folder).header.backend) != backend:
        raise InputError(f"{folder} was begun on {kept} and this is {backend}; resume it there or start a new study.")
    check_writable(folder)


def check_begun(folder: Path, what: str, *, exists: bool, resume: bool) -> None:
    """Raise InputError if a folder holds records already, or none to resume. what: 'a study'."""
    if exists and not resume:
        raise InputError(f"{folder} already holds {what}; add --resume to go on there, or choose another --output.")
    if resume and not exists:
        what = what.removeprefix("a ")
        raise InputError(f"{folder} holds no {what} to resume; give the folder with --output, or leave --resume out.")


def study_folder(reference: str, studies: Path = RESULTS) -> Path:
    """Return the folder of a study, given as a path or as its name under `studies`. Raises InputError."""
    for folder in (given_path(reference), studies / reference):
        if holds_study(folder):
            return folder
    if (path := given_path(reference)).is_file():
        if holds_study(path.parent):
            raise InputError(f"{reference} is a file of a study; give its folder, {path.parent}.")
        raise InputError(f"{reference} is a file and no study; give the folder that lbmtune study wrote.")
    known = ", ".join(path.name for path in study_folders(studies)) or "none"
    raise InputError(f"no study at {reference}; give the folder that lbmtune study wrote (under {studies}: {known}).")


def portfolio_folder(reference: str, studies: Path = RESULTS) -> Path | None:
    """Return the folder of a portfolio, given as a path or as its name under `studies`; None if it holds none."""
    return next((folder for folder in (given_path(reference), studies / reference) if holds_portfolio(folder)), None)


def study_folders(studies: Path) -> Iterator[Path]:
    """Return the study folders under `studies`, itself included."""
    yield from (header.parent for header in sorted([*studies.glob(HEADER), *studies.glob(f"*/{HEADER}")]))


def study_of_domain(folder: Path, domain: tuple[int, int, int]) -> Path:
    """Return the folder of the study of a domain in that of a portfolio."""
    return folder / "x".join(map(str, domain))
