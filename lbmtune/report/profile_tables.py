"""Tables and conclusion of a profile: the measured loss breakdown beside that of the model."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from lbmtune.records import Term
from lbmtune.records import profile as levels
from lbmtune.records.profile import Profile, Rung
from lbmtune.records.remarks import profile_disturbance
from lbmtune.records.terms import MEMORY
from lbmtune.report.limits import figures_of
from lbmtune.report.tables import Pairs, conditions_table, sustained_table
from lbmtune.units import format_mlups

_MEANINGS = {
    levels.DATASHEET: "bytes of an update over bus width times clock",
    levels.COPY: "bytes of an update over the bandwidth of a copy of one array",
    levels.STREAMS: "a copy with the streams, accesses and runs of the kernel",
    levels.STREAMING: "the kernel without collision",
    levels.KERNEL: "the kernel",
    levels.READS: "the kernel with loads alone",
    levels.WRITES: "the kernel with stores alone",
    levels.COLLISION: "the kernel without loads and stores",
}
UNEXPLAINED = "unexplained"
_CEILINGS = {levels.DATASHEET: "the data sheet", levels.COPY: "a copy of one array"}
"""Words for the first level."""
_MUCH = 0.05
"""Difference between a level and its prediction from which on it is no detail."""
_SHOWN = 0.0005
"""Half of the last digit of a printed share."""
Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Columns, which end in '>' if they hold numbers, and rows."""


def tables(profile: Profile) -> dict[str, Table | None]:
    """Return the tables of levels, terms of the model, parts of the kernel and counters; None for one without rows."""
    rows = level_rows(profile)
    parts = ("kernel", "what", "ps per update>", "of the kernel>", "registers>")
    counters = ("counter", "value>", "unit", "ideal>", "ratio>")
    return {
        "levels": (tuple(rows[0]), [tuple(row.values()) for row in rows]),
        "terms": (("level", "term", "ps>", "figures", "source"), term_rows(profile)),
        "parts": (parts, part_rows(profile)) if profile.apart else None,
        "counters": (counters, counter_rows(profile)) if profile.counters.found else None,
    }


def level_rows(profile: Profile) -> list[dict[str, str]]:
    """Return the levels from the top, with the time that each adds to the one above, and what no term explains.

    Shares are of the time of the kernel; differences are measured minus predicted, and end in what is not explained.
    """
    whole, rows = profile.rungs[-1].seconds, []
    for above, level in zip((None, *profile.rungs), profile.rungs, strict=False):
        adds, model = _adds(above, level), _model_adds(above, level)
        rows.append(
            {
                "level": level.name,
                "what": _MEANINGS[level.name],
                "MLUPS>": format_mlups(level.mlups),
                "ps per update>": _ps(level.seconds),
                "adds, ps>": _more(adds) if above else "",
                "of the time>": f"{100 * adds / whole:.1f} %",
                "model: ps>": _ps(level.model_s) if level.model_s else "",
                "model: adds, ps>": _more(model) if above and model is not None else "",
                "difference, ps>": _more(adds - model) if above and model is not None else "",
            }
        )
    if (off := _unexplained_s(profile)) is not None:
        last = {"level": UNEXPLAINED, "what": "measured minus predicted kernel"}
        shown = {"of the time>": f"{100 * off / whole:.1f} %", "difference, ps>": _more(off)}
        rows.append({**dict.fromkeys(rows[0], ""), **last, **shown})
    return rows


def _adds(above: Rung | None, level: Rung) -> float:
    """Return the measured seconds that a level adds to the one above; all of the first one."""
    return level.seconds - (above.seconds if above else 0.0)


def _model_adds(above: Rung | None, level: Rung) -> float | None:
    """Return the predicted seconds that a level adds to the one above; None if they are not predicted."""
    before = above.model_s if above else 0.0
    return None if before is None or level.model_s is None else level.model_s - before


def _unexplained_s(profile: Profile) -> float | None:
    """Return the measured minus the predicted seconds of the kernel; None if it has no prediction."""
    kernel = profile.rungs[-1]
    return None if kernel.model_s is None else kernel.seconds - kernel.model_s


def part_rows(profile: Profile) -> list[tuple[str, str, str, str, str]]:
    """Return the kernel with parts taken out: name, meaning, ps, share of the kernel's time, registers."""
    whole = profile.rungs[-1].seconds
    return [
        (
            one.name,
            _MEANINGS[one.name],
            _ps(one.seconds),
            f"{one.seconds / whole:.0%}",
            str(one.resources.registers or "-") if one.resources else "-",
        )
        for one in kernels(profile)
    ]


def kernels(profile: Profile) -> list[Rung]:
    """Return the kernels that were compiled: parts of the kernel, then the kernel without and with collision."""
    return [*profile.apart, *(one for one in profile.rungs if one.resources)]


def term_rows(profile: Profile) -> list[tuple[str, str, str, str, str]]:
    """Return the terms of the model for each kernel: level, term, ps, figures, source."""
    return [
        (level.name, term.name, _ps(term.seconds), term.figures, term.source)
        for level in profile.rungs
        if level.name in (levels.STREAMING, levels.KERNEL)
        for term in level.model
    ]


def counter_rows(profile: Profile) -> list[tuple[str, str, str, str, str]]:
    """Return hardware counters: name, value, unit, ideal value, ratio."""
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
    """Return clocks, power, energy and throttle reasons of the sustained run."""
    run, ecc = profile.sustained, profile.environment.ecc
    found = sustained_table(run, "MLUPS") if run else conditions_table(profile.conditions)
    return found if ecc is None else [*found, ("ECC", "on" if ecc else "off")]


class Deviation(NamedTuple):
    """Deviation of a profile from its model, None if unknown.

    level: the largest difference of a loss between two levels; unexplained: the difference at the last level, both as
    shares of the ceiling's speed; bytes_ratio: measured over predicted bytes to and from memory.
    """

    level: float | None
    unexplained: float | None
    bytes_ratio: float | None


def deviation(profile: Profile) -> Deviation:
    """Return the deviation of a profile from its model, as far as it was measured."""
    differences = [abs(loss.measured - loss.model) for loss in profile.losses if loss.model is not None]
    moved = profile.counters.memory_bytes
    return Deviation(
        level=max(differences, default=None),
        unexplained=profile.unexplained,
        bytes_ratio=moved / (profile.memory_bytes or profile.bytes_per_update) if moved is not None else None,
    )


def conclusion(profile: Profile) -> str:
    """State the share of the ceiling, what adds most time and the unexplained part in two sentences."""
    if profile_disturbance(profile):
        return "There is no conclusion: other programs used the device."
    return f"{_reached(profile)} {_left_open(profile)}"


def _reached(profile: Profile) -> str:
    """State the share of the first level, and the level that adds most time with the model's term for it."""
    top, kernel = profile.rungs[0], profile.rungs[-1]
    said = (
        f"The kernel reaches {format_mlups(kernel.mlups)} of the {format_mlups(top.mlups)} MLUPS that "
        f"{_CEILINGS[top.name]} allows, {_part(kernel.mlups / top.mlups)}{_no_ceiling(profile)}"
    )
    above, below = max(pairwise(profile.rungs), key=lambda pair: _adds(*pair))
    most, model = _adds(above, below), _model_adds(above, below)
    if most <= 0:
        return f"{said}; there is no loss."
    said += f"; most time, {_ps(most)} of {_ps(kernel.seconds)} ps, is added from {above.name} to {below.name}"
    if _MEANINGS[below.name] != f"the {below.name}":
        said += f" ({_MEANINGS[below.name]})"
    if model is None or abs(most - model) < _SHOWN * kernel.seconds:
        return f"{said}."
    if model <= 0:
        return f"{said}, where the model adds none."
    said += f", where the model adds {_ps(model)} ps"
    term = _added(above, below)
    if term is None:
        return f"{said}."
    mostly = "mostly " if len(below.model) > 1 else ""
    hidden = "" if term.name in {one.name for one in profile.rungs[-1].model} else "; the collision hides it"
    return f"{said}, {mostly}by its term {term.name} ({figures_of(term)}{hidden})."


def _no_ceiling(profile: Profile) -> str:
    """Say that the first level is no upper bound, if a level below it is clearly faster; else empty."""
    top, fastest = profile.rungs[0], max(profile.rungs, key=lambda one: one.mlups)
    if fastest.mlups <= (1 + _MUCH) * top.mlups:
        return ""
    return f" (no upper bound: the level {fastest.name} has {format_mlups(fastest.mlups)})"


def _added(above: Rung, below: Rung) -> Term | None:
    """Return the term that grows most from a level to the next; None if none grows, or if it is the level itself.

    The term of a level that only moves bytes has the name of the level.
    """
    before = {MEMORY if term.name == above.name else term.name: term.seconds for term in above.model}
    grown = {term.name: term.seconds - before.get(term.name, 0.0) for term in below.model if term.name != below.name}
    most = max(below.model, key=lambda term: grown.get(term.name, 0.0), default=None)
    return most if most and grown.get(most.name, 0.0) > 0 else None


def _left_open(profile: Profile) -> str:
    """State what no term explains, and the level with the largest difference."""
    pairs = [(_adds(above, below), _model_adds(above, below), below.name) for above, below in pairwise(profile.rungs)]
    known = [(adds - model, name) for adds, model, name in pairs if model is not None]
    off, whole = _unexplained_s(profile), profile.rungs[-1].seconds
    if off is None or not known:
        return "Unexplained: all of it, because the model has no prediction."
    difference, name = max(known, key=lambda one: abs(one[0]))
    slower = ""
    if abs(off) >= _SHOWN * whole:
        slower = f" (the kernel is {'slower' if off > 0 else 'faster'} than predicted)"
    said = f"Unexplained: {_more(off)} ps{slower}; largest difference: {name}, {_more(difference)} ps."
    cancel = abs(difference) > max(_MUCH * whole, 2 * abs(off))
    return f"{said} Differences of levels cancel: how the model divides the time is not certain." if cancel else said


def _ps(seconds: float) -> str:
    return f"{seconds * 1e12:,.2f}"


def _part(value: float) -> str:
    return f"{100 * value:.1f} %"


def _more(seconds: float) -> str:
    """Return picoseconds with their sign."""
    return f"{seconds * 1e12:+,.2f}"
