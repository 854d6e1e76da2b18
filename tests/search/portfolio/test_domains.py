"""The domains of a portfolio: within the range, odd and oblong ones among them, the same for the same seed."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.errors import InputError
from lbmtune.search.portfolio.domains import Domains, checked, parse_domains, searched
from lbmtune.search.portfolio.plan import Spent, planned, proof_s

RANGES = st.tuples(st.integers(1, 600), st.integers(1, 600)).filter(lambda two: two[0] < two[1])
SEEDS = st.integers(0, 2**32 - 1)


def takes_all(_: tuple[int, int, int]) -> bool:
    return True


@pytest.mark.parametrize(
    ("text", "dimensions", "least", "most", "listed"),
    [
        ("64:512", 3, (64, 64, 64), (512, 512, 512), ()),
        ("64:512", 2, (64, 64, 1), (512, 512, 1), ()),
        ("8x16x32:64", 3, (8, 16, 32), (64, 64, 64), ()),
        ("64,96x96x48,256", 3, (64, 64, 48), (256, 256, 256), ((64, 64, 64), (96, 96, 48), (256, 256, 256))),
        ("64,96x48", 2, (64, 48, 1), (96, 64, 1), ((64, 64, 1), (96, 48, 1))),
    ],
)
def test_a_text_is_a_range_or_a_list(text, dimensions, least, most, listed) -> None:
    assert parse_domains(text, dimensions) == Domains(text, least, most, listed)


@pytest.mark.parametrize(
    "text",
    ["", "64", "64:64", "512:64", "64:128:256", "a:b", "64,", "0:4", "4x4", "64x64x64x64,8", "8,9999999", "-4:8"],
)
def test_anything_else_is_refused_in_a_sentence(text) -> None:
    with pytest.raises(InputError, match=r"^--domains .*\.$") as refused:
        parse_domains(text)
    assert f"--domains {text}" in str(refused.value)


def test_cells_across_a_plane_are_none() -> None:
    with pytest.raises(InputError):
        parse_domains("64x64x2,8", 2)


@settings(max_examples=30)
@given(RANGES, SEEDS, st.integers(1, 8))
def test_searched_domains_span_the_range(ends, seed, count) -> None:
    low, high = ends
    space = parse_domains(f"{low}:{high}")
    found = searched(space, count, seed, takes_all)
    assert found == searched(space, count, seed, takes_all)
    assert len(set(found)) == len(found) <= count
    assert list(found) == sorted(found, key=lambda one: (prod(one), one))
    assert all(low <= extent <= high for one in found for extent in one)
    if count >= 3:
        assert (low,) * 3 in found
        cubes = [one for one in found if len(set(one)) == 1]
        assert max(cubes)[0] >= 0.9 * low * (high / low) ** 0.7 - 16, "a large one"


@settings(max_examples=30)
@given(RANGES.filter(lambda two: two[1] - two[0] > 8), SEEDS)
def test_checked_domains_are_new_and_of_all_kinds(ends, seed) -> None:
    low, high = ends
    space = parse_domains(f"{low}:{high}")
    known = searched(space, 6, seed, takes_all)
    found = checked(space, 20, seed, takes_all, known)
    assert len(set(found)) == len(found) == 20
    assert not set(found) & set(known)
    assert all(low <= extent <= high for one in found for extent in one)
    assert any(all(extent % 2 for extent in one) for one in found)
    if high > 4 * low:
        assert any(max(one) > 2 * min(one) for one in found)


def test_what_the_default_does_not_take_is_left_out() -> None:
    space = parse_domains("8:64")

    def small(domain) -> bool:
        return prod(domain) < 20_000

    assert all(map(small, (*searched(space, 6, 1, small), *checked(space, 20, 1, small, ()))))
    with pytest.raises(InputError, match="takes none"):
        searched(space, 6, 1, lambda _: False)


def test_a_list_is_searched_and_checked_itself() -> None:
    space = parse_domains("16,24,32,40,48x48x8,64")
    found = searched(space, 3, 1, takes_all)
    assert found == ((16, 16, 16), (48, 48, 8), (64, 64, 64))
    rest = checked(space, 20, 1, takes_all, found)
    assert rest[:3] == ((24, 24, 24), (32, 32, 32), (40, 40, 40))
    assert len(rest) == 20


def test_a_range_of_few_domains_gives_fewer() -> None:
    space = parse_domains("7:8")
    assert len(checked(space, 20, 1, takes_all, searched(space, 2, 1, takes_all))) == 6


@given(st.floats(20, 1e5))
def test_the_searches_leave_time_for_the_check(limit_s) -> None:
    plan = planned(limit_s)
    assert 2 <= plan.searches <= 6
    assert plan.searches * plan.search_s == pytest.approx(0.36 * limit_s)
    assert plan.searches * plan.search_s < plan.beside_s < plan.taught_s < 0.8 * limit_s
    assert plan.taught_s < plan.doubtful_s < 0.95 * limit_s


def test_proving_a_kernel_takes_a_fixed_time_and_one_for_each_cell() -> None:
    spent = [Spent(cells, 10, 10 * (0.2 + 2e-8 * cells)) for cells in (64**3, 203 * 173 * 203, 512**3)]
    assert proof_s(spent, 100**3) == pytest.approx(0.22)
    assert proof_s(spent, 256**3) == pytest.approx(0.2 + 2e-8 * 256**3)


@given(
    st.lists(st.builds(Spent, st.integers(1, 2**27), st.integers(1, 12), st.floats(0.01, 50)), max_size=6),
    st.integers(1, 2**27),
)
def test_proving_takes_no_less_than_what_was_seen(spent, cells) -> None:
    known = proof_s(spent, cells)
    assert known >= min((one.seconds / one.kernels for one in spent), default=0.0)
    assert proof_s(spent[:1], cells) == (spent[0].seconds / spent[0].kernels if spent else 0.0)
