"""Interfaces between the search and its caller: prediction, evaluation, progress."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lbmtune.catalogue.config import KernelConfig
from lbmtune.records import Prediction, Trial
from lbmtune.records.output import OutputCost
from lbmtune.records.study import StudyHeader
from lbmtune.search.estimates import Repredict
from lbmtune.search.space import Accurate

Predict = Callable[[KernelConfig], Prediction]
Sustain = Callable[[Sequence[KernelConfig], Sequence[bool]], list[Trial]]
"""Runs configurations for seconds without a pause. The flags say which were verified at full size before."""


OutputOf = Callable[[Sequence[KernelConfig]], list[Trial]]
"""Measures what output costs configurations."""
PredictOutput = Callable[[KernelConfig, OutputCost], dict[str, float]]
"""Predicts the seconds of an output, in parts; the measured cost says of which kind."""


class Evaluator(Protocol):
    """Evaluates configurations: returns trials in any order, several at once.

    incumbent_s: seconds per step of the best so far; much slower candidates are dismissed early.
    """

    incumbent_s: float | None

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

    def restart(self) -> None:
        """Go on in a new process with new memory. Called when nothing is in flight."""
        ...

    def finals(self, configs: Sequence[KernelConfig]) -> list[Trial]:
        """Verify configurations at full size and measure them interleaved; return their trials in order."""
        ...


class Observer:
    """Progress observer; the base class does nothing."""

    def started(self, header: StudyHeader, done: Sequence[Trial]) -> None:
        """Note that the search begins. done: trials read from disk."""

    def finished(self, trial: Trial) -> None:
        """Note that a trial is on disk."""

    def finals(self, finalists: Sequence[Trial]) -> None:
        """Note that the search is over and the finals begin."""

    def sustained(self, trials: Sequence[Trial]) -> None:
        """Note that the sustained runs begin."""

    def output(self, trials: Sequence[Trial], folder: str) -> None:
        """Note that the cost of output is measured. folder: of its file."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Everything that a run needs besides the study itself.

    storage_url: of Optuna, None for a file in the folder. predict_anew: predictions with compiled resources, for the
    first `compiled` by the model. accuracy, output: of finalists; sustain: of the best. None if unavailable.
    """

    evaluator: Evaluator
    predict: Predict
    folder: Path
    observer: Observer
    storage_url: str | None = None
    predict_anew: Repredict | None = None
    compiled: int = 0
    accuracy: Accurate | None = None
    sustain: Sustain | None = None
    output: OutputOf | None = None
    predict_output: PredictOutput | None = None
