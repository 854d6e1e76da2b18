"""Marches in the model: queues by hand, planes and sectors that are read again as exact numbers, spilled registers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import exp
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.layouts import AoS, AoSoA, Rows
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.model.gpu.families import inputs_of, memory_bytes
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.temporal_blocking import (
    _terms_of,
    launch_start,
    overlap,
    refetched_plane_bytes,
    stages_wait,
    terms,
)
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs, passed_planes
from lbmtune.model.gpu.temporal_blocking.overlap import loads_late, overlapped, planes_in_flight, planes_wait
from lbmtune.model.gpu.temporal_blocking.spills import _waits_s, found_in_l1, loop_answers_s
from lbmtune.model.gpu.terms.l2_refetch import refetched_sector_bytes
from lbmtune.model.gpu.terms.mva import shares
from lbmtune.model.machine.curves import retained_in_l2
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.records import Resources, Term
from lbmtune.records.terms import LAUNCH, LOCAL, MEMORY
from tests.support.paths import RECORDED
from tests.support.seconds import close

CARD = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
CASE = box("d3q19", "regularised", (256, 256, 256))
MARCH = cuda.TemporalBlocking(block=(32, 11, 1), pack=4, representation="moments", rows=2, steps=3)


def spilling(config: CudaConfig, spill_bytes: int, local_bytes: int) -> float:
    """Seconds of the term of local memory."""
    resources = Resources(registers=168, spill_bytes=spill_bytes, local_bytes=local_bytes)
    return next((term.seconds for term in predict(CASE, config, CARD, resources).terms if term.name == LOCAL), 0.0)


def march_that_spills(local_bytes: int) -> Inputs:
    assert CARD.calibration
    return inputs_of(CASE, MARCH, CARD, Resources(registers=168, local_bytes=local_bytes))


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
    """As many as kernels without a lattice hide behind each other, however many blocks there are."""
    for one in (MARCH, replace(MARCH, warp_sync="neighbours"), replace(MARCH, register_limit="2-blocks")):
        assert [planes_in_flight(CASE, one, blocks) for blocks in (1, 2)] == [5, 5]
    one_step = replace(MARCH, warp_sync="neighbours", steps=1)
    assert planes_in_flight(CASE, one_step, 1) == 2, "it is left by the stage that it is in"
    assert planes_in_flight(CASE, one_step, 3) == 4
    late = replace(MARCH, overread=1, plane_fetch="registers")
    assert loads_late(CASE, late)
    assert planes_in_flight(CASE, late, 1) == 2
    for held in ({"warp_sync": "neighbours"}, {"overread": 0}, {"plane_fetch": "cp_async"}, {"steps": 1}):
        assert not loads_late(CASE, replace(late, **held))
    flat = box("d2q9", "regularised", (4096, 4096, 1))
    assert planes_in_flight(flat, replace(MARCH, block=(32, 4, 1)), 2) == 5, "no warp waits for another"


def test_blocks_that_read_no_plane_ahead_have_one_each() -> None:
    """A load then overlaps with the stages of other blocks alone."""
    flat = box("d2q9", "regularised", (4096, 4096, 1))
    one = replace(MARCH, plane_fetch="none")
    assert not loads_late(CASE, one)
    for case in (CASE, flat):
        assert [planes_in_flight(case, one, blocks) for blocks in (1, 2, 4)] == [1, 2, 4]
    ahead = predict(flat, replace(MARCH, plane_fetch="cp_async", block=(32, 4, 1)), CARD).mlups
    assert predict(flat, replace(one, block=(32, 4, 1)), CARD).mlups < ahead


# stages


def stages(config: CudaConfig, met: float, together: int = 1) -> list[float]:
    """What instructions, exchanges and meetings take, where both of the first take a second and memory nothing."""
    parts = [Term(name=name, seconds=s, sentence="", source="") for name, s in (("m", 0.0), ("i", 1.0), ("x", 1.0))]
    return [one.seconds for one in overlapped(CASE, config, parts[0], parts[1:], (), together, met)[1:]]


def test_warps_of_a_scheduler_hide_instructions_and_exchanges() -> None:
    """Eleven warps are three on a scheduler, of which (3 + 1) / 3 is left."""
    assert stages(MARCH, 0.0) == pytest.approx([2 / 3, 2 / 3])
    assert sum(stages(replace(MARCH, block=(32, 4, 1)), 0.0)) == pytest.approx(2), "one hides nothing"


def test_a_block_that_meets_hides_nothing_of_it_and_warps_that_wait_for_neighbours_do() -> None:
    assert stages(MARCH, 0.5) == pytest.approx([2 / 3, 2 / 3, 0.5])
    found = stages(replace(MARCH, warp_sync="neighbours"), 0.5)
    assert found == pytest.approx([*shares([1.0, 1.0], 3 * 0.5, 3).stations, 0.5])
    assert 4 / 3 < sum(found) < 4 / 3 + 0.5
    both = stages(replace(MARCH, block=(32, 4, 1)), 0.5, together=2)
    assert sum(both) == pytest.approx(shares([1.5], 1.0, 2).total), "another block goes on meanwhile"


def test_stages_wait_as_long_as_was_measured_with_their_meeting_and_without() -> None:
    """Three waves of 330 blocks, 132 at a time, take 64 planes and 6 more each."""
    assert CARD.calibration
    none = dict.fromkeys(("none by 8", "none by 12", "none by 16"), 4e-7)
    with_it = {"block by 8": 5e-7, "block by 12": 6e-7, "block by 16": 7e-7}
    found = inputs_of(
        CASE,
        MARCH,
        replace(CARD, calibration=replace(CARD.calibration, stages_s=none | with_it)),
        Resources(registers=168),
    )
    turns = -(-found.launched_blocks // 132) * 70
    assert stages_wait(found) == close(turns * 2e-7 / 256**3)
    assert stages_wait(replace(found, config=replace(MARCH, steps=1))) == 0
    assert stages_wait(replace(found, calibration=replace(CARD.calibration, stages_s={}))) == 0
    beside = {name.replace("block", "neighbours"): seconds for name, seconds in with_it.items()}
    flags_s = 16 * 12 / (max(CARD.calibration.instructions_per_s.values()) / 132)
    waiting = replace(found, config=replace(MARCH, warp_sync="neighbours"))
    waiting = replace(waiting, calibration=replace(CARD.calibration, stages_s=none | beside))
    assert stages_wait(waiting) == close(turns * (2e-7 - flags_s) / 256**3), "its instructions are counted"


FLAT = cuda.TemporalBlocking(block=(32, 2, 1), cells_per_thread=2, pack=4, steps=6, plane_fetch="cp_async")


def of_launch(chunk_planes: int, **changes: Any) -> TemporalInputs:
    """Inputs of six blocks of D2Q9 that share a multiprocessor; 79 columns of 8192 cells."""
    config = replace(FLAT, chunk_planes=chunk_planes, **changes)
    flat = box("d2q9", "bgk", (8192, 8192, 1))
    found = inputs_of(flat, config, CARD, Resources(registers=147))
    assert isinstance(found, TemporalInputs)
    return found


def test_the_last_wave_is_a_part_of_its_own() -> None:
    """2,528 blocks are three waves of 792, and 152 that are one or two to a multiprocessor."""
    whole = of_launch(256)
    full, last = whole.parts
    assert (full.launched_blocks, last.launched_blocks) == (2376, 152)
    assert (full.blocks, full.waves, last.blocks, last.waves) == (6, 3, 3, 1)
    assert full.share + last.share == close(1)
    assert full.updates + last.updates == close(8192**2)
    assert whole.parts == (full, last), "the whole itself is as before"
    tapered = of_launch(256, chunk_schedule="tapered")
    assert tapered.parts == (tapered,)
    once = of_launch(4096)
    assert once.parts == (once,), "one wave"


@given(chunk_planes=st.integers(16, 512))
def test_a_last_wave_takes_no_longer_than_a_full_one(chunk_planes: int) -> None:
    """The seconds of a launch grow with its blocks, and rise by no more than those of a wave."""
    whole = of_launch(chunk_planes)
    seconds = sum(one.seconds for one in terms(whole, {LAUNCH}))
    parts = [part.share * sum(one.seconds for one in _terms_of(part, {LAUNCH})) for part in whole.parts]
    assert seconds == close(sum(parts))
    if len(parts) > 1:
        wave = parts[0] / whole.parts[0].waves
        assert wave / 6 < parts[1] < 1.02 * wave


def test_blocks_wait_for_the_planes_that_they_go_through_not_for_those_that_march_allows() -> None:
    """192 planes at a time of 256 are two even chunks of 128."""
    assert CARD.calibration
    latency_s = CARD.calibration.latency_s / (256**3 * 3)
    found = inputs_of(CASE, replace(MARCH, chunk_planes=192), CARD, Resources(registers=168))
    waves = -(-found.launched_blocks // 132)
    assert planes_wait(found).seconds == close(waves * (128 + 6) * latency_s)
    falling = replace(found, config=replace(MARCH, chunk_planes=192, chunk_schedule="tapered"))
    passed = passed_planes(CASE, falling.config)
    assert len({*passed}) > 1
    waves = -(-falling.launched_blocks // 132)
    mean = 256 / len(passed) + 6
    assert planes_wait(falling).seconds == close(waves * mean * latency_s), "as the mean of a column"


def test_between_walls_stages_leave_out_planes_that_they_have_no_use_of() -> None:
    """Of three the second has none of the first two planes of a chunk, the third none of four: 2 of 70 on average."""
    assert CARD.calibration
    walled = cavity("d3q19", "regularised", (256, 256, 256), 1.5)
    per_turn = [
        stages_wait(found) * 256**3 / -(-found.launched_blocks // 132)
        for found in (inputs_of(case, MARCH, CARD, Resources(registers=168)) for case in (walled, CASE))
    ]
    assert per_turn[0] / per_turn[1] == pytest.approx((3 * 70 - 2 - 4) / (3 * 70))


# what is read again


def test_planes_around_a_chunk_are_read_again() -> None:
    """Four chunks of 64 planes and six more: 40 / 3 bytes of an update are read 70 / 64 times."""
    assert bytes_per_update(CASE, MARCH) == pytest.approx(80 / 3)
    assert refetched_plane_bytes(CASE, MARCH, CARD) == pytest.approx(40 / 3 * 6 / 64)
    assert memory_bytes(CASE, MARCH, CARD) == pytest.approx(80 / 3 + 1.25)
    small = box("d3q19", "regularised", (16, 16, 16))
    assert memory_bytes(small, replace(MARCH, chunk_planes=16), CARD) == bytes_per_update(small, MARCH), (
        "all of it stays in L2"
    )


def test_planes_of_falling_chunks_are_counted_one_by_one() -> None:
    falling = replace(MARCH, chunk_schedule="tapered")
    assert refetched_plane_bytes(CASE, falling, CARD) == pytest.approx(40 / 3 * 4 * 6 / 256)


def test_sectors_of_an_array_of_structures_are_read_from_three_planes() -> None:
    """Without a cache each sector comes as often as planes ask for it; with enough of it once."""
    case = box("d3q19", "bgk", (256, 256, 256))
    structures = cuda.Direct(layout=AoS())
    assert CARD.calibration
    bare = replace(CARD, calibration=None, caches_bytes={"L2": 0})
    plenty = replace(CARD, calibration=None, caches_bytes={"L2": 1 << 40})
    assert refetched_sector_bytes(case, structures, plenty) == 0
    assert 0 < refetched_sector_bytes(case, structures, CARD) < refetched_sector_bytes(case, structures, bare) <= 2 * 76
    for config in (cuda.Direct(), cuda.Direct(layout=AoSoA()), cuda.Direct(scheme="aa")):
        assert memory_bytes(case, config, bare) == bytes_per_update(case, config)


@given(less=st.floats(0, 3e8), more=st.floats(0, 3e8))
def test_the_cache_keeps_less_of_what_lies_further_back(less: float, more: float) -> None:
    less, more = sorted((less, more))
    assert 0 <= retained_in_l2(CARD, more) <= retained_in_l2(CARD, less) <= 1
    assert retained_in_l2(CARD, 0) == 1
    assert retained_in_l2(CARD, 1e12) == 0


# small domains


@pytest.mark.parametrize(("edge", "launched", "together"), [(32, 12, 1), (64, 66, 1), (80, 84, 2), (96, 192, 3)])
def test_few_blocks_lie_apart(edge: int, launched: int, together: int) -> None:
    """Three of them fit on a multiprocessor; 66 pairs of those have one each, and more as there are more blocks."""
    assert CARD.calibration
    march = replace(MARCH, steps=1, rows=1, block=(32, 8, 1), chunk_planes=32 if edge < 64 else 43)
    subject = inputs_of(box("d3q19", "regularised", (edge,) * 3), march, CARD, Resources(registers=80))
    assert (subject.launched_blocks, subject.blocks) == (launched, together)


def test_a_march_begins_as_a_copy_of_nothing_does() -> None:
    """Copies of 16.8 MB take 3.63 us, of 5 MB 2.14: of nothing 1.51, and bytes the rest, half of what memory takes."""
    assert CARD.calibration
    dependent = replace(MARCH, launch="dependent")

    def begun(edge: int, config: CudaConfig) -> tuple[float, float]:
        case = box("d3q19", "regularised", (edge,) * 3)
        term, near = launch_start(inputs_of(case, config, CARD, Resources()))  # type: ignore[arg-type]
        return term.seconds * case.sites * config.steps, near

    nothing_s, near = begun(48, dependent)
    assert nothing_s == pytest.approx(1.515e-6, rel=1e-3)
    assert near == pytest.approx((between_copies(8_847_360) - nothing_s) / (8_847_360 / 3.8586e12), rel=1e-3)
    nothing_s, near = begun(256, dependent)
    assert nothing_s == pytest.approx(1.515e-6, rel=1e-3)
    assert near == pytest.approx(1, abs=0.02)
    assert begun(256, MARCH)[1] == 1, "by call"


@pytest.mark.parametrize(("edge", "less"), [(48, True), (256, False)])
def test_bytes_that_l2_keeps_take_a_march_less_than_those_of_memory(edge: int, less: bool) -> None:
    """Its share of the time of `begins`, which stations beside it take no part of."""
    assert CARD.calibration
    march = replace(MARCH, steps=1, launch="dependent")
    subject = inputs_of(box("d3q19", "regularised", (edge,) * 3), march, CARD, Resources(registers=80))

    def moving(without: tuple[str, ...]) -> float:
        return next(one.seconds for one in terms(subject, without) if one.name == MEMORY)

    share = moving(()) / moving((LAUNCH,))
    assert launch_start(subject)[1] - 0.1 < share < 0.9 if less else share == pytest.approx(1, abs=0.03)


def between_copies(moved: int) -> float:
    """Seconds of a copy by a dependent launch, of 4,980,736 to 16,809,984 bytes."""
    return 2.14272e-6 + (3.63328e-6 - 2.14272e-6) * (moved - 4_980_736) / (16_809_984 - 4_980_736)


# spilled registers


def test_a_line_of_l1_stays_as_long_as_nothing_takes_its_place() -> None:
    """Of 262,144 bytes shared memory takes 65,536, for 46,336. A plane that is read has 28,160, and so have 80 of each
    of 352 threads: what is left is exp(-(a plane, and what was lost of the words) / (192 KiB))."""
    found = found_in_l1(march_that_spills(80))
    assert 0.8 < found < 0.9
    assert found == pytest.approx(exp(-28_160 * (1 + 1 - found) / 196_608))
    assert found_in_l1(march_that_spills(0)) == 1
    assert found_in_l1(march_that_spills(8)) == pytest.approx(exp(-28_160 / 196_608), rel=5e-3)


@pytest.mark.parametrize(
    ("axes", "walled", "planes", "share", "value_bytes"),
    [
        ({}, False, 1, 0.70, 4),
        ({"storage": "fp16s"}, False, 2, 0.59, 4),
        ({"storage": "fp64", "compute": "fp64"}, False, 2, 0.59, 8),
        ({}, True, 1, 0.22, 4),
    ],
)
def test_every_thread_spills_in_every_pass_and_those_of_halos_too(
    axes: dict[str, str], walled: bool, planes: int, share: float, value_bytes: int
) -> None:
    """Four chunks of 64 planes and 6 more, one or two of which a pass takes; the loop has a share of what is spilled.

    Of that 54 % are loads, of values of 4 or 8 bytes, for which a thread waits five at a time. Between walls there are
    four texts, of which a warp has one, and stages leave out two planes on average.
    """
    assert CARD.calibration
    case = cavity("d3q19", "regularised", (256, 256, 256), 1.5) if walled else CASE
    resources = Resources(registers=168, spill_bytes=600, local_bytes=100)
    found = inputs_of(case, replace(MARCH, **axes), CARD, resources)  # type: ignore[arg-type]
    passes = found.launched_blocks * 32 * 11 * (68 if walled else 70) / planes
    (term,) = [one for one in terms(found, ()) if one.name == LOCAL]
    assert term.sentence.startswith(f"{passes * share * 600 / (256**3 * 3):.3g} bytes of spilled registers")
    waits = 0.54 * share * 600 / value_bytes / planes / 5
    assert loop_answers_s(found) == pytest.approx(waits * CARD.calibration.l2_latency_s)


def test_threads_wait_for_the_words_alone_that_l1_has_not() -> None:
    """Of as many: for none where all are found, for a seventh of few, for nearly all of many."""
    assert CARD.calibration
    waits = []
    for local_bytes in (0, 8, 2000):
        resources = Resources(registers=168, spill_bytes=200, local_bytes=local_bytes)
        subject = inputs_of(CASE, MARCH, CARD, resources)
        staged_s = partial(overlap.stages, CASE, MARCH, [], subject.blocks, 0.0)
        waits.append(_waits_s(subject, lambda alone_s, staged_s=staged_s: staged_s(alone_s)[0].total))
    assert waits[0] == 0
    assert 0 < 3 * waits[1] < waits[2]


@given(less=st.integers(4, 2000), more=st.integers(4, 2000))
def test_the_more_words_there_are_the_fewer_does_l1_have(less: int, more: int) -> None:
    less, more = sorted((less, more))
    assert 0 < found_in_l1(march_that_spills(more)) <= found_in_l1(march_that_spills(less)) < 1


def test_spilled_registers_take_longer_the_fewer_of_them_l1_has() -> None:
    assert spilling(MARCH, 0, 0) == 0
    assert 0 < spilling(MARCH, 200, 80) < spilling(MARCH, 200, 400) < spilling(MARCH, 200, 800)
    assert spilling(MARCH, 400, 80) == close(2 * spilling(MARCH, 200, 80), rel=0.05)


def test_kernels_on_chip_pay_for_what_they_spill() -> None:
    case = box("d3q19", "bgk", (64, 64, 64))
    resident = cuda.Persistent(layout=Rows(), block=(64, 2, 1), tile_planes=16)
    clean, spilled = (predict(case, resident, CARD, Resources(registers=255, spill_bytes=n)) for n in (0, 1600))
    assert CARD.calibration
    more_s = 1e-6 / spilled.mlups - 1e-6 / clean.mlups
    assert more_s == close(1600 / 16 / CARD.calibration.local_bytes_per_s["L2"])
    # on 32^3 cells few multiprocessors ask for it: what counts is that a warp waits, for seven loads at a time
    small, few = box("d3q19", "bgk", (32, 32, 32)), replace(resident, block=(32, 2, 1))
    clean, spilled = (predict(small, few, CARD, Resources(registers=255, spill_bytes=n)) for n in (0, 1600))
    waited_s = 0.47 * 1600 / 4 / 7 * CARD.calibration.l2_latency_s
    assert 1e-6 / spilled.mlups - 1e-6 / clean.mlups == close(waited_s / 32**3)


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
    assert full - half == close(2 * (half - quarter))
    assert full > half > quarter
    assert term(16000, 1.0) == term(16000, 0.5)
