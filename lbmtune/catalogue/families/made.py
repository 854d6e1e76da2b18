"""A range of values, and how it is made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lbmtune.catalogue.knobs import Scalar
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case


@dataclass(frozen=True)
class Range:
    """The values of a knob that a study searches, and why there are no others. No values: the family does not serve."""

    values: tuple[Scalar, ...]
    reason: str


@dataclass(frozen=True)
class Made:
    """Makes the range of a knob from the case, a configuration and the limits of the device.

    after: the knobs that it depends on, which the configuration has; the others have their defaults there.
    """

    make: Callable[[Case, Any, Limits], Range]
    after: tuple[str, ...] = ()
