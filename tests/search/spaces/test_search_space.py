import time
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.catalogue.config import FAMILIES, KernelConfig, completed, from_flat, knobs
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.flows import box
from lbmtune.errors import InputError
from lbmtune.search.spaces.axes import Asked, points
from lbmtune.search.spaces.space import Space, check_any_is_legal, legal_set, varied
from tests.support.studies.fake_study import CASE, LIMITS, usual_axes


@cache
def usual_space(backend: str) -> Space:
    return legal_set(CASE, backend, usual_axes(backend), LIMITS)


RECORDS = [record for families in FAMILIES.values() for record in families.values()]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.backend}-{record.family}")
def test_each_knob_comes_after_those_that_it_depends_on(record: type[KernelConfig]) -> None:
    before: set[str] = set()
    for one in knobs(record):
        assert {condition.on for condition in one.acts} <= before
        before.add(one.name)


@pytest.mark.parametrize("backend", FAMILIES)
def test_the_legal_set_is_legal_distinct_and_repeatable(backend):
    space = usual_space(backend)
    assert len(space.configs) == len({config.key for config in space.configs}) > 50
    assert not any(broken(CASE, config, LIMITS) for config in space.configs)
    assert space == legal_set(CASE, backend, usual_axes(backend), LIMITS)


@pytest.mark.parametrize("backend", FAMILIES)
def test_legal_and_illegal_points_add_up(backend):
    space = usual_space(backend)
    everything = list(map(from_flat, points(Asked(CASE, backend, LIMITS), usual_axes(backend))))
    illegal = [broken(CASE, config, LIMITS) for config in everything]
    assert points_of(space) == len(everything)
    assert sum(space.illegal.values()) == sum(reason is not None for reason in illegal) > 0
    assert set(space.illegal) <= set(illegal)


def points_of(space):
    return len(space.configs) + sum(space.illegal.values())


def test_knobs_that_do_not_act_make_no_duplicates():
    axes = {"layout": ("soa", "aosoa"), "width": (8, 16), "padding": (0, 64), "block": ("64x1x1",)}
    flat = [c.flat() for c in legal_set(CASE, "cuda", axes, LIMITS).configs]
    found = [(one["layout"], one.get("width"), one.get("padding")) for one in flat]
    assert found == [("soa", None, 0), ("soa", None, 64), ("aosoa", 8, None), ("aosoa", 16, None)]
    axes = {"family": ("temporal-blocking",), "plane_fetch": ("none", "cp_async"), "overread": (0, 1)}
    found = [(c.plane_fetch, c.overread) for c in map(from_flat, points(Asked(CASE, "cuda", LIMITS), axes))]
    assert found == [("none", 0), ("cp_async", 0), ("cp_async", 1)]


def test_values_that_mean_the_same_on_this_device_make_no_duplicates():
    axes = {"threads": ("all", 6, 2), "vector_bits": (0, 0)}
    found = [c.threads for c in legal_set(CASE, "cpu", axes, Limits(cores=6)).configs]
    assert found == [6, 2]


@settings(max_examples=40)
@given(st.data())
def test_any_space_gives_only_legal_configurations(data):
    record = data.draw(st.sampled_from(RECORDS))
    backend = record.backend
    axes = {a.name: data.draw(st.lists(st.sampled_from(a.search), min_size=1, max_size=2)) for a in knobs(record)}
    axes["family"] = [record.family]
    expected = [
        c for c in map(from_flat, points(Asked(CASE, backend, LIMITS), axes)) if broken(CASE, c, LIMITS) is None
    ]
    if expected:
        assert list(legal_set(CASE, backend, axes, LIMITS).configs) == expected
        check_any_is_legal(CASE, backend, axes, LIMITS)
    else:
        with pytest.raises(InputError, match="no configuration of this space is legal"):
            check_any_is_legal(CASE, backend, axes, LIMITS)


def test_compute_follows_storage_and_threads_follow_the_device():
    axes = {"storage": ("fp64", "fp32", "fp16s"), "threads": ("all",), "vector_bits": (0,)}
    found = [(c.storage, c.compute, c.threads) for c in legal_set(CASE, "cpu", axes, Limits(cores=6)).configs]
    assert found == [("fp64", "fp64", 6), ("fp32", "fp32", 6), ("fp16s", "fp32", 6)]
    assert completed({"backend": "cpu", "threads": 3}, Limits(cores=6))["threads"] == 3


def test_where_nothing_is_legal_the_reason_is_that_of_the_points_that_came_furthest():
    axes = {"cells_per_thread": (1, 2, 8), "block": ("64x1x1",)}
    with pytest.raises(InputError, match=r"512x512x512 needs .* enough for \d+x\d+x\d+"):
        legal_set(box("d3q19", "bgk", (512, 512, 512)), "cuda", axes, Limits(memory_bytes=2**30))


def test_an_unknown_name_is_bad_input():
    with pytest.raises(InputError, match="did you mean 'esoteric-pull'"):
        legal_set(CASE, "cuda", {"scheme": ("esoteric-pul",)}, LIMITS)


def test_a_hundred_thousand_points_take_seconds():
    axes = {
        **usual_axes("cuda"),
        "padding": tuple(range(0, 1280, 32)),
        "register_limit": ("none", *(f"{n}-registers" for n in range(32, 256, 32))),
        "width": (2, 4, 8, 16, 32, 64),
    }
    begin = time.process_time()
    space = legal_set(CASE, "cuda", axes, LIMITS)
    assert points_of(space) > 100_000
    assert time.process_time() - begin < 8


def test_a_configuration_survives_its_flat_form():
    for config in usual_space("cpu").configs:
        assert from_flat(config.flat()) == config


def test_varied_names_what_is_searched():
    space = legal_set(CASE, "cuda", {"scheme": ("aa", "pull"), "block": ("64x1x1",)}, LIMITS)
    assert varied(space.configs) == ("scheme",)


FIRST = {"scheme": ("aa", "pull"), "block": ("64x1x1", "32x1x1")}
REASON = "cells_per_thread=3 is not supported for family direct (use 1, 2, 4 or 8)"
SECOND = {"scheme": ("pull", "push"), "block": ("64x1x1",), "cells_per_thread": (1, 3)}


def test_a_union_has_the_configurations_of_each_space_once_in_their_order():
    union = legal_set(CASE, "cuda", (FIRST, SECOND), LIMITS)
    one, two = (legal_set(CASE, "cuda", axes, LIMITS) for axes in (FIRST, SECOND))
    assert one.configs[2] == two.configs[0]
    assert union.configs == (*one.configs, two.configs[1])
    assert union.sizes == (4, 2)
    assert union.illegal == {REASON: 2}
    assert legal_set(CASE, "cuda", [FIRST], LIMITS) == one


def test_reasons_of_one_rule_are_counted_over_all_spaces():
    wide = {"cells_per_thread": (1, 5), "block": ("32x1x1",)}
    union = legal_set(CASE, "cuda", (SECOND, wide), LIMITS)
    assert union.illegal == {REASON: 3}
    assert points_of(union) == len(union.configs) + 3 == 6


def test_a_space_without_legal_configurations_leaves_the_others():
    none = {"cells_per_thread": (3,)}
    assert legal_set(CASE, "cuda", (none, FIRST), LIMITS).sizes == (0, 4)
    with pytest.raises(InputError, match="cells_per_thread=3 is not supported"):
        legal_set(CASE, "cuda", (none, none), LIMITS)
