"""Files and folders that options name: they are checked before anything is computed or measured."""

import logging
from pathlib import Path

from lbmtune.errors import InputError
from lbmtune.records.whole_files import check_no_record, check_writable

LOG = logging.getLogger("lbmtune")
_PAGE = ".html"
_INSTEAD = "choose another file for --output"
_FILES = (_PAGE, ".json")


def folder_of_studies(text: str) -> Path:
    """Return the folder of --studies. Raises InputError for a file."""
    folder = Path(text)
    if folder.suffix in _FILES or folder.is_file():
        raise InputError(f"--studies {text} is no folder; name the one that holds the study folders.")
    return folder


def check_file(path: Path) -> None:
    """Refuse a file of --output that cannot be written, and say which folder it makes. Raises InputError."""
    if path.is_dir():
        raise InputError(f"cannot write {path}: Is a directory; {_INSTEAD}.")
    check_no_record(path, _INSTEAD)
    if path.is_file() or not path.exists():  # a folder of devices need not be writable
        check_folder(path.parent, path, _INSTEAD)


def check_page(path: Path) -> None:
    """Do as `check_file` for a page. Raises InputError."""
    if path.suffix != _PAGE:
        raise InputError(f"--output {path} is not a page; name a file that ends in {_PAGE}.")
    check_file(path)


def check_folder(folder: Path, path: Path | None = None, instead: str = "choose another folder") -> None:
    """Do as `check_writable`, and say so if the folder is a new one. Raises InputError."""
    check_writable(folder, path, instead)
    if not folder.exists():
        LOG.info("%s is a new folder", folder)
