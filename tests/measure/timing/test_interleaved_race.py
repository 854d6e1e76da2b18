"""Races: who is slower at 95 % leaves, and nobody else."""

from lbmtune.measure.timing.interleaved import still_racing
from lbmtune.measure.timing.sampling import Sample
from lbmtune.records import Conditions


def rows(*columns):
    return [{n: Sample(value, Conditions()) for n, value in enumerate(row)} for row in zip(*columns, strict=True)]


FIRST = (1.0, 1.1, 1.05, 1.2, 1.0, 1.02)


def test_who_is_slower_in_all_rounds_leaves():
    slower = tuple(1.03 * one for one in FIRST)
    alike = tuple(one * (1.01 if n % 2 else 0.995) for n, one in enumerate(FIRST))
    assert still_racing(rows(FIRST, slower, alike), [0, 1, 2]) == [0, 2]
    assert still_racing(rows(slower, FIRST), [0, 1]) == [1]


def test_who_left_is_compared_no_more():
    later = [*rows(FIRST, FIRST), {0: Sample(1.0, Conditions())}]
    assert still_racing(later, [0]) == [0]


def test_equals_all_stay():
    assert still_racing(rows(FIRST, FIRST, FIRST), [0, 1, 2]) == [0, 1, 2]
