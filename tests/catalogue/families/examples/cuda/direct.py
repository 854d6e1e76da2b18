"""Examples of rules of the family direct on CUDA."""

from __future__ import annotations

from tests.catalogue.families.examples import CASE, SMALL, Example, patched, sized, solid, walled
from tests.catalogue.families.examples.cuda import BOX

EXAMPLES: tuple[Example, ...] = (
    *BOX,
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
