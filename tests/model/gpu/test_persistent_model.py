"""Moments on chip in the model: what warps wait for, and what they spill."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.layouts import Rows
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.model.gpu.families import estimated
from lbmtune.model.machine.description import Calibration, Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import MODELS, predict
from lbmtune.records import Prediction, Resources
from lbmtune.records.terms import GRID_SYNC, LOCAL
from tests.support.paths import RECORDED
from tests.support.seconds import close

CARD = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
ON_64, ON_96 = (box("d3q19", "regularised", (edge, edge, edge)) for edge in (64, 96))
ON_CHIP = cuda.Persistent(
    layout=Rows(), block=(32, 8, 1), cells_per_thread=3, register_planes=3, representation="moments", tile_planes=9
)


def on_chip(config: CudaConfig, case: Case = ON_96, without: Collection[str] = (), **resources: int) -> Prediction:
    return predict(case, config, CARD, Resources(**resources), without)


def test_warps_of_a_scheduler_hide_what_each_waits_for() -> None:
    """One warp of each scheduler hides nothing of its waits, four hide most."""
    longer = []
    for rows in (4, 16):
        one = replace(ON_CHIP, block=(32, rows, 1), cells_per_thread=2, register_planes=0)
        found, alone = on_chip(one, ON_64), on_chip(one, ON_64, ("latency",))
        assert {term.name for term in found.terms} == {"grid sync", "instructions", "exchanges", "latency"}
        longer.append(alone.mlups / found.mlups)
    assert longer[0] > 1.5 > 1.25 > longer[1] > 1


def test_a_meeting_of_neighbours_is_told_as_what_it_is_taken_for() -> None:
    def told(config: CudaConfig) -> str:
        return next(term.sentence for term in on_chip(config).terms if term.name == GRID_SYNC)

    assert told(ON_CHIP).startswith("synchronisation of all blocks, ")
    assert told(replace(ON_CHIP, grid_sync="neighbours")).startswith(
        "synchronisation of neighbours, taken as all blocks, "
    )


def test_blocks_that_a_launch_asks_room_for_and_does_not_have_hide_nothing() -> None:
    one = replace(
        ON_CHIP, block=(32, 4, 1), cells_per_thread=2, register_planes=0
    )  # 16 x 8 tiles for 132 multiprocessors
    assert on_chip(replace(one, min_blocks=4), ON_64).mlups == on_chip(one, ON_64).mlups


@pytest.mark.parametrize(("held", "written", "share"), [(3, 9, 0.66), (0, 3, 0.87)])
def test_what_is_spilled_is_of_the_planes_that_are_written_out(held: int, written: int, share: float) -> None:
    """Where registers keep planes those are all planes of the tile, and otherwise those of a pass."""
    found = on_chip(replace(ON_CHIP, register_planes=held), spill_bytes=2700, local_bytes=400)
    (term,) = [term for term in found.terms if term.name == LOCAL]
    assert term.sentence.startswith(f"{share * 2700 / (written * 3):.3g} bytes")


ROOMY = replace(ON_CHIP, block=(32, 12, 1), tile_planes=6)


@pytest.mark.parametrize(("config", "local_bytes", "near"), [(ROOMY, 64, True), (ON_CHIP, 400, False)])
def test_l1_has_what_is_spilled_where_shared_memory_leaves_room(
    config: CudaConfig, local_bytes: int, near: bool
) -> None:
    """24 KB of 384 threads beside shared memory of 196 KB, of 256 KB; 100 KB of 256 threads beside 228 KB."""
    assert CARD.calibration
    slower = replace(CARD.calibration, l2_latency_s=2 * CARD.calibration.l2_latency_s)

    def waits_s(calibration: Calibration, spill_bytes: int) -> float:
        resources = Resources(spill_bytes=spill_bytes, local_bytes=local_bytes)
        return predict(ON_96, config, replace(CARD, calibration=calibration), resources).seconds_of("latency")

    usual, longer = (waits_s(one, 2700) - waits_s(one, 0) for one in (CARD.calibration, slower))
    assert usual > 0
    assert longer == close(usual if near else 2 * usual, rel=0.02)


def test_spills_are_foreseen_where_launch_bounds_leave_too_few_registers() -> None:
    """128 of a block of 256 threads with two on a multiprocessor; a kernel that holds three planes wants 232."""
    free, short = (estimated(ON_96, replace(ON_CHIP, min_blocks=blocks)) for blocks in (1, 2))
    assert (free.registers, free.spill_bytes, free.local_bytes) == (232, 0, 0)
    assert (short.registers, short.local_bytes, short.spill_bytes) == (128, 4 * (232 - 128), 8 * 4 * (232 - 128))
    assert predict(ON_96, replace(ON_CHIP, min_blocks=2), CARD).mlups < 0.7 * predict(ON_96, ON_CHIP, CARD).mlups


def test_fewer_planes_of_a_tile_and_fewer_cells_of_a_thread_want_fewer_registers() -> None:
    one = replace(ON_CHIP, register_planes=0, block=(32, 16, 1), min_blocks=4, cells_per_thread=2)  # 32 registers
    planes = [estimated(ON_64, replace(one, tile_planes=n)).local_bytes for n in (1, 2, 3, 4)]
    assert planes == [4 * (wanted - 32) for wanted in (76, 96, 116, 116)]
    assert estimated(ON_64, replace(one, tile_planes=1, cells_per_thread=1)).local_bytes == 4 * (38 - 32)


TILES = cuda.Persistent(layout=Rows(), block=(64, 8, 1))
"""Of populations: 8 x 16 of them in 64^3 cells."""
PLAIN = replace(ON_CHIP, block=(32, 8, 1), cells_per_thread=2, tile_planes=4, register_planes=0)
"""Of moments: 8 x 16 of 64 x 8 x 4 cells."""
CUBE = box("d3q19", "bgk", (64, 64, 64))


def said(found: Prediction, name: str) -> int:
    """The number that the sentence of a term begins with."""
    (term,) = [term for term in found.terms if term.name == name]
    return int(term.sentence.split()[0])


def through_faces(case: Case, config: CudaConfig) -> float:
    """Values of an update that come in from other tiles: what memory reads, in words."""
    return bytes_per_update(case, config) / 2 / config.stored.bytes


def step_s(found: Prediction, *names: str) -> float:
    """Seconds of terms in a step of 64^3 cells."""
    return CUBE.sites * sum(found.seconds_of(name) for name in names)


def with_meeting(seconds: float) -> Machine:
    assert CARD.calibration
    return replace(CARD, calibration=replace(CARD.calibration, meeting_s=seconds))


def test_a_block_reads_its_tile_while_it_waits_for_others() -> None:
    """So a synchronisation that takes no time leaves the time of the 19 words of each cell of 132 tiles."""
    assert CARD.calibration
    known = CARD.calibration.instructions_per_s
    read_s = 19 * 132 * 64 * 4 * 8 / 32 / min(known["shuffle"], known["shared memory"])
    tiles = replace(TILES, block=(64, 4, 1), tile_planes=8)
    at_once, usual, longer = (
        step_s(predict(CUBE, tiles, with_meeting(seconds), Resources()), GRID_SYNC) for seconds in (0.0, 2e-6, 3e-6)
    )
    assert (at_once, usual, longer) == (close(read_s, rel=1e-3), close(2e-6), close(3e-6))


@pytest.mark.parametrize("planes", [4, 2, 1])
def test_blocks_arrive_at_one_counter_one_after_the_other(planes: int) -> None:
    """Those beyond one per multiprocessor; neighbours have no counter in common."""
    found = [
        step_s(on_chip(replace(TILES, tile_planes=planes, grid_sync=how), CUBE), GRID_SYNC)
        for how in ("all", "neighbours")
    ]
    more = 8 * 64 // planes - 132
    assert found[0] - found[1] == pytest.approx(2.2e-9 * max(0, more), abs=1e-12)


def test_stores_to_the_tile_hide_behind_collisions_of_other_warps() -> None:
    """Unless all have to collide before any stores, which signals neighbours early."""
    apart, beside = (
        step_s(on_chip(replace(TILES, grid_sync=how), CUBE), "instructions", "exchanges")
        for how in ("neighbours", "all")
    )
    assert 1.1 < apart / beside < 1.5


def test_each_population_is_taken_put_back_sent_and_received_by_an_instruction() -> None:
    """So tiles of half the rows have two more for each value that they send more; 16 bits are converted besides."""
    small, halves = replace(TILES, block=(64, 4, 1)), replace(TILES, storage="fp16s")
    slots = {one: said(on_chip(one, CUBE), "instructions") for one in (TILES, small, halves)}
    faces = {one: through_faces(CUBE, one) for one in (TILES, small)}
    assert slots[small] - slots[TILES] == pytest.approx(2 * (faces[small] - faces[TILES]), abs=1)
    assert slots[halves] - slots[TILES] == pytest.approx(2 * (19 + faces[TILES]), abs=1)


@pytest.mark.parametrize(("axes", "words"), [({}, 1), ({"storage": "fp64", "compute": "fp64"}, 2)])
def test_words_of_populations_go_to_shared_memory_and_back(axes: dict[str, str], words: int) -> None:
    one = replace(TILES, block=(64, 4, 1), **axes)  # type: ignore[arg-type]
    moved = 2 * words * (19 + through_faces(CUBE, one))
    assert said(on_chip(one, CUBE), "exchanges") == pytest.approx(moved, abs=0.5)


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({}, 2 * 10 + 4 * 5 + 2 * 5 / 2),
        ({"cells_per_thread": 4}, 2 * 10 + 4 * 5 + 2 * 5 / 4),
        ({"register_planes": 2}, 2 * 10 / 2 + 4 * 5 + 2 * 5 / 2),
        ({"storage": "fp16s"}, 2 * 10 / 2 + 4 * 5 + 2 * 5 / 2),
        ({"storage": "fp64", "compute": "fp64"}, 2 * (2 * 10 + 4 * 5 + 2 * 5 / 2)),
    ],
    ids=str,
)
def test_words_of_moments(axes: dict[str, int | str], words: float) -> None:
    """10 moments go to shared memory and back, of planes that registers do not hold; five sums up and down, each put
    there and taken; five populations to the left, and five to the right, of the cells of a lane.
    """
    assert said(on_chip(replace(PLAIN, **axes), ON_64), "exchanges") == pytest.approx(words, abs=0.5)  # type: ignore[arg-type]


def test_each_sum_that_crosses_a_face_is_sent_received_and_added() -> None:
    """Two planes more for each column: what it does once is of fewer planes, and less of it comes from above."""
    shallow, deep = PLAIN, replace(PLAIN, tile_planes=8)
    more = said(on_chip(shallow, ON_64), "instructions") - said(on_chip(deep, ON_64), "instructions")
    of_faces = (2 + 2) * (through_faces(ON_64, shallow) - through_faces(ON_64, deep))
    assert more == pytest.approx(of_faces + 100 / 4 - 100 / 8, abs=1)


@pytest.mark.parametrize(
    ("config", "case"),
    [
        (TILES, CUBE),
        (replace(TILES, block=(64, 4, 1)), CUBE),
        (replace(TILES, block=(32, 4, 1), tile_planes=2), CUBE),
        (PLAIN, ON_64),
        (replace(PLAIN, block=(32, 4, 1)), ON_64),
        (ON_CHIP, ON_96),
    ],
    ids=str,
)
def test_no_kernel_issues_or_exchanges_more_than_the_card_does(config: CudaConfig, case: Case) -> None:
    """However many tiles share a multiprocessor."""
    assert CARD.calibration
    known = CARD.calibration.instructions_per_s
    found = on_chip(config, case)
    most = max(rate for name, rate in known.items() if name.startswith("multiply-add"))
    exchanged = min(known["shuffle"], known["shared memory"])
    for name, rate in (("instructions", most), ("exchanges", exchanged)):
        assert 1e-6 / found.mlups >= 0.99 * said(found, name) / 32 / rate, name


@pytest.mark.parametrize("rows", [4, 16])
def test_a_step_takes_as_long_as_each_warp_waits(rows: int) -> None:
    """For what comes in along y, once a plane, and twice in a column: other warps hide what they do, not the wait."""
    assert CARD.calibration
    slow_s = 1e-3
    card = replace(CARD, calibration=replace(CARD.calibration, l2_latency_s=slow_s))
    found = predict(ON_64, replace(PLAIN, block=(32, rows, 1)), card, Resources())
    assert 1e-6 / found.mlups * ON_64.sites == pytest.approx((4 + 2) * slow_s, rel=0.02)


def test_a_warp_alone_waits_as_the_equation_says() -> None:
    """Four warps of a block, alone on a multiprocessor: P (0.87 n c + (2 + 1.5 c) 29) / f + (P + 2) l."""
    one = replace(PLAIN, block=(32, 4, 1), tile_planes=8)
    found, calibration, clock_hz = on_chip(one, ON_64), CARD.calibration, CARD.environment.max_sm_clock_hz
    assert calibration
    assert clock_hz
    issued = said(found, "instructions")
    cycles = 8 * (0.87 * issued * 2 + (2 + 1.5 * 2) * 29)
    expected = cycles / clock_hz + (8 + 2) * calibration.l2_latency_s
    assert found.seconds_of("latency") * ON_64.sites == pytest.approx(expected, rel=2e-3)


def test_streams_of_three_words_have_the_rate_of_the_nearest_vectors() -> None:
    assert CARD.calibration
    three = MODELS["cuda"].streams_ceiling(ON_96, ON_CHIP, CARD)
    assert three.bytes_per_s in {rate for name, rate in CARD.calibration.runs_bytes_per_s.items() if name[:2] == "8 "}
