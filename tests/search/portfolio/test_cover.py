"""Few kernels for many domains, and the rule between them, on made-up speeds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.records.best_json.portfolio import RuleLine, chosen_by
from lbmtune.search.portfolio.cover import Table, corrected, cover, robust
from lbmtune.search.portfolio.rule import applied, learned

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


@FEW
@given(tables(), st.integers(1, 6))
def test_a_cover_is_small_and_as_good_as_its_best_kernel(table, most) -> None:
    good = table.good(0.03)
    found = cover(table, most, 0.03)
    assert len(set(found)) == len(found) <= most
    covered = good[:, found].any(axis=1).sum()
    assert covered >= good.sum(axis=0).max()
    for one in found:  # none of them is for nothing
        rest = [k for k in found if k != one]
        assert not rest or good[:, rest].any(axis=1).sum() < covered
    if most == 6:
        assert covered == good.any(axis=1).sum()


@FEW
@given(tables())
def test_a_cover_needs_at_most_one_kernel_more_than_the_fewest(table) -> None:
    good = table.good(0.03)
    every = good.any(axis=1)
    sizes = (n for n in range(1, 7) for some in combinations(range(6), n) if (good[:, some].any(axis=1) == every).all())
    assert len(cover(table, 6, 0.03)) <= next(sizes) + 1


@FEW
@given(tables(), st.integers(0, 5))
def test_kernels_that_stay_stay(table, first) -> None:
    assert cover(table, 4, 0.03, first=(first,))[0] == first


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


@FEW
@given(tables())
def test_a_rule_takes_a_legal_kernel_on_every_domain(table) -> None:
    kernels = list(cover(table, 6, 0.03, first=(0,)))
    rule = learned(table, kernels, 0.03, kernels.index(0))
    legal = table.speeds[:, kernels] > 0
    picked = applied(rule, table.domains, legal)
    assert all(legal[n, kernel] for n, kernel in enumerate(picked))
    assert rule[-1] == RuleLine(kernel=kernels.index(0))


def _world(domains):
    """Kernel 1 needs an even nx and is the fastest from 10^6 cells on, kernel 2 is for small domains, 0 takes all."""
    return [
        [1.0, 1.5 if x * y * z >= 10**6 else 0.8, 1.3 if x * y * z < 10**6 else 0.7]
        if x % 2 == 0
        else [1.0, 0.0, 1.3 if x * y * z < 10**6 else 0.7]
        for x, y, z in domains
    ]


def test_a_rule_finds_what_decides_and_holds_on_other_domains() -> None:
    random = np.random.default_rng(1)
    known, new = (np.exp(random.uniform(np.log(16), np.log(400), (n, 3))).astype(int) for n in (120, 400))
    table = table_of(known, _world(known))
    kernels = cover(table, 6, 0.03, first=(0,))
    assert sorted(kernels) == [0, 1, 2]
    rule = learned(table, kernels, 0.03, 0)
    assert len(rule) <= 4
    speeds = np.array(_world(new))
    picked = np.array(kernels)[applied(rule, new, speeds[:, kernels] > 0)]
    losses = 1 - speeds[np.arange(len(new)), picked] / speeds.max(axis=1)
    assert (losses > 0.03).mean() < 0.04  # near a million cells no known domain tells


def test_one_kernel_needs_no_conditions() -> None:
    table = table_of([(8, 8, 8), (9, 9, 9), (16, 8, 8)], [[1.0, 2.0]] * 3)
    assert learned(table, [1], 0.03, 0) == (RuleLine(kernel=0),)


@given(DOMAINS, st.sampled_from([1, 2, 4, 16]), DOMAINS, DOMAINS, st.integers(1, 10**6))
def test_conditions_in_words_hold_where_the_line_does(domain, multiple, least, most, cells) -> None:
    line = RuleLine(kernel=0, multiple=(multiple, 1, 2), least=least, most=most, least_cells=cells, most_cells=10**7)
    x, y, z = domain
    said = eval(line.said.replace("&&", "and"), {"nx": x, "ny": y, "nz": z})
    assert said == line.holds(domain)
    assert chosen_by((line,), domain, lambda _: True) == (0 if said else None)
    assert chosen_by((line,), domain, lambda _: False) is None
    assert RuleLine(kernel=0).said == ""


def test_predictions_are_corrected_by_what_was_measured_near() -> None:
    """The model takes kernel 1 for as fast as the first; on small domains it is a third faster."""
    domains = np.array([(16, 16, 16), (256, 256, 256), (18, 16, 16), (240, 256, 256)], dtype=float)
    model = np.array([[100.0, 100.0], [200.0, 200.0], [100.0, 100.0], [200.0, 0.0]])
    measured = np.array([[50.0, 66.5], [80.0, 80.0], [np.nan, np.nan], [np.nan, np.nan]])
    found = corrected(domains, model, measured)
    assert found[:2] == pytest.approx(np.array([[1.0, 1.33], [1.0, 1.0]]))
    assert 1.25 < found[2, 1] < 1.33
    assert found[3, 1] == 0.0, "it is illegal there"
    assert found[:, 0] == pytest.approx(np.ones(4))
