"""The skeletons of kernels, read from the installed package or from the repository."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


@cache
def skeleton(name: str) -> str:
    """Return the text of kernels/<name>, for example 'cpu/direct/row.py.in'."""
    return (kernels_folder() / name).read_text(encoding="utf-8")


def kernels_folder() -> Path:
    """Return the folder of the skeletons."""
    installed = _PACKAGE / "kernels"
    return installed if installed.is_dir() else _PACKAGE.parent / "kernels"
