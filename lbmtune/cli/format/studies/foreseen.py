"""Print what a study would do."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from lbmtune.cli.format import output

if TYPE_CHECKING:
    from lbmtune.api.studies.foresight import Foreseen

_MARGIN = "estimates from before anything is measured"


def print_foreseen(found: Foreseen, case: str) -> None:
    """Print space, budget and place of a study, and a table of its parts with their seconds. case: in words."""
    spec = found.spec
    families = ", ".join(f"{count:,} {name}" for name, count in found.families.items())
    limits = "" if found.limits_known else ", by the limits that all such devices share"
    unproved = "" if spec.max_error is None else "; their errors are measured first"
    done = [("trials done", f"{found.done:,}")] if found.done else []
    output.print_pairs(
        [
            ("study", spec.name),
            ("case", case),
            ("device", f"{found.device}{limits}"),
            ("configurations", f"{found.legal:,} legal, {found.illegal:,} points are not{unproved}"),
            ("families", families),
            ("objective", ", ".join(spec.objectives)),
            ("strategy", spec.strategy),
            ("ends", _ends(found)),
            *done,
            ("folder", found.folder),
        ]
    )
    rows = ((name, "no limit" if seconds == inf else f"{seconds:,.0f} s") for name, seconds in found.times_s.items())
    output.stdout().print("", output.table(f"time, {_MARGIN}", ("part", "about>"), rows))


def _ends(found: Foreseen) -> str:
    """Return what ends the study, whichever comes first."""
    budget = found.spec.budget
    limits = (
        (budget.seconds, f"after {budget.seconds:g} s in all"),
        (budget.search_seconds, f"{budget.search_seconds:g} s of trials"),
        (budget.trials, f"{budget.trials:,} trials"),
        (budget.target, "at the target"),
    )
    told = [text for limit, text in limits if limit]
    return ", ".join([*told, "or when all are tried"]) if told else "when all are tried"
