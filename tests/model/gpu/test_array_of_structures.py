"""Arrays of structures: what of them the cache puts together, by planes, walks, words that threads keep, and rings."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.layouts import AoS
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, porous
from lbmtune.codegen.probes import DISPLACED, probe
from lbmtune.model.gpu.families import inputs_of
from lbmtune.model.gpu.inputs import Inputs, resident_threads
from lbmtune.model.gpu.terms import array_of_structures as model_structures
from lbmtune.model.gpu.terms.array_of_structures import has_parts, longer_s, ring_s
from lbmtune.model.gpu.terms.copies import bandwidth
from lbmtune.model.gpu.terms.fixed_costs import rings
from lbmtune.model.machine.benchmark_names import STRUCTURES, Structures
from lbmtune.model.machine.curves import local_byte_s, nearest
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Entry, Resources
from tests.support.kernels.cuda_samples import config
from tests.support.paths import RECORDED
from tests.support.seconds import close

CARD = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
HERE: Case = box("d3q19", "bgk", (256, 256, 256))
DOUBLES: dict[str, Any] = {"layout": "aos", "storage": "fp64", "compute": "fp64", "block": (64, 1, 1)}
REGISTERS, THREADS = 128, 512
"""Of a thread, and how many of a multiprocessor that leaves."""
KEPT_BYTES, NONE_S = 64 << 10, 1e-12
LONGER_S = {"stay": 0.0, "loads": 1e-13, "stores": 2e-13, "in place": 8e-13}
"""Of a byte, where threads keep so many; beside what it takes where they keep none."""


def measured_as(rates: dict[str, float]) -> Machine:
    assert CARD.calibration is not None
    return replace(CARD, calibration=replace(CARD.calibration, structures_bytes_per_s=rates))


def slower(direction: int = 1) -> Machine:
    """One whose copies take longer for each byte that threads keep, and what words take."""

    def rate(one: Structures) -> float:
        kept = one.threads * one.local_bytes
        words_s = local_byte_s(CARD, one.element_bytes, kept, walking=True) * one.local_bytes
        longer = direction * LONGER_S[one.side] * kept / KEPT_BYTES
        return 1 / (NONE_S + longer + words_s / (one.elements * one.element_bytes))

    return measured_as({one.name: rate(one) for one in STRUCTURES})


def subject(machine: Machine, local_bytes: int | tuple[int, int], **axes: Any) -> Inputs:
    """local_bytes: of a thread, by parity where there are two."""
    assert machine.calibration is not None
    each = local_bytes if isinstance(local_bytes, tuple) else (local_bytes, local_bytes)
    names = ("step_0", "step_1") if axes["scheme"] == "aa" else ("step_0",)
    entries = {
        name: Entry(registers=REGISTERS, local_bytes=local, spill_bytes=2 * local)
        for name, local in zip(names, each, strict=False)
    }
    found = inputs_of(HERE, config(**{**DOUBLES, **axes}), machine, Resources(entries=entries))
    assert found.threads == THREADS
    return found


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("elements", [19, 27])
@pytest.mark.parametrize("side", LONGER_S)
def test_what_words_take_anywhere_is_no_part_of_it(side: str, elements: int, width: int) -> None:
    """Between two points that were measured, and beyond the last one."""
    found = [longer_s(slower(), width, elements, side, n * KEPT_BYTES) for n in (0, 0.5, 1, 2, 7.5, 15, 99)]
    most = 7.5 * LONGER_S[side]
    assert found == pytest.approx([n * LONGER_S[side] for n in (0, 0.5, 1, 2)] + [most, most, most], abs=1e-18)


@pytest.mark.parametrize("side", LONGER_S)
def test_no_copy_is_faster_for_its_words(side: str) -> None:
    assert longer_s(slower(-1), 8, 19, side, KEPT_BYTES) == 0


def test_what_lies_at_home_is_a_copy_that_stays() -> None:
    rates = {f"8 x 19 by 512 of {local} stay": rate for local, rate in ((0, 1e12), (128, 1e11))}
    assert longer_s(measured_as(rates), 8, 19, "none", KEPT_BYTES) > 0


@pytest.mark.parametrize(("scheme", "side"), [("pull", "loads"), ("push", "stores")])
def test_a_kernel_takes_as_much_longer_as_the_copy(scheme: str, side: str) -> None:
    before, now = (bandwidth(subject(machine, 64, scheme=scheme)) for machine in (measured_as({}), slower()))
    assert 1 / now - 1 / before == close(LONGER_S[side] * THREADS * 64 / KEPT_BYTES)


@pytest.mark.parametrize("local_bytes", [(64, 0), (0, 64), (64, 64)])
def test_each_parity_takes_longer_by_what_its_own_entry_keeps(local_bytes: tuple[int, int]) -> None:
    """One step of AA stays in its cells, of the other both sides lie in others."""
    before, now = (bandwidth(subject(machine, local_bytes, scheme="aa")) for machine in (measured_as({}), slower()))
    scheme = config(**DOUBLES, scheme="aa").propagation
    away = [any(any(a.write.offset) for a in scheme.passes(HERE.stencil, n)[0].accesses) for n in (0, 1)]
    assert sorted(away) == [False, True]
    kept = THREADS * local_bytes[away.index(True)]
    assert 1 / now - 1 / before == close(LONGER_S["in place"] * kept / KEPT_BYTES / 2)


@pytest.mark.parametrize(
    "axes",
    [{"storage": "fp16s", "compute": "fp32"}, {"layout": "soa"}, {"storage": "fp32", "compute": "fp32"}],
    ids=str,
)
def test_what_was_not_measured_is_as_before(axes: dict[str, Any]) -> None:
    """Streams that lie apart have no structures; of others those of doubles alone are measured here."""
    found = slower().calibration
    assert found is not None
    doubles = {name: rate for name, rate in found.structures_bytes_per_s.items() if name.startswith("8 ")}
    before, now = (bandwidth(subject(measured_as(one), 64, scheme="aa", **axes)) for one in ({}, doubles))
    assert now == before


PLANE = 256 * 256


def by_planes(longer: dict[int, float], local_bytes: int = 0, **axes: Any) -> float:
    """Seconds per byte of a kernel that takes a cell per thread, beyond a copy of which nothing is displaced.

    longer: seconds of a copy that is displaced by so many structures, beyond one that is not.
    """
    assert CARD.calibration is not None
    none_s = 1 / CARD.calibration.displaced_bytes_per_s["8 of 8 x 19 none by 64"]
    sides = ("loads", "stores", "in place")
    planes = {f"{n} 8 x 19 {side}": 1 / (none_s + s) for n, s in longer.items() for side in sides}
    found = replace(CARD.calibration, planes_bytes_per_s=planes, structures_bytes_per_s={})
    return 1 / bandwidth(subject(replace(CARD, calibration=found), local_bytes, **axes)) - none_s


@pytest.mark.parametrize("scheme", ["pull", "push"])
def test_as_many_elements_are_late_as_lie_in_other_planes(scheme: str) -> None:
    """10 of D3Q19 do, where 13 of the copy did; between two distances, and beyond the last one."""
    longer = {PLANE // 2: 1e-13, 2 * PLANE: 4e-13}
    assert by_planes(longer, scheme=scheme) == close(2e-13 * 10 / 13)
    assert by_planes({2 * PLANE: 4e-13}, scheme=scheme) == close(2e-13 * 10 / 13), "nothing lies in no plane"
    assert by_planes({PLANE // 2: 1e-13}, scheme=scheme) == close(1e-13 * 10 / 13)


@pytest.mark.parametrize(("scheme", "times"), [("push", 2), ("esoteric-twist", 1)])
def test_words_take_as_much_room_as_structures(scheme: str, times: int) -> None:
    """All threads of the device keep them; a structure is in the cache twice where it goes to another array."""
    longer = {4 * PLANE: 4e-13}
    words = CARD.multiprocessors * THREADS * 64 / (times * 19 * 8)
    none, some = by_planes(longer, scheme=scheme), by_planes(longer, 64, scheme=scheme)
    assert some / none == pytest.approx(1 + words / PLANE)


def walked(threads: int, few: float, as_many: float) -> float:
    """Bytes per second of a kernel whose threads walk. few, as_many: of copies by 512 threads, and by 1024."""
    assert CARD.calibration is not None
    displaced = {**CARD.calibration.displaced_bytes_per_s, "8 of 8 x 19 stores by 64 walking": as_many}
    of_few = {"8 x 19 by 512 of 0 stores": few, "8 x 19 by 512 of 128 stores": few / 2}
    found = replace(CARD.calibration, displaced_bytes_per_s=displaced, structures_bytes_per_s=of_few)
    machine = replace(CARD, calibration=found)
    walking = config(**DOUBLES, scheme="push", z_cells=8)
    entry = Entry(registers={256: 255, 512: 128, 768: 80, 1024: 64, 2048: 32}[threads])
    return bandwidth(
        inputs_of(HERE, walking, replace(machine, calibration=found), Resources(entries={"step_0": entry}))
    )


def test_few_threads_that_walk_touch_less() -> None:
    """As many as were measured, fewer, as many as have room, more, and half way between."""
    assert walked(512, 2e12, 1e12) == walked(256, 2e12, 1e12) == pytest.approx(2e12)
    assert walked(1024, 2e12, 1e12) == walked(2048, 2e12, 1e12) == pytest.approx(1e12)
    assert walked(768, 2e12, 1e12) == pytest.approx(1 / 0.75e-12)


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("elements", [19, 27])
def test_as_many_threads_copy_as_the_compiled_probe_has_room_for(width: int, elements: int) -> None:
    program = probe(streams=elements, access_bytes=width, run_bytes=width, threads=64)
    registers = compile_cuda(program).resources.entries[DISPLACED].registers
    assert (
        resident_threads(64, Resources(registers=registers), 228 << 10) == (model_structures._COPYING[width, elements])
    )


def test_ghost_cells_are_counted_by_what_is_read_of_them() -> None:
    """Of a row of 256 four rows beside it have three elements that are read and four one; ends are cut off."""
    found = dict(model_structures._ghosts("d3q19", "ghost-cell", (256, 1, 1)))
    # rows beside it: 254 of 256 cells with three; their first and last two, of which some are not read from
    assert found[3] * 256 == 4 * 254
    assert sum(count * share * 256 for count, share in found.items()) == 256 * 16 + 2
    cube = dict(model_structures._ghosts("d3q19", "ghost-cell", (4, 4, 4)))
    # the middle of six faces is read by five cells; edges of the cube of 6^3 by one
    assert cube[5] * 64 == 6 * 4
    assert sum(cube.values()) * 64 == 6 * 16 + 12 * 4


@pytest.mark.parametrize("storage", ["fp16s", "fp32", "fp64"])
def test_a_ring_takes_what_copies_of_parts_take(storage: str) -> None:
    """And its instructions beyond that alone."""
    assert CARD.calibration is not None
    ghosts = config(scheme="ghost-cell", layout="aos", storage=storage, compute="fp64" if storage == "fp64" else "fp32")
    width, rates = ghosts.stored.bytes, CARD.calibration.parts_bytes_per_s
    found = inputs_of(HERE, ghosts, CARD, Resources(registers=REGISTERS))
    cells = model_structures._ghosts("d3q19", "ghost-cell", ghosts.block)
    expected = sum(share * 2 * count * width / rates[f"{width} x 19 {count}"] for count, share in cells)
    assert ring_s(found) == close(expected)
    own_s = 2 * 19 * width / CARD.calibration.displaced_bytes_per_s[f"{width} of {width} x 19 none by 64"]
    moved = traffic(HERE, ghosts).populations
    assert moved / bandwidth(found) == close(own_s + expected)
    unmeasured = replace(CARD.calibration, parts_bytes_per_s={})
    alone = rings(replace(found, calibration=unmeasured, machine=replace(CARD, calibration=unmeasured))).seconds
    assert rings(found).seconds == pytest.approx(max(0.0, alone - expected))
    assert alone > 0


def test_other_layouts_have_no_parts() -> None:
    assert CARD.calibration is not None
    for layout, scheme in (("soa", "ghost-cell"), ("aos", "pull"), ("aosoa", "ghost-cell")):
        one = config(scheme=scheme, layout=layout, **({"width": 32} if layout == "aosoa" else {}))
        assert not has_parts(inputs_of(HERE, one, CARD, Resources(registers=REGISTERS)))


def test_each_entry_keeps_its_words_by_as_many_threads_as_it_has_room_for() -> None:
    """One of half the registers runs by twice the threads, whatever the other one of the step has."""
    scheme = config(**DOUBLES, scheme="aa").propagation
    away = next(n for n in (0, 1) if any(any(a.write.offset) for a in scheme.passes(HERE.stencil, n)[0].accesses))

    def longer_of(registers: int) -> float:
        entries = {
            f"step_{away}": Entry(registers=registers, local_bytes=64),
            f"step_{1 - away}": Entry(registers=128, local_bytes=0),
        }
        seconds = [
            1 / bandwidth(replace(subject(one, 64, scheme="aa"), resources=Resources(entries=entries)))
            for one in (slower(), measured_as({}))
        ]
        return seconds[0] - seconds[1]

    assert longer_of(64) == close(2 * longer_of(128))


def planes_of(apart: int, seconds: float) -> Machine:
    """A machine on which copies of D3Q19 and D3Q27 that are displaced so far take so much longer."""
    assert CARD.calibration is not None
    rates = CARD.calibration.displaced_bytes_per_s
    found = {
        f"{apart} 8 x {q} {side}": 1 / (1 / rates[f"8 of 8 x {q} none by 64"] + seconds)
        for q, side in product((19, 27), ("loads", "stores", "in place"))
    }
    return replace(CARD, calibration=replace(CARD.calibration, planes_bytes_per_s=found, structures_bytes_per_s={}))


def longer_by_planes(case: Case, machine: Machine, local_bytes: int = 0) -> float:
    assert machine.calibration is not None
    elements = case.stencil.q
    none_s = 1 / machine.calibration.displaced_bytes_per_s[f"8 of 8 x {elements} none by 64"]
    return 1 / bandwidth(replace(subject(machine, local_bytes, scheme="push"), case=case, machine=machine)) - none_s


def test_a_plane_is_as_large_as_the_domain_has_it_along_two_axes() -> None:
    """Whatever lies along the third one."""
    machine = planes_of(1 << 20, 1e-12)
    large, small, flat = (
        longer_by_planes(box("d3q19", "bgk", domain), machine)
        for domain in ((256, 128, 64), (64, 128, 256), (128, 64, 512))
    )
    assert large == close(4 * small)
    assert flat == close(small)


def test_of_d3q27_as_many_elements_lie_in_other_planes_as_in_the_copy() -> None:
    assert longer_by_planes(box("d3q27", "bgk", (256, 256, 256)), planes_of(PLANE, 1e-12)) == close(1e-12)


def test_fewer_multiprocessors_keep_fewer_words() -> None:
    machine = planes_of(1 << 20, 1e-12)
    none, whole, half = (
        longer_by_planes(HERE, replace(machine, multiprocessors=count), local)
        for count, local in ((132, 0), (132, 256), (66, 256))
    )
    assert whole > none
    assert half - none == close((whole - none) / 2)


def test_words_take_the_room_of_fewer_structures_that_are_longer() -> None:
    """Of 27 elements for 19, all of which lie in other planes as often as those of the copy: 10 of 13 do in D3Q19."""
    machine, other = planes_of(1 << 20, 1e-12), box("d3q27", "bgk", (256, 256, 256))
    short, long = (longer_by_planes(case, machine, 256) - longer_by_planes(case, machine, 0) for case in (HERE, other))
    assert long == close(short * 13 / 10 * 19 / 27, rel=1e-3)


def test_cells_of_a_list_lie_in_no_planes() -> None:
    """What their copies take longer is in those by a list."""
    here = porous("d3q19", "bgk", (64, 64, 64), 1.2, "blocks:fraction=0.3", (1e-6, 0.0, 0.0))
    slow, fast = (
        bandwidth(replace(subject(planes_of(PLANE, s), 0, scheme="push", family="sparse"), case=here))
        for s in (1e-9, 0.0)
    )
    assert slow == fast


def test_tiles_with_faces_are_copied_where_they_lie() -> None:
    """Of a tile of moments nothing is displaced, in structures either."""
    assert CARD.calibration is not None
    tiles = cuda.FaceExchange(layout=AoS())
    case = box("d3q19", "regularised", (256, 256, 256))
    found = inputs_of(case, tiles, CARD, Resources(registers=64))
    assert bandwidth(found) == min(
        rate for name, rate in CARD.calibration.displaced_bytes_per_s.items() if name == "4 of 4 x 9 none by 64"
    )


def test_a_ring_of_d3q27_takes_what_its_own_parts_take() -> None:
    assert CARD.calibration is not None
    large = {name: rate / 2 for name, rate in CARD.calibration.parts_bytes_per_s.items() if " x 27 " in name}
    found = replace(CARD.calibration, parts_bytes_per_s=CARD.calibration.parts_bytes_per_s | large)
    ghosts, here = config(**{**DOUBLES, "block": (8, 8, 8)}, scheme="ghost-cell"), replace(HERE, lattice="d3q27")
    before, after = (
        ring_s(inputs_of(here, ghosts, replace(CARD, calibration=one), Resources()))
        for one in (CARD.calibration, found)
    )
    assert after == close(2 * before)


def test_runs_of_whole_sectors_have_no_parts() -> None:
    assert CARD.calibration is not None
    for width, parts in ((8, False), (4, True)):
        one = config(scheme="ghost-cell", layout="aosoa", width=width)
        assert has_parts(inputs_of(HERE, one, CARD, Resources(registers=REGISTERS))) == parts


def test_the_nearest_of_two_is_so_by_ratio() -> None:
    assert nearest((4, 16), 9) == 16
    assert nearest((4, 16), 7) == 4
