"""Examples of rules of CPU families: of each a configuration that it refuses, and a legal neighbour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.catalogue.families.rule_examples import (
    BARE,
    CASE,
    DEVICE,
    MOMENTS,
    SCARCE,
    SMALL,
    SMALL_MOMENTS,
    Example,
    patched,
    sized,
    slipping,
    solid,
    walled,
)

_OF_ONE_NODE = replace(DEVICE, numa_nodes=(16,))
_OF_NODES = replace(DEVICE, numa_nodes=(8, 8, 0))
"""Two sockets, and fast memory."""

_ROWS: tuple[Example, ...] = (
    Example(
        "",
        "",
        "flags=compiled is not supported for a patch on face y+ (use memory)",
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
        "flags=memory",
        "",
        "flags=compiled is not supported for geometry sphere (use memory, or family sparse): solid cells have flags",
        case=solid(SMALL),
    ),
    Example("", "", "vector_bits=512; this CPU has 128, and two registers make a vector", limits=BARE),
    Example(
        "",
        "",
        "domain 60x64x64: nx=60 is not a multiple of 16 lanes of fp32 (use wrap=select or vector_bits=0)",
        case=sized(CASE, 60, 64, 64),
        legal_case=sized(CASE, 64, 64, 64),
    ),
    Example(
        "vector_bits=0,wrap=select,row_offset=0",
        "vector_bits=512,wrap=select,row_offset=0",
        "vector_bits=512 is not supported for wrap=select (use 0): vectors need ghost columns",
    ),
    Example(
        "layout=aosoa,width=16",
        "layout=aosoa,width=8",
        "vector_bits=512 is not supported for layout=aosoa: its runs of 8 cells are not multiples of 16 lanes",
    ),
    Example(
        "row_offset=1",
        "row_offset=0",
        "row_offset=0 is not supported for wrap=ghost (use 1 or more): it needs a ghost column",
    ),
    Example(
        "layout=aosoa,width=16,row_offset=32",
        "layout=aosoa,width=16,row_offset=8",
        "row_offset=8 is not a multiple of the runs of 16 cells of aosoa",
    ),
    Example(
        "stride=17891328",
        "stride=17891327",
        "stride=17891327: the direction arrays of domain 256x256x256 have 17891328 elements",
    ),
    Example(
        "stride=20000000",
        "stride=20000000,padding=16",
        "stride=20000000 is not supported for padding=16 (use 0): the stride includes it",
    ),
    Example(
        "collision_passes=one",
        "collision_passes=two",
        "collision_passes=two is not supported for a slip face x- (use one): what completes cells at such a face "
        "is not in memory",
        case=slipping(CASE),
    ),
    Example(
        "collision_passes=minimal",
        "collision_passes=minimal",
        "collision_passes=minimal is not supported for collision=regularised (use two): bgk and trt have a form "
        "of fewer instructions",
        case=MOMENTS,
        legal_case=CASE,
    ),
    Example(
        "layout=aosoa,width=16",
        "layout=aosoa,width=16,collision_passes=pipelined",
        "collision_passes=pipelined is not supported for layout=aosoa (use one): cells that lie in groups would "
        "be put together twice",
    ),
    Example("threads=16", "threads=17", "threads=17; this device has 16 cores"),
    Example(
        "pages=huge",
        "pages=huge",
        "pages=huge is not supported here (use normal): this system gives no transparent huge pages of 2 MiB",
        limits=replace(DEVICE, huge_pages=False),
    ),
    Example(
        "layout=bundle,group=18,vector_bits=0",
        "layout=bundle,group=19,vector_bits=0",
        "group=19 is not supported for lattice=d3q19 (use 2 to 18): it has 19 directions",
    ),
    Example(
        "layout=tiled,layout_tile=16x4x256",
        "layout=tiled,layout_tile=16x4x512",
        "layout_tile=16x4x512 is larger than the domain 256x256x256; use a smaller tile",
    ),
    Example(
        "storage=fp64,compute=fp64", "storage=fp64", "compute=fp32 is narrower than storage=fp64; use compute=fp64"
    ),
)
"""Of both families of rows of a box of populations."""

DIRECT: tuple[Example, ...] = (
    *_ROWS,
    Example(
        "storage=fp32-unshifted",
        "storage=fp32-unshifted,collision_passes=two",
        "collision_passes=two is not supported for storage=fp32-unshifted (use one): each load would take the weight "
        "again",
    ),
    Example(
        "",
        "",
        "domain 256x256x256 needs 2.533 GiB in fp32 pull; the device has 1 GiB free, enough for 176x176x176",
        legal_case=sized(CASE, 64, 64, 64),
        limits=SCARCE,
    ),
    Example(
        "parallel_loop=zy",
        "parallel_loop=yz",
        "parallel_loop=yz is not supported (use z, zy, or tiles such as tile-8x4)",
    ),
    Example(
        "parallel_loop=tile-8x4",
        "parallel_loop=tile-8",
        "parallel_loop=tile-8 is not supported (use z, zy, or tiles such as tile-8x4)",
    ),
    Example(
        "scheme=ghost-cell,parallel_loop=tile-8x4",
        "scheme=ghost-cell",
        "parallel_loop=z is not supported for scheme=ghost-cell (use tile-8x4)",
    ),
    Example(
        "scheme=swap-ordered,vector_bits=0",
        "scheme=swap-ordered,vector_bits=0,wrap=select,row_offset=0",
        "wrap=select is not supported for scheme=swap-ordered (use ghost): the last cell of a row swaps over "
        "ghost columns",
    ),
    Example(
        "scheme=swap-ordered",
        "scheme=swap-ordered,flags=memory",
        "flags=memory is not supported for scheme=swap-ordered (use compiled): a row knows by faces alone which "
        "swaps are due",
        case=walled(CASE),
    ),
    Example(
        "scheme=swap-ordered",
        "scheme=swap-ordered,collision_passes=two",
        "collision_passes=two is not supported for scheme=swap-ordered (use one): a pair is not left where it was read",
    ),
    Example(
        "streaming_stores=1,row_padding=15",
        "streaming_stores=1,row_padding=15,vector_bits=256",
        "streaming_stores=1 with 256 bits of fp32: a store must fill a cache line of 64 bytes",
    ),
    Example(
        "streaming_stores=1,row_padding=15",
        "streaming_stores=1,row_padding=15,layout=aosoa,width=16",
        "streaming_stores=1 is not supported for layout=aosoa (use soa)",
    ),
    Example(
        "streaming_stores=1,row_padding=15",
        "streaming_stores=1,row_padding=14",
        "streaming_stores=1: row_offset=16, row length 287 and padding=0 must be multiples of 16 elements",
    ),
    Example(
        "streaming_stores=1,row_padding=15,stride=20000000",
        "streaming_stores=1,row_padding=15,stride=20000001",
        "streaming_stores=1: row_offset=16, row length 288 and stride=20000001 must be multiples of 16 elements",
    ),
    Example(
        "streaming_stores=1,row_padding=15",
        "streaming_stores=2,row_padding=15",
        "streaming_stores=2 is not supported for family direct (use 0 or 1)",
    ),
    Example(
        "streaming_stores=1,row_padding=15",
        "streaming_stores=1,row_padding=15,scheme=push",
        "streaming_stores=1 is not supported for scheme=push (use streaming_stores=0): only pull, and every other step "
        "of AA, write nothing but whole lines of the cells themselves",
    ),
    Example(
        "scheme=swap-ordered",
        "scheme=swap-ordered,parallel_loop=zy",
        "parallel_loop=zy is not supported for scheme=swap-ordered (use parallel_loop=z): a thread takes the "
        "rows of a slab in order",
    ),
    Example(
        "wrap=ghost", "wrap=arithmetic", "wrap=arithmetic is not supported for family direct (use ghost or select)"
    ),
    Example(
        "vector_bits=256", "vector_bits=128", "vector_bits=128 is not supported for family direct (use 0, 256 or 512)"
    ),
    Example(
        "row_padding=2",
        "row_padding=-2",
        "row_padding=-2 is not supported for family direct (use a whole number from 0 up)",
    ),
    Example(
        "vector_bits=0,wrap=select,row_offset=0",
        "vector_bits=0,wrap=select,row_offset=16",
        "row_offset=16 is not supported for wrap=select (use row_offset=0): rows start at 0",
    ),
    Example(
        "prefetch_local=64",
        "prefetch_local=-64",
        "prefetch_local=-64 is not supported for family direct (use a whole number from 0 up)",
    ),
    Example(
        "prefetch_propagated=64,vector_bits=256",
        "prefetch_propagated=64,vector_bits=0",
        "prefetch_propagated=64 is not supported for vector_bits=0 (use prefetch_propagated=0): a scalar loop is "
        "vectorised by the compiler",
    ),
    Example(
        "stride=20000000", "stride=-1", "stride=-1 is not supported for family direct (use a whole number from 0 up)"
    ),
    Example(
        "row_tail=peeled", "row_tail=after", "row_tail=after is not supported for family direct (use in_loop or peeled)"
    ),
    Example(
        "row_tail=peeled,vector_bits=256",
        "row_tail=peeled,vector_bits=0",
        "row_tail=peeled is not supported for vector_bits=0 (use row_tail=in_loop): a scalar loop is vectorised "
        "by the compiler",
    ),
    Example(
        "scheme=swap-ordered",
        "scheme=swap-ordered,row_tail=peeled",
        "row_tail=peeled is not supported for scheme=swap-ordered (use row_tail=in_loop): its loop fills no "
        "cells beyond a row's end",
    ),
    Example(
        "collision_passes=pipelined",
        "collision_passes=three",
        "collision_passes=three is not supported for family direct (use one, two, pipelined or minimal)",
    ),
    Example(
        "collision_passes=two,vector_bits=256",
        "collision_passes=two,vector_bits=0",
        "collision_passes=two is not supported for vector_bits=0 (use collision_passes=one): a scalar loop is "
        "vectorised by the compiler",
    ),
    Example(
        "scheme=esoteric-pull,pointer_swap=1",
        "scheme=aa,pointer_swap=1",
        "pointer_swap=1 is not supported for scheme=aa (use pointer_swap=0): its steps differ in more than "
        "slots, or not at all",
    ),
    Example(
        "pinning=cores",
        "pinning=tight",
        "pinning=tight is not supported (use none, cores, or a NUMA node such as node-0)",
    ),
    Example(
        "",
        "pinning=node-0",
        "pinning=node-0 is not supported here (use none or cores): this device has one NUMA node",
        limits=_OF_ONE_NODE,
    ),
    Example(
        "",
        "pinning=node-0",
        "pinning=node-0 is not supported here (use none or cores): the NUMA nodes of this device are not known",
    ),
    Example(
        "threads=8,pinning=cores",
        "threads=8,pinning=node-3",
        "pinning=node-3 is not supported here (use none or cores): this device has the NUMA nodes 0 to 2",
        limits=_OF_NODES,
    ),
    Example(
        "threads=16,pinning=cores",
        "threads=16,pinning=node-1",
        "pinning=node-1 with threads=16: this node has 8 processors",
        limits=_OF_NODES,
    ),
    Example(
        "pages=huge", "pages=large", "pages=large is not supported for family direct (use default, normal or huge)"
    ),
    Example(
        "threads=2,first_touch=parallel",
        "threads=2,first_touch=late",
        "first_touch=late is not supported for family direct (use serial or parallel)",
    ),
    Example(
        "threads=2,first_touch=parallel",
        "first_touch=parallel",
        "first_touch=parallel is not supported for threads=1 (use first_touch=serial): one thread works on all rows",
    ),
    Example("threads=1", "threads=0", "threads=0 is not supported for family direct (use a whole number from 1 up)"),
)

WAVEFRONT: tuple[Example, ...] = (
    *_ROWS,
    Example(
        "",
        "pinning=node-0",
        "pinning=node-0 is not supported here (use none or cores): this device has one NUMA node",
        limits=_OF_ONE_NODE,
    ),
    Example(
        "",
        "",
        "domain 256x256x256 needs 1.266 GiB in fp32 aa; the device has 1 GiB free, enough for 224x224x224",
        legal_case=sized(CASE, 64, 64, 64),
        limits=SCARCE,
    ),
    Example(
        "scheme=aa",
        "scheme=pull",
        "scheme=pull is not supported for family wavefront (use aa, esoteric-twist or esoteric-pull): each step "
        "must be one pass over one lattice in place, in any order",
    ),
    Example(
        "prefetch_rows=1",
        "prefetch_rows=1,layout=aosoa,width=16",
        "prefetch_rows=1 is not supported for layout=aosoa (use soa)",
    ),
    Example("steps=16", "steps=17", "steps=17 is not supported for family wavefront (use 2 to 16)"),
    Example("steps=2", "steps=1", "steps=1 is not supported for family wavefront (use 2 to 16)"),
    Example("tile=8x1", "tile=8x0", "tile=8x0 is not supported (each extent is at least 1)"),
    Example("prefetch_rows=1", "prefetch_rows=2", "prefetch_rows=2 is not supported for family wavefront (use 0 or 1)"),
    Example(
        "vector_bits=256,prefetch_rows=1",
        "vector_bits=0,prefetch_rows=1",
        "prefetch_rows=1 is not supported for vector_bits=0 (use prefetch_rows=0): a scalar loop is vectorised "
        "by the compiler",
    ),
)

SPARSE: tuple[Example, ...] = (
    Example(
        "scheme=pull",
        "scheme=ghost-cell",
        "scheme=ghost-cell is not supported for family sparse (use pull): its blocks are cut out of a box",
    ),
    Example(
        "scheme=swap",
        "scheme=swap-ordered",
        "scheme=swap-ordered is not supported for family sparse (use pull): its order is that of rows",
    ),
    Example("", "", "vector_bits=512; this CPU has 128, and two registers make a vector", limits=BARE),
    Example(
        "layout=aosoa,width=16",
        "layout=aosoa,width=8",
        "vector_bits=512 is not supported for layout=aosoa: its runs of 8 cells are not multiples of 16 lanes",
    ),
    Example(
        "",
        "pinning=node-0",
        "pinning=node-0 is not supported here (use none or cores): this device has one NUMA node",
        limits=_OF_ONE_NODE,
    ),
    Example("threads=16", "threads=17", "threads=17; this device has 16 cores"),
    Example(
        "pages=huge",
        "pages=huge",
        "pages=huge is not supported here (use normal): this system gives no transparent huge pages of 2 MiB",
        limits=replace(DEVICE, huge_pages=False),
    ),
    Example(
        "scheme=aa,boundary=implicit",
        "scheme=aa,boundary=implicit",
        "boundary=implicit is not supported for flow box (use branch): it has no solid cells to skip",
        case=SMALL,
        legal_case=solid(SMALL),
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
        "",
        "",
        "68,719,476,864 nodes of domain 4096x4096x4096; a word of the index list reaches 1,073,741,824",
        case=sized(CASE, 4096, 4096, 4096),
        legal_case=SMALL,
    ),
    Example(
        "layout=bundle,group=18,vector_bits=0",
        "layout=bundle,group=19,vector_bits=0",
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
        "gather=lanes",
        "gather=lanes,vector_bits=0",
        "gather=lanes is not supported for vector_bits=0 (use gather=vector): a scalar loop is vectorised by the "
        "compiler",
    ),
    Example(
        "prefetch_index=64",
        "prefetch_index=64,vector_bits=0",
        "prefetch_index=64 is not supported for vector_bits=0 (use prefetch_index=0): a scalar loop is "
        "vectorised by the compiler",
    ),
    Example(
        "prefetch_propagated=64,scheme=esoteric-twist",
        "prefetch_propagated=64,scheme=esoteric-twist,links=three_pointers",
        "prefetch_propagated=64 is not supported for links=three_pointers (use prefetch_propagated=0): later nodes are "
        "known when their pointers have been chased",
    ),
    Example(
        "streaming_stores=1,layout=aosoa,width=32",
        "streaming_stores=1,layout=aosoa,width=32,vector_bits=256",
        "streaming_stores=1 with 256 bits of fp32: a store must fill a cache line of 64 bytes",
    ),
    Example(
        "streaming_stores=1,padding=16",
        "streaming_stores=1,padding=8",
        "streaming_stores=1: padding=8 must be a multiple of 16 elements",
    ),
    Example(
        "prefetch_local=64",
        "prefetch_local=64,vector_bits=0",
        "prefetch_local=64 is not supported for vector_bits=0 (use prefetch_local=0): a scalar loop is vectorised by "
        "the compiler",
    ),
)

MOMENTS_WAVEFRONT: tuple[Example, ...] = (
    Example(
        "",
        "",
        "family moments-wavefront is not supported for collision=bgk (use family direct, or "
        "case.collision=regularised): only regularised collision depends on moments alone",
        case=CASE,
        legal_case=MOMENTS,
    ),
    Example(
        "storage=fp16s",
        "storage=fp16c",
        "storage=fp16c is not supported for family moments-wavefront (use fp16s or bf16): it holds numbers below "
        "2, and moments are larger",
        case=MOMENTS,
    ),
    Example(
        "",
        "",
        "slip face x- is not supported for family moments-wavefront (use family direct): its cells complete what "
        "arrives, population by population, which moments do not hold",
        case=slipping(MOMENTS),
        legal_case=walled(MOMENTS),
    ),
    Example(
        "",
        "",
        "a moving patch is not supported for family moments-wavefront (use direct): whole faces only",
        case=patched(MOMENTS),
        legal_case=walled(MOMENTS),
    ),
    Example(
        "flags=compiled",
        "flags=memory",
        "flags=memory is not supported for moments without solid cells (use compiled): faces are compiled in",
        case=walled(MOMENTS),
    ),
    Example(
        "flags=memory",
        "",
        "flags=compiled is not supported for geometry sphere (use memory, or family sparse): solid cells have flags",
        case=solid(SMALL_MOMENTS),
    ),
    Example(
        "tile=256x8x32", "tile=250x8x32", "tile=250x8x32: rows of a tile have a multiple of 16 cells", case=MOMENTS
    ),
    Example(
        "tile=256x2x32", "tile=256x1x32", "tile=256x1x32: what a cell sends may pass 2 rows of a tile", case=MOMENTS
    ),
    Example("", "", "vector_bits=512; this CPU has 128, and two registers make a vector", case=MOMENTS, limits=BARE),
    Example(
        "",
        "",
        "domain 60x64x64: nx=60 is not a multiple of 16 lanes of fp32 (use vector_bits=0)",
        case=sized(MOMENTS, 60, 64, 64),
        legal_case=sized(MOMENTS, 64, 64, 64),
    ),
    Example(
        "streaming_stores=1",
        "streaming_stores=1,vector_bits=256",
        "streaming_stores=1 with 256 bits of fp32: a store must fill a cache line of 64 bytes",
        case=MOMENTS,
    ),
    Example(
        "streaming_stores=1",
        "streaming_stores=1,row_padding=14",
        "streaming_stores=1: row_offset=16, row length 286 and padding=0 must be multiples of 16 elements",
        case=MOMENTS,
    ),
    Example(
        "streaming_stores=1",
        "streaming_stores=1,layout=rows",
        "streaming_stores=1 is not supported for layout=rows (use soa)",
        case=MOMENTS,
    ),
    Example(
        "prefetch_rows=1,steps=2",
        "prefetch_rows=1,steps=1",
        "prefetch_rows=1 is not supported for steps=1 (use 0): there is no work in a cache meanwhile",
        case=MOMENTS,
    ),
    Example(
        "prefetch_rows=1,steps=2",
        "prefetch_rows=1,steps=2,layout=rows",
        "prefetch_rows=1 is not supported for layout=rows (use soa)",
        case=MOMENTS,
    ),
    Example(
        "",
        "pinning=node-0",
        "pinning=node-0 is not supported here (use none or cores): this device has one NUMA node",
        limits=_OF_ONE_NODE,
        case=MOMENTS,
    ),
    Example("threads=16", "threads=17", "threads=17; this device has 16 cores", case=MOMENTS),
    Example(
        "pages=huge",
        "pages=huge",
        "pages=huge is not supported here (use normal): this system gives no transparent huge pages of 2 MiB",
        case=MOMENTS,
        limits=replace(DEVICE, huge_pages=False),
    ),
    Example(
        "storage=fp64,compute=fp64",
        "storage=fp64",
        "compute=fp32 is narrower than storage=fp64; use compute=fp64",
        case=MOMENTS,
    ),
    Example(
        "",
        "",
        "domain 256x256x256 needs 1.331 GiB in fp32 pull; the device has 512 MiB free, enough for 176x176x176",
        case=MOMENTS,
        legal_case=sized(MOMENTS, 64, 64, 64),
        limits=replace(DEVICE, memory_bytes=2**29),
    ),
    Example("steps=8", "steps=9", "steps=9 is not supported for family moments-wavefront (use 1 to 8)", case=MOMENTS),
)

EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "direct": DIRECT,
    "wavefront": WAVEFRONT,
    "sparse": SPARSE,
    "moments-wavefront": MOMENTS_WAVEFRONT,
}
