"""Examples of rules of the family sparse on processors."""

from __future__ import annotations

from dataclasses import replace

from tests.catalogue.families.examples import BARE, CASE, DEVICE, SCARCE, SMALL, Example, sized, solid
from tests.catalogue.families.examples.cpu import OF_ONE_NODE

EXAMPLES: tuple[Example, ...] = (
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
        limits=OF_ONE_NODE,
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
