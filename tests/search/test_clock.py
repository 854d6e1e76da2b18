"""The time of a study is that of the whole, on a clock of its own."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from math import inf
from types import SimpleNamespace

import pytest

from lbmtune.errors import TimeOverError
from lbmtune.records import Outcome, Trial
from lbmtune.records.output import Output, OutputCost, rounds_s
from lbmtune.records.spec import Budget, TimingProtocol
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.search import clock as clocks
from lbmtune.search.clock import Clock, Needs, files_s, process_begun_s
from lbmtune.search.finals import NEAR
from lbmtune.search.loop import Loop
from lbmtune.search.plan import Plan
from lbmtune.search.spaces.space import Space
from lbmtune.search.study import run_study
from tests.support.paths import ROOT
from tests.support.studies.fake_study import FakeEvaluator, header, measurement, search, space_of, spec, speed


class Costs(SimpleNamespace):
    """Seconds of each request."""

    start: float
    compile: float
    trial: float
    proof: float
    sample: float
    accuracy: float
    output: float
    losses: float


MACHINES = {
    "a GPU": Costs(start=9.0, compile=0.05, trial=0.08, proof=1.2, sample=0.1, accuracy=2.0, output=1.3, losses=9.5),
    "64 cubed": Costs(start=6.0, compile=0.3, trial=0.2, proof=0.5, sample=0.055, accuracy=2.0, output=1.4, losses=3.0),
    "128 cubed": Costs(start=6.5, compile=0.3, trial=0.4, proof=1.5, sample=0.06, accuracy=2.5, output=3.1, losses=4.0),
    "256 cubed": Costs(start=7.0, compile=0.3, trial=1.4, proof=3.5, sample=0.25, accuracy=2.0, output=6.5, losses=7.0),
}


class Timed(FakeEvaluator):
    """Takes time on a clock that stands still otherwise."""

    def __init__(self, costs: Costs) -> None:
        super().__init__("cpu")
        self.costs, self.now_s, self.deadline_s, self.asked, self.run_s = costs, 100.0, inf, [], 0.0

    def spend(self, seconds: float, what: str) -> None:
        self.asked.append(what)
        if self.now_s + seconds > self.deadline_s:
            self.now_s = max(self.now_s, self.deadline_s)
            raise TimeOverError(f"the time of the study was over during {what}.")
        self.now_s += seconds

    def compile(self, config):
        self.spend(self.costs.compile / 2, "compile")
        super().compile(config)

    def next(self) -> Trial:
        trial = super().next()
        self.spend(self.costs.trial, "trial")
        return trial

    def verify(self, config, *, full=False):
        self.spend(self.costs.proof, "proof")
        return super().verify(config, full=full)

    def finals(self, configs, *, proofs, race_s):
        self.spend(self.costs.proof * (len(configs) - len(proofs)), "proofs")
        rounds = min(15, max(2, int(race_s / (len(configs) * self.costs.sample))))
        self.spend(len(configs) * (0.3 + rounds * self.costs.sample), "race")
        return super().finals(configs, proofs=proofs, race_s=race_s)

    def sustained(self, configs, proven, seconds):
        self.run_s = seconds
        self.ran = [config.key for config in configs]
        each_s = 1.1 * seconds + 0.5 + self.costs.proof / 2  # at lower clocks than it was planned
        self.spend(len(configs) * each_s, "sustained")
        return super().sustained(configs, proven, seconds)

    def accuracy(self, config, *, brief=False):
        self.spend(self.costs.accuracy, "accuracy")
        return super().accuracy(config, brief=brief)

    def losses(self, config, machine=None):
        self.spend(self.costs.losses, "profile")
        return super().losses(config, machine)

    def output(self, configs):
        (config,) = configs
        self.spend(self.costs.output, "output")
        cost = OutputCost(kind="save", every=500, apart=50, event_s=0.02, low_s=0.01, high_s=0.03, step_s=1e-3)
        return [Trial(number=0, key=config.key, config=config.flat(), outcome=Outcome.OK, output=(cost,))]


def held(monkeypatch, tmp_path, machine: Costs, seconds: float, event_s=0.0, timed=Timed, backend="cpu", **changes):
    """Return the evaluator, the record and the seconds of the whole of a study. event_s: of an output, by its rates."""
    evaluator = timed(machine)
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: evaluator.now_s))
    study = spec(backend, budget=Budget(seconds=seconds), **changes)
    begun_s = evaluator.now_s
    evaluator.now_s += machine.start
    needs = replace(
        search(tmp_path, evaluator),
        clock=Clock(begun_s, seconds),
        sustain=evaluator.sustained,
        accuracy=evaluator.accuracy,
        profile=evaluator.losses,
        output=evaluator.output if study.output else None,
        predict_output=lambda *_: {"file": event_s},
    )
    record = run_study(needs, header(study, backend), space_of(study, backend))
    return evaluator, record, evaluator.now_s - begun_s


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seconds", [30.0, 60.0, 120.0])
def test_a_study_ends_within_its_time(monkeypatch, tmp_path, machine, seconds):
    # a strategy that cannot tell when to stop, or the time would not be used up
    evaluator, record, whole_s = held(monkeypatch, tmp_path, MACHINES[machine], seconds, strategy="list")
    rest_s = files_s(len(record.trials))
    all_tried = len(record.trials) == record.header.legal_configurations
    assert 0.9 * seconds <= whole_s + rest_s or all_tried or "all " in record.header.stopped
    assert whole_s + rest_s / 2 <= 1.1 * seconds
    assert record.winner is not None
    assert record.winner.proven
    assert record.winner.final
    assert record.finished
    protocol, run_s = record.header.spec.protocol, evaluator.run_s  # 0 if it is left out
    assert run_s <= protocol.longest_run_s
    if run_s < protocol.longest_run_s and not record.header.left_out:
        # the plan is one for a processor, whose profile takes less than that of a GPU, and its runs are shorter here
        costs, needs = MACHINES[machine], Needs(record.header.spec, "cpu", proof_s=MACHINES[machine].proof)
        late_s = max(costs.losses - needs.profile_s, 0.0) if "profile" in evaluator.asked else 0.0
        early_s = needs.run_s - (1.1 * protocol.sustained_s + 0.5 + costs.proof / 2)
        others = len(evaluator.ran) - 1
        assert whole_s + rest_s - late_s + others * early_s == pytest.approx(seconds, abs=1.0), "runs take what is left"
    assert record.header.stopped.startswith("stopped after ")
    assert len([t for t in record.trials if t.final]) >= 2
    for part in ("sustained", "accuracy", "profile"):
        said = any(text.startswith(part) for text in record.header.left_out)
        assert (part in evaluator.asked) != said, "it is made, or its absence is said"


class Losing(Timed):
    """A device on which the fastest in bursts, which runs first, loses speed over seconds."""

    lost = 0.06

    def sustained(self, configs, proven, seconds):
        answers = super().sustained(configs, proven, seconds)
        speeds = [speed(config) * (1 - self.lost * (n == 0)) for n, config in enumerate(configs)]
        runs = [replace(one.sustained, mlups=mlups) for one, mlups in zip(answers, speeds, strict=True)]
        return [replace(one, sustained=run) for one, run in zip(answers, runs, strict=True)]


class Steady(Losing):
    lost = 0.0


@pytest.mark.parametrize(("timed", "overtaken"), [(Losing, True), (Steady, False)])
def test_finalists_that_may_lead_over_seconds_share_the_time_of_the_winner(monkeypatch, tmp_path, timed, overtaken):
    evaluator, record, _ = held(
        monkeypatch, tmp_path, MACHINES["a GPU"], 120.0, timed=timed, backend="cuda", strategy="list"
    )
    fastest, *others = sorted((t for t in record.trials if t.final), key=lambda t: -(t.mlups or 0.0))
    near = [t.key for t in others if t.mlups >= NEAR * fastest.mlups]
    assert evaluator.ran == [fastest.key, *near[:3]]
    assert near, "or nothing may lead"
    assert {t.key for t in record.trials if t.sustained} == set(evaluator.ran)
    assert (record.overtaken is not None) == overtaken
    assert (record.winner.key != fastest.key) == overtaken
    assert record.winner.accuracy


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seconds", [30.0, 60.0, 120.0])
def test_output_is_measured_if_its_time_is_left(monkeypatch, tmp_path, machine, seconds):
    costs = MACHINES[machine]
    changes = {"output": Output(save=500), "protocol": TimingProtocol(finalists=3), "strategy": "list"}
    evaluator, record, whole_s = held(monkeypatch, tmp_path, costs, seconds, costs.output / 20, **changes)
    rest_s = files_s(len(record.trials))
    finalists = [trial for trial in record.ranked if trial.final]
    measured = [trial for trial in finalists if trial.output]
    assert measured == finalists[: len(measured)], "the best come first"
    assert len(measured) == evaluator.asked.count("output") >= 1
    assert whole_s + rest_s / 2 <= 1.1 * seconds
    left = [text for text in record.header.left_out if text.startswith("output")]
    assert len(left) == (len(measured) < len(finalists))
    others = [evaluator.asked.index(part) for part in ("sustained", "accuracy") if part in evaluator.asked]
    assert all(evaluator.asked.index("output") < place for place in others), "what was asked for comes first"
    if left:
        rest = len(finalists) - len(measured)
        named = "1 kernel" if rest == 1 else f"{rest} kernels"
        assert left[0].startswith(f"output of {named}: {costs.output:.1f} s, ")
        assert seconds - whole_s < rest_s + costs.output, "no time that would do stays unused"


def test_the_time_of_output_is_what_was_measured_or_at_most_what_rates_say():
    needs = Needs(replace(spec("cpu"), output=Output(save=500, residual=100)), "cpu")
    unknown = needs.output_s
    assert 0 < unknown < 3, "as long as no kernel has a speed"
    needs.step_s = 1e-3
    assert needs.output_s == pytest.approx(unknown + 2 * rounds_s(0.0, 1e-3, 100))
    needs.outputs_s = {"save": 0.1}
    assert needs.output_s == pytest.approx(unknown + rounds_s(0.1, 1e-3, 500) + rounds_s(0.0, 1e-3, 100))
    needs.output_took(0.7)
    needs.output_took(0.5)
    assert needs.output_s == 0.7
    assert Needs(spec("cpu"), "cpu").output_s == 0


def test_a_time_in_which_nothing_fits_is_said_and_gives_a_winner(monkeypatch, tmp_path, caplog):
    evaluator, record, _ = held(monkeypatch, tmp_path, MACHINES["64 cubed"], 5.0)
    assert "--time 5s is short for made-up (use " in caplog.text
    assert record.winner is not None
    assert record.winner.proven
    assert "sustained" not in evaluator.asked
    assert "accuracy" not in evaluator.asked
    assert [text.partition(":")[0] for text in record.header.left_out[-2:]] == ["sustained runs", "profile"]


def test_a_trial_that_hangs_leaves_time_for_a_winner(monkeypatch, tmp_path):
    class Hanging(Timed):
        def next(self):
            if len(self.tried) == 12:
                self.tried.append("hangs")
                self.spend(1000.0, "a hang")
            return super().next()

    evaluator = Hanging(MACHINES["64 cubed"])
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: evaluator.now_s))
    study = spec("cpu", budget=Budget(seconds=30.0))
    needs = replace(search(tmp_path, evaluator), clock=Clock(evaluator.now_s, 30.0))
    record = run_study(needs, header(study, "cpu"), space_of(study, "cpu"))
    assert record.winner
    assert record.winner.final
    assert evaluator.now_s - 100.0 <= 33.0
    assert len(record.trials) == 12


class Looked(Plan):
    """A plan whose time for the search is over after so many looks at it."""

    looks = 10**6

    def search_left_s(self) -> float:
        self.looks -= 1
        return float(self.looks)


@pytest.mark.parametrize("strategy", ["list", "random"])  # others may stop before all is tried
def test_what_was_compiled_before_the_finals_is_measured_after_them(tmp_path, strategy):
    study = spec(budget=Budget(), strategy=strategy)
    configs = space_of(study).configs[:: len(space_of(study).configs) // 30]
    evaluator, plan = FakeEvaluator(), Looked(Clock(0.0), Needs(study, "cuda"))
    loop = Loop(search(tmp_path, evaluator), header(study), Space(configs, {}, (len(configs),)), (), plan)
    measured = []
    for plan.looks in (20, 20, 20, 10**6):
        loop.run()
        measured.append(len(evaluator.tried))
    assert 0 < measured[0] < measured[1] < measured[2] < len(configs)
    assert sorted(evaluator.tried) == sorted(config.key for config in configs)


def test_the_best_is_proven_on_the_way_and_not_again_in_the_finals(monkeypatch, tmp_path):
    evaluator, record, _ = held(monkeypatch, tmp_path, MACHINES["128 cubed"], 60.0)
    assert evaluator.proved
    first = evaluator.asked.index("proof")
    assert "trial" in evaluator.asked[first:], "while the search goes on"
    assert evaluator.races[0][0] >= 1
    proven = {trial.key for trial in record.trials if trial.proven}
    assert {*evaluator.proved} <= proven


def test_a_kernel_that_is_wrong_at_full_size_is_no_incumbent(monkeypatch, tmp_path):
    class Strict(Timed):
        def verify(self, config, *, full=False):
            answer = super().verify(config, full=full)
            if len(self.proved) > 1:
                return answer
            return replace(answer, outcome=Outcome.WRONG_RESULT, reason="overflow", verification=None)

    evaluator = Strict(MACHINES["64 cubed"])
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: evaluator.now_s))
    study = spec("cpu", budget=Budget(seconds=30.0))
    needs = replace(search(tmp_path, evaluator), clock=Clock(evaluator.now_s, 30.0))
    record = run_study(needs, header(study, "cpu"), space_of(study, "cpu"))
    (wrong,) = (trial for trial in record.trials if trial.reason == "at full size: overflow")
    assert wrong.key == evaluator.proved[0]
    assert wrong.mlups is None
    assert record.winner.key != wrong.key


@pytest.mark.parametrize("stage", ["compile", "trial", "proof", "race", "sustained", "accuracy", "profile"])
def test_an_interrupt_leaves_what_is_known(monkeypatch, tmp_path, stage):
    class Interrupted(Timed):
        def spend(self, seconds, what):
            if what == stage and len(self.tried) > 8:
                raise KeyboardInterrupt
            super().spend(seconds, what)

    study = spec("cpu", budget=Budget(trials=30, seconds=60.0))

    def run(evaluator: Timed, **how: bool) -> StudyRecord:
        monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: evaluator.now_s))
        needs = replace(
            search(tmp_path, evaluator),
            clock=Clock(evaluator.now_s, 60.0),
            sustain=evaluator.sustained,
            accuracy=evaluator.accuracy,
            profile=evaluator.losses,
        )
        return run_study(needs, header(study, "cpu"), space_of(study, "cpu"), **how)

    with pytest.raises(KeyboardInterrupt):
        run(Interrupted(MACHINES["64 cubed"]))
    kept = read_study(tmp_path)
    assert kept.header.stopped == "interrupted"
    assert not kept.finished
    assert len(kept.trials) >= 8
    assert (kept.winner is None) == (stage in ("compile", "trial", "proof")) or kept.winner.proven
    after = run(Timed(MACHINES["64 cubed"]), resume=True)
    assert after.finished
    assert after.header.stopped != "interrupted"


def test_what_must_follow_is_known_from_what_was_measured():
    needs = Needs(spec("cpu", protocol=TimingProtocol(finalists=4)), "cpu")
    before = needs.least_s
    needs.proven(8.0)
    assert needs.least_s - before == pytest.approx(12.0)
    needs.proven(3.0)
    assert needs.proof_s == 8.0
    assert needs.race_s(2) > needs.race_s(1) > 15 * 0.05
    needs.step_s = 0.2
    assert needs.race_s(1) > 15 * 0.4
    assert Needs(spec(), "cuda").race_s(3) > Needs(spec("cpu"), "cpu").race_s(3), "a GPU rests"


def test_without_a_limit_everything_fits():
    plan = Plan(Clock(0.0), Needs(spec(), "cuda"))
    configs = space_of(spec()).configs[:9]
    trials = [
        Trial(number=n, key=str(n), config={}, outcome=Outcome.OK, measurement=measurement(c))
        for n, c in enumerate(configs)
    ]
    assert plan.fitting(trials) == tuple(trials)
    assert plan.fits(1e9, "anything")
    assert plan.search_left_s() == inf
    assert plan.left_out == []


def test_a_process_knows_when_it_began():
    program = "import time; time.sleep(0.3); from lbmtune.search.clock import now, process_begun_s; "
    program += "print(now() - process_begun_s())"
    begun = time.monotonic()
    command = [sys.executable, "-c", program]
    found = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert 0.3 <= float(found.stdout) <= time.monotonic() - begun + 0.05
    assert process_begun_s() < begun
