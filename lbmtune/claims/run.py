"""The loop of a run of claims: measure and record every group, then judge."""

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
from lbmtune.claims.store import (
    RESULTS,
    append_group,
    of_documents,
    read_claims,
    read_claims_header,
    read_groups,
    write_claims,
)
from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Accuracy, Environment, Outcome, Trial
from lbmtune.records.claims import COUNTED, Claims, ClaimsHeader, Document, Group, Holding, Row, SideTask
from lbmtune.records.parts import Compared
from lbmtune.records.profile import Counters


class Evaluator(Protocol):
    """Verifies configurations on the domain of its case and measures those that pass interleaved."""

    def finals(self, configs: Sequence[KernelConfig], side_tasks: Mapping[int, SideTask] | None = None) -> list[Trial]:
        """Return a trial per configuration, in order. side_tasks: by position."""
        ...

    def accuracy(self, config: KernelConfig) -> Accuracy:
        """Measure the accuracy of a configuration. Raises NothingValidError."""
        ...


Opener = Callable[[Case], AbstractContextManager[Evaluator]]
"""Opens an evaluator for a case."""
OnParts = Callable[[Case, Sequence[Entry]], Sequence[tuple[Trial, Compared | None]]]
"""Measures variants on several devices, in turns: a trial for each, and its state beside that of one device."""
Counting = Callable[[Sequence[tuple[Case, KernelConfig]]], Sequence[Counters]]
"""Reads hardware counters over some steps of each kernel."""


class Observer:
    """Progress observer; the base class does nothing."""

    def started(self, planned: Sequence[Plan], done: Sequence[Group]) -> None:
        """Note that the run begins. done: groups read from disk."""

    def measuring(self, plan: Plan) -> None:
        """Note that a group begins."""

    def finished(self, group: Group) -> None:
        """Note that a group is on disk."""

    def counting(self, kernels: int) -> None:
        """Note that hardware counters are read. kernels: their number."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """The needs of a run besides the documents. count: None on a device without counters; on_parts: None on one."""

    here: Here
    open_evaluator: Opener
    folder: Path
    observer: Observer
    count: Counting | None = None
    on_parts: OnParts | None = None


def run_claims(run: Run, header: ClaimsHeader, documents: Sequence[Document]) -> Claims:
    """Measure the groups that are not on disk and judge every claim; return the results.

    Documents that the folder has besides stay, with their groups. Raises InputError if they cannot be read.
    """
    earlier, kept = earlier_documents(run.folder, documents)
    given = {document.name: document for document in (*earlier, *documents)}
    claims = Claims(header=replace(header, documents=tuple(given)), documents=tuple(given.values()))
    planned = [plan for document in documents for plan in plans(document, run.here)]
    begun = [group for group in read_groups(run.folder) if any(plan.is_of(group) for plan in planned)]
    done = [*kept, *begun]
    write_claims(run.folder, _judged(claims, done))
    run.observer.started(planned, begun)
    for plan in planned:
        if not any(plan.is_of(group) for group in done):
            run.observer.measuring(plan)
            done.append(measure_group(plan, run.open_evaluator, run.on_parts))
            append_group(run.folder, done[-1])
            write_claims(run.folder, _judged(claims, done))
            run.observer.finished(done[-1])
    if run.count:
        for group in _with_counters(_judged(claims, done), run.count, run.observer):
            append_group(run.folder, group)
            done.append(group)
        write_claims(run.folder, _judged(claims, done))
    return read_claims(run.folder)


def earlier_documents(folder: Path, documents: Sequence[Document]) -> tuple[tuple[Document, ...], tuple[Group, ...]]:
    """Return the documents of the run in a folder, and the groups of those that are not asked now; none if it is new.

    Raises InputError if an earlier version wrote those, which cannot be read.
    """
    names = {document.name for document in documents}
    others = set(read_claims_header(folder).documents) - names if (folder / RESULTS).exists() else set()
    if not others:
        return (), ()
    try:
        found = read_claims(folder)
    except InputError as error:
        each = " ".join(f"--only {name}" for name in sorted(others))
        raise InputError(f"the run in {folder} would lose other documents; add {each}: {error}") from error
    return found.documents, tuple(group for group in found.groups if group.document in others)


def check_same_device(folder: Path, environment: Environment) -> None:
    """Raise InputError if the folder was begun on another device: their speeds cannot be compared."""
    for name, was, now in read_claims_header(folder).environment.differences(environment):
        raise InputError(
            f"{folder} was begun with {name} {was!r} and this is {now!r}; choose another --output and begin anew."
        )


def measure_group(plan: Plan, open_evaluator: Opener, on_parts: OnParts | None = None) -> Group:
    """Measure a plan and return the group. on_parts: for experiments on several devices."""
    start = time.monotonic()
    entries, trials, compared = plan.runnable, dict[str, Trial](), dict[str, Compared | None]()
    if entries and plan.series.devices > 1:
        assert on_parts
        for entry, (trial, state) in zip(entries, on_parts(plan.case, entries), strict=True):
            trials[entry.variant.name], compared[entry.variant.name] = trial, state
    elif entries:
        side_tasks = {n: entry.variant.duty for n, entry in enumerate(entries) if entry.variant.duty}
        with open_evaluator(plan.case) as evaluator:
            found = evaluator.finals([entry.config for entry in entries if entry.config], side_tasks)
            found = [_with_accuracy(evaluator, *pair) for pair in zip(entries, found, strict=True)]
        trials = {entry.variant.name: trial for entry, trial in zip(entries, found, strict=True)}
    names = [entry.variant.name for entry in plan.entries]
    each = zip(names, map(plan.row, plan.entries), strict=True)
    rows = tuple(replace(row, trial=trials.get(name), compared=compared.get(name)) for name, row in each)
    seconds = time.monotonic() - start
    return Group(document=plan.document, series=plan.series.name, case=plan.case, rows=rows, seconds=seconds)


def _with_counters(claims: Claims, count: Counting, observer: Observer) -> list[Group]:
    """Return groups with the counters that they lack: rows of claims that fail or that are about counters."""
    needed = {id(reading.row) for reading in _to_count(claims)}
    wanted = [
        (group, row) for group in claims.groups for row in group.rows if id(row) in needed and _lacks_counters(row)
    ]
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


def _lacks_counters(row: Row) -> bool:
    """Return whether counters per step can be read for a row: a persistent kernel has no launch per step."""
    plain = row.duty is None and row.over is None
    return not row.counters and plain and not row.why_not and from_flat(row.config).family != "persistent"


def _by_call(row: Row) -> KernelConfig:
    """Return the kernel of a row, launched by calls, because a graph launches the same kernels."""
    return from_flat({**row.config, "launch": "call"})


def _to_count(claims: Claims) -> Iterator[Reading]:
    fails = {(v.document, v.claim) for v in claims.verdicts if v.holding is Holding.FAILS}
    for document in claims.documents:
        readings = readings_of(document, claims.groups, claims.header.backend)
        for claim in document.claims:
            # an interval loss comes from side tasks alone
            failed = (document.name, claim.name) in fails and claim.kind != "interval-loss"
            if failed or (claim.kind in COUNTED and claims.header.backend not in claim.untestable):
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
