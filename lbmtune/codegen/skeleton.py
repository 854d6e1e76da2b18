"""Reading the kernel skeletons: from the package when installed, from the repository otherwise."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


@cache
def skeleton(name: str) -> str:
    """The text of kernels/<name>, for example 'cuda/one_step.cu'."""
    return (kernels_folder() / name).read_text(encoding="utf-8")


def kernels_folder() -> Path:
    """The folder of the skeletons."""
    installed = _PACKAGE / "kernels"
    return installed if installed.is_dir() else _PACKAGE.parent / "kernels"
