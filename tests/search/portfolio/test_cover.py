"""Few kernels for many domains, and the rule between them, on made-up speeds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.records.best_json.portfolio import RuleLine, chosen_by
from lbmtune.search.portfolio.cover import Table, cover, robust

DOMAINS = st.tuples(*[st.integers(8, 300)] * 3)


def table_of(domains, speeds, measured=None) -> Table:
    speeds = np.array(speeds, dtype=float)
    known = np.ones(speeds.shape, dtype=bool) if measured is None else measured
    return Table(np.array(domains, dtype=float), speeds, known, np.zeros(speeds.shape, dtype=bool))


@st.composite
def tables(draw) -> Table:
    domains = draw(st.lists(DOMAINS, min_size=1, max_size=12, unique=True))
    rows = st.lists(st.sampled_from([0.0, 0.9, 0.97, 0.98, 1.0, 1.1]), min_size=5, max_size=5)
    speeds = [[1.0, *draw(rows)] for _ in domains]
    return table_of(domains, speeds)


FEW = settings(max_examples=25)


def left(table, kernels, tolerance=0.03) -> float:
    """Return what remains beyond a tolerance if each domain gets the best of some kernels."""
    return float(table.weights @ (table.beyond(tolerance)[:, list(kernels)].min(axis=1) ** 2))


@FEW
@given(tables(), st.integers(1, 6))
def test_a_cover_is_small_and_loses_no_more_than_its_best_kernel(table, most) -> None:
    found = cover(table, most, 0.03)
    assert 1 <= len(set(found)) == len(found) <= most
    assert left(table, found) <= min(left(table, [one]) for one in range(6)) + 1e-9
    for one in found:  # none of them is for nothing
        rest = [k for k in found if k != one]
        assert not rest or left(table, rest) > left(table, found)
    if most == 6:
        assert left(table, found) == pytest.approx(left(table, range(6)), abs=1e-8)


@FEW
@given(tables())
def test_a_cover_of_two_kernels_is_near_the_best_two(table) -> None:
    """Greedy choice alone takes away at least 1 - 1/e of what the best two do."""
    best = min(left(table, pair) for pair in combinations(range(6), 2))
    nothing = float(table.weights.sum())
    assert nothing - left(table, cover(table, 2, 0.03)) >= 0.63 * (nothing - best)


@FEW
@given(tables(), st.sets(st.integers(0, 5), min_size=1), st.integers(1, 3))
def test_the_first_kernel_is_an_anchor_and_the_others_are_chosen_for_it(table, anchors, most) -> None:
    found = cover(table, most, 0.03, anchors=sorted(anchors))
    assert found[0] in anchors
    assert left(table, found) <= min(left(table, [one]) for one in anchors) + 1e-9


def test_exchanges_from_drawn_sets_find_what_greedy_ones_do_not(monkeypatch) -> None:
    """The kernel that is best alone is in no set of three that loses nothing; no single exchange leads to one."""
    speeds = [
        [1.0, 1.0, 0.8, 0.8, 0.9, 0.9],
        [0.8, 0.8, 1.0, 1.0, 0.8, 0.9],
        [0.9, 1.0, 0.9, 1.0, 1.0, 1.0],
        [0.9, 0.8, 0.8, 0.8, 1.0, 0.9],
        [0.8, 1.0, 0.8, 0.8, 0.9, 1.0],
        [0.8, 0.9, 1.0, 1.0, 0.8, 0.9],
    ]
    table = table_of([(8 * n, 8, 8) for n in range(1, 7)], speeds)
    assert left(table, cover(table, 3, 0.0), 0.0) == 0
    monkeypatch.setattr("lbmtune.search.portfolio.cover._DRAWN", 0)
    assert left(table, cover(table, 3, 0.0), 0.0) > 0


def test_a_kernel_behind_the_default_covers_nothing() -> None:
    table = table_of([(8, 8, 8), (16, 16, 16)], [[1.0, 0.99], [1.0, 0.99]])
    slow = Table(table.domains, table.speeds, table.measured, np.array([[False, True]] * 2))
    assert cover(slow, 2, 0.03) == (0,)
    assert cover(table, 1, 0.03) in {(0,), (1,)}


def test_a_kernel_that_was_never_measured_covers_nothing() -> None:
    """However fast it is said to be."""
    measured = np.array([[True, False, True], [False, False, False]])
    table = table_of([(64, 64, 64), (65, 64, 64)], np.array([[1.0, 3.0, 0.0], [1.0, 3.0, 2.0]]), measured)
    assert cover(table, 3, 0.03) == (1,)
    assert cover(table.of_measured(), 3, 0.03) == (0,), "the last one failed where it was measured"


@FEW
@given(tables())
def test_the_robust_kernel_has_the_least_largest_loss(table) -> None:
    found = robust(table, range(6))
    assert table.losses[:, found].max() == pytest.approx(table.losses.max(axis=0).min())


@given(DOMAINS, st.sampled_from([1, 2, 4, 16]), DOMAINS, DOMAINS, st.integers(1, 10**6))
def test_conditions_in_words_hold_where_the_line_does(domain, multiple, least, most, cells) -> None:
    line = RuleLine(kernel=0, multiple=(multiple, 1, 2), least=least, most=most, least_cells=cells, most_cells=10**7)
    x, y, z = domain
    said = eval(line.said.replace("&&", "and"), {"nx": x, "ny": y, "nz": z})
    assert said == line.holds(domain)
    assert chosen_by((line,), domain, lambda _: True) == (0 if said else None)
    assert chosen_by((line,), domain, lambda _: False) is None
    assert RuleLine(kernel=0).said == ""
