"""A profile as tables and as one HTML page: what each rung of the ladder takes, beside what the model says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lbmtune.catalogue.config import from_flat
from lbmtune.records import Term
from lbmtune.records.disturbance import profile_disturbance
from lbmtune.records.profile import (
    COLLISION,
    COPY,
    DATASHEET,
    KERNEL,
    READS,
    STREAMING,
    STREAMS,
    WRITES,
    Profile,
    Rung,
)
from lbmtune.records.store import write_atomically
from lbmtune.records.terms import MEMORY
from lbmtune.report.build import filled, panel
from lbmtune.report.drawing import plain_figure
from lbmtune.report.info import subject
from lbmtune.report.tables import Pairs, conditions_table, environment_table
from lbmtune.units import format_mlups

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MEANING = {
    DATASHEET: "bytes of an update at bus width times clock",
    COPY: "at the bandwidth of a copy of one array",
    STREAMS: "at that of as many streams, with the kernel's accesses and runs",
    STREAMING: "the kernel without collision",
    KERNEL: "the kernel",
    READS: "the kernel that only reads",
    WRITES: "the kernel that only writes",
    COLLISION: "the kernel that neither reads nor writes memory",
}
_MEASURED, _MODEL, _OPEN = "#0072b2", "#e69f00", "#cc79a7"
UNEXPLAINED = "not explained"
_ALLOWS = {DATASHEET: "the data sheet", COPY: "a copy of one array"}
"""What a ladder begins with."""


class Row(NamedTuple):
    """A rung as texts."""

    name: str
    meaning: str
    ps: str = ""
    mlups: str = ""
    lost: str = ""
    model_ps: str = ""
    model_mlups: str = ""
    model_lost: str = ""
    difference: str = ""


COLUMNS = (
    "rung",
    "what",
    "ps per update>",
    "MLUPS>",
    "lost>",
    "model: ps>",
    "MLUPS>",
    "lost>",
    "difference>",
)
"""Of the ladder; what is lost is a share of the first rung's speed."""


def ladder_rows(profile: Profile) -> list[Row]:
    """The rungs from the top, with what is lost from one to the next, and what no term explains."""
    losses = {loss.name: loss for loss in profile.losses}
    rows = []
    for rung in profile.rungs:
        loss = losses.get(rung.name)
        known = loss is not None and loss.model is not None
        rows.append(
            Row(
                rung.name,
                MEANING[rung.name],
                _ps(rung.seconds),
                format_mlups(rung.mlups),
                _share(loss.measured) if loss else "",
                _ps(rung.model_s) if rung.model_s else "",
                format_mlups(rung.model_mlups) if rung.model_mlups else "",
                _share(loss.model) if loss and loss.model is not None else "",
                _share(loss.measured - (loss.model or 0.0)) if loss and known else "",
            )
        )
    if profile.unexplained is not None:
        rows.append(
            Row(UNEXPLAINED, "what the model expects beyond the kernel", difference=_share(profile.unexplained))
        )
    return rows


def apart_rows(profile: Profile) -> list[tuple[str, str, str, str, str]]:
    """The kernel with parts taken out: name, meaning, ps, share of the kernel's time, registers."""
    whole = profile.rungs[-1].seconds
    rungs = [*profile.apart, *(one for one in profile.rungs if one.resources)]
    return [
        (
            one.name,
            MEANING[one.name],
            _ps(one.seconds),
            f"{one.seconds / whole:.0%}",
            str(one.resources.registers or "-") if one.resources else "-",
        )
        for one in rungs
    ]


def term_rows(profile: Profile) -> list[tuple[str, str, str, str, str]]:
    """What the model's time of each kernel is made of: rung, term, ps, figures, source."""
    return [
        (rung.name, term.name, _ps(term.seconds), term.sentence, term.source)
        for rung in profile.rungs
        if rung.name in (STREAMING, KERNEL)
        for term in rung.model
    ]


def counter_rows(profile: Profile) -> list[tuple[str, str, str, str, str]]:
    """Counters of the hardware: name, value, unit, what it should be, ratio."""
    return [
        (
            one.name,
            f"{one.value:.4g}",
            one.unit,
            f"{one.ideal:.4g}" if one.ideal else "",
            f"{one.value / one.ideal:.3f}" if one.ideal else "",
        )
        for one in profile.counters.found
    ]


def state_rows(profile: Profile) -> Pairs:
    """Clocks, power, energy and what held the clocks down, of the run of seconds."""
    run = profile.sustained
    if run is None:
        return conditions_table(profile.conditions)
    throttled = ", ".join(f"{name} {share:.0%} of the time" for name, share in run.throttled.items())
    rows = [
        ("sustained", f"{format_mlups(run.mlups)} MLUPS over {run.seconds:.2g} s"),
        ("energy per update", f"{run.nj_per_update:.3g} nJ/LU ({run.energy_source})" if run.nj_per_update else ""),
        ("mean power", f"{run.power_w:.0f} W" if run.power_w else ""),
        ("power limit", f"{run.power_limit_w:.0f} W" if run.power_limit_w else ""),
        ("clocks held down by", throttled or ("nothing" if run.conditions.sm_clock_hz else "")),
        ("ECC", {True: "on", False: "off", None: ""}[profile.environment.ecc]),
    ]
    return [(name, value) for name, value in (*rows, *conditions_table(run.conditions)) if value]


class Standing(NamedTuple):
    """How far a profile is from its model.

    rung: the largest difference between the measured loss of a rung and that of the model, unexplained: what is left at
    the last one, both as shares of the ceiling's speed; bytes_ratio: what memory moved over what the model says.
    None where it is not known.
    """

    rung: float | None
    unexplained: float | None
    bytes_ratio: float | None


def standing(profile: Profile) -> Standing:
    """Of a profile, as far as it was measured."""
    differences = [abs(loss.measured - loss.model) for loss in profile.losses if loss.model is not None]
    sides = [profile.counters.value(f"DRAM bytes {verb}") for verb in ("read", "written")]
    known = [side for side in sides if side is not None]
    expected = profile.memory_bytes or profile.bytes_per_update
    return Standing(
        rung=max(differences, default=None),
        unexplained=profile.unexplained,
        bytes_ratio=sum(known) / expected if len(known) == len(sides) else None,
    )


_SHOWN = 0.0005
"""What a share is rounded to where it is printed, halved."""


def conclusion(profile: Profile) -> str:
    """What a profile comes to, in two sentences: how near the ceiling it is, what loses most, and what stays open."""
    if profile_disturbance(profile):
        return "There is no conclusion: the device was not left alone."
    return f"{_reached(profile)} {_left_open(profile)}"


def _reached(profile: Profile) -> str:
    """The share of the first rung, and the rung that loses most with the model's term for it."""
    top, kernel = profile.rungs[0], profile.rungs[-1]
    said = (
        f"The kernel makes {format_mlups(kernel.mlups)} of the {format_mlups(top.mlups)} MLUPS that "
        f"{_ALLOWS[top.name]} allows, {_part(kernel.mlups / top.mlups)}"
    )
    most = max(profile.losses, key=lambda loss: loss.measured)
    if most.measured <= 0:
        return f"{said}; no rung loses anything."
    below = next(number for number, rung in enumerate(profile.rungs) if rung.name == most.name)
    above = profile.rungs[below - 1]
    said += f"; the largest loss, {_part(most.measured)} of them, is from {above.name} to {most.name}"
    if MEANING[most.name] != f"the {most.name}":
        said += f" ({MEANING[most.name]})"
    if most.model is None:
        return f"{said}."
    if most.model <= 0:
        return f"{said}, where the model expects none."
    said += f", where the model expects {_part(most.model)}"
    term = _added(above, profile.rungs[below])
    if term is None:
        return f"{said}."
    mostly = "mostly " if len(profile.rungs[below].model) > 1 else ""
    return f"{said}, {mostly}by its term {term.name} ({term.sentence})."


def _added(above: Rung, below: Rung) -> Term | None:
    """The term of the model that grows most from a rung to the next; None where none grows, or it is the rung itself.

    Of what moves bytes alone the term has the name of its rung.
    """
    before = {MEMORY if term.name == above.name else term.name: term.seconds for term in above.model}
    grown = {term.name: term.seconds - before.get(term.name, 0.0) for term in below.model if term.name != below.name}
    most = max(below.model, key=lambda term: grown.get(term.name, 0.0), default=None)
    return most if most and grown.get(most.name, 0.0) > 0 else None


def _left_open(profile: Profile) -> str:
    """What no term explains, and the rung that the model gets least."""
    known = [(loss.measured - loss.model, loss.name) for loss in profile.losses if loss.model is not None]
    if profile.unexplained is None or not known:
        return "Nothing is explained: the model has no prediction of it."
    difference, name = max(known, key=lambda one: abs(one[0]))
    by = ""
    if abs(profile.unexplained) >= _SHOWN:
        by = f", by which the kernel is {'slower' if profile.unexplained > 0 else 'faster'} than the model expects"
    return (
        f"Not explained: {_share(profile.unexplained)}{by}; "
        f"of single rungs {name} is furthest from it ({_share(difference)})."
    )


def _ps(seconds: float) -> str:
    return f"{seconds * 1e12:,.2f}"


def _part(value: float) -> str:
    return f"{100 * value:.1f} %"


def _share(value: float) -> str:
    return f"{100 * value:+.1f} %"


def write_profile_page(profile: Profile, path: Path) -> None:
    """Writes the page. Raises InputError where the path cannot be written."""
    write_atomically(path, profile_page(profile).encode())


def profile_page(profile: Profile) -> str:
    """The HTML text."""
    config = from_flat(profile.config)
    kernel = profile.rungs[-1]
    share = kernel.mlups / profile.rungs[0].mlups
    drawn = [
        panel("ladder", "From the ceiling to the kernel", _CAPTION, ladder_figure(profile)),
        *([panel("apart", "Parts of the kernel alone", _PARTS, apart_figure(profile))] if profile.apart else []),
    ]
    return filled(
        "profile.html",
        ("script.js", "start.js"),
        drawn,
        profile=profile,
        brief=config.said,
        subject=subject(profile.case, [config]),
        headline=f"{format_mlups(kernel.mlups)} MLUPS, {share:.0%} of the {profile.rungs[0].name}",
        conclusion=conclusion(profile),
        disturbance=profile_disturbance(profile),
        panels=drawn,
        columns=[(name.rstrip(">"), name.endswith(">")) for name in COLUMNS],
        ladder=ladder_rows(profile),
        terms=term_rows(profile),
        apart=apart_rows(profile),
        counters=counter_rows(profile),
        state=state_rows(profile),
        environment=environment_table(profile.environment),
    )


_CAPTION = (
    "Picoseconds of the whole device per update: the first bar, and what each rung adds to it. Beside them the same of "
    "the model, which has seen none of them; what it leaves open is a bar of its own."
)
_PARTS = "The kernel with parts taken out. Where two of them overlap perfectly, the longer one is the whole."


def ladder_figure(profile: Profile) -> Figure:
    """A waterfall of the measured rungs and one of the model."""
    figure = plain_figure("", "ps per update")
    names = [rung.name for rung in profile.rungs]
    measured = [rung.seconds for rung in profile.rungs]
    _waterfall(figure, "measured", names, measured, _MEASURED)
    if all(rung.model_s for rung in profile.rungs):
        model = [rung.model_s or 0.0 for rung in profile.rungs]
        # what is open closes the gap to what is measured
        _waterfall(figure, "model", [*names, UNEXPLAINED], [*model, measured[-1]], _MODEL)
    figure.update_layout(waterfallmode="group", waterfallgap=0.25, legend={"orientation": "h"})
    figure.update_yaxes(rangemode="tozero")
    return figure


def _waterfall(figure: Figure, name: str, names: list[str], seconds: list[float], colour: str) -> None:
    steps = [after - before for before, after in zip([0.0, *seconds], seconds, strict=False)]
    values = [step * 1e12 for step in steps]
    figure.add_waterfall(
        x=[*names, "all"],
        y=[*values, seconds[-1] * 1e12],
        measure=["absolute", *["relative"] * (len(values) - 1), "total"],
        name=name,
        offsetgroup=name,
        increasing={"marker": {"color": colour}},
        decreasing={"marker": {"color": _OPEN}},
        totals={"marker": {"color": colour}},
        connector={"line": {"width": 0.5, "color": "#888888"}},
        hovertemplate="%{x}: %{delta:.3f} ps<br>up to here %{final:.3f} ps<extra>" + name + "</extra>",
    )


def apart_figure(profile: Profile) -> Figure:
    """Bars of the parts, and of the kernel with and without collision."""
    figure = plain_figure("", "ps per update")
    rungs = list(_kernels(profile))
    figure.add_bar(
        x=[name for name, _ in rungs],
        y=[seconds * 1e12 for _, seconds in rungs],
        marker={"color": _MEASURED},
        hovertemplate="%{x}: %{y:.3f} ps<extra></extra>",
        showlegend=False,
    )
    return figure


def _kernels(profile: Profile) -> Iterator[tuple[str, float]]:
    yield from ((one.name, one.seconds) for one in profile.apart)
    yield from ((one.name, one.seconds) for one in profile.rungs if one.resources)
