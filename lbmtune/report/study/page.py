"""The page of a study: headline, cards, figures, winner, finals and all trials."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lbmtune.catalogue.config import from_flat
from lbmtune.records.kernel_format import Kernel
from lbmtune.records.remarks import (
    description_disturbance,
    disturbance,
    doubt,
    left_alone,
    prediction_doubt,
    unfinished,
    unsteadiness,
)
from lbmtune.records.store import write_atomically
from lbmtune.records.study import StudyRecord
from lbmtune.report.html import Panel, filled, script_json
from lbmtune.report.study.coverage import covered, range_rows
from lbmtune.report.study.finals import finals_info, finals_panels, finals_table, sustained_panels
from lbmtune.report.study.on_parts import parts_panels, parts_rows, parts_text
from lbmtune.report.study.outcomes import history_panel, outcome_info, outcome_panels
from lbmtune.report.study.output import output_note, output_table, output_text, with_output_mlups
from lbmtune.report.study.pareto import pareto_panels, pareto_table
from lbmtune.report.study.roofline import roofline_info, roofline_panel
from lbmtune.report.study.speeds import distribution_panel, knobs_panels, parity_panels
from lbmtune.report.study.steps import CellsRead
from lbmtune.report.study.steps_figure import steps_panels
from lbmtune.report.study.tables import case_table, moved, protocol_table, trial_table
from lbmtune.report.study.trials import headline
from lbmtune.report.study.winner import winner_section
from lbmtune.report.tables import environment_table, subject
from lbmtune.search.kinds import kind_of
from lbmtune.search.pareto import held_text, members
from lbmtune.units import format_bytes, format_mlups, format_rate


def write_report(
    study: StudyRecord, path: Path, kernel: Kernel | None = None, cells_read: CellsRead | None = None
) -> None:
    """Write the page as one HTML file that works offline. Raises InputError if the path cannot be written."""
    write_atomically(path, page(study, kernel, cells_read).encode())


def page(study: StudyRecord, kernel: Kernel | None = None, cells_read: CellsRead | None = None) -> str:
    """Return the HTML text.

    kernel: of the best trial as this version prints it; cells_read: see `steps.CellsRead`. Without them the page has no
    source and no halos.
    """
    shown, header = panels(study, cells_read), study.header
    return filled(
        "report.html",
        ("script.js", "trials.js", "start.js"),
        shown,
        study=study,
        headline=headline(study),
        unfinished=unfinished(study),
        disturbance=disturbance(study),
        doubt="" if disturbance(study) else doubt(study),
        unsteadiness=unsteadiness(study),
        description_disturbance=description_disturbance(*header.cpu_shares),
        subject=subject(header.spec.case, [from_flat(trial.config) for trial in study.trials]),
        cards=cards(study),
        outcomes=outcome_info(study),
        illegal=header.illegal_configurations,
        covered=covered(study),
        ranges=range_rows(study),
        winner=winner_section(study, kernel) if study.ranked else None,
        pareto=pareto_table(study),
        held=held_text(study, members(study)) if study.ranked else "",
        finals=finals_table(finals_info(study)),
        on_parts=parts_rows(study),
        on_parts_text=parts_text(study),
        output=output_table(study),
        output_note=output_note(study),
        trials=script_json(trial_table(study)._asdict()),
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
    wide = [*pareto_panels(study), *roofline, *steps_panels(study, cells_read)]
    others = [
        history_panel(study),
        *knobs_panels(study),
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


def cards(study: StudyRecord) -> list[tuple[str, str, str]]:
    """Return title, figure and remark of each card at the top."""
    counted = f"{len(study.ranked)} of {len(study.trials)}"
    trials = ("trials verified", counted, f"{study.header.legal_configurations:,} legal configurations")
    if not study.ranked:
        return [trials]
    best, unit = study.ranked[0], study.header.spec.case.speed_unit
    m, ceiling = best.best_measurement, roofline_info(study).ceiling
    no_bound = "; no bound on chip" if kind_of(from_flat(best.config)).on_chip else ""
    found = [("speed", f"{format_mlups(m.mlups)} {unit}", str(study.interval(best)))]
    if run := best.sustained:
        energy = f", {run.nj_per_update:.3g} nJ per update" if run.nj_per_update else ""
        remark = f"{'disturbed; ' if run.disturbed else ''}over {run.seconds:.1f} s without a pause{energy}"
        found.append(("sustained", f"{format_mlups(run.mlups)} {unit}", remark))
    if text := output_text(best):
        found.append(("with output", f"{format_mlups(with_output_mlups(best))} {unit}", text))
    if several := study.winner_on_parts:
        of_one = f"{several[0].efficiency.median:.1%} of as many times one device"
        remark = f"{of_one}; cut={several[0].cut}, {several[0].key}"
        found.append((f"{len(several[0].devices)} parts", f"{format_mlups(several[0].mlups or 0.0)} {unit}", remark))
    bound = f"{ceiling.name}{no_bound}"
    if left_alone(study.header.ceiling.cpu_share):
        share, rate = f"{study.share_of_ceiling(best):.1%}", format_rate(ceiling.bytes_per_s)
        found.append(("of the ceiling", share, f"{rate}, {bound}"))
    else:
        found.append(("ceiling", format_rate(ceiling.bytes_per_s), f"not reliable; {bound}"))
    found += [
        ("bandwidth", format_rate(m.bandwidth_bytes_per_s), f"{moved(m.bytes_per_update)} per update"),
    ]
    if p := best.prediction:
        predicted = f"{format_mlups(p.mlups)} {unit}"
        if doubtful := prediction_doubt(*study.header.cpu_shares):
            found.append(("predicted", predicted, doubtful))
        else:
            found.append(("of prediction", f"{m.mlups / p.mlups:.1%}", f"predicted {predicted}"))
        found.append(("footprint", format_bytes(p.footprint_bytes), "all buffers"))
    if (r := best.resources) and r.registers:
        found.append(("registers", str(r.registers), f"per thread, {r.spill_bytes} B spilled"))
    return [*found, trials]
