"""The loop of a study: choose, evaluate, record; then finals, sustained runs and accuracy.

A trial is on disk before Optuna gets it. A study that is killed at any moment resumes from its records: measured trials
stay, those in flight are tried again, no configuration is tried twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Outcome, Trial
from lbmtune.records.store import (
    TRIALS,
    append_trial,
    drop_torn_line,
    holds_study,
    read_study,
    remove_unfinished,
    write_header,
)
from lbmtune.records.study import StudyHeader, StudyRecord, StudySpec
from lbmtune.search.choice import Choice
from lbmtune.search.estimates import estimates, refined
from lbmtune.search.finals import fastest_s, hold_finals, record_accuracy, record_output, run_sustained
from lbmtune.search.interfaces import Search
from lbmtune.search.lock import folder_lock
from lbmtune.search.space import Space
from lbmtune.search.visits import visit_again

if TYPE_CHECKING:
    from lbmtune.search.optuna_storage import OptunaStudy

_SHARE_OF_AHEAD = 4
"""One evaluation of the surrogate proposes a quarter of the configurations in flight, because it takes time."""


def run_study(search: Search, header: StudyHeader, space: Space, *, resume: bool = False) -> StudyRecord:
    """Run or resume a study in its folder and return its record.

    Raises InputError if the folder holds another study, NothingValidError if no trial was verified at full size.
    """
    with folder_lock(search.folder):
        remove_unfinished(search.folder)
        header, done = _read_folder(search.folder, header, resume=resume)
        loop = _Loop(search, header, space, done)
        write_header(search.folder, replace(header, finished=False))
        search.observer.started(header, done)
        loop.run()
        visit_again(search)
        hold_finals(search)
        run_sustained(search)
        record_accuracy(search)
        record_output(search)
        write_header(search.folder, replace(header, finished=True))
        record = read_study(search.folder)
    if record.winner is None:
        raise NothingValidError(nothing_valid(record))
    return record


def _read_folder(folder: Path, header: StudyHeader, *, resume: bool) -> tuple[StudyHeader, tuple[Trial, ...]]:
    if not holds_study(folder):
        return header, ()
    if not resume:
        raise InputError(f"{folder} already holds a study; add --resume to go on with it, or choose another --out.")
    drop_torn_line(folder / TRIALS)
    kept = read_study(folder)
    check_resumable(kept.header, header, folder)
    return replace(kept.header, spec=header.spec, schema=header.schema), kept.trials


def check_resumable(kept: StudyHeader, now: StudyHeader, folder: Path) -> None:
    """Raise InputError if a study cannot be resumed: another device, software or specification; budgets may differ."""
    version = [("lbmtune", kept.version, now.version)] if kept.version != now.version else []
    for name, was, here in [*kept.environment.differences(now.environment), *version]:
        raise InputError(
            f"{folder} was begun with {name} {was!r} and this is {here!r}; resume it there or start a new study."
        )
    check_same_spec(kept.spec, now.spec, folder)


def check_same_spec(kept: StudySpec, now: StudySpec, folder: Path) -> None:
    """Raise InputError, with the field and both values, if two studies differ in more than name and budget."""
    kept, now = _without_path(kept), _without_path(now)
    for name in ("case", "axes", "families", "objective", "seed", "protocol", "max_error", "output"):
        was, here = (_fields(getattr(spec, name), name) for spec in (kept, now))
        for key in {**was, **here}:
            if was.get(key) != here.get(key):
                raise InputError(
                    f"{folder} holds a study with {key} {_text(was.get(key))}, and this one has "
                    f"{_text(here.get(key))}; only the budget can change, so resume it as it was or choose another "
                    "--out."
                )


def _without_path(spec: StudySpec) -> StudySpec:
    """Return a study without the path of its voxel file, which the digest identifies."""
    if not spec.case.geometry:
        return spec
    from lbmtune.catalogue.problem.geometry import without_path  # here: arrays are not needed otherwise

    return replace(spec, case=replace(spec.case, geometry=without_path(spec.case.geometry)))


def _fields(value: Any, name: str) -> dict[str, Any]:
    """Return the values of nested records and tables by dotted name; lists of tables count from 1."""
    parts = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    if isinstance(parts, Mapping):
        inner = {f"{name}.{n}": part for n, part in parts.items()}
    elif isinstance(parts, Sequence) and any(isinstance(part, Mapping) for part in parts):
        inner = {f"{name}[{n}]": part for n, part in enumerate(parts, 1)}
    else:
        return {name: parts}
    return {key: leaf for n, part in inner.items() for key, leaf in _fields(part, n).items()}


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else "not given" if value is None else str(value)


class _Loop:
    """The search from the first trial that is not recorded to the end of the budget."""

    def __init__(self, search: Search, header: StudyHeader, space: Space, done: Sequence[Trial]) -> None:
        self._search, self._space, spec = search, space, header.spec
        self._search_s, self._begin_s = 0.0, time.monotonic()
        self._clock_s = time.monotonic() - max((t.elapsed_s or 0.0 for t in done), default=0.0)
        self._next_number = max((t.number for t in done), default=-1) + 1
        self._budget = budget_left(spec, done)
        search.evaluator.incumbent_s = fastest_s(spec.case, done)
        if min(self._budget) > 0:
            search.evaluator.prepare(space.configs)
        predictions = estimates(search.predict, space.configs)
        tiers = [p.footprint_bytes for p in predictions] if spec.objective == "footprint" else None
        batch = max(1, search.evaluator.max_in_flight // _SHARE_OF_AHEAD)
        expected, sample = [p.mlups for p in predictions], spec.budget.sample
        if search.predict_anew and min(self._budget) > 0:
            expected = refined(expected, space.configs, search.predict_anew, search.compiled)
        self._choice = Choice(space.configs, expected, spec.seed, tiers, batch, sample)
        self._index = {config.key: i for i, config in enumerate(space.configs)}
        self._optuna = self._open_optuna(header, done)

    def run(self) -> None:
        """Search until the budget or the legal set is exhausted. Predicting and resuming do not count."""
        self._begin_s, in_flight = time.monotonic(), 0
        while True:
            while in_flight < self._search.evaluator.max_in_flight and self._may_start():
                self._start()
                in_flight += 1
            if not in_flight:
                break
            self._take(self._search.evaluator.next())
            in_flight -= 1
        self._optuna.close()

    def _open_optuna(self, header: StudyHeader, done: Sequence[Trial]) -> OptunaStudy:
        from lbmtune.search.optuna_storage import JOURNAL, OptunaStudy  # Optuna is slow to import

        for trial in done:
            if trial.key in self._index:
                self._choice.observe(self._index[trial.key], trial.mlups)
        study = OptunaStudy(self._space.configs, self._choice, header.spec.objective)
        study.open(self._search.storage_url or self._search.folder / JOURNAL, optuna_name(header))
        study.catch_up(done, self._index)
        return study

    def _may_start(self) -> bool:
        trials, seconds = self._budget
        in_time = time.monotonic() - self._begin_s < seconds
        return trials > 0 and in_time and self._choice.remaining > 0

    def _start(self) -> None:
        begin = time.perf_counter()
        index = self._optuna.ask(self._next_number)
        self._search_s += time.perf_counter() - begin
        self._search.evaluator.submit(self._next_number, self._space.configs[index])
        self._next_number += 1
        self._budget = (self._budget[0] - 1, self._budget[1])

    def _take(self, trial: Trial) -> None:
        spent = replace(trial.costs, search_s=self._search_s)
        trial = replace(trial, costs=spent, elapsed_s=time.monotonic() - self._clock_s)
        append_trial(self._search.folder, trial)
        begin = time.perf_counter()
        self._optuna.tell(trial)
        self._choice.observe(self._index[trial.key], trial.mlups)
        self._search_s = time.perf_counter() - begin
        self._search.observer.finished(trial)


def optuna_name(header: StudyHeader) -> str:
    """Return the name of a study in Optuna's storage, which may hold several."""
    return f"{header.spec.name} {header.date}"


def budget_left(spec: StudySpec, done: Sequence[Trial]) -> tuple[float, float]:
    """Return the trials and seconds left, infinite without a limit. Earlier runs count with their device time."""
    spent_s = sum(t.costs.verify_s + t.costs.measure_s for t in done)
    trials = spec.budget.trials - len(done) if spec.budget.trials else float("inf")
    return trials, spec.budget.seconds - spent_s if spec.budget.seconds else float("inf")


def nothing_valid(record: StudyRecord) -> str:
    """Explain why a study has no winner: counted outcomes, and options for stages that timed out."""
    outcomes = Counter(trial.outcome for trial in record.trials)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "no trial fitted the budget"
    what = "was verified on the whole domain" if record.ranked else "gave a verified measurement"
    return f"no configuration {what} ({counted}); see the reasons in the report.{_more_time(record)}"


def _more_time(record: StudyRecord) -> str:
    """Return the options that double the limits of stages that timed out; empty if none did."""
    protocol, domain = record.header.spec.protocol, record.header.spec.case.domain
    stages = dict.fromkeys(t.reason.partition(" ")[0] for t in record.trials if t.outcome is Outcome.TIMED_OUT)
    limits = {f"{stage}_limit_s": getattr(protocol, f"{stage}_limit_s", None) for stage in stages}
    raised = " ".join(f"--set protocol.{name}={2 * limit:g}" for name, limit in limits.items() if limit)
    if not raised:
        return ""
    half = "x".join(str(max(n // 2, 1)) for n in domain)
    fewer = f", or with half the domain, --set case.domain={half}" if "measure" in stages else ""
    return f" To give the stages that timed out twice the time, start it anew with {raised}{fewer}."
