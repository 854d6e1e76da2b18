from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lbmtune.catalogue.config import cuda, family
from lbmtune.catalogue.families.rules import Limits
from lbmtune.files.studyfile import load_study
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict as model
from lbmtune.search import surrogate
from lbmtune.search.choice import SEEDS, SHAPES, Choice, shapes, spread
from lbmtune.search.features import Features, features
from lbmtune.search.space import legal_set
from tests.support.paths import RECORDED
from tests.support.studies.fake_study import CASE, LIMITS, predict, speed, usual_axes

AHEAD = 4
TRIALS = 50


@cache
def configs_of(backend):
    return legal_set(CASE, backend, usual_axes(backend), LIMITS).configs


@cache
def by_model(config):
    return predict(config).mlups


def guided(configs, seed, trials=TRIALS):
    """Indices in the order of their results, with some always under way."""
    choice = Choice(configs, list(map(by_model, configs)), seed)
    under_way, order = [], []
    for _ in range(min(trials, len(configs))):
        while len(under_way) < AHEAD and choice.remaining:
            under_way.append(choice.propose())
        index = under_way.pop(0)
        choice.observe(index, speed(configs[index]))
        order.append(index)
    return order + under_way


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_the_search_beats_random_choice_clearly(backend):
    configs = configs_of(backend)
    speeds = np.array([speed(config) for config in configs])
    best = speeds.max()
    seeds = range(6)
    found = [speeds[guided(configs, seed)[:TRIALS]].max() / best for seed in seeds]
    drawn = [speeds[np.random.default_rng(seed).permutation(len(speeds))[:TRIALS]].max() / best for seed in range(200)]
    # what random choice leaves to be gained, the search at least halves
    assert 1 - np.mean(found) < 0.5 * (1 - np.mean(drawn))
    assert min(found) > np.median(drawn)


def test_nothing_is_proposed_twice_and_everything_once():
    configs = legal_set(CASE, "cuda", {**usual_axes("cuda"), "layout": ("soa",), "block": ("64x1x1",)}, LIMITS).configs
    order = guided(configs[:90], seed=3, trials=90)
    assert sorted(order) == list(range(90))


def test_the_first_proposals_are_the_best_of_the_model_and_differ_in_kind():
    configs = configs_of("cuda")
    choice = Choice(configs, list(map(by_model, configs)), seed=1)
    first = [configs[choice.propose()] for _ in range(SEEDS)]
    assert len({(config.scheme, config.cells_per_thread) for config in first}) == SEEDS
    assert {config.scheme for config in first[:5]} == {config.scheme for config in configs}
    assert all(config.cells_per_thread == 4 for config in first[:5])


@pytest.mark.parametrize(
    ("edge", "steps", "known"),
    [
        (256, 2, {"rows": 3, "block": (32, 12, 1), "plane_fetch": "cp_async"}),
        (256, 3, {"rows": 2, "block": (32, 11, 1), "plane_fetch": "registers"}),
        (384, 3, {"rows": 2, "block": (32, 12, 1), "plane_fetch": "registers"}),
    ],
)
def test_the_shapes_that_are_known_to_be_best_are_among_the_first_proposals(edge, steps, known):
    """Of the study of fast kernels, by the model of the card that they were measured on."""
    sets = [f"case.domain={edge}x{edge}x{edge}", "axes.cuda[2].pack=4", f"axes.cuda[2].steps={steps}"]
    spec = load_study("d3q19-box-fast", sets)
    configs = legal_set(
        spec.case, "cuda", spec.axes["cuda"][1], Limits(shared_bytes_per_block=227 << 10, asynchronous=True)
    ).configs
    card = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    first = shapes(configs, [model(spec.case, config, card).mlups for config in configs])
    assert len(first) <= SHAPES
    assert any(all(getattr(configs[i], name) == value for name, value in known.items()) for i in first)


def test_shapes_of_fused_kernels_differ_in_more_than_their_chunks_and_come_of_kinds_that_may_win():
    fused = [
        cuda.TemporalBlocking(representation="moments", steps=steps, rows=rows, chunk_planes=planes)
        for steps in (1, 2, 3)
        for rows in range(1, 8)
        for planes in (32, 64)
    ]
    expected = [{1: 50.0, 2: 90.0, 3: 100.0}[c.steps] - c.rows + (c.chunk_planes == 64) for c in fused]
    plain = [cuda.Direct(), cuda.Direct(scheme="aa")]
    found = [([*plain, *fused])[i] for i in shapes([*plain, *fused], [99.0, 99.0, *expected])]
    assert [(c.steps, c.rows, c.chunk_planes) for c in found] == [(t, rows, 64) for t in (3, 2) for rows in range(1, 8)]
    assert shapes(plain, [1.0, 2.0]) == []


def test_the_first_proposals_have_kernels_of_moments_by_their_steps():
    """However many of their other axes vary, so that schemes are tried early, too."""
    many = [
        cuda.TemporalBlocking(representation="moments", steps=steps, rows=rows, cells_per_thread=cells)
        for steps in (1, 2, 3)
        for rows in (1, 2, 3)
        for cells in (1, 2)
    ]
    few = [cuda.Direct(scheme=scheme, cells_per_thread=cells) for scheme in ("aa", "pull") for cells in (1, 4)]
    expected = [100.0 + config.steps for config in many] + [1.0] * len(few)
    choice = Choice(many + few, expected, seed=1)
    first = [(many + few)[choice.propose()] for _ in range(7)]
    assert [config.fused_steps for config in first] == [3, 2, 1, 1, 1, 1, 1]
    assert {(config.scheme, config.cells_per_thread) for config in first[3:]} == {
        (scheme, cells) for scheme in ("aa", "pull") for cells in (1, 4)
    }


def test_the_same_seed_gives_the_same_search():
    configs = configs_of("cpu")
    assert guided(configs, seed=5) == guided(configs, seed=5) != guided(configs, seed=6)


def test_failures_are_learned_from():
    configs = configs_of("cuda")
    choice = Choice(configs, list(map(by_model, configs)), seed=1)
    for _ in range(60):
        index = choice.propose()
        failed = configs[index].scheme == "aa"
        choice.observe(index, None if failed else speed(configs[index]))
    later = [configs[choice.propose()].scheme for _ in range(20)]
    assert later.count("aa") < 5


def test_a_space_in_which_everything_fails_is_walked_to_its_end():
    configs = configs_of("cpu")[:40]
    choice = Choice(configs, [1.0] * 40, seed=1)
    while choice.remaining:
        choice.observe(choice.propose(), None)
    assert choice.remaining == 0


def test_lower_tiers_come_first():
    configs = configs_of("cuda")
    tiers = [predict(config).footprint_bytes for config in configs]
    choice = Choice(configs, [1.0] * len(configs), seed=1, tiers=tiers)
    smallest = tiers.count(min(tiers))
    seen = []
    for _ in range(min(smallest, 30)):
        index = choice.propose()
        choice.observe(index, speed(configs[index]))
        seen.append(tiers[index])
    assert set(seen) == {min(tiers)}


def test_features_lie_in_the_unit_cube_and_tell_configurations_apart():
    configs = configs_of("cuda")
    found = features(configs)
    assert found.values.min() >= 0
    assert found.values.max() <= 1
    assert len(np.unique(found.values, axis=0)) == len(configs)


def test_families_whose_tiles_have_two_and_three_axes_are_searched_together():
    tiles = {"wavefront": ((32, 8, 8), (64, 8, 16)), "moments-wavefront": ((8, 1), (32, 4))}
    configs = [replace(family("cpu", name)(), tile=tile) for name, chosen in tiles.items() for tile in chosen]
    found = features(configs)
    assert len(np.unique(found.values, axis=0)) == len(configs)
    choice = Choice(configs, [1.0] * len(configs), seed=1)
    assert {choice.propose() for _ in configs} == set(range(len(configs)))


def test_the_process_reproduces_what_it_saw_and_doubts_what_it_did_not():
    points = Features(np.linspace(0, 1, 9)[:, None], np.array([0]))
    values = np.sin(4 * points.values[:, 0])
    process = surrogate.condition(points, values, surrogate.fit(points, values, surrogate.start(1)))
    mean, deviation = process.predict(points.values)
    assert np.abs(mean - values).max() < 0.02
    between, doubt = process.predict(np.array([[0.3], [3.0]]))
    assert abs(between[0] - np.sin(1.2)) < 0.02
    assert doubt[1] > 10 * deviation.max()


def test_the_gradient_is_that_of_the_density():
    random = np.random.default_rng(1)
    points, values = random.random((12, 3)), random.normal(size=12)
    by_axis = (points[None, :, :] - points[:, None, :]).transpose(2, 0, 1) ** 2
    theta = np.array([0.2, -0.5, 0.1, -3.0])
    slope = surrogate._gradient(theta, by_axis, values, np.ones(12))
    for k in range(4):
        step = 1e-5 * np.eye(4)[k]
        rise = density(theta + step, by_axis, values) - density(theta - step, by_axis, values)
        assert slope[k] == pytest.approx(rise / 2e-5, rel=1e-4)


def density(theta, by_axis, values):
    """Negative log posterior density, from the textbook formula."""
    r = np.sqrt(5 * np.tensordot(np.exp(-2 * theta[:-1]), by_axis, 1))
    kernel = (1 + r + r**2 / 3) * np.exp(-r) + (np.exp(theta[-1]) + 1e-9) * np.eye(len(values))
    inverse = np.linalg.inv(kernel)
    mean = (inverse @ values).sum() / inverse.sum()
    variance = (values - mean) @ inverse @ (values - mean) / len(values)
    prior = 0.5 * (theta[:-1] ** 2).sum() + (theta[-1] - np.log(1e-3)) ** 2 / 18
    return 0.5 * len(values) * np.log(variance) + 0.5 * np.linalg.slogdet(kernel)[1] + prior


def test_a_sample_fills_the_space_before_the_search() -> None:
    points = np.array([[a, b] for a in range(10) for b in range(10)], dtype=float)
    chosen = spread(points, 4, np.random.default_rng(3))
    assert len(set(chosen)) == 4
    corners = [[0, 0], [0, 9], [9, 0], [9, 9]]
    assert sum(points[i].tolist() in corners for i in chosen) >= 2
    everything = spread(points, 1000, np.random.default_rng(3))
    assert sorted(everything) == list(range(100))
    assert everything[:4] == chosen


def test_a_sample_comes_after_the_seeds_and_survives_a_resume() -> None:
    configs = [cuda.Column(block=(32 * (1 + i % 20), 1, 1), z_cells=2 + i // 20) for i in range(200)]
    fresh = Choice(configs, [1.0] * 200, seed=1, sample=50)
    asked = [fresh.propose() for _ in range(51)]
    again = Choice(configs, [1.0] * 200, seed=1, sample=50)
    for index in asked[:30]:
        again.observe(index, 1.0)
    assert [again.propose() for _ in range(21)] == asked[30:]
