"""A directed search against going through all points, on rules that are drawn."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest

from tests.support.conformance.directed import Conflict, Point, Search, UndecidedError

DOMAIN = dict.fromkeys("abcde", (0, 1, 2))


class Forbidden:
    """Rules each of which forbids some values together."""

    domain = DOMAIN

    def __init__(self, together: list[Point]) -> None:
        self.together = together
        points = [dict(zip(DOMAIN, values, strict=True)) for values in product(*DOMAIN.values())]
        self.points = [point for point in points if self.conflict({}, point) is None]

    def completed(self, given: Point, wished: Point) -> Point:
        return {**wished, **given}

    def conflict(self, given: Point, point: Point) -> Conflict | None:
        for values in self.together:
            if values.items() <= point.items():
                axes = frozenset(values)
                return Conflict(axes, {f"{values}": axes})
        return None

    def legal(self, given: Point) -> bool:
        return any(given.items() <= point.items() for point in self.points)


def drawn(draw: random.Random, axes: int) -> Point:
    return {name: draw.choice(DOMAIN[name]) for name in draw.sample(sorted(DOMAIN), axes)}


def searched(rules: int, seed: int) -> Iterator[tuple[Forbidden, Point, Point | Conflict]]:
    """Many searches that know of one another, from drawn wishes."""
    draw = random.Random(seed)
    forbidden = Forbidden([drawn(draw, draw.choice((1, 2, 2, 3))) for _ in range(rules)])
    search = Search(forbidden, most=3**5)
    for _ in range(30):
        given = drawn(draw, draw.choice((0, 1, 2, 2, 3)))
        yield forbidden, given, search.legal(given, drawn(draw, 5), draw)


@pytest.mark.parametrize("rules", [5, 12, 20, 30, 45])
def test_it_finds_a_legal_point_where_there_is_one_and_proves_it_elsewhere(rules: int) -> None:
    outcomes = set()
    for seed in range(6):
        for forbidden, given, found in searched(rules, seed):
            outcomes.add(type(found))
            assert isinstance(found, Conflict) != forbidden.legal(given)
            if isinstance(found, Conflict):
                assert found.axes <= given.keys()
                assert not forbidden.legal({name: given[name] for name in found.axes})
            else:
                assert given.items() <= found.items()
                assert forbidden.conflict({}, found) is None
    assert rules < 10 or len(outcomes) == 2


def test_what_one_search_finds_out_the_next_one_knows() -> None:
    rules = Forbidden([{"a": 0, "b": one, "c": other} for one, other in product(range(3), repeat=2)])
    asked: list[Point] = []

    class Counted(Forbidden):
        def conflict(self, given: Point, point: Point) -> Conflict | None:
            asked.append(point)
            return super().conflict(given, point)

    search, wished = Search(Counted(rules.together), most=100), dict.fromkeys(DOMAIN, 0)
    asked.clear()
    first = search.legal({"a": 0, "d": 1}, wished, random.Random(1))
    assert isinstance(first, Conflict)
    assert first.axes == {"a"}
    assert len(asked) == 9
    assert search.legal({"a": 0, "e": 2}, wished, random.Random(2)) == first
    assert len(asked) == 9


def test_a_search_that_may_not_go_on_says_so() -> None:
    rules = Forbidden([{"a": 0, "b": value} for value in range(3)])
    wished = dict.fromkeys(DOMAIN, 0)
    with pytest.raises(UndecidedError):
        Search(rules, most=2).legal({"a": 0}, wished, random.Random(1))
    assert isinstance(Search(rules, most=3).legal({"a": 0}, wished, random.Random(1)), Conflict)


def test_reasons_are_told_that_name_every_axis() -> None:
    both = {"a 1 with b 2: no": frozenset("abc"), "c 0: no": frozenset("c"), "a 1: no": frozenset("ac")}
    assert Conflict(frozenset("ab"), both).told() == "a 1 with b 2: no"
    each = {
        "a 1 with c 0: no": frozenset("ac"),
        "c 2 with d 0: no": frozenset("bcd"),
        "b 2 with c 1: no": frozenset("bc"),
    }
    assert Conflict(frozenset("ab"), each).told() == "a 1 with c 0: no; b 2 with c 1: no"
    assert Conflict(frozenset("ab"), {}).told() == ""
