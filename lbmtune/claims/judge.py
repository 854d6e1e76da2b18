"""Verdicts on claims from measurements. All functions are pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from lbmtune.records import Measurement
from lbmtune.records.claims import COUNTED, ERRORS, Claim, Document, Group, Holding, Rates, Row, Series, Verdict
from lbmtune.records.comparison.statistics import Interval, median_interval, paired_ratio


@dataclass(frozen=True)
class Reading:
    """A row with the group that it was measured in; rows of one group were measured interleaved."""

    row: Row
    group: Group | None = None

    @property
    def measurement(self) -> Measurement:
        """Return the final measurement, of a row that has one."""
        assert self.row.trial is not None
        assert self.row.trial.final is not None
        return self.row.trial.final

    @property
    def step_s(self) -> float:
        """Return the median seconds per time step."""
        return median(self.measurement.samples_s)


class _UntestableError(Exception):
    """Raised with the reason if a claim cannot be judged."""


def verdicts(document: Document, groups: Sequence[Group], backend: str, rates: Rates) -> tuple[Verdict, ...]:
    """Return a verdict for every claim of a document, from its measured groups."""
    readings = readings_of(document, groups, backend)
    return tuple(judge(document.name, claim, readings, backend, rates) for claim in document.claims)


def readings_of(document: Document, groups: Sequence[Group], backend: str) -> dict[str, Reading]:
    """Return the readings by the names that claims use, on the last domain of each series.

    Names are 'variant@series', and 'variant' alone for its first series.
    """
    last = {group.series: group for group in groups if group.document == document.name}
    found: dict[str, Reading] = {}
    for variant in document.variants:
        for name in variant.series:
            series = next(one for one in document.series if one.name == name)
            reading = _reading(variant.name, series, last.get(name), backend)
            found[f"{variant.name}@{name}"] = reading
            found.setdefault(variant.name, reading)
    return found


def _reading(variant: str, series: Series, group: Group | None, backend: str) -> Reading:
    if group is not None:
        # the document may have a variant that it had not at the time
        missing = Row(variant=variant, reason=f"{variant}: it was not measured in this run")
        return Reading(next((row for row in group.rows if row.variant == variant), missing), group)
    asked = bool(series.cases.get(backend))
    told = "it was not measured in this run" if asked else f"there is no such experiment for {backend} devices"
    without = f"{series.title}: {told}"
    return Reading(Row(variant=variant, reason=series.missing or without))


def judge(document: str, claim: Claim, readings: Mapping[str, Reading], backend: str, rates: Rates) -> Verdict:
    """Return the verdict on one claim. rates: of the device."""
    try:
        if backend in claim.untestable:
            raise _UntestableError(claim.untestable[backend])
        of = _measured(claim.of, readings, claim.kind)
        over = _measured(claim.over, readings, claim.kind) if claim.over else []
        found = _quantity(claim, of, over, rates)
    except _UntestableError as error:
        return Verdict(document=document, claim=claim.name, holding=Holding.UNTESTABLE, reason=str(error))
    holding = decide(found, claim.at_least, claim.at_most, claim.published)
    used = [] if claim.kind in ("footprint", *ERRORS) else [*of, *over]
    return Verdict(
        document=document,
        claim=claim.name,
        holding=holding,
        reason=_sentence(claim, found, holding),
        low=found.low,
        median=found.median,
        high=found.high,
        beside_published=beside(found, claim.published),
        disturbed=any(one.measurement.disturbed for one in used),
    )


def rests_on(claim: Claim, readings: Mapping[str, Reading]) -> tuple[Reading, ...]:
    """Return the rows whose speeds a claim compares: the fastest of each side, of a spread also the slowest."""
    if claim.kind in ("footprint", *ERRORS):
        return ()
    try:
        kind = "ratio" if claim.kind in COUNTED else claim.kind  # counters may not have been read yet
        sides = [_measured(names, readings, kind) for names in (claim.of, claim.over) if names]
    except _UntestableError:
        return ()
    found = [min(side, key=_seconds_per_site) for side in sides]
    return (*found, *([max(sides[0], key=_seconds_per_site)] if claim.kind == "spread" else ()))


def decide(
    found: Interval, at_least: float | None, at_most: float | None, published: tuple[float, float] | None = None
) -> Holding:
    """Decide by an interval: holds if it lies within the bounds, fails if it lies beyond one.

    If it covers a bound, it fails where it does not reach the published range, and is undecided where it does or where
    no figure is printed.
    """
    if (at_least is not None and found.high < at_least) or (at_most is not None and found.low > at_most):
        return Holding.FAILS
    if (at_least is not None and found.low < at_least) or (at_most is not None and found.high > at_most):
        return Holding.FAILS if beside(found, published) in ("less", "more") else Holding.UNDECIDED
    return Holding.HOLDS


def beside(found: Interval, published: tuple[float, float] | None) -> str:
    """Compare an interval with the published range: 'as published', 'less', 'more', or empty without one."""
    if published is None:
        return ""
    low, high = published
    return "less" if found.high < low else "more" if found.low > high else "as published"


def speed_ratio(of: Reading, over: Reading) -> Interval:
    """Return the ratio of two speeds: by pairs of samples if they were measured interleaved.

    Otherwise the bounds of the intervals are divided, which gives a wider interval.
    """
    a, b = of.measurement, over.measurement
    scale = a.sites / b.sites
    if of.group is over.group and len(a.samples_s) == len(b.samples_s):
        return Interval(*(scale * value for value in paired_ratio(b.samples_s, a.samples_s)))
    x, y = median_interval(a.samples_s), median_interval(b.samples_s)
    return Interval(scale * y.low / x.high, scale * y.median / x.median, scale * y.high / x.low)


def _measured(names: Sequence[str], readings: Mapping[str, Reading], kind: str) -> list[Reading]:
    """Return the named readings that have what a kind of claim needs; a spread needs two.

    Raises _UntestableError if there are none.
    """
    named = [readings[name] for name in names]
    good = [one for one in named if _has(one.row, kind)]
    if not good or (kind == "spread" and len(good) < 2):
        without = "no counters were read of it" if kind in COUNTED else "it was not measured"
        raise _UntestableError(next((one.row.why_not for one in named if one.row.why_not), without))
    return good


def _has(row: Row, kind: str) -> bool:
    if kind == "footprint":
        return row.footprint_bytes > 0
    if names := _counters_of(kind):
        return not row.why_not and row.counters is not None and row.counters.total(*names) is not None
    return not row.why_not and (kind not in ERRORS or (row.trial is not None and row.trial.accuracy is not None))


def _quantity(claim: Claim, of: Sequence[Reading], over: Sequence[Reading], rates: Rates) -> Interval:
    if claim.kind == "footprint":
        return _exactly(of[0].row.footprint_bytes / over[0].row.footprint_bytes)
    if claim.kind in ERRORS:
        return _error(claim, of[0])
    fast = min(of, key=_seconds_per_site)
    if claim.kind == "counted-bytes":
        return _exactly(_counted(claim, fast) / fast.measurement.bytes_per_update)
    if claim.kind == "bandwidth":
        return _bandwidth(fast.measurement, rates.fitting(fast.row.config))
    if claim.kind == "spread":
        ratio = speed_ratio(fast, max(of, key=_seconds_per_site))
        return Interval(ratio.low - 1, ratio.median - 1, ratio.high - 1)
    base = min(over, key=_seconds_per_site)
    if claim.kind in COUNTED:
        counted = _counted(claim, fast) / _counted(claim, base)
        return _exactly(1 - counted if claim.kind == "fewer-stores" else counted)
    if claim.kind == "interval-loss":
        return _interval_loss(fast, base, claim.every)
    ratio = speed_ratio(fast, base)
    return ratio if claim.kind == "ratio" else Interval(1 - ratio.high, 1 - ratio.median, 1 - ratio.low)


def _counters_of(kind: str) -> tuple[str, ...]:
    return next((names for one, names in COUNTED.items() if one == kind), ())


def _counted(claim: Claim, of: Reading) -> float:
    """Return the sum of the counters of a kind of claim, per update."""
    assert of.row.counters is not None
    return of.row.counters.total(*COUNTED[claim.kind]) or 0.0


def _seconds_per_site(reading: Reading) -> float:
    return reading.step_s / reading.measurement.sites


def _exactly(value: float) -> Interval:
    return Interval(value, value, value)


def _error(claim: Claim, of: Reading) -> Interval:
    """Return the least, median and greatest ratio of errors over the velocities."""
    assert of.row.trial is not None
    assert of.row.trial.accuracy is not None
    what = claim.kind.removesuffix("-error")
    points = [point for point in of.row.trial.accuracy.points if point.velocity_scale in claim.velocities]
    pairs = [(getattr(p, f"{what}_to_exact"), getattr(p, f"reference_{what}_to_exact")) for p in points]
    if not pairs:
        raise _UntestableError("the error was measured at none of these velocities")
    if any(own is None or exact is None for own, exact in pairs):
        raise _UntestableError("the vortex did not stay finite")
    ratios = [own / exact for own, exact in pairs]
    return Interval(min(ratios), median(ratios), max(ratios))


def _bandwidth(measurement: Measurement, bytes_per_s: float) -> Interval:
    step = median_interval(measurement.samples_s)
    moved = measurement.bytes_per_update * measurement.sites / bytes_per_s
    return Interval(moved / step.high, moved / step.median, moved / step.low)


def _interval_loss(of: Reading, base: Reading, every: int) -> Interval:
    """Return the share of time that a side task takes every n steps, from runs with it every m steps.

    With t the time of a step, and t' that with the task, the task takes c = m (t' - t), and the share c / (n t + c).
    """
    assert of.row.duty is not None
    often = of.row.duty.every
    pairs = zip(of.measurement.samples_s, base.measurement.samples_s, strict=True)
    costs = [(max(0.0, often * (with_duty - step)), step) for with_duty, step in pairs]
    return median_interval([cost / (every * step + cost) for cost, step in costs])


def shown(kind: str, value: float) -> str:
    """Return a quantity as text: a ratio as 1.068x, a share in per cent."""
    return f"{value:.{3 if value >= 10 else 4}g}x" if kind in ("ratio", *ERRORS) else _percent(value)


def shown_interval(kind: str, found: Interval) -> str:
    """Return a measured quantity with its interval as text."""
    of = ", by velocity" if kind in ERRORS else ""
    spread = f" ({shown(kind, found.low)} .. {shown(kind, found.high)}{of})" if found.high > found.low else ""
    return f"{shown(kind, found.median)}{spread}"


def shown_range(claim: Claim) -> str:
    """Return the published value or range of a claim as text; empty without one."""
    return " .. ".join(dict.fromkeys(shown(claim.kind, value) for value in claim.published or ()))


def _percent(value: float) -> str:
    return f"{100 * value:.2g} %" if abs(value) < 0.1 else f"{100 * value:.1f} %"


def _sentence(claim: Claim, found: Interval, holding: Holding) -> str:
    bounds = (("at least", claim.at_least), ("at most", claim.at_most))
    asked = " and ".join(f"{word} {shown(claim.kind, value)}" for word, value in bounds if value is not None)
    printed = f", printed {shown_range(claim)}" if claim.published else ""
    covers = ", which its interval covers" if holding is Holding.UNDECIDED else ""
    if holding is Holding.FAILS and decide(found, claim.at_least, claim.at_most) is Holding.UNDECIDED:
        covers = ": its interval covers the bound and does not reach what is printed"
    return f"measured {shown_interval(claim.kind, found)}; {asked} is claimed{printed}{covers}"
