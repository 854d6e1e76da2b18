"""Plan what a study does in the time that it has after the search, and note what it leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.records import Trial
from lbmtune.search.clock import COMPARED_RUNS, FEWEST_ROUNDS, SLACK, Clock, Needs, now

_FINALS, _SUSTAINED, _ACCURACY, _PROFILE = 0.25, 0.15, 0.1, 0.1
"""Shares of the whole that finals may take beyond two finalists, and that the parts after them may take at all."""
_OUTPUT, _OUTPUT_OF_ONE = 0.25, 0.5
"""Shares that the output of all finalists may take, and that of the best, which was asked for."""
_TWO = 2
"""Finalists of which one is the winner."""
_LOWER_CLOCKS = 1.1
"""Most time of a run without a pause in multiples of what its warm-up tells: clocks fall under load."""
_BEST_EFFORT = 5.0
"""Time for a winner in a study that is too short for one, in multiples of what it should take."""
_SEARCH_ON, _WORTH = 0.08, 0.02
"""Shares of the whole from which on what is left after the finals goes into more search: all of it, and of search."""


@dataclass
class Plan:
    """The time of a study, and what must follow the search.

    left_out: what did not fit, in words; no_finals: why finalists have no finals, '' if all have or nothing is known;
    held: finals were held, and the search goes on with what is left; end_s: when what is in progress must end, on
    `time.monotonic`: later, if there is not even time for a winner.
    """

    clock: Clock
    needs: Needs
    held: bool = False
    left_out: list[str] = field(default_factory=list)
    no_finals: str = ""
    end_s: float = field(init=False)

    def __post_init__(self) -> None:
        short = self.search_left_s() <= 0
        self.end_s = now() + _BEST_EFFORT * self.needs.least_s if short else self.clock.deadline_s

    @property
    def limited(self) -> bool:
        """Return whether the time of the whole is limited."""
        return self.clock.limit_s < inf

    @property
    def later_s(self) -> float:
        """Return the seconds of what is planned after the finals."""
        return self.needs.files_s + sum(self.later.values())

    @property
    def later(self) -> dict[str, float]:
        """Return the seconds of each part after the finals that takes no more than its share of the whole."""
        needs, whole_s = self.needs, self.clock.limit_s
        sustained = 1.0 if needs.runs_decide else _SUSTAINED
        parts = {
            "output": (self._with_output() * needs.output_s, _OUTPUT_OF_ONE),
            "accuracy": (needs.accuracy_s, _ACCURACY),
            "sustained runs": (self._runs() * needs.run_s or needs.sustained_s, sustained),
            "profile": (needs.profile_s, _PROFILE),
        }
        return {name: seconds for name, (seconds, share) in parts.items() if 0 < seconds <= share * whole_s}

    def _runs(self) -> int:
        """Return for how many runs without a pause there is a share of the time; 0 if they are as many as asked for.

        Where power has a cap, others than the winner in bursts may lead over seconds.
        """
        if self.needs.compares_runs and BACKENDS[self.needs.backend].power_capped:
            return max(1, int(min(COMPARED_RUNS, _SUSTAINED * self.clock.limit_s / self.needs.run_s)))
        return 0

    def _with_output(self) -> int:
        """Return how many finalists have their output measured: as many as take no more than its share, or one."""
        each_s, finalists = self.needs.output_s, self.needs.spec.protocol.finalists
        return max(1, int(min(finalists, _OUTPUT * self.clock.limit_s / each_s))) if each_s else 0

    @property
    def after_search_s(self) -> float:
        """Return the seconds of all that is planned after the search."""
        return self.later_s + self.races_s

    @property
    def races_s(self) -> float:
        """Return the seconds of the finals: all finalists, or as many as fit into their share, at least two."""
        least_s = self._finals_s(2, 1)
        if self.held:
            return least_s
        count = self.needs.spec.protocol.finalists
        return min(self._finals_s(count, count - 1), max(_FINALS * self.clock.limit_s, least_s))

    def search_left_s(self) -> float:
        """Return the seconds until the search must end."""
        return self.clock.left_s - self.after_search_s

    @property
    def search_deadline_s(self) -> float:
        """Return when a trial in progress must end, on `time.monotonic`, or no time for a winner would be left."""
        return self.end_s - (SLACK * self.clock.limit_s if self.limited else 0.0) - self.needs.least_s

    def goes_on(self) -> bool:
        """Return whether so much time is left after the finals that the search goes on."""
        self.held = True
        left_s, whole_s = self.clock.left_s - self.later_s, self.clock.limit_s
        return left_s > _SEARCH_ON * whole_s and self.search_left_s() > _WORTH * whole_s

    def race_left_s(self, count: int, unproven: int) -> float:
        """Return the seconds for the turns of so many finalists after the proofs of some."""
        spent_s = unproven * self.needs.proof_s + count * self.needs.prepare_s
        fewest_s = self.needs.race_s(count, FEWEST_ROUNDS) - count * self.needs.prepare_s
        left_s = self.clock.left_s - spent_s
        return max(left_s - self.later_s, min(left_s - self.needs.files_s, fewest_s), 0.0)

    def fitting(self, finalists: Sequence[Trial]) -> tuple[Trial, ...]:
        """Return the finalists that fit into the time, the fastest first; one, if no kernel is proven.

        Two come before all that follows them, others after that.
        """
        left_s, chosen = self.clock.left_s, list[Trial]()
        for trial in finalists:
            unproven = sum(not one.proven for one in (*chosen, trial))
            rest_s = self.needs.files_s if len(chosen) < _TWO else self.later_s
            if self._finals_s(len(chosen) + 1, unproven) <= left_s - rest_s:
                chosen.append(trial)
        if not chosen and not any(trial.proven for trial in finalists):
            chosen = list(finalists[:1])
        return tuple(chosen)

    def finals_s(self, finalists: Sequence[Trial]) -> float:
        """Return the seconds that the finals of these take at most."""
        return sum(not t.proven for t in finalists) * self.needs.proof_s + self.needs.race_s(len(finalists))

    def fits(self, seconds: float, what: str) -> bool:
        """Return whether a part fits into what is left; note that it is left out if it does not."""
        left_s = self.clock.left_s - self.needs.files_s
        if seconds <= left_s:
            return True
        self.left_out.append(f"{what}: {seconds:.1f} s, {max(left_s, 0.0):.1f} s were left")
        return False

    def run_s(self, count: int) -> float:
        """Return the seconds of each of so many runs without a pause: they fill what is left if nothing follows."""
        needs, protocol = self.needs, self.needs.spec.protocol
        if needs.runs_decide or not self.limited:
            return protocol.sustained_s
        left_s = (self.clock.left_s - self.later.get("profile", 0.0) - self.needs.files_s) / count - needs.run_s
        more_s = max(left_s / _LOWER_CLOCKS, 0.0)
        return protocol.sustained_s + min(more_s, protocol.longest_run_s - protocol.sustained_s)

    def runs_left(self) -> int:
        """Return how many runs without a pause fit into what is left of a limited time, before the profile."""
        left_s = self.clock.left_s - self.later.get("profile", 0.0) - self.needs.files_s
        return int(left_s / self.needs.run_s)

    def some(self, trials: list[Trial], each_s: float) -> list[Trial]:
        """Return the first of the trials, as many as fit into what is left, and at least one."""
        return trials[: int(min(len(trials), max(1.0, (self.clock.left_s - self.needs.files_s) / each_s)))]

    def _finals_s(self, count: int, unproven: int) -> float:
        return unproven * self.needs.proof_s + self.needs.race_s(count, FEWEST_ROUNDS)
