"""The time of a study as a whole: what is left, and what must still be done in it."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.records.output import rounds_s
from lbmtune.records.spec import StudySpec

_FILES_S, _FILE_S = 1.6, 0.004
"""Seconds of the last files of a study, the end of its processes included, and of each trial in them: on hosts of H100
with other work 1.5 s for 2 trials, 3 s for 300, 16 s for 6,500."""
FEWEST_ROUNDS = 6
"""Rounds of the finals below which nothing can be said at 95 %."""
SLACK = 0.05
"""Share of the whole by which it may end late before what is in progress is ended."""
_WAIT_S, _PREPARED_STEPS = 0.3, 20
"""Seconds and steps of a finalist before its first sample: it is loaded, filled, warmed up and looked at after."""
_PROOF_S = 2.0
"""Seconds of a proof at full size, as long as none was made."""
_ACCURACY_S = 3.0
"""Seconds of the accuracy of a rounding, as long as none was measured (2 s on two cores of an EPYC)."""
_LOSSES_S = {True: 4.0, False: 9.0}
"""Seconds of a profile beside its samples, on the host and on a GPU: two kernels are compiled and proved, or six."""
COMPARED_RUNS = 5
"""Runs without a pause that finalists nearly as fast and the best of one step have beside the winner, with its own."""
_FIELDS_S = 1.0
"""Seconds of a kernel before its output is timed: the pass is compiled and its fields are checked."""


def now() -> float:
    """Return the seconds of `time.monotonic`."""
    return time.monotonic()


def files_s(trials: int) -> float:
    """Return the seconds of the last files of a study of so many trials: report, journal of Optuna, best.json."""
    return _FILES_S + _FILE_S * trials


def process_begun_s() -> float:
    """Return when this process began, on `time.monotonic`; now, if the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return now()
    return ticks / os.sysconf("SC_CLK_TCK")  # since the machine was started, as `time.monotonic` on Linux


@dataclass(frozen=True)
class Clock:
    """The moment when a study began, on `time.monotonic`, and the seconds that it has, infinite without a limit."""

    begun_s: float
    limit_s: float = inf

    @property
    def spent_s(self) -> float:
        """Return the seconds since the study began."""
        return now() - self.begun_s

    @property
    def left_s(self) -> float:
        """Return the seconds that are left."""
        return self.limit_s - self.spent_s

    @property
    def deadline_s(self) -> float:
        """Return when what is in progress must end, on `time.monotonic`."""
        return self.begun_s + (1 + SLACK) * self.limit_s


@dataclass
class Needs:
    """Seconds of what follows the search, from what was measured so far.

    proof_s: of a verification at full size, compilation included; step_s: of the best kernel; outputs_s: of its output
    by kind, as predicted; accuracy_s: of a rounding; backend: decides if a device rests between samples; trials: done.
    """

    spec: StudySpec
    backend: str
    proof_s: float = _PROOF_S
    step_s: float = 0.0
    outputs_s: Mapping[str, float] = field(default_factory=dict)
    accuracy_s: float = _ACCURACY_S
    proofs: int = field(default=0)
    trials: int = 0
    _output_s: float | None = None

    def proven(self, seconds: float) -> None:
        """Note the seconds of a proof: the longest counts."""
        self.proof_s = max(self.proof_s, seconds) if self.proofs else seconds
        self.proofs += 1

    def output_took(self, seconds: float) -> None:
        """Note the seconds of the output of a kernel: the longest counts."""
        self._output_s = max(seconds, self._output_s or 0.0)

    def race_s(self, count: int, rounds: int | None = None) -> float:
        """Return the seconds of the finals of so many finalists, all proven."""
        protocol = self.spec.protocol
        rest = 2.0 if BACKENDS[self.backend].power_capped else 1.0
        sample_s = rest * max(1.1 * protocol.final_sample_s, 2 * self.step_s)
        return count * (self.prepare_s + (rounds or protocol.final_rounds) * sample_s)

    @property
    def prepare_s(self) -> float:
        """Return the seconds of a finalist before and after its samples."""
        return _WAIT_S + self.spec.protocol.warmup_s + _PREPARED_STEPS * self.step_s

    @property
    def least_s(self) -> float:
        """Return the seconds of the least: the best two are proven, and measured in turns."""
        return 2 * self.proof_s + self.race_s(2, FEWEST_ROUNDS) + self.files_s

    @property
    def files_s(self) -> float:
        """Return the seconds of the last files."""
        return files_s(self.trials)

    @property
    def sustained_s(self) -> float:
        """Return the seconds of the runs without a pause; those that limit the winner may be of all finalists."""
        protocol = self.spec.protocol
        runs = max(protocol.sustained_top, protocol.finalists) if self.runs_decide else protocol.sustained_top
        return runs * self.run_s

    @property
    def run_s(self) -> float:
        """Return the seconds of one of them."""
        protocol = self.spec.protocol
        run_s = protocol.settling_s + 1.2 * protocol.sustained_s  # with slices that are enqueued beyond it
        return run_s + _WAIT_S + 0.5 * self.proof_s

    @property
    def profile_s(self) -> float:
        """Return the seconds of the profile of the winner; 0 if none is made."""
        protocol = self.spec.protocol
        if not protocol.profiled or self.spec.kernel:
            return 0.0
        sample_s = max(1.1 * protocol.sample_s, 2 * self.step_s)
        timed_s = self.prepare_s + protocol.max_samples * sample_s
        return _LOSSES_S[BACKENDS[self.backend].shares_host] + 2 * timed_s

    @property
    def runs_decide(self) -> bool:
        """Return whether runs without a pause decide who wins."""
        return self.spec.max_power_w is not None or "energy" in self.spec.objectives

    @property
    def compares_runs(self) -> bool:
        """Return whether finalists share the time of the runs without a pause: speed alone is asked for, of one run."""
        asked = self.spec.objectives == ("mlups",) and self.spec.max_power_w is None
        return asked and self.spec.protocol.sustained_top == 1

    @property
    def output_s(self) -> float:
        """Return the seconds of the output of a kernel: measured, or at most by rates; 0 without output."""
        if self._output_s is not None or not self.spec.output:
            return self._output_s or 0.0
        kinds = self.spec.output.intervals.items()
        rounds = (rounds_s(self.outputs_s.get(kind, 0.0), self.step_s, every) for kind, every in kinds)
        return _FIELDS_S + (sum(rounds) if self.step_s else 0.0)
