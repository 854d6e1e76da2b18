"""Sectors that memory moves again, of arrays of structures: by the cache's share and by the blocks that run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.layouts import AoS
from lbmtune.catalogue.problem.flows import box
from lbmtune.model.gpu.families import memory_bytes
from lbmtune.model.machine.curves import retained_in_l2
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from tests.support.kernels.configs import varied
from tests.support.paths import RECORDED

CARD = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
CASE = box("d3q19", "bgk", (256, 256, 256))
STRUCTURES = cuda.Direct(layout=AoS(), block=(128, 1, 1))
PLANE_BYTES = 152 * 256 * 256


def that_keeps(whole_bytes: int, nothing_bytes: int) -> Machine:
    """All of so many bytes, nothing of so many others, and shares in between."""
    assert CARD.calibration
    rates = {"0": 2.0, str(whole_bytes): 2.0, str(nothing_bytes): 1.0, str(2 * nothing_bytes): 1.0}
    return replace(CARD, calibration=replace(CARD.calibration, again_bytes_per_s=rates))


def test_what_the_cache_keeps_is_linear_in_between() -> None:
    card = that_keeps(100, 300)
    assert [retained_in_l2(card, at) for at in (50, 100, 150, 200, 300, 400)] == [1, 1, 0.75, 0.5, 0, 0]


def test_every_sector_of_a_structure_is_read_from_three_planes() -> None:
    """D3Q19: 76 bytes of a cell, twice more where planes do not stay, and in single planes of the other schemes."""
    small = that_keeps(PLANE_BYTES // 8, PLANE_BYTES // 4)
    assert memory_bytes(CASE, STRUCTURES, small, at_once=1) == pytest.approx(152 + 2 * 76)
    assert memory_bytes(CASE, STRUCTURES, that_keeps(2 * PLANE_BYTES, 3 * PLANE_BYTES), at_once=1) == 152
    assert memory_bytes(CASE, varied(STRUCTURES, layout="soa"), small) == 152


def test_what_is_read_again_goes_through_the_cache_as_well() -> None:
    """Half of the sectors after a plane of 152 bytes per cell would be three quarters after one of twice as many."""
    card = that_keeps(0, 2 * PLANE_BYTES)
    assert memory_bytes(CASE, STRUCTURES, card, at_once=1) == pytest.approx(152 + 2 * 76, rel=0.02)


def test_blocks_that_run_at_the_same_time_read_sooner_or_later() -> None:
    """A cache that keeps a plane and a bit loses sectors where a wave of blocks moves more than the bit."""
    card = that_keeps(PLANE_BYTES * 3 // 2, PLANE_BYTES * 3)
    moved = [memory_bytes(CASE, STRUCTURES, card, at_once=blocks) for blocks in (1, 256, 1024, 2048)]
    assert moved[:2] == [152, 152]
    assert 152 < moved[2] < moved[3]


@pytest.mark.parametrize(
    ("axes", "blocks", "measured"),
    [
        ({}, 12, 163.5),
        ({}, 9, 156.2),
        ({}, 4, 152.8),
        ({}, 2, 152.6),
        ({"storage": "fp64", "compute": "fp64"}, 7, 456.1),
        ({"storage": "fp16s"}, 12, 76.3),
        ({"block": (32, 1, 1)}, 32, 157.9),
        ({"layout": "aosoa", "width": 2}, 12, 155.4),
        ({"layout": "aosoa", "width": 4}, 12, 154.0),
    ],
    ids=str,
)
def test_structures_move_what_counters_say(axes: dict[str, object], blocks: int, measured: float) -> None:
    """Of an H200, by Nsight Compute; blocks: of a multiprocessor, as few as shared memory was asked for."""
    config = varied(STRUCTURES, **axes)
    found = memory_bytes(CASE, config, CARD, at_once=blocks * CARD.multiprocessors)
    assert found == pytest.approx(measured, rel=0.05)
