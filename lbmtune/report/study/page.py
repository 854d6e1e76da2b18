"""The page of a study: answer, ways to use it, why it is so, evidence, all trials, environment."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lbmtune.records.best_json.kernel import Kernel
from lbmtune.records.profile import Profile
from lbmtune.records.remarks import description_disturbance, unfinished
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import write_atomically
from lbmtune.report.html import Panel, filled, packed, script_json
from lbmtune.report.profile_tables import level_rows
from lbmtune.report.study.answer.beside import none_published
from lbmtune.report.study.answer.doubts import doubts
from lbmtune.report.study.answer.kinds import kind_rows
from lbmtune.report.study.answer.section import beside_rows, card_meanings, cards, gain_titles, next_step, winner_text
from lbmtune.report.study.answer.update_time import shown_parts
from lbmtune.report.study.answer.use import BEST, over_seconds, tabs, used
from lbmtune.report.study.answer.verdict import title, verdict
from lbmtune.report.study.answer.why import (
    limit_said,
    measuring,
    refuted,
    said,
    sustained_said,
    why_panels,
)
from lbmtune.report.study.answer.words import meaning
from lbmtune.report.study.coverage import covered, range_rows
from lbmtune.report.study.finals import finals_info, finals_panels, finals_table, sustained_panels
from lbmtune.report.study.on_parts import parts_panels, parts_rows, parts_text
from lbmtune.report.study.outcomes import history_panel, outcome_info, outcome_panels
from lbmtune.report.study.output import output_note, output_table
from lbmtune.report.study.pareto import costs_panels, pareto_panels, pareto_table
from lbmtune.report.study.roofline import roofline_panel
from lbmtune.report.study.speeds import distribution_panel, parity_panels
from lbmtune.report.study.steps import CellsRead
from lbmtune.report.study.steps_figure import steps_panels
from lbmtune.report.study.tables import case_table, protocol_table, trial_table
from lbmtune.report.study.twin import FORMAT, VERSION, twin
from lbmtune.report.study.winner import winner_section
from lbmtune.report.tables import environment_table, subject
from lbmtune.search.pareto import held_text, members


@dataclass(frozen=True)
class Beyond:
    """Things that a page shows beyond the records of a study; all of it may be left out.

    kernel: of the best trial as this version prints it; best: best.json, empty without it; cells_read: see
    `steps.CellsRead`; worth_varying: the largest term of the winner's time and the knobs that act on it; profile: of
    the winner; occupancy: blocks of the winner on a multiprocessor, their warps, and the most warps.
    """

    kernel: Kernel | None = None
    best: bytes = b""
    cells_read: CellsRead | None = None
    worth_varying: tuple[str, tuple[str, ...]] = ("", ())
    profile: Profile | None = None
    occupancy: tuple[int, int, int] | None = None


NOTHING = Beyond()


def write_report(study: StudyRecord, path: Path, beyond: Beyond = NOTHING) -> None:
    """Write the page as one HTML file that works offline. Raises InputError if the path cannot be written."""
    write_atomically(path, page(study, beyond).encode())


def page(study: StudyRecord, beyond: Beyond = NOTHING) -> str:
    """Return the HTML text."""
    shown, why, header = panels(study, beyond.cells_read), why_panels(study, beyond.profile), study.header
    term, knobs = beyond.worth_varying
    parts = () if refuted(study) else shown_parts(study)
    table, beside, one = trial_table(study), beside_rows(study), used(study)
    return filled(
        "report.html",
        ("script.js", "tabs.js", "detail.js", "trials.js", "explore.js", "begin.js"),
        [*why, *shown],
        figures=shown,
        study=study,
        title=title(study),
        meaning=meaning(study.ranked[0].kernel_config) if study.ranked else "",
        verdict=verdict(study, beyond.profile),
        beside=beside,
        gain_titles=gain_titles(study, beside),
        sustained=any(trial.sustained for trial in study.ranked),
        none_published=none_published(study),
        next=next_step(study, knobs, term, beyond.profile),
        used=one,
        tabs=tabs(one) if one else (),
        file=BEST,
        best_file=packed(beyond.best) if beyond.best else "",
        over_seconds=over_seconds(study),
        why=why,
        why_said=said(study, beyond.profile) if study.ranked else "",
        sustained_said=sustained_said(study) if study.ranked else "",
        limit_said=limit_said(study) if study.ranked else "",
        levels=level_rows(beyond.profile) if beyond.profile else [],
        measure=measuring(study, beyond.profile) if study.ranked else None,
        parts=parts,
        overlaps=any(one.alone_ps for one in parts),
        unfinished=unfinished(study),
        doubts=doubts(study),
        description_disturbance=description_disturbance(*header.cpu_shares),
        subject=subject(header.spec.case, [trial.kernel_config for trial in study.trials], header.spec.families),
        config=winner_text(study),
        cards=cards(study, beyond.cells_read, beyond.profile),
        terms=card_meanings(),
        outcomes=outcome_info(study),
        illegal=header.illegal_configurations,
        covered=covered(study),
        ranges=range_rows(study),
        winner=winner_section(study, beyond.kernel, beyond.occupancy) if study.ranked else None,
        pareto=pareto_table(study),
        kinds=kind_rows(study),
        held=held_text(study, members(study)) if study.ranked else "",
        finals=finals_table(finals_info(study)),
        on_parts=parts_rows(study),
        on_parts_text=parts_text(study),
        output=output_table(study),
        output_note=output_note(study),
        trials=packed(script_json(table._asdict())),
        knobs=table.knobs,
        twin_format=FORMAT,
        twin_version=VERSION,
        twin=script_json(twin(study, beyond.profile)),
        case=case_table(study),
        environment=environment_table(header.environment),
        protocol=protocol_table(header),
        costs=study.costs,
        pace=study.verified_per_s,
    )


def panels(study: StudyRecord, cells_read: CellsRead | None = None) -> list[Panel]:
    """Return the figures that have something to show, wide ones first."""
    if not study.ranked:
        return outcome_panels(study)
    roofline = [roofline_panel(study)] if study.header.spec.flop_per_update else []
    wide = [*pareto_panels(study), *roofline, *steps_panels(study, cells_read), *costs_panels(study)]
    others = [
        history_panel(study),
        *parity_panels(study),
        *finals_panels(study),
        *parts_panels(study),
        *sustained_panels(study),
        distribution_panel(study),
        *outcome_panels(study),
    ]
    return _in_rows(wide, others)


def _in_rows(wide: Sequence[Panel], others: Sequence[Panel]) -> list[Panel]:
    """Return the panels in rows of one, then of two; the last has its own row if their number is odd."""
    *pairs, last = others
    return [*(replace(p, wide=True) for p in wide), *pairs, replace(last, wide=len(others) % 2 == 1)]
