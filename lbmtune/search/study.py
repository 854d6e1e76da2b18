"""The loop of a study: ask, evaluate, record, tell; then the finals.

A trial is on disk before Optuna hears of it, so a study that is killed at any moment resumes from its records:
what was measured stays, what was in flight is tried again, nothing is tried twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.families.rules import Limits
from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Accuracy, Environment, Outcome, Prediction, Trial
from lbmtune.records.store import HEADER, append_trial, drop_torn_line, read_study, write_header
from lbmtune.records.study import StudyHeader, StudyRecord, StudySpec
from lbmtune.search.accuracy import Accurate
from lbmtune.search.choice import Choice
from lbmtune.search.estimates import Anew, estimates, refined
from lbmtune.search.finalists import finalists_of
from lbmtune.search.kinds import Rounding, rounding_of
from lbmtune.search.lock import folder_held
from lbmtune.search.resume_check import check_same
from lbmtune.search.space import Space

if TYPE_CHECKING:
    from lbmtune.search.optuna_storage import Ledger

Predict = Callable[[KernelConfig], Prediction]
Sustain = Callable[[Sequence[KernelConfig], Sequence[bool]], list[Trial]]
"""Runs configurations for seconds without a pause; says of each whether it was verified at full size before."""
_MOST_FINALS = 20
"""How many times finalists that failed are replaced by the next best ones."""
_SHARE_OF_AHEAD = 4
"""A quarter of what is under way at once is proposed by one look of the surrogate: a look takes its time."""


class Evaluator(Protocol):
    """Answers configurations with trials, in any order, several at once.

    incumbent_s: seconds per step of the best so far, against which hopeless candidates are dismissed.
    """

    incumbent_s: float | None

    @property
    def ahead(self) -> int:
        """How many configurations may usefully be under way at once."""
        ...

    @property
    def limits(self) -> Limits: ...
    @property
    def environment(self) -> Environment: ...
    def expect(self, configs: Sequence[KernelConfig]) -> None:
        """Hears what may be submitted, before that."""
        ...

    def submit(self, number: int, config: KernelConfig) -> None: ...
    def next(self) -> Trial:
        """The next finished trial; waits for it."""
        ...

    def finals(self, configs: Sequence[KernelConfig]) -> list[Trial]:
        """The same configurations verified at full size and measured interleaved, in order."""
        ...


class Observer:
    """Hears of progress; this one keeps silent."""

    def started(self, header: StudyHeader, done: Sequence[Trial]) -> None:
        """The search begins; `done` was read back from disk."""

    def finished(self, trial: Trial) -> None:
        """A trial is on disk."""

    def finals(self, finalists: Sequence[Trial]) -> None:
        """The search is over and the finalists are measured again."""

    def sustained(self, trials: Sequence[Trial]) -> None:
        """The best are run for seconds."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """What a run needs besides the study itself. storage_url: of Optuna; None: a file in the folder.

    predict_anew: by what a compiler says, of those `compiled` that the model puts first. accuracy: of the finalists,
    once they are known; sustain: of the best. None where that cannot be had.
    """

    evaluator: Evaluator
    predict: Predict
    folder: Path
    observer: Observer
    storage_url: str | None = None
    predict_anew: Anew | None = None
    compiled: int = 0
    accuracy: Accurate | None = None
    sustain: Sustain | None = None


def run_study(search: Search, header: StudyHeader, space: Space, *, resume: bool = False) -> StudyRecord:
    """Runs or resumes a study in its folder and returns its record.

    Raises InputError where the folder holds another study, NothingValidError when no trial was verified at full size.
    """
    with folder_held(search.folder):
        header, done = _read_folder(search.folder, header, resume=resume)
        loop = _Loop(search, header, space, done)
        write_header(search.folder, header)
        search.observer.started(header, done)
        loop.run()
        _finals(search)
        _sustain(search)
        _note_accuracy(search)
        record = read_study(search.folder)
    if record.winner is None:
        raise NothingValidError(nothing_valid(record))
    return record


class _Loop:
    """The search proper, from the first trial that is not recorded yet to the end of the budget."""

    def __init__(self, search: Search, header: StudyHeader, space: Space, done: Sequence[Trial]) -> None:
        self._search, self._space, spec = search, space, header.spec
        self._search_s, self._begin_s = 0.0, time.monotonic()
        self._clock_s = time.monotonic() - max((t.elapsed_s or 0.0 for t in done), default=0.0)
        self._next_number = max((t.number for t in done), default=-1) + 1
        self._budget = budget_left(spec, done)
        search.evaluator.incumbent_s = fastest_s(spec, done)
        if min(self._budget) > 0:
            search.evaluator.expect(space.configs)
        predictions = estimates(search.predict, space.configs)
        tiers = [p.footprint_bytes for p in predictions] if spec.objective == "footprint" else None
        batch = max(1, search.evaluator.ahead // _SHARE_OF_AHEAD)
        expected, sample = [p.mlups for p in predictions], spec.budget.sample
        if search.predict_anew and min(self._budget) > 0:
            expected = refined(expected, space.configs, search.predict_anew, search.compiled)
        self._choice = Choice(space.configs, expected, spec.seed, tiers, batch, sample)
        self._index = {config.key: i for i, config in enumerate(space.configs)}
        self._ledger = self._new_ledger(header, done)

    def run(self) -> None:
        """Until the budget or the legal set is used up. What was predicted and read before is no part of the budget."""
        self._begin_s, under_way = time.monotonic(), 0
        while True:
            while under_way < self._search.evaluator.ahead and self._may_start():
                self._start()
                under_way += 1
            if not under_way:
                break
            self._take(self._search.evaluator.next())
            under_way -= 1
        self._ledger.close()

    def _new_ledger(self, header: StudyHeader, done: Sequence[Trial]) -> Ledger:
        from lbmtune.search.optuna_storage import JOURNAL, Ledger  # here, because Optuna is slow to import

        for trial in done:
            if trial.key in self._index:
                self._choice.observe(self._index[trial.key], trial.mlups)
        folder, url = self._search.folder, self._search.storage_url
        ledger = Ledger(self._space.configs, self._choice, header.spec.objective)
        ledger.open(url or folder / JOURNAL, optuna_name(header))
        ledger.catch_up(done, self._index)
        return ledger

    def _may_start(self) -> bool:
        trials, seconds = self._budget
        in_time = time.monotonic() - self._begin_s < seconds
        return trials > 0 and in_time and self._choice.remaining > 0

    def _start(self) -> None:
        begin = time.perf_counter()
        index = self._ledger.ask(self._next_number)
        self._search_s += time.perf_counter() - begin
        self._search.evaluator.submit(self._next_number, self._space.configs[index])
        self._next_number += 1
        self._budget = (self._budget[0] - 1, self._budget[1])

    def _take(self, trial: Trial) -> None:
        spent = replace(trial.costs, search_s=self._search_s)
        trial = replace(trial, costs=spent, elapsed_s=time.monotonic() - self._clock_s)
        append_trial(self._search.folder, trial)
        begin = time.perf_counter()
        self._ledger.tell(trial)
        self._choice.observe(self._index[trial.key], trial.mlups)
        self._search_s = time.perf_counter() - begin
        self._search.observer.finished(trial)


def fastest_s(spec: StudySpec, done: Sequence[Trial]) -> float | None:
    """Seconds per step of the fastest trial so far, by the first measurements; None where there is none."""
    speeds = [t.measurement.mlups for t in done if t.measurement and t.mlups]
    return spec.case.fluid_sites / (max(speeds) * 1e6) if speeds else None


def optuna_name(header: StudyHeader) -> str:
    """The name of a study in Optuna's storage, where several may meet."""
    return f"{header.spec.name} {header.date}"


def budget_left(spec: StudySpec, done: Sequence[Trial]) -> tuple[float, float]:
    """Trials and seconds that may still be spent; infinite where there is no limit.

    Of earlier runs the seconds that the device was busy are counted.
    """
    spent_s = sum(t.costs.verify_s + t.costs.measure_s for t in done)
    trials = spec.budget.trials - len(done) if spec.budget.trials else float("inf")
    return trials, spec.budget.seconds - spent_s if spec.budget.seconds else float("inf")


def _read_folder(folder: Path, header: StudyHeader, *, resume: bool) -> tuple[StudyHeader, tuple[Trial, ...]]:
    """The header that counts from now on, and the trials that are on disk."""
    if not (folder / HEADER).exists():
        return header, ()
    if not resume:
        raise InputError(f"{folder} already holds a study; add --resume to go on with it, or choose another --out.")
    drop_torn_line(folder)
    kept = read_study(folder)
    check_same(kept.header, header, folder)
    return replace(kept.header, spec=header.spec, schema=header.schema), kept.trials


def _finals(search: Search) -> None:
    """Proves the finalists at full size and measures them once more, until all that are wanted passed."""
    for _ in range(_MOST_FINALS):
        record = read_study(search.folder)
        finalists = finalists_of(record)
        if not finalists or through(record, finalists):
            return
        search.observer.finals(finalists)
        _hold_finals(search, record, finalists)


def _sustain(search: Search) -> None:
    """Runs the best for seconds each; what is on disk already is not run again."""
    if search.sustain is None:
        return
    record = read_study(search.folder)
    wanted = [trial for trial in _best(record)[: record.header.spec.protocol.sustained_top] if not trial.sustained]
    if not wanted:
        return
    search.observer.sustained(wanted)
    answers = search.sustain([from_flat(t.config) for t in wanted], [t.proven for t in wanted])
    for trial, answer in zip(wanted, answers, strict=True):
        append_trial(search.folder, with_sustained(trial, answer))
    if any(_counts_against(answer) for answer in answers):
        _finals(search)  # others take the places of those that failed


def _best(record: StudyRecord) -> list[Trial]:
    """The winner, then the others by speed alone: some have finals because they lead a family."""
    if record.header.spec.objective != "mlups":
        return list(record.ranked)
    return [*record.ranked[:1], *sorted(record.ranked[1:], key=lambda trial: -(trial.mlups or 0.0))]


def _counts_against(answer: Trial) -> bool:
    """Whether a run of seconds ended in a way that a proven kernel does not, however busy the machine is."""
    return answer.outcome not in (Outcome.OK, Outcome.TIMED_OUT)


def with_sustained(trial: Trial, answer: Trial) -> Trial:
    """The trial with what a run of seconds found; one that fails in it has no speed any more.

    One that had no time to finish keeps the speed that it was measured at twice, with the reason.
    """
    names = ("compile_s", "verify_s", "measure_s")
    spent = {name: getattr(trial.costs, name) + getattr(answer.costs, name) for name in names}
    return replace(
        trial,
        verification=answer.verification or trial.verification,
        sustained=answer.sustained,
        costs=replace(trial.costs, **spent),
        outcome=answer.outcome if _counts_against(answer) else trial.outcome,
        reason=f"in the run of seconds: {answer.reason}" if answer.reason else trial.reason,
    )


def _note_accuracy(search: Search) -> None:
    """Records what the precision of the winner and of the other finalists costs, unless that is on disk already."""
    if search.accuracy is None:
        return
    known: dict[Rounding, Accuracy | None] = {}
    for trial in (trial for trial in read_study(search.folder).ranked if trial.final):
        config = from_flat(trial.config)
        rounding = rounding_of(config)
        if rounding not in known:
            known[rounding] = trial.accuracy or search.accuracy(config)
        found = known[rounding]
        if found and not trial.accuracy:
            append_trial(search.folder, replace(trial, accuracy=found))


def through(record: StudyRecord, finalists: Sequence[Trial]) -> bool:
    """Whether these, and no others, are proven and were measured together, or could not be."""
    had, now = {t.number for t in record.trials if t.final}, {t.number for t in finalists}
    return all(t.proven for t in finalists) and had in (now, set())


def _hold_finals(search: Search, record: StudyRecord, finalists: Sequence[Trial]) -> None:
    """One round of finals; the finalists are appended with both measurements."""
    begin = time.perf_counter()
    answers = search.evaluator.finals([from_flat(t.config) for t in finalists])
    prepared_s = sum(answer.costs.compile_s + answer.costs.verify_s for answer in answers)
    each_s = max(time.perf_counter() - begin - prepared_s, 0.0) / len(answers)
    for trial, answer in zip(finalists, answers, strict=True):
        append_trial(search.folder, with_final(trial, answer, each_s))
    now = {t.number for t in finalists}
    for trial in record.trials:
        if trial.final and trial.number not in now:
            append_trial(search.folder, replace(trial, final=None, stands_for=""))  # not comparable with these


def with_final(trial: Trial, answer: Trial, measure_s: float) -> Trial:
    """The trial with what the finals found and took; a finalist that fails in them has no speed any more.

    One that was verified but could not be measured again keeps its speed, with the reason.
    """
    costs = replace(
        trial.costs,
        compile_s=trial.costs.compile_s + answer.costs.compile_s,
        verify_s=trial.costs.verify_s + answer.costs.verify_s,
        measure_s=trial.costs.measure_s + measure_s,
    )
    verification = answer.verification or trial.verification
    merged = replace(trial, verification=verification, final=answer.final, costs=costs)
    reason = f"in the finals: {answer.reason}" if answer.reason else ""
    return replace(merged, outcome=answer.outcome, reason=reason)


def nothing_valid(record: StudyRecord) -> str:
    """Why a study has no winner, with its outcomes counted, and what gives stages more time that had too little."""
    reasons: dict[str, int] = {}
    for trial in record.trials:
        reasons[trial.outcome] = reasons.get(trial.outcome, 0) + 1
    counted = ", ".join(f"{count} {outcome}" for outcome, count in reasons.items()) or "no trial fitted the budget"
    what = "was verified on the whole domain" if record.ranked else "gave a verified measurement"
    return f"no configuration {what} ({counted}); see the reasons in the report.{_more_time(record)}"


def _more_time(record: StudyRecord) -> str:
    """How the limits of the stages that timed out are raised, or the cells made fewer; empty where none did."""
    protocol, domain = record.header.spec.protocol, record.header.spec.case.domain
    stages = dict.fromkeys(t.reason.partition(" ")[0] for t in record.trials if t.outcome is Outcome.TIMED_OUT)
    limits = {f"{stage}_limit_s": getattr(protocol, f"{stage}_limit_s", None) for stage in stages}
    raised = " ".join(f"--set protocol.{name}={2 * limit:g}" for name, limit in limits.items() if limit)
    if not raised:
        return ""
    half = "x".join(str(max(n // 2, 1)) for n in domain)
    fewer = f", or with half the domain, --set case.domain={half}" if "measure" in stages else ""
    return f" To give the stages that timed out twice the time, start it anew with {raised}{fewer}."
