"""The loop of a run of claims: every group measured, recorded, then judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import KernelConfig
from lbmtune.claims.judge import verdicts
from lbmtune.claims.plan import Entry, Here, Plan, plans
from lbmtune.claims.store import append_group, of_documents, read_claims, read_claims_header, read_groups, write_claims
from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Accuracy, Environment, Outcome, Trial
from lbmtune.records.claims import Claims, ClaimsHeader, Document, Duty, Group

SAME = ("backend", "device", "device_id", "driver", "runtime", "compiler", "ecc", "power_limit_w")
"""What of the environment must not change within a run, for its speeds could not be compared."""


class Evaluator(Protocol):
    """Verifies configurations on the domain of its case and measures those that pass in turns."""

    def finals(self, configs: Sequence[KernelConfig], duties: Mapping[int, Duty] | None = None) -> list[Trial]:
        """One trial per configuration, in order; duties: by position."""
        ...

    def accuracy(self, config: KernelConfig) -> Accuracy:
        """What its precision costs in accuracy. Raises NothingValidError."""
        ...


Opener = Callable[[Case, int], AbstractContextManager[Evaluator]]
"""Opens an evaluator for a case, for groups of at most so many."""


class Observer:
    """Hears of progress; this one keeps silent."""

    def started(self, planned: Sequence[Plan], done: Sequence[Group]) -> None:
        """The run begins; `done` was read back from disk."""

    def measuring(self, plan: Plan) -> None:
        """A group begins."""

    def finished(self, group: Group) -> None:
        """A group is on disk."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run needs besides the documents."""

    here: Here
    open_evaluator: Opener
    folder: Path
    observer: Observer


def run_claims(run: Run, header: ClaimsHeader, documents: Sequence[Document]) -> Claims:
    """Measures what has not been measured yet and judges every claim. Raises InputError for another device's folder."""
    claims = Claims(header=header, documents=tuple(documents))
    planned = [plan for document in documents for plan in plans(document, run.here)]
    done = [group for group in read_groups(run.folder) if any(plan.is_of(group) for plan in planned)]
    write_claims(run.folder, _judged(claims, done))
    run.observer.started(planned, done)
    for plan in planned:
        if not any(plan.is_of(group) for group in done):
            run.observer.measuring(plan)
            done.append(carried_out(plan, run.open_evaluator))
            append_group(run.folder, done[-1])
            write_claims(run.folder, _judged(claims, done))
            run.observer.finished(done[-1])
    return read_claims(run.folder)


def check_same_device(folder: Path, environment: Environment) -> None:
    """Raises InputError where the folder was begun elsewhere: speeds of two devices cannot be compared."""
    kept = read_claims_header(folder).environment
    for name in SAME:
        before, now = getattr(kept, name), getattr(environment, name)
        if before != now:
            raise InputError(
                f"{folder} was begun with {name} {before!r} and this is {now!r}; choose another --out and begin anew."
            )


def carried_out(plan: Plan, open_evaluator: Opener) -> Group:
    """The group with its measurements."""
    start = time.monotonic()
    entries, trials = plan.runnable, {}
    if entries:
        duties = {n: entry.variant.duty for n, entry in enumerate(entries) if entry.variant.duty}
        with open_evaluator(plan.case, len(entries)) as evaluator:
            found = evaluator.finals([entry.config for entry in entries if entry.config], duties)
            found = [_with_accuracy(evaluator, *pair) for pair in zip(entries, found, strict=True)]
        trials = {entry.variant.name: trial for entry, trial in zip(entries, found, strict=True)}
    rows = tuple(replace(plan.row(entry), trial=trials.get(entry.variant.name)) for entry in plan.entries)
    seconds = time.monotonic() - start
    return Group(document=plan.document, series=plan.series.name, case=plan.case, rows=rows, seconds=seconds)


def _with_accuracy(evaluator: Evaluator, entry: Entry, trial: Trial) -> Trial:
    if not entry.accuracy or entry.config is None or trial.outcome is not Outcome.OK:
        return trial
    try:
        return replace(trial, accuracy=evaluator.accuracy(entry.config))
    except NothingValidError:
        return trial


def _judged(claims: Claims, groups: Sequence[Group]) -> Claims:
    ordered = of_documents(groups, [document.name for document in claims.documents])
    header = claims.header
    found = (verdicts(d, ordered, header.backend, header.copy_bytes_per_s) for d in claims.documents)
    return replace(claims, groups=ordered, verdicts=tuple(verdict for one in found for verdict in one))
