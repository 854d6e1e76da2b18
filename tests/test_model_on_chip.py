"""Moments on chip in the model: what warps wait for, and what they spill."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.catalogue.case import Case, box
from lbmtune.catalogue.config import CudaConfig
from lbmtune.model.machine import Calibration
from lbmtune.model.predict import predict
from lbmtune.model.spilled import estimated
from lbmtune.model.subject import LOCAL, MEETING
from lbmtune.model.toml import read_machine
from lbmtune.records import Prediction, Resources

CARD = read_machine(Path(__file__).resolve().parent.parent / "studies" / "recorded" / "nvidia-h200" / "machine.toml")
ON_64, ON_96 = (box("d3q19", "regularised", (edge, edge, edge)) for edge in (64, 96))
ON_CHIP = CudaConfig(
    launch="resident",
    representation="moments",
    layout="rows",
    block=(32, 8, 1),
    cells_per_thread=3,
    march=9,
    held=3,
)


def on_chip(config: CudaConfig, case: Case = ON_96, without: Collection[str] = (), **resources: int) -> Prediction:
    return predict(case, config, CARD, Resources(**resources), without)


def test_warps_of_a_scheduler_hide_what_each_waits_for() -> None:
    """One warp of each scheduler hides nothing of its waits, four hide most."""
    longer = []
    for rows in (4, 16):
        one = replace(ON_CHIP, block=(32, rows, 1), cells_per_thread=2, held=0)
        found, alone = on_chip(one, ON_64), on_chip(one, ON_64, ("latency",))
        assert {term.name for term in found.terms} == {"meeting", "instructions", "exchanges", "latency"}
        longer.append(alone.mlups / found.mlups)
    assert longer[0] > 1.5 > 1.25 > longer[1] > 1


def test_a_meeting_of_neighbours_is_told_as_what_it_is_taken_for() -> None:
    def told(config: CudaConfig) -> str:
        return next(term.sentence for term in on_chip(config).terms if term.name == MEETING)

    assert told(ON_CHIP).startswith("of all blocks, ")
    assert told(replace(ON_CHIP, meeting="neighbours")).startswith("of neighbours, taken for that of all blocks, ")


def test_blocks_that_a_launch_asks_room_for_and_does_not_have_hide_nothing() -> None:
    one = replace(ON_CHIP, block=(32, 4, 1), cells_per_thread=2, held=0)  # 16 x 8 tiles for 132 multiprocessors
    assert on_chip(replace(one, min_blocks=4), ON_64).mlups == on_chip(one, ON_64).mlups


@pytest.mark.parametrize(("held", "written", "share"), [(3, 9, 0.66), (0, 3, 0.87)])
def test_what_is_spilled_is_of_the_planes_that_are_written_out(held: int, written: int, share: float) -> None:
    """Where registers keep planes those are all planes of the tile, and otherwise those of a pass."""
    found = on_chip(replace(ON_CHIP, held=held), spill_bytes=2700, local_bytes=400)
    (term,) = [term for term in found.terms if term.name == LOCAL]
    assert term.sentence.startswith(f"{share * 2700 / (written * 3):.3g} bytes")


ROOMY = replace(ON_CHIP, block=(32, 12, 1), march=6)


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
    assert longer == pytest.approx(usual if near else 2 * usual, rel=0.02)


def test_spills_are_foreseen_where_launch_bounds_leave_too_few_registers() -> None:
    """128 of a block of 256 threads with two on a multiprocessor; a kernel that holds three planes wants 232."""
    free, short = (estimated(ON_96, replace(ON_CHIP, min_blocks=blocks)) for blocks in (1, 2))
    assert (free.registers, free.spill_bytes, free.local_bytes) == (232, 0, 0)
    assert (short.registers, short.local_bytes, short.spill_bytes) == (128, 4 * (232 - 128), 8 * 4 * (232 - 128))
    assert predict(ON_96, replace(ON_CHIP, min_blocks=2), CARD).mlups < 0.7 * predict(ON_96, ON_CHIP, CARD).mlups


def test_fewer_planes_of_a_tile_and_fewer_cells_of_a_thread_want_fewer_registers() -> None:
    one = replace(ON_CHIP, held=0, block=(32, 16, 1), min_blocks=4, cells_per_thread=2)  # 32 registers
    planes = [estimated(ON_64, replace(one, march=n)).local_bytes for n in (1, 2, 3, 4)]
    assert planes == [4 * (wanted - 32) for wanted in (76, 96, 116, 116)]
    assert estimated(ON_64, replace(one, march=1, cells_per_thread=1)).local_bytes == 4 * (38 - 32)
