"""Holes that solid cells leave in sectors: exact counts on rows with known ones, and what a copy with holes takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path

import msgspec
import numpy as np
import pytest

from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import porous
from lbmtune.model.gpu.families import inputs_of, memory_bytes
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms.concurrency import in_flight
from lbmtune.model.gpu.terms.copies import bandwidth
from lbmtune.model.gpu.terms.solid_cells import Touched, lanes, solid_cells, touched
from lbmtune.model.gpu.terms.spills import local_memory, spilled_bytes
from lbmtune.model.machine.curves import retained_in_l2
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.records import Prediction, Resources
from lbmtune.records.terms import SOLID
from tests.support.kernels.configs import varied
from tests.support.paths import RECORDED
from tests.support.seconds import close

CARD = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
WIDE, ROWS = 64, 16
RATES = {"apart 0": 4e12, "apart 32": 2e12, "apart 64": 3e12, "in place 0": 4e12, "in place 64": 3e12}
DIRECT = cuda.Direct(block=(32, 1, 1), compute="fp64", flags="memory", storage="fp64")
SOLIDS = slice(8, 16)
Sample = Callable[[slice], Case]


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """A box of 64 x 4 x 4 whose rows all have the same solid cells."""

    def made(solid: slice) -> Case:
        voxels = np.zeros((4, 4, WIDE), np.uint8)
        voxels[:, :, solid] = 1
        path = tmp_path / f"{solid.start}-{solid.stop}.npy"
        np.save(path, voxels)
        return porous("d3q19", "bgk", (WIDE, 4, 4), 1.2, f"file:path={path}", (1e-6, 0.0, 0.0))

    return made


def per_update(*of_a_row: int, fluid: int) -> Touched:
    """Nothing is stored in pieces."""
    return Touched(*(pytest.approx(count / fluid) for count in (*of_a_row, 0, 0)))


@pytest.mark.parametrize("config", [DIRECT, replace(DIRECT, scheme="aa"), cuda.Sparse()], ids=["pull", "aa", "sparse"])
def test_a_prediction_of_solid_cells_can_be_recorded(config: CudaConfig, sample: Sample) -> None:
    """NumPy's numbers cannot: a study would end at its first trial."""
    for case in (sample(SOLIDS), porous("d3q19", "bgk", (64, 64, 64), 1.2, "blocks:fraction=0.3")):
        prediction = predict(case, config, CARD)
        assert msgspec.json.decode(msgspec.json.encode(prediction), type=Prediction) == prediction


def test_without_solid_cells_sectors_are_those_of_the_bytes(sample: Sample) -> None:
    case = sample(slice(0, 0))
    for scheme in ("pull", "push", "aa", "esoteric-pull", "esoteric-twist"):
        assert touched(case, replace(DIRECT, scheme=scheme)) == (4.75, 4.75, 0, 0, 9.5, 0, 0)


def test_a_solid_cell_leaves_a_hole_in_what_is_stored(sample: Sample) -> None:
    """Of all 19 streams of a row one sector of 16; loads that step over the cell reach into its sector anyway."""
    case, every = sample(slice(5, 6)), 19 * WIDE // 4
    assert touched(case, DIRECT) == per_update(every, every, 19, 19, 2 * every, fluid=WIDE - 1)
    in_place = touched(case, replace(DIRECT, scheme="aa"))
    assert in_place.partial > 0
    assert in_place.completed == 0


def test_sectors_of_solid_cells_alone_are_not_moved(sample: Sample) -> None:
    """Two of a row, which are 64 bytes; what goes along x reads one cell into them, cut or not."""
    stays, moves, sectors = 9, 10, WIDE // 4
    loaded, stored = stays * (sectors - 2) + moves * (sectors - 1), 19 * (sectors - 2)
    paired = stays * (sectors - 2) + moves * sectors + stored
    assert touched(sample(SOLIDS), DIRECT) == per_update(loaded, stored, 0, 0, paired, fluid=WIDE - 8)


def test_vectors_are_stored_with_what_is_solid_in_them(sample: Sample) -> None:
    """Lanes exchange values, so a warp with a fluid cell stays whole; without one it does nothing."""
    case, every = sample(slice(5, 6)), 19 * WIDE // 4
    vectors = replace(DIRECT, cells_per_thread=2)
    assert touched(case, vectors) == per_update(every, every, 0, 0, 2 * every, fluid=WIDE - 1)
    narrow = replace(vectors, block=(4, 4, 1))  # warps of 8 cells by 4 rows, of which one is solid
    assert touched(sample(SOLIDS), narrow).stored == pytest.approx(19 * (WIDE // 4 - 2) / (WIDE - 8))


def test_what_walls_return_is_stored_apart_from_what_others_send(sample: Sample) -> None:
    """In each row one population of each of four directions along x and y stays, beside what comes from another row.

    Of those along x and z, from another plane; along x alone both come from the same row.
    """
    case = sample(slice(5, 6))
    sent = touched(case, replace(DIRECT, scheme="push"))
    assert (sent.rows, sent.planes) == pytest.approx((4 / 63, 4 / 63))
    assert touched(case, DIRECT).rows == 0
    in_place = touched(case, replace(DIRECT, scheme="aa"))
    assert in_place.rows == in_place.planes == 0, "those sectors have been loaded"


def test_lanes_that_take_part(sample: Sample) -> None:
    """Alone those of fluid cells, in octets; of vectors all of a warp that has one."""
    assert lanes(sample(slice(5, 6)), DIRECT) == pytest.approx((8 / 63, 1 / 63, 1))
    assert lanes(sample(SOLIDS), DIRECT) == pytest.approx((7 / 56, 0, 1))
    assert lanes(sample(slice(5, 6)), replace(DIRECT, cells_per_thread=2)) == pytest.approx((4 / 63, 0, 1))


def test_blocks_without_a_fluid_cell_wait_once(sample: Sample) -> None:
    """Eight cells of a row of 64 are solid: a block of its own where blocks are as wide, and part of one where not."""
    narrow = replace(DIRECT, block=(8, 1, 1))
    assert lanes(sample(SOLIDS), narrow).blocks == pytest.approx(7 / 8)
    assert lanes(sample(SOLIDS), replace(narrow, block=(4, 1, 1), cells_per_thread=2)).blocks == pytest.approx(7 / 8)
    assert lanes(sample(SOLIDS), replace(narrow, block=(16, 1, 1))).blocks == 1

    def waiting(block: tuple[int, int, int]) -> float:
        one = subject(sample(SOLIDS), replace(DIRECT, block=block), {}, resources=Resources(registers=255))
        calibration = replace(one.calibration, threads_bytes_per_s={"8 by 0": 1e-6, "8 by 4096": 4096.0})
        return in_flight(replace(one, calibration=calibration)) / prod(block) / one.blocks

    assert waiting((8, 1, 1)) / waiting((16, 1, 1)) == pytest.approx(2 / (1 + 7 / 8))


def test_fluid_cells_are_found_wherever_they_are(tmp_path: Path) -> None:
    """One row of a box of 16 x 16 of them, which none of the parts that are looked at has."""
    voxels = np.ones((16, 16, WIDE), np.uint8)
    voxels[5, 5] = 0
    np.save(tmp_path / "row.npy", voxels)
    case = porous("d3q19", "bgk", (WIDE, 16, 16), 1.2, f"file:path={tmp_path / 'row.npy'}", (1e-6, 0.0, 0.0))
    assert touched(case, DIRECT).stored == 4.75
    assert predict(case, DIRECT, CARD).mlups > 0


def test_implicit_walls_cut_no_link(sample: Sample) -> None:
    """Fluid cells leave what they send in solid ones, so that the sectors beside them are stored as well."""
    half_way, implicit = (
        touched(sample(SOLIDS), replace(DIRECT, scheme="aa", boundary=boundary)) for boundary in ("branch", "implicit")
    )
    assert implicit.stored > half_way.stored


def subject(
    case: Case,
    config: CudaConfig,
    rates: dict[str, float],
    pieces: dict[str, float] | None = None,
    resources: Resources | None = None,
) -> Inputs:
    assert CARD.calibration
    calibration = replace(CARD.calibration, holes_bytes_per_s=rates, pieces_bytes_per_s=pieces or {})
    used = resources or Resources(registers=64)
    return inputs_of(case, config, replace(CARD, calibration=calibration), used)


def test_holes_take_what_a_copy_with_as_many_takes_longer(sample: Sample) -> None:
    """One sector of 16 has one: an eighth of the way to half of them."""
    one = subject(sample(slice(5, 6)), DIRECT, RATES)
    stored = 19 * WIDE / 4 / (WIDE - 1)
    longer_s = 64 * (1 / 2e12 - 1 / 4e12) / 8
    more_s = (2 * stored * 32 - 2 * 19 * 8) / bandwidth(one)
    assert solid_cells(one).seconds == close(stored * longer_s + more_s)
    filled = subject(one.case, DIRECT, {})  # nobody has measured it: what completes them is read
    assert solid_cells(filled).seconds == close(stored / 16 * 32 / bandwidth(one) + more_s)


def test_pieces_take_what_a_copy_that_stores_as_many_takes_longer(sample: Sample) -> None:
    """Between two rows as the nearest that was measured; a plane later nine tenths of the way further."""
    push, case = replace(DIRECT, scheme="push"), sample(slice(5, 6))
    plane = 4 * WIDE * 2 * 19 * 8 * 63 / 64 + 4 * WIDE * 4 * 63 / 64  # the flags of cells go by as well
    near, far = plane / 4, plane * 13 / 12
    pieces = {f"{int(near)} 0": 4e12, f"{int(near)} 64": 2e12, f"{int(far)} 0": 4e12, f"{int(far)} 64": 1e12}
    alone, both = subject(case, push, RATES), subject(case, push, RATES, pieces)
    found = touched(case, push)
    row_s, plane_s = 64 * (1 / 2e12 - 1 / 4e12), 64 * (1 / 2e12 - 1 / 4e12 + 0.9 * (1 / 1e12 - 1 / 2e12))
    holes_s = 64 * (1 / 2e12 - 1 / 4e12) * (found.rows + found.planes) * 2
    longer_s = solid_cells(both).seconds - solid_cells(alone).seconds
    assert longer_s + holes_s == close(found.rows * row_s + found.planes * plane_s, rel=1e-3)


def test_spilled_words_of_warps_with_solid_cells(sample: Sample) -> None:
    """A warp with 31 cells stores seven sectors whole, and one in part, which L2 completes where it has lost it."""
    spilled = Resources(registers=64, spill_bytes=512, local_bytes=256)
    one = subject(sample(slice(5, 6)), DIRECT, RATES, resources=spilled)
    whole = subject(sample(slice(0, 0)), DIRECT, RATES, resources=spilled)
    texts = 0.85
    assert spilled_bytes(one) == 512 * texts
    stored = 8 / 63 * 512 * texts / 8  # of 32 bytes, as many as are loaded again
    lost = 1 - retained_in_l2(CARD, one.threads * 256 * CARD.multiprocessors)
    completed_s = stored * lost * 64 * (1 / 2e12 - 1 / 4e12) * 2 / 8
    assert 0 < lost < 1
    expected = local_memory(whole).seconds * 64 / 63 + completed_s
    assert local_memory(one).seconds == close(expected)


def test_entries_that_ask_for_no_links_spill_less(sample: Sample) -> None:
    case, spilled = sample(slice(5, 6)), Resources(registers=64, spill_bytes=100, local_bytes=50)
    for scheme, share in (("pull", 1), ("push", 1), ("esoteric-pull", 0.69), ("esoteric-twist", 0.69), ("aa", 0.69)):
        for boundary, texts in (("predicated", 1.0), ("branch", 0.85)):
            config = replace(DIRECT, scheme=scheme, boundary=boundary)
            assert spilled_bytes(subject(case, config, RATES, resources=spilled)) == pytest.approx(100 * share * texts)


def test_what_the_launch_has_loaded_takes_what_was_measured_in_place(sample: Sample) -> None:
    one = subject(sample(slice(5, 6)), replace(DIRECT, scheme="aa"), RATES)
    found = touched(one.case, one.config)
    longer_s = 64 * (1 / 3e12 - 1 / 4e12) * found.partial / found.stored
    more_s = (found.paired * 32 - 2 * 19 * 8) / bandwidth(one)
    assert solid_cells(one).seconds == close(found.stored * longer_s + more_s)


def test_lists_and_boxes_have_no_holes(sample: Sample) -> None:
    case = sample(SOLIDS)
    listed = varied(DIRECT, family="sparse")
    assert solid_cells(subject(case, listed, RATES)).seconds == 0
    assert solid_cells(subject(replace(case, geometry=""), DIRECT, RATES)).seconds == 0


def test_solid_cells_turn_the_order_of_direct_and_listed_kernels() -> None:
    """Single cells at random, a tenth of them: measured 7,624 and 10,317 MLUPS."""
    case = porous("d3q19", "bgk", (128, 64, 64), 1.2, "blocks:fraction=0.1", (1e-6, 0.0, 0.0))
    direct = replace(DIRECT, block=(128, 1, 1))
    found, listed = (
        predict(case, config, CARD, Resources(registers=94)).mlups
        for config in (direct, varied(direct, family="sparse"))
    )
    assert found < listed
    assert SOLID in {term.name for term in predict(case, direct, CARD).terms}


def test_memory_moves_whole_sectors_and_what_completes_them() -> None:
    """Counters of such kernels, in bytes per update."""

    def moved(geometry: str, scheme: str = "pull") -> float:
        case = porous("d3q19", "bgk", (256, 64, 64), 1.2, geometry, (1e-6, 0.0, 0.0))
        return memory_bytes(case, replace(DIRECT, block=(128, 1, 1), scheme=scheme), CARD)

    assert moved("blocks:fraction=0.1") == pytest.approx(405, rel=0.03)
    for scheme, measured in (("pull", 334), ("aa", 324)):
        assert moved("packing:fraction=0.1", scheme) == pytest.approx(measured, rel=0.03)
