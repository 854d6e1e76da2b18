"""Cached rules: the same reasons, from as few calls as possible."""

from itertools import product

import numpy as np

from lbmtune.catalogue.config import cuda, from_flat
from lbmtune.search.spaces.rule_cache import CachedRule, Points, tracked
from tests.support.studies.fake_study import CASE, LIMITS


def _rule(asked):
    """A rule that reads the block only for columns of several cells."""

    def rule(case, config, limits):
        asked.append(config)
        if config.z_cells == 1:
            return None
        return f"{config.z_cells} cells of {config.block[0]}" if config.block[0] > 32 else None

    return rule


def _point(z_cells, block, scheme="pull"):
    return {"backend": "cuda", "family": "column", "z_cells": z_cells, "block": block, "scheme": scheme}


def _reasons(rule, *points):
    """Return the reason against each of several points that are asked about together."""
    found = rule.reasons(Points(points), np.arange(len(points)))
    against = {place: reason for reason, places in found for place in places}
    assert sorted(against) == list(range(len(points)))
    return [reason for _, reason in sorted(against.items())]


def test_a_rule_is_asked_once_for_each_choice_of_what_it_looks_at():
    asked = []
    rule = CachedRule(_rule(asked), CASE, LIMITS, {"z_cells", "block", "scheme"})
    for scheme in ("pull", "aa"):
        for block in ("32x1x1", "64x1x1"):
            assert _reasons(rule, _point(1, block, scheme)) == [None]
        assert _reasons(rule, _point(4, "32x1x1", scheme)) == [None]
        assert _reasons(rule, _point(4, "64x1x1", scheme)) == ["4 cells of 64"]
        assert _reasons(rule, _point(8, "64x1x1", scheme)) == ["8 cells of 64"]
    assert [(c.z_cells, c.block[0]) for c in asked] == [(1, 32), (4, 32), (4, 64), (8, 64)]


def test_knobs_that_do_not_vary_make_no_forks():
    asked = []
    rule = CachedRule(_rule(asked), CASE, LIMITS, {"scheme"})
    for scheme in ("pull", "aa"):
        assert _reasons(rule, _point(4, "64x1x1", scheme)) == ["4 cells of 64"]
    assert len(asked) == 1


def test_a_knob_that_is_not_given_has_its_default():
    rule = CachedRule(_rule([]), CASE, LIMITS, {"z_cells", "block"})
    column = {"backend": "cuda", "family": "column"}
    assert _reasons(rule, {**column, "z_cells": 2}) == ["2 cells of 256"]
    assert _reasons(rule, _point(2, "32x1x1")) == [None]
    assert _reasons(rule, {**column, "z_cells": 1}) == [None]


def test_points_asked_about_together_have_the_reasons_that_each_has_alone():
    several = [_point(*one) for one in product((1, 4, 8), ("32x1x1", "64x1x1", "128x1x1"), ("pull", "aa"))]
    asked = []
    together = _reasons(CachedRule(_rule(asked), CASE, LIMITS, {"z_cells", "block", "scheme"}), *several)
    assert len(asked) == 7
    assert together == [_rule([])(CASE, from_flat(point), LIMITS) for point in several]
    assert _reasons(CachedRule(_rule([]), CASE, LIMITS, {"z_cells"})) == []


def test_what_is_read_after_a_layout_may_depend_on_its_parameters():
    def rule(case, config, limits):
        return f"scheme {config.scheme}" if config.layout.padding else None

    several = [{**_point(1, "32x1x1", scheme), "padding": words} for words in (8, 0) for scheme in ("pull", "aa")]
    cached = CachedRule(rule, CASE, LIMITS, {"padding", "scheme"})
    assert _reasons(cached, *several) == ["scheme pull", "scheme aa", None, None]


def test_a_watched_configuration_says_what_was_read():
    config = from_flat(_point(4, "64x1x1", "aa"))
    seen, read = tracked(config)
    assert isinstance(seen, cuda.Column)
    assert (seen.z_cells, seen.propagation.name, seen.z_cells) == (4, "aa", 4)
    assert list(read) == ["z_cells", "scheme", "layout"]
    assert seen.flat() == config.flat()
    assert set(read) == set(vars(config))


def test_a_watched_case_says_what_was_read():
    seen, read = tracked(CASE)
    assert not read
    assert seen.walled == CASE.walled
    assert list(read) == ["faces"]
    assert seen.stencil is CASE.stencil
    assert list(read) == ["faces", "lattice"]
