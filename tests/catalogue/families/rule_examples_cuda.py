"""Examples of rules of CUDA families: of each a configuration that it refuses, and a legal neighbour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.catalogue.families.rule_examples import (
    BARE,
    CASE,
    DEVICE,
    SCARCE,
    SMALL,
    Example,
    patched,
    sized,
    solid,
    walled,
)
from tests.catalogue.families.rule_examples_cuda_face_exchange import FACE_EXCHANGE
from tests.catalogue.families.rule_examples_cuda_persistent import PERSISTENT
from tests.catalogue.families.rule_examples_cuda_temporal_blocking import TEMPORAL_BLOCKING

_BOX: tuple[Example, ...] = (
    Example(
        "scheme=swap",
        "scheme=swap-ordered",
        "scheme=swap-ordered is not supported on CUDA (use swap): a cell swaps with those updated before it, and "
        "thread blocks run in no order",
    ),
    Example(
        "block=256x4x1",
        "block=1024x1x2",
        "block 1024x1x2 = 2048 threads; this device allows 1024 (use fewer along an axis)",
    ),
    Example(
        "cells_per_thread=8,storage=fp16s,block=32x1x1",
        "cells_per_thread=8,block=32x1x1",
        "cells_per_thread=8 x 4 bytes = 32; one access moves at most 16 bytes",
    ),
    Example(
        "cells_per_thread=2,block=32x1x1",
        "cells_per_thread=2,block=32x1x1",
        "domain 67x4x16: nx=67 is not a multiple of cells_per_thread=2",
        case=sized(CASE, 67, 4, 16),
        legal_case=sized(CASE, 66, 4, 16),
    ),
    Example(
        "cells_per_thread=2,layout=aosoa,block=64x1x1",
        "cells_per_thread=2,layout=aos,block=64x1x1",
        "cells_per_thread=2 is not supported for layout=aos: its runs of 1 cells are not multiples of 2",
    ),
    Example(
        "cells_per_thread=4,layout=bundle-aosoa,group=5,width=16,block=64x1x1",
        "cells_per_thread=4,layout=bundle,group=5,block=64x1x1",
        "cells_per_thread=4 is not supported for layout=bundle: its runs of 1 cells are not multiples of 4",
    ),
    Example(
        "cells_per_thread=4,layout=tiled,layout_tile=12x4x1,block=64x1x1",
        "cells_per_thread=4,layout=tiled,layout_tile=6x4x1,block=64x1x1",
        "cells_per_thread=4 is not supported for layout=tiled: its runs of 6 cells are not multiples of 4",
    ),
    Example(
        "cells_per_thread=4,padding=8,block=64x1x1",
        "cells_per_thread=4,padding=2,block=64x1x1",
        "padding=2 is not a multiple of cells_per_thread=4",
    ),
    Example(
        "block=64x2x1,cells_per_thread=2",
        "block=48x2x1,cells_per_thread=2",
        "block 48x2x1: with cells_per_thread=2 its x must divide or be a multiple of 32",
    ),
    Example(
        "block=8x4x1",
        "block=8x4x1",
        "block 8x4x1 is larger than the domain 8x2x16 along y or z",
        case=sized(CASE, 8, 2, 16),
        legal_case=sized(CASE, 8, 4, 16),
    ),
    Example(
        "block=128x1x1,cells_per_thread=2",
        "block=256x1x1,cells_per_thread=2",
        "block 256x1x1 x 2 cells covers 512 cells of a row of 256",
    ),
    Example(
        "register_limit=32-registers",
        "register_limit=24-registers",
        "register_limit=24-registers is not supported (use 32-registers to 255-registers)",
    ),
    Example(
        "register_limit=96-registers",
        "register_limit=96",
        "register_limit=96 is not supported (use none, or for example 96-registers or 3-blocks)",
    ),
    Example(
        "register_limit=8-blocks",
        "register_limit=9-blocks",
        "9 blocks of 256 threads; a multiprocessor holds 2048 threads (use fewer or smaller blocks)",
    ),
    Example(
        "layout=aosoa,width=8,block=32x1x1",
        "layout=aosoa,width=8,block=32x1x1",
        "domain 60x4x16: nx=60 is not a multiple of the AoSoA width=8",
        case=sized(CASE, 60, 4, 16),
        legal_case=sized(CASE, 64, 4, 16),
    ),
    Example(
        "index_bits=64,scheme=aa,layout=aos",
        "index_bits=64,scheme=aa,layout=aos",
        "index_bits=64 is the same as 0: 4,298,384,896 elements need as many",
        case=sized(CASE, 512, 512, 862),
        legal_case=sized(CASE, 512, 512, 860),
    ),
    Example(
        "launch=dependent",
        "launch=dependent",
        "launch=dependent is not supported by this device (use call or graph): it needs compute capability 9.0",
        limits=BARE,
    ),
    Example(
        "layout=bundle,group=18",
        "layout=bundle,group=19",
        "group=19 is not supported for lattice=d3q19 (use 2 to 18): it has 19 directions",
    ),
    Example(
        "layout=tiled-cells,layout_tile=8x4x256",
        "layout=tiled-cells,layout_tile=8x4x512",
        "layout_tile=8x4x512 is larger than the domain 256x256x256; use a smaller tile",
    ),
    Example(
        "storage=fp64,compute=fp64", "storage=fp64", "compute=fp32 is narrower than storage=fp64; use compute=fp64"
    ),
    Example(
        "",
        "",
        "domain 256x256x256 needs 2.375 GiB in fp32 pull; the device has 1 GiB free, enough for 176x176x176",
        legal_case=sized(CASE, 256, 64, 64),
        limits=SCARCE,
    ),
)
"""Of both families of one step of a box."""

DIRECT: tuple[Example, ...] = (
    *_BOX,
    Example(
        "block=1x1x64",
        "block=1x1x128",
        "block 1x1x128 has 128 threads along z; this device allows 64 (use fewer there)",
    ),
    Example(
        "block_order=z-curve,block=16x8x1",
        "block_order=z-curve,block=16x20x1",
        "block_order=z-curve is not supported for the grid 16x13x256 (use row): it is not even along y and z, so "
        "it is the row order",
    ),
    Example(
        "block=64x1x1",
        "block=64x1x1",
        "grid 1x65536x1 for block 64x1x1; this device allows 2147483647x65535x65535",
        case=sized(CASE, 64, 65536, 1),
        legal_case=sized(CASE, 64, 65535, 1),
    ),
    Example(
        "scheme=ghost-cell,block=32x4x4",
        "scheme=ghost-cell,block=32x4x4,cells_per_thread=2",
        "cells_per_thread=2 is not supported for scheme=ghost-cell (use 1): rows of blocks are not aligned",
    ),
    Example(
        "scheme=ghost-cell,block=32x4x4",
        "scheme=ghost-cell,block=32x4x4,wrap=ghost",
        "wrap=ghost is not supported for scheme=ghost-cell (use arithmetic): the rings of the blocks are its "
        "ghost layer",
    ),
    Example(
        "scheme=ghost-cell,block=32x4x4",
        "scheme=ghost-cell,block=32x4x4,block_order=z-curve",
        "block_order=z-curve is not supported for scheme=ghost-cell (use row): a thread block updates the block "
        "of cells that it owns",
    ),
    Example(
        "scheme=ghost-cell,block=32x4x4",
        "scheme=ghost-cell,block=32x4x4,macroscopics=every-step",
        "macroscopics=every-step is not supported for scheme=ghost-cell (use never): kernels of blocks with "
        "rings write none",
    ),
    Example(
        "scheme=ghost-cell,block=32x4x4",
        "scheme=ghost-cell,block=32x4x4,flags=memory",
        "flags=memory is not supported for scheme=ghost-cell (use compiled): the rings of its blocks hold whole "
        "faces alone",
        case=walled(CASE),
    ),
    Example(
        "scheme=ghost-cell,block=32x4x4",
        "scheme=ghost-cell,block=32x4x4",
        "a moving patch is not supported for scheme=ghost-cell: rings hold whole faces",
        case=patched(CASE),
        legal_case=walled(CASE),
    ),
    Example(
        "flags=memory",
        "flags=memory",
        "flags=memory is not supported for flow box (use compiled): it has neither walls nor solid cells",
        case=CASE,
        legal_case=walled(CASE),
    ),
    Example(
        "flags=memory,block=32x1x1",
        "block=32x1x1",
        "flags=compiled is not supported for geometry sphere (use memory, or family sparse): solid cells have flags",
        case=solid(SMALL),
    ),
    Example(
        "flags=memory,boundary=predicated,cells_per_thread=1",
        "flags=memory,boundary=predicated,cells_per_thread=2,block=128x1x1",
        "boundary=predicated is not supported for cells_per_thread=2 (use branch): a vector has one address",
        case=walled(CASE),
    ),
    Example(
        "wrap=ghost",
        "flags=memory,wrap=ghost",
        "flags=memory is not supported for wrap=ghost with periodic faces along z (use arithmetic): "
        "the refresh of ghost rows reads no words",
        case=walled(CASE),
    ),
    Example(
        "macroscopics=every-step",
        "flags=memory,macroscopics=every-step",
        "macroscopics=every-step is not supported for flags=memory (use never): kernels that read words of cells "
        "write none",
        case=walled(CASE),
    ),
    Example(
        "",
        "wrap=ghost",
        "flags=compiled is not supported for wrap=ghost with periodic faces along z (use arithmetic): "
        "the refresh of ghost rows reads no words",
        case=patched(CASE),
    ),
    Example(
        "flags=memory",
        "macroscopics=every-step",
        "macroscopics=every-step is not supported for flags=compiled (use never): kernels that read words of "
        "cells write none",
        case=patched(CASE),
    ),
    Example(
        "flags=memory,scheme=aa,boundary=branch",
        "flags=memory,scheme=aa,boundary=implicit",
        "boundary=implicit is not supported for flow box (use branch): it has no solid cells to skip",
        case=walled(CASE),
    ),
    Example(
        "flags=memory,scheme=aa,boundary=implicit,block=32x1x1",
        "flags=memory,scheme=aa,boundary=implicit,block=32x1x1",
        "boundary=implicit is not supported for faces periodic, periodic, wall, wall, periodic, periodic (use "
        "branch): behind a wall at a face is no cell to skip",
        case=solid(walled(SMALL)),
        legal_case=solid(SMALL),
    ),
    Example(
        "flags=memory,scheme=aa,boundary=implicit,block=32x1x1",
        "flags=memory,scheme=pull,boundary=implicit,block=32x1x1",
        "boundary=implicit is not supported for scheme=pull (use branch): a skipped cell is missing in the "
        "lattice of the next step",
        case=solid(SMALL),
    ),
    Example(
        "flags=memory,scheme=aa,boundary=implicit,block=32x1x1",
        "flags=memory,scheme=swap,boundary=implicit,block=32x1x1",
        "boundary=implicit is not supported for scheme=swap (use branch): a skipped cell does not reverse f_0",
        case=solid(SMALL),
    ),
    Example(
        "flags=memory,boundary=predicated",
        "boundary=predicated",
        "boundary=predicated is not supported for flags=compiled (use boundary=branch): faces that are compiled "
        "in need no flags",
        case=walled(CASE),
    ),
    Example(
        "addresses=shared",
        "addresses=registers",
        "addresses=registers is not supported for family direct (use computed or shared)",
    ),
    Example(
        "scheme=esoteric-twist,addresses=shared",
        "scheme=esoteric-twist,addresses=shared,pointer_swap=1",
        "addresses=shared is not supported for pointer_swap=1 (use addresses=computed): slots are parameters",
    ),
    Example(
        "scheme=ghost-cell,block=32x4x4",
        "scheme=ghost-cell,block=32x4x4,addresses=shared",
        "addresses=shared is not supported for scheme=ghost-cell (use addresses=computed): its blocks have rings",
    ),
    Example(
        "scheme=esoteric-twist,pointer_swap=1",
        "scheme=push,pointer_swap=1",
        "pointer_swap=1 is not supported for scheme=push (use pointer_swap=0): its steps differ in more than "
        "slots, or not at all",
    ),
    Example(
        "cells_per_thread=1",
        "cells_per_thread=3",
        "cells_per_thread=3 is not supported for family direct (use 1, 2, 4 or 8)",
    ),
    Example(
        "load_hint=no-allocate",
        "load_hint=write-back",
        "load_hint=write-back is not supported for family direct (use default, streaming, l2-only, no-allocate "
        "or evict-last)",
    ),
    Example(
        "store_hint=streaming",
        "store_hint=evict-last",
        "store_hint=evict-last is not supported for family direct (use default, streaming, l2-only or no-allocate)",
    ),
    Example(
        "l2_prefetch=256",
        "l2_prefetch=512",
        "l2_prefetch=512 is not supported for family direct (use 0, 64, 128 or 256)",
    ),
    Example("index_bits=64", "index_bits=32", "index_bits=32 is not supported for family direct (use 0 or 64)"),
    Example(
        "block_order=z-curve",
        "block_order=hilbert",
        "block_order=hilbert is not supported for family direct (use row or z-curve)",
    ),
    Example(
        "launch=graph", "launch=loop", "launch=loop is not supported for family direct (use call, graph or dependent)"
    ),
    Example(
        "macroscopics=every-step",
        "macroscopics=often",
        "macroscopics=often is not supported for family direct (use never or every-step)",
    ),
    Example("wrap=ghost", "wrap=select", "wrap=select is not supported for family direct (use arithmetic or ghost)"),
    Example(
        "padding=64", "padding=-64", "padding=-64 is not supported for family direct (use a whole number from 0 up)"
    ),
    Example(
        "layout=aosoa,width=32",
        "layout=aosoa,width=1",
        "width=1 is not supported for family direct (use a whole number from 2 up)",
    ),
    Example(
        "layout=bundle,group=5",
        "layout=bundle,group=1",
        "group=1 is not supported for family direct (use a whole number from 2 up)",
    ),
    Example(
        "layout=tiled,layout_tile=8x4x2",
        "layout=tiled,layout_tile=8x4x0",
        "layout_tile=8x4x0 is not supported (each extent is at least 1)",
    ),
    Example("block=256x1x1", "block=0x1x1", "block=0x1x1 is not supported (each extent is at least 1)"),
)

COLUMN: tuple[Example, ...] = (
    *_BOX,
    Example(
        "block_order=z-curve,block=16x8x1",
        "block_order=z-curve,block=16x20x1",
        "block_order=z-curve is not supported for the grid 16x13x32 (use row): it is not even along y and z, so "
        "it is the row order",
    ),
    Example(
        "block=32x1x1",
        "block=32x1x1",
        "geometry sphere is not supported for family column (use direct): it knows whole faces alone",
        case=solid(SMALL),
        legal_case=SMALL,
    ),
    Example(
        "",
        "",
        "a moving patch is not supported for family column (use direct): whole faces only",
        case=patched(CASE),
        legal_case=walled(CASE),
    ),
    Example(
        "scheme=swap",
        "scheme=ghost-cell",
        "scheme=ghost-cell is not supported for family column (use direct): a thread block updates the block of "
        "cells that it owns, at once",
    ),
    Example("z_cells=256", "z_cells=257", "z_cells=257: a column of the domain 256x256x256 has 256 cells"),
    Example("block=64x4x1", "block=64x2x2", "block 64x2x2 with z_cells=8: the block is one thread thick along z"),
    Example(
        "z_cells=4,prefetch_cells=3",
        "z_cells=3,prefetch_cells=3",
        "prefetch_cells=3: a thread has 2 cells after its first",
    ),
    Example(
        "z_cells=4,prefetch_cells=3,cells_per_thread=2,block=64x1x1",
        "z_cells=4,prefetch_cells=3,cells_per_thread=4,block=64x1x1",
        "prefetch_cells=3 with cells_per_thread=4: 4 sets of 19 populations in fp32 take 304 registers; a thread "
        "has 255",
    ),
    Example(
        "prefetch_cells=1,prefetch_to=shared",
        "prefetch_cells=1,prefetch_to=shared",
        "prefetch_to=shared is not supported by this device (use registers): it needs compute capability 8.0",
        limits=BARE,
    ),
    Example(
        "prefetch_cells=1,prefetch_to=shared,storage=fp16s,cells_per_thread=2,block=32x1x1",
        "prefetch_cells=1,prefetch_to=shared,storage=fp16s",
        "prefetch_to=shared with cells_per_thread=1 of fp16s: 2 bytes at once; an asynchronous copy moves 4, 8 or 16",
    ),
    Example(
        "prefetch_cells=1,prefetch_to=shared,store_hint=streaming",
        "prefetch_cells=1,prefetch_to=shared,load_hint=streaming",
        "prefetch_to=shared is not supported for load_hint=streaming and l2_prefetch=0 (use registers): a copy "
        "has no such hints",
    ),
    Example(
        "prefetch_cells=1,addresses=shared",
        "prefetch_cells=1,prefetch_to=shared,addresses=shared",
        "prefetch_to=shared is not supported for addresses=shared (use registers): cells take the shared memory",
    ),
    Example(
        "prefetch_cells=3,prefetch_to=shared,block=256x1x1",
        "prefetch_cells=3,prefetch_to=shared,block=256x4x1",
        "prefetch_to=shared with block 256x4x1 needs 233,472 bytes of shared memory; a block of this device has "
        "232,448",
    ),
    Example(
        "prefetch_cells=1,prefetch_to=shared,register_limit=8-blocks",
        "prefetch_cells=2,prefetch_to=shared,register_limit=8-blocks",
        "8 blocks of (38,912 + 1,024 reserved) bytes of shared memory; a multiprocessor has 233,472",
    ),
    Example(
        "block=64x1x1",
        "block=64x1x1",
        "grid 1x65536x1 for block 64x1x1; this device allows 2147483647x65535x65535",
        case=sized(CASE, 64, 65536, 8),
        legal_case=sized(CASE, 64, 65535, 8),
    ),
    Example("z_cells=2", "z_cells=1", "z_cells=1 is not supported for family column (use a whole number from 2 up)"),
    Example(
        "z_cells=5,prefetch_cells=3",
        "z_cells=5,prefetch_cells=4",
        "prefetch_cells=4 is not supported for family column (use 0 to 3)",
    ),
    Example(
        "prefetch_cells=1,prefetch_to=shared",
        "prefetch_to=shared",
        "prefetch_to=shared is not supported for prefetch_cells=0 (use prefetch_to=registers): nothing is read ahead",
    ),
)

SPARSE: tuple[Example, ...] = (
    Example(
        "scheme=swap",
        "scheme=swap-ordered",
        "scheme=swap-ordered is not supported on CUDA (use swap): a cell swaps with those updated before it, and "
        "thread blocks run in no order",
    ),
    Example(
        "scheme=pull",
        "scheme=ghost-cell",
        "scheme=ghost-cell is not supported for family sparse (use pull): its blocks are cut out of a box",
    ),
    Example(
        "block=1024x1x1",
        "block=1024x1x2",
        "block 1024x1x2 = 2048 threads; this device allows 1024 (use fewer along an axis)",
    ),
    Example(
        "cells_per_thread=8,storage=fp16s,block=32x1x1",
        "cells_per_thread=8,block=32x1x1",
        "cells_per_thread=8 x 4 bytes = 32; one access moves at most 16 bytes",
    ),
    Example(
        "cells_per_thread=2,layout=aosoa,block=64x1x1",
        "cells_per_thread=2,layout=aos,block=64x1x1",
        "cells_per_thread=2 is not supported for layout=aos: its runs of 1 cells are not multiples of 2",
    ),
    Example(
        "block=64x1x1",
        "block=64x2x1",
        "block 64x2x1 is not supported for family sparse (use 64x1x1): sites have one index",
    ),
    Example(
        "block=64x1x1,cells_per_thread=2",
        "block=48x1x1,cells_per_thread=2",
        "block 48x1x1: with cells_per_thread=2 its x must divide or be a multiple of 32",
    ),
    Example(
        "register_limit=32-registers",
        "register_limit=256-registers",
        "register_limit=256-registers is not supported (use 32-registers to 255-registers)",
    ),
    Example(
        "register_limit=8-blocks",
        "register_limit=9-blocks",
        "9 blocks of 256 threads; a multiprocessor holds 2048 threads (use fewer or smaller blocks)",
    ),
    Example(
        "scheme=aa,boundary=implicit,block=32x1x1",
        "scheme=aa,boundary=implicit,block=32x1x1",
        "boundary=implicit is not supported for flow box (use branch): it has no solid cells to skip",
        case=SMALL,
        legal_case=solid(SMALL),
    ),
    Example(
        "scheme=aa,boundary=implicit,block=32x1x1",
        "scheme=pull,boundary=implicit,block=32x1x1",
        "boundary=implicit is not supported for scheme=pull (use branch): a skipped cell is missing in the "
        "lattice of the next step",
        case=solid(SMALL),
    ),
    Example(
        "sites_per_thread=512,prefetch_sites=3",
        "sites_per_thread=131072",
        "sites_per_thread=131072: a block takes 33,554,432 sites of a domain of 16,777,216 cells",
    ),
    Example(
        "sites_per_thread=4,prefetch_sites=3",
        "sites_per_thread=3,prefetch_sites=3",
        "prefetch_sites=3: a thread has 2 turns after its first",
    ),
    Example(
        "sites_per_thread=4,prefetch_sites=1,prefetch_to=shared",
        "sites_per_thread=4,prefetch_sites=1,prefetch_to=shared",
        "prefetch_to=shared is not supported by this device (use registers): it needs compute capability 8.0",
        limits=BARE,
    ),
    Example(
        "sites_per_thread=4,prefetch_sites=1,prefetch_to=shared,block=1024x1x1",
        "sites_per_thread=4,prefetch_sites=3,prefetch_to=shared,block=1024x1x1",
        "prefetch_to=shared with block 1024x1x1 needs 221,184 bytes of shared memory; a block of this device has "
        "98,304",
        limits=replace(DEVICE, shared_bytes_per_block=96 << 10),
    ),
    Example(
        "sites_per_thread=4,prefetch_sites=1,prefetch_to=shared,register_limit=8-blocks",
        "sites_per_thread=4,prefetch_sites=2,prefetch_to=shared,register_limit=8-blocks",
        "8 blocks of (36,864 + 1,024 reserved) bytes of shared memory; a multiprocessor has 233,472",
    ),
    Example(
        "scheme=esoteric-twist,links=three_pointers",
        "scheme=aa,links=three_pointers",
        "links=three_pointers is not supported for scheme=aa (use six_pointers): its pointers lead to all sides",
    ),
    Example(
        "scheme=esoteric-twist,links=three_pointers",
        "scheme=pull,links=three_pointers",
        "links=three_pointers is not supported for scheme=pull (use links=all): only pointers of esoteric-twist and aa "
        "are chased",
    ),
    Example(
        "scheme=aa,boundary=implicit,links=six_pointers",
        "scheme=aa,links=six_pointers",
        "links=six_pointers is not supported for boundary=branch (use implicit): chains end at cut links",
        case=solid(SMALL),
    ),
    Example(
        "index_bits=64,scheme=aa,layout=aos",
        "index_bits=64,scheme=aa,layout=aos",
        "index_bits=64 is the same as 0: 12,880,190,592 elements need as many",
        case=sized(CASE, 512, 512, 862),
        legal_case=CASE,
    ),
    Example(
        "launch=dependent",
        "launch=dependent",
        "launch=dependent is not supported by this device (use call or graph): it needs compute capability 9.0",
        limits=BARE,
    ),
    Example(
        "",
        "",
        "grid 65536x1x1 for block 256x1x1; this device allows 65535x65535x65535",
        limits=replace(DEVICE, grid=(65535, 65535, 65535)),
    ),
    Example(
        "",
        "",
        "68,719,476,864 nodes of domain 4096x4096x4096; a word of the index list reaches 1,073,741,824",
        case=sized(CASE, 4096, 4096, 4096),
        legal_case=SMALL,
    ),
    Example(
        "sites_per_thread=2,prefetch_sites=1",
        "prefetch_sites=1",
        "prefetch_sites=1 is not supported for sites_per_thread=1 (use prefetch_sites=0): a thread has no next site",
    ),
    Example(
        "layout=bundle,group=18",
        "layout=bundle,group=19",
        "group=19 is not supported for lattice=d3q19 (use 2 to 18): it has 19 directions",
    ),
    Example(
        "storage=fp64,compute=fp64", "storage=fp64", "compute=fp32 is narrower than storage=fp64; use compute=fp64"
    ),
    Example(
        "",
        "",
        "domain 256x256x256 needs 3.5 GiB in fp32 pull, sparse; the device has 1 GiB free",
        legal_case=SMALL,
        limits=SCARCE,
    ),
    Example(
        "boundary=branch",
        "boundary=predicated",
        "boundary=predicated is not supported for family sparse (use branch or implicit)",
    ),
)

EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "direct": DIRECT,
    "column": COLUMN,
    "sparse": SPARSE,
    "temporal-blocking": TEMPORAL_BLOCKING,
    "persistent": PERSISTENT,
    "face-exchange": FACE_EXCHANGE,
}
