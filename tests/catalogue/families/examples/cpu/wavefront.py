"""Examples of rules of the family wavefront on processors."""

from __future__ import annotations

from tests.catalogue.families.examples import CASE, SCARCE, Example, sized
from tests.catalogue.families.examples.cpu import OF_ONE_NODE, ROWS

EXAMPLES: tuple[Example, ...] = (
    *ROWS,
    Example(
        "",
        "pinning=node-0",
        "pinning=node-0 is not supported here (use none or cores): this device has one NUMA node",
        limits=OF_ONE_NODE,
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
