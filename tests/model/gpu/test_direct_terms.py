"""The terms of the model: sectors are exact integers, times have their signs, and no prediction beats its ceiling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.layouts import LAYOUTS, AoS, AoSoA, SoA
from lbmtune.catalogue.limits import registers_allowed
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.model.gpu.families import estimated, inputs_of
from lbmtune.model.gpu.inputs import Inputs, resident_threads, shared_of, taken_of
from lbmtune.model.gpu.sparse import index_prefetch
from lbmtune.model.gpu.sparse import partial as partial_of_list
from lbmtune.model.gpu.sparse import partial_sectors as listed_sectors
from lbmtune.model.gpu.terms.concurrency import in_flight, waves
from lbmtune.model.gpu.terms.copies import bandwidth, in_place, partial
from lbmtune.model.gpu.terms.fixed_costs import first_and_last, rings
from lbmtune.model.gpu.terms.sectors import partial_sectors, stored_apart
from lbmtune.model.gpu.terms.spills import local_bytes_of_moves, local_memory, spilled_bytes, spilled_passes
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import TERMS, predict
from lbmtune.records import Entry, Resources
from tests.support.kernels.configs import varied
from tests.support.paths import RECORDED
from tests.support.seconds import close

CARD = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
CASE = box("d3q19", "bgk", (256, 256, 256))
LAYOUT = {"soa": SoA(), "aosoa": AoSoA(width=32), "aos": AoS()}
LEAN = Resources(registers=64)
MOVES_ALONG_X = 10
"""Directions of D3Q19 that do, each of which leaves a block by one end."""


def subject(config: CudaConfig, resources: Resources = LEAN) -> Inputs:
    assert CARD.calibration
    return inputs_of(CASE, config, CARD, resources)


@pytest.mark.parametrize("cells", [32, 64, 128, 256])
@pytest.mark.parametrize(("storage", "compute"), [("fp32", "fp32"), ("fp64", "fp64"), ("fp16s", "fp32")])
def test_rows_that_are_displaced_share_a_sector_at_both_ends(cells: int, storage: str, compute: str) -> None:
    """Of each population that moves along x, whatever the precision and the block: 2 sectors of a warp's 32 updates."""
    config = cuda.Direct(block=(cells, 1, 1), storage=storage, compute=compute)
    ends = float(Fraction(2 * MOVES_ALONG_X, 32))
    assert partial_sectors(CASE, config) == (ends, 0)
    assert partial_sectors(CASE, replace(config, scheme="push")) == (0, ends)
    assert partial_sectors(CASE, replace(config, scheme="two-step")) == (ends, 0)
    for scheme in ("aa", "esoteric-pull", "esoteric-twist", "swap"):
        assert partial_sectors(CASE, replace(config, scheme=scheme)) == (ends / 2, ends / 2)


def test_blocks_of_short_rows_share_more() -> None:
    wide, narrow = (cuda.Direct(scheme="push", block=block) for block in ((64, 1, 1), (16, 4, 1)))
    assert partial_sectors(CASE, narrow).stores == 2 * partial_sectors(CASE, wide).stores


def test_vectors_load_their_own_cells_in_any_case() -> None:
    """The value beyond the end is alone in its sector, and the vector that holds it is loaded as a whole."""
    found = partial_sectors(CASE, cuda.Direct(block=(32, 1, 1), cells_per_thread=4))
    assert found == (MOVES_ALONG_X / 128, 0)


def test_blocks_of_half_a_warp_are_as_many_as_those_of_a_whole_one() -> None:
    """A multiprocessor has room for 32, whose lanes without a thread load nothing, and issue with the others."""
    half, whole = (subject(cuda.Direct(block=(n, 1, 1)), Resources(registers=32)) for n in (16, 32))
    assert half.blocks == whole.blocks == 32
    assert subject(cuda.Direct(block=(48, 1, 1)), Resources(registers=32)).blocks == 32
    assert subject(cuda.Direct(block=(33, 3, 1)), Resources(registers=32)).blocks == 16
    widest = (subject(cuda.Direct(block=(n, 1, 1)), Resources(registers=255)) for n in (16, 32))
    assert in_flight(next(widest)) < in_flight(next(widest))
    # twice the blocks, and as many turns more, of which one is not hidden: an update has twice the slots
    turns = [256**3 / n / (32 * CARD.multiprocessors) for n in (16, 32)]
    found = [first_and_last(one).seconds * of for one, of in zip((half, whole), turns, strict=True)]
    assert found[0] == close(2 * found[1])


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) & {"soa", "aosoa", "aos"}))
@pytest.mark.parametrize("scheme", sorted(set(SCHEMES) - {"ghost-cell", "swap-ordered"}))
def test_sectors_are_whole_numbers_of_a_block(scheme: str, layout: str) -> None:
    config = cuda.Direct(scheme=scheme, block=(64, 2, 1), layout=LAYOUT[layout])
    for count in partial_sectors(CASE, config):
        of_a_period = count * 128 * config.propagation.period
        assert of_a_period == pytest.approx(round(of_a_period), abs=1e-9)
        assert count >= 0


def test_a_list_without_solid_cells_is_rows() -> None:
    """All cells fluid and in rows: what the ends of a box add is little."""
    listed = cuda.Sparse(block=(64, 1, 1), scheme="push")
    direct = partial_sectors(CASE, cuda.Direct(block=(64, 1, 1), scheme="push"))
    assert listed_sectors(CASE, listed).stores == pytest.approx(direct.stores, rel=0.2)


def test_solid_cells_break_rows() -> None:
    porous = replace(box("d3q19", "trt", (64, 64, 64)), geometry="sandstone:fraction=0.6")
    listed = cuda.Sparse(block=(64, 1, 1), scheme="push")
    assert listed_sectors(porous, listed).stores > 3 * listed_sectors(CASE, listed).stores


def test_shared_memory_is_taken_in_steps_and_the_system_keeps_some() -> None:
    assert [taken_of(asked) for asked in (0, 1, 45312)] == [0, 1025, 46336]
    whole = 228 << 10
    assert [shared_of(kib << 10, whole) >> 10 for kib in (0, 1, 46, 64, 65, 170, 227, 228)] == [
        *(0, 8, 64, 64, 100, 196, 228, 228),
    ]
    assert shared_of(70 << 10, 96 << 10) == 96 << 10, "as much as there is"


def test_threads_share_registers_warps_and_shared_memory() -> None:
    assert resident_threads(128, Resources(registers=32), 1 << 18) == 2048
    assert resident_threads(128, Resources(registers=128), 1 << 18) == 512
    assert resident_threads(128, Resources(registers=32, shared_bytes=100 << 10), 1 << 18) == 256
    assert resident_threads(128, Resources(registers=32, shared_bytes=124 << 10), 228 << 10) == 128
    assert resident_threads(128, Resources(registers=32, shared_bytes=114 << 10), 228 << 10) == 128, "115 KB each"
    assert resident_threads(128, Resources(registers=32, shared_bytes=113 << 10), 228 << 10) == 256
    assert resident_threads(32, Resources(registers=32), 1 << 18) == 1024
    assert [registers_allowed(n) for n in (64, 512, 1024, 2048)] == [255, 128, 64, 32]


def test_bandwidth_follows_width_and_runs() -> None:
    assert CARD.calibration
    rates = CARD.calibration.runs_bytes_per_s
    assert bandwidth(subject(cuda.Direct())) == rates["4"]
    assert bandwidth(subject(cuda.Direct(cells_per_thread=4))) == rates["16"]
    assert bandwidth(subject(cuda.Direct(layout=AoSoA(width=64)))) == rates["4 of 256"]
    assert bandwidth(subject(cuda.Direct(block=(16, 4, 1)))) == min(rates["4"], rates["4 of 64"])
    assert bandwidth(subject(cuda.Direct(layout=AoSoA(width=64))), by_runs=False) == rates["4"]


def test_structures_are_copied_by_their_elements_and_by_what_is_displaced() -> None:
    """AA moves nothing in one step of two; D3Q27 has longer structures; columns have copies of their own.

    Here nobody has measured planes, nor copies by few threads.
    """
    assert CARD.calibration
    rates = {name: rate for name, rate in CARD.calibration.displaced_bytes_per_s.items() if " x " in name}
    bare = replace(CARD.calibration, planes_bytes_per_s={}, structures_bytes_per_s={})
    one = cuda.Direct(layout=AoS())

    def copied(config: CudaConfig, case: Case = CASE) -> float:
        return bandwidth(replace(subject(config), case=case, machine=replace(CARD, calibration=bare), calibration=bare))

    assert copied(one) == rates["4 of 4 x 19 loads by 64"]
    assert copied(varied(one, family="column", scheme="push", z_cells=8)) == rates["4 of 4 x 19 stores by 64 walking"]
    twice = 1 / rates["4 of 4 x 19 none by 64"] + 1 / rates["4 of 4 x 19 in place by 64"]
    assert copied(replace(one, scheme="aa")) == pytest.approx(2 / twice)
    assert copied(one, box("d3q27", "bgk", (64, 64, 64))) == rates["4 of 4 x 27 loads by 64"]


def test_all_populations_of_a_scheme_in_place_go_back_to_where_they_came_from() -> None:
    """16 of D3Q19 leave the row besides: AA takes them from there in one step of two. Pull has another array."""
    half = cuda.Direct(block=(64, 1, 1), storage="fp16s")
    assert in_place(subject(half)).seconds == 0
    found = in_place(subject(replace(half, scheme="aa")))
    assert found.sentence == "19 accesses in place per update, 8 of them in other rows, 64 bytes at once"
    assert found.seconds > 0
    swapped = in_place(subject(replace(half, scheme="swap")))
    assert swapped.sentence.startswith("37 accesses in place per update, 8 of them in other rows")
    runs = varied(half, scheme="aa", layout="aosoa", width=32)
    vectors = in_place(subject(replace(runs, cells_per_thread=4)))
    assert vectors.sentence == "19 accesses in place per update, 8 of them in other rows, 64 bytes at once"
    assert vectors.seconds == in_place(subject(replace(runs, block=(256, 1, 1)))).seconds


@pytest.mark.parametrize(("storage", "wide"), [("fp16s", 16), ("fp32", 16), ("fp32", 64)])
def test_vectors_in_runs_go_back_as_the_values_of_as_long_a_row(storage: str, wide: int) -> None:
    """A copy as wide as their row has bytes: half a warp of vectors is no narrow row."""
    row = cuda.Direct(layout=AoSoA(), scheme="aa", storage=storage, block=(4 * wide, 64 // wide, 1))
    vectors = replace(row, block=(wide, 64 // wide, 1), cells_per_thread=4)
    narrow = replace(row, block=(wide, 64 // wide, 1))
    found = in_place(subject(vectors))
    assert found.seconds == in_place(subject(row)).seconds
    assert found.seconds < in_place(subject(narrow)).seconds


@pytest.mark.parametrize("wide", [16, 32, 64])
def test_a_copy_in_place_takes_what_was_measured(wide: int) -> None:
    """76 bytes of an update, read and written, by blocks as wide; against a copy elsewhere by whole warps."""
    assert CARD.calibration
    measured = CARD.calibration.displaced_bytes_per_s
    machine = replace(CARD.calibration, displaced_bytes_per_s={**measured, f"2 rows by {wide}": 9e12})
    config = cuda.Direct(scheme="aa", storage="fp16s", block=(wide, 64 // wide, 1))
    found = in_place(inputs_of(CASE, config, replace(CARD, calibration=machine), LEAN))
    assert found.seconds == close(76 * (1 / measured[f"2 stay by {wide}"] - 1 / measured[f"2 none by {max(wide, 32)}"]))


def test_rows_of_one_sector_are_slow_and_longer_ones_are_not() -> None:
    assert CARD.calibration
    measured = CARD.calibration.displaced_bytes_per_s
    half, single = (cuda.Direct(block=(16, 4, 1), storage=storage) for storage in ("fp16s", "fp32"))
    wide = bandwidth(subject(replace(half, block=(32, 2, 1))))
    assert bandwidth(subject(half)) == pytest.approx(wide * measured["2 none by 16"] / measured["2 none by 32"])
    assert bandwidth(subject(single)) == bandwidth(subject(replace(single, block=(32, 2, 1))))


def test_words_are_asked_for_ahead_once_each() -> None:
    listed = cuda.Sparse(block=(64, 1, 1))
    assert index_prefetch(subject(listed)).seconds == 0
    found = index_prefetch(subject(replace(listed, prefetch_index=65536)))
    assert found.sentence == "18 words of the list are prefetched"
    assert found.seconds >= 0


def test_rings_take_the_instructions_of_all_cells_that_are_looked_at() -> None:
    """Blocks of 32x2x4 have 34x4x6 = 816 cells with their ring: 7 rounds of 128, 23 or 33 slots for each of 18."""
    ghost = cuda.Direct(block=(32, 2, 4), scheme="ghost-cell")
    for layout, each in (("soa", 33), ("aos", 23), ("aosoa", 23), ("bundle", 23)):
        found = rings(subject(varied(ghost, layout=layout, width=32, group=2)))
        assert found.sentence.startswith(f"{7 * 128 / 256 * each * 18:.0f} issue slots")
    assert rings(subject(cuda.Direct())).seconds == 0


def test_the_entry_that_stays_in_its_cells_spills_less() -> None:
    """By 28 registers of addresses; with a list by three for each of 18 words and each cell, here more than all."""
    spilled = Resources(registers=64, spill_bytes=400, local_bytes=200)
    assert spilled_bytes(subject(cuda.Direct(), spilled)) == 400
    assert spilled_bytes(subject(cuda.Direct(scheme="aa"), spilled)) == pytest.approx(200 * (2 - 28 * 4 / 200))
    listed = cuda.Sparse(cells_per_thread=2, scheme="aa")
    assert spilled_bytes(subject(listed, spilled)) == 100


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (cuda.Direct(cells_per_thread=2, register_limit="64-registers", scheme="swap"), 60 + 2 * 18 - 64),
        (cuda.Direct(register_limit="8-blocks", scheme="swap"), 60 + 18 - 32),
        (cuda.Direct(register_limit="8-blocks", scheme="swap", storage="fp16s"), 60 + 18 - 32),
        (
            cuda.Direct(
                cells_per_thread=2, compute="fp64", register_limit="96-registers", scheme="swap", storage="fp64"
            ),
            60 + 72 - 96,
        ),
        (cuda.Direct(cells_per_thread=2, register_limit="128-registers", scheme="swap"), 0),
        (cuda.Column(cells_per_thread=4, register_limit="64-registers", scheme="two-step"), 32 + 4 * 19 - 64),
        (cuda.Direct(cells_per_thread=4, register_limit="64-registers", scheme="two-step"), 0),
        (cuda.Direct(cells_per_thread=4, register_limit="32-registers", scheme="aa"), 0),
    ],
)
def test_the_pass_that_moves_populations_spills_besides_the_one_that_collides(config: CudaConfig, words: int) -> None:
    """A register for each element on its way, of 18 populations that are exchanged or all 19, and addresses."""
    spilled = Resources(registers=64, spill_bytes=4000, local_bytes=1000)
    assert local_bytes_of_moves(subject(config, spilled)) == 4 * words
    assert local_bytes_of_moves(subject(config, replace(spilled, local_bytes=8))) == min(8, 4 * words)
    assert local_bytes_of_moves(subject(config)) == 0


def test_what_both_passes_spill_takes_what_each_of_them_takes() -> None:
    """Words of the one that moves go once each way; nothing is more than the largest of all entries that is known."""
    config = cuda.Direct(cells_per_thread=2, register_limit="64-registers", scheme="swap")
    most = Resources(registers=64, spill_bytes=1000, local_bytes=256)
    own = Resources(registers=64, spill_bytes=2 * 128, local_bytes=128)
    assert local_bytes_of_moves(subject(config, most)) == 128
    collides, moves = (local_memory(subject(replace(config, scheme="esoteric-pull"), one)) for one in (most, own))
    assert local_memory(subject(config, most)).seconds == close(collides.seconds + moves.seconds)
    assert local_memory(subject(config, most)).sentence.startswith(f"{1000 / 2 + 256 / 2:.3g} bytes")
    little = replace(most, spill_bytes=100, local_bytes=128)
    alone = local_memory(subject(replace(config, scheme="esoteric-pull"), little))
    assert local_memory(subject(config, little)).seconds == close(2 * alone.seconds)


def test_entries_that_are_told_apart_spill_what_they_spill() -> None:
    """Parities share the steps, passes do not; what another entry spills, which no step launches, does not count."""
    entries = {
        "step_0": Entry(registers=64, spill_bytes=300, local_bytes=120),
        "step_1": Entry(registers=64, spill_bytes=80, local_bytes=40),
        "move_0": Entry(registers=64, spill_bytes=60, local_bytes=32),
        "refresh_read_0": Entry(registers=64, spill_bytes=900, local_bytes=400),
    }
    pull, aa, swap = (cuda.Direct(cells_per_thread=2, scheme=scheme) for scheme in ("pull", "aa", "swap"))
    told = Resources(entries=entries)
    assert spilled_passes(subject(pull, told)) == [(150, 120)]
    assert spilled_passes(subject(aa, told)) == [(75, 120), (20, 40)]
    assert spilled_passes(subject(swap, told)) == [(150, 120), (30, 32)]
    alone = {
        name: local_memory(subject(pull, Resources(entries={"step_0": entry}))).seconds
        for name, entry in entries.items()
    }
    both = local_memory(subject(aa, told))
    assert both.seconds == close((alone["step_0"] + alone["step_1"]) / 2)
    assert both.sentence.startswith("95 bytes")
    assert local_memory(subject(swap, told)).seconds == close(alone["step_0"] + alone["move_0"])
    without = Resources(entries={name: entry for name, entry in entries.items() if name != "step_1"})
    assert spilled_passes(subject(aa, without)) == spilled_passes(subject(aa, replace(without, entries={})))


def test_threads_share_a_multiprocessor_by_the_registers_of_what_a_step_launches() -> None:
    """Not by those of kernels that refresh ghost cells, which are launched apart."""
    entries = {"step_0": Entry(registers=32), "move_0": Entry(registers=40), "refresh_read_0": Entry(registers=64)}
    told = Resources(entries=entries)
    assert subject(cuda.Direct(), told).threads == 2048
    assert subject(cuda.Direct(scheme="swap"), told).threads == subject(cuda.Direct(), Resources(registers=40)).threads
    assert subject(cuda.Direct(scheme="aa"), told).threads == subject(cuda.Direct(), Resources(registers=64)).threads


def test_one_entry_with_other_pointers_serves_every_step() -> None:
    told = Resources(entries={"step_0": Entry(registers=64, spill_bytes=300, local_bytes=120)})
    one = subject(cuda.Direct(pointer_swap=1, scheme="esoteric-pull"), told)
    assert sum(spilled.moved for spilled in spilled_passes(one)) == 300


@pytest.mark.parametrize("wide", [16, 32, 64])
@pytest.mark.parametrize(("scheme", "side"), [("pull", "loads"), ("push", "stores")])
def test_rows_that_are_displaced_take_what_such_a_copy_takes_longer(scheme: str, side: str, wide: int) -> None:
    """Of 19 streams a copy displaces 13, and D3Q19 10, by blocks as wide: it has that share of what the copy has."""
    assert CARD.calibration
    rates = {f"4 {side} by {wide}": 2e12, f"4 none by {wide}": 3e12}
    known = replace(CARD.calibration, displaced_bytes_per_s={**CARD.calibration.displaced_bytes_per_s, **rates})
    found = partial(replace(subject(cuda.Direct(scheme=scheme, block=(wide, 64 // wide, 1))), calibration=known))
    assert found.seconds == close(MOVES_ALONG_X / 13 * (152 / 2e12 - 152 / 3e12))


def test_words_and_sectors_of_a_list_take_what_the_copy_by_a_list_takes_longer() -> None:
    """Each of its accesses reads and writes a word of four bytes and reads one of the list, all of them displaced."""
    assert CARD.calibration
    rates, rows = CARD.calibration.listed_bytes_per_s, replace(CASE, domain=(96, 12, 12))
    of_access = {how: 12 * (1 / rates[f"4 loads {how}"] - 1 / rates["4 loads"]) for how in ("ahead", "displaced")}
    listed = cuda.Sparse(block=(64, 1, 1), prefetch_index=65536)
    slow = {**rates, "4 loads ahead": rates["4 loads"] / 2}
    slower = replace(subject(listed), calibration=replace(CARD.calibration, listed_bytes_per_s=slow))
    assert index_prefetch(slower).seconds == close(18 * 12 / rates["4 loads"])
    assert index_prefetch(subject(listed)).seconds == close(18 * max(0.0, of_access["ahead"]))
    found = partial_of_list(replace(subject(listed), case=rows))
    assert found.seconds > 0
    assert found.seconds == close(MOVES_ALONG_X * of_access["displaced"])


@pytest.mark.parametrize(
    ("plain", "wanted"),
    [
        (cuda.Direct(), 32 + 4 * 19),
        (cuda.Direct(scheme="aa"), 60 + 4 * 19),
        (cuda.Direct(addresses="shared"), 24 + 4 * 19),
        (cuda.Direct(addresses="shared", scheme="aa"), 38 + 4 * 19),
        (cuda.Column(prefetch_cells=1, z_cells=4), 32 + 2 * 4 * 19),
        (cuda.Sparse(), 32 + 4 * 19),
        (cuda.Direct(storage="fp64", compute="fp64"), 32 + 2 * 4 * 19),
    ],
    ids=lambda value: value.brief if isinstance(value, CudaConfig) else str(value),
)
def test_registers_that_nobody_has_compiled_are_values_and_addresses(
    plain: cuda.Direct | cuda.Column | cuda.Sparse, wanted: int
) -> None:
    """Of a sixth too few no word is taken for spilled; each of the others moves three times."""
    config = replace(plain, cells_per_thread=4, register_limit="64-registers")
    words = round(wanted / 1.2) - 64
    assert words > 0
    found = estimated(CASE, config)
    assert (found.registers, found.local_bytes, found.spill_bytes) == (64, 4 * words, 3 * 4 * words)
    roomy = estimated(CASE, replace(config, register_limit="255-registers"))
    assert (roomy.registers, roomy.spill_bytes) == (wanted, 0)


def test_addresses_in_shared_memory_are_loaded_for_each_access() -> None:
    """Of 19 values two accesses each, by 1 and 4 cells a thread; the same threads are in flight."""
    for cells in (1, 4):
        plain, shared = (
            first_and_last(subject(cuda.Direct(cells_per_thread=cells, addresses=where), Resources(registers=64)))
            for where in ("computed", "shared")
        )
        slots = [float(one.sentence.partition(" issue slots")[0]) for one in (plain, shared)]
        assert slots[1] - slots[0] == pytest.approx(2 * 19 / cells, abs=1)
        assert shared.seconds > plain.seconds


@pytest.mark.parametrize(("left_out", "share", "depth"), [("threads in flight", in_flight, 256), ("waves", waves, 1)])
def test_all_that_goes_through_memory_takes_longer_where_a_part_of_the_bandwidth_is_in_use(
    left_out: str, share: Callable[[Inputs], float], depth: int
) -> None:
    """As its bytes over the bandwidth that is left: spilled words and partial sectors are among them."""
    config, few = cuda.Direct(), Resources(registers=200, spill_bytes=400, local_bytes=160)
    one = replace(subject(config, few), case=replace(CASE, domain=(256, 256, depth)))
    others = {"launch", "instructions", "rings", "threads in flight", "waves"}
    whole, part = (predict(one.case, config, CARD, few, without).mlups for without in (others, others - {left_out}))
    assert share(one) < 0.99
    assert part / whole == pytest.approx(share(one))


def test_columns_of_vectors_wait_in_between() -> None:
    """15 and 4 loads at once, or 3, 12 and 4 where they are converted: 241 and 169 of 361 on average."""
    wide = cuda.Direct(block=(64, 1, 1), cells_per_thread=2)
    few = Resources(registers=128)
    for storage, share in (("fp32", 241 / 361), ("fp16s", 169 / 361)):
        config = replace(wide, storage=storage)
        column, apart = (
            in_flight(subject(varied(config, family="column", z_cells=8), few)),
            in_flight(subject(config, few)),
        )
        assert column == pytest.approx(in_flight(subject(config, few), share))
        assert column < apart


def test_streams_of_a_list_begin_at_whole_lines() -> None:
    """However many sites there are, what a warp stores to them fills its sectors, but for the last ones."""
    odd = replace(CASE, domain=(33, 21, 23))
    assert listed_sectors(odd, cuda.Sparse(block=(64, 1, 1))).stores < 0.02


def test_a_sector_of_a_list_counts_once_however_many_warps_share_it() -> None:
    """Rows of 96 sites are three warps, which share three sectors of each of ten directions, in two pieces."""
    rows = replace(CASE, domain=(96, 12, 12))
    found = listed_sectors(rows, cuda.Sparse(block=(64, 1, 1)))
    assert found == (pytest.approx(2 * 3 * 10 / 96), 0)
    hilbert = cuda.Sparse(block=(32, 1, 1), order="hilbert")
    cube = replace(CASE, domain=(32, 32, 32))
    elements = 18 * 32**3 / 8
    assert listed_sectors(cube, hilbert).loads * 32**3 <= 2 * elements


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ({"scheme": "push"}, 4 * 18 / 128),
        ({"scheme": "aa"}, 4 * 18 / 128 / 2),
        ({"scheme": "push", "cells_per_thread": 2}, 4 * 18 / 64),
        ({"scheme": "push", "block": (16, 4, 1)}, 4 * 18 / 64),
        ({"scheme": "push", "storage": "fp64", "compute": "fp64"}, 0),  # a lane has whole sectors
        ({"scheme": "push", "cells_per_thread": 1}, 0),
        ({"scheme": "push", "flags": "compiled"}, 0),
        ({"scheme": "pull"}, 0),
    ],
)
def test_the_ends_of_a_warp_store_apart_by_flags(axes: dict[str, Any], expected: float) -> None:
    """Of each of 18 directions two sectors, both in two parts, for all cells of a warp."""
    config = cuda.Direct(**{"cells_per_thread": 4, "flags": "memory", "block": (64, 1, 1)} | axes)
    assert stored_apart(cavity("d3q19", "bgk", (256, 256, 256), 1.6), config) == pytest.approx(expected)


def test_what_the_ends_of_a_warp_store_apart_takes_as_long_as_sectors_of_words() -> None:
    walls = cavity("d3q19", "bgk", (256, 256, 256), 1.6)
    read, known = (cuda.Direct(cells_per_thread=4, scheme="push", flags=one) for one in ("memory", "compiled"))
    rates, by = CARD.calibration.displaced_bytes_per_s, f"by {read.block[0]}"
    longer_s = 2 * 4 * 32 * 19 / 13 * (1 / rates[f"4 stores {by}"] - 1 / rates[f"4 none {by}"]) / 2
    taken = [partial(inputs_of(walls, one, CARD, Resources())).seconds for one in (read, known)]
    assert taken[0] - taken[1] == close(4 * 18 / 128 * longer_s)


def test_vectors_share_sectors_as_vectors_do() -> None:
    """Of 13 of 19 streams an access of a warp has two partial sectors; rows have been counted apart."""
    config = cuda.Direct(block=(64, 1, 1), cells_per_thread=4, scheme="aa")
    rates = CARD.calibration.shuffled_bytes_per_s
    rows = max(rates["4 x 4 rows by 64"], rates["4 x 4 in place by 64"])
    each_s = 2 * 16 * 32 * 19 / 13 * (1 / rates["4 x 4 in place by 64"] - 1 / rows) / 2
    count = max(partial_sectors(CASE, config))
    assert count == pytest.approx(2 * 10 / 128 / 2)
    assert partial(subject(config)).seconds == close(count * each_s)


def test_spilled_bytes_take_what_a_copy_that_spills_takes_longer() -> None:
    """At a point that was measured, and half way from there to the next one."""
    curve = sorted(
        (int(name.split()[2]) * int(name.split()[4]), name, 152 / rate)
        for name, rate in CARD.calibration.spilled_bytes_per_s.items()
        if name.startswith("4 by ") and not name.endswith("walking")
    )
    (_, _, none), (_, _, _), (here, name, at_s), (there, next_name, next_s) = curve[:4]
    byte_s = [(s - none) / (2 * int(of.split()[4])) for of, s in ((name, at_s), (next_name, next_s))]
    threads = subject(cuda.Direct(block=(64, 1, 1)), Resources(registers=64)).threads
    for kept, expected in ((here, byte_s[0]), ((here + there) / 2, sum(byte_s) / 2)):
        spilled = Resources(registers=64, spill_bytes=100, local_bytes=kept / threads)  # type: ignore[arg-type]
        found = local_memory(subject(cuda.Direct(block=(64, 1, 1)), spilled))
        assert found.seconds == close(100 * expected)


def test_local_memory_costs_more_where_it_leaves_the_caches() -> None:
    config = cuda.Direct(block=(64, 1, 1))
    times = [
        local_memory(subject(config, Resources(registers=64, spill_bytes=400, local_bytes=local))).seconds
        for local in (100, 400, 2000)
    ]
    assert 0 < times[0] <= times[1] < times[2]
    assert local_memory(subject(config)).seconds == 0


@settings(max_examples=60, deadline=None)
@given(
    scheme=st.sampled_from(["pull", "push", "aa", "esoteric-pull", "two-step"]),
    cells=st.sampled_from([1, 2, 4]),
    block=st.sampled_from([(32, 1, 1), (64, 2, 1), (16, 4, 1), (256, 1, 1)]),
    layout=st.sampled_from(["soa", "aosoa", "aos"]),
    registers=st.integers(32, 255),
    spill=st.sampled_from([0, 40, 400]),
)
def test_terms_keep_their_signs_and_ceilings(scheme, cells, block, layout, registers, spill):
    cells = 1 if layout == "aos" else cells
    config = cuda.Direct(scheme=scheme, cells_per_thread=cells, block=block, layout=LAYOUT[layout])
    resources = Resources(registers=registers, spill_bytes=spill, local_bytes=spill // 2)
    one = subject(config, resources)
    assert 0 < in_flight(one) <= 1
    assert 0 < waves(one) <= 1
    assert partial(one).seconds >= 0
    found = predict(CASE, config, CARD, resources)
    assert found.mlups <= bandwidth(one) / found.bytes_per_update / 1e6 * (1 + 1e-12)
    for term in set(TERMS) - {"runs"}:
        assert predict(CASE, config, CARD, resources, {term}).mlups >= found.mlups * (1 - 1e-12)


@given(faster=st.floats(1.01, 3.0))
def test_predictions_follow_the_bandwidth(faster: float) -> None:
    assert CARD.calibration
    runs = {name: faster * rate for name, rate in CARD.calibration.runs_bytes_per_s.items()}
    quick = replace(CARD, calibration=replace(CARD.calibration, runs_bytes_per_s=runs))
    config = cuda.Direct(block=(64, 1, 1), cells_per_thread=4)
    assert predict(CASE, config, quick, LEAN).mlups > predict(CASE, config, CARD, LEAN).mlups


def test_a_march_is_bound_by_memory_and_instructions_together() -> None:
    config = cuda.TemporalBlocking(block=(32, 12, 1), plane_fetch="none", representation="moments", rows=2)
    case = box("d3q19", "regularised", (256, 256, 256))
    whole = predict(case, config, CARD).mlups
    without = predict(case, config, CARD, None, {"instructions"}).mlups
    assert without / 2 < whole < without
    spilling = Resources(registers=168, spill_bytes=600, local_bytes=200, shared_bytes=40 << 10)
    assert predict(case, config, CARD, spilling).mlups < whole


def test_a_card_that_is_not_calibrated_is_predicted_by_its_copies() -> None:
    plain = replace(CARD, calibration=None)
    found = predict(CASE, cuda.Direct(), plain, LEAN)
    assert found.mlups == pytest.approx(CARD.stream_bytes_per_s["4"] / 152 / 1e6)
