"""Examples of rules of CUDA families: of each a configuration that it refuses, and a legal neighbour."""

from __future__ import annotations

from tests.catalogue.families.examples import BARE, CASE, SCARCE, Example, sized

BOX: tuple[Example, ...] = (
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
        "block 256x1x1 x 2 cells covers 512 cells of a row of 256 (use at most 224 threads along x)",
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
