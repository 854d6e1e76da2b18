"""A study: its header and its trials. On disk: one folder.

study.json      the header, written once
trials.jsonl    one trial a line, appended and flushed to disk before the search continues (.gz in recorded sets)
parts.jsonl     of a study on several devices: one kernel on parts with one exchange a line
optuna.log      Optuna's journal, rebuilt from the trials when a study is resumed
report.html, best.json
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property, wraps
from math import inf, isfinite, log
from typing import Any, TypeVar

from lbmtune.records import Costs, Trial
from lbmtune.records.comparison.race import Verdict, slower, verdict
from lbmtune.records.comparison.repeats import RepeatInterval, repeat_interval
from lbmtune.records.comparison.statistics import Interval, paired_ratio, repeat_spread
from lbmtune.records.header import StudyHeader
from lbmtune.records.parts import PartsTrial, ranked_parts

T = TypeVar("T")
OVERTAKES = 0.02
"""Relative lead over seconds without a pause from which on it is clear."""
ALIKE = 1.01
"""Ratio of two footprints up to which they are the same: paddings differ by less."""


@dataclass(frozen=True, kw_only=True)
class StudyRecord:
    """A study, as read from its folder. on_parts: its finals on several devices, in the order of their end."""

    header: StudyHeader
    trials: tuple[Trial, ...]
    on_parts: tuple[PartsTrial, ...] = ()

    @cached_property
    def known(self) -> dict[str, Any]:
        """Results of functions of the study alone, by their names (`once`)."""
        return {}

    @cached_property
    def ranked(self) -> tuple[Trial, ...]:
        """Return the verified trials, best first: by the objective, but for one that leads over seconds.

        A solver runs without a pause. If speed is the only objective, the first is the trial that is clearly the
        fastest in a sustained run, of those that are as well proven as the fastest in bursts.
        """
        leader = self._leader_over_seconds
        if leader is None:
            return self._by_objective
        return (leader, *(trial for trial in self._by_objective if trial is not leader))

    @property
    def overtaken(self) -> Trial | None:
        """Return the trial that is the fastest in bursts, if another one wins over seconds without a pause."""
        return self._by_objective[0] if self._leader_over_seconds else None

    @cached_property
    def _leader_over_seconds(self) -> Trial | None:
        """The trial that overtakes the fastest in bursts over seconds by more than the spread of bursts, or None."""
        first = next(iter(self._by_objective), None)
        if first is None or self.header.spec.objectives != ("mlups",) or not (first.sustained and first.final):
            return None
        runs = {t.number: t.sustained.mlups for t in self._by_objective if t.sustained and not t.sustained.disturbed}
        alike = (t for t in self._by_objective if t.number in runs and self._standing(t) == self._standing(first))
        leader = max(alike, key=lambda trial: runs[trial.number], default=first)
        if first.number not in runs or leader is first:
            return None
        lead = runs[leader.number] / runs[first.number] - 1
        return leader if lead > max(OVERTAKES, self.interval(first).half_width) else None

    def _standing(self, trial: Trial) -> tuple[bool, int, bool]:
        """Return how well a trial is measured and proven, whatever its objectives; lower is better."""
        return trial.final is None, self.power_rank(trial), not trial.proven

    @cached_property
    def _by_objective(self) -> tuple[Trial, ...]:
        """The verified trials, best first by the objective.

        Those with a final measurement come first, then those that were verified at full size, then those of which each
        objective is known. Of those that the finals do not tell from the fastest, the best by further objectives comes
        first, then the smallest; early records have no such ties. If the study limits their power, finalists within it
        come first.
        """
        valid = [t for t in self.trials if t.mlups is not None]
        names = self.header.spec.objectives

        def rank(trial: Trial) -> tuple[tuple[bool, int, bool], bool, list[float], float]:
            tied = names[0] == "mlups" and trial.number in self._level
            costs = [*(self.cost(trial, name) for name in names), *([self._size(trial)] if tied else [])]
            return (
                self._standing(trial),
                None in costs[: len(names)],
                [inf if cost is None else cost for cost in costs],
                -(trial.mlups or 0.0),
            )

        return tuple(sorted(valid, key=rank))

    def _size(self, trial: Trial) -> float | None:
        """Return the footprint of a finalist that is tied with the fastest; the same of all that are as small."""
        known = [t.prediction.footprint_bytes for t in self.trials if t.prediction and t.number in self._level]
        return max(trial.prediction.footprint_bytes, ALIKE * min(known)) if trial.prediction else None

    @cached_property
    def _level(self) -> dict[int, float]:
        """The speed of the fastest, by the number of each finalist that the finals do not tell from it."""
        if self.race is None or not self.header.stopped:
            return {}
        fastest = next(trial.mlups or 0.0 for trial in self.trials if trial.number == self.race.first)
        return dict.fromkeys((self.race.first, *self.race.tied), fastest)

    def cost(self, trial: Trial, objective: str) -> float | None:
        """Return an objective of a trial, lower is better; None if it is not known, or no finite number.

        Speeds are negated, and equal if the finals do not tell them apart; errors count by their class.
        """
        if objective == "mlups":
            return None if trial.mlups is None else -self._level.get(trial.number, trial.mlups)
        if objective == "footprint":
            return trial.prediction.footprint_bytes if trial.prediction else None
        if objective == "energy":
            return trial.sustained.nj_per_update if trial.sustained else None
        return trial.accuracy.error_class if trial.accuracy and isfinite(trial.accuracy.error) else None

    @cached_property
    def race(self) -> Verdict | None:
        """Return what the finals say: who is first, by how much, and who is tied; None without finals.

        One that the interval of the first does not cover is not tied, although its rounds do not tell it apart.
        """
        found = verdict(self.trials)
        if found is None:
            return None
        finals = {trial.number: trial for trial in self.trials if trial.number in (found.first, *found.tied)}
        low = self.interval(finals[found.first]).low_mlups
        beyond = tuple(number for number in found.tied if (finals[number].mlups or 0.0) < low)
        tied = tuple(number for number in found.tied if number not in beyond)
        return replace(found, tied=tied, untold=(*beyond, *found.untold))

    def paired_with_winner(self, trial: Trial) -> Interval | None:
        """Return the speed of a finalist over the winner's, by rounds of both, which cancels drift.

        None if they were not measured in turns.
        """
        winner = self.ranked[0]
        if trial is winner or not (winner.final and trial.final):
            return None
        mine, best = trial.final.samples_s, winner.final.samples_s
        # samples are paired by round; who was dropped took part in the first ones
        rounds = min(len(mine), len(best))
        if not rounds or (len(mine) != len(best) and not self.header.stopped):
            return None
        return paired_ratio(best[:rounds], mine[:rounds])

    @property
    def winner_on_parts(self) -> tuple[PartsTrial, Trial] | None:
        """Return the fastest of the finals on several devices, with the trial of its kernel; None without such ones."""
        of = {trial.number: trial for trial in self.trials}
        return next(((one, of[one.number]) for one in ranked_parts(self.on_parts) if one.number in of), None)

    @property
    def winner(self) -> Trial | None:
        """Return the best trial, if it was verified on the whole domain and stays within the power of the study."""
        return next((t for t in self.ranked[:1] if t.proven and self.power_rank(t) == 0), None)

    def power_rank(self, trial: Trial) -> int:
        """Return 0 if a trial stays within the power that the study allows, 1 if that is unknown, 2 if it does not."""
        most, run = self.header.spec.max_power_w, trial.sustained
        if most is None:
            return 0
        return 1 if run is None or run.power_w is None else 2 * (run.power_w > most)

    @property
    def devices(self) -> dict[str, int]:
        """Return how many trials each device verified, by its id; the first is that of the environment."""
        own = self.header.environment.device_id
        tried = Counter(trial.device or own for trial in self.trials if trial.costs.verify_s > 0)
        return {own: tried.pop(own, 0), **tried}

    @cached_property
    def between_runs(self) -> float | None:
        """Return how far a repeat in another run lies away (`repeat_spread`), or None if it was not measured.

        The wider of two: of kernels measured again when the machine was calibrated, and of trials measured again here.
        """
        own = [log(t.again.mlups / t.measurement.mlups) for t in self.trials if t.measurement and t.again]
        return _widest(repeat_spread(self.header.repeats), repeat_spread(own))

    @cached_property
    def between_first_and_final(self) -> float | None:
        """Return how far finals lie from first measurements: a GPU rests between samples of finals; None: unknown."""
        pairs = [log(t.final.mlups / t.measurement.mlups) for t in self.trials if t.measurement and t.final]
        return _widest(self.between_runs, repeat_spread(pairs))

    def interval(self, trial: Trial) -> RepeatInterval:
        """Return the interval of a measured trial that holds 90 % of repeats; of a first measurement also of finals."""
        return repeat_interval(
            trial.best_measurement, self.between_runs if trial.final else self.between_first_and_final
        )

    @cached_property
    def tied(self) -> frozenset[int]:
        """Return the numbers of trials that the interval of the fastest covers, measured alike: order by chance.

        One that was slower at 95 % in the same rounds of the finals is none of them. None is if the winner leads over
        seconds alone, of which there is one run each.
        """
        best, *others = self.ranked or (None,)
        if best is None or self.header.spec.objective != "mlups":
            return frozenset()
        if best.number in self._level:
            return frozenset(self._level) - {best.number}
        if self.overtaken:
            return frozenset()
        low = self.interval(best).low_mlups
        alike = (t for t in others if t and (t.final is None) == (best.final is None))
        return frozenset(t.number for t in alike if (t.mlups or 0.0) >= low and not slower(t, best))

    @cached_property
    def untold(self) -> tuple[int, ...]:
        """Return the finalists that may be as fast as the winner: their rounds do not tell, and the intervals meet."""
        if self.race is None or self.overtaken:
            return ()
        low = self.interval(self.ranked[0]).low_mlups
        near = (trial for trial in self.ranked if trial.number in self.race.untold)
        return tuple(trial.number for trial in near if self.interval(trial).high_mlups >= low)

    @property
    def finished(self) -> bool:
        """Return whether the study came to its end; in early records, whether it has a winner."""
        return self.winner is not None if self.header.finished is None else self.header.finished

    def share_of_ceiling(self, trial: Trial) -> float:
        """Return the bandwidth of a measured trial over the ceiling (`Ceiling.best_bytes_per_s`)."""
        return self.header.ceiling.share(trial)

    @property
    def verified_binaries(self) -> int:
        """Return the number of verified and measured kernels, by the digest of the compiled code."""
        return len({trial.binary_digest for trial in self.ranked})

    @property
    def search_s(self) -> float:
        """Return the seconds of the search, predictions included, until the end of its last trial.

        By dates in early records: from the beginning to the start of the last trial, in whole seconds.
        """
        noted = [t.elapsed_s for t in self.trials if t.elapsed_s is not None]
        if noted:
            return max(noted)
        dates = [datetime.fromisoformat(t.date) for t in self.trials if t.date]
        return (max(dates) - datetime.fromisoformat(self.header.date)).total_seconds() if dates else 0.0

    @property
    def verified_per_s(self) -> float | None:
        """Return the verified configurations per second of the search, or None."""
        return self.verified_binaries / self.search_s if self.search_s else None

    @property
    def costs(self) -> Costs:
        """Return the seconds spent on all trials, by stage."""
        return Costs(**{f.name: sum(getattr(t.costs, f.name) for t in self.trials) for f in fields(Costs)})


def once(function: Callable[[StudyRecord], T]) -> Callable[[StudyRecord], T]:
    """Compute a function of a study once, and keep the result with the study."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(study: StudyRecord) -> T:
        if name not in study.known:
            study.known[name] = function(study)
        found: T = study.known[name]
        return found

    return kept


def _widest(*spreads: float | None) -> float | None:
    return max((one for one in spreads if one is not None), default=None)
