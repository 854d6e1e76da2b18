"""Indirect addressing: the orders, the numbering of the nodes, the rows of the list, and the bytes that follow."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.config import FAMILIES, KernelConfig, completed, cpu, cuda, knobs_by_name, parse_config
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes, traffic
from lbmtune.catalogue.problem import geometry
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.catalogue.problem.geometry import solid
from lbmtune.catalogue.schemes import SCHEMES as ALL_SCHEMES
from lbmtune.catalogue.sparse.index_list import CHAINS, CUT_BIT, MAX_NODES, MOVING_BIT, Pointer, listed_rows, node_list
from lbmtune.catalogue.sparse.nodes import counts, index_list, nodes
from lbmtune.catalogue.sparse.site_orders import ORDERS
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES, Vector
from tests.support.kernels.cuda_samples import config as sample_config

SCHEMES = {
    name: one
    for name, one in ALL_SCHEMES.items()
    if not (one.phase(LATTICES["d2q9"], 0).blockwise or one.phase(LATTICES["d2q9"], 0).ordered)
}
POROUS = "sandstone:fraction=0.6"


def sample(lattice: str = "d3q19", geometry: str = POROUS) -> Case:
    """Periodic with solid cells; no extent like another."""
    domain = (20, 13, 1 if lattice == "d2q9" else 7)
    return replace(box(lattice, "bgk", domain), geometry=geometry)


def indirect(scheme: str = "pull", precision: str = "fp64", **knobs: Any) -> cuda.Sparse:
    given = {"scheme": scheme, "storage": precision, "compute": precision, "block": (256, 1, 1), **knobs}
    config = sample_config(family="sparse", **given)
    assert isinstance(config, cuda.Sparse)
    return config


@pytest.mark.parametrize("name", ORDERS)
@given(nx=st.integers(1, 9), ny=st.integers(1, 9), nz=st.integers(1, 9))
def test_an_order_numbers_every_cell_once(name: str, nx: int, ny: int, nz: int) -> None:
    z, y, x = (a.ravel() for a in np.indices((nz, ny, nx)))
    assert len(set(ORDERS[name](x, y, z).tolist())) == nx * ny * nz


@pytest.mark.parametrize("extents", [(16, 16, 1), (8, 8, 8)])
def test_consecutive_cells_of_the_hilbert_curve_are_neighbours(extents: Vector) -> None:
    z, y, x = (a.ravel() for a in np.indices(extents[::-1]))
    way = np.argsort(ORDERS["hilbert"](x, y, z))
    assert {sum(abs(int(a[m]) - int(a[n])) for a in (x, y, z)) for m, n in pairwise(way)} == {1}


def test_morton_and_tile_are_what_they_are_called() -> None:
    two = np.array([0, 1])
    z, y, x = (a.ravel() for a in np.meshgrid(two, two, two, indexing="ij"))
    assert np.argsort(ORDERS["morton"](x, y, z)).tolist() == list(range(8))
    cells = np.array([0, 7, 8]), np.array([7, 0, 0]), np.array([7, 0, 0])
    assert np.argsort(ORDERS["tile"](*cells)).tolist() == [1, 0, 2]


BYTES = {
    # two-lattice 2 Q s + 4 (Q - 1), two-step 4 Q s + 4 (Q - 1), AA 2 Q s + 4 (Q - 1) / 2: Robertsen 2018, table 3.1
    ("d3q19", "fp64", "pull"): 376,
    ("d3q19", "fp64", "push"): 376,
    ("d3q19", "fp64", "two-step"): 680,
    ("d3q19", "fp64", "aa"): 340,
    # in two kernels: 2 Q s + 2 (Q - 1) s + 4 (Q - 1) / 2
    ("d3q19", "fp64", "swap"): 628,
    ("d3q19", "fp64", "esoteric-twist"): 2 * 19 * 8 + 6 * 4 + 4 / 2,
    ("d3q27", "fp32", "esoteric-twist"): 2 * 27 * 4 + 7 * 4 + 4 / 2,
    ("d3q27", "fp32", "pull"): 2 * 27 * 4 + 26 * 4,
}


@pytest.mark.parametrize(("lattice", "precision", "scheme"), BYTES)
def test_bytes_per_fluid_update(lattice: str, precision: str, scheme: str) -> None:
    assert bytes_per_update(sample(lattice), indirect(scheme, precision)) == BYTES[lattice, precision, scheme]


def test_esoteric_twist_with_seven_pointers_and_a_type_in_every_step() -> None:
    """Geier, Schoenherr 2017: 62 values of four bytes; here the type, a mask, is read in every second step only."""
    moved = traffic(sample("d3q27"), indirect("esoteric-twist", "fp32"))
    assert (moved.populations, moved.index, 2 * moved.flags) == (216, 28, 4)
    assert moved.populations + moved.index + 2 * moved.flags == 248


def test_chased_pointers_are_read_as_often_and_kept_less() -> None:
    """Geier, Schoenherr 2017: Esoteric Twist reads 34 values and writes 27; it keeps 30 of a node, AA would keep 33.

    Here the mask is kept beside them; AA keeps a pointer to each neighbour, unless solid cells are nodes, too.
    """
    case, config = sample("d3q27"), indirect("esoteric-twist", "fp32", links="three_pointers")
    moved = traffic(case, config)
    assert (moved.populations + moved.index) / 4 == 34 + 27
    assert moved.populations + moved.index + 2 * moved.flags == 62 * 4 == 248
    assert listed_rows(case, config).kept == tuple(Pointer(c, c, None) for c in ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    _, sites, count = counts(case, config)
    assert footprint_bytes(case, config) == 4 * count * (27 + 3 + 1)
    every, aa = indirect("esoteric-twist", "fp32"), indirect("aa", "fp32")
    assert footprint_bytes(case, every) == 4 * (27 * count + (7 + 1) * sites)
    assert listed_rows(case, aa).rows == 26


def test_aa_keeps_33_values_and_reads_26_pointers_in_every_second_step() -> None:
    """Geier, Schoenherr 2017, section 4.1: 27 + 6 values of a node; 27 + 26 / 2 reads of a step; 30 / 33 = 0.909."""
    case = sample("d3q27")
    aa, twist = (indirect(one, "fp32", links=CHAINS[one], boundary="implicit") for one in ("aa", "esoteric-twist"))
    moved = traffic(case, aa)
    assert (moved.populations + moved.index) / 4 == (27 + 26 / 2) + 27
    assert moved.flags == traffic(case, twist).flags == 0
    axes = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
    assert {p.open for p in listed_rows(case, aa).kept} == set(axes)
    (_, _, around), (_, _, forward) = counts(case, aa), counts(case, twist)
    assert footprint_bytes(case, aa) == 4 * around * (27 + 6)
    assert footprint_bytes(case, twist) == 4 * forward * (27 + 3)
    assert around > forward, "ghost nodes on all sides, not in the positive octant alone"


def test_fused_swap_as_printed_and_as_its_formula_gives() -> None:
    """Robertsen 2018, table 3.1: s (3 Q - 1) + 4 (Q - 1) / 2 is printed as 476 bytes, one value less than it gives.

    What is in the catalogue moves more: Q values in the cell, then Q - 1 of them once more to the neighbours.
    """
    q, s, printed = 19, 8, 476
    computed = s * (3 * q - 1) + 4 * (q - 1) // 2
    assert (computed, computed - printed) == (484, s)
    two_kernels = bytes_per_update(sample(), indirect("swap"))
    assert two_kernels - computed == s * ((2 * q + 2 * (q - 1)) - (3 * q - 1)) == 18 * s


def test_a_box_without_walls_needs_no_flags() -> None:
    for scheme in SCHEMES:
        assert traffic(sample(geometry=""), indirect(scheme)).flags == 0


def test_pull_on_a_cpu_fetches_the_lines_that_it_writes() -> None:
    config = cpu.Sparse(compute="fp64", storage="fp64")
    assert bytes_per_update(sample(), config) == 3 * 19 * 8 + 72


ROWS = {"pull": 18, "push": 18, "two-step": 18, "aa": 18, "swap": 9, "esoteric-pull": 10, "esoteric-twist": 7}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_of_the_list(scheme: str) -> None:
    assert node_list(sample(), SCHEMES[scheme]).rows == ROWS[scheme]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_footprint_is_that_of_the_nodes_and_the_list(scheme: str) -> None:
    case, config = sample(), indirect(scheme)
    fluid, sites, count = counts(case, config)
    assert fluid == int((~solid(case)).sum())
    assert fluid < sites <= count
    assert sites % 32 == count % 32 == 0
    copies = SCHEMES[scheme].lattices
    assert footprint_bytes(case, config) == copies * 19 * count * 8 + ROWS[scheme] * sites * 4


VALUES = {**dict.fromkeys(SCHEMES, 38), "two-step": 76, "swap": 74}
"""Of D3Q19, read and written in an update."""
READ = {"pull": 18, "push": 18, "two-step": 18, "aa": 9, "swap": 9, "esoteric-pull": 9, "esoteric-twist": 6}
"""Words of the list that an update reads, the mean over the parities."""
LISTED: dict[str, tuple[dict[str, int], int, int]] = {
    # axes, slots of 19 directions in whole bundles, what numbers of nodes are multiples of
    "soa": ({}, 19, 128),
    "aos": ({}, 19, 128),
    "aosoa": ({"width": 256}, 19, 256),
    "bundle": ({"group": 5}, 20, 128),
    "bundle-aosoa": ({"group": 3, "width": 256}, 21, 256),
}


@pytest.mark.parametrize(("storage", "size"), [("fp16s", 2), ("fp32", 4), ("fp64", 8)])
@pytest.mark.parametrize("layout", LISTED)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_with_a_list_in_every_layout(scheme: str, layout: str, storage: str, size: int) -> None:
    axes, slots, unit = LISTED[layout]
    case, compute = sample(), "fp64" if storage == "fp64" else "fp32"
    config = replace(indirect(scheme, compute, layout=layout, **axes), storage=storage)
    fluid = int((~solid(case)).sum())
    sites = (fluid // unit + 1) * unit
    others = int((nodes(case, config).at >= sites).sum())
    count = -(-(sites + others) // unit) * unit
    copies = SCHEMES[scheme].lattices
    assert footprint_bytes(case, config) == copies * slots * count * size + ROWS[scheme] * sites * 4
    moved = traffic(case, config)
    assert (moved.populations, moved.index) == (VALUES[scheme] * size, READ[scheme] * 4)


def test_only_schemes_that_share_places_need_nodes_in_solid_cells() -> None:
    for scheme in SCHEMES:
        numbering = nodes(sample(), indirect(scheme))
        others = int((numbering.at >= numbering.sites).sum())
        assert bool(others) == scheme.startswith("esoteric")


@pytest.mark.parametrize(("order", "scheme"), list(product(ORDERS, ("pull", "esoteric-twist"))))
def test_nodes_are_numbered_in_order_without_gaps(order: str, scheme: str) -> None:
    case = sample()
    numbering = nodes(case, indirect(scheme, order=order))
    found = np.sort(numbering.at[numbering.at >= 0])
    others = np.arange(numbering.sites, numbering.sites + len(found) - numbering.fluid)
    assert found.tolist() == [*range(numbering.fluid), *others]
    z, y, x = np.unravel_index(numbering.cells, numbering.at.shape)
    assert numbering.at[z, y, x].tolist() == list(range(numbering.fluid))
    assert (np.diff(ORDERS[order](x, y, z)) > 0).all()


def _by_hand(case: Case, config: KernelConfig, cell: Vector, offset: Vector) -> int:
    x, y, z = ((c + o) % n for c, o, n in zip(cell, offset, case.domain, strict=True))
    return int(nodes(case, config).at[z, y, x])


@pytest.mark.parametrize(("lattice", "order"), list(product(LATTICES, ORDERS)))
def test_pointers_of_pull_lead_to_neighbours_or_stay(lattice: str, order: str) -> None:
    case, config = sample(lattice), indirect("pull", order=order)
    numbering, rows = nodes(case, config), node_list(case, SCHEMES["pull"])
    words = index_list(case, config).reshape(rows.rows, numbering.sites)
    solids = solid(case)
    for row, pointer in enumerate(rows.pointers):
        assert pointer.link == pointer.open
        for site, cell in enumerate(zip(*np.unravel_index(numbering.cells, solids.shape)[::-1], strict=True)):
            x, y, z = ((int(c) + o) % n for c, o, n in zip(cell, pointer.open, case.domain, strict=True))
            expected = site | 1 << CUT_BIT if solids[z, y, x] else numbering.at[z, y, x]
            assert int(words[row, site]) == expected


@pytest.mark.parametrize(("lattice", "order"), list(product(LATTICES, ORDERS)))
def test_chased_pointers_lead_where_kept_ones_do(lattice: str, order: str) -> None:
    case = sample(lattice)
    every, three = (indirect("esoteric-twist", order=order, links=name) for name in ("all", "three_pointers"))
    _assert_chains_lead_where_kept_pointers_do(case, every, three)
    rows, (fluid, _, count) = listed_rows(case, three), counts(case, three)
    kept = index_list(case, three).reshape(rows.rows, count)
    full = index_list(case, every).reshape(listed_rows(case, every).rows, -1)
    assert (kept[rows.mask_row, :fluid] == full[-1, :fluid]).all()


@pytest.mark.parametrize(("lattice", "order"), list(product(LATTICES, ORDERS)))
def test_six_chased_pointers_lead_where_kept_ones_do(lattice: str, order: str) -> None:
    every, six = (indirect("aa", order=order, links=name, boundary="implicit") for name in ("all", "six_pointers"))
    _assert_chains_lead_where_kept_pointers_do(sample(lattice), every, six)


def _assert_chains_lead_where_kept_pointers_do(case: Case, every: cuda.Sparse, chasing: cuda.Sparse) -> None:
    rows, (fluid, _, count) = listed_rows(case, chasing), counts(case, chasing)
    kept = index_list(case, chasing).reshape(rows.rows, count)
    full = index_list(case, every).reshape(listed_rows(case, every).rows, -1)
    for number, pointer in enumerate(rows.pointers):
        start = rows.before(pointer)
        at = np.arange(fluid) if start is None else full[rows.pointers.index(start), :fluid]
        assert kept[rows.row(pointer), at].tolist() == full[number, :fluid].tolist()


def test_spare_sites_lead_to_themselves() -> None:
    for scheme in SCHEMES:
        case, config = sample(), indirect(scheme)
        rows, (fluid, sites, _) = node_list(case, SCHEMES[scheme]), counts(case, config)
        words = index_list(case, config).reshape(rows.rows, sites)
        assert (words[: len(rows.pointers), fluid:] == np.arange(fluid, sites)).all()
        assert not words[len(rows.pointers) :, fluid:].any()


def test_moving_walls_are_marked_in_pointers_and_in_the_row_after_the_mask() -> None:
    case = replace(cavity("d2q9", "bgk", (6, 5, 1), 1.3), geometry="")
    pull, twist = (node_list(case, SCHEMES[name]) for name in ("pull", "esoteric-twist"))
    words = index_list(case, indirect("pull")).reshape(pull.rows, -1)
    marked = words[[p.link for p in pull.pointers].index((0, 1, 0))] >> MOVING_BIT == 3
    assert np.flatnonzero(marked).tolist() == [24, 25, 26, 27, 28, 29]
    words = index_list(case, indirect("esoteric-twist")).reshape(twist.rows, -1)
    assert twist.rows == twist.mask_row + 2
    assert np.flatnonzero(words[twist.mask_row] >> MOVING_BIT).tolist() == [24, 25, 26, 27, 28, 29]
    assert np.flatnonzero(words[-1] >> twist.masked.index((0, 1, 0)) & 1).tolist() == [24, 25, 26, 27, 28, 29]


def test_configurations_with_the_same_links_share_a_list() -> None:
    case = sample()
    lists = [
        index_list(case, indirect("pull")),
        index_list(replace(case, relaxation_rate=1.1, force=(1e-3, 0.0, 0.0)), indirect("pull", block=(64, 1, 1))),
        index_list(case, indirect("pull", layout="aosoa", width=128)),
        index_list(case, indirect("aa", cells_per_thread=4)),
        index_list(case, cpu.Sparse(scheme="two-step")),
    ]
    assert {id(words) for words in lists} == {id(lists[0])}
    others = index_list(case, indirect("pull", order="tile")), index_list(case, indirect("esoteric-twist"))
    assert all(words is not lists[0] for words in others)


def test_the_text_of_a_kernel_needs_no_geometry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "voxels", None)
    case = sample(geometry="blocks:seed=77")
    assert "links" in render(case, indirect("pull")).source
    with pytest.raises(TypeError):
        counts(case, indirect("pull"))


BOTH_MODULES = (
    *("arange", "asarray", "empty", "flatnonzero", "full", "int32", "ones", "roll", "take", "uint32", "uint8", "where"),
    "zeros",
)


@pytest.mark.parametrize("order", ORDERS)
def test_lists_are_made_by_functions_that_numpy_and_cupy_have(order: str) -> None:
    xp = ModuleType("arrays")
    vars(xp).update({name: getattr(np, name) for name in BOTH_MODULES})
    case = replace(cavity("d3q19", "bgk", (9, 7, 5), 1.3), geometry=POROUS)
    for scheme in ("pull", "esoteric-twist"):
        found = index_list(case, indirect(scheme, order=order), xp)
        assert found.tolist() == index_list(case, indirect(scheme, order=order)).tolist()


REASONS = {
    "family=sparse,scheme=aa,links=three_pointers": "is not supported for scheme=aa (use six_pointers): its poin",
    "family=sparse,scheme=esoteric-twist,links=six_pointers": "scheme=esoteric-twist (use three_pointers): its point",
    "family=sparse,scheme=aa,links=six_pointers": "boundary=branch (use implicit): chains end at cut links",
    "family=sparse,scheme=esoteric-pull,links=three_pointers": "is not supported for scheme=esoteric-pull (use links=",
    "family=sparse,scheme=esoteric-twist,links=some": "links=some is not supported for family sparse (use all, three",
    "family=sparse,prefetch_index=-1": "prefetch_index=-1 is not supported for family sparse (use a whole number",
    "family=sparse,block=64x2x1": "block 64x2x1 is not supported for family sparse (use 64x1x1): sites have one index",
}


@pytest.mark.parametrize("text", REASONS)
def test_reasons(text: str) -> None:
    assert REASONS[text] in str(broken(sample(), parse_config(text), Limits()))


NO_KNOB = {
    "order=morton": "order is not a knob of family direct (family sparse of cuda has it)",
    "links=three_pointers": "links is not a knob of family direct (family sparse of cuda has it)",
    "prefetch_index=64": "prefetch_index is not a knob of family direct (family sparse of cuda has it)",
    "family=sparse,wrap=ghost": "wrap is not a knob of family sparse (families column, direct of cuda have it)",
    "family=sparse,block_order=row": "block_order is not a knob of family sparse (families column, direct of cuda have",
    "family=sparse,flags=memory": "flags is not a knob of family sparse (families direct, ",
}


@pytest.mark.parametrize("text", NO_KNOB)
def test_knobs_of_boxes_and_of_lists_are_those_of_their_families(text: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_config(text)
    assert NO_KNOB[text] in str(raised.value)


@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_three_pointers_are_for_schemes_whose_pointers_all_lead_forward_along_the_axes(
    scheme: str, lattice: str
) -> None:
    """Others are redirected by walls, or lead back, so that nodes on the way to theirs may be missing."""
    lid = replace(cavity(lattice, "bgk", sample(lattice).domain, 1.3), geometry=POROUS)
    for case in (sample(lattice), sample(lattice, geometry=""), lid):
        pointers = node_list(seen_by(case, indirect(scheme)), SCHEMES[scheme]).pointers
        forward = all(p.link is None and set(p.open) <= {0, 1} for p in pointers)
        assert forward == (CHAINS.get(scheme) == "three_pointers")
        three = broken(case, indirect(scheme, links="three_pointers"), Limits())
        assert (three is None) == forward


@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_six_pointers_are_for_aa_if_no_link_is_cut(scheme: str, lattice: str) -> None:
    """A site whose neighbours all are nodes has every node on the way to them, too."""
    lid = cavity(lattice, "bgk", sample(lattice).domain, 1.3)
    for case, boundary, legal in (
        (sample(lattice), "implicit", True),
        (sample(lattice), "branch", False),
        (sample(lattice, geometry=""), "branch", True),
        (lid, "branch", False),
        (replace(lid, geometry=POROUS), "branch", False),
    ):
        reason = broken(case, indirect(scheme, links="six_pointers", boundary=boundary), Limits())
        assert (reason is None) == (legal and scheme == "aa"), reason
    assert "with walls at faces" in str(broken(lid, indirect("aa", links="six_pointers"), Limits()))
    knob = knobs_by_name(cuda.Sparse)["links"]
    assert (knob.neutral({"scheme": scheme}) is None) == (scheme in CHAINS)
    assert knobs_by_name(cpu.Sparse)["links"] == knob


def test_too_many_nodes_for_a_word() -> None:
    case = replace(sample(geometry=""), domain=(1 << 11, 1 << 10, 1 << 9))
    assert case.sites == MAX_NODES
    reason = broken(case, indirect("pull", layout="soa"), Limits())
    assert reason is not None
    assert f"a word of the index list reaches {MAX_NODES:,}" in reason


def test_knobs_of_a_box_do_not_exist_with_a_list() -> None:
    for backend, name in (("cuda", "wrap"), ("cpu", "parallel_loop"), ("cpu", "row_offset")):
        assert name not in knobs_by_name(FAMILIES[backend]["sparse"])
        assert name in knobs_by_name(FAMILIES[backend]["direct"])
    assert "order" not in knobs_by_name(cuda.Direct)
    full = completed({"backend": "cpu", "family": "sparse", "scheme": "aa"}, Limits(cores=2))
    assert "row_offset" not in full
    assert full["threads"] == 2


def test_the_identity_of_a_box_names_no_knob_of_lists() -> None:
    assert "order" not in cuda.Direct().flat()
    assert "order" not in cpu.Direct().flat()
    assert cuda.Sparse().identity == {"backend": "cuda", "family": "sparse"}
    assert parse_config("scheme=aa").brief == "backend=cuda,family=direct,scheme=aa"
