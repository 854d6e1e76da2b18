import json
import re
import time
from collections import Counter
from dataclasses import replace

import pytest
from optuna.storages import JournalStorage

from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.problem.flows import box
from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Outcome, Trial
from lbmtune.records.remarks import race_text
from lbmtune.records.spec import Budget, TimingProtocol
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.search.finals import finalists_of
from lbmtune.search.interfaces import Observer, Seen
from lbmtune.search.optuna_view.storage import JOURNAL, Journal, distributions, optuna_name
from lbmtune.search.study import nothing_valid, run_study
from tests.support.studies.fake_study import (
    FakeEvaluator,
    header,
    measurement,
    one_family,
    predict,
    search,
    space_of,
    spec,
    usual_axes,
    verification,
)


def run(folder, study, evaluator=None, **how):
    return run_study(search(folder, evaluator or FakeEvaluator()), header(study), space_of(study), **how)


def test_a_study_spends_its_budget_on_distinct_configurations(tmp_path):
    evaluator = FakeEvaluator()
    record = run(tmp_path, spec(), evaluator)
    assert len(record.trials) == len(set(evaluator.tried)) == 20
    assert [trial.number for trial in record.trials] == list(range(20))
    assert record == read_study(tmp_path)


@pytest.mark.parametrize("place", [0, -1], ids=["which the search tries early", "which it would not try"])
def test_the_default_kernel_is_tried_once_early(tmp_path, place):
    evaluator, study = FakeEvaluator(), spec(budget=Budget(trials=30))
    default = sorted(space_of(study).configs, key=lambda one: -predict(one).mlups)[place]
    needs = replace(search(tmp_path, evaluator), default=default)
    record = run_study(needs, header(study), space_of(study))
    assert len(record.trials) == len(set(evaluator.tried)) == 30
    (trial,) = (one for one in record.trials if from_flat(one.config) == default)
    assert trial.number < 20
    assert trial.mlups


def test_a_study_that_is_too_short_for_many_trials_tries_the_default_kernel(tmp_path):
    def slow(stage: str, number: int) -> None:
        time.sleep(0.1 if stage == "measure" else 0.0)

    evaluator, study = FakeEvaluator(at=slow), spec(budget=Budget(seconds=0.8))
    default = sorted(space_of(study).configs, key=lambda one: -predict(one).mlups)[-1]
    needs = replace(search(tmp_path, evaluator), default=default)
    record = run_study(needs, header(study), space_of(study))
    assert len(record.trials) < 12
    (trial,) = (one for one in record.trials if from_flat(one.config) == default)
    assert trial.mlups


def test_a_search_of_several_steps_tries_the_best_kernels_of_one_step_by_the_model(tmp_path):
    several = {"family": ("temporal-blocking",), "representation": ("moments",), "steps": (2, 3)}
    several |= {"block": ("32x8x1", "64x8x1"), "rows": (1, 2, 3), "pack": (1, 2, 4), "chunk_planes": (16, 32, 64)}
    one = {**usual_axes("cuda"), "scheme": ("pull", "aa"), "block": ("64x1x1",)}
    case = box("d3q19", "regularised", (64, 64, 64))
    study = spec(axes=(one, several), case=case, budget=Budget(trials=34), strategy="list")
    record, configs = run(tmp_path, study), space_of(study).configs
    of_one_step = sorted((one for one in configs if one.fused_steps == 1), key=lambda one: -predict(one).mlups)
    tried = [trial.kernel_config for trial in record.trials]
    assert len([one for one in configs if one.fused_steps > 1]) > 34
    assert min(predict(one).mlups for one in tried if one.fused_steps > 1) > predict(of_one_step[0]).mlups
    assert {one for one in tried if one.fused_steps == 1} == set(of_one_step[:4])
    assert all(one.fused_steps > 1 for one in tried[:20]), "they come when nothing else waits for them"


def test_a_search_that_is_too_short_tries_what_the_model_puts_first(tmp_path):
    """Kernels of one step are what users compare with, and not what a search without time for more is for."""
    several = {"family": ("temporal-blocking",), "representation": ("moments",), "steps": (2,), "block": ("32x8x1",)}
    one = {**usual_axes("cuda"), "scheme": ("pull", "aa"), "block": ("64x1x1",)}
    case = box("d3q19", "regularised", (64, 64, 64))
    study = spec(axes=(one, several), case=case, budget=Budget(seconds=2.0), strategy="list")
    record = run(tmp_path, study)
    assert record.trials
    assert record.trials[0].kernel_config.fused_steps == 2


def test_the_sustained_run_is_of_the_winner_that_the_study_ends_with(tmp_path):
    """Among tied finalists the smallest wins, already when the sustained run begins."""
    evaluator, study, winners = FakeEvaluator(), spec(protocol=TimingProtocol(finalists=4)), []

    def sustained(configs, proven, seconds):
        now = read_study(tmp_path)
        winners.append((now.winner.key, configs[0].key, now.header.stopped))
        return evaluator.sustained(configs, proven, seconds)

    needs = replace(search(tmp_path, evaluator), sustain=sustained)
    record = run_study(needs, header(study), space_of(study))
    assert record.header.stopped
    assert winners == [(record.winner.key, record.winner.key, record.header.stopped)]


def test_the_best_are_measured_again_and_lead_the_ranking(tmp_path):
    evaluator = FakeEvaluator()
    record = run(tmp_path, spec(axes=one_family(), protocol=TimingProtocol(finalists=4)), evaluator)
    finals = [trial for trial in record.ranked if trial.final]
    assert [trial.key for trial in finals] == [trial.key for trial in record.ranked[:4]]
    assert sorted(evaluator.finalists) == sorted(trial.key for trial in finals)
    by_first = sorted((t.measurement.mlups for t in record.trials if t.mlups), reverse=True)
    assert sorted((t.measurement.mlups for t in finals), reverse=True) == by_first[:4]


def test_families_are_measured_again_beside_the_best_and_say_what_they_stand_for(tmp_path):
    evaluator = FakeEvaluator()
    record = run(tmp_path, spec(), evaluator)
    finals = record.ranked[: len(evaluator.finalists)]
    assert all(trial.final for trial in finals)
    assert [t.number for t in finalists_of(record)] == [
        t.number for t in sorted(finals, key=lambda t: -t.measurement.mlups)
    ]
    leads = {trial.config["scheme"]: trial.stands_for for trial in finals if trial.stands_for}
    assert leads["aa"] == "aa, populations in one lattice"
    copied = next(scheme for scheme in ("pull", "push") if scheme in leads)
    assert leads[copied] == f"{copied}, populations in two lattices"
    assert len(finals) > 5


def test_workers_hear_what_may_come_unless_nothing_may(tmp_path):
    begun, done = FakeEvaluator(), FakeEvaluator()
    run(tmp_path, spec(), begun)
    assert begun.expected == space_of(spec()).configs
    run(tmp_path, spec(), done, resume=True)
    assert not hasattr(done, "expected")


class Recording:
    """A strategy that notes what it is told. It wants all in order, and measures the best by the last figures."""

    def __init__(self, configs, found, study):
        self.expected = dict(enumerate(one.mlups for one in found))
        self.told, self.seen, self.choices = {}, {}, []
        self.left = sorted(self.expected, key=lambda i: -self.expected[i])

    def wanted(self, count):
        now, self.left = self.left[:count], self.left[count:]
        return now

    def next(self, ready):
        self.choices.append((set(ready), len(self.seen)))
        return max(ready, key=lambda i: self.expected[i])

    def refine(self, index, mlups):
        self.told[index] = mlups
        self.expected[index] = mlups or 0.0

    def observe(self, index, seen):
        self.seen[index] = seen

    def gain(self):
        return None


def recorded(folder, study, evaluator, **how):
    made = []

    def strategy(*given):
        made.append(Recording(*given))
        return made[0]

    record = run_study(replace(search(folder, evaluator), strategy=strategy, **how), header(study), space_of(study))
    return record, made[0]


def test_what_a_compiler_says_decides_what_is_tried_first(tmp_path):
    """What would come first spills; another is twice as fast as any was thought to be; some do not compile."""
    study = spec(budget=Budget(trials=6))
    space = space_of(study)
    fastest = max(predict(config).mlups for config in space.configs)
    evaluator = FakeEvaluator()
    plain, _ = recorded(tmp_path / "estimated", study, FakeEvaluator())
    estimated = [trial.key for trial in plain.trials]
    spills, good, refused = estimated[0], estimated[4], estimated[5]
    evaluator.predicted = {spills: 1.0, good: 2 * fastest, refused: None}
    record, strategy = recorded(tmp_path / "compiled", study, evaluator, compiled=6)
    index = {config.key: i for i, config in enumerate(space.configs)}
    assert strategy.told[index[spills]] == 1.0
    assert strategy.told[index[good]] == 2 * fastest
    assert strategy.told[index[refused]] is None
    by_key = {trial.key: trial for trial in record.trials}
    assert by_key[refused].outcome is Outcome.COMPILE_FAILED
    assert by_key[good].number < by_key[spills].number if spills in by_key else good in by_key


def test_the_next_is_chosen_when_the_measurer_is_free(tmp_path):
    """Each choice but the first two hears all results but that of one that is under way."""
    study = spec(budget=Budget(trials=9))
    _, strategy = recorded(tmp_path, study, FakeEvaluator())
    heard = [count for _, count in strategy.choices]
    assert heard == sorted(heard)
    assert all(number - 1 <= count <= number for number, count in enumerate(heard))
    assert len(strategy.choices) == 9
    assert set(strategy.seen.values()) >= {Seen(None)}, "a wrong kernel is known to be of no use"


def test_what_has_ended_meanwhile_is_heard_before_the_next_is_chosen(tmp_path):
    """Four are under way, as on two devices, and all end while the strategy is busy."""

    class Quick(FakeEvaluator):
        def compile_room(self, ready):
            return 8 - ready - len(self._compiling)

        def measure_room(self):
            return 4 - len(self._queue)

        def has_event(self):
            return bool(self._compiling or self._queue)

    _, strategy = recorded(tmp_path, spec(budget=Budget(trials=12)), Quick())
    assert [count for _, count in strategy.choices] == [0] * 4 + [4] * 4 + [8] * 4


def test_first_kernels_are_compiled_before_one_is_measured_if_trials_are_counted(tmp_path):
    counted, timed = (
        recorded(tmp_path / name, spec(budget=budget), FakeEvaluator(), compiled=3)[1].choices[0][0]
        for name, budget in (("trials", Budget(trials=6)), ("time", Budget(seconds=0.2)))
    )
    assert len(counted) == 3
    assert len(timed) == 1


def test_nothing_is_compiled_for_a_study_that_is_over(tmp_path):
    study, evaluator = spec(budget=Budget(trials=6)), FakeEvaluator()
    run(tmp_path, study)
    run(tmp_path, study, evaluator, resume=True)
    assert evaluator.compiled == []


@pytest.mark.parametrize("outcome", [Outcome.UNSTABLE_TIMING, Outcome.TIMED_OUT])
def test_what_the_machine_may_have_spoilt_is_unknown_and_can_be_asked_again(tmp_path, outcome):
    class Once(FakeEvaluator):
        def next(self):
            trial = super().next()
            return replace(trial, outcome=outcome, measurement=None) if len(self.tried) == 1 else trial

    class Again(Recording):
        def observe(self, index, seen):
            super().observe(index, seen)
            if not seen.known:
                self.left.insert(0, index)

    study, evaluator, made = spec(budget=Budget(trials=5)), Once(), []
    record = run_study(
        replace(search(tmp_path, evaluator), strategy=lambda *given: made.append(Again(*given)) or made[0]),
        header(study),
        space_of(study),
    )
    assert len(record.trials) == 5
    first = next(trial for trial in record.trials if trial.key == evaluator.tried[0])
    assert evaluator.tried.count(first.key) == 2
    assert first.outcome is not outcome
    assert first.costs.verify_s == pytest.approx(0.4), "of both"
    assert len(evaluator.tried) == 6


def test_the_seconds_of_the_search_go_on_where_it_resumes(tmp_path):
    first = run(tmp_path, spec(budget=Budget(trials=10)))
    noted = [trial.elapsed_s for trial in first.trials]
    assert 0 < min(noted) < max(noted) == first.search_s
    second = run(tmp_path, spec(), resume=True)
    assert min(t.elapsed_s for t in second.trials if t.number >= 10) > first.search_s
    assert second.verified_per_s == second.verified_binaries / second.search_s


def test_where_no_seconds_were_noted_dates_tell_them():
    trials = [
        Trial(number=n, key=str(n), config={}, outcome=Outcome.OK, binary_digest=digest, date=f"2000-01-01T00:00:{s}Z",
              measurement=None if n == 3 else measurement(space_of(spec()).configs[0]))
        for n, digest, s in ((0, "a", "10"), (1, "a", "04"), (2, "b", "08"), (3, "c", "06"))
    ]  # fmt: skip
    record = StudyRecord(header=header(spec()), trials=tuple(trials))
    assert (record.verified_binaries, record.search_s, record.verified_per_s) == (2, 10.0, 0.2)
    assert StudyRecord(header=header(spec()), trials=()).verified_per_s is None


def test_a_record_is_on_disk_before_optuna_and_the_observer_hear_of_it(tmp_path):
    class Watcher(Observer):
        counts = []

        def finished(self, trial):
            self.counts.append(len(read_study(tmp_path).trials))

    study = spec(budget=Budget(trials=5))
    run_study(search(tmp_path, FakeEvaluator(), Watcher()), header(study), space_of(study))
    assert Watcher.counts == [1, 2, 3, 4, 5]


def test_optuna_holds_the_same_trials(tmp_path):
    import optuna

    record = run(tmp_path, spec())
    kept = optuna.load_study(
        study_name=optuna_name(record.header), storage=JournalStorage(Journal(tmp_path / JOURNAL))
    ).trials
    by_number = {trial.user_attrs["lbmtune:number"]: trial for trial in kept}
    names = set(distributions(space_of(spec()).configs))
    for trial in record.trials:
        assert by_number[trial.number].params == {n: v for n, v in trial.config.items() if n in names}
        assert by_number[trial.number].value == trial.mlups


def test_optuna_says_of_each_trial_what_the_record_says(tmp_path):
    import optuna

    record = run(tmp_path, spec(budget=Budget(trials=40)))
    kept = optuna.load_study(study_name=optuna_name(record.header), storage=JournalStorage(Journal(tmp_path / JOURNAL)))
    assert kept.metric_names == ["MLUPS"]
    by_number = {trial.user_attrs["lbmtune:number"]: trial for trial in kept.trials}
    for trial in record.trials:
        told = by_number[trial.number].user_attrs
        assert (told["key"], told["outcome"]) == (trial.key, str(trial.outcome))
        assert told["predicted_mlups"] == trial.prediction.mlups
        assert told.get("reason", "") == trial.reason
        assert told.get("share_of_ceiling") == (record.share_of_ceiling(trial) if trial.mlups else None)
        assert told.get("final_mlups") == (trial.final.mlups if trial.final else None)
    assert any("final_mlups" in trial.user_attrs for trial in kept.trials)
    assert any(trial.user_attrs.get("reason") == "planted" for trial in kept.trials)


def test_the_dashboard_of_optuna_opens_the_journal_of_a_study(tmp_path):
    """Its server is asked as a browser would."""
    from wsgiref.util import setup_testing_defaults

    from optuna_dashboard import wsgi

    record = run(tmp_path, spec())
    app = wsgi(JournalStorage(Journal(tmp_path / JOURNAL)))

    def got(path):
        asked, status = {}, []
        setup_testing_defaults(asked)
        asked |= {"PATH_INFO": path, "HTTP_ACCEPT": "application/json"}
        body = b"".join(app(asked, lambda said, _, *__: status.append(said)))
        assert status == ["200 OK"]
        return json.loads(body)

    (summary,) = got("/api/studies")["study_summaries"]
    assert summary["study_name"] == optuna_name(record.header)
    shown = got(f"/api/studies/{summary['study_id']}")
    assert shown["objective_names"] == ["MLUPS"]
    assert len(shown["trials"]) == len(record.trials)
    told = {one["key"]: one["value"] for one in shown["trials"][0]["user_attrs"]}
    assert told["key"] in {trial.key for trial in record.trials}
    assert {"outcome", "predicted_mlups"} <= told.keys()


def test_a_journal_that_cannot_be_written_is_told_and_the_study_goes_on_later(tmp_path):
    record = run(tmp_path, spec())
    (tmp_path / JOURNAL).unlink()
    (tmp_path / JOURNAL).mkdir()
    with pytest.raises(
        InputError, match=rf"^cannot write {tmp_path / JOURNAL}: Is a directory; see to the folder, and"
    ):
        run(tmp_path, spec(), resume=True)
    (tmp_path / JOURNAL).rmdir()
    assert run(tmp_path, spec(), resume=True).ranked == record.ranked
    assert (tmp_path / JOURNAL).is_file()


def test_a_small_space_is_used_up(tmp_path):
    study = spec(axes={"scheme": ("aa", "pull"), "block": ("32x1x1",), "cells_per_thread": (1, 2)})
    assert len(run(tmp_path, study).trials) == 4


def test_one_configuration_makes_a_study(tmp_path):
    assert len(run(tmp_path, spec(axes={"scheme": ("aa",), "block": ("64x1x1",)})).trials) == 1


def test_the_time_budget_ends_the_search(tmp_path):
    study = spec(budget=Budget(search_seconds=1e-9))
    with pytest.raises(NothingValidError, match="no trial fitted the budget"):
        run(tmp_path, study)


def test_footprint_puts_small_before_fast(tmp_path):
    record = run(tmp_path, spec(objective="footprint"))
    sizes = [predict_of(trial, record) for trial in record.ranked]
    finals = sum(trial.final is not None for trial in record.ranked)
    assert finals == 5
    assert sizes[:finals] == sorted(sizes[:finals])
    assert sizes[finals:] == sorted(sizes[finals:])
    assert max(sizes[:finals]) <= min(sizes[finals:])
    assert predict_of(record.ranked[0], record) == min(predict(c).footprint_bytes for c in space_of(spec()).configs)


def predict_of(trial, record):
    return trial.prediction.footprint_bytes


def test_where_all_fail_the_outcomes_are_counted(tmp_path):
    with pytest.raises(NothingValidError, match="6 crashed"):
        run(tmp_path, spec(budget=Budget(trials=6)), FakeEvaluator(fails=Outcome.CRASHED))
    assert len(read_study(tmp_path).trials) == 6


def test_a_finalist_that_fails_at_full_size_loses_its_speed(tmp_path):
    class Strict(FakeEvaluator):
        rounds = 0

        def finals(self, configs, **how):
            self.rounds += 1
            first, *rest = super().finals(configs, **how)
            if self.rounds == 1:
                first = replace(first, outcome=Outcome.WRONG_RESULT, reason="overflow", final=None)
            return [first, *rest]

    evaluator = Strict()
    record = run(tmp_path, spec(axes=one_family()), evaluator)
    (failed,) = (trial for trial in record.trials if trial.reason == "in the finals: overflow")
    assert failed.outcome is Outcome.WRONG_RESULT
    assert failed.mlups is None
    assert failed not in record.ranked
    assert failed.key not in evaluator.finalists
    assert len(evaluator.finalists) == 5, "the next best takes its place"
    assert sum(trial.final is not None for trial in record.trials) == 5


def refusing(wrong):
    """An evaluator whose finals find the configurations wrong for which `wrong` holds."""

    class Refusing(FakeEvaluator):
        def finals(self, configs, **how):
            return [
                replace(trial, outcome=Outcome.WRONG_RESULT, reason="overflow", final=None, verification=None)
                if wrong(trial)
                else trial
                for trial in super().finals(configs, **how)
            ]

    return Refusing()


def test_finals_go_on_until_one_passes(tmp_path):
    first = run(tmp_path / "first", spec(axes=one_family()))
    by_speed = sorted((t for t in first.trials if t.mlups), key=lambda t: -t.measurement.mlups)
    best = {trial.key for trial in by_speed[:7]}
    record = run(tmp_path / "second", spec(axes=one_family()), refusing(lambda trial: trial.key in best))
    assert record.winner.key == by_speed[7].key
    assert record.winner.final
    assert record.winner.proven
    assert [t.key for t in record.ranked[:5]] == [t.key for t in record.ranked if t.final]


def test_what_was_dismissed_beside_a_false_winner_is_measured_again(tmp_path):
    """A kernel that is wrong at full size was fastest and had the others dismissed after a first look."""
    study = spec(axes=one_family(), budget=Budget(trials=8), protocol=TimingProtocol(finalists=1))
    false = {}

    class Dismissing(FakeEvaluator):
        def next(self):
            trial = super().next()
            first = self.tried.count(trial.key) == 1
            trial = replace(trial, device="another" if first else "")  # of two devices
            if not trial.mlups:
                return trial
            false.setdefault("key", trial.key)
            if trial.key == false["key"]:
                return replace(trial, measurement=replace(trial.measurement, mlups=1e6))
            slow = study.case.fluid_sites / trial.measurement.mlups / 1e6 > 1.25 * (self.incumbent_s or 1e-6)
            return replace(trial, measurement=replace(trial.measurement, dismissed=slow))

        def finals(self, configs, **how):
            return [
                replace(t, final=None, outcome=Outcome.WRONG_RESULT, reason="wrong") if t.key == false["key"] else t
                for t in super().finals(configs, **how)
            ]

    evaluator = Dismissing()
    evaluator.incumbent_s = None
    record = run(tmp_path, study, evaluator)
    wrong = next(t for t in record.trials if t.key == false["key"])
    assert (wrong.outcome, wrong.reason) == (Outcome.WRONG_RESULT, "in the finals: wrong")
    others = [t for t in record.ranked if t.measurement]
    assert len(others) > 2
    again = Counter(evaluator.tried)
    fastest = max(t.measurement.mlups for t in others)
    for trial in others:
        assert trial.measurement.dismissed == (trial.measurement.mlups < fastest / 1.25)
        assert again[trial.key] == (1 if trial.measurement.dismissed else 2)
        assert trial.device == ("another" if trial.measurement.dismissed else "")
    assert len(record.trials) == 8


def test_where_none_passes_at_full_size_nothing_wins(tmp_path):
    with pytest.raises(NothingValidError, match="wrong result"):
        run(tmp_path, spec(), refusing(lambda _: True))
    record = read_study(tmp_path)
    assert record.winner is None
    assert record.ranked == ()


def test_a_study_that_never_held_its_finals_has_no_winner(tmp_path):
    class Stopped(FakeEvaluator):
        def finals(self, configs, **how):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, spec(), Stopped())
    record = read_study(tmp_path)
    assert record.ranked
    assert record.winner is None


def test_why_a_finalist_has_no_final_measurement_is_told(tmp_path):
    class Dying(FakeEvaluator):
        def finals(self, configs, **how):
            return [replace(trial, final=None, reason="killed by SIGKILL") for trial in super().finals(configs, **how)]

    evaluator = Dying()
    record = run(tmp_path, spec(), evaluator)
    finalists = [trial for trial in record.trials if trial.key in evaluator.finalists]
    assert {trial.reason for trial in finalists} == {"in the finals: killed by SIGKILL"}
    assert all(trial.mlups == trial.measurement.mlups for trial in finalists)


@pytest.mark.parametrize("reason", ["", "killed by SIGKILL"])
def test_finalists_that_the_search_has_proven_have_finals_too(tmp_path, reason):
    """Once, if they cannot be measured there, and once more when the study is resumed."""

    class Early(FakeEvaluator):
        held = 0

        def next(self):
            answer = super().next()
            return replace(answer, verification=answer.measurement and verification())

        def finals(self, configs, **how):
            self.held += 1
            found = super().finals(configs, **how)
            return [replace(trial, final=None, reason=reason) for trial in found] if reason else found

    evaluator = Early()
    record = run(tmp_path, spec(), evaluator)
    assert all(trial.proven for trial in record.ranked)
    assert evaluator.held == 1
    assert {trial.key for trial in record.trials if trial.final} == ({*evaluator.finalists} if not reason else set())
    again = run_study(search(tmp_path, evaluator), header(spec()), space_of(spec()), resume=True)
    assert evaluator.held == (2 if reason else 1)
    assert [trial.key for trial in again.ranked] == [trial.key for trial in record.ranked]
    for one in (record, again):
        kernels = f"finals of {len(evaluator.finalists)} kernels: killed by SIGKILL"
        assert one.header.left_out == ((kernels,) if reason else ())
        assert ("none were held (killed by SIGKILL)" in race_text(one)) == bool(reason)


def test_finals_that_fail_leave_those_that_were_held_before(tmp_path):
    """A machine under load may end the second ones, for which nobody is to blame."""

    class Dying(FakeEvaluator):
        dies = False

        def finals(self, configs, **how):
            found = super().finals(configs, **how)
            return [replace(trial, final=None, reason="timed out") for trial in found] if self.dies else found

    evaluator, study = Dying(), spec(axes=one_family(), budget=Budget(trials=6))
    record = run(tmp_path, study, evaluator)
    held = {trial.number: trial.final for trial in record.trials if trial.final}
    assert len(held) == 5
    evaluator.dies = True
    more = replace(study, budget=Budget(trials=40))
    again = run_study(search(tmp_path, evaluator), header(more), space_of(more), resume=True)
    assert len(again.trials) > len(record.trials)
    assert {trial.number: trial.final for trial in again.trials if trial.final} == held
    assert again.header.left_out
    assert all(re.fullmatch(r"finals of \d other kernels?: timed out", text) for text in again.header.left_out)


def test_the_cost_of_searching_is_recorded(tmp_path):
    costs = run(tmp_path, spec()).costs
    assert costs.compile_s == pytest.approx(2.0)
    assert costs.verify_s == pytest.approx(4.0)
    assert costs.measure_s == pytest.approx(6.0, abs=0.1)
    assert costs.search_s > 0


def test_limits_that_were_too_short_are_named_with_what_raises_them(tmp_path):
    with pytest.raises(NothingValidError):
        run(tmp_path, spec(budget=Budget(trials=2)), FakeEvaluator(fails=Outcome.TIMED_OUT))
    record = read_study(tmp_path)
    late = tuple(replace(trial, reason="compile took longer than 60 s") for trial in record.trials)
    assert "(2 timed out)" in nothing_valid(replace(record, trials=late))
    assert nothing_valid(replace(record, trials=late)).endswith(" with --set protocol.compile_limit_s=120.")
    slow = tuple(replace(trial, reason="measure took longer than 60 s") for trial in record.trials)
    fewer = " with --set protocol.measure_limit_s=120, or with half the domain, --set case.domain=32x32x32."
    assert nothing_valid(replace(record, trials=slow)).endswith(fewer)
    assert "--set" not in nothing_valid(record), "no stage is known that was too slow"
