"""Finals on several devices: what each coupling took beside one device, and what won."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.limits import extents
from lbmtune.decomposition.coupling import bands
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.records.parts import PartsTrial, ranked_parts
from lbmtune.records.study import StudyRecord
from lbmtune.report.html import Panel, panel
from lbmtune.report.parts import Timed, efficiency_figure, timeline_figure
from lbmtune.units import format_mlups

_SHOWN = 8
"""Couplings that a figure has."""


def coupling_text(one: PartsTrial) -> str:
    """Return a coupling as text."""
    return str(one.coupling) or "default"


def parts_text(study: StudyRecord) -> str:
    """Return what won on several devices; empty without such finals, or the reason if none was right."""
    asked, found = study.header.parts, study.winner_on_parts
    if asked is None or not study.on_parts:
        return ""
    if found is None:
        reasons = dict.fromkeys(one.reason for one in study.on_parts)
        return f"no kernel was proved on {len(asked.devices)} parts: {next(iter(reasons))}"
    best, share = found[0], found[0].efficiency
    predicted = f", predicted {1e6 * best.predicted_s:,.1f} us" if best.predicted_s is not None else ""
    return (
        f"{format_mlups(best.mlups or 0.0)} MLUPS on {len(asked.devices)} parts, {share.median:.1%} "
        f"({share.low:.1%} to {share.high:.1%}) of {len(set(asked.devices))} x one device; {best.key}, cut={best.cut}, "
        f"{coupling_text(best)}, {1e6 * median(best.period_s):,.1f} us from one exchange to the next{predicted}"
    )


def parts_rows(study: StudyRecord) -> list[dict[str, str]]:
    """Return a row of text for each kernel, cut and coupling, the fastest first, then those that were refused."""
    timed = ranked_parts(study.on_parts)
    return [_row(one) for one in (*timed, *(one for one in study.on_parts if one not in timed))]


def _row(one: PartsTrial) -> dict[str, str]:
    named = {"kernel": one.key, "cut": one.cut, "coupling": coupling_text(one)}
    if one.mlups is None or one.compared is None:
        blank = dict.fromkeys(("MLUPS", "efficiency", "period us", "launches us", "exchange us", "predicted us"), "-")
        return {**named, **blank, "beside one device": f"{one.outcome}: {one.reason}"}
    share = one.efficiency
    return {
        **named,
        "MLUPS": format_mlups(one.mlups),
        "efficiency": f"{share.median:.1%} ({share.low:.1%} to {share.high:.1%})",
        "period us": f"{1e6 * median(one.period_s):,.1f}",
        "launches us": f"{1e6 * one.launches_s:,.1f}",
        "exchange us": f"{1e6 * one.exchange_s:,.1f}",
        "predicted us": "-" if one.predicted_s is None else f"{1e6 * one.predicted_s:,.1f}",
        "beside one device": _beside(one),
    }


def _beside(one: PartsTrial) -> str:
    assert one.compared is not None
    on = f"on {extents(one.compared.domain)} after {one.compared.steps} steps"
    if not one.compared.worst:
        return f"equal bit for bit {on}"
    return f"{one.compared.worst:.2g} apart by rounding {on}"


def timed_of(study: StudyRecord, one: PartsTrial) -> Timed:
    """Return the times of a trial with the share of the planes that edges have."""
    case = replace(study.header.spec.case, domain=one.domain)
    found = decomposed(case, from_flat(one.config), parse_cut(one.cut, len(one.devices)), one.halo_layers)
    part = found.parts[0]
    edges = sum(map(len, bands(found, part, one.coupling).edges))
    return Timed(
        overlap=one.coupling.overlap,
        edges=edges / part.box.extents[2],
        launches_s=one.launches_s,
        exchange_s=one.exchange_s,
        period_s=median(one.period_s),
    )


def parts_panels(study: StudyRecord) -> list[Panel]:
    """Return the timeline of a period and the efficiencies of the fastest kernel on its cut."""
    ranked = ranked_parts(study.on_parts)
    if not ranked:
        return []
    mine = [one for one in ranked if (one.key, one.cut) == (ranked[0].key, ranked[0].cut)][:_SHOWN]
    named = {coupling_text(one): one for one in mine}
    what = f"{ranked[0].key}, cut={ranked[0].cut}, {len(ranked[0].devices)} parts"
    timeline = (
        f"{what}. Launches and exchange were timed each without the other; edges have the share of their planes. "
        "Begins follow from the order of the queues."
    )
    return [
        panel(
            "parts-timeline",
            "One period on several devices",
            timeline,
            timeline_figure({name: timed_of(study, one) for name, one in named.items()}),
        ),
        panel(
            "parts-efficiency",
            "Efficiency against one device",
            f"{what}. Medians and 95 % intervals of pairs of samples.",
            efficiency_figure({name: one.efficiency for name, one in named.items()}),
        ),
    ]
