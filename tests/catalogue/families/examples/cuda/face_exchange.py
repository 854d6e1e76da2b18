"""Examples of rules of the CUDA family face-exchange: a configuration that each refuses, and a legal neighbour."""

from tests.catalogue.families.examples import (
    BARE,
    CASE,
    MOMENTS,
    SCARCE,
    SMALL_MOMENTS,
    Example,
    patched,
    sized,
    slipping,
    solid,
    walled,
)

EXAMPLES: tuple[Example, ...] = (
    Example(
        "",
        "",
        "family face-exchange is not supported for collision=bgk (use family direct, or "
        "case.collision=regularised): only regularised collision depends on moments alone",
        case=CASE,
        legal_case=MOMENTS,
    ),
    Example(
        "storage=fp16s",
        "storage=fp16c",
        "storage=fp16c is not supported for family face-exchange (use fp16s or bf16): it holds numbers below "
        "2, and moments are larger",
        case=MOMENTS,
    ),
    Example(
        "",
        "",
        "slip face x- is not supported for family face-exchange (use family direct): its cells complete what "
        "arrives, population by population, which moments do not hold",
        case=slipping(MOMENTS),
        legal_case=walled(MOMENTS),
    ),
    Example(
        "flags=memory",
        "flags=memory",
        "a moving patch is not supported for family face-exchange (use direct): whole faces only",
        case=patched(MOMENTS),
        legal_case=walled(MOMENTS),
    ),
    Example(
        "tile=32x8x4",
        "tile=32x8x4",
        "tile 32x8x4 needs 74.26 KiB of shared memory; a block here has 48 KiB",
        case=MOMENTS,
        limits=BARE,
    ),
    Example(
        "flags=memory",
        "flags=memory",
        "flags=memory is not supported for flow box (use compiled): it has neither walls nor solid cells",
        case=MOMENTS,
        legal_case=walled(MOMENTS),
    ),
    Example(
        "flags=memory",
        "",
        "flags=compiled is not supported for geometry sphere (use memory, or family sparse): solid cells have flags",
        case=solid(SMALL_MOMENTS),
    ),
    Example(
        "tile=16x8x8",
        "tile=32x8x8",
        "block 32x8x8 = 2048 threads; this device allows 1024 (use fewer along an axis)",
        case=MOMENTS,
    ),
    Example(
        "padding=1,layout=soa",
        "padding=-1,layout=soa",
        "padding=-1 is not supported for family face-exchange (use a whole number from 0 up)",
        case=MOMENTS,
    ),
    Example(
        "layout=soa,tile=8x8x8",
        "layout=soa,tile=8x8x8",
        "tile 8x8x8 is larger than the domain 8x4x8 along y or z",
        case=sized(MOMENTS, 8, 4, 8),
        legal_case=sized(MOMENTS, 8, 8, 8),
    ),
    Example(
        "tile=32x4x4", "tile=64x4x4", "tile 64x4x4 covers 64 cells of a row of 32", case=sized(MOMENTS, 32, 32, 32)
    ),
    Example(
        "register_limit=2-blocks",
        "register_limit=5-blocks",
        "5 blocks of 512 threads; a multiprocessor holds 2048 threads (use fewer or smaller blocks)",
        case=MOMENTS,
    ),
    Example(
        "register_limit=32-registers",
        "register_limit=31-registers",
        "register_limit=31-registers is not supported (use 32-registers to 255-registers)",
        case=MOMENTS,
    ),
    Example(
        "layout=aosoa,width=32",
        "layout=aosoa,width=48",
        "domain 256x256x256: nx=256 is not a multiple of the AoSoA width=48",
        case=MOMENTS,
    ),
    Example(
        "prefetch_to=shared",
        "prefetch_to=shared,storage=fp16s",
        "prefetch_to=shared is not supported for storage=fp16s with compute=fp32 (use registers): a copy does "
        "not convert",
        case=MOMENTS,
    ),
    Example(
        "prefetch_to=shared",
        "prefetch_to=shared",
        "prefetch_to=shared is not supported by this device (use registers): it needs compute capability 8.0",
        case=MOMENTS,
        limits=BARE,
    ),
    Example(
        "register_limit=2-blocks",
        "register_limit=2-blocks",
        "2 blocks of (37,448 + 1,024 reserved) bytes of shared memory; a multiprocessor has 49,152",
        case=MOMENTS,
        limits=BARE,
    ),
    Example(
        "index_bits=64",
        "index_bits=64",
        "index_bits=64 is the same as 0: 10,747,944,960 elements need as many",
        case=sized(MOMENTS, 1024, 1024, 1024),
        legal_case=MOMENTS,
    ),
    Example(
        "launch=dependent",
        "launch=dependent",
        "launch=dependent is not supported by this device (use call or graph): it needs compute capability 9.0",
        case=MOMENTS,
        limits=BARE,
    ),
    Example(
        "tile=8x1x1,layout=soa",
        "tile=8x1x1,layout=soa",
        "grid 1x65536x8 for block 8x1x1; this device allows 2147483647x65535x65535",
        case=sized(MOMENTS, 8, 65536, 8),
        legal_case=sized(MOMENTS, 8, 65535, 8),
    ),
    Example(
        "layout=tiled-cells,layout_tile=8x4x256",
        "layout=tiled-cells,layout_tile=8x4x512",
        "layout_tile=8x4x512 is larger than the domain 256x256x256; use a smaller tile",
        case=MOMENTS,
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
        "domain 512x512x512 needs 6.875 GiB in fp32 pull; the device has 1 GiB free, enough for 256x256x256",
        case=sized(MOMENTS, 512, 512, 512),
        legal_case=MOMENTS,
        limits=SCARCE,
    ),
)
