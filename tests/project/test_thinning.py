"""That the tests of every day leave out no value of any parameter."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.flows import cavity
from tests.conftest import THINNED
from tests.support import durations
from tests.support.thinning import Fact, drawn, facts, few

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


def test_few_samples_have_as_many_values_as_may_be() -> None:
    samples = [frozenset({("scheme", scheme), ("layout", layout)}) for scheme in "abcd" for layout in "xy"]
    assert few(samples, 0) == set()
    assert few(samples, 8) == few(samples, 9) == {*range(8)}
    chosen = few(samples, 4)
    assert len(chosen) == 4
    assert set[Fact]().union(*(samples[n] for n in chosen)) == set[Fact]().union(*samples)
    assert len(few(samples, 6)) == 6


def test_samples_for_every_day_take_no_longer_than_a_test_may() -> None:
    assert durations.for_every_day(durations.LONG_S, 3) == 3
    assert durations.for_every_day(10 * durations.LONG_S, 25) == 2
    assert durations.for_every_day(10 * durations.LONG_S, 9) == 0


def test_samples_share_the_seconds_of_their_test_and_new_files_come_first() -> None:
    names = ["a.py::test_f[1]", "a.py::test_f[2]", "a.py::test_g", "b.py::test_h"]
    assert durations.each(names, {"a.py::test_f": 3.0}) == {
        names[0]: 1.5,
        names[1]: 1.5,
        names[2]: 0.01,
        names[3]: inf,
    }


def test_each_file_keeps_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "DURATIONS", tmp_path / "durations.json")
    durations.write({"a.py::test_f": 0.01, "b.py::test_g": 2.04, "b.py::test_h": 0.02})
    assert durations.read() == {"b.py::test_g": 2.0, "a.py::test_f": 0.0}
