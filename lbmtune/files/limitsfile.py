"""The table [limits] of a study file: what a kernel may take at most."""

import logging
from dataclasses import dataclass
from math import inf
from typing import Any

from lbmtune.errors import InputError
from lbmtune.files.ranges import FOOTPRINT_BYTES, POWER_W, check
from lbmtune.files.source import Source
from lbmtune.records.spec import StudySpec
from lbmtune.units import parse_bytes

LOG = logging.getLogger("lbmtune")
_FORMER = "accuracy.max_error"
"""The key of version 0.2 for limits.error."""


@dataclass(frozen=True, kw_only=True)
class LimitsFile:
    """The table [limits]. None: any.

    footprint: of all buffers, such as '20GiB'; error: relative, of the velocity of a vortex after many steps; power:
    watts, mean of a run of seconds without a pause.
    """

    footprint: str | int | None = None
    error: float | None = None
    power: float | None = None


@dataclass(frozen=True, kw_only=True)
class AccuracyFile:
    """The table [accuracy] of early files: max_error, which is the error of [limits] now."""

    max_error: float | None = None


def limits(file: LimitsFile, early: AccuracyFile, source: Source) -> dict[str, Any]:
    """Return the limits as fields of a `StudySpec`. An override by either name goes before what a file says."""
    former = early.max_error is not None and (file.error is None or _FORMER in source.overridden)
    if early.max_error is not None:
        LOG.warning("%s is called limits.error now", _FORMER)
    error, key = (early.max_error, _FORMER) if former else (file.error, "limits.error")
    if error is not None and not 0 < error < inf:
        source.fail(key, f"{error} must be positive and finite; leave it out for no bound.")
    if file.power is not None:
        check(file.power, POWER_W, "limits.power", source, "give watts, or leave it out for no limit.")
    return {
        "max_footprint_bytes": None if file.footprint is None else _bytes(file.footprint, source),
        "max_error": error,
        "max_power_w": file.power,
    }


def tree_of(spec: StudySpec) -> dict[str, Any]:
    """Return the table that says the same."""
    found = {"footprint": spec.max_footprint_bytes, "error": spec.max_error, "power": spec.max_power_w}
    return {name: value for name, value in found.items() if value is not None}


def _bytes(given: str | int, source: Source) -> int:
    try:
        size = parse_bytes(given) if isinstance(given, str) else given
    except InputError as error:
        source.fail("limits.footprint", str(error))
    check(size, FOOTPRINT_BYTES, "limits.footprint", source, "give a size such as 20GiB, or leave it out for no limit.")
    return size
