"""Interfaces between the search and its caller: prediction, evaluation, progress."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lbmtune.catalogue.config import KernelConfig
from lbmtune.records import Compiled, Environment, Prediction, Trial, Verification
from lbmtune.records.header import StudyHeader
from lbmtune.records.output import Output
from lbmtune.records.profile import Profile
from lbmtune.records.spec import StudySpec
from lbmtune.search.clock import Clock
from lbmtune.search.estimates import Estimate
from lbmtune.search.spaces.bounds import Accurate

Predict = Callable[[KernelConfig], Prediction]
Sustain = Callable[[Sequence[KernelConfig], Sequence[bool], float], list[Trial]]
"""Runs configurations for seconds without a pause. The flags say which were verified at full size before."""


OutputOf = Callable[[Sequence[KernelConfig]], list[Trial]]
"""Measures what output costs configurations."""
ProfileOf = Callable[[KernelConfig], Profile]
"""Measures where the speed of a configuration goes. Raises NothingValidError, and InputError without a calibration."""
PredictOutput = Callable[[KernelConfig, str, int], dict[str, float]]
"""Predicts the seconds of an output of a kind, in parts, beside the steps from one to the next that hide some."""


@dataclass(frozen=True)
class Seen:
    """The result of a trial as the search sees it.

    mlups: None if it has no speed; noise: standard deviation of its logarithm; known: False if the trial says nothing,
    because it was disturbed, unstable or out of time.
    """

    mlups: float | None
    noise: float = 0.002
    known: bool = True


DOUBT = 0.05
"""Probability of a gain beyond the noise up to which a search ends."""


@dataclass(frozen=True)
class Gain:
    """The gain that going on may bring: relative to the best so far, and the probability of more than its noise."""

    relative: float
    probability: float


class Strategy(Protocol):
    """Chooses configurations, by their place in the legal set: what to compile next, and what to measure next."""

    def wanted(self, count: int) -> list[int]:
        """Return what to compile next, the best first, up to a number; fewer or none to wait for results.

        Nothing comes twice but a configuration whose first trial said nothing. None although nothing is ready or under
        way: all were tried.
        """
        ...

    def next(self, ready: Collection[int]) -> int:
        """Return what to measure now. ready: those compiled and not measured yet, at least one."""
        ...

    def refine(self, index: int, mlups: float | None) -> None:
        """Note what the model predicts with the compiled registers; None: it does not compile."""
        ...

    def observe(self, index: int, seen: Seen) -> None:
        """Note the result of a trial, of this run or of an earlier one."""
        ...

    def gain(self) -> Gain | None:
        """Return what may be gained by going on; None if this strategy, or yet, nobody can tell."""
        ...


MakeStrategy = Callable[[Sequence[KernelConfig], Sequence[Estimate], StudySpec], Strategy]
"""Makes the strategy of a study from its legal set and the estimates of the model."""


class Evaluator(Protocol):
    """Evaluates configurations: returns trials in any order, several at once.

    environments: of its devices; what is measured in a search goes to any of them, all else to the first.
    incumbent_s: seconds per step of the best so far; much slower candidates are dismissed early.
    """

    incumbent_s: float | None

    @property
    def environments(self) -> tuple[Environment, ...]: ...
    @property
    def max_in_flight(self) -> int:
        """Return how many configurations may usefully be in flight."""
        ...

    def prepare(self, configs: Sequence[KernelConfig]) -> None:
        """Prepare for configurations that may be submitted."""
        ...

    def submit(self, number: int, config: KernelConfig) -> None: ...
    def next(self) -> Trial:
        """Wait for the next finished trial and return it."""
        ...

    def compile_room(self, ready: int) -> int:
        """Return how many more configurations may be compiled now. ready: how many are compiled and not measured."""
        ...

    def measure_room(self) -> int:
        """Return how many configurations the measurer takes now."""
        ...

    def compile(self, config: KernelConfig) -> None: ...
    def measure(self, number: int, config: KernelConfig) -> None:
        """Verify and measure a configuration that was compiled."""
        ...

    def event(self) -> Compiled | Trial:
        """Wait until a configuration is compiled or a trial is finished."""
        ...

    def has_event(self) -> bool:
        """Return whether there is an event without a wait."""
        ...

    def forget(self) -> None:
        """Forget what is compiled, or will be, and was not measured."""
        ...

    def restart(self) -> None:
        """Go on in a new process with new memory. Called when nothing is in flight."""
        ...

    def verify(self, config: KernelConfig, *, full: bool = False) -> Trial:
        """Verify a configuration without timing it, on small domains or at full size."""
        ...

    def finals(
        self, configs: Sequence[KernelConfig], *, proofs: Mapping[int, Verification], race_s: float
    ) -> list[Trial]:
        """Verify configurations at full size and measure them in turns; return their trials in order.

        proofs: of those that were verified before, by position; race_s: seconds of the turns.
        """
        ...

    def expire_at(self, deadline_s: float) -> None:
        """End what is in progress then, on `time.monotonic`, with a TimeOverError."""
        ...

    def abandon(self) -> None:
        """Drop what is in progress or queued; the next request is made to new workers."""
        ...


class Observer:
    """Progress observer; the base class does nothing."""

    def started(self, header: StudyHeader, done: Sequence[Trial]) -> None:
        """Note that the search begins. done: trials read from disk."""

    def searching(self, seconds: float) -> None:
        """Note that the search begins, or goes on, for up to so many seconds, which may be infinite."""

    def phase(self, name: str, expected_s: float | None = None) -> None:
        """Note that a part begins that is not the search itself. expected_s: how long it takes, None if unknown."""

    def finished(self, trial: Trial) -> None:
        """Note that a trial is on disk."""

    def finals(self, finalists: Sequence[Trial], expected_s: float | None = None) -> None:
        """Note that the search is over and the finals begin. expected_s: how long they take, as below."""

    def sustained(self, trials: Sequence[Trial], expected_s: float | None = None) -> None:
        """Note that the sustained runs begin."""

    def output(self, trials: Sequence[Trial], folder: str, expected_s: float | None = None) -> None:
        """Note that the cost of output is measured. folder: of its file."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """The needs of a run besides the study itself.

    gather: waits for other workers when the search is over, and takes their trials over; None without others. compiled:
    kernels to compile before the first is measured, if trials are counted; clock: of the whole, None: it begins now.
    accuracy, output: of finalists; kept_accuracy: as an earlier study measured it; sustain: of the best;
    profile: of the winner;
    known_accuracy: of every configuration, if it is an objective. None if unavailable; default: the kernel that users
    compare with, which is tried early.
    """

    evaluator: Evaluator
    predict: Predict
    folder: Path
    observer: Observer
    strategy: MakeStrategy
    gather: Callable[[], None] | None = None
    compiled: int = 0
    clock: Clock | None = None
    accuracy: Accurate | None = None
    kept_accuracy: Accurate = lambda _: None
    known_accuracy: Accurate | None = None
    sustain: Sustain | None = None
    output: OutputOf | None = None
    predict_output: PredictOutput | None = None
    profile: ProfileOf | None = None
    default: KernelConfig | None = None

    def output_s(self, trial: Trial, wanted: Output) -> dict[str, float]:
        """Return the predicted seconds of an output of each kind, of which one step hides next to nothing."""
        if self.predict_output is None:
            return {}
        config = trial.kernel_config
        return {kind: sum(self.predict_output(config, kind, 1).values()) for kind in wanted.intervals}

    def complete(self, trial: Trial) -> Trial:
        """Return a measured trial with its accuracy, if that is an objective."""
        if self.known_accuracy is None:
            return trial
        return replace(trial, accuracy=self.known_accuracy(trial.kernel_config))
