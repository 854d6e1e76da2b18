"""Spaces of more points than can be ranked: drawn by number, alike each time, and climbed from the best of them."""

import tracemalloc
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.catalogue.config import FAMILIES, from_flat
from lbmtune.catalogue.families.cache_hints import LOAD_HINTS, STORE_HINTS
from lbmtune.catalogue.families.rules import broken, cuda_limits
from lbmtune.catalogue.problem.flows import box
from lbmtune.files.studyfile import base_study
from lbmtune.records import Prediction
from lbmtune.search.kinds import is_default
from lbmtune.search.spaces import space as space_module
from lbmtune.search.spaces.axes import Asked, product_of
from lbmtune.search.spaces.climb import climbed
from lbmtune.search.spaces.space import legal_set
from lbmtune.search.spaces.usual import default_of, with_default
from tests.support.studies.fake_study import CASE, LIMITS, predict

H200 = cuda_limits("sm_90", 132, 141 << 30)
LARGE = {
    "scheme": ("pull", "push", "aa", "esoteric-twist", "esoteric-pull"),
    "layout": ("soa",),
    "padding": tuple(range(0, 2560, 64)),
    "block": ("32x1x1", "32x2x1", "64x1x1", "64x2x1", "128x1x1"),
    "register_limit": ("none", *(f"{n}-registers" for n in range(32, 256, 8))),
    "cells_per_thread": (1, 2),
    "load_hint": tuple(LOAD_HINTS),
    "store_hint": tuple(STORE_HINTS),
    "l2_prefetch": (0, 64, 128, 256),
    "launch": ("call", "graph"),
}
"""Nine million points."""
CONFIG = from_flat({})


@pytest.mark.parametrize("backend", FAMILIES)
@pytest.mark.parametrize("overrides", [[], ["case.flow=cavity"], ["case.lattice=d2q9", "case.domain=64x64"]], ids=str)
def test_points_by_number_are_those_of_the_product_in_order(backend, overrides):
    spec = base_study(["case.domain=64x64x64", *overrides])
    for record in FAMILIES[backend].values():
        product = product_of(Asked(spec.case, backend, H200, ["all"]), record, {})
        points = list(product.points())
        assert product.size == len(points)
        assert list(product.drawn(product.size)) == points
        some = list(product.drawn(product.size // 3))
        assert len(some) == product.size // 3
        assert all(point in points for point in islice(some, 5))


@pytest.fixture(autouse=True)
def fewer(monkeypatch):
    """Draws a tenth of the points, which takes a tenth of the time."""
    assert (space_module._EVERY, space_module._DRAWN) == (200_000, 50_000)
    monkeypatch.setattr(space_module, "_DRAWN", 5_000)


def test_a_large_space_is_drawn_in_bounded_memory_and_alike_each_time():
    tracemalloc.start()
    space = legal_set(CASE, "cuda", LARGE, LIMITS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 << 20
    assert 1_000 < len(space.configs) <= 5_000
    assert 1_000_000 < space.legal < 9_280_000
    assert space == legal_set(CASE, "cuda", LARGE, LIMITS)
    assert not any(broken(CASE, config, LIMITS) for config in space.configs[::100])
    assert len({config.layout.padding for config in space.configs}) == len(LARGE["padding"])


def test_a_space_that_is_small_enough_is_whole():
    small = {**LARGE, "padding": (0, 64), "register_limit": ("none",), "load_hint": ("default",)}
    space = legal_set(CASE, "cuda", small, LIMITS)
    assert space.legal == 0
    assert climbed(space, Asked(CASE, "cuda", LIMITS), small, predict) is space


@pytest.mark.parametrize(("seconds", "most"), [(0.1, 100), (1.0, 1_000), (2.0, 0), (float("inf"), 0)])
def test_a_short_study_looks_at_fewer_points(seconds, most):
    """3,200 points: more than a second has time for, of which as many are drawn as that allows."""
    few = {**LARGE, "padding": tuple(range(0, 1024, 64)), "load_hint": ("default",), "store_hint": ("default",)}
    few |= {"register_limit": ("none", "64-registers"), "l2_prefetch": (0, 64), "cells_per_thread": (1,)}
    assert product_of(Asked(CASE, "cuda", LIMITS), FAMILIES["cuda"]["direct"], few).size == 3_200
    space = legal_set(CASE, "cuda", few, LIMITS, seconds=seconds)
    looked = len(space.configs) + sum(space.illegal.values())
    assert looked == (most or 3_200)
    assert (space.legal > 0) == bool(most)


def far(config) -> Prediction:
    """Predict more the closer a padding and a limit of registers are to some values, and more for one of each name."""
    wanted = (config.scheme == "aa", config.load_hint == "evict-last", config.store_hint == "streaming")
    distance = abs(config.layout.padding - 1280) + abs(config.max_registers - 96)
    return replace(predict(CONFIG), mlups=1e6 - distance + 100 * sum(wanted))


def test_the_best_of_a_large_space_is_climbed():
    space = legal_set(CASE, "cuda", LARGE, LIMITS)
    found = climbed(space, Asked(CASE, "cuda", LIMITS), LARGE, far)
    assert found.configs[: len(space.configs)] == space.configs
    assert len(set(found.configs)) == len(found.configs)
    added = found.configs[len(space.configs) :]
    assert added
    assert not any(broken(CASE, config, LIMITS) for config in added[::50])
    assert max(far(config).mlups for config in added) == 1e6 + 300


@settings(deadline=None, max_examples=10)
@given(number=st.integers(0, 10**6), name=st.sampled_from(["direct", "temporal-blocking"]))
def test_neighbours_are_points_of_the_product(number, name):
    case = box("d3q19", "regularised", (32, 32, 32))
    product = product_of(Asked(case, "cuda", H200, ["all"]), FAMILIES["cuda"][name], {})
    points = list(product.points())
    point = points[number % len(points)]
    around = list(product.neighbours(from_flat(point).flat()))
    assert around
    every = {from_flat(one) for one in points}
    assert all(from_flat(one) in every for one in around)
    assert from_flat(point) not in map(from_flat, around)


def test_the_default_kernel_is_in_every_space_that_may_have_it():
    spec = base_study(["case.domain=256x32x32"])

    def space_with(axes, families=()):
        asked = Asked(spec.case, "cuda", H200, families)
        return legal_set(spec.case, "cuda", axes, H200, families), asked

    without = {"scheme": ("pull", "aa"), "block": ("32x1x1", "256x1x1"), "cells_per_thread": (1, 2)}
    space, asked = space_with(without)
    assert default_of(space) is not None
    assert with_default(space, asked, without) is space
    some = replace(space, configs=tuple(one for one in space.configs if not is_default(one)))
    assert default_of(some) is None
    assert with_default(some, asked, without).configs == (*some.configs, default_of(space))
    for restricted in ({**without, "scheme": ("aa",)}, {**without, "family": ("temporal-blocking",)}):
        assert with_default(some, asked, restricted) is some, "the study asks for other kernels"
    other = tuple(one for one in some.configs if one.scheme == "aa")
    coarse = replace(some, configs=tuple(from_flat({**one.flat(), "storage": "fp16s"}) for one in other))
    found = default_of(with_default(coarse, asked, without))
    assert found is not None
    assert (found.storage, found.scheme) == ("fp16s", "pull")
