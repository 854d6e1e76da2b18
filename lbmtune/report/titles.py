"""Titles of pages: what was solved, in which precision, with how many steps per launch."""

from __future__ import annotations

from collections.abc import Sequence

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.search.kinds import kind_of

_ABBREVIATION = 3
"""Letters up to which the name of a collision operator is an abbreviation."""


def case_title(case: Case) -> str:
    """Name lattice and collision operator as in text, such as "D3Q19 BGK"."""
    operator = case.collision.upper() if len(case.collision) <= _ABBREVIATION else case.collision
    return f"{case.lattice.upper()} {operator}"


def fluid_share(case: Case, fluid: int) -> str:
    """Return fluid cells with their share of all cells."""
    return f"{fluid:,} of {case.sites:,} ({100 * fluid / case.sites:.1f} %)"


def subject(case: Case, configs: Sequence[KernelConfig]) -> str:
    """Name case, domain, precisions and steps per launch of these kernels."""
    about = [f"{case_title(case)} {case.flow}", f"{' x '.join(map(str, case.domain))} cells"]
    if configs:
        precisions = sorted({f"{one.storage}/{one.compute}" for one in configs})
        about += [f"{' and '.join(precisions)} (stored/computed)", _steps(configs)]
    return ", ".join(about)


def _steps(configs: Sequence[KernelConfig]) -> str:
    """Name the steps per launch; "many" for kernels that take their number as an argument."""
    counted = [one.fused_steps for one in configs if not kind_of(one).on_chip]
    few = " to ".join(map(str, sorted({min(counted), max(counted)}))) if counted else ""
    many = "many" if len(counted) < len(configs) else ""
    number = " or ".join(filter(None, (few, many)))
    return "one step per launch" if number == "1" else f"{number} steps per launch"
