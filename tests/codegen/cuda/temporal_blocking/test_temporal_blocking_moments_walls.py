"""Kernels of moments with walls, moving walls and solid cells, in every step of a launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from lbmtune.catalogue.boundaries.bounce_back_routes import returning
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.footprint import footprint_bytes, traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Faces
from lbmtune.catalogue.problem.flows import cavity, channel, half_channel, porous
from lbmtune.codegen.render import render
from lbmtune.measure.verification.verify import verify
from tests.codegen.cuda.temporal_blocking.test_temporal_blocking_moments import LIMITS, config
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import case_of
from tests.support.kernels import compiled
from tests.support.kernels.configs import refusal
from tests.support.kernels.cuda_samples import needs_nvrtc
from tests.support.kernels.full_size import verify_full_size

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
SIZE = (64, 64, 64)
ROCK = "blocks:fraction=0.3"


def lid(lattice: str = "d3q19", size: tuple[int, int, int] = SIZE) -> Case:
    return cavity(lattice, "regularised", size, 1.3)


def duct(lattice: str = "d3q19") -> Case:
    """Walls on four sides, and a force along the fifth."""
    faces: Faces = ("periodic", "periodic", "wall", "wall", "wall", "wall")
    return replace(channel(lattice, "regularised", SIZE, 1.3, force=1e-3), flow="duct", faces=faces)


def stone(lattice: str = "d3q19", size: tuple[int, int, int] = SIZE) -> Case:
    return porous(lattice, "regularised", size, 1.3, ROCK, force=(1e-3, -5e-4, 2e-4))


def stone_alone() -> Case:
    """One solid block, with planes ahead of it that have none."""
    return porous("d3q19", "regularised", SIZE, 1.3, "sphere", force=(1e-3, -5e-4, 2e-4))


def mixed(flow: str, lattice: str = "d3q19") -> Case:
    """Resting and moving walls on five faces with a force ("grinder"), and solid cells besides ("solids")."""
    return case_of(flow, lattice, "regularised")


# what is known before


def test_links_that_something_returns_by() -> None:
    velocities = lid().stencil.velocities
    assert returning(replace(lid(), faces=("periodic",) * 6)) == ()
    assert {velocities[i][1] for i in returning(channel("d3q19", "regularised", SIZE, 1.3))} == {1, -1}
    assert returning(lid()) == returning(stone()) == tuple(range(1, 19))


def test_bytes_of_words_and_of_what_returns() -> None:
    """A word is read once per launch; 3 sums of what returns wait in shared memory.

    So do one that is owed, in each stage, words of three planes, where the row lies, there and in memory, and whether
    it is stored; the word that faces across x alone would give; and the column.
    """
    one = config(steps=2, flags="memory")
    assert traffic(lid(), one).flags == 2
    assert traffic(lid(), config(steps=2)).flags == 0
    assert footprint_bytes(lid(), one) - footprint_bytes(lid(), config(steps=2)) == 4 * 64**3
    without = replace(lid(), faces=("periodic",) * 6)
    assert one.shared_bytes(lid()) - config(steps=2).shared_bytes(without) == (3 + 2 + 3 + 3 + 1 + 1) * 4 * 32 * 6


@pytest.mark.parametrize(
    ("case", "knobs", "reason"),
    [
        (
            half_channel("d3q19", "regularised", SIZE, 1.3),
            {},
            "slip face y- is not supported for representation=moments",
        ),
        (stone(), {}, "flags=compiled is not supported for geometry"),
        (replace(lid(), faces=("periodic",) * 6), {"flags": "memory"}, "neither walls nor solid cells"),
        (stone(), {"flags": "memory", "boundary": "predicated"}, "boundary is not a knob of family temporal-blocking"),
    ],
)
def test_illegal(case: Case, knobs: dict[str, object], reason: str) -> None:
    assert reason in refusal(case, LIMITS, config(), **knobs)


def test_a_kernel_without_walls_knows_nothing_of_them() -> None:
    assert "int Word;" not in render(replace(lid(), faces=("periodic",) * 6), config()).source


# results

_VECTORS = {"steps": 2, "rows": 2, "cells_per_thread": 2, "plane_fetch": "registers", "pack": 2}
_ASYNC = {"steps": 3, "plane_fetch": "cp_async", "pack": 2, "block": (32, 8, 1)}
SAMPLES: dict[str, tuple[Case, dict[str, object]]] = {
    "channel": (channel("d3q19", "regularised", SIZE, 1.3, force=1e-3), {}),
    "cavity, two steps, vectors": (lid(), _VECTORS),
    "cavity, three steps, flags": (lid(), {**_ASYNC, "flags": "memory"}),
    "cavity of 27": (lid("d3q27"), {"steps": 2, "plane_fetch": "registers", "pack": 4}),
    "duct of 27, flags": (duct("d3q27"), {**_VECTORS, "flags": "memory"}),
    "duct, three steps": (duct(), _ASYNC),
    "rock, halves": (
        stone(),
        {"steps": 2, "rows": 3, "storage": "fp16s", "pack": 8, "plane_fetch": "cp_async", "flags": "memory"},
    ),
    "duct, bulk copies": (duct(), {**_ASYNC, "plane_fetch": "bulk"}),
    "rock, bulk copies": (
        stone(),
        {"steps": 2, "rows": 2, "plane_fetch": "bulk", "warp_sync": "neighbours", "flags": "memory"},
    ),
    "rock of 27": (stone("d3q27"), {**_ASYNC, "flags": "memory"}),
    "grinder, four steps": (mixed("grinder"), {"steps": 4, "rows": 2, "plane_fetch": "registers", "pack": 4}),
    # roundings of a cell in a corner of three faces that move
    "solids, bfloat": (
        mixed("solids"),
        {
            "layout": "soa",
            "storage": "bf16",
            "flags": "memory",
            "block": (32, 2, 1),
            "cells_per_thread": 2,
            "rows": 3,
            "chunk_planes": 3,
        },
    ),
    "solids of 27, double": (
        mixed("solids", "d3q27"),
        {"layout": "soa", "storage": "fp64", "compute": "fp64", "cells_per_thread": 2, "flags": "memory"},
    ),
}


def _some(names: Iterable[str], every_day: set[str]) -> list[Any]:
    return [name if name in every_day else pytest.param(name, marks=pytest.mark.slow) for name in names]


_EVERY_DAY = {
    "channel",
    "cavity, three steps, flags",
    "duct of 27, flags",
    "rock, halves",
    "rock, bulk copies",
    "solids, bfloat",
}


@needs_compiler
@pytest.mark.parametrize("name", _some(SAMPLES, _EVERY_DAY))
def test_kernels_on_the_host(name: str) -> None:
    case, axes = SAMPLES[name]
    assert broken(case, config(**axes), LIMITS) is None
    program = render(case, config(**axes))
    found = verify(program, compile_on_host(program), HostDevice(), 2)
    assert found.passed, found


@needs_compiler
def test_threads_with_more_cells_than_a_word_has_bits() -> None:
    """8 rows of 8 cells: a bit of each says whether anything returns to it."""
    case, kernel = lid(), config(rows=8, cells_per_thread=8, storage="fp16s", block=(32, 2, 1))
    assert broken(case, kernel, LIMITS) is None
    program = render(case, kernel)
    found = verify(program, compile_on_host(program), HostDevice(), 1)
    assert found.passed, found
    assert "long long returns" not in render(case, replace(kernel, rows=4)).source


@needs_compiler
@pytest.mark.parametrize(("flags", "size"), [("compiled", (2, 3, 1)), ("memory", (31, 9, 2))])
def test_domains_smaller_than_the_halo(flags: str, size: tuple[int, int, int]) -> None:
    """Three steps of a launch see both faces of a narrow box."""
    program = render(lid(size=size), config(**{**_ASYNC, "flags": flags, "chunk_planes": 1}))
    found = verify_full_size(program, compile_on_host(program), HostDevice())
    assert found.passed, found


def _text(old: str, new: str) -> Callable[[str], str]:
    def changed(source: str) -> str:
        assert old in source, old
        return source.replace(old, new, 1)

    return changed


@pytest.mark.parametrize(("barrier", "met"), [("block", "meet_block();"), ("neighbours", "meet_neighbours(")])
def test_warps_meet_where_a_stage_is_left_out(barrier: str, met: str) -> None:
    """Before a warp sends again, others have read what it sent: fibers of one thread would not show it."""
    source = render(lid(), config(steps=3, warp_sync=barrier)).source
    left_out = source.split("if (plane < 2 * t) {")
    assert len(left_out) == 2
    assert met in left_out[1].split("break;")[0]


FAULTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "a link returns what another sends": ("compiled", _text("where_cut(cut, 7, left", "where_cut(cut, 7, right")),
    "a link is forgotten": ("compiled", _text("CUT_X_LOW = 0x", "CUT_X_LOW = 0x1 ^ 0x")),
    "a lid at rest": ("compiled", _text("const Word moving = (", "const Word moving = 0u & (")),
    "a lid that pulls": ("compiled", _text("const Real f13 = left[4] + (", "const Real f13 = left[4] - (")),
    "walls at rest push": ("compiled", _text("where_cut(moving, 13, ", "where_cut(cut, 13, ")),
    "what is outside sends": ("compiled", _text("beyond(first_y + r, ny, WALLED_Y) ||", "")),
    "nothing comes straight back from a side": ("compiled", _text("here ? straight :", "here ? Real(0) :")),
    "what a side returns goes up twice": ("compiled", _text("* (all - odd_z)", "* all")),
    "what a side returns is not turned": ("compiled", _text("current[5] -= back[0 *", "current[5] += back[0 *")),
    "sides owe nothing": ("compiled", _text("[TWICE_UP] += later[(0) * 32]", "[TWICE_UP] += 0")),
    "what memory says of sides is not looked at": ("memory", _text("some |= place.of[v] ^", "some |= 0u &")),
    "something comes in over a side": ("compiled", _text("last ? Real(0) :", "last ? Real(1) :")),
    "an open top": ("compiled", _text("i == n - 1 ? high : 0u", "0u")),
    "sums of another row": ("compiled", _text("returned + r *", "returned + (ROWS - 1 - r) *")),
    "a face returns the wrong way": ("compiled", _text("const Real f7 = left[0];", "const Real f7 = right[0];")),
    "what is owed is forgotten": ("compiled", _text("if (owes) m[r][v][TWICE_UP] += later;", "")),
    "a row at a wall is taken for another": ("compiled", _text("row == CUT_Y_LOW ? LOW", "row == CUT_Y_LOW ? HIGH")),
    "a stage begins too late": ("compiled", _text("plane < 2 * t", "plane < 2 * t + 1")),
    "faces one plane late": ("compiled", _text("begin - STEPS + plane - t;", "begin - STEPS + plane - t - 1;")),
    "solid cells send": ("memory", _text("m[k] = word & 1u ? Real(0) : m[k]", "(void)k")),
    "words stay behind": ("memory", _text("place = links.place - t;", "place = links.place;")),
    "words outside of the box": ("memory", _text("marks.of[v] = 1u;", "marks.of[v] = 0u;")),
    "words of another plane": ("memory", _text("fetch_links(links, words, next_z,", "fetch_links(links, words, 0,")),
    "links of one side alone": (
        "memory",
        _text("back_right[0] = where_cut(cut, ", "back_right[0] = where_cut(0 & cut, "),
    ),
    "nothing comes from the cells beside": (
        "memory",
        _text("right[v][STRAIGHT] += from_left[v]", "(void)from_left[v]"),
    ),
    "what is left of c_y is forgotten": ("compiled", _text("+= back[0];", "+= 0 * back[0];")),
    "a cut plane goes unseen": ("memory", _text("links.busy >> t & 3u", "links.busy >> t & 2u")),
}


@needs_compiler
@pytest.mark.parametrize(
    "fault",
    _some(FAULTS, {"a lid at rest", "what is owed is forgotten", "solid cells send", "words stay behind"}),
)
def test_verification_finds(fault: str) -> None:
    flags, change = FAULTS[fault]
    # where every plane has cut links, none of them can go unseen
    case = (stone_alone() if "unseen" in fault else mixed("solids")) if flags == "memory" else lid()
    program = render(case, config(steps=2, rows=2, plane_fetch="registers", flags=flags))
    changed = replace(program, source=change(program.source))
    assert changed.source != program.source
    assert not verify(changed, compile_on_host(changed), HostDevice(), 1).passed


@needs_nvrtc
@pytest.mark.parametrize(
    ("case", "flags"), [(lid(size=(256, 256, 256)), "memory"), (stone("d3q27", (256, 256, 256)), "memory")]
)
def test_they_stay_in_their_class_of_registers(case: Case, flags: str) -> None:
    one: CudaConfig = config(
        steps=2, rows=2, block=(32, 12, 1), pack=4, plane_fetch="registers", chunk_planes=64, flags=flags
    )
    found = compiled.resources("moments_walls.txt", render(case, one))
    assert found.registers <= 168
