"""Rules that remember: the same answers, asked as rarely as can be."""

from lbmtune.catalogue.config import CudaConfig, from_flat
from lbmtune.search.rule_cache import Remembered, watched
from tests.support.fake_study import CASE, LIMITS


def _rule(asked):
    """Looks at the march, and at the block only where there is one."""

    def rule(case, config, limits):
        asked.append(config)
        if config.march == 1:
            return None
        return f"{config.march} planes of {config.block[0]}" if config.block[0] > 32 else None

    return rule


def _point(march, block, scheme="pull"):
    return {"backend": "cuda", "march": march, "block": block, "scheme": scheme}


def test_a_rule_is_asked_once_for_each_choice_of_what_it_looks_at():
    asked = []
    rule = Remembered(_rule(asked), CASE, LIMITS, {"march", "block", "scheme"})
    for scheme in ("pull", "aa"):
        for block in ("32x1x1", "64x1x1"):
            assert rule(_point(1, block, scheme)) is None
        assert rule(_point(4, "32x1x1", scheme)) is None
        assert rule(_point(4, "64x1x1", scheme)) == "4 planes of 64"
        assert rule(_point(8, "64x1x1", scheme)) == "8 planes of 64"
    assert [(c.march, c.block[0]) for c in asked] == [(1, 32), (4, 32), (4, 64), (8, 64)]


def test_axes_that_do_not_vary_make_no_forks():
    asked = []
    rule = Remembered(_rule(asked), CASE, LIMITS, {"scheme"})
    assert [rule(_point(4, "64x1x1", scheme)) for scheme in ("pull", "aa")] == ["4 planes of 64"] * 2
    assert len(asked) == 1


def test_an_axis_that_is_not_given_stands_at_its_default():
    rule = Remembered(_rule([]), CASE, LIMITS, {"march", "block"})
    assert rule({"backend": "cuda", "march": 2}) == "2 planes of 256"
    assert rule(_point(2, "32x1x1")) is None
    assert rule({"backend": "cuda"}) is None


def test_a_watched_configuration_says_what_was_looked_at():
    config = from_flat(_point(4, "64x1x1", "aa"))
    seen, looked_at = watched(config)
    assert isinstance(seen, CudaConfig)
    assert (seen.march, seen.propagation.name, seen.march) == (4, "aa", 4)
    assert list(looked_at) == ["march", "scheme", "group"]
    assert seen.flat() == config.flat()
    assert set(looked_at) == set(vars(config))


def test_a_watched_case_says_what_was_looked_at():
    seen, looked_at = watched(CASE)
    assert not looked_at
    assert seen.walled == CASE.walled
    assert list(looked_at) == ["faces"]
    assert seen.stencil is CASE.stencil
    assert list(looked_at) == ["faces", "lattice"]
