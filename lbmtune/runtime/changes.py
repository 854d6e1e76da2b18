"""Changes of a case that need no other kernel: the values that launches take as arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import index
from typing import Any

from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError


def changed(case: Case, recorded: Case, changes: Mapping[str, Any]) -> Case:
    """Return the case with other argument values. recorded: the case that the kernel was made for.

    Raises InputError for a wrong value, or one that the kernel has no argument for.
    """
    values = {name: _READ[name](name, value) for name, value in changes.items()}
    if any(values.get("force", ())) and not recorded.forced:
        raise InputError(
            f"force={values['force']} is not supported for this kernel (use (0, 0, 0), or a study of a forced case): "
            "it was made without a body force."
        )
    if any(values.get("wall_velocity", ())) and "moving" not in recorded.faces:
        raise InputError(
            f"wall_velocity={values['wall_velocity']} is not supported for this kernel (use (0, 0, 0), or a study of "
            "such a case): no wall of this kernel moves."
        )
    result = replace(case, **values)
    if "domain" in changes and (result.patches or result.geometry):
        from lbmtune.catalogue.problem.patch_checks import check_cells  # here: arrays may take long to make

        check_cells(result)
    return result


def _three(name: str, value: Any, kind: Callable[[Any], Any], what: str, use: str) -> tuple[Any, Any, Any]:
    try:
        x, y, z = map(kind, value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r} is not three {what} (use {use}).") from None
    return x, y, z


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r} is not a number.") from None


_vector = partial(_three, kind=float, what="numbers", use="(x, y, z)")
_READ: Mapping[str, Callable[[str, Any], Any]] = {
    "domain": partial(_three, kind=index, what="whole numbers", use="(nx, ny, nz)"),
    "relaxation_rate": _number,
    "force": _vector,
    "wall_velocity": _vector,
}
