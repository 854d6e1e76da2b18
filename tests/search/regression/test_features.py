from dataclasses import replace

import numpy as np

from lbmtune.catalogue.config import family
from lbmtune.search.interfaces import Seen
from lbmtune.search.regression.features import features
from tests.search.strategies.worlds import World, made_up


def test_features_lie_in_the_unit_cube_and_tell_configurations_apart():
    configs = made_up("cuda").configs
    found = features(configs)
    assert found.values.min() >= 0
    assert found.values.max() <= 1
    assert len(np.unique(found.values, axis=0)) == len(configs)


def test_families_whose_tiles_have_two_and_three_axes_are_searched_together():
    tiles = {"wavefront": ((32, 8, 8), (64, 8, 16)), "moments-wavefront": ((8, 1), (32, 4))}
    configs = [replace(family("cpu", name)(), tile=tile) for name, chosen in tiles.items() for tile in chosen]
    found = features(configs)
    assert len(np.unique(found.values, axis=0)) == len(configs)
    world = World(configs, [Seen(1.0)] * len(configs), [1.0] * len(configs))
    assert set(world.order(world.player("auto"), 9)) == set(range(len(configs)))
