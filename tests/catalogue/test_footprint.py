"""Bytes per update and footprint: exact integers that the literature and a calculator give."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import pytest

from lbmtune.catalogue import footprint
from lbmtune.catalogue.config import KernelConfig, cpu, cuda
from lbmtune.catalogue.footprint import (
    buffer_elements,
    bytes_per_update,
    footprint_bytes,
    footprint_fits,
    largest_cube,
    traffic,
)
from lbmtune.catalogue.layouts import LAYOUTS as ALL_LAYOUTS
from lbmtune.catalogue.layouts import AoS, AoSoA, Bundle, BundleAoSoA, SoA, Tiled, TiledCells
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.sparse import nodes
from tests.support.kernels.cuda_samples import config as sample_config

CUBE = (256, 256, 256)
SITES = 256**3


def _case(lattice: str) -> Case:
    return box(lattice, "bgk", (256, 256, 1) if lattice == "d2q9" else CUBE)


@pytest.mark.parametrize(
    ("lattice", "config", "expected"),
    [
        ("d3q19", cuda.Direct(), 152),
        ("d3q19", cuda.Direct(scheme="aa"), 152),
        ("d3q19", cuda.Direct(compute="fp64", storage="fp64"), 304),
        ("d3q19", cuda.Direct(storage="fp16s"), 76),
        # density and velocity in the compute precision
        ("d3q19", cuda.Direct(macroscopics="every-step"), 152 + 16),
        ("d3q19", cuda.Direct(compute="fp64", macroscopics="every-step", storage="fp64"), 304 + 32),
        ("d3q19", cuda.Direct(macroscopics="every-step", storage="fp16s"), 76 + 16),
        ("d2q9", cuda.Direct(), 72),
        ("d3q27", cuda.Direct(scheme="esoteric-pull"), 216),
        # a second pass moves what the first one left: all directions, or all but the one at rest
        ("d3q19", cuda.Direct(compute="fp64", scheme="two-step", storage="fp64"), 608),
        ("d3q19", cuda.Direct(compute="fp64", scheme="swap", storage="fp64"), 8 * (2 * 19 + 2 * 18)),
        # a block of 8 x 8 x 8 cells reads 6 x 64 + 12 x 120 populations from its ring, which were copied there
        ("d3q19", cuda.Direct(block=(8, 8, 8), compute="fp64", scheme="ghost-cell", storage="fp64"), 304 + 57),
        ("d3q19", cpu.Direct(scheme="two-step"), 456),
        ("d3q19", cpu.Direct(scheme="swap"), 4 * (2 * 19 + 2 * 18)),
        # fused: neighbours that were updated just before are in the cache; what lies at slab faces is left out
        ("d3q19", cpu.Direct(compute="fp64", scheme="swap-ordered", storage="fp64"), 2 * 19 * 8),
        ("d3q27", cpu.Direct(scheme="swap-ordered"), 2 * 27 * 4),
        # 8 x 4 rows read 10 (of y) x 4 + 10 (of z) x 8 - 4 (of both) populations from their ring, a store of which
        # fetches its line first; rows are whole
        ("d3q19", cpu.Direct(parallel_loop="tile-8x4", scheme="ghost-cell"), 152 + 3 * 4 * 116 / 32),
        ("d2q9", cpu.Direct(parallel_loop="tile-8x4", scheme="ghost-cell"), 72 + 3 * 4 * 6 / 8),
        # four steps in one launch: fetched once, at each of 15 edges of 16 tiles three rows again, six in the gap and
        # as many planes
        (
            "d3q19",
            cpu.Wavefront(),
            152 / 4 * (1 + 17 * 3 / 256) * (1 + 6 / 256),
        ),
        ("d2q9", cpu.Wavefront(), 72 / 4 * (1 + 6 / 256)),
        # a store to a line that was not read first fetches it, unless it streams
        ("d3q19", cpu.Direct(), 228),
        ("d3q19", cpu.Direct(scheme="push"), 228),
        ("d3q19", cpu.Direct(streaming_stores=1), 152),
        ("d3q19", cpu.Direct(scheme="aa"), 152),
        ("d3q19", cpu.Direct(scheme="aa", streaming_stores=1), 152),
        ("d3q19", cpu.Sparse(), 228 + 18 * 4),
        ("d3q19", cpu.Sparse(streaming_stores=1), 152 + 18 * 4),
        ("d3q19", cpu.Direct(compute="fp64", storage="fp64"), 456),
        ("d3q19", cpu.Direct(compute="fp64", storage="fp64", streaming_stores=1), 304),
        ("d3q19", cpu.Direct(scheme="esoteric-twist", storage="fp16s"), 76),
    ],
)
def test_bytes_per_update(lattice: str, config: KernelConfig, expected: int) -> None:
    assert bytes_per_update(_case(lattice), config) == expected


@pytest.mark.parametrize(
    ("lattice", "config", "expected"),
    [
        ("d3q19", cuda.Direct(), 2 * 19 * 4 * SITES),
        ("d3q19", cuda.Direct(scheme="aa"), 19 * 4 * SITES),
        ("d3q19", cuda.Direct(scheme="aa", storage="fp16s"), 19 * 2 * SITES),
        ("d3q19", cuda.Direct(layout=AoS(), scheme="aa"), 19 * 4 * SITES),
        ("d3q19", cuda.Direct(layout=AoSoA(), scheme="aa"), 19 * 4 * SITES),
        ("d3q19", cuda.Direct(layout=Tiled(layout_tile=(16, 4, 2)), scheme="aa"), 19 * 4 * SITES),
        ("d3q19", cuda.Direct(layout=TiledCells(layout_tile=(32, 8, 1))), 2 * 19 * 4 * SITES),
        # whole bundles: 19 directions take 4 of 5 or 7 of 3; the 9 of D2Q9 are 3 of 3
        ("d3q19", cuda.Direct(layout=Bundle(group=5), scheme="aa"), 20 * 4 * SITES),
        ("d3q19", cuda.Direct(layout=BundleAoSoA(width=16)), 2 * 21 * 4 * SITES),
        ("d2q9", cuda.Direct(layout=Bundle(), scheme="aa"), 9 * 4 * 256**2),
        # whole tiles: 256 -> 258, 260, 259
        ("d3q19", cuda.Direct(layout=Tiled(layout_tile=(6, 5, 7)), scheme="aa"), 19 * 4 * 258 * 260 * 259),
        ("d3q19", cuda.Direct(macroscopics="every-step"), (2 * 19 + 4) * 4 * SITES),
        ("d3q19", cuda.Direct(layout=SoA(padding=64)), 2 * 19 * 4 * (SITES + 64)),
        ("d2q9", cuda.Direct(compute="fp64", storage="fp64"), 2 * 9 * 8 * 256**2),
        # a ring around every block of 8 x 8 x 8, or of 32 x 8 in two dimensions
        ("d3q19", cuda.Direct(block=(8, 8, 8), scheme="ghost-cell"), 19 * 4 * 32**3 * 10**3),
        ("d2q9", cuda.Direct(block=(32, 8, 1), scheme="ghost-cell"), 9 * 4 * 8 * 32 * 34 * 10),
        # ghost rows beyond the y and z faces
        ("d3q19", cuda.Direct(wrap="ghost"), 2 * 19 * 4 * 256 * 258 * 258),
        ("d2q9", cuda.Direct(wrap="ghost"), 2 * 9 * 4 * 256 * 258),
        # CPU rows: offset, cells, one ghost column, padding
        ("d3q19", cpu.Direct(row_padding=3, scheme="aa"), 19 * 4 * (16 + 256 + 1 + 3) * 256**2),
        ("d3q19", cpu.Direct(row_offset=0, vector_bits=0, wrap="select"), 2 * 19 * 4 * SITES),
        ("d3q19", cpu.Direct(row_offset=1, scheme="swap-ordered", threads=2), 19 * 4 * (1 + 256 + 1) * 256**2),
        # rings of rows around blocks of 8 x 4 rows, and the rows that each thread keeps: 8 + 2 of 19 populations
        (
            "d3q19",
            cpu.Direct(parallel_loop="tile-8x4", scheme="ghost-cell", threads=2),
            19 * 4 * ((16 + 256 + 1) * (32 * 10) * (64 * 6) + 2 * 10 * 256),
        ),
        # in two dimensions a row is kept until the next one is done; 256 = 5 x 50 + 6 rows; ends of rows by selection
        (
            "d2q9",
            cpu.Direct(parallel_loop="tile-50x1", row_offset=0, scheme="ghost-cell", storage="fp16s", wrap="select"),
            9 * 2 * 256 * 6 * 52 + 9 * 4 * 2 * 256,
        ),
        # an AoSoA row is a whole number of groups: 16 + 256 + 1 -> 288
        ("d3q19", cpu.Direct(layout=AoSoA(width=16), scheme="aa"), 19 * 4 * 288 * 256**2),
    ],
)
def test_footprint(lattice: str, config: KernelConfig, expected: int) -> None:
    assert footprint_bytes(_case(lattice), config) == expected


SMALL = (40, 12, 6)
"""Cells along each axis, which whole groups, bundles and tiles exceed."""
LAYOUTS: dict[str, tuple[dict[str, Any], int, tuple[int, int, int]]] = {
    # axes, slots of 19 directions in whole bundles, cells of whole groups or tiles
    "soa": ({}, 19, (40, 12, 6)),
    "aos": ({}, 19, (40, 12, 6)),
    "aosoa": ({"width": 16}, 19, (48, 12, 6)),
    "rows": ({}, 19, (40, 12, 6)),
    "bundle": ({"group": 5}, 20, (40, 12, 6)),
    "bundle-aosoa": ({"group": 3, "width": 32}, 21, (64, 12, 6)),
    "tiled": ({"layout_tile": (16, 5, 4)}, 19, (48, 15, 8)),
    "tiled-cells": ({"layout_tile": (16, 5, 4)}, 19, (48, 15, 8)),
}
MOVED: dict[str, tuple[int, int]] = {
    # copies of the lattice, values that an update reads and writes
    "pull": (2, 38),
    "push": (2, 38),
    "aa": (1, 38),
    "esoteric-twist": (1, 38),
    "esoteric-pull": (1, 38),
    "two-step": (2, 76),
    "swap": (1, 38 + 36),
}


@pytest.mark.parametrize(("storage", "size"), [("fp16s", 2), ("fp32", 4), ("fp64", 8)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scheme", MOVED)
def test_every_scheme_in_every_layout(scheme: str, layout: str, storage: str, size: int) -> None:
    """Bytes of an update do not depend on the layout, and what is kept does not on what is moved."""
    axes, slots, cells = LAYOUTS[layout]
    copies, moved = MOVED[scheme]
    config = sample_config(family="direct", scheme=scheme, layout=layout, storage=storage, **axes)
    case = box("d3q19", "bgk", SMALL)
    assert bytes_per_update(case, config) == moved * size
    assert footprint_bytes(case, config) == copies * slots * prod(cells) * size


LISTED = {
    # words of the list of a node, and those of them that an update reads, both of which follow from what a scheme does
    "pull": (18, 18),  # from each neighbour
    "push": (18, 18),  # to each neighbour
    "two-step": (18, 18),  # its second pass reads from each neighbour
    "aa": (18, 9),  # one step in two stays in its cell
    "esoteric-pull": (9, 9),  # of each pair of directions one lies in a neighbour, in all steps
    "esoteric-twist": (6, 6),  # along x, y and z, and two of them at once: of D3Q19 none lies along all three
    "swap": (9, 9),  # a cell exchanges with half of its neighbours
}


@pytest.mark.parametrize(("storage", "size"), [("fp16s", 2), ("fp32", 4), ("fp64", 8)])
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if not name.startswith("tiled")])
@pytest.mark.parametrize("scheme", MOVED)
def test_every_scheme_in_every_layout_by_a_list(scheme: str, layout: str, storage: str, size: int) -> None:
    """2880 cells and at least one spare are 23 x 128 nodes, which are whole groups of 16 and of 32."""
    axes, slots, _ = LAYOUTS[layout]
    copies, moved = MOVED[scheme]
    kept, read = LISTED[scheme]
    config = sample_config(family="sparse", scheme=scheme, layout=layout, storage=storage, **axes)
    case = box("d3q19", "bgk", SMALL)
    assert bytes_per_update(case, config) == moved * size + 4 * read
    assert footprint_bytes(case, config) == 23 * 128 * (copies * slots * size + 4 * kept)


def test_all_that_there_is_has_exact_bytes() -> None:
    """Blocks with rings, and the fused swap of a CPU, have their own above."""
    assert set(SCHEMES) == {*MOVED, "ghost-cell", "swap-ordered"}
    assert set(MOVED) == set(LISTED)
    assert set(ALL_LAYOUTS) == set(LAYOUTS)


@pytest.mark.parametrize("layout", ["soa", "aos", "aosoa", "bundle", "bundle-aosoa"])
def test_rings_in_every_layout(layout: str) -> None:
    """Blocks of 8 x 4 x 2 cells have 10 x 6 x 4 with their rings: 5 x 3 x 3 of them lie side by side."""
    axes, slots, _ = LAYOUTS[layout]
    config = sample_config(family="direct", scheme="ghost-cell", block=(8, 4, 2), layout=layout, **axes)
    whole = {"aosoa": 64, "bundle-aosoa": 64}.get(layout, 50)  # 5 x 10 cells along x, in groups of 16 and 32
    case = box("d3q19", "bgk", SMALL)
    assert footprint_bytes(case, config) == slots * whole * 18 * 12 * 4
    # of 64 cells, what comes from the ring: across x from 8 of them, y 16, z 32, and edges of two axes
    faces, edges = 2 * (8 + 16 + 32), 4 * (8 + 16 - 2) + 4 * (8 + 32 - 4) + 4 * (16 + 32 - 8)
    assert bytes_per_update(case, config) == pytest.approx(152 + 2 * 4 * (faces + edges) / 64)


def test_in_place_schemes_need_half_the_memory() -> None:
    case = _case("d3q19")
    for scheme in ("aa", "esoteric-twist", "esoteric-pull"):
        assert 2 * footprint_bytes(case, cuda.Direct(scheme=scheme)) == footprint_bytes(
            case, cuda.Direct(scheme="push")
        )


@pytest.mark.parametrize("walls", ["half-way", "interpolated"])
@pytest.mark.parametrize("config", [cuda.Direct(flags="memory"), cuda.Sparse(), cpu.Sparse(scheme="aa")])
def test_what_fits_is_known_without_the_geometry_where_memory_is_ample(
    config: KernelConfig, walls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = replace(box("d3q19", "bgk", (24, 20, 16)), geometry="packing:fraction=0.5:radius=4", walls=walls)
    needed = footprint_bytes(case, config)
    assert footprint_fits(case, config, needed)
    assert not footprint_fits(case, config, needed - 1)
    for module, counted in ((nodes, "counts"), (footprint, "link_count")):
        monkeypatch.setattr(module, counted, None)
    assert footprint_fits(case, config, 5 * needed)


def test_a_domain_of_its_own_can_be_asked_for() -> None:
    assert buffer_elements(_case("d3q19"), cuda.Direct(), (10, 3, 2)) == 19 * 60


@pytest.mark.parametrize("lattice", ["d2q9", "d3q19"])
def test_largest_cube_fits_and_the_next_does_not(lattice: str) -> None:
    case, config, memory = _case(lattice), cuda.Direct(scheme="aa"), 10**9
    edge = largest_cube(case, config, memory)[0]
    q, dimensions = case.stencil.q, case.stencil.dimensions
    assert edge % 16 == 0
    assert q * 4 * edge**dimensions <= memory < q * 4 * (edge + 16) ** dimensions


@pytest.mark.parametrize(
    "config",
    [
        cuda.TemporalBlocking(chunk_planes=8, representation="moments", steps=1),
        cuda.FaceExchange(layout=SoA(), flags="memory"),
        cpu.MomentsWavefront(flags="memory", tile=(64, 8, 4)),
    ],
    ids=["march", "faces", "rows on a CPU"],
)
def test_kernels_of_whole_rows_move_solid_cells_like_all_others(config: KernelConfig) -> None:
    """Of a fluid cell, which alone counts, they move more than where all cells are fluid."""
    bare = box("d3q19", "regularised", (64, 32, 16))
    rock = replace(bare, geometry="blocks:fraction=0.3")
    assert rock.fluid_sites < 0.8 * rock.sites
    found = traffic(rock, config).populations * rock.fluid_sites
    assert found == pytest.approx(traffic(bare, config).populations * bare.sites)
