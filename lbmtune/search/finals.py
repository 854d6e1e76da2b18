"""The end of a study: finals, sustained runs and accuracy of the best.

Finalists are the best of all and the best of each kind that a user would compare, so that both sides of a statement
such as "in place as fast as with two lattices, in half the memory" rest on finals.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from lbmtune.catalogue.problem.case import Case
from lbmtune.records import Accuracy, Outcome, Trial
from lbmtune.records.output import OutputCost
from lbmtune.records.store import append_trial, read_study
from lbmtune.records.study import StudyRecord
from lbmtune.search.clock import COMPARED_RUNS, now
from lbmtune.search.interfaces import Search
from lbmtune.search.kinds import Kind, Rounding, kind_of, rounding_of
from lbmtune.search.pareto import members
from lbmtune.search.plan import Plan
from lbmtune.units import mlups

_MOST_FINALS = 20
"""Rounds of finals in which finalists that fail are replaced by the next best."""
NEAR = 0.95
"""Share of the best speed from which a kind has a final, because first measurements may rank closer ones wrongly."""


def finalists_of(record: StudyRecord) -> tuple[Trial, ...]:
    """Return the finalists by their first measurements, best first, without finals; `stands_for` names what each leads.

    They are the best of all, up to the number in the protocol and at least one; the best of each set of requirements;
    and the best of each kind that comes near the best. If speed does not decide, they are the best of all alone. Of
    several objectives their Pareto set follows. Speed stands for energy, which is known of earlier finalists alone.
    """
    first = replace(record, trials=tuple(map(_by_first, record.trials)))
    ranked = first.ranked
    best = {trial.number for trial in (*ranked[: max(1, record.header.spec.protocol.finalists)], *members(first))}
    leaders = _leaders(ranked) if record.header.spec.objective in ("mlups", "energy") else {}
    by_number = {trial.number: trial for trial in record.trials}
    return tuple(
        replace(by_number[trial.number], final=None, stands_for=str(leaders.get(trial.number, "")))
        for trial in ranked
        if trial.number in best or trial.number in leaders
    )


def _by_first(trial: Trial) -> Trial:
    run = trial.sustained
    return replace(trial, final=None, verification=None, sustained=run and replace(run, energy_j=None))


def _leaders(ranked: tuple[Trial, ...]) -> Mapping[int, Kind]:
    """Return the kinds that are near the best or first of their requirements, by number of the trial that leads."""
    leaders: dict[int, Kind] = {}
    kinds: set[Kind] = set()
    requirements: set[object] = set()
    for trial in ranked:
        kind = kind_of(trial.kernel_config)
        near = (trial.mlups or 0.0) >= NEAR * (ranked[0].mlups or 0.0)
        if kind.requirements not in requirements or (near and kind not in kinds):
            leaders[trial.number] = kind
        kinds.add(kind)
        requirements.add(kind.requirements)
    return leaders


def hold_finals(search: Search, plan: Plan) -> None:
    """Verify the finalists at full size and measure them in turns, until as many as wanted and fitting have passed."""
    for held in range(_MOST_FINALS):
        record = _measured_again(search, read_study(search.folder))
        wanted = finalists_of(record)
        finalists = plan.fitting(sorted(wanted, key=lambda t: t.number != _first(record)) if plan.held else wanted)
        if not finalists or _is_complete(record, finalists) or (plan.limited and _nothing_new(record, finalists)):
            break
        if held and all(t.proven and t.finals_reason for t in finalists):
            break  # none could be measured, and none was to blame
        search.observer.finals(finalists, plan.finals_s(finalists))
        _hold_round(search, record, finalists, plan)
    _note_missing(plan, read_study(search.folder))


def _note_missing(plan: Plan, record: StudyRecord) -> None:
    """Note how many finalists have no final, and why, so that none is missing without a word."""
    missing = [trial for trial in finalists_of(record) if trial.number not in _measured(record)]
    if missing:
        reasons = "; ".join(dict.fromkeys(filter(None, (t.finals_reason or t.reason for t in missing))))
        kernels = f"{'other ' * bool(_measured(record))}kernel{'s' * (len(missing) > 1)}"
        plan.left_out.append(f"finals of {len(missing)} {kernels}{f': {reasons}' * bool(reasons)}")
        plan.no_finals = reasons


def fastest_s(case: Case, done: Sequence[Trial]) -> float | None:
    """Return the seconds per step of the fastest trial by first measurements; None without a verified trial."""
    speeds = [t.measurement.mlups for t in done if t.measurement and t.mlups]
    return case.fluid_sites / (max(speeds) * 1e6) if speeds else None


def _measured_again(search: Search, record: StudyRecord) -> StudyRecord:
    """Measure trials again that were dismissed beside one that has lost its speed since; return the study then."""
    spec = record.header.spec
    incumbent_s = fastest_s(spec.case, record.trials)
    slowest_mlups = mlups(spec.case.fluid_sites, 1, spec.protocol.bail_out * incumbent_s) if incumbent_s else 0.0
    waiting = [t for t in record.ranked if t.measurement and t.measurement.dismissed]
    waiting = [t for t in waiting if t.measurement and t.measurement.mlups > slowest_mlups]
    if not waiting:
        return record
    before, in_flight = {t.number: t for t in waiting}, 0
    search.evaluator.incumbent_s = incumbent_s
    while waiting or in_flight:
        while waiting and in_flight < search.evaluator.max_in_flight:
            trial = waiting.pop(0)
            search.evaluator.submit(trial.number, trial.kernel_config)
            in_flight += 1
        answer, in_flight = search.evaluator.next(), in_flight - 1
        first = before[answer.number]
        found = _answered(first, answer, answer.costs.measure_s, "measured again")
        again = replace(found, measurement=answer.measurement, prediction=answer.prediction, device=answer.device)
        append_trial(search.folder, again)
    return read_study(search.folder)


def _first(record: StudyRecord) -> int | None:
    """Return the number of the winner of earlier finals."""
    return next((t.number for t in record.ranked[:1] if t.final), None)


def _nothing_new(record: StudyRecord, finalists: Sequence[Trial]) -> bool:
    """Return whether finals of these would tell less than those that were held."""
    measured = _measured(record)
    return bool(measured) and {t.number for t in finalists} <= measured


def _measured(record: StudyRecord) -> set[int]:
    return {t.number for t in record.trials if t.final}


def _is_complete(record: StudyRecord, finalists: Sequence[Trial]) -> bool:
    """Return whether these finalists are proven and were measured together."""
    return all(t.proven for t in finalists) and _measured(record) == {t.number for t in finalists}


def _hold_round(search: Search, record: StudyRecord, finalists: Sequence[Trial], plan: Plan) -> None:
    """Verify and measure finalists. If none could be measured, finals of before are kept of those not to blame."""
    begin = time.perf_counter()
    proofs = {n: t.verification for n, t in enumerate(finalists) if t.proven and t.verification}
    race_s = plan.race_left_s(len(finalists), len(finalists) - len(proofs))
    answers = search.evaluator.finals([t.kernel_config for t in finalists], proofs=proofs, race_s=race_s)
    prepared_s = sum(answer.costs.compile_s + answer.costs.verify_s for answer in answers)
    each_s = max(time.perf_counter() - begin - prepared_s, 0.0) / len(answers)
    failed = not any(answer.final for answer in answers)
    before = {t.number: (t.final, t.stands_for) for t in record.trials}
    for trial, answer in zip(finalists, answers, strict=True):
        # one that was verified but could not be measured again keeps its speed, with the reason
        found = _answered(trial, answer, each_s, "in the finals")
        found = replace(found, final=answer.final, finals_reason=answer.reason)
        if failed and answer.outcome is Outcome.OK:
            final, stands_for = before[trial.number]
            found = replace(found, final=final, stands_for=stands_for)
        append_trial(search.folder, found)
    numbers = {t.number for t in finalists}
    for trial in record.trials:
        if trial.final and trial.number not in numbers and not failed:
            append_trial(search.folder, replace(trial, final=None, stands_for=""))  # not comparable with these


def _answered(trial: Trial, answer: Trial, measure_s: float, when: str) -> Trial:
    """Return a trial with verification, costs and outcome of a later measurement, and its reason after `when`."""
    costs = replace(
        trial.costs,
        compile_s=trial.costs.compile_s + answer.costs.compile_s,
        verify_s=trial.costs.verify_s + answer.costs.verify_s,
        measure_s=trial.costs.measure_s + measure_s,
    )
    return replace(
        trial,
        verification=answer.verification or trial.verification,
        costs=costs,
        outcome=answer.outcome,
        reason=f"{when}: {answer.reason}" if answer.reason else "",
    )


def proven(trial: Trial, answer: Trial) -> Trial:
    """Return a trial with its verification at full size, which was made in the search."""
    return _answered(trial, answer, 0.0, "at full size")


def run_sustained(search: Search, plan: Plan) -> None:
    """Run the best for seconds each, except those whose run is on disk, if they fit into the time.

    They take what is left: the longer a run, the more it says of heat and power. Others that may lead over seconds, or
    that a user compares with, share that time. If the study limits the power, the next finalists follow until one stays
    within it.
    """
    if search.sustain is None:
        return
    tried: set[int] = set()
    while wanted := _to_run(read_study(search.folder), tried):
        first = read_study(search.folder).ranked[0].number
        wanted = plan.some(wanted, plan.needs.run_s)
        others = _beside(search, plan, tried)
        wanted += others[: max(plan.runs_left() - len(wanted), 0)] if others else []
        if not plan.fits(len(wanted) * plan.needs.run_s, "sustained runs"):
            return
        run_s = plan.run_s(len(wanted))
        seconds = len(wanted) * (plan.needs.run_s + run_s - plan.needs.spec.protocol.sustained_s)
        tried |= {trial.number for trial in wanted}
        search.observer.sustained(wanted, seconds)
        answers = search.sustain([t.kernel_config for t in wanted], [t.proven for t in wanted], run_s)
        for trial, answer in zip(wanted, answers, strict=True):
            append_trial(search.folder, with_sustained(trial, answer))
        if any(_disqualifies(answer) for answer in answers):
            hold_finals(search, plan)  # the next best replace those that failed
        if plan.needs.runs_decide:
            continue
        if any(_disqualifies(answer) for answer in answers) or read_study(search.folder).ranked[0].number != first:
            record_accuracy(search, plan)
        return


def _beside(search: Search, plan: Plan, tried: Collection[int]) -> list[Trial]:
    """Return trials to run beside the winner: finalists nearly as fast, and the best of one step per launch.

    They run if speed alone is asked for, and the time of the whole is limited, of which they take what is left.
    """
    if not plan.limited or not plan.needs.compares_runs:
        return []
    winner, *others = read_study(search.folder).ranked
    left = [trial for trial in others if trial.number not in tried and not trial.sustained]
    near = [t for t in left if t.final and (t.mlups or 0.0) >= NEAR * (winner.mlups or 0.0)][: COMPARED_RUNS - 2]
    ready = (t for t in left if t.final or t.proven)
    one = next((t for t in ready if t.kernel_config.fused_steps == 1 and not t.kernel_config.on_chip), None)
    compared = winner.kernel_config.fused_steps > 1 and one is not None and one not in near
    return [*near[:1], *([one] if one and compared else []), *near[1:]]


def _to_run(record: StudyRecord, tried: Collection[int]) -> list[Trial]:
    """Return the trials whose sustained run is missing: the best, or all finalists if energy is an objective.

    One that draws too much power is not the best any more, nor one that was tried without a result.
    """
    spec = record.header.spec
    if "energy" in spec.objectives:
        count, best = len(record.ranked), [trial for trial in record.ranked if trial.final]
    elif spec.max_power_w is not None:
        count, best = max(spec.protocol.sustained_top, 1), [t for t in record.ranked if t.final or t.proven]
    else:
        count, best = spec.protocol.sustained_top, _best(record)
    left = [trial for trial in best if trial.sustained or trial.number not in tried]
    return [trial for trial in left[:count] if not trial.sustained]


def _best(record: StudyRecord) -> list[Trial]:
    """Return the winner, then the others by speed alone: some have finals because they lead a kind."""
    if record.header.spec.objective != "mlups":
        return list(record.ranked)
    return [*record.ranked[:1], *sorted(record.ranked[1:], key=lambda trial: -(trial.mlups or 0.0))]


def _disqualifies(answer: Trial) -> bool:
    """Return whether a sustained run failed for another reason than time, which a busy machine can take."""
    return answer.outcome not in (Outcome.OK, Outcome.TIMED_OUT)


def with_sustained(trial: Trial, answer: Trial) -> Trial:
    """Return a trial with its sustained run, which takes its speed if it failed there.

    One that timed out keeps the speed that was measured twice, with the reason.
    """
    found = _answered(trial, answer, answer.costs.measure_s, "in the sustained run")
    outcome = answer.outcome if _disqualifies(answer) else trial.outcome
    return replace(found, sustained=answer.sustained, outcome=outcome, reason=found.reason or trial.reason)


def record_accuracy(search: Search, plan: Plan) -> None:
    """Record the accuracy of the winner and the other finalists, once per rounding, unless it is on disk."""
    if search.accuracy is None:
        return
    known: dict[Rounding, Accuracy | None] = {}
    for trial in (trial for trial in read_study(search.folder).ranked if trial.final):
        config = trial.kernel_config
        rounding = rounding_of(config)
        own = trial.accuracy if trial.accuracy and trial.accuracy.points else None
        whole = own or known.get(rounding) or search.kept_accuracy(config)
        what = "accuracy of other number formats" if known else "accuracy"
        if rounding not in known and not whole and not plan.fits(plan.needs.accuracy_s, what):
            return
        if rounding not in known:
            if not whole:
                search.observer.phase("accuracy", plan.needs.accuracy_s)
            begin = now()
            known[rounding] = whole or search.accuracy(config)
            plan.needs.accuracy_s = plan.needs.accuracy_s if whole else now() - begin
        accuracy = known[rounding]
        if accuracy and not own:
            append_trial(search.folder, replace(trial, accuracy=accuracy))


def record_output(search: Search, plan: Plan) -> None:
    """Record what output costs the finalists, the best first, unless it is on disk, as long as there is time.

    Raises InputError if a file cannot be written.
    """
    record, needs = read_study(search.folder), plan.needs
    wanted = [trial for trial in record.ranked if trial.final and not trial.output]
    if search.output is None or not wanted:
        return
    case, output, rates = record.header.spec.case, record.header.spec.output, record.header.output_rates
    needs.step_s, needs.outputs_s = fastest_s(case, wanted[:1]) or 0.0, search.output_s(wanted[0], output)
    for place, trial in enumerate(wanted):
        others = len(wanted) - place
        if not plan.fits(needs.output_s, f"output of {others} kernel{'s' * (others > 1)}" if place else "output"):
            return
        if not place:
            some = plan.some(wanted, needs.output_s)
            search.observer.output(some, rates.folder if rates else "", len(some) * needs.output_s)
        begin = now()
        (answer,) = search.output([trial.kernel_config])
        needs.output_took(now() - begin)
        found = _answered(trial, answer, answer.costs.measure_s, "output was not measured")
        costs = tuple(_with_prediction(search, trial, one) for one in answer.output)
        # a kernel without a figure for its output keeps its speed, with the reason
        append_trial(
            search.folder, replace(found, outcome=trial.outcome, reason=found.reason or trial.reason, output=costs)
        )


def _with_prediction(search: Search, trial: Trial, cost: OutputCost) -> OutputCost:
    if search.predict_output is None:
        return cost
    return replace(cost, predicted_s=search.predict_output(trial.kernel_config, cost.kind, cost.every))
