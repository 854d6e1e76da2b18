"""Puts tables, figures and plotly.js together into one page."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbmtune.catalogue.config import from_flat
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.records import Trial
from lbmtune.records.disturbance import description_disturbance, disturbance, doubt, unsteadiness
from lbmtune.records.in_cache import in_cache_of
from lbmtune.records.study import StudyRecord
from lbmtune.report import figures, info, step_figures, steps, tables
from lbmtune.units import format_bytes, format_mlups, format_rate

if TYPE_CHECKING:
    from jinja2 import Environment
    from plotly.graph_objects import Figure

    from lbmtune.codegen.program import Program

_PAGE = Path(__file__).with_name("page")
_IN_PART = frozenset(("scatter", "bar", "box"))
"""Kinds of traces that the shipped part of plotly.js draws, of those that pages have."""


@dataclass(frozen=True)
class Panel:
    """A figure in the page. caption: what to see in it; figure: as Plotly's JSON; wide: it has its own row.

    kinds: of its traces, as Plotly calls them.
    """

    name: str
    title: str
    caption: str
    figure: str
    kinds: frozenset[str]
    wide: bool = False


def page(study: StudyRecord, winner_source: str = "") -> str:
    """The HTML text."""
    drawn, header = panels(study), study.header
    return filled(
        "report.html",
        ("script.js", "trials.js", "start.js"),
        drawn,
        study=study,
        headline=info.headline(study),
        disturbance=disturbance(study),
        doubt="" if disturbance(study) else doubt(study),
        unsteadiness=unsteadiness(study),
        description_disturbance=description_disturbance(header.ceiling.cpu_share, header.calibration_cpu_share),
        subject=info.subject(study.header.spec.case, [from_flat(trial.config) for trial in study.trials]),
        cards=_cards(study),
        panels=drawn,
        outcomes=info.outcome_info(study),
        illegal=study.header.illegal_configurations,
        winner=_winner(study, winner_source) if study.ranked else None,
        finals=tables.finals_table(info.finals_info(study)),
        trials=_script_json(tables.trial_table(study)._asdict()),
        case=tables.case_table(study),
        environment=tables.environment_table(study.header.environment),
        protocol=tables.protocol_table(study.header),
        costs=study.costs,
        pace=study.verified_per_s,
    )


def filled(template: str, scripts: Sequence[str], drawn: Sequence[Panel], **values: Any) -> str:
    """A page of a template with its values, and the style, the scripts and plotly.js that make it whole.

    drawn: all its figures.
    """
    return (
        _templates()
        .get_template(template)
        .render(
            style=(_PAGE / "style.css").read_text(encoding="utf-8"),
            script="".join((_PAGE / name).read_text(encoding="utf-8") for name in scripts),
            plotly=library(drawn),
            **values,
        )
    )


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def panels(study: StudyRecord) -> list[Panel]:
    """The figures for which there is something to show."""
    found: list[Panel] = []
    if study.trials:
        found += [_outcomes(study)]
        found += [_costs(study)] if info.cost_info(study) else []
    if not study.ranked:
        return found
    shown = [_history(study)]
    axes = info.axes_info(study)
    if axes:
        caption = (
            "How much each choice matters: every point is a verified trial. Axes stand in the order of the share of "
            "the variance of speeds that lies between their values."
        )
        shown.append(panel("axes", "Speed by axis", caption, figures.axes_figure(axes)))
    parity = info.parity_info(study)
    if parity.points:
        title = "Predicted against measured"
        shown.append(panel("parity", title, info.error_told(parity), figures.parity_figure(parity)))
    finals = info.finals_info(study)
    if finals:
        caption = f"{len(finals)} finalists, measured again in turns; intervals that overlap are no difference."
        shown.append(panel("finals", "Finals", caption, figures.finals_figure(finals)))
    if any(trial.sustained for trial in study.ranked):
        shown.append(_sustained(study))
    return _in_rows([_roofline(study), *_steps(study)], [*shown, _distribution(study), *found])


def _in_rows(wide: Sequence[Panel], others: Sequence[Panel]) -> list[Panel]:
    """Wide ones first, then the others by two in a row; the last has one alone where their number is odd."""
    *pairs, last = others
    return [*(replace(p, wide=True) for p in wide), *pairs, replace(last, wide=len(others) % 2 == 1)]


def _steps(study: StudyRecord) -> list[Panel]:
    found = steps.steps_info(study)
    if found is None:
        return []
    caption = " ".join(
        [
            "The best of each number of steps. Dotted lines are bounds without halos: below the bytes that an update "
            "has to move, above the speed that the ceiling allows with these.",
            *steps.why(study),
        ]
    )
    return [panel("steps", "Several steps per launch", caption, step_figures.steps_figure(found))]


def _sustained(study: StudyRecord) -> Panel:
    best = study.ranked[0]
    caption = "Bursts are samples of a fraction of a second; sustained is a run of seconds without a pause. "
    caption += steps.power(best.sustained, best.best_measurement.mlups).replace("they are", "the winner keeps up", 1)
    return panel("sustained", "Burst and sustained", caption.strip(), step_figures.sustained_figure(study))


def panel(name: str, title: str, caption: str, figure: Figure) -> Panel:
    """A figure as the page takes it."""
    kinds = frozenset(str(trace.type) for trace in figure.data)
    return Panel(name, title, caption, _packed(str(figure.to_json())), kinds)


def _roofline(study: StudyRecord) -> Panel:
    found = info.roofline_info(study)
    when = f" ({study.header.ceiling.date[:10]})" if study.header.ceiling.date else ""
    caption = (
        f"Lines are bandwidths measured on this device{when}; the thick one, {found.ceiling.name}, is the ceiling: "
        f"{info.CEILING}. A trial on the line moves data as fast as the device can. "
        f"{info.roofs_told(study)} Kinds of kernels stand side by side to be seen apart. "
        f"{info.above_the_ceiling(study)} {in_cache_of(study)} {_of_chip(study)} {_of_fluid(study)}"
    )
    caption = " ".join(caption.split())
    return panel("roofline", "Roofline", caption, figures.roofline_figure(found))


def _of_chip(study: StudyRecord) -> str:
    """What shares of the ceiling say where the state stays on chip; empty where none does."""
    if not any(info.kind(trial.config).on_chip for trial in study.ranked):
        return ""
    return (
        "Kernels on chip move only what leaves their tiles, and that through the L2 cache: the lines are no bound of "
        "theirs, and shares of the ceiling do not say how near to their limit they are."
    )


def _of_fluid(study: StudyRecord) -> str:
    """What MLUPS in figures and tables are where some cells are solid; empty where none is."""
    return "Updates are counted of fluid cells alone: MLUPS are MFLUPS here." if study.header.spec.case.geometry else ""


def _history(study: StudyRecord) -> Panel:
    best = study.ranked[0]
    ceiling = study.header.ceiling.best_bytes_per_s / best.best_measurement.bytes_per_update / 1e6
    history = info.history_info(study)
    last = max(a.elapsed_s for a in history.attempts)
    caption = (
        f"{len(history.attempts)} trials in {last:,.0f} s of work: compiling, verifying, measuring and searching, "
        "summed over processes that may work side by side. Crosses on the axis have no speed."
    )
    return panel("history", "Search history", caption, figures.history_figure(history, ceiling))


def _distribution(study: StudyRecord) -> Panel:
    found = info.distribution_info(study)
    caption = "Share of the verified trials that are at most so fast: steep at the right means an easy search."
    return panel("distribution", "Distribution of speeds", caption, figures.distribution_figure(found))


def _costs(study: StudyRecord) -> Panel:
    found = info.cost_info(study)
    total = sum(c.seconds for c in found)
    caption = f"{total:,.1f} s in all, summed over processes that may work side by side."
    return panel("costs", "Time spent by stage", caption, figures.cost_figure(found))


def _outcomes(study: StudyRecord) -> Panel:
    found = info.outcome_info(study)
    caption = f"{len(study.ranked)} of {len(study.trials)} trials were verified and have a speed."
    return panel("outcomes", "Outcomes", caption, figures.outcome_figure(found))


def _cards(study: StudyRecord) -> list[tuple[str, str, str]]:
    """(title, figure, remark) of what to see first."""
    counted = f"{len(study.ranked)} of {len(study.trials)}"
    trials = ("trials verified", counted, f"{study.header.legal_configurations:,} legal configurations")
    if not study.ranked:
        return [trials]
    best = study.ranked[0]
    m, top = best.best_measurement, info.roofline_info(study).ceiling
    no_bound = "; no bound on chip" if info.kind(best.config).on_chip else ""
    ceiling = f"{format_rate(top.bytes_per_s)}, {top.name}{no_bound}"
    half = 50 * (m.ci_high_mlups - m.ci_low_mlups) / m.mlups
    cards = [
        (
            "speed",
            f"{format_mlups(m.mlups)} {study.header.spec.case.speed_unit}",
            f"+- {half:.2f} % (95 % interval of the median)",
        ),
        ("of the ceiling", f"{study.share_of_ceiling(best):.1%}", ceiling),
        ("bandwidth", format_rate(m.bandwidth_bytes_per_s), f"{tables.moved(m.bytes_per_update)} per update"),
    ]
    if best.sustained:
        energy = f", {best.sustained.nj_per_update:.3g} nJ per update" if best.sustained.nj_per_update else ""
        mark = "disturbed; " if best.sustained.disturbed else ""
        remark = f"{mark}over {best.sustained.seconds:.1f} s without a pause{energy}"
        cards.insert(
            1, ("sustained", f"{format_mlups(best.sustained.mlups)} {study.header.spec.case.speed_unit}", remark)
        )
    if best.prediction:
        remark = f"predicted {format_mlups(best.prediction.mlups)} {study.header.spec.case.speed_unit}"
        cards.append(("of prediction", f"{m.mlups / best.prediction.mlups:.1%}", remark))
        cards.append(("footprint", format_bytes(best.prediction.footprint_bytes), "all buffers"))
    if best.resources and best.resources.registers:
        r = best.resources
        cards.append(("registers", str(r.registers), f"per thread, {r.spill_bytes} B spilled"))
    return [*cards, trials]


def _winner(study: StudyRecord, source: str) -> dict[str, Any]:
    winner = study.ranked[0]
    program = render(study.header.spec.case, from_flat(winner.config))
    return {
        "trial": winner,
        "config": tables.config_text(winner.config),
        "axes": list(winner.config.items()),
        "measured": tables.winner_table(study, program),
        "verification": tables.verification_table(winner.verification),
        "sustained": tables.sustained_table(winner.sustained, study.header.spec.case.speed_unit),
        "accuracy": tables.accuracy_table(winner.accuracy),
        "kinds": tables.kinds_table(study),
        "precision": f"{winner.config['storage']} stored, {winner.config['compute']} computed",
        "conditions": tables.conditions_table(winner.best_measurement.conditions),
        "launches": tables.launch_table(program),
        "buffers": f"{len(program.buffers())} x {program.buffer_elements(study.header.spec.case.domain):,} elements of "
        f"{program.config.stored.dtype}, {tables.footprint_text(program)} in all",
        "options": " ".join(program.options),
        "source": source or program.source,
        "stale": _stale(winner, program),
    }


def _stale(winner: Trial, program: Program) -> str:
    """Why the text shown is not the one that was measured; empty where it is."""
    if not winner.source_digest or winner.source_digest == program.digest:
        return ""
    return (
        f"This version of lbmtune prints another kernel than the one that was measured (source digest "
        f"{program.digest[:12]} now, {winner.source_digest[:12]} then)."
    )


def _script_json(values: object) -> str:
    return _safe(json.dumps(values, separators=(",", ":")))


def _safe(text: str) -> str:
    """JSON that cannot end the script element that holds it."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def library(drawn: Sequence[Panel]) -> str:
    """What draws figures: plotly.js as the page unpacks it, or a part of it where that can draw them all."""
    return _packed_part() if all(one.kinds <= _IN_PART for one in drawn) else _packed_plotly()


@cache
def _packed_part() -> str:
    """The part of plotly.js for axes in the plane, which is a third of the whole, as base64: the page unpacks it."""
    return base64.b64encode((_PAGE / "plotly-cartesian.min.js.gz").read_bytes()).decode()


@cache
def _packed_plotly() -> str:
    """plotly.js, compressed to a third and as base64: the page unpacks it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise InputError("the report needs plotly, which is not installed; pip install plotly.") from error
    return _packed(get_plotlyjs())


def _packed(text: str) -> str:
    """Text as the page unpacks it: compressed, and as base64."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
