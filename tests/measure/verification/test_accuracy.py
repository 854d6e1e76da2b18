"""The accuracy of a precision: the vortex, the errors, and where they are kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lbmtune.catalogue.config import KernelConfig, Scalar, cpu, cuda, from_flat
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.layouts import AoSoA, Rows, SoA
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.cli import main
from lbmtune.cli.format import kernels
from lbmtune.errors import InputError, NothingValidError
from lbmtune.export import best, read_best, write_best
from lbmtune.files.studyfile import load_study
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import accuracy, oracle
from lbmtune.measure.workers import evaluate
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Accuracy, AccuracyPoint
from lbmtune.records.spec import TimingProtocol
from lbmtune.records.store import append_trial, read_study, write_header
from lbmtune.report.study.page import page as page_of
from lbmtune.report.study.winner import rounding_table
from lbmtune.search.kinds import rounding_of
from lbmtune.search.spaces.bounds import excess, within
from lbmtune.search.spaces.space import Space, legal_set
from lbmtune.search.study import run_study
from scripts.measurements import accuracy as script
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import LIMITS as COVERED
from tests.support.conformance.choices import case_of
from tests.support.paths import RECORDED
from tests.support.studies import fake_study
from tests.support.studies import made_up_records as made

FOUND = fake_study.ACCURACY


def _vortex(edge: int, velocity: float) -> tuple[Case, int]:
    return accuracy.vortex_case(box("d2q9", "bgk", (edge, edge, 1)), velocity)


def test_the_vortex_has_no_divergence_and_the_mean_density_one() -> None:
    case, steps = _vortex(32, 0.05)
    density, velocity = accuracy.vortex(case, steps // 2, np)
    assert density.mean() == pytest.approx(1.0, abs=1e-12)
    slope = [(np.roll(velocity[a], -1, 2 - a) - np.roll(velocity[a], 1, 2 - a)) for a in (0, 1)]
    assert abs(slope[0] + slope[1]).max() < 1e-15
    assert abs(velocity[2]).max() == 0
    assert velocity[0].max() < abs(accuracy.vortex(case, 0, np)[1]).max() == pytest.approx(0.05, rel=1e-9)


def test_the_oracle_follows_the_vortex_better_on_more_cells() -> None:
    """Diffusive scaling: twice the cells, half the velocity, a quarter of the error (de Oliveira et al. 2019)."""
    errors = []
    for edge, velocity in ((16, 0.04), (32, 0.02)):
        case = replace(box("d2q9", "bgk", (edge, edge, 1)), velocity_scale=velocity, relaxation_rate=1 / 0.8)
        steps = edge**2 // 8
        state = oracle.equilibrium(*accuracy.vortex(case, 0, np), case.stencil)
        for _ in range(steps):
            state = oracle.step(state, case)
        expected = accuracy.vortex(case, steps, np)
        errors.append(accuracy.l2_error(oracle.velocity(state, case), expected[1]))
    assert errors[0] is not None
    assert errors[1] is not None
    assert 0 < errors[1] < 0.3 * errors[0] < 0.3 * 0.05


def test_l2_error() -> None:
    assert accuracy.l2_error(np.array([3.0, 4.5]), np.array([3.0, 4.0])) == pytest.approx(0.1)
    assert accuracy.l2_error(np.array([3.0, np.nan]), np.array([3.0, 4.0])) is None


def test_runs_end_at_one_physical_time_and_reynolds_number() -> None:
    for velocity in accuracy.VELOCITIES:
        case, steps = _vortex(64, velocity)
        viscosity = (1 / case.relaxation_rate - 0.5) / 3
        assert velocity * 64 / viscosity == pytest.approx(64)
        assert steps * velocity / 64 == pytest.approx(0.25, rel=0.01)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_fewer_bits_make_larger_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "VELOCITIES", (0.02, 0.1))
    monkeypatch.setattr(accuracy, "AFTER_STEPS", 8)
    monkeypatch.setitem(accuracy._EDGE, "cuda", 32)
    case = box("d2q9", "bgk", (64, 64, 1))

    def found(storage: str, compute: str = "fp32") -> Accuracy:
        config = cuda.Direct(block=(32, 2, 1), scheme="aa", storage=storage, compute=compute)
        return accuracy.measure_accuracy(case, config, HostDevice(), compile_on_host)

    by_storage = {storage: found(storage) for storage in ("fp32", "fp16s", "fp16c", "bf16")}
    exact = found("fp64", "fp64")
    for number in (0, 1):
        # another scheme adds in another order
        assert 0 <= (exact.points[number].velocity or 0.0) < 1e-12
        for quantity in ("velocity", "density"):
            errors = [getattr(by_storage[s].points[number], quantity) for s in ("fp32", "fp16c", "bf16")]
            assert 0 < errors[0] < errors[1] < errors[2]
            assert errors[0] < getattr(by_storage["fp16s"].points[number], quantity) < errors[2]
        point = by_storage["fp32"].points[number]
        # single precision has the errors of the method for velocity, as the paper finds from u0 = 0.02 on
        assert point.velocity_to_exact == pytest.approx(point.reference_velocity_to_exact, rel=1e-3)
    assert by_storage["bf16"].domain == (32, 32, 1)


def _density_after(dtype: type, velocity_scale: float, *, deviations: bool) -> np.ndarray:
    """Density less one of a vortex on 32 x 32 cells of D2Q9 after 200 steps, stored as deviations or as they are."""
    stencil, waves = LATTICES["d2q9"], 2 * np.pi * np.arange(32) / 32
    x, y = np.meshgrid(waves, waves, indexing="ij")
    weights = np.array([float(w) for w in stencil.weights], dtype)[:, None, None]
    c = np.array([v[:2] for v in stencil.velocities], dtype)
    at_rest = dtype(0) if deviations else weights
    velocity = velocity_scale * np.array([-np.cos(x) * np.sin(y), np.sin(x) * np.cos(y)])
    excess = -0.75 * velocity_scale**2 * (np.cos(2 * x) + np.cos(2 * y))

    def deviation(excess: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        along = np.einsum("qa,axy->qxy", c, velocity)
        squares = 3 * along + dtype(4.5) * along**2 - dtype(1.5) * (velocity**2).sum(axis=0)
        return weights * (excess + (1 + excess) * squares)

    f = at_rest + deviation(excess.astype(dtype), velocity.astype(dtype))
    for _ in range(200):
        f = np.stack([np.roll(f[i], stencil.velocities[i][:2], (0, 1)) for i in range(stencil.q)])
        excess = f.sum(axis=0) - (0 if deviations else 1)
        flow = np.einsum("qa,qxy->axy", c, f - at_rest) / (1 + excess)
        f = f + dtype(1.1) * (at_rest + deviation(excess, flow) - f)
    assert f.dtype == dtype
    found: np.ndarray = (f.astype(np.float64) - np.float64(at_rest)).sum(axis=0)
    return found


def test_single_precision_loses_the_density_where_no_deviations_are_stored() -> None:
    """De Oliveira et al. 2019, figure 6: why its error there, 10 to 1e7 times that of fp64, is not ours."""
    exact = _density_after(np.float64, 0.001, deviations=True)
    kept, lost = (_density_after(np.float32, 0.001, deviations=one) - exact for one in (True, False))
    assert np.linalg.norm(kept) < 1e-2 * np.linalg.norm(exact)
    assert np.linalg.norm(lost) > 10 * np.linalg.norm(exact)


def test_rows_suit_the_kernel() -> None:
    case = box("d3q19", "bgk", (256, 256, 256))
    for config, edge in (
        (cuda.Direct(layout=AoSoA(width=48), cells_per_thread=4), 96),
        (cpu.Direct(), 32),
        (cpu.Direct(layout=AoSoA(width=64), row_offset=64, vector_bits=256), 64),
    ):
        assert accuracy.fitted(case, config)[0].domain == (edge, edge, 4)


def test_the_winner_of_a_study_keeps_it(tmp_path: Path) -> None:
    asked: list[KernelConfig] = []

    def told(config: KernelConfig) -> Accuracy:
        asked.append(config)
        return FOUND

    spec = fake_study.spec()
    evaluator = fake_study.FakeEvaluator()
    space = legal_set(spec.case, "cuda", spec.axes["cuda"], evaluator.limits)
    needs = replace(fake_study.search(tmp_path, evaluator), accuracy=told)
    for resume in (False, True):
        record = run_study(needs, fake_study.header(spec), space, resume=resume)
        assert record.winner is not None
        assert [config.key for config in asked] == [record.winner.key]
        # the other finalists are of one kind with it
        assert {t.key for t in record.trials if t.accuracy} == {t.key for t in record.trials if t.final}
        assert {trial.accuracy for trial in record.trials if trial.accuracy} == {FOUND}
        assert record.winner.accuracy == FOUND


KINDS = {
    "exact": cuda.Direct(compute="fp64", storage="fp64"),
    "single": cuda.Direct(),
    "half": cuda.Direct(storage="fp16s"),
    "moments": cuda.TemporalBlocking(
        layout=SoA(), block=(256, 1, 1), chunk_planes=1, plane_fetch="none", representation="moments", storage="fp16s"
    ),
}


def _after(error: float | None) -> Accuracy:
    return replace(FOUND, after=replace(FOUND.points[0], steps=1000, velocity=error))


def _said(config: KernelConfig) -> Accuracy | None:
    if config.kept.name == "moments":
        return None
    return _after({"fp64": 0.0, "fp32": 1e-5, "fp16s": 4e-3}[config.storage])


def test_a_bound_leaves_the_kinds_that_stay_within_it_and_says_why_the_others_do_not() -> None:
    wide = replace(KINDS["half"], scheme="aa")
    space = Space((*KINDS.values(), wide), {"a rule": 3}, (5,))
    left = within(space, 1e-3, _said)
    assert left.configs == (KINDS["exact"], KINDS["single"])
    assert left.illegal == {
        "a rule": 3,
        "populations stored as fp16s, computed in fp32, 1 step per launch: error of the velocity after 1000 steps "
        "0.004; the study allows 0.001": 2,
        "moments stored as fp16s, computed in fp32, 2 steps per launch: the accuracy is unknown, and the study "
        "allows 0.001": 1,
    }
    assert within(space, 4e-3, _said).configs == (*list(KINDS.values())[:3], wide)
    assert excess(_after(None), rounding_of(wide), 1.0).endswith(
        "after 1000 steps no finite number; the study allows 1"
    )
    least = r"no configuration is accurate enough: .* 0\.004; the study allows 1e-09; use --max-error 0\.004 or more"
    with pytest.raises(InputError, match=least):
        within(replace(space, configs=(wide,)), 1e-9, _said)


PLACES = {
    "populations": cuda.Direct(storage="fp16s"),
    "populations on chip": cuda.Persistent(layout=Rows(), block=(256, 1, 1), storage="fp16s", tile_planes=1),
    "moments": cuda.TemporalBlocking(
        layout=SoA(),
        block=(256, 1, 1),
        chunk_planes=1,
        plane_fetch="none",
        representation="moments",
        steps=1,
        storage="fp16s",
    ),
    "moments by the faces of tiles": cuda.FaceExchange(layout=SoA(), storage="fp16s", tile=(256, 1, 1)),
    "moments on chip": cuda.Persistent(
        layout=Rows(), block=(256, 1, 1), representation="moments", storage="fp16s", tile_planes=1
    ),
}
"""Kinds of kernels of one step that round in different places."""


@pytest.mark.parametrize("reverse", [False, True])
def test_a_bound_tells_moments_on_chip_and_by_faces_from_plain_ones(reverse: bool) -> None:
    """By the figures that are recorded, each with the bound that leaves it and all better ones, in any order."""
    record = json.loads((RECORDED / "nvidia-h200" / "accuracy-regularised.json").read_text())
    errors = {
        rounding_of(config)[0]: float(one["accuracy"]["after"]["velocity"])
        for one in record["found"]
        if (config := from_flat(one["config"])).storage == "fp16s" and config.fused_steps == 1
    }
    assert errors.keys() == PLACES.keys()
    asked: list[KernelConfig] = []

    def told(config: KernelConfig) -> Accuracy:
        asked.append(config)
        return _after(errors[{config: name for name, config in PLACES.items()}[config]])

    configs = tuple(PLACES.values())[:: -1 if reverse else 1]
    for most in errors.values():
        kept = {config for config in configs if told(config).after.velocity <= most}
        asked.clear()
        assert set(within(Space(configs, {}, (1,)), most, told).configs) == kept
        assert {*asked} == {*configs}
    plain, faces, chip = (errors[name] for name in ("moments", "moments by the faces of tiles", "moments on chip"))
    assert faces < plain < chip


def test_the_error_after_many_steps_of_each_kind_is_in_the_report() -> None:
    study = made.gpu_study()
    kinds = [PLACES["moments"], PLACES["moments by the faces of tiles"], PLACES["moments on chip"]]
    known = {
        t.number: replace(t, config=config.flat(), accuracy=replace(_after(error), representation="moments"))
        for t, config, error in zip(study.ranked, kinds, (2e-6, 3e-6, 4e-6), strict=False)
    }
    shown = replace(study, trials=tuple(known.get(t.number, t) for t in study.trials))
    columns = ("state", "steps per launch", "velocity against fp64")
    rows = [tuple(row[name] for name in columns) for row in rounding_table(shown)]
    assert rows == [
        ("moments", "1", "2.00e-06"),
        ("moments by the faces of tiles", "1", "3.00e-06"),
        ("moments on chip", "1", "4.00e-06"),
    ]
    assert {row["time steps"] for row in rounding_table(shown)} == {"1,000"}
    assert 'id="kinds"' in page_of(shown)
    assert 'id="kinds"' not in page_of(study)


def test_the_table_names_the_kind_of_kernel_and_has_the_run_of_many_steps() -> None:
    found = replace(_after(2e-6), representation="moments", steps=3)
    table = kernels.accuracy_table(
        found,
        cuda.TemporalBlocking(
            layout=SoA(), block=(256, 1, 1), chunk_planes=1, plane_fetch="none", representation="moments", steps=3
        ),
    )
    assert "moments, 3 steps per launch, stored as" in str(table.title)
    on_chip = kernels.accuracy_table(replace(found, steps=1), PLACES["moments on chip"])
    assert "moments on chip, 1 step per launch, stored as" in str(on_chip.title)
    assert table.row_count == len(FOUND.points) + 1
    assert [*table.columns[1].cells][-1] == "1000"


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_the_script_has_what_rounds_by_faces_and_on_chip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On the shim, in formats that the rules allow; each with the error that its format has."""
    monkeypatch.setattr(accuracy, "AFTER_STEPS", 4)
    monkeypatch.setattr(script, "STORAGES", ("fp32", "fp16s", "fp16c"))
    monkeypatch.setattr(script, "kinds", partial(_apart, script.kinds))
    asked = ["accuracy.py", str(tmp_path), "--device", "shim", "--collision", "regularised"]
    monkeypatch.setattr(sys, "argv", asked)
    assert script.main() == 0
    record = json.loads((tmp_path / "accuracy.json").read_text())
    assert record["environment"]["device"].startswith("CUDA text as C++ on ")
    errors: dict[str, dict[str, float]] = {}
    for one in record["found"]:
        name, storage, _ = script.named(from_flat(one["config"])).split(", ")
        errors.setdefault(name, {})[storage] = one["accuracy"]["after"]["velocity"]
        assert one["accuracy"]["after"]["steps"] == 4
    assert errors.keys() == {"populations on chip", "moments by the faces of tiles", "moments on chip"}
    for name, found in errors.items():
        assert found.keys() == {"fp32", "fp16s", *(() if name.startswith("moments") else ("fp16c",))}
        assert 1e-9 < found["fp32"] < 1e-6 < found["fp16s"] < 1e-2


def _apart(kinds: Callable[..., Iterator[dict[str, Scalar]]], *asked: object) -> list[dict[str, Scalar]]:
    return [kind for kind in kinds(*asked) if kind.get("family") in ("persistent", "face-exchange")]


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_many_steps_of_moments_round_like_those_of_populations(monkeypatch: pytest.MonkeyPatch) -> None:
    """With three steps per launch 60 are done of 59, and chunks are cut to the box."""
    monkeypatch.setattr(accuracy, "AFTER_STEPS", 59)
    case = box("d2q9", "regularised", (64, 64, 1))
    usual = cuda.TemporalBlocking(
        block=(32, 2, 1), chunk_planes=128, pack=2, plane_fetch="none", representation="moments", steps=3
    )
    errors = []
    direct = cuda.Direct(block=(32, 2, 1))
    for config in (usual, replace(usual, storage="fp16s"), direct):
        found = accuracy.measure_accuracy(case, config, HostDevice(), compile_on_host, brief=True)
        assert found.after
        errors.append(found.after.velocity)
        assert (found.representation, found.steps) == (config.kept.name, config.fused_steps)
        assert found.after.steps == (60 if config is not direct else 59)
    assert 1e-9 < errors[0] < 1e-5 < errors[1] < 1e-2
    assert errors[0] < errors[2] * 10


def test_record_best_json_and_report_hold_it(tmp_path: Path) -> None:
    study = made.gpu_study()
    winner = study.ranked[0]
    lost = replace(FOUND, points=(replace(FOUND.points[0], density=None),))
    accurate = replace(
        study, trials=tuple(replace(t, accuracy=lost) if t.number == winner.number else t for t in study.trials)
    )
    write_best(accurate, tmp_path / "best.json")
    assert read_best(tmp_path / "best.json").accuracy == lost
    assert best(study).accuracy is None
    write_header(tmp_path, study.header)
    append_trial(tmp_path, accurate.ranked[0])
    (kept,) = read_study(tmp_path).trials
    assert kept.accuracy == lost
    page = page_of(accurate)
    assert 'id="accuracy"' in page
    assert "not finite" in page
    assert f"{FOUND.points[0].velocity:.2e}" in page
    assert 'id="accuracy"' not in page_of(study)


def test_a_worker_measures_it_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    config = cpu.Direct(scheme="aa", storage="bf16", vector_bits=0)
    with Evaluator(box("d2q9", "trt", (64, 48, 1)), "cpu", TimingProtocol()) as evaluator:
        assert evaluator.accuracy(config, brief=True).points == ()
        found = evaluator.accuracy(config)
        assert found.after
        assert found.after.steps == accuracy.AFTER_STEPS
        assert 1e-4 < (found.after.velocity or 0) < 1
        assert [p.velocity_scale for p in found.points] == list(accuracy.VELOCITIES)
        assert (found.lattice, found.collision, found.storage) == ("d2q9", "trt", "bf16")
        assert all(isinstance(p, AccuracyPoint) and (p.velocity or 0) > 1e-4 for p in found.points)
        with pytest.raises(NothingValidError, match=r"the accuracy cannot be measured: .*streaming_stores"):
            evaluator.accuracy(replace(config, streaming_stores=1))
        monkeypatch.setattr(evaluate, "broken", lambda *_: None)
        with pytest.raises(NothingValidError, match=r"(?s)cannot be measured: CompileError.* during accuracy"):
            evaluator.accuracy(replace(config, vector_bits=-1))
        with pytest.raises(InputError, match=r"^unknown scheme 'nonsense'"):
            evaluator.accuracy(replace(config, scheme="nonsense"))


@pytest.mark.parametrize("edge", [32, 64])
def test_every_kernel_of_a_small_domain_may_run_the_vortex(edge: int) -> None:
    """Blocks of tiles on chip wait for each other for ever on a box that these are not made for."""
    spec = load_study("d3q19-small", [f"case.domain={edge}x{edge}x{edge}"])
    limits = replace(COVERED, shared_bytes_per_block=227 << 10, shared_bytes_per_multiprocessor=228 << 10)
    space = legal_set(spec.case, "cuda", spec.axes["cuda"], replace(limits, multiprocessors=132))
    assert {config.launch for config in space.configs} >= {"resident", "graph"}
    assert {broken(*accuracy.fitted(spec.case, config), limits) for config in space.configs[::7]} == {None}


def test_every_kernel_of_the_fast_box_may_run_the_vortex() -> None:
    """Tiles with faces, too, which may have more planes than the vortex needs."""
    spec = load_study("d3q19-box-fast", [])
    limits = replace(COVERED, shared_bytes_per_block=227 << 10, shared_bytes_per_multiprocessor=228 << 10)
    configs = legal_set(spec.case, "cuda", spec.axes["cuda"], limits).configs
    tiles = {config.memory.tile for config in configs if config.memory.tile[2] > 1}
    assert max(depth for _, _, depth in tiles) > 4
    for tile in (*tiles, (1, 1, 1)):
        some = [config for config in configs if config.memory.tile == tile]
        assert {broken(*accuracy.fitted(spec.case, config), limits) for config in some[::7]} == {None}


@pytest.mark.parametrize(
    ("flow", "config"),
    [
        ("box", cuda.Column(prefetch_cells=1)),
        ("box", cuda.Direct(block=(256, 2, 1), cells_per_thread=2)),
        ("cavity", cuda.Direct(boundary="predicated", flags="memory")),
        ("rocks", cuda.Sparse(block=(128, 1, 1))),
        ("box", cpu.Direct(layout=AoSoA(width=64), row_offset=64, vector_bits=256)),
        ("cavity", cpu.Direct(flags="memory", vector_bits=256)),
    ],
    ids=str,
)
def test_the_vortex_suits_the_kernel(flow: str, config: KernelConfig) -> None:
    case = case_of(flow, "d3q19", "bgk")
    assert broken(replace(case, domain=(512, 64, 64)), config, COVERED) is None
    assert broken(*accuracy.fitted(case, config), COVERED) is None


def test_a_study_with_a_bound_searches_what_stays_within_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluator = fake_study.stand_in(monkeypatch, fake_study.FakeEvaluator("cuda"))
    monkeypatch.setattr(evaluator, "accuracy", lambda config, brief=False: _said(config))
    asked = ["--set", "case.domain=64x64x64", "--trials", "8", "--set", "axes.cuda.storage=fp32,fp16s"]
    command = ["study", *asked, "--set", "accuracy.max_error=1e-3", "--output", str(tmp_path / "study")]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 0, capsys.readouterr().err
    record = read_study(tmp_path / "study")
    assert {trial.config["storage"] for trial in record.trials} == {"fp32"}
    (reason,) = (said for said in record.header.illegal_configurations if "error of the velocity" in said)
    assert reason.endswith("after 1000 steps 0.004; the study allows 0.001")
    assert record.ranked[0].sustained
    with pytest.raises(SystemExit) as refused:
        main([*command[:-2], "--set", "accuracy.max_error=-1"])
    assert refused.value.code == 2
    assert "must be positive and finite; leave it out for no bound" in capsys.readouterr().err
