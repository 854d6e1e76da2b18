"""Examples of rules of the family sparse on CUDA."""

from __future__ import annotations

from dataclasses import replace

from tests.catalogue.families.examples import BARE, CASE, DEVICE, SCARCE, SMALL, Example, sized, solid

EXAMPLES: tuple[Example, ...] = (
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
