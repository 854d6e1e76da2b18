"""Examples of rules of CPU families: of each a configuration that it refuses, and a legal neighbour."""

from __future__ import annotations

from dataclasses import replace

from tests.catalogue.families.examples import (
    BARE,
    CASE,
    DEVICE,
    MOMENTS,
    SMALL,
    Example,
    patched,
    sized,
    slipping,
    solid,
    walled,
)

OF_ONE_NODE = replace(DEVICE, numa_nodes=(16,))
OF_NODES = replace(DEVICE, numa_nodes=(8, 8, 0))
"""Two sockets, and fast memory."""

ROWS: tuple[Example, ...] = (
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
