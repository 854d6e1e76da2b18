"""Marches in the model: queues by hand, planes and sectors that are read again as exact numbers, spilled registers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.case import box
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.model.again import kept, memory_bytes, planes_again, sectors_again
from lbmtune.model.marches import asks_late, planes_on_their_way
from lbmtune.model.predict import predict
from lbmtune.model.queues import shares
from lbmtune.model.subject import LOCAL
from lbmtune.model.toml import read_machine
from lbmtune.records import Resources

RECORDED = Path(__file__).resolve().parent.parent / "studies" / "recorded"
CARD = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
CASE = box("d3q19", "regularised", (256, 256, 256))
MARCH = CudaConfig(
    representation="moments", layout="rows", block=(32, 11, 1), rows=2, steps=3, march=64, pack=4, prefetch=1
)


def spilling(config: CudaConfig, spill_bytes: int, local_bytes: int) -> float:
    """Seconds of the term of local memory."""
    resources = Resources(registers=168, spill_bytes=spill_bytes, local_bytes=local_bytes)
    return next((term.seconds for term in predict(CASE, config, CARD, resources).terms if term.name == LOCAL), 0.0)


# queues


def test_one_plane_alone_hides_nothing() -> None:
    assert shares([3.0, 2.0, 1.0], 0.5, 1) == ((3.0, 2.0, 1.0), 0.5)


def test_two_planes_at_two_stations_of_equal_times() -> None:
    """Each finds half a plane before it: 2 x 1.5 for two of them."""
    found = shares([1.0, 1.0], 0.0, 2)
    assert found == (pytest.approx((0.75, 0.75)), 0.0)
    assert shares([1.0, 1.0], 0.0, 5).total == pytest.approx(6 / 5), "(planes + stations - 1) / planes"


@given(demands=st.lists(st.floats(0.01, 10), min_size=1, max_size=4), delay=st.floats(0, 10), planes=st.integers(1, 30))
def test_planes_take_no_less_than_the_largest_and_no_more_than_all(demands, delay, planes):
    found = shares(demands, delay, planes)
    assert max(demands) * (1 - 1e-9) <= found.total <= (sum(demands) + delay) * (1 + 1e-9)
    assert shares(demands, delay, planes + 1).total <= found.total * (1 + 1e-9)
    assert found.total == pytest.approx(sum(found.stations) + found.delay)


def test_planes_on_their_way() -> None:
    assert planes_on_their_way(CASE, MARCH, 1) == 3, "in its stages, read, and left"
    assert planes_on_their_way(CASE, MARCH, 2) == 4
    assert planes_on_their_way(CASE, replace(MARCH, barrier="neighbours"), 1) == 4
    one_step = replace(MARCH, barrier="neighbours", steps=1)
    assert planes_on_their_way(CASE, one_step, 1) == 2, "it is left by the stage that it is in"
    assert planes_on_their_way(CASE, one_step, 3) == 4
    late = replace(MARCH, beyond=1, prefetch=1)
    assert asks_late(CASE, late)
    assert planes_on_their_way(CASE, late, 1) == 2
    for held in ({"barrier": "neighbours"}, {"beyond": 0}, {"prefetch": 2}, {"steps": 1}):
        assert not asks_late(CASE, replace(late, **held))
    flat = box("d2q9", "regularised", (4096, 4096, 1))
    assert planes_on_their_way(flat, replace(MARCH, block=(32, 4, 1)), 2) == 5, "no warp waits for another"


# what is read again


def test_planes_around_a_chunk_are_read_again() -> None:
    """Four chunks of 64 planes and six more: 40 / 3 bytes of an update are read 70 / 64 times."""
    assert bytes_per_update(CASE, MARCH) == pytest.approx(80 / 3)
    assert planes_again(CASE, MARCH, CARD) == pytest.approx(40 / 3 * 6 / 64)
    assert memory_bytes(CASE, MARCH, CARD) == pytest.approx(80 / 3 + 1.25)
    small = box("d3q19", "regularised", (16, 16, 16))
    assert memory_bytes(small, replace(MARCH, march=16), CARD) == bytes_per_update(small, MARCH), (
        "all of it stays in L2"
    )


def test_planes_of_falling_chunks_are_counted_one_by_one() -> None:
    falling = replace(MARCH, chunks="falling")
    assert planes_again(CASE, falling, CARD) == pytest.approx(40 / 3 * 4 * 6 / 256)


def test_sectors_of_an_array_of_structures_are_read_from_three_planes() -> None:
    """Without a cache each sector comes as often as planes ask for it; with enough of it once."""
    case = box("d3q19", "bgk", (256, 256, 256))
    structures = CudaConfig(layout="aos")
    assert CARD.calibration
    bare = replace(CARD, calibration=None, caches_bytes={"L2": 0})
    plenty = replace(CARD, calibration=None, caches_bytes={"L2": 1 << 40})
    assert sectors_again(case, structures, plenty) == 0
    assert 0 < sectors_again(case, structures, CARD) < sectors_again(case, structures, bare) <= 2 * 76
    for config in (CudaConfig(), CudaConfig(layout="aosoa", width=32), CudaConfig(layout="soa", scheme="aa")):
        assert memory_bytes(case, config, bare) == bytes_per_update(case, config)


@given(less=st.floats(0, 3e8), more=st.floats(0, 3e8))
def test_the_cache_keeps_less_of_what_lies_further_back(less: float, more: float) -> None:
    less, more = sorted((less, more))
    assert 0 <= kept(CARD, more) <= kept(CARD, less) <= 1
    assert kept(CARD, 0) == 1
    assert kept(CARD, 1e12) == 0


# spilled registers


def test_what_fits_in_l1_neither_waits_nor_leaves_it() -> None:
    assert spilling(MARCH, 0, 0) == 0
    assert 0 < spilling(MARCH, 200, 80) < spilling(MARCH, 200, 800), "281,600 bytes of 352 threads do not fit"
    assert spilling(MARCH, 400, 80) == pytest.approx(2 * spilling(MARCH, 200, 80))
    # of 262,144 bytes shared memory has 45,312 and a plane 28,160: so 352 threads have room for 536 each
    assert spilling(MARCH, 200, 536) == spilling(MARCH, 200, 80)
    assert spilling(MARCH, 200, 544) > spilling(MARCH, 200, 536)


def test_kernels_on_chip_pay_for_what_they_spill() -> None:
    case = box("d3q19", "bgk", (64, 64, 64))
    resident = CudaConfig(launch="resident", layout="rows", block=(64, 2, 1), march=16)
    clean, spilled = (predict(case, resident, CARD, Resources(registers=255, spill_bytes=n)) for n in (0, 1600))
    assert CARD.calibration
    more_s = 1e-6 / spilled.mlups - 1e-6 / clean.mlups
    assert more_s == pytest.approx(1600 / 16 / CARD.calibration.local_bytes_per_s["L2"])
    # on 32^3 cells few multiprocessors ask for it: what counts is that a warp waits, for seven loads at a time
    small, few = box("d3q19", "bgk", (32, 32, 32)), replace(resident, block=(32, 2, 1))
    clean, spilled = (predict(small, few, CARD, Resources(registers=255, spill_bytes=n)) for n in (0, 1600))
    waited_s = 0.47 * 1600 / 4 / 7 * CARD.calibration.l2_latency_s
    assert 1e-6 / spilled.mlups - 1e-6 / clean.mlups == pytest.approx(waited_s / 32**3)


def test_spilled_registers_wait_for_l2_as_far_as_it_keeps_them() -> None:
    """3 MB of all threads stay there: half its latency is half the wait. 500 MB do not, and wait for memory."""
    assert CARD.calibration
    one = replace(MARCH, steps=1)

    def term(local_bytes: int, share: float) -> float:
        known = replace(CARD.calibration, l2_latency_s=share * CARD.calibration.latency_s)
        resources = Resources(registers=168, spill_bytes=200, local_bytes=local_bytes)
        found = predict(CASE, one, replace(CARD, calibration=known), resources).terms
        return next(term.seconds for term in found if term.name == LOCAL)

    full, half, quarter = (term(96, share) for share in (1.0, 0.5, 0.25))
    assert full - half == pytest.approx(2 * (half - quarter))
    assert full > half > quarter
    assert term(16000, 1.0) == term(16000, 0.5)
