"""Kernels of one's own on the command line: their file has to be named before anything of them is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lbmtune.api.machines.devices import bounds, chosen
from lbmtune.backend.registry import backend_of
from lbmtune.errors import InputError
from lbmtune.files.kernelstudy import kernel_study
from lbmtune.files.lbmpykernel import NAME, lbmpy_study
from lbmtune.records.spec import StudySpec


def own_study(kernel: Path, others: Mapping[str, object], overrides: list[str], device: str | None) -> StudySpec:
    """Return the study of a user's kernel, or of those of lbmpy for a device.

    others: options that do not go with it, by name. Raises InputError.
    """
    for name, value in others.items():
        if value is not None:
            raise InputError(f"--kernel {kernel} does not go with {name} {value}; leave one of them out.")
    if str(kernel) != NAME:
        return kernel_study(kernel, overrides)
    where = chosen(device)
    return lbmpy_study(overrides, backend_of(where), bounds(where).limits.vector_bits)


def of_catalogue(spec: StudySpec, folder: Path) -> StudySpec:
    """Return the study of a folder, unless it is that of a user's kernel. Raises InputError."""
    if spec.kernel:
        raise InputError(
            f"{folder} holds the study of a kernel of your own; name its file again: lbmtune study --kernel FILE."
        )
    return spec
