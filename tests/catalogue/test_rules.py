"""Legality: every rule has an illegal example with its sentence, and beside it a legal neighbour."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.catalogue.config import KernelConfig, cpu, cuda, defaults, parse_config
from lbmtune.catalogue.families import common_rules as common
from lbmtune.catalogue.families.rules import RULES, Limits, broken
from lbmtune.catalogue.layouts import SoA
from lbmtune.catalogue.problem.faces import Patch
from lbmtune.catalogue.problem.flows import box
from lbmtune.errors import InputError
from tests.support.configs import old_cuda

CASE = box("d3q19", "bgk", (256, 256, 256))
LIMITS = Limits(cores=16, memory_bytes=2**36)
TILES = "scheme=push,layout=rows,steps=2,march=64"

SWEPT = "scheme=aa,loop=tile,tile_y=8,tile_z=1,steps=4"

# (legal, illegal, the sentence)
CUDA = [
    ("march=1", "march=0", "march 0: at least 1"),
    ("layout=rows", "steps=2", "scheme pull with steps 2: a launch leaves what arrived in its cell, as push does"),
    (
        "layout=rows",
        "representation=moments",
        "representation moments with collision bgk: only case.collision=regularised depends on nothing else; set it",
    ),
    ("layout=aosoa,width=32", "layout=aosoa", "width 1: groups of an AoSoA have at least 2 cells"),
    ("layout=aos", "layout=aos,width=4", "width 4 with layout aos: only aosoa and bundle-aosoa have groups"),
    ("addressing=indirect,order=morton", "order=morton", "order morton with direct addressing: a box has its rows"),
    (
        "addressing=indirect",
        "addressing=indirect,wrap=ghost",
        "wrap ghost with indirect addressing: there are no rows, and so no ends of them",
    ),
    (
        "addressing=indirect,layout=aosoa,width=32",
        "addressing=indirect,layout=tiled,layout_tile=8x4x2",
        "layout tiled with indirect addressing: there is no box to be cut into tiles",
    ),
    (
        "addressing=indirect,scheme=pull",
        "addressing=indirect,scheme=ghost-cell",
        "scheme ghost-cell with indirect addressing: its blocks are cut out of a box",
    ),
    (
        "addressing=indirect,march=512,prefetch=3",
        "addressing=indirect,march=131072",
        "march 131072: a block takes 33,554,432 sites of a domain of 16,777,216 cells",
    ),
    (
        "addressing=indirect,block=64x1x1",
        "addressing=indirect,block=64x2x1",
        "block 64x2x1 with indirect addressing: sites are counted in one dimension",
    ),
    ("padding=64", "padding=-64", "padding -64 is negative"),
    ("padding=64", "layout=aos,padding=64", "padding 64 with layout aos: only soa has separate direction arrays"),
    (
        "layout=bundle,group=18",
        "layout=bundle,group=19",
        "group 19: a bundle of d3q19 has 2 to 18 of its 19 directions",
    ),
    (
        "scheme=swap",
        "scheme=swap-ordered",
        "scheme swap-ordered: a cell swaps with those updated before it, and blocks of a GPU run in no order",
    ),
    (
        "addressing=indirect,scheme=swap",
        "addressing=indirect,scheme=swap-ordered",
        "scheme swap-ordered with indirect addressing: its order is that of the rows of a box",
    ),
    (
        "scheme=ghost-cell,block=32x4x4",
        "scheme=ghost-cell,block=32x4x4,cells_per_thread=2",
        "cells_per_thread 2 with scheme ghost-cell: rows of blocks are not aligned",
    ),
    (
        "scheme=ghost-cell",
        "scheme=ghost-cell,wrap=ghost",
        "wrap ghost with scheme ghost-cell: the rings of the blocks are its ghost layer",
    ),
    (
        "scheme=ghost-cell",
        "scheme=ghost-cell,march=2",
        "march 2 and block_order row with scheme ghost-cell: a thread block updates the block of cells that it owns, "
        "at once",
    ),
    ("layout=bundle,group=5", "layout=bundle", "group 1: a bundle of d3q19 has 2 to 18 of its 19 directions"),
    (
        "layout=bundle-aosoa,group=5,width=16",
        "layout=aosoa,group=5,width=16",
        "group 5 with layout aosoa: only bundle and bundle-aosoa have groups of directions",
    ),
    (
        "cells_per_thread=4,layout=bundle-aosoa,group=5,width=16,block=64x1x1",
        "cells_per_thread=4,layout=bundle,group=5,block=64x1x1",
        "cells_per_thread 4 with layout bundle: its runs of 1 cells are no multiple of 4",
    ),
    ("layout=tiled,layout_tile=8x4x2", "layout=tiled,layout_tile=8x4x0", "layout_tile 8x4x0 has an extent below 1"),
    (
        "layout=aosoa,width=32",
        "layout=aosoa,width=32,layout_tile=8x4x2",
        "layout_tile 8x4x2 with layout aosoa: only tiled and tiled-cells have tiles",
    ),
    (
        "layout=tiled-cells,layout_tile=8x4x256",
        "layout=tiled-cells,layout_tile=8x4x512",
        "layout_tile 8x4x512 reaches beyond the domain 256x256x256",
    ),
    (
        "cells_per_thread=4,layout=tiled,layout_tile=12x4x1,block=64x1x1",
        "cells_per_thread=4,layout=tiled,layout_tile=6x4x1,block=64x1x1",
        "cells_per_thread 4 with layout tiled: its runs of 6 cells are no multiple of 4",
    ),
    ("flags=compiled", "flags=memory", "flags memory: the case box has neither walls nor solid cells"),
    ("boundary=branch", "boundary=predicated", "boundary predicated with flags compiled: it acts on flags"),
    ("storage=fp64,compute=fp64", "storage=fp64", "compute fp32 is narrower than storage fp64"),
    ("block=256x1x1", "block=0x1x1", "block 0x1x1 has an extent below 1"),
    ("block=256x4x1", "block=1024x1x2", "block 1024x1x2 = 2048 threads; this device allows 1024"),
    ("block=1x1x64", "block=1x1x128", "block 1x1x128 has 128 threads along z; this device allows 64"),
    (
        "block=64x2x1,cells_per_thread=2",
        "block=48x2x1,cells_per_thread=2",
        "block 48x2x1: with 2 cells per thread its x must divide or be a multiple of 32",
    ),
    (
        "block=128x1x1,cells_per_thread=2",
        "block=256x1x1,cells_per_thread=2",
        "block 256x1x1 x 2 cells covers 512 cells of a row of 256",
    ),
    ("cells_per_thread=1", "cells_per_thread=3", "cells_per_thread 3: 1, 2, 4 and 8 exist"),
    ("cells_per_thread=1", "cells_per_thread=3", "cells_per_thread 3: 1, 2, 4 and 8 exist"),
    (
        "cells_per_thread=8,storage=fp16s,block=32x1x1",
        "cells_per_thread=8,block=32x1x1",
        "cells_per_thread 8 x 4 bytes = 32; one access moves at most 16 bytes",
    ),
    (
        "cells_per_thread=2,layout=aosoa,width=32,block=64x1x1",
        "cells_per_thread=2,layout=aos,block=64x1x1",
        "cells_per_thread 2 with layout aos: its runs of 1 cells are no multiple of 2",
    ),
    (
        "cells_per_thread=4,padding=8,block=64x1x1",
        "cells_per_thread=4,padding=2,block=64x1x1",
        "padding 2 is no multiple of cells_per_thread 4",
    ),
    (
        "max_registers=64",
        "max_registers=64,min_blocks=2",
        "max_registers 64 with min_blocks 2: launch bounds override the compiler's cap",
    ),
    ("max_registers=32", "max_registers=24", "max_registers 24 is outside 32..255"),
    ("min_blocks=8", "min_blocks=9", "min_blocks 9 x 256 threads; a multiprocessor holds 2048"),
    ("wrap=ghost", "wrap=select", "wrap 'select': arithmetic and ghost exist on CUDA"),
    ("march=256", "march=257", "march 257: a column of the domain 256x256x256 has 256 cells"),
    (
        "march=4,block=64x4x1",
        "march=4,block=64x2x2",
        "march 4 with block 64x2x2: a block that marches is one cell thick along z",
    ),
    (
        "scheme=esoteric-twist,addressing=indirect,neighbours=chase",
        "scheme=aa,addressing=indirect,neighbours=chase",
        "neighbours chase with scheme aa: its pointer to (-1, 0, 0) does not lead forward along the axes, so nodes on "
        "the way there may be missing",
    ),
    ("march=5,prefetch=3", "march=5,prefetch=4", "prefetch 4: at most 3 cells are read ahead"),
    ("march=4,prefetch=3", "march=3,prefetch=3", "prefetch 3 with march 3: a thread has 2 cells after its first"),
    (
        "march=4,prefetch=3,cells_per_thread=2,block=64x1x1",
        "march=4,prefetch=3,cells_per_thread=4,block=64x1x1",
        "prefetch 3 with 4 cells per thread: 4 sets of 19 populations in fp32 take 304 registers; a thread has 255",
    ),
    (
        "load_hint=no-allocate",
        "load_hint=write-back",
        "load_hint 'write-back': default, streaming, l2-only, no-allocate, evict-last exist",
    ),
    (
        "store_hint=streaming",
        "store_hint=evict-last",
        "store_hint 'evict-last': default, streaming, l2-only, no-allocate exist",
    ),
    ("index_bits=64", "index_bits=32", "index_bits 32: 0 (32 where that is enough) and 64 exist"),
    ("block_order=z-curve", "block_order=hilbert", "block_order 'hilbert': row and z-curve exist"),
    (
        "block_order=z-curve,block=16x8x1",
        "block_order=z-curve,block=16x20x1",
        "block_order z-curve: the grid 16x13x256 is not even along y and z, so it is the row order",
    ),
    ("launch=graph", "launch=loop", "launch 'loop': call, graph, dependent, resident exist"),
    ("macroscopics=every-step", "macroscopics=often", "macroscopics 'often': never and every-step exist"),
    (
        "macroscopics=every-step",
        "macroscopics=every-step,march=4",
        "macroscopics every-step with march 4: threads that go up a column write none",
    ),
    (
        "scheme=esoteric-twist,parity=pointers",
        "scheme=push,parity=pointers",
        "parity pointers with scheme push: all its steps are alike",
    ),
    ("l2_prefetch=256", "l2_prefetch=512", "l2_prefetch 512: 0, 64, 128, 256 exist"),
    ("march=4,prefetch=1", "march=4,fetch=shared", "fetch shared with prefetch 0: nothing is read ahead"),
    (
        "march=4,prefetch=1",
        "march=4,prefetch=1,fetch=shared",
        "fetch shared: this device has no copies to shared memory that are under way on their own",
    ),
    ("march=4,prefetch=1", "prefetch=1", "prefetch 1 with march 1: a thread has no next cell to read"),
    (
        f"{TILES},block=32x8x1,min_blocks=2",
        f"{TILES},block=32x8x1,min_blocks=3",
        "min_blocks 3 x (22,528 + 1,024 reserved) bytes of shared memory; a multiprocessor has 49,152",
    ),
    (
        f"{TILES},block=32x4x1,rows=5,max_registers=32",
        f"{TILES},block=32x4x1,rows=6,max_registers=32",
        "steps 2 x rows 6 x cells_per_thread 1: 228 registers wait for the next plane, more than 6 times the 32 that a "
        "thread has",
    ),
]
CPU = [
    (
        "scheme=pull",
        "representation=moments,loop=tile,tile_x=256,tile_y=8,tile_z=4",
        "representation moments with collision bgk: only case.collision=regularised depends on nothing else; set it",
    ),
    ("loop=zy", "loop=yz", "loop 'yz': z, zy and tile exist"),
    ("wrap=ghost", "wrap=arithmetic", "wrap 'arithmetic': ghost and select exist on the CPU"),
    ("vector_bits=256", "vector_bits=128", "vector_bits 128: 0, 256 and 512 exist"),
    ("loop=tile,tile_y=8,tile_z=4", "loop=tile,tile_y=8", "tile_y 8 and tile_z 0 with loop tile: both at least 1"),
    (
        "scheme=swap-ordered",
        "scheme=swap-ordered,loop=zy",
        "loop zy with scheme swap-ordered: each thread goes through the rows of a slab in order",
    ),
    (
        "scheme=swap-ordered,vector_bits=0",
        "scheme=swap-ordered,vector_bits=0,wrap=select,row_offset=0",
        "wrap select with scheme swap-ordered: the last cell of a row swaps over ghost columns",
    ),
    (
        "scheme=ghost-cell,loop=tile,tile_y=8,tile_z=4",
        "scheme=ghost-cell",
        "loop z with scheme ghost-cell: its blocks are the tiles of loop tile",
    ),
    ("loop=z", "loop=z,tile_z=4", "tile_y 0 and tile_z 4 with loop z: only loop tile has tiles"),
    (
        "vector_bits=0,wrap=select,row_offset=0",
        "vector_bits=512,wrap=select,row_offset=0",
        "vector_bits 512 with wrap select: vectors need the ghost columns",
    ),
    (
        "layout=aosoa,width=16",
        "layout=aosoa,width=8",
        "vector_bits 512 with layout aosoa: its runs of 8 cells are no multiple of 16 lanes",
    ),
    ("row_padding=2", "row_padding=-2", "row_padding -2 is negative"),
    ("row_offset=1", "row_offset=0", "row_offset 0: the ghost column before a row needs 1"),
    (
        "vector_bits=0,wrap=select,row_offset=0",
        "vector_bits=0,wrap=select,row_offset=16",
        "row_offset 16 with wrap select: rows start at 0",
    ),
    (
        "layout=aosoa,width=16,row_offset=32",
        "layout=aosoa,width=16,row_offset=8",
        "row_offset 8 is no multiple of the runs of 16 cells of layout aosoa",
    ),
    ("streaming_stores=1,row_padding=15", "streaming_stores=2", "streaming_stores 2: 0 and 1 exist"),
    (
        "streaming_stores=1,row_padding=15",
        "streaming_stores=1,row_padding=15,scheme=aa",
        "streaming_stores with scheme aa: only pull writes whole aligned lines that it did not read",
    ),
    (
        "streaming_stores=1,row_padding=15",
        "streaming_stores=1,row_padding=15,vector_bits=256",
        "streaming_stores with 256 bits of fp32: a store must fill a cache line of 64 bytes",
    ),
    (
        "streaming_stores=1,row_padding=15",
        "streaming_stores=1,row_padding=15,layout=aosoa,width=16",
        "streaming_stores with layout aosoa: only soa is prepared for them",
    ),
    (
        "streaming_stores=1,row_padding=15",
        "streaming_stores=1,row_padding=14",
        "streaming_stores: row_offset 16, row length 287 and padding 0 must be multiples of 16 elements",
    ),
    ("prefetch_local=64", "prefetch_local=-64", "prefetch_local -64 is negative"),
    (
        "prefetch_propagated=64,vector_bits=256",
        "prefetch_propagated=64,vector_bits=0",
        "prefetch_propagated 64 with vector_bits 0: asked for in every cell it keeps the compiler from vectors",
    ),
    (
        "stride=17891328",
        "stride=17891327",
        "stride 17891327: the direction arrays of domain 256x256x256 have 17891328 elements",
    ),
    ("stride=20000000", "stride=-1", "stride -1 is negative"),
    (
        "stride=20000000",
        "stride=20000000,padding=16",
        "stride 20000000 with padding 16: a stride says all about where arrays begin",
    ),
    (
        "layout=aosoa,width=16",
        "layout=aosoa,width=16,stride=20000000",
        "stride 20000000 with layout aosoa: only soa has separate direction arrays",
    ),
    (
        "scheme=aa,addressing=indirect",
        "scheme=aa,addressing=indirect,stride=20000000",
        "stride 20000000 with indirect addressing: arrays are as long as there are nodes",
    ),
    (
        "streaming_stores=1,row_padding=15,stride=20000000",
        "streaming_stores=1,row_padding=15,stride=20000001",
        "streaming_stores: row_offset 16, row length 288 and stride 20000001 must be multiples of 16 elements",
    ),
    ("far_ends=between", "far_ends=after", "far_ends 'after': inside and between exist"),
    (
        "far_ends=between,vector_bits=256",
        "far_ends=between,vector_bits=0",
        "far_ends between with vector_bits 0: single cells read a far end that is filled before the loop",
    ),
    (
        "scheme=swap-ordered",
        "scheme=swap-ordered,far_ends=between",
        "far_ends between with scheme swap-ordered: its loop fills no far end",
    ),
    ("reads=ahead", "reads=thrice", "reads 'thrice': once, twice, ahead, lean exist"),
    (
        "scheme=esoteric-pull,parity=pointers",
        "scheme=aa,parity=pointers",
        "parity pointers with scheme aa: f_1 is found at (0, 0, 0) in one step and at (-1, 0, 0) in the next, so steps "
        "differ in more than slots",
    ),
    ("boundary=branch", "boundary=predicated", "boundary 'predicated': branch and implicit exist on the CPU"),
    (
        "scheme=aa",
        "scheme=aa,boundary=implicit",
        "boundary implicit with direct addressing: on the CPU only lists leave out what is skipped",
    ),
    (
        "scheme=esoteric-twist,addressing=indirect,neighbours=chase",
        "scheme=aa,addressing=indirect,neighbours=chase",
        "neighbours chase with scheme aa: its pointer to (-1, 0, 0) does not lead forward along the axes, so nodes on "
        "the way there may be missing",
    ),
    (
        "reads=twice,vector_bits=256",
        "reads=twice,vector_bits=0",
        "reads twice with vector_bits 0: the compiler would have to prove that a store changes no load",
    ),
    (
        "layout=aosoa,width=16",
        "layout=aosoa,width=16,reads=ahead",
        "reads ahead with layout aosoa: cells that lie in groups would be put together twice",
    ),
    (
        "scheme=swap-ordered",
        "scheme=swap-ordered,reads=twice",
        "reads twice with scheme swap-ordered: a pair is not left where it was read",
    ),
    (
        "scheme=aa,loop=tile,tile_y=8,tile_z=1,steps=4",
        "scheme=aa,loop=tile,tile_y=8,tile_z=1,steps=17",
        "steps 17: 1 to 16",
    ),
    ("steps=1", "steps=17", "steps 17: 1 to 16"),
    (
        "scheme=aa,loop=tile,tile_y=8,tile_z=1,steps=2",
        "scheme=pull,loop=tile,tile_y=8,tile_z=1,steps=2",
        "steps 2 with scheme pull: rows of several steps are under way at once only where each step is one pass over "
        "one lattice in place, in any order",
    ),
    (
        "scheme=aa,loop=tile,tile_y=8,tile_z=1,steps=2",
        "scheme=aa,loop=zy,steps=2",
        "steps 2 with loop zy: tiles of rows go through several steps",
    ),
    (f"{SWEPT},prefetch_rows=1", f"{SWEPT},prefetch_rows=2", "prefetch_rows 2: 0 and 1 exist"),
    (
        f"{SWEPT},prefetch_rows=1",
        "scheme=aa,prefetch_rows=1",
        "prefetch_rows 1 with steps 1: there is no work in a cache meanwhile",
    ),
    (
        f"{SWEPT},vector_bits=256,prefetch_rows=1",
        f"{SWEPT},vector_bits=0,prefetch_rows=1",
        "prefetch_rows 1 with vector_bits 0: asked for in every cell it keeps the compiler from vectors",
    ),
    (
        f"{SWEPT},prefetch_rows=1",
        f"{SWEPT},prefetch_rows=1,layout=aosoa,width=16",
        "prefetch_rows 1 with layout aosoa: only soa has rows of one direction",
    ),
    (
        "scheme=aa,addressing=indirect",
        "scheme=aa,addressing=indirect,steps=2",
        "steps 2 with indirect addressing: there are no rows that lie behind others",
    ),
    ("threads=16", "threads=17", "threads 17; this device has 16 cores"),
    ("threads=1", "threads=17", "threads 17; this device has 16 cores"),
    ("pinning=cores", "pinning=tight", "pinning 'tight': none, cores exist"),
    ("pages=huge", "pages=large", "pages 'large': default, normal, huge exist"),
    ("threads=2,first_touch=parallel", "first_touch=late", "first_touch 'late': serial, parallel exist"),
    (
        "threads=2,first_touch=parallel",
        "first_touch=parallel",
        "first_touch parallel with threads 1: one thread works on all rows",
    ),
]
# (legal case and limits, illegal ones, configuration, the sentence): rules between the case, the device and the knobs
DOMAIN = [
    ((8, 4, 2), (8, 2, 4), "block=8x4x1", "block 8x4x1 reaches beyond the domain 8x2x4 along y or z"),
    (
        (66, 4, 4),
        (67, 4, 4),
        "cells_per_thread=2,block=32x1x1",
        "domain 67x4x4: nx = 67 is not divisible by cells_per_thread 2",
    ),
    (
        (64, 4, 4),
        (60, 4, 4),
        "layout=aosoa,width=8,block=32x1x1",
        "domain 60x4x4: nx = 60 is not divisible by the AoSoA width 8",
    ),
    (
        (64, 65535, 1),
        (64, 65536, 1),
        "block=64x1x1",
        "grid 1x65536x1 for block 64x1x1; this device allows 2147483647x65535x65535",
    ),
    (
        (512, 512, 860),
        (512, 512, 862),
        "index_bits=64,scheme=aa,layout=aos",
        "index_bits 64: 4,298,384,896 elements of one component need as many anyway",
    ),
    ((64, 4, 4), (60, 4, 4), "backend=cpu", "domain 60x4x4: nx = 60 is not divisible by 16 lanes of fp32"),
]


@pytest.mark.parametrize(
    ("backend", "legal", "illegal", "sentence"),
    [("cuda", *row) for row in CUDA] + [("cpu", *row) for row in CPU],
)
def test_rule_of_the_knobs(backend: str, legal: str, illegal: str, sentence: str) -> None:
    assert broken(CASE, parse_config(legal, backend), LIMITS) is None
    assert broken(CASE, parse_config(illegal, backend), LIMITS) == sentence


def test_what_waits_is_held_against_the_registers_of_all_blocks_asked_for() -> None:
    """Doubles take two each: 4 steps x 3 rows x 19 x 2 = 456, at most 6 x 64; one step less is 342."""
    roomy = replace(LIMITS, shared_bytes_per_block=227 << 10, shared_bytes_per_multiprocessor=228 << 10)
    text = "scheme=push,layout=rows,block=32x6x1,march=64,rows=3,storage=fp64,compute=fp64"
    four = parse_config(f"{text},steps=4", "cuda")
    assert broken(CASE, four, roomy) is None
    shared = replace(roomy, shared_bytes_per_multiprocessor=2**20)
    assert "456 registers wait" in str(broken(CASE, replace(four, min_blocks=5), shared))
    assert broken(CASE, replace(four, min_blocks=5, steps=3), shared) is None
    assert broken(CASE, replace(four, min_blocks=5, pending="shared"), shared) is None


@pytest.mark.parametrize(
    ("lattice", "domain", "block"),
    [("d3q19", (64, 6, 64), "32x8x1"), ("d3q19", (64, 3, 1), "32x8x1"), ("d2q9", (4096, 3, 1), "32x4x1")],
)
def test_tiles_may_end_beyond_the_domain(lattice: str, domain: tuple[int, int, int], block: str) -> None:
    """Rows of a block of tiles are not those of the domain: its halo lies beyond, and in two dimensions warps do."""
    case = box(lattice, "regularised", domain)
    config = parse_config(f"representation=moments,layout=rows,block={block}", "cuda")
    assert broken(case, config, LIMITS) is None
    assert "reaches beyond the domain" in str(broken(case, parse_config(f"block={block}", "cuda"), LIMITS))


def test_tiles_have_a_grid_of_their_own() -> None:
    config = parse_config("representation=moments,layout=rows,block=32x8x1,march=2", "cuda")
    low, high = (box("d2q9", "regularised", (64, height, 1)) for height in (131_070, 131_072))
    assert broken(low, config, LIMITS) is None
    assert broken(high, config, LIMITS) == (
        "grid 1x65536x1 for block 32x8x1; this device allows 2147483647x65535x65535"
    )


def test_planes_where_links_are_cut_have_places_of_32_bits() -> None:
    config = parse_config("representation=moments,layout=rows,block=32x8x1", "cuda")
    periodic = box("d3q19", "regularised", (2**14, 13_108, 4))
    walled = replace(periodic, faces=("periodic", "periodic", "wall", "wall", "periodic", "periodic"))
    limits = replace(LIMITS, memory_bytes=2**50)
    assert broken(periodic, config, limits) is None
    assert "2,147,614,720 elements of a plane; at most 2,147,483,647" in str(broken(walled, config, limits))
    assert broken(replace(walled, domain=(2**14, 13_104, 4)), config, limits) is None


@pytest.mark.parametrize(("legal", "illegal", "text", "sentence"), DOMAIN)
def test_rule_between_domain_and_knobs(
    legal: tuple[int, int, int], illegal: tuple[int, int, int], text: str, sentence: str
) -> None:
    assert broken(replace(CASE, domain=legal), parse_config(text), LIMITS) is None
    assert broken(replace(CASE, domain=illegal), parse_config(text), LIMITS) == sentence


def test_vector_width_of_the_device() -> None:
    config = cpu.Direct()
    assert broken(CASE, config, LIMITS) is None
    assert broken(CASE, config, replace(LIMITS, vector_bits=128)) == (
        "vector_bits 512; this CPU has 128, and two registers make a vector"
    )
    assert broken(CASE, config, replace(LIMITS, vector_bits=256)) is None


OPENED = replace(CASE, faces=("slip", "slip", "wall", "wall", "periodic", "periodic"))


@pytest.mark.parametrize("config", [cuda.Sparse(), cpu.Sparse()])
def test_a_list_of_sites_knows_the_faces_by_their_types(config: KernelConfig) -> None:
    assert broken(CASE, config, LIMITS) is None
    assert broken(OPENED, config, LIMITS) is None
    assert broken(OPENED, replace(config, addressing="direct"), LIMITS) is None


PATCHED = replace(OPENED, patches=(Patch("moving", "rectangle:x=0..0.5", "y+", (0.1, 0.0, 0.0)),))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (cuda.Direct(), None),
        (cuda.Direct(wrap="ghost"), "flags compiled with wrap ghost: the refresh of ghost rows knows the faces alone"),
        (cuda.Column(z_cells=2), "flags compiled with march 2: columns of cells know whole faces alone"),
        (cuda.Direct(boundary="predicated"), "boundary predicated with flags compiled: it acts on flags"),
        (
            cuda.Direct(macroscopics="every-step"),
            "macroscopics every-step with flags compiled: kernels that know cells",
        ),
        (
            cuda.Direct(block=(8, 8, 4), scheme="ghost-cell"),
            "flags compiled with a patch on face y+: the rings of the blocks of scheme ghost-cell know whole faces",
        ),
        (cpu.Direct(), "flags compiled with a patch on face y+: rows of a CPU ask the words of their cells which"),
        (cuda.Direct(flags="memory"), None),
        (cuda.Sparse(), None),
        (cuda.Direct(flags="memory", wrap="ghost"), "flags memory with wrap ghost: the refresh of ghost rows"),
        (old_cuda(flags="memory", march=2), "flags memory with march 2: columns of cells know whole faces"),
        (
            cuda.TemporalBlocking(layout=SoA(), block=(256, 1, 1), chunk_planes=1, flags="memory", plane_fetch="none"),
            "moving patch with steps 2: its blocks know whole faces",
        ),
        (
            cuda.Persistent(block=(256, 1, 1), flags="memory", tile_planes=1),
            "moving patch with launch resident: these kernels know whole",
        ),
    ],
)
def test_parts_of_faces_are_known_by_words(config: KernelConfig, reason: str | None) -> None:
    case = replace(PATCHED, faces=("wall",) * 4 + ("periodic",) * 2)
    found = broken(case, config, LIMITS)
    assert (found or "").startswith(reason or "")
    assert bool(found) == bool(reason)


def test_huge_pages_of_the_device() -> None:
    config = cpu.Direct(pages="huge")
    assert broken(CASE, config, LIMITS) is None
    assert broken(CASE, config, replace(LIMITS, huge_pages=False)) == (
        "pages huge: this system gives no transparent huge pages of 2 MiB"
    )


def test_a_domain_too_large_is_told_the_largest_that_fits() -> None:
    """256^3 x 19 x 2 x 4 bytes = 2.375 GiB; 1 GiB holds two lattices of a cube of 191."""
    config, memory = cuda.Direct(), 2**30
    reason = broken(CASE, config, replace(LIMITS, memory_bytes=memory))
    assert reason == (
        "domain 256x256x256 needs 2.375 GiB in fp32 pull; the device has 1 GiB free, enough for 176x176x176"
    )
    for edge, fits in ((176, True), (192, False)):
        case = replace(CASE, domain=(edge, edge, edge))
        assert (broken(case, config, replace(LIMITS, memory_bytes=memory)) is None) is fits


def test_unknown_name_is_bad_input_and_no_illegal_point() -> None:
    with pytest.raises(InputError, match="unknown scheme 'aaa'; did you mean 'aa'"):
        broken(CASE, cuda.Direct(scheme="aaa"), LIMITS)


BASES = {
    "cuda": (
        "scheme=pull",
        "layout=bundle,group=3",
        "layout=aosoa,width=32,scheme=aa",
        "addressing=indirect",
        "scheme=ghost-cell,block=8x8x4",
        "launch=resident,layout=rows,block=256x8x1",
        "scheme=push,layout=rows,steps=2,block=32x8x1,march=64",
    ),
    "cpu": ("scheme=pull", SWEPT, "layout=bundle-aosoa,group=3,width=32", "addressing=indirect", "scheme=swap-ordered"),
}


@pytest.mark.parametrize(("backend", "base"), [(backend, base) for backend, bases in BASES.items() for base in bases])
def test_no_number_is_too_strange_for_a_reason(backend: str, base: str) -> None:
    """Every axis that counts something: what is below its least value is illegal, what is huge is judged, too."""
    for name, usual in defaults(backend).items():
        if not isinstance(usual, int):
            continue
        for value in (-(10**6), -1, 0, 10**6):
            config = parse_config(f"{base},{name}={value}", backend)
            reason = broken(CASE, config, LIMITS)
            assert reason is None or name in reason or value >= (usual == 1), (name, value, reason)
            assert reason is not None or value >= (usual == 1), (name, value)


def test_every_rule_speaks_in_an_example_above() -> None:
    examples = [(CASE, parse_config(bad, "cuda")) for _, bad, _ in CUDA]
    examples += [(CASE, parse_config(bad, "cpu")) for _, bad, _ in CPU]
    examples += [(replace(CASE, domain=bad), parse_config(text)) for _, bad, text, _ in DOMAIN]
    large = replace(CASE, domain=(4096, 4096, 4096))
    examples += [(large, cuda.Direct()), (large, cuda.Sparse())]  # too large for memory, for a word
    examples.append((replace(CASE, geometry="sandstone"), cuda.Direct()))
    first = {next(rule for rule in RULES[config.backend] if rule(case, config, LIMITS)) for case, config in examples}
    unknown_names = common.FIRST[0]  # its examples raise
    assert first | {unknown_names} == {rule for rules in RULES.values() for rule in rules}
