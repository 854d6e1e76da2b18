"""Examples of rules of the family column on CUDA."""

from __future__ import annotations

from tests.catalogue.families.examples import BARE, CASE, SMALL, Example, patched, sized, solid, walled
from tests.catalogue.families.examples.cuda import BOX

EXAMPLES: tuple[Example, ...] = (
    *BOX,
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
