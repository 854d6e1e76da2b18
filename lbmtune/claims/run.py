"""The loop of a run of claims: every group measured, recorded, then judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.claims.judge import Reading, readings_of, rests_on, verdicts
from lbmtune.claims.plan import Entry, Here, Plan, plans
from lbmtune.claims.store import append_group, of_documents, read_claims, read_claims_header, read_groups, write_claims
from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Accuracy, Environment, Outcome, Trial
from lbmtune.records.claims import COUNTED, Claims, ClaimsHeader, Document, Duty, Group, Holding, Row
from lbmtune.records.profile import Counters

SAME = ("backend", "device", "device_id", "driver", "runtime", "compiler", "ecc", "power_limit_w")
"""What of the environment must not change within a run, for its speeds could not be compared."""


class Evaluator(Protocol):
    """Verifies configurations on the domain of its case and measures those that pass in turns."""

    def finals(self, configs: Sequence[KernelConfig], side_tasks: Mapping[int, Duty] | None = None) -> list[Trial]:
        """One trial per configuration, in order; side_tasks: by position."""
        ...

    def accuracy(self, config: KernelConfig) -> Accuracy:
        """What its precision costs in accuracy. Raises NothingValidError."""
        ...


Opener = Callable[[Case, int], AbstractContextManager[Evaluator]]
"""Opens an evaluator for a case, for groups of at most so many."""
Counting = Callable[[Sequence[tuple[Case, KernelConfig]]], Sequence[Counters]]
"""Reads counters of the hardware over some steps of each kernel."""


class Observer:
    """Hears of progress; this one keeps silent."""

    def started(self, planned: Sequence[Plan], done: Sequence[Group]) -> None:
        """The run begins; `done` was read back from disk."""

    def measuring(self, plan: Plan) -> None:
        """A group begins."""

    def finished(self, group: Group) -> None:
        """A group is on disk."""

    def counting(self, kernels: int) -> None:
        """Counters of the hardware are read of so many kernels."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run needs besides the documents. count: None on a device without counters."""

    here: Here
    open_evaluator: Opener
    folder: Path
    observer: Observer
    count: Counting | None = None


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
    if run.count:
        for group in _with_counters(_judged(claims, done), run.count, run.observer):
            append_group(run.folder, group)
            done.append(group)
        write_claims(run.folder, _judged(claims, done))
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


def _with_counters(claims: Claims, count: Counting, observer: Observer) -> list[Group]:
    """Groups with the counters that they lack: of the rows behind claims that do not hold or ask for them."""
    places = [(group, row) for group in claims.groups for row in group.rows if _unread(row)]
    behind = {id(reading.row) for reading in _to_count(claims)}
    wanted = [(group, row) for group, row in places if id(row) in behind]
    if not wanted:
        return []
    kernels = {(group.case, _by_call(row)): None for group, row in wanted}
    observer.counting(len(kernels))
    found = dict(zip(kernels, count(list(kernels)), strict=True))
    counters = {id(row): found[group.case, _by_call(row)] for group, row in wanted}
    return [
        replace(group, rows=tuple(replace(row, counters=counters.get(id(row), row.counters)) for row in group.rows))
        for group in claims.groups
        if any(id(row) in counters for row in group.rows)
    ]


def _unread(row: Row) -> bool:
    """Whether counters could say something of a row. What stays on chip has no step of its own."""
    return not row.counters and not row.duty and not row.why_not and row.config.get("launch") != "resident"


def _by_call(row: Row) -> KernelConfig:
    """The kernel of a row: the same ones whether a graph launches them or a call."""
    return from_flat({**row.config, "launch": "call"})


def _to_count(claims: Claims) -> Iterator[Reading]:
    fails = {(v.document, v.claim) for v in claims.verdicts if v.holding is Holding.FAILS}
    for document in claims.documents:
        readings = readings_of(document, claims.groups, claims.header.backend)
        for claim in document.claims:
            failed = (document.name, claim.name) in fails and claim.kind != "interval-loss"  # which is all duty
            if failed or (claim.kind == COUNTED and claims.header.backend not in claim.untestable):
                yield from rests_on(claim, readings)


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
    found = (verdicts(d, ordered, header.backend, header.rates) for d in claims.documents)
    return replace(claims, groups=ordered, verdicts=tuple(verdict for one in found for verdict in one))
