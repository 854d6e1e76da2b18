"""Why the winner is as fast as it is: what takes the time of an update, in words and as a waterfall."""

from collections.abc import Sequence
from statistics import median

from lbmtune.catalogue.config import from_flat
from lbmtune.records import Prediction, Trial
from lbmtune.records.comparison.statistics import relative_error
from lbmtune.records.profile import KERNEL, STREAMING, STREAMS, Profile, Rung
from lbmtune.records.remarks import prediction_doubt, profile_disturbance
from lbmtune.records.study import StudyRecord
from lbmtune.records.terms import EXCHANGE, ISSUE, MEMORY, REFILLS, WAVES
from lbmtune.report.drawing import CEILING, Figure, plain_figure
from lbmtune.report.html import Panel, panel
from lbmtune.report.limits import MUCH, Limit, binding, ceiling_of, contradicted, fastest_on_memory, limits_of
from lbmtune.report.profile import profile_panel
from lbmtune.report.study.answer.update_time import (
    NOT_HIDDEN,
    UNEXPLAINED,
    Part,
    measured_s,
    no_help,
    parts,
    shown_parts,
    unknown,
)
from lbmtune.report.study.answer.use import Next, profiling
from lbmtune.report.study.answer.words import device_option
from lbmtune.report.study.steps import SLOWER, leaves_out_halos, power_bound_text
from lbmtune.report.waterfall import Step, add_waterfall
from lbmtune.units import format_mlups, format_ps, format_rate

_LIMIT, _MODEL, _REST = CEILING, "#e69f00", "#0072b2"
_AGREE = 0.005
"""Relative difference up to which two bandwidths are the same."""
_NEAR = 0.8
"""Share of the time of the limit from which on another term may bind as well."""
_FOLLOWS = 0.25
"""Relative difference up to which a loss of speed is that of a clock."""
_NAMED = 3
"""Parts that the text names."""
_PLURAL = (ISSUE, EXCHANGE, WAVES, REFILLS)
_CAPTION = (
    "Picoseconds of the whole device per update: the limit alone (dashed), what the model adds to it, and the rest up "
    "to the measurement. The model is not fitted to this study."
)

_NO_HELP = (
    "Picoseconds of the whole device per update: the limit alone (dashed), and the rest up to the measurement. What "
    "each term of the model adds is not certain: together they take longer than was measured. The model is not fitted "
    "to this study."
)


def measured_before(study: StudyRecord, profile: Profile) -> str:
    """Return what the levels are beside the speed of the finals: measured again, or disturbed."""
    if disturbed := profile_disturbance(profile):
        return f" Disturbed: {disturbed}"
    kernel, finals = profile.rung(KERNEL), format_mlups(study.ranked[0].mlups or 0.0)
    return f" Measured again: the kernel reaches {format_mlups(kernel.mlups)} MLUPS here, {finals} before."


def why_panels(study: StudyRecord, profile: Profile | None = None) -> list[Panel]:
    """Return waterfalls of the winner: measured levels if it was profiled, and terms if its prediction has some."""
    measured = [profile_panel(profile, measured_before(study, profile))] if profile else []
    found = parts(study)
    doubtful = prediction_doubt(*study.header.cpu_shares)
    if not found or refuted(study):
        return measured
    predicted = study.ranked[0].prediction
    ceiling = predicted.ceiling_source if predicted and not no_help(study) else ""
    origin = f" Its memory bandwidth: {ceiling}." if ceiling else ""
    origin += f" Predictions are {how}." if (how := study.header.calibrated_how) else ""
    shown = _NO_HELP if no_help(study) else _CAPTION
    caption = shown + origin + (f" Predictions are {doubtful}." if doubtful else "")
    limited = binding(study, study.ranked[0]) is not None
    title = "Time of an update: limit and rest" if no_help(study) else "Time of an update, by the model"
    drawn = why_figure(shown_parts(study), limited=limited)
    return [*measured, panel("why", title, caption, drawn)]


def why_figure(found: tuple[Part, ...], *, limited: bool = True) -> Figure:
    """Draw the parts one after the other, up to the measured time. limited: the first is the limit, drawn as a line."""
    figure = plain_figure("", "ps per update")
    drawn = [(one.name, one.seconds) for one in found if one.seconds is not None]
    colours = [_LIMIT if limited else _MODEL, *[_MODEL] * (len(drawn) - 2), _REST]
    names = [NOT_HIDDEN if name.endswith(NOT_HIDDEN) else name for name, _ in drawn]
    names[0] += " alone" if limited else ""
    steps = [Step(name, seconds, colour) for name, (_, seconds), colour in zip(names, drawn, colours, strict=True)]
    add_waterfall(figure, "model", steps, total=Step("measured", sum(step.seconds for step in steps), _REST))
    if limited:
        figure.add_hline(y=1e12 * steps[0].seconds, line={"dash": "dash", "width": 1.5, "color": _LIMIT})
    figure.update_yaxes(rangemode="tozero")
    return figure


def said(study: StudyRecord, profile: Profile | None = None) -> str:
    """Say what takes the time of an update, from the limit alone up to the measurement; empty without terms.

    profile: of the winner.
    """
    found = parts(study)
    if not found:
        return ""
    predicted, measured = study.ranked[0].prediction, study.ranked[0].best_measurement.mlups
    assert predicted
    speeds = (
        f"The model predicts {format_mlups(predicted.mlups)} MLUPS; measured are {format_mlups(measured)}, "
        f"{_difference(predicted, measured)}."
    )
    limit = binding(study, study.ranked[0])
    if limit is None:
        return " ".join(filter(None, (speeds, _by_levels(profile) if profile else "")))
    if refuted(study):
        levels = _by_levels(profile) if profile else ""
        predicted = study.ranked[0].prediction
        low = f"It is {1 - predicted.mlups / measured:.0%} low here." if predicted else ""
        return " ".join(filter(None, (_refuted(study, limit), levels, low, _error(study))))
    if profile and contradicted(limit, profile):
        return " ".join(filter(None, (_by_levels(profile), _divided(found, profile), speeds, _error(study))))
    first, *others = found
    whole = measured_s(study)
    origin = (" by the benchmark" if limit.measured else " by the model") if limit.exceeded else ""
    verb = "take" if first.name in _PLURAL else "takes"
    halos = (
        ", halos included,"
        if limit.name == MEMORY and not limit.measured and leaves_out_halos(study.ranked[0].kernel_config)
        else ""
    )
    alone = f"{first.name.capitalize()} alone{origin}{halos} {verb} {first.ps} of {format_ps(whole)} ps"
    alone += f" ({first.share:.1%})."
    doubt = "" if no_help(study) or unknown(study) else _exceeded(study)
    told = _rest(study, others, whole - (first.seconds or 0.0), profile)
    model = "" if no_help(study) else speeds
    return " ".join(filter(None, (alone, told, model, doubt, _error(study))))


def _divided(found: Sequence[Part], profile: Profile) -> str:
    """Say that the parts of the model are not certain, if its levels are not as measured."""
    named = "; ".join(f"{one.name}: {one.ps} ps" for one in found[:-1] if one.seconds is not None)
    streams, streaming, kernel = (profile.rung(name).model_s for name in (STREAMS, STREAMING, KERNEL))
    if not (streams and streaming and kernel):
        return f"Parts of the model ({named}) are not certain."
    levels = f"streaming adds {format_ps(streaming - streams)} ps and the collision {format_ps(kernel - streaming)}"
    return f"By the model {levels}, so its parts ({named}) are not certain."


def refuted(study: StudyRecord) -> bool:
    """Return whether the winner is faster than the limit of the model, which then tells nothing of its time."""
    limit = binding(study, study.ranked[0]) if study.ranked else None
    return limit is not None and limit.refuted


def _refuted(study: StudyRecord, limit: Limit) -> str:
    """Say that the time of an update cannot be divided, as the limit of the model takes longer than the whole."""
    alone = f"{format_ps(1e-6 / limit.mlups)} ps for {limit.name} alone"
    return (
        f"Where the {format_ps(measured_s(study))} ps of an update go is not known by the model: it takes {alone} "
        f"({limit.source.partition(': ')[2]}), more than was measured for all."
    )


def _exceeded(study: StudyRecord) -> str:
    """Say that memory's part is too large if a kernel drew more from memory than the model takes; else empty."""
    winner = study.ranked[0]
    taken_s = winner.prediction.seconds_of(MEMORY) if winner.prediction else 0.0
    highest = fastest_on_memory(study)
    if not taken_s or highest is None:
        return ""
    moved, drawn = winner.best_measurement.bytes_per_update, highest.best_measurement.bandwidth_bytes_per_s
    if moved / taken_s > (1 - MUCH) * drawn:
        return ""
    return (
        f"Memory's part may be too large: trial {highest.number} drew {format_rate(drawn)} from this memory, at which "
        f"it would be {format_ps(moved / drawn)} ps{_left_then(study, taken_s - moved / drawn)}. How the time divides "
        "is rough."
    )


def _left_then(study: StudyRecord, less_s: float) -> str:
    """Say what would not be explained if the model had so much less; empty if that is nothing."""
    left_s = (parts(study)[-1].seconds or 0.0) + less_s
    return f", and {format_ps(left_s)} ps not explained" if left_s > 0 else ""


def sustained_said(study: StudyRecord) -> str:
    """Say how long an update takes over seconds without a pause; empty if that is as long as in bursts."""
    winner = study.ranked[0]
    run, burst = winner.sustained, winner.best_measurement.mlups
    chance = max(SLOWER, study.interval(winner).half_width)
    if run is None or run.disturbed or abs(run.mlups / burst - 1) <= chance:
        return ""
    reason = power_bound_text(run, burst) or ", ".join(run.throttled) or "the reason is not recorded"
    more_s = 1e-6 / run.mlups - 1e-6 / burst
    return (
        f"Over {run.seconds:.1f} s without a pause an update takes {format_ps(1e-6 / run.mlups)} ps, "
        f"{format_ps(abs(more_s))} {'more' if more_s > 0 else 'less'} ({reason}).{_by_clock(study)}"
    )


def _by_clock(study: StudyRecord) -> str:
    """Say that a sustained run is slower as the clock of the multiprocessors is, if that of memory is as in bursts."""
    winner = study.ranked[0]
    run, burst = winner.sustained, winner.best_measurement
    assert run
    then, now = burst.conditions, run.conditions
    if not (then.sm_clock_hz and now.sm_clock_hz) or then.memory_clock_hz != now.memory_clock_hz:
        return ""
    slower, clocked = 1 - run.mlups / burst.mlups, 1 - now.sm_clock_hz / then.sm_clock_hz
    if clocked < SLOWER or abs(slower - clocked) > _FOLLOWS * clocked:
        return ""
    limit = binding(study, winner)
    doubt = ", so that clock binds, too" if limit and limit.name == MEMORY else ""
    return (
        f" Its speed fell {slower:.1%} with the clock of the multiprocessors, {clocked:.1%} lower "
        f"({now.sm_clock_hz / 1e6:,.0f} instead of {then.sm_clock_hz / 1e6:,.0f} MHz, memory unchanged){doubt}."
    )


def measuring(study: StudyRecord, profile: Profile | None = None) -> Next | None:
    """Return the command that measures what the model does not explain; None if it does, or if all was measured."""
    if profile and contradicted(binding(study, study.ranked[0]), profile):
        return Next("Counters may tell:", profiling(study))
    if not (unknown(study) or refuted(study)):
        return None
    if not profile:
        return Next("Measure it:", profiling(study))
    how = study.header.calibrated_how.partition("; lbmtune")[0]
    if how.startswith("calibrated on this"):
        return None
    return Next(
        f"The model was {how}. To calibrate it on this device in full:",
        f"lbmtune devices --calibrate --device {device_option(study)}",
    )


def _by_levels(profile: Profile) -> str:
    """Say what the kernel takes as it was measured: a copy with its streams, and what streaming and collision add."""
    if profile_disturbance(profile):
        return ""
    config = from_flat(profile.config)
    streams, streaming, kernel = (profile.rung(name) for name in (STREAMS, STREAMING, KERNEL))
    moving = "streaming, with halos, exchanges and their instructions," if leaves_out_halos(config) else "streaming"
    pairs = {moving: (streams, streaming), "the collision": (streaming, kernel)}
    added = [f"{name} adds {_more(above, below)}" for name, (above, below) in pairs.items()]
    remarks = "; ".join(filter(None, ("by the calibration" if streams.spread is None else "", _bytes_of(profile))))
    return (
        f"Level by level, {format_ps(kernel.seconds)} ps this time: a copy with its streams takes "
        f"{format_ps(streams.seconds)}{f' ({remarks})' * bool(remarks)}; {', '.join(added)}."
    )


def _more(above: Rung, below: Rung) -> str:
    """Return the time that a level adds as text, negative if it takes less; none if it is within their spreads."""
    added = below.seconds - above.seconds
    if abs(added) <= sum((rung.spread or 0.0) * rung.seconds for rung in (above, below)):
        return "nothing measurable"
    return f"{'-' * (added < 0)}{format_ps(abs(added))} ps"


def _bytes_of(profile: Profile) -> str:
    """Say that levels count no halos, if the kernel reads some."""
    if not leaves_out_halos(from_flat(profile.config)):
        return ""
    return f"{profile.bytes_per_update:.3g} B per update, no halos"


def _nearly_bound(study: StudyRecord) -> str:
    """Name the terms of the model that alone take nearly as long as the limit; empty if there are none."""
    first, *others = limits_of(study, study.ranked[0])
    near = [one for one in others if first.mlups >= _NEAR * one.mlups]
    if not near:
        return ""
    named = " and ".join(f"{one.name} ({format_ps(1e-6 / one.mlups)} ps)" for one in near)
    return f"By the model {named} take nearly as long as the limit, and overlap only in part. "


def _rest(study: StudyRecord, others: Sequence[Part], beyond: float, profile: Profile | None) -> str:
    """Say what the winner takes beyond its limit, as far as it is known."""
    *added, rest = (one for one in others if one.seconds is not None)
    largest = sorted(added, key=lambda one: -abs(one.seconds or 0.0))[:_NAMED]
    named = "; ".join(f"{one.name}: {one.ps} ps" for one in largest) + "; others less" * (len(added) > _NAMED)
    off = f"{format_ps(abs(rest.seconds or 0.0))} ps"
    spread_s = study.interval(study.ranked[0]).half_width * measured_s(study)
    within = f", within the spread of \u00b1{format_ps(spread_s)} ps" if abs(rest.seconds or 0.0) < spread_s else ""
    last = f"{off} are not explained{within}" if rest.name == UNEXPLAINED else f"the kernel is {off} faster than that"
    sum_ps = format_ps(sum(one.seconds or 0.0 for one in added))
    if no_help(study):
        predicted, measured = study.ranked[0].prediction, study.ranked[0].best_measurement.mlups
        assert predicted
        left = f"Beyond it are {format_ps(beyond)} ps ({beyond / measured_s(study):.1%})."
        levels = f" {said}" if profile and (said := _by_levels(profile)) else ""
        speed, less = format_mlups(predicted.mlups), 1 - predicted.mlups / measured
        return (
            f"{left}{levels} {_nearly_bound(study)}The model predicts {speed} MLUPS, {less:.1%} less than was "
            "measured: what each of its terms adds is not certain."
        )
    if unknown(study):
        model = f"the model adds {sum_ps} ps ({named}), and {last}" if added else "the model has nothing but the limit"
        levels = f" {said}" if profile and (said := _by_levels(profile)) else ""
        return f"What takes the other {format_ps(beyond)} ps is not known: {model}.{levels}"
    if beyond <= 0:
        return f"The kernel is {format_ps(-beyond)} ps faster than that."
    levels = f" {said}" if profile and (said := _by_levels(profile)) else ""
    return f"The model adds {sum_ps} ps ({named}); {last}.{levels}"


def _error(study: StudyRecord) -> str:
    """State the median error of the model over the finalists; empty if none has a prediction."""
    known = [t for t in study.ranked if t.final and t.prediction]
    if not known:
        return ""
    error = median(relative_error(t.prediction.mlups, t.mlups or 0.0) for t in known if t.prediction)
    return f"The median error of the model over {len(known)} finalist{'s' * (len(known) > 1)} is {error:.1%}."


def limit_said(study: StudyRecord) -> str:
    """Tell the limit from the ceiling and from the model's memory term."""
    winner = study.ranked[0]
    limit, measured = binding(study, winner), winner.best_measurement
    if limit is None or limit.name != MEMORY or limit.refuted:
        return ""
    ceiling, moved = ceiling_of(study), measured.bytes_per_update
    rate = format_rate(ceiling.bytes_per_s)
    if not limit.measured:
        allowed = format_mlups(ceiling.bytes_per_s / moved / 1e6)
        counted = limit.source.partition(": ")[2]
        return (
            f"The limit counts {counted}; without halos, {moved:.4g} bytes at the {rate} of {ceiling.name} would allow "
            f"{allowed} MLUPS."
        )
    return _slower_than(winner, f"{ceiling.name}, {rate}", limit.mlups)


def _slower_than(winner: Trial, ceiling: str, allowed_mlups: float) -> str:
    """Say that the model's bandwidth is not that of the ceiling; empty if they agree."""
    predicted = winner.prediction
    seconds = predicted.seconds_of(MEMORY) if predicted else 0.0
    if predicted is None or not seconds or abs(1e-6 / seconds / allowed_mlups - 1) < _AGREE:
        return ""
    benchmark = f"limit is the fastest benchmark of many streams, whatever the scheme ({ceiling})."
    rate = format_rate(predicted.bandwidth_bytes_per_s)
    return f"The model begins with {rate} for accesses like these; the {benchmark}"


def _difference(predicted: Prediction, measured: float) -> str:
    off = measured / predicted.mlups - 1
    return "as much" if abs(off) < 0.0005 else f"{abs(off):.1%} {'more' if off > 0 else 'less'}"
