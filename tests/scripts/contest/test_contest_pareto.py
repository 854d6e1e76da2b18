"""Pareto sets of recorded sets, searched and by brute force: a part of `python -m scripts.contest.pareto`."""

import numpy as np
import pytest

from lbmtune.search.pareto import front
from scripts.contest.pareto import AFTER, footprints, played, shares
from scripts.contest.sets import world

MANY, FEW = "nvidia-h200/d3q19-small-64", "epyc-2-cores/d3q19-box-fast-fp32"
"""Sets whose front has eight members and four."""


@pytest.mark.parametrize("name", [MANY, FEW])
def test_a_search_is_within_two_percent_of_brute_force(name: str) -> None:
    found = np.median(played("auto", 5, "calibrated", name), axis=0)
    assert found[AFTER.index(50)] >= 0.98
    assert found[AFTER.index(100)] >= 0.99
    assert (np.diff(found) >= 0).all()


def test_a_search_by_speed_alone_is_not() -> None:
    by_speed, found = (np.median(played(name, 5, "calibrated", MANY), axis=0) for name in ("speed", "auto"))
    assert by_speed[AFTER.index(10)] < 0.9 < found[AFTER.index(10)]
    assert by_speed[AFTER.index(25)] < 0.98 < found[AFTER.index(25)]


def test_the_front_of_a_set_has_its_whole_hypervolume() -> None:
    found = world(MANY)
    sizes = footprints(found)
    best = front(np.column_stack([-np.nan_to_num(found.measured), sizes]))
    assert len(best) == 8
    whole, less = shares(found, sizes, [best.tolist(), best[:-1].tolist()])[:, -1]
    assert whole == pytest.approx(1.0)
    assert less < 1.0
