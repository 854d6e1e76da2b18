"""Earlier studies teach a search: a planted error is carried over, a misleading one fades."""

import numpy as np
import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.search.interfaces import Seen
from lbmtune.search.strategies.transfer import MOST_TRIALS, Prior, source
from tests.search.strategies.worlds import World, recorded

BLOCKS = [(32 * n, m, 1) for n in range(1, 9) for m in (1, 2, 4)]
CONFIGS = [cuda.Direct(block=block, scheme=scheme) for scheme in ("aa", "pull", "push") for block in BLOCKS]
ERRORS = np.array([(0.04 if c.scheme == "pull" else 0.0) - 0.01 * np.log2(c.block[1]) for c in CONFIGS])


def planted(errors, offset=0.0, configs=CONFIGS):
    """A study of whose trials the model, which expects 100 MLUPS of all, errs so."""
    speeds = 100.0 * np.exp(errors + offset)
    return source(configs, speeds, lambda _: 100.0, np.full(len(configs), 0.002))


def none():
    return np.array([], dtype=np.intp), np.array([]), np.array([])


def told(errors, rows):
    rows = np.array(rows)
    return rows, errors[rows], errors[rows]


def agreement(prior, rows=None, errors=ERRORS):
    """How a prior agrees with the errors: the correlation, and the part of their range."""
    shift = prior.shift(*(none() if rows is None else told(errors, rows)))
    part = float(np.ptp(shift) / np.ptp(ERRORS))
    return np.corrcoef(shift, ERRORS)[0, 1] if part else 0.0, part


def test_a_planted_error_is_learned_whatever_its_offset():
    same, shifted = (Prior([planted(ERRORS, offset)], CONFIGS) for offset in (0.0, -0.7))
    assert np.allclose(same.shift(*none()), shifted.shift(*none()))
    correlation, part = agreement(same)
    assert correlation > 0.95
    assert 0.5 < part < 0.9
    rows, errors, speeds = told(ERRORS, range(0, 72, 5))
    assert np.allclose(same.shift(rows, errors, speeds), same.shift(rows, errors - 0.3, speeds))


def test_own_trials_that_agree_make_it_trusted():
    prior = Prior([planted(ERRORS)], CONFIGS)
    parts = [agreement(prior, rows)[1] for rows in (None, range(0, 72, 9), range(0, 72, 2))]
    assert parts == sorted(parts)
    assert parts[-1] > 0.85


def test_a_misleading_source_fades():
    prior = Prior([planted(-ERRORS)], CONFIGS)
    assert agreement(prior)[0] < -0.9
    parts = [agreement(prior, range(0, 72, step))[1] for step in (18, 9, 4)]
    assert parts == sorted(parts, reverse=True)
    assert parts[-1] == 0


def test_of_two_sources_the_one_that_agrees_decides():
    prior = Prior([planted(-ERRORS), planted(ERRORS)], CONFIGS)
    assert abs(agreement(prior)[1]) < 0.1
    correlation, part = agreement(prior, range(0, 72, 4))
    assert correlation > 0.95
    assert part > 0.6


def test_what_an_earlier_study_did_not_try_counts_less():
    tried = [config for config in CONFIGS if config.scheme == "aa"]
    flat = planted(np.zeros(len(tried)) + 0.002 * np.arange(len(tried)) % 3, configs=tried)
    shift = Prior([flat], CONFIGS).shift(*none())
    assert shift[: len(tried)].min() > shift[len(tried) :].max()


def test_the_error_of_a_slow_kernel_is_bounded():
    errors = np.where([c.scheme == "push" for c in CONFIGS], -2.0, ERRORS)
    found = planted(errors)
    assert found.errors.min() == pytest.approx(np.median(ERRORS[ERRORS >= 0.02]) - 0.1, abs=0.02)


def test_a_long_study_gives_its_fastest_and_a_part_of_the_others():
    many = [cuda.Column(block=(32 * (1 + i % 20), 1, 1), z_cells=2 + i // 20) for i in range(600)]
    speeds = np.random.default_rng(3).permutation(np.linspace(50, 100, len(many)))
    asked = []
    found = source(many, speeds, lambda place: asked.append(place) or 90.0, np.full(len(many), 0.01))
    assert len(found.configs) == len(found.errors) == len(found.noise) == len(asked) == MOST_TRIALS
    fastest = [many[i] for i in np.argsort(-speeds)[: MOST_TRIALS // 2]]
    assert list(found.configs[: MOST_TRIALS // 2]) == fastest
    assert min(speeds[asked]) < 60


def test_a_source_without_a_difference_shifts_nothing_between_what_it_tried():
    prior = Prior([planted(np.zeros(len(CONFIGS)))], CONFIGS)
    assert np.ptp(prior.shift(*none())) < 0.003
    assert np.isfinite(prior.shift(*told(ERRORS, range(5)))).all()


@pytest.mark.parametrize("name", ["auto", "gp"])
def test_a_search_begins_where_an_earlier_study_ended(name):
    world = World(CONFIGS, [Seen(100.0 * float(np.exp(e))) for e in ERRORS], [100.0] * len(CONFIGS))
    needed = [
        np.mean(
            [world.evaluations(world.order(world.player(name, seed, sources=given), 72), 0.999) for seed in range(5)]
        )
        for given in ([], [planted(ERRORS, 0.5)])
    ]
    assert needed[1] <= 0.5 * needed[0]


@pytest.mark.parametrize("name", ["auto", "gp"])
def test_a_search_survives_a_source_that_lies(name):
    world = World(CONFIGS, [Seen(100.0 * float(np.exp(e))) for e in ERRORS], [100.0] * len(CONFIGS))
    order = world.order(world.player(name, sources=[planted(-3 * ERRORS)]), len(CONFIGS))
    assert sorted(order) == list(range(len(CONFIGS)))
    assert world.evaluations(order, 0.99) < 20


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_source_that_lies_costs_as_many_trials_again_at_most(place):
    """The model knows the best kernel, or those before it, and the source says that they are slow."""
    speeds = np.sort(100.0 * np.exp(np.random.default_rng(3).normal(0.0, 0.005, len(CONFIGS))))
    expected = np.empty(len(CONFIGS))
    expected[np.argsort(ERRORS, kind="stable")] = speeds
    results = expected.copy()
    results[np.argsort(-expected)[place - 1]] = 1.05 * expected.max()
    world = World(CONFIGS, [Seen(speed) for speed in results], list(expected))
    for seed in range(3):
        alone, after = (
            world.evaluations(world.order(world.player("auto", seed, sources=given), 72), 0.999)
            for given in ([], [planted(-3 * ERRORS)])
        )
        assert alone == place
        assert after <= 2 * alone


def test_what_was_measured_before_is_replayed_to_a_search_with_sources():
    world = World(CONFIGS, [Seen(100.0 * float(np.exp(e))) for e in ERRORS], [100.0] * len(CONFIGS))
    first, again = (world.player("auto", sources=[planted(ERRORS)]) for _ in range(2))
    asked = world.order(first, 30)
    for index in asked:
        again.observe(index, world.results[index])
    assert sorted([*asked, *world.order(again, 100)]) == list(range(len(CONFIGS)))
    assert again.gain() is not None


def from_recorded(name):
    world = recorded(name)
    known = [i for i, seen in enumerate(world.results) if seen.mlups]
    return source(
        [world.configs[i] for i in known],
        np.array([world.results[i].mlups for i in known]),
        lambda place: world.compiled[known[place]],
        np.array([world.results[i].noise for i in known]),
    )


@pytest.mark.parametrize(
    ("before", "now", "most"),
    [
        ("nvidia-h200/d3q19-moments-fp32", "nvidia-h100/d3q19-moments-fp32", 0.5),
        ("nvidia-h200/d3q27-box-trt-fp64", "nvidia-h200/d3q27-box-trt-fp64-oblong", 0.5),
        ("nvidia-h200/d3q19-small-96", "nvidia-h200/d3q19-small-128", 2.0),
    ],
)
def test_fewer_evaluations_of_a_recorded_set_after_another(before, now, most):
    world, given = recorded(now), from_recorded(before)
    plain, after = (
        np.mean([world.evaluations(world.order(world.player("auto", seed, sources=s), 60), 0.99) for seed in range(2)])
        for s in ([], [given])
    )
    assert after <= most * plain
