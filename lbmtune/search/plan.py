"""What a study does in the time that it has after the search, and what it leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lbmtune.records import Trial
from lbmtune.search.clock import FEWEST_ROUNDS, FILES_S, Clock, Needs, now

_FINALS, _SUSTAINED, _ACCURACY, _OUTPUT = 0.25, 0.15, 0.1, 0.25
"""Shares of the whole that finals may take beyond two finalists, and that the parts after them may take at all."""
_BEST_EFFORT = 5.0
"""Time for a winner in a study that is too short for one, in multiples of what it should take."""
_SEARCH_ON = 0.1
"""Share of the whole from which on what is left goes into more search."""


@dataclass
class Plan:
    """The time of a study, and what must follow the search. left_out: what did not fit, in words."""

    clock: Clock
    needs: Needs
    left_out: list[str] = field(default_factory=list)

    @property
    def later_s(self) -> float:
        """Seconds of what is planned after the finals."""
        needs, whole_s = self.needs, self.clock.limit_s
        parts = ((needs.sustained_s, _SUSTAINED), (needs.accuracy_s, _ACCURACY), (needs.output_s, _OUTPUT))
        return FILES_S + sum(seconds for seconds, share in parts if seconds <= share * whole_s)

    @property
    def after_search_s(self) -> float:
        """Seconds of all that is planned after the search."""
        count = self.needs.spec.protocol.finalists
        most_s = max(_FINALS * self.clock.limit_s, self._finals_s(2, 1))
        return self.later_s + min(self._finals_s(count, count - 1), most_s)

    def search_left_s(self) -> float:
        """Return the seconds until the search must end."""
        return self.clock.left_s - self.after_search_s

    @property
    def search_deadline_s(self) -> float:
        """When a trial in progress must end, on `time.monotonic`, or no time for a winner would be left."""
        return max(self.clock.deadline_s, self.least_end_s) - self.needs.least_s

    @property
    def least_end_s(self) -> float:
        """When a study ends at the earliest that begins to search now: it measures and proves two kernels."""
        return now() + _BEST_EFFORT * self.needs.least_s

    def goes_on(self) -> bool:
        """Return whether so much time is left after the finals that the search goes on."""
        left_s = self.clock.left_s - self.later_s
        return left_s > max(_SEARCH_ON * self.clock.limit_s, self.needs.race_s(self.needs.spec.protocol.finalists))

    def race_left_s(self, unproven: int) -> float:
        """Return the seconds for the turns of the finals after so many proofs."""
        return max(self.clock.left_s - self.later_s - unproven * self.needs.proof_s, 0.0)

    def fitting(self, finalists: Sequence[Trial]) -> tuple[Trial, ...]:
        """Return the finalists that fit into the time, the fastest first; one, if no kernel is proven."""
        left_s = self.clock.left_s - self.later_s
        chosen: list[Trial] = []
        for trial in finalists:
            unproven = sum(not one.proven for one in (*chosen, trial))
            if self._finals_s(len(chosen) + 1, unproven) <= left_s:
                chosen.append(trial)
        if not chosen and not any(trial.proven for trial in finalists):
            chosen = list(finalists[:1])
        return tuple(chosen)

    def fits(self, seconds: float, what: str) -> bool:
        """Return whether a part fits into what is left; note that it is left out if it does not."""
        left_s = self.clock.left_s - FILES_S
        if seconds <= left_s:
            return True
        self.left_out.append(f"{what}: {seconds:.1f} s, {max(left_s, 0.0):.1f} s were left")
        return False

    def _finals_s(self, count: int, unproven: int) -> float:
        return unproven * self.needs.proof_s + self.needs.race_s(count, FEWEST_ROUNDS)
