"""That the tests of every day leave out no value of any parameter."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.flows import cavity
from tests.conftest import THINNED
from tests.support.thinning import drawn, facts

WAYS = [(a, b, c) for a, b, c in product("abcd", range(6), (True, False)) if a != "d" or b == 5]
"""Values of a rare kind stand at one end, and strides of 2, 3, 4, 6 never meet some of the others."""


@pytest.mark.thinned(12)
@pytest.mark.parametrize(("a", "b", "c"), WAYS)
def test_a_thinned_test(a: str, b: int, c: bool) -> None:
    assert (a, b, c) in WAYS


def test_every_value_of_every_parameter_is_for_every_day(request: pytest.FixtureRequest) -> None:
    """Of each thinned test that this process has collected: the whole suite where it runs all."""
    thinned = request.config.stash[THINNED]
    assert any(name.endswith("test_a_thinned_test") for name in thinned)
    for name, (samples, kept) in thinned.items():
        everything = frozenset().union(*samples)
        assert frozenset().union(*(samples[n] for n in kept)) == everything, name
        assert len(kept) < len(samples), f"{name}: thinned, but all of it is run"


SAMPLES = st.lists(st.frozensets(st.tuples(st.sampled_from("abc"), st.sampled_from("0123"))), max_size=30)


@given(SAMPLES, st.integers(1, 9))
def test_drawn_samples_cover_all_facts(samples: list[frozenset[tuple[str, str]]], one_in: int) -> None:
    kept = drawn(samples, one_in)
    assert frozenset().union(*(samples[n] for n in kept)) == frozenset().union(*samples)
    assert len(kept) >= len(samples) / one_in
    assert kept == drawn(samples, one_in)


def test_few_samples_cover_many_values() -> None:
    samples = [facts({"a": a, "b": b, "c": c}) for a, b, c in product(range(8), range(8), range(3))]
    assert len(drawn(samples, 1000)) == 8
    assert len(drawn(samples, 8)) == 24
    assert len(drawn(samples, 1)) == 192


def test_facts_are_the_fields_of_a_case_and_of_a_configuration() -> None:
    case, one = cavity("d2q9", "bgk", (8, 8, 1), 1.0), cuda.Direct(scheme="aa")
    found = facts({"sample": (case, one), "axes": {"threads": 2}, "change": test_few_samples_cover_many_values})
    assert ("sample.0.lattice", "'d2q9'") in found
    assert ("sample.1.scheme", "'aa'") in found
    assert ("axes.threads", "2") in found
    assert ("change", "test_few_samples_cover_many_values") in found
    assert found - facts({"sample": (case, replace(one, scheme="pull"))}) >= {("sample.1.scheme", "'aa'")}
