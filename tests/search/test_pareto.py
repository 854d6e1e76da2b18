"""Pareto sets: fronts, hypervolumes, the strategy that searches them, and studies that end with one."""

import json
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lbmtune.api import Study
from lbmtune.api.studies import run as studies
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.cli import main
from lbmtune.errors import InputError
from lbmtune.export import best
from lbmtune.records import Accuracy, AccuracyPoint, Sustained, Trial
from lbmtune.records.best_json.document import read_best
from lbmtune.records.remarks import race_text
from lbmtune.records.spec import Budget, TimingProtocol
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.pareto import pareto_figure, pareto_table
from lbmtune.search.estimates import Estimate
from lbmtune.search.finals import finalists_of
from lbmtune.search.interfaces import Seen
from lbmtune.search.pareto import figures, front, held_text, hypervolume, members
from lbmtune.search.strategies.auto import Auto
from lbmtune.search.strategies.ordered import Task
from lbmtune.search.strategies.pareto import Pareto, Steps, _speeds_that_add, steps
from lbmtune.search.strategies.table import made_strategy
from lbmtune.search.study import run_study
from tests.records.test_race import finalist
from tests.support.studies import fake_study
from tests.support.studies.fake_study import (
    ACCURACY,
    CASE,
    FakeEvaluator,
    header,
    predict,
    search,
    space_of,
    spec,
    verification,
)

POINTS = st.integers(1, 3).flatmap(
    lambda objectives: st.integers(1, 9).flatmap(
        lambda count: arrays(float, (count, objectives), elements=st.integers(0, 6).map(float))
    )
)


@settings(max_examples=80, deadline=None)
@given(POINTS)
def test_the_front_is_what_nothing_dominates_each_once(points: np.ndarray) -> None:
    dominated = [any((other <= one).all() and (other < one).any() for other in points) for one in points]
    expected = {tuple(one) for one, worse in zip(points, dominated, strict=True) if not worse}
    found = [tuple(points[place]) for place in front(points)]
    assert set(found) == expected
    assert found == sorted(found)


@settings(max_examples=80, deadline=None)
@given(POINTS)
def test_the_hypervolume_is_the_cells_that_are_dominated(points: np.ndarray) -> None:
    cells = product(range(6), repeat=points.shape[1])
    dominated = sum(any((one <= np.array(cell)).all() for one in points) for cell in cells)
    assert hypervolume(points, np.full(points.shape[1], 6.0)) == dominated


@settings(max_examples=60, deadline=None)
@given(POINTS.filter(lambda points: points.shape[1] > 1), st.integers(0, 7), st.data())
def test_what_a_kernel_is_worth_is_the_hypervolume_that_it_adds(points, speed, data) -> None:
    costs, speeds, end = points[:, 1:], points[:, 0], np.full(points.shape[1] - 1, 7.0)
    new = np.array([data.draw(st.integers(0, 6)) for _ in end], dtype=float)
    before = np.column_stack([-speeds, costs])
    reference = np.array([0.0, *end])
    after = np.vstack([before, [-speed, *new]])
    found = steps(costs, speeds, end)
    assert found.volume == pytest.approx(hypervolume(before, reference))
    added = float(found.widths(new[None])[0] @ np.maximum(speed - found.best, 0.0))
    assert added == pytest.approx(hypervolume(after, reference) - hypervolume(before, reference))


def test_the_speed_that_adds_a_volume_adds_it() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        found = steps(random.random((5, 1)), random.random(5), np.array([1.1]))
        costs = random.random((6, 1))
        widths = found.widths(costs)
        for volume in (0.01, 0.2, 3.0):
            needed = _speeds_that_add(volume, widths, found.best)
            added = (widths * np.maximum(needed[:, None] - found.best, 0.0)).sum(1)
            assert added == pytest.approx(np.full(6, volume))


def test_nothing_is_known_of_no_points() -> None:
    empty = steps(np.zeros((0, 2)), np.zeros(0), np.array([2.0, 3.0]))
    assert isinstance(empty, Steps)
    assert (empty.volume, empty.best.tolist()) == (0.0, [0.0])
    assert empty.widths(np.array([[1.0, 1.0]])).tolist() == [[2.0]]


ACCURACY_AFTER = replace(ACCURACY, after=ACCURACY.points[0])


def estimated(configs) -> list[Estimate]:
    found = [predict(config) for config in configs]
    return [Estimate(one.mlups, one.footprint_bytes) for one in found]


def test_several_objectives_make_costs_and_one_makes_tiers() -> None:
    configs = space_of(spec()).configs[:60]
    found = estimated(configs)
    assert type(made_strategy(configs, found, spec())) is Auto
    assert type(made_strategy(configs, found, spec(objective="energy"))) is Auto
    assert type(made_strategy(configs, found, spec(beside=("energy",)))) is Auto
    assert isinstance(made_strategy(configs, found, spec(beside=("footprint",))), Pareto)
    assert isinstance(made_strategy(configs, found, spec(objective="footprint", beside=("mlups",))), Pareto)
    wide = [config for config in configs if config.copies == 2]

    def accuracy(config: KernelConfig) -> Accuracy:
        error = 1e-6 if config in wide else 1e-3
        return replace(ACCURACY, after=replace(ACCURACY.points[0], velocity=error))

    first = made_strategy(configs, found, spec(objective="accuracy"), accuracy=accuracy).wanted(len(wide))
    assert {configs[index] for index in first} == set(wide)

    def diverges(config: KernelConfig) -> Accuracy:
        return replace(ACCURACY, after=None) if config in wide else ACCURACY_AFTER

    narrow = len(configs) - len(wide)
    for asked in (spec(objective="accuracy"), spec(beside=("accuracy",)), spec(beside=("footprint", "accuracy"))):
        first = made_strategy(configs, found, asked, accuracy=diverges).wanted(narrow)
        assert not {configs[index] for index in first} & set(wide), "what has no finite error comes last"


@pytest.mark.parametrize("measured", [0, 3])
def test_the_first_pick_adds_the_most_to_what_is_measured(measured: int) -> None:
    configs = space_of(spec()).configs[:80]
    random = np.random.default_rng(5)
    speeds, costs = random.uniform(1.0, 2.0, 80), random.uniform(0.5, 1.0, (80, 1))
    player = Pareto(Task(configs=configs, expected=speeds.tolist(), costs=costs))
    for index in range(measured):
        player.observe(index, Seen(speeds[index]))
    scaled = costs / costs.max()
    points, end = np.column_stack([-speeds, scaled]), scaled.max() + 0.1 * np.ptp(scaled)
    reference = np.array([0.0, end])
    worth = [hypervolume(np.vstack([points[:measured], points[i]]), reference) for i in range(80)]
    assert player.wanted(1) == [int(np.argmax(worth))]


def result(folder: Path, evaluator: FakeEvaluator | None = None, **changes: object) -> StudyRecord:
    evaluator = evaluator or Mixed()
    asked = spec(protocol=TimingProtocol(finalists=2), **changes)
    needs = replace(
        search(folder, evaluator),
        sustain=evaluator.sustained,
        accuracy=evaluator.accuracy,
        known_accuracy=evaluator.accuracy,
        strategy=partial(made_strategy, accuracy=evaluator.accuracy),
    )
    return run_study(needs, header(asked), space_of(asked))


class Mixed(FakeEvaluator):
    """Each kernel has a power and an accuracy of its own."""

    def sustained(self, configs, proven, seconds):
        answers = super().sustained(configs, proven, seconds)
        return [replace(one, sustained=_run(config)) for one, config in zip(answers, configs, strict=True)]

    def accuracy(self, config, *, brief=False):
        error = 1e-4 if config.stored.bytes < 4 else 1e-7
        return replace(ACCURACY, after=replace(ACCURACY.points[0], velocity=error))


def _run(config) -> Sustained:
    joules = 100.0 if config.copies == 1 else 60.0
    return Sustained(
        mlups=1.0, seconds=2.0, steps=10, sites=CASE.sites, slices_s=(0.2,), power_w=joules / 2, energy_j=joules
    )


def dominates(one: list[float], other: list[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and one != other


@pytest.mark.parametrize(
    "objectives",
    [("mlups", "footprint"), ("footprint", "mlups"), ("mlups", "energy"), ("mlups", "footprint", "energy")],
    ids=",".join,
)
def test_a_study_ends_with_the_pareto_set_of_its_finalists(tmp_path: Path, objectives: tuple[str, ...]) -> None:
    record = result(tmp_path, objective=objectives[0], beside=objectives[1:])
    found = members(record)
    finals = [trial for trial in record.ranked if trial.final]
    costs = {t.number: [record.cost(t, name) for name in objectives] for t in finals}
    assert found
    assert found[0] is record.winner
    assert all(not dominates(costs[other.number], costs[one.number]) for one in found for other in finals)
    left = [trial for trial in finals if trial not in found]
    assert all(
        any(dominates(costs[one.number], costs[t.number]) or costs[one.number] == costs[t.number] for one in found)
        for t in left
    )
    assert list(figures(record, found[0])) == list(objectives)


def test_members_by_first_measurements_are_finalists(tmp_path: Path) -> None:
    record = result(tmp_path, beside=("footprint",))
    first = replace(record, trials=tuple(replace(t, final=None, verification=None) for t in record.trials))
    assert {t.number for t in members(first)} <= {t.number for t in finalists_of(record)}
    assert members(replace(record, header=replace(record.header, spec=spec()))) == ()


def test_all_finalists_run_if_energy_is_an_objective(tmp_path: Path) -> None:
    record = result(tmp_path, objective="energy")
    finals = [trial for trial in record.ranked if trial.final]
    energies = [trial.sustained.nj_per_update for trial in finals if trial.sustained]
    assert len(energies) == len(finals) > 2
    assert energies == sorted(energies)
    assert members(record) == ()


def test_the_most_accurate_is_the_fastest_of_its_class(tmp_path: Path) -> None:
    axes = {**fake_study.one_family(), "storage": ("fp32", "fp16s")}
    record = result(tmp_path, objective="accuracy", axes=axes)
    assert record.winner
    assert all(trial.accuracy for trial in record.trials)
    assert {trial.config["storage"] for trial in record.trials} == {"fp32"}
    both = result(tmp_path / "both", objective="mlups", beside=("accuracy",), axes=axes)
    assert {trial.config["storage"] for trial in both.trials} == {"fp32", "fp16s"}


@pytest.mark.parametrize(
    ("error", "expected"), [(1e-6, 1e-6), (1.1e-6, 10**-5.5), (3.2e-6, 1e-5), (0.0, 0.0), (float("inf"), float("inf"))]
)
def test_errors_count_by_half_powers_of_ten(error: float, expected: float) -> None:
    after = replace(ACCURACY.points[0], velocity=None if error == float("inf") else error)
    assert replace(ACCURACY, after=after).error_class == pytest.approx(expected)
    assert replace(ACCURACY, after=None).error == float("inf")


def test_as_long_as_no_energy_is_measured_the_speed_stands_for_it(tmp_path: Path) -> None:
    record = result(tmp_path, beside=("footprint", "energy"))
    unmeasured = replace(record, trials=tuple(replace(t, sustained=None) for t in record.trials))
    without = replace(record, header=replace(record.header, spec=replace(record.header.spec, beside=("footprint",))))
    found = [trial.number for trial in members(unmeasured)]
    assert found == [trial.number for trial in members(without)]
    assert len(found) > 1
    assert unmeasured.winner
    assert found[0] == unmeasured.winner.number
    alone = result(tmp_path / "two", beside=("energy",))
    unmeasured = replace(alone, trials=tuple(replace(t, sustained=None) for t in alone.trials))
    assert members(unmeasured) == unmeasured.ranked[:1]


def test_a_member_of_an_empty_set_is_refused_with_the_reason(tmp_path: Path) -> None:
    record = result(tmp_path, beside=("accuracy",))
    unknown = replace(record, trials=tuple(replace(t, accuracy=None) for t in record.trials))
    assert members(unknown) == ()
    with pytest.raises(InputError, match="set of study made-up is empty, as no kernel is measured in mlups, accuracy;"):
        best(unknown, 1)


def test_an_error_that_is_no_number_is_in_no_set_and_does_not_win(tmp_path: Path) -> None:
    record = result(tmp_path, beside=("accuracy",))
    fastest = record.winner
    assert fastest
    assert fastest in members(record)
    assert fastest.accuracy
    broken = replace(fastest, accuracy=replace(fastest.accuracy, after=replace(ACCURACY.points[0], velocity=None)))
    found = replace(record, trials=tuple(broken if t is fastest else t for t in record.trials))
    assert broken not in members(found)
    assert found.winner
    assert found.winner is members(found)[0]
    assert found.cost(broken, "accuracy") is figures(found, broken)["accuracy"] is None
    before = replace(found, trials=tuple(replace(t, final=None, verification=None) for t in found.trials))
    assert broken.number not in {trial.number for trial in members(before)}


def test_of_tied_finalists_the_best_by_the_other_objective_wins_and_is_said_to() -> None:
    after = [replace(ACCURACY.points[0], velocity=error) for error in (1e-5, 1e-7)]

    def proven(trial: Trial, accuracy: AccuracyPoint) -> Trial:
        return replace(trial, verification=verification(), accuracy=replace(ACCURACY, after=accuracy))

    trials = (
        proven(finalist(1, 100.0, footprint=1000), after[0]),
        proven(finalist(2, 99.9, wobble=0.01, footprint=2000), after[1]),
        proven(finalist(3, 90.0, footprint=10), after[0]),
    )
    asked = replace(header(spec(beside=("accuracy",))), stopped="stopped after 3 evaluations: because")
    record = StudyRecord(header=asked, trials=trials)
    assert [trial.number for trial in record.ranked] == [2, 1, 3]
    assert [trial.number for trial in members(record)] == [2]
    assert held_text(record, members(record)) == "best.json holds member 1, the best by mlups"
    assert f"{trials[1].key} is the best of them by accuracy" in race_text(record)
    only = replace(trials[2], final=None)
    unproven = [replace(t, final=None, verification=None) for t in trials[:2]]
    proven_alone = replace(record, trials=(*unproven, only))
    assert held_text(proven_alone, members(proven_alone)).endswith("proven so far, which is no member")


def test_finalists_of_a_study_that_goes_on_are_not_those_whose_energy_is_known(tmp_path: Path) -> None:
    record = result(tmp_path, objective="energy", budget=Budget(trials=8))
    kept = sorted((t for t in record.trials if t.mlups), key=lambda t: t.mlups or 0.0)
    fast = replace(kept[-1], number=99, key="new", final=None, sustained=None, measurement=kept[-1].final)
    more = replace(record, trials=(*record.trials, fast))
    assert fast.number in {trial.number for trial in finalists_of(more)}


def test_speeds_that_the_finals_do_not_tell_apart_are_one(tmp_path: Path) -> None:
    record = result(tmp_path, beside=("footprint",))
    assert record.race
    tied = [t for t in record.ranked if t.number in (record.race.first, *record.race.tied)]
    assert len({record.cost(trial, "mlups") for trial in tied}) == 1
    assert sum(member in tied for member in members(record)) <= 1


def test_the_command_writes_and_exports_members(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_study.stand_in(monkeypatch, Mixed())
    folder = tmp_path / "s"
    case = ["--set", "case.domain=64x64x64", "--trials", "12", "--output", str(folder)]

    def command(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        return ended.value.code or 0, *capsys.readouterr()

    code, out, _ = command("study", *case, "--objective", "mlups,footprint", "--json")
    assert code == 0
    facts = json.loads(out)
    assert [one["member"] for one in facts["pareto"]] == list(range(1, len(facts["pareto"]) + 1))
    assert {"mlups", "footprint", "key", "config", "number"} <= set(facts["pareto"][0])
    written = read_best(folder / "best.json")
    assert (written.objective, written.member, written.key) == ("mlups,footprint", 1, facts["pareto"][0]["key"])
    last = facts["pareto"][-1]
    assert command("export", str(folder), "--member", str(last["member"]))[0] == 0
    other = read_best(folder / f"member-{last['member']}.json")
    assert (other.key, other.member) == (last["key"], last["member"])
    assert other.key not in {one.key for one in other.alternates}
    code, _, err = command("export", str(folder), "--member", "99")
    assert (code, f"--member 99 is not supported for quick (use 1 to {last['member']})" in err) == (2, True)
    page = (folder / "report.html").read_text()
    assert "<h2>Pareto set</h2>" in page
    assert "lbmtune export STUDY --member N" in page
    assert len(Study(folder).pareto_set) == len(facts["pareto"])
    shown = command("study", *case, "--objective", "mlups,footprint", "--resume")[1]
    assert "best.json holds member 1, the best by mlups" in shown


def test_one_objective_has_no_members(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    record = result(tmp_path)
    assert members(record) == ()
    assert pareto_table(record) == []
    with pytest.raises(InputError, match="has one objective and no Pareto set"):
        Study(tmp_path).export(member=1)


def test_three_objectives_are_drawn_in_pairs(tmp_path: Path) -> None:
    record = result(tmp_path, beside=("footprint", "energy"))
    found: tuple[Trial, ...] = members(record)
    figure = pareto_figure(record, found)
    assert len(figure.data) == 6
    assert [button.label for button in figure.layout.updatemenus[0].buttons] == [
        "mlups over footprint",
        "mlups over energy",
        "footprint over energy",
    ]
    rows = pareto_table(record)
    assert list(rows[0]) == ["member", "trial", "MLUPS", "footprint", "nJ / update", "configuration"]
    assert [from_flat(trial.config) for trial in found]


def test_energy_without_a_counter_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_study.stand_in(monkeypatch)
    monkeypatch.setattr(studies, "reports_power", lambda _: False)
    with pytest.raises(SystemExit) as ended:
        main(["study", "--device", "cpu", "--objective", "mlups,energy", "--output", str(tmp_path / "s")])
    assert ended.value.code == 2
    said = "objective=energy is not supported for device cpu (use mlups or footprint): this process may not read"
    assert said in capsys.readouterr().err


def test_a_study_of_several_objectives_is_resumed_as_it_was(tmp_path: Path) -> None:
    record = result(tmp_path, beside=("footprint",))
    assert read_study(tmp_path).header.spec.objectives == ("mlups", "footprint")
    asked = replace(record.header.spec, beside=())
    with pytest.raises(InputError, match="holds a study with beside footprint"):
        run_study(search(tmp_path, Mixed()), replace(record.header, spec=asked), space_of(spec()), resume=True)
