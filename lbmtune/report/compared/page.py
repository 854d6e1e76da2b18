"""The page of several studies beside the first one: answer, matrix of kernels, figures, differences."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lbmtune.records.comparison.repeats import NOT_MEASURED, percent
from lbmtune.records.regression.facts import facts
from lbmtune.records.regression.kernels import shared
from lbmtune.records.regression.ratios import Verdict
from lbmtune.records.regression.studies import Comparison, compared
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import write_atomically
from lbmtune.report.compared.figures import panels
from lbmtune.report.compared.tables import (
    answer_rows,
    environment_rows,
    matrix_rows,
    names_of,
    portable_text,
    search_rows,
)
from lbmtune.report.html import filled, script_json
from lbmtune.units import format_mlups


def write_comparison(studies: Sequence[StudyRecord], folders: Sequence[str], path: Path, version: str) -> None:
    """Write the page as one HTML file that works offline. Raises InputError if the path cannot be written."""
    write_atomically(path, page(studies, folders, version).encode())


def page(studies: Sequence[StudyRecord], folders: Sequence[str], version: str) -> str:
    """Return the HTML text. studies: two or more with verified kernels; version: of the one that writes it."""
    names, (first, *others) = names_of(folders), studies
    comparisons = [compared(first, other, len(others)) for other in others]
    drawn, kernels = panels(names, studies, comparisons), shared(studies)
    return filled(
        "compared.html",
        ("script.js", "start.js"),
        [*drawn[:-1], replace(drawn[-1], wide=len(drawn) % 2 == 1)],
        names=names,
        headline=headline(names, studies, comparisons),
        noise=[noise(name, one) for name, one in zip(names[1:], comparisons, strict=True)],
        answer=answer_rows(studies, comparisons),
        matrix=list(matrix_rows(kernels)),
        kernels=len(kernels),
        portable=portable_text(kernels, names),
        search=search_rows(studies),
        environment=environment_rows(studies),
        facts=script_json(facts(folders, comparisons)),
        version=version,
    )


def headline(names: Sequence[str], studies: Sequence[StudyRecord], comparisons: Sequence[Comparison]) -> str:
    """Return the winners in a sentence, each against the first study."""
    first = f"{names[0]} has {format_mlups(studies[0].ranked[0].best_measurement.mlups)} MLUPS"
    said = [
        f"{name} {format_mlups(found.winners.mlups)} ({_change(found)})"
        for name, found in zip(names[1:], comparisons, strict=True)
        if found.winners
    ]
    return ", ".join([first, *said])


def _change(found: Comparison) -> str:
    assert found.winners
    if found.winners.verdict is Verdict.SAME:
        return "the same within the noise"
    factor = found.winners.ratio.ratio
    return f"{factor:.2f} times" if not 0.9 < factor < 1.1 else f"{100 * (factor - 1):+.1f} %"


def noise(name: str, found: Comparison) -> str:
    """Return the spread between runs by which a study is compared, with its source."""
    if found.between is None:
        return f"{name}: {NOT_MEASURED}, so that there is no verdict."
    source = "the scatter of shared kernels, as neither study measured it" if found.scattered else "90 % of repeats"
    return f"{name}: speeds of two runs lie up to {percent(found.between)} apart ({source})."
