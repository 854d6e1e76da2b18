"""Progress of a study on standard error: a live display on a terminal, plain lines elsewhere.

Nothing is drawn between trials: on a CPU a display that refreshes itself would disturb the samples.
"""

import time
from collections.abc import Sequence
from math import inf
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from lbmtune.cli.begun import begun_s
from lbmtune.cli.format.output import short
from lbmtune.records import Outcome, Trial
from lbmtune.records.header import StudyHeader
from lbmtune.records.remarks import predictions_hold
from lbmtune.search.interfaces import Observer
from lbmtune.search.loop import budget_left
from lbmtune.units import format_mlups

_LAST = 8
_QUIET_S = 2.0
_BAR = 20
"""Characters of the bar; the text beside it needs most of a narrow terminal."""
_SUSTAINED = "sustained: the best one, for seconds without a pause"


class Shown:
    """A display that is redrawn in place if the console is a terminal. A context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            self._live.__exit__(kind, error, at)


class Progress(Shown, Observer):
    """Show trials, the best so far, predicted and measured speeds, and the time left. A context manager."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._trials: list[Trial] = []
        self._begun_s = begun_s()
        self._begin_s = self._printed_s = time.monotonic()
        self._limit_trials = self._limit_s = self._whole_s = inf
        self._here, self._doubtful = 0, ""

    def started(self, header: StudyHeader, done: Sequence[Trial]) -> None:
        """Print the size of the space, and what a limit of the trials alone covers."""
        self._begin_s = time.monotonic()
        self._trials = list(done)
        self._doubtful = "" if predictions_hold(*header.cpu_shares) else " not reliable"
        self._whole_s = header.spec.budget.seconds or inf
        self._limit_trials, self._limit_s = budget_left(header.spec, done)
        self._limit_trials = min(self._limit_trials, header.legal_configurations - len(done))
        illegal = sum(header.illegal_configurations.values())
        resumed = f", {len(done)} {'trial' if len(done) == 1 else 'trials'} done before" if done else ""
        self._console.print(
            f"{header.spec.name} on {header.environment.device}: {header.legal_configurations} legal configurations, "
            f"{illegal} illegal points left out{resumed}",
            markup=False,
        )
        if 0 < self._limit_s < self._whole_s and self._limit_trials > 0:
            seconds = f"{self._limit_s:,.1f}".removesuffix(".0")
            left = "what is left, " if done else ""
            self._console.print(f"searching for {left}{seconds} s; finals, sustained runs and accuracy follow")

    def searching(self, seconds: float) -> None:
        """Note how long the search can go on."""
        self._limit_s = time.monotonic() - self._begin_s + seconds

    def phase(self, name: str, expected_s: float | None = None) -> None:
        """Show that a part begins, and about how long it takes."""
        self._say(name, expected_s)

    def finished(self, trial: Trial) -> None:
        """Show a finished trial."""
        better = _best([trial]) > _best(self._trials)
        others = [one for one in self._trials if one.number != trial.number]  # it may be measured a second time
        self._here += len(others) == len(self._trials)
        self._trials = [*others, trial]
        if self._live:
            self._live.update(self.display(), refresh=True)
        elif better or trial.outcome is not Outcome.OK or time.monotonic() - self._printed_s > _QUIET_S:
            self._printed_s = time.monotonic()
            said = _line(trial, self._doubtful)
            self._console.print(f"trial {trial.number}, {self._counted()}: {said}; {self._state()}", markup=False)

    def finals(self, finalists: Sequence[Trial], expected_s: float | None = None) -> None:
        """Show that finalists are measured again."""
        count = f"{len(finalists)} configuration{'s' if len(finalists) != 1 else ''}"
        self._say(f"finals: {count}, verified at full size and measured interleaved", expected_s)

    def sustained(self, trials: Sequence[Trial], expected_s: float | None = None) -> None:
        """Show that the best run for seconds."""
        count = len(trials)
        self._say(
            f"sustained: the best {count}, seconds of each without a pause" if count > 1 else _SUSTAINED, expected_s
        )

    def output(self, trials: Sequence[Trial], folder: str, expected_s: float | None = None) -> None:
        """Show that the cost of output is measured, and where its file lies."""
        finalists = f"{len(trials)} finalist{'s' if len(trials) != 1 else ''}"
        self._say(f"output: its cost for {finalists}; files in {folder}", expected_s)

    def _say(self, text: str, expected_s: float | None = None) -> None:
        """Print a part that begins with its estimate; on a terminal below the trials, with a bar of the whole."""
        about = f", about {expected_s:.0f} s" if expected_s and expected_s >= 1 else ""
        if not self._live:
            if about or expected_s is None:
                self._console.print(f"{text}{about}", markup=False)
            return
        passed = time.monotonic() - self._begun_s
        end = self._whole_s if self._whole_s < inf else passed + (expected_s or 0.0)
        bar = ProgressBar(100, min(passed / end, 1.0) * 100, width=_BAR)
        table = [self.display()] if self._trials else []
        self._live.update(Group(*table, bar, f" {text}{about}"), refresh=True)

    def _counted(self) -> str:
        limit = self._limit_trials
        of = f" of {len(self._trials) - self._here + int(limit)}" if limit != inf else ""
        return f"{len(self._trials)}{of} done"

    def _state(self) -> str:
        left = self._left_s()
        best = _best(self._trials)
        return (f"best {format_mlups(best)} MLUPS" if best else "best: none yet") + (
            f", {clock(left)} left" if left is not None else ""
        )

    def _left_s(self) -> float | None:
        """Return the seconds until the trials end at the pace so far, or the time budget, whichever is first."""
        passed = time.monotonic() - self._begin_s
        by_time = self._limit_s - passed
        by_trials = passed / self._here * (self._limit_trials - self._here) if self._here else inf
        left = max(min(by_time, by_trials), 0.0)
        return None if left == inf else left

    @property
    def tried(self) -> int:
        """Return the number of trials."""
        return len(self._trials)

    def display(self) -> RenderableType:
        """Return the last trials, a bar, and the best so far."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("trial", "configuration", "predicted", "measured", "outcome"):
            table.add_column(name, justify="right" if name in ("trial", "predicted", "measured") else "left")
        for trial in self._trials[-_LAST:]:
            predicted = f"{format_mlups(trial.prediction.mlups)}{self._doubtful}" if trial.prediction else ""
            measured = format_mlups(trial.mlups) if trial.mlups is not None else ""
            table.add_row(str(trial.number), short(trial.config), predicted, measured, f"{trial.outcome}{_mark(trial)}")
        bar = ProgressBar(100, self._share() * 100, width=_BAR)
        return Group(table, bar, f" {self._counted()}, {self._state()}")

    def _share(self) -> float:
        by_trials = self._here / self._limit_trials if self._limit_trials else 1.0
        by_time = (time.monotonic() - self._begin_s) / self._limit_s if self._limit_s else 1.0
        return min(max(by_trials, by_time), 1.0)


def clock(seconds: float) -> str:
    """Return minutes and seconds: '2:05'."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _best(trials: Sequence[Trial]) -> float:
    return max((trial.mlups or 0.0 for trial in trials), default=0.0)


def _line(trial: Trial, doubtful: str) -> str:
    if trial.mlups is None:
        return f"{short(trial.config)}: {trial.outcome}: {trial.reason}"
    predicted = f" (predicted {format_mlups(trial.prediction.mlups)}{doubtful})" if trial.prediction else ""
    return f"{short(trial.config)}: {format_mlups(trial.mlups)} MLUPS{predicted}{_mark(trial)}"


def _mark(trial: Trial) -> str:
    return ", disturbed" if trial.mlups is not None and trial.best_measurement.disturbed else ""
