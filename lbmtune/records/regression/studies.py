"""Compare studies: of the winners, of all kernels together and of each kernel, what is faster or slower than it was.

A change counts if two measurements show it: that of the winners, that of the median kernel, and those of kernels with
finals in both studies. A kernel that was measured once in each may have been disturbed: it is listed and does not
count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from statistics import median

from lbmtune.catalogue.config import Scalar
from lbmtune.records.comparison.statistics import FEWEST_PAIRS, repeat_spread
from lbmtune.records.measurement import Measurement
from lbmtune.records.regression.kernels import apart, key_without
from lbmtune.records.regression.ratios import Ratio, Verdict, median_ratio, ratio_of
from lbmtune.records.study import StudyRecord
from lbmtune.records.trial import Trial

_LEAST_SCATTER = 12
"""Kernels that two studies share from which on the scatter of their ratios stands for the spread between runs."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A kernel in two studies. was_mlups, mlups: finals if both studies have one, else first measurements.

    counts: whether a change of it is a regression: both have finals; disturbed: one of the two was not left alone.
    """

    was_key: str
    key: str
    configuration: dict[str, Scalar]
    was_mlups: float
    mlups: float
    ratio: Ratio
    counts: bool
    disturbed: bool

    @property
    def verdict(self) -> Verdict:
        """Return whether it is faster, slower, or the same within the noise."""
        return self.ratio.verdict


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A condition of speeds that differs: of the case, the device, the software or the precision."""

    name: str
    was: str
    now: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A study beside an earlier one. winners: the best of each; whole: of the median kernel; None without kernels.

    between: the spread between runs, a logarithm; scattered: whether it is the scatter of the ratios around their
    median, since neither study measured it. changes: of kernels that both measured, the slowest first.
    texts: number of kernels whose text is another one.
    """

    differences: tuple[Difference, ...]
    between: float | None
    scattered: bool
    winners: Change | None
    whole: Ratio | None
    changes: tuple[Change, ...]
    texts: int

    @property
    def regressions(self) -> tuple[str, ...]:
        """Return what is slower beyond the noise: 'winner', 'all kernels' or keys."""
        counted = [(one.key, one.ratio) for one in self.changes if one.counts]
        named = [("the winner", self.winners and self.winners.ratio), ("all kernels", self.whole), *counted]
        return tuple(name for name, ratio in named if ratio and ratio.verdict is Verdict.SLOWER)


def compared(was: StudyRecord, now: StudyRecord, others: int = 1) -> Comparison:
    """Return a study beside an earlier one. others: studies that are compared with the earlier one altogether."""
    pairs = list(_pairs(was, now))
    between, scattered = _between(was, now, pairs)
    counted = sum(pair.counts for pair in pairs)
    decides, each = others * (2 + counted), others * max(1, len(pairs) - counted)
    changes = [pair.change(between, decides if pair.counts else each) for pair in pairs]
    ratios = [one.mlups / one.was_mlups for one in changes]
    return Comparison(
        differences=tuple(_differences(was, now)),
        between=between,
        scattered=scattered,
        winners=_winners(was, now, between, scattered, decides),
        whole=median_ratio(ratios, between, decides) if len(ratios) >= FEWEST_PAIRS else None,
        changes=tuple(sorted(changes, key=lambda one: one.ratio.ratio)),
        texts=sum(_other_text(pair.was, pair.now) for pair in pairs),
    )


@dataclass(frozen=True)
class _Pair:
    """Trials of one kernel in two studies, with the measurements that are alike."""

    was: Trial
    now: Trial
    measured: tuple[Measurement, Measurement]
    counts: bool

    @property
    def log_ratio(self) -> float:
        return log(self.measured[1].mlups / self.measured[0].mlups)

    def change(self, between: float | None, questions: int) -> Change:
        earlier, later = self.measured
        return Change(
            was_key=self.was.key,
            key=self.now.key,
            configuration=dict(self.now.config),
            was_mlups=earlier.mlups,
            mlups=later.mlups,
            ratio=ratio_of(earlier, later, between, questions),
            counts=self.counts,
            disturbed=earlier.disturbed or later.disturbed,
        )


def _pairs(was: StudyRecord, now: StudyRecord) -> Iterator[_Pair]:
    """Yield the kernels that both studies measured, with finals or with first measurements of both."""
    key = key_without(apart((was, now)))
    earlier = {key(trial): trial for trial in reversed(was.ranked)}
    for trial in now.ranked:
        before = earlier.get(key(trial))
        if before and (found := _alike(before, trial)):
            yield found


def _alike(was: Trial, now: Trial) -> _Pair | None:
    if was.final and now.final:
        return _Pair(was, now, (was.final, now.final), True)
    earlier, later = was.measurement, now.measurement
    if earlier is None or later is None or earlier.dismissed or later.dismissed:
        return None
    return _Pair(was, now, (earlier, later), False)


def _between(was: StudyRecord, now: StudyRecord, pairs: Sequence[_Pair]) -> tuple[float | None, bool]:
    """Return the spread between runs, and whether it is the scatter of the ratios."""
    known = [one for one in (was.between_runs, now.between_runs) if one is not None]
    if known or len(pairs) < _LEAST_SCATTER:
        return max(known, default=None), False
    logs = [pair.log_ratio for pair in pairs]
    middle = median(logs)
    return repeat_spread([one - middle for one in logs]), True


def _winners(
    was: StudyRecord, now: StudyRecord, between: float | None, scattered: bool, questions: int
) -> Change | None:
    """Return the best of a study beside the best of an earlier one in bursts, whichever kernels they are."""
    if not was.ranked or not now.ranked:
        return None
    first, last = (study.overtaken or study.ranked[0] for study in (was, now))
    alike = (first.final is None) == (last.final is None)
    wider = [one for one in (was.between_first_and_final, now.between_first_and_final) if one is not None]
    spread = between if alike or scattered else max(wider, default=between)
    return _Pair(first, last, (first.best_measurement, last.best_measurement), True).change(spread, questions)


def _other_text(was: Trial, now: Trial) -> bool:
    return (
        was.key == now.key and bool(was.source_digest and now.source_digest) and was.source_digest != now.source_digest
    )


def _differences(was: StudyRecord, now: StudyRecord) -> Iterator[Difference]:
    """Yield what makes speeds of two studies differ, apart from chance."""
    earlier, later = was.header, now.header
    yield from (Difference(name=name, was=before, now=after) for name, (before, after) in apart((was, now)).items())
    for name, before in vars(earlier.spec.case).items():
        if before != (after := getattr(later.spec.case, name)):
            yield Difference(name=f"case.{name}", was=_text(before), now=_text(after))
    for name, before, after in earlier.environment.differences(later.environment):
        yield Difference(name=name, was=_text(before), now=_text(after))
    packages = earlier.environment.packages, later.environment.packages
    for name in sorted(packages[0].keys() & packages[1].keys()):
        if packages[0][name] != packages[1][name]:
            yield Difference(name=name, was=packages[0][name], now=packages[1][name])
    if earlier.version != later.version:
        yield Difference(name="lbmtune", was=earlier.version, now=later.version)


def _text(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
