"""Examples of rules of the family moments-wavefront on processors."""

from __future__ import annotations

from dataclasses import replace

from tests.catalogue.families.examples import (
    BARE,
    CASE,
    DEVICE,
    MOMENTS,
    SMALL_MOMENTS,
    Example,
    patched,
    sized,
    slipping,
    solid,
    walled,
)
from tests.catalogue.families.examples.cpu import OF_ONE_NODE

EXAMPLES: tuple[Example, ...] = (
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
        limits=OF_ONE_NODE,
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
