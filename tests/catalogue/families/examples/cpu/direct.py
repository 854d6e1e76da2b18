"""Examples of rules of the family direct on processors."""

from __future__ import annotations

from tests.catalogue.families.examples import CASE, SCARCE, Example, sized, walled
from tests.catalogue.families.examples.cpu import OF_NODES, OF_ONE_NODE, ROWS

EXAMPLES: tuple[Example, ...] = (
    *ROWS,
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
        limits=OF_ONE_NODE,
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
        limits=OF_NODES,
    ),
    Example(
        "threads=16,pinning=cores",
        "threads=16,pinning=node-1",
        "pinning=node-1 with threads=16: this node has 8 processors",
        limits=OF_NODES,
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
