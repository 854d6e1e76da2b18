"""Remarks on results: disturbed measurements, and working sets that fit in a cache."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.records import Conditions, Sustained, Trial
from lbmtune.records.comparison.race import Verdict
from lbmtune.records.comparison.repeats import percent, repeat_interval
from lbmtune.records.profile import Profile
from lbmtune.records.spec import TimingProtocol
from lbmtune.records.study import ALIKE, StudyRecord
from lbmtune.units import format_bytes, format_mlups

_ADVICE = "these speeds are too low and the ranking is not reliable; run again when the machine is idle"
_NO_PROFILE = (
    "the losses and the unexplained part are not reliable; profile again when the machine is idle, "
    "and describe it again (lbmtune devices --refresh) if that was disturbed, too"
)
_TOO_LOW = "the sustained speed is too low and cannot be compared; run again when the machine is idle"
_UNSTEADY = 0.25
"""Range of the rates beside samples, relative to their median, from which on a warning is printed."""
_WIDEST = 0.1
"""Relative half-width of the interval of a winner, from which on a warning is printed."""
_LONGER = 10
"""Times as long samples that are advised where they scatter too much."""
_DRIFTED = 0.05
"""Change of a finalist's speed since the search from which on it is told."""
TIMES_CACHE = 4
"""Footprint over the last-level cache from which on memory bandwidth decides."""


def race_text(study: StudyRecord, numbered: str = "") -> str:
    """Return margin and ties of the finals in words, or that none were held; empty for early records.

    numbered: what stands before the numbers of trials; empty: they are named by their keys.
    """
    spec = study.header.spec
    if not study.header.stopped:
        return ""
    if study.race is None:
        return without_finals(study)
    if spec.objective != "mlups":
        return ""
    leads = f"is the best of them by {spec.beside[0]}" if spec.beside else _leads(study, study.race)
    allowed = "" if spec.max_power_w is None else " within the power"
    keys = {trial.number: f"{numbered}{trial.number}" if numbered else trial.key for trial in study.trials}
    race = replace(study.race, untold=study.untold)
    told = race.sentence(keys, study.ranked[0].number, f"{leads}{allowed}")
    return "; ".join(filter(None, (told, _over_seconds(study, keys))))


def _over_seconds(study: StudyRecord, keys: dict[int, str]) -> str:
    """Say that the winner leads over seconds alone, and by how much; empty if it leads in bursts."""
    winner, first = study.ranked[0], study.overtaken
    if first is None or not (winner.sustained and first.sustained):
        return ""
    lead = percent(winner.sustained.mlups / first.sustained.mlups - 1)
    return f"over seconds without a pause {keys[winner.number]} is {lead} faster than {keys[first.number]}, and wins"


def _leads(study: StudyRecord, race: Verdict) -> str:
    """Say why the winner comes before those that are tied with it: by its footprint, or by speed if all have one."""
    if study.overtaken:
        return "is the fastest of them over seconds"
    level = {race.first, *race.tied}
    known = [t.prediction.footprint_bytes if t.prediction else 0 for t in study.ranked if t.number in level]
    if max(known) > ALIKE * min(known):
        return "has the smallest footprint of them"
    return "had the highest median; their footprints are equal"


def without_finals(study: StudyRecord) -> str:
    """Return that a study that came to its end held no finals, and why; empty if it did, or is an early record."""
    if not (study.ranked and study.header.stopped and study.header.finished and study.race is None):
        return ""
    reason = study.header.no_finals or "; ".join(study.header.left_out)
    return f"none were held{f' ({reason})' * bool(reason)}: the ranking is that of first measurements"


def devices_text(study: StudyRecord) -> str:
    """Return how many trials each of several devices verified, and which held the finals; empty for one device."""
    if len(study.devices) == 1:
        return ""
    counted = ", ".join(f"{n} trial{'s' if n != 1 else ''} on {name}" for name, n in study.devices.items())
    held = study.header.finals_device or study.header.environment.device_id
    return f"{counted}; finals on {held}"


def too_much_power(study: StudyRecord) -> str:
    """Return which finalists draw more power than the study allows, and so cannot win; empty for none."""
    over = [trial for trial in study.ranked if trial.final and study.power_rank(trial) > 1]
    if not over:
        return ""
    named = (f"{trial.key} ({format_mlups(trial.mlups or 0)} MLUPS, {_watts(trial)})" for trial in over)
    return f"{', '.join(named)}: more than the {study.header.spec.max_power_w:g} W that the study allows"


def _watts(trial: Trial) -> str:
    return f"{trial.sustained.power_w:.1f} W" if trial.sustained and trial.sustained.power_w else ""


def disturbance(study: StudyRecord, chosen: Trial | None = None) -> str:
    """Return a warning if the samples or the sustained run of a trial, by default the best, were disturbed, else ''."""
    if not study.ranked:
        return ""
    best = chosen or study.ranked[0]
    if best.best_measurement.disturbed:
        return f"{_cause(best.best_measurement.conditions)}: {_ADVICE}."
    if best.sustained and best.sustained.disturbed:
        return f"during the sustained run {_cause(best.sustained.conditions)}: {_TOO_LOW}."
    return ""


def power_remark(kernel: str, run: Sustained | None, most_w: float | None) -> str:
    """Return that the power of a kernel is not known to stay within what a study allows; empty if it is."""
    power_w = run.power_w if run else None
    if most_w is None or (power_w is not None and power_w <= most_w):
        return ""
    if power_w is None:
        return f"the power of {kernel} is not known, and the study allows {most_w:g} W"
    return f"{kernel} draws {power_w:.1f} W, more than the {most_w:g} W that the study allows"


def unfinished(study: StudyRecord, chosen: Trial | None = None) -> str:
    """Return a warning if a kernel of a study may not be the best, be wrong, or draw too much power, else ''.

    chosen: of the kernel; None: the best.
    """
    if not study.ranked:
        return ""
    trial, name = (study.ranked[0], "the best kernel") if chosen is None else (chosen, f"kernel {chosen.key}")
    left = [] if study.finished else ["the study was ended early, so that another kernel may be faster"]
    left += [] if trial.proven else [f"{name} was not verified on the whole domain"]
    power = power_remark(name, trial.sustained, study.header.spec.max_power_w)
    said = [*left, *([power] if power else [])]
    goes_on = left or study.power_rank(trial) == 1
    return f"{', and '.join(said)}{'; lbmtune study --resume goes on' if goes_on else ''}." if said else ""


def doubt(study: StudyRecord, chosen: Trial | None = None) -> str:
    """Return a warning if the speed of a trial, by default the best, is too uncertain for a ranking, else ''."""
    if not study.ranked or study.header.spec.objective != "mlups":
        return ""
    best = chosen or study.ranked[0]
    found = best.best_measurement
    width = repeat_interval(found, None).within
    if width <= _WIDEST:
        return ""
    name = "final_sample_s" if best.final else "sample_s"
    longer = f"protocol.{name}={_LONGER * getattr(study.header.spec.protocol, name):g}"
    advice = disturbance(study, chosen) or f"run again with longer samples (--set {longer})."
    whose = "the winner's speed" if chosen is None else f"the speed of {chosen.key}"
    return f"{whose} is known to +-{100 * width:.1f} % only, and closer configurations cannot be ranked: {advice}"


def faster_first(study: StudyRecord) -> str:
    """Return a sentence if a first measurement lies above the interval of the winner's final; else an empty text."""
    best = above_the_winner(study)
    if best is None:
        return ""
    return (
        f"the first measurement of trial {best.number}, {format_mlups(best.best_measurement.mlups)} MLUPS, lies above "
        f"the winner's final, in which it took no part. {_drift(study)}In the folder of the study "
        f"lbmtune measure {best.key} --study . measures it again."
    )


def above_the_winner(study: StudyRecord) -> Trial | None:
    """Return the fastest trial of the search alone if it lies above the interval of the winner's final."""
    winner = study.winner
    if winner is None or winner.final is None or study.overtaken or study.header.spec.objective != "mlups":
        return None
    first = [t for t in study.ranked if t.final is None]
    best = max(first, key=lambda t: t.best_measurement.mlups, default=None)
    return best if best and best.best_measurement.mlups > study.interval(winner).high_mlups else None


def _drift(study: StudyRecord) -> str:
    found = drift_text(study)
    return f"Speeds drifted in between: {found}. " if found else ""


def drift_text(study: StudyRecord) -> str:
    """Say how much the speed of a finalist changed at most from the search to the finals; empty if by little."""
    both = [(t.measurement.mlups, t.final.mlups, t.number) for t in study.ranked if t.measurement and t.final]
    first, final, number = max(both, key=lambda one: abs(one[0] / one[1] - 1), default=(1.0, 1.0, 0))
    if abs(first / final - 1) < _DRIFTED:
        return ""
    then, later = format_mlups(first), format_mlups(final)
    return f"trial {number} had {then} in the search and {later} in the finals"


def speed_doubts(study: StudyRecord, chosen: Trial | None = None) -> tuple[str, ...]:
    """Return why the speed or the rank of a trial, by default the best, is not reliable, in sentences; () if it is."""
    none = f"finals: {found}." if (found := without_finals(study)) else ""
    uncertain = doubt(study, chosen) or disturbance(study, chosen)
    return tuple(filter(None, (uncertain, none, faster_first(study), unsteadiness(study))))


def unsteadiness(study: StudyRecord) -> str:
    """Return a warning if the machine changed between the trials of a study, else ''."""
    seen = [trial.measurement.conditions for trial in study.trials if trial.measurement]
    looked = {
        "memory": [one.memory_bytes_per_s for one in seen if one.memory_bytes_per_s],
        "the last cache": [one.last_cache_bytes_per_s for one in seen if one.last_cache_bytes_per_s],
        "arithmetic": [one.work_per_s for one in seen if one.work_per_s],
    }
    name, rates = max(looked.items(), key=lambda one: _spread(one[1]))
    if _spread(rates) <= _UNSTEADY:
        return ""
    usual, highest = median(rates), max(rates)
    rule = "comparable only within that range; those of finalists were measured interleaved."
    if highest > (1 + _UNSTEADY) * usual:  # the median is that of a disturbed machine
        return (
            f"during the search {name} had {min(rates) / highest:.1%} to 100% of the highest speed seen, and half of "
            f"the samples at most {usual / highest:.1%}: the machine was disturbed most of the time. Speeds of the "
            f"search are too low, and {rule} Run again when the machine is idle."
        )
    return (
        f"during the search {name} had {min(rates) / usual:.0%} to {highest / usual:.0%} of its usual "
        f"speed, as on a shared host: speeds of the search are {rule} Predictions are for the machine as described."
    )


def _spread(rates: Sequence[float]) -> float:
    """Return the range relative to the median."""
    return (max(rates) - min(rates)) / median(rates) if rates else 0.0


def profile_disturbance(profile: Profile) -> str:
    """Return a warning if a part of a profile was disturbed, else ''."""
    run = profile.sustained
    if run and run.disturbed:
        return f"{_cause(run.conditions)}: {_NO_PROFILE}."
    alone = not any(one.disturbed for one in (*profile.rungs, *profile.apart))
    return "" if alone else f"{_cause(Conditions())}: {_NO_PROFILE}."


def left_alone(cpu_share: float | None) -> bool:
    """Return whether other programs used little of the processor; None (on GPUs) counts as little."""
    return cpu_share is None or cpu_share >= TimingProtocol().min_cpu_share


def predictions_hold(bandwidths: float | None, calibration: float | None) -> bool:
    """Return whether other programs left alone what predictions rest on: the calibration, or else bandwidths.

    bandwidths, calibration: share of the processor during either measurement, or None.
    """
    return left_alone(bandwidths if calibration is None else calibration)


def prediction_doubt(bandwidths: float | None, calibration: float | None) -> str:
    """Return why predictions of a machine are not reliable, to stand beside them; '' if they are."""
    if predictions_hold(bandwidths, calibration):
        return ""
    what = "its bandwidths were measured" if calibration is None else "it was calibrated"
    share = bandwidths if calibration is None else calibration
    return f"not reliable: other programs left {share:.0%} of the processor when {what}"


def description_disturbance(bandwidths: float | None, calibration: float | None) -> str:
    """Return a warning if other programs disturbed the description of a machine, with the affected figures.

    bandwidths, calibration: share of the processor during either measurement, or None. '' if neither was disturbed.
    """
    parts = {"its bandwidths were measured": bandwidths, "it was calibrated": calibration}
    disturbed = {when: share for when, share in parts.items() if share is not None and not left_alone(share)}
    if not disturbed:
        return ""
    cause = " and ".join(f"{share:.0%} of the processor when {when}" for when, share in disturbed.items())
    spoilt = _spoilt(bandwidths, calibration)
    return (
        f"other programs left {cause}: {spoilt}; when the machine is idle, lbmtune devices --refresh measures it again."
    )


def _spoilt(bandwidths: float | None, calibration: float | None) -> str:
    """Return the affected figures: the ceiling by bandwidths, predictions by the calibration if there is one."""
    if left_alone(bandwidths):
        fine = "" if bandwidths is None else ", but the ceiling is, which rests on bandwidths"
        return f"predictions are not reliable, nor shares of them{fine}"
    if calibration is None:
        return "the ceiling is not reliable, nor predictions that rest on it, nor shares of them"
    if left_alone(calibration):
        return "the ceiling is not reliable, nor shares of it, but predictions are, which rest on the calibration"
    return "neither the ceiling nor predictions are reliable, nor shares of them"


def _cause(found: Conditions) -> str:
    if found.cpu_share is not None:
        return f"other programs used the processor (CPU share {100 * found.cpu_share:.0f} %)"
    if found.others:
        return f"other processes used the GPU ({', '.join(found.others)})"
    if found.throttle:
        return f"the GPU reduced its clocks ({', '.join(found.throttle)})"
    return "the device was not left alone"


def last_cache(backend: str, caches_bytes: dict[str, int]) -> int:
    """Return the bytes of one last-level cache of a processor; 0 for a GPU, or if unknown."""
    return max(caches_bytes.values(), default=0) if BACKENDS[backend].shares_host else 0


def in_cache(footprint_bytes: int, cache_bytes: int, domain: tuple[int, ...]) -> str:
    """Return a remark if a cache holds the footprint of a kernel, else ''."""
    if not 0 < footprint_bytes <= cache_bytes:
        return ""
    return (
        f"A footprint of {format_bytes(footprint_bytes)} fits in the last cache ({format_bytes(cache_bytes)}): "
        "the bandwidth model and the ceiling do not apply to one step per launch, nor do predictions and shares that "
        "rest on them; use a larger domain, such as --set "
        f"case.domain={'x'.join(map(str, beyond(footprint_bytes, cache_bytes, domain)))}."
    )


def in_cache_of(study: StudyRecord) -> str:
    """Return the remark on the smallest of the verified kernels of a study, or ''."""
    sizes = [t.prediction.footprint_bytes for t in study.ranked if t.prediction]
    return in_cache(min(sizes, default=0), study.header.last_cache_bytes, study.header.spec.case.domain)


def beyond(footprint_bytes: int, cache_bytes: int, domain: tuple[int, ...]) -> tuple[int, ...]:
    """Return the domain, doubled along each axis with several cells until memory bandwidth decides."""
    each = 2 ** sum(n > 1 for n in domain)
    while each > 1 and footprint_bytes < TIMES_CACHE * cache_bytes:
        footprint_bytes, domain = footprint_bytes * each, tuple(2 * n if n > 1 else n for n in domain)
    return domain
