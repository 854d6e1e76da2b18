"""Print whether the speed of a best.json holds."""

from typing import Any

from msgspec import to_builtins

from lbmtune.cli.format import output
from lbmtune.records.best_json.document import Best
from lbmtune.records.comparison.repeats import NOT_MEASURED, percent
from lbmtune.records.regression.ratios import Verdict
from lbmtune.records.regression.remeasured import Remeasured
from lbmtune.units import format_mlups


def print_remeasured(best: Best, found: Remeasured) -> None:
    """Print the recorded speed, that here, the default configuration beside it, and what may have changed it."""
    unit = best.case.speed_unit
    between = best.expected.between_runs
    noise = NOT_MEASURED if between is None else f"+-{percent(between)} between runs"
    output.print_pairs(
        [
            ("kernel", f"{best.key}  {output.short(best.configuration)}"),
            (
                "recorded",
                f"{format_mlups(found.was_mlups)} {unit}, {noise}, {best.environment.device}, {best.date[:10]}",
            ),
            ("here", f"{format_mlups(found.kernel.mlups)} {unit}, {found.ratio}: {verdict_text(found.verdict)}"),
            *([("default", default_text(found, unit))] if found.default else []),
            *(("cause", one) for one in found.causes),
        ]
    )


def verdict_text(verdict: Verdict) -> str:
    """Return a verdict in words."""
    words = {Verdict.SAME: "holds within the noise", Verdict.UNKNOWN: "no verdict without the spread between runs"}
    return words.get(verdict, f"{verdict} than recorded")


def default_text(found: Remeasured, unit: str) -> str:
    """Return the speed of the default configuration, the gain over it, and whether it has changed as well."""
    assert found.default
    assert found.gain
    low, middle, high = found.gain
    gain = f"the kernel is {middle:.3f} ({low:.3f} to {high:.3f}) times as fast, in turns"
    was = found.was_default_mlups
    changed = f"; recorded {format_mlups(was)} {unit}" if was else ""
    return f"{format_mlups(found.default.mlups)} {unit}{changed}; {gain}"


def facts(best: Best, found: Remeasured) -> dict[str, Any]:
    """Return a verdict as it is printed as JSON."""
    told = to_builtins(found)
    gain = found.gain and found.gain._asdict()
    return {"key": best.key, "verdict": found.verdict, "gain": gain, **told}
