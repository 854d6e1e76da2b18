"""A study from its first trial to its last phase: the search, then finals, sustained runs and accuracy.

A study that is killed at any moment resumes from its records: measured trials stay, those in flight are tried again, no
configuration is tried twice.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from math import ceil, inf
from pathlib import Path
from typing import Any

from lbmtune.errors import InputError, NothingValidError, TimeOverError
from lbmtune.records import Outcome, Trial
from lbmtune.records.header import StudyHeader, prior_text
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import drop_torn_line, holds_study, read_study, write_header
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import TRIALS, remove_unfinished
from lbmtune.search.clock import Clock, Needs, now
from lbmtune.search.finals import hold_finals, record_accuracy, record_output, run_sustained
from lbmtune.search.interfaces import Search
from lbmtune.search.lock import folder_lock
from lbmtune.search.loop import OUT_OF_TIME, Loop
from lbmtune.search.losses import record_profile
from lbmtune.search.plan import Plan
from lbmtune.search.spaces.space import Space
from lbmtune.search.stopping import unreliable_target
from lbmtune.search.visits import visit_again

LOG = logging.getLogger("lbmtune")
_LIMITS = ("max_footprint_bytes", "max_error", "max_power_w")
_KERNELS = ("kernel", "axes", "families")
_QUESTION = ("case", *_KERNELS, "objective", "beside", "strategy", "seed", "protocol", *_LIMITS, "output")
"""Fields of a study that are the same when it is resumed."""


def run_study(search: Search, header: StudyHeader, space: Space, *, resume: bool = False) -> StudyRecord:
    """Run or resume a study in its folder and return its record.

    Raises InputError if the folder holds another study, NothingValidError if no trial was verified at full size.
    """
    with folder_lock(search.folder):
        remove_unfinished(search.folder)
        header, done = _read_folder(search.folder, header, resume=resume)
        begun = replace(header, finished=False, stopped="", left_out=(), no_finals="")
        write_header(search.folder, begun)
        ended = _run(search, begun, space, done)
        _keep_journal(search.folder, begun, space)
        write_header(search.folder, replace(ended, finished=True))
        record = read_study(search.folder)
    if record.winner is None:
        raise NothingValidError(nothing_valid(record))
    return record


def search_alone(search: Search, header: StudyHeader, space: Space) -> int:
    """Run the search of a study whose finals another process holds; return the number of trials."""
    clock = search.clock or Clock(now(), header.spec.budget.seconds or inf)
    write_header(search.folder, header)
    search.observer.started(header, ())
    Loop(search, header, space, (), Plan(clock, Needs(header.spec, header.backend))).run()
    return len(read_study(search.folder).trials)


def _run(search: Search, header: StudyHeader, space: Space, done: Sequence[Trial]) -> StudyHeader:
    """Search, and make what follows as it fits into the time. Returns the header with the end of the search."""
    clock = search.clock or Clock(now(), header.spec.budget.seconds or inf)
    plan = Plan(clock, Needs(header.spec, header.backend))
    loop = Loop(search, header, space, done, plan)
    if header.calibrated_how:
        LOG.info("predictions: %s", header.calibrated_how)
    if remark := unreliable_target(header):
        LOG.warning(remark)
    if header.earlier:
        LOG.info("prior: %s", prior_text(header.earlier))
    first, *others = (one.device_id for one in search.evaluator.environments)
    if others:
        LOG.info("devices: %s, which holds the finals, %s", first, ", ".join(others))
    search.observer.started(header, done)
    if plan.search_left_s() <= 0:
        enough_s = ceil(clock.spent_s + 1.5 * plan.after_search_s)
        LOG.warning(
            f"--time {clock.limit_s:g}s is short for {header.spec.name} (use {enough_s}s or more): the start took "
            f"{clock.spent_s:.1f} s, and two kernels are tried even so."
        )
    try:
        while True:
            stopped = loop.run()
            # from here on ranks are those of the end, ties included: what follows is of the same winner
            write_header(search.folder, replace(header, stopped=stopped))
            if search.gather:
                search.gather()
            visit_again(search, plan)
            hold_finals(search, plan)
            if not stopped.endswith(OUT_OF_TIME) or not plan.goes_on():
                break
            plan.left_out.clear()
            plan.no_finals = ""
        # output, which was asked for, before runs that nobody did and that take what is left; runs that may change who
        # wins before all that is of the winner
        rest = (record_output, record_accuracy)
        for part in (run_sustained, *rest) if plan.needs.runs_decide else (*rest, run_sustained):
            part(search, plan)
        record_profile(search, plan)
    except TimeOverError as error:
        plan.left_out.append(str(error))
    except KeyboardInterrupt:
        write_header(search.folder, replace(header, stopped="interrupted"))
        raise
    held = search.evaluator.environments[0].device_id
    return replace(
        header,
        stopped=stopped,
        left_out=tuple(dict.fromkeys(plan.left_out)),
        no_finals=plan.no_finals,
        finals_device="" if held == header.environment.device_id else held,
    )


def _read_folder(folder: Path, header: StudyHeader, *, resume: bool) -> tuple[StudyHeader, tuple[Trial, ...]]:
    if not holds_study(folder):
        return header, ()
    if not resume:
        raise InputError(f"{folder} already holds a study; add --resume to go on with it, or choose another --output.")
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
    for name in _QUESTION:
        was, here = (_fields(getattr(spec, name), name) for spec in (kept, now))
        for key in {**was, **here}:
            if was.get(key) != here.get(key):
                raise InputError(
                    f"{folder} holds a study with {key} {_text(was.get(key))}, and this one has "
                    f"{_text(here.get(key))}; only the budget can change, so resume it as it was or choose another "
                    "--output."
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


def _keep_journal(folder: Path, header: StudyHeader, space: Space) -> None:
    """Write all trials as a journal of Optuna, at the end: it loads slowly. Raises InputError."""
    from lbmtune.search.optuna_view.storage import JOURNAL, write_journal

    path = folder / JOURNAL
    try:
        write_journal(path, header, space.configs, read_study(folder).trials)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}; see to the folder, and go on with --resume."
        ) from error


def nothing_valid(record: StudyRecord) -> str:
    """Explain why a study has no winner: power, or counted outcomes, and options for stages that timed out."""
    if said := _power(record):
        return said
    outcomes = Counter(trial.outcome for trial in record.trials)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "no trial fitted the budget"
    what = "was verified on the whole domain" if record.ranked else "gave a verified measurement"
    return f"no configuration {what} ({counted}); see the reasons in the report.{_more_time(record)}"


def _power(record: StudyRecord) -> str:
    """Return that no finalist stays within the power that the study allows; empty if that is not why none wins."""
    most, finals = record.header.spec.max_power_w, [trial for trial in record.ranked if trial.final]
    if most is None or not finals or record.power_rank(finals[0]) == 0:
        return ""
    drawn = {one.key: one.sustained.power_w for one in finals if one.sustained and one.sustained.power_w is not None}
    if not drawn:
        return f"the power of no finalist is known, and the study allows {most:g} W; give it more time (--time)."
    least = min(drawn, key=lambda key: drawn[key])
    found = f"{least} draws the least of {len(drawn)}, {drawn[least]:.1f} W"
    if unknown := len(finals) - len(drawn):
        return (
            f"no finalist is known to stay within --max-power {most:g} W: {found}, and the power of {unknown} more is "
            "not known; give it more time (--time) and --resume."
        )
    return f"no finalist stays within --max-power {most:g} W (use {ceil(drawn[least])} or more): {found}."


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
