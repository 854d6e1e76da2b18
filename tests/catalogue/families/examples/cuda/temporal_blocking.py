"""Examples of rules of the CUDA family temporal-blocking: a configuration that each refuses, and a legal neighbour."""

from dataclasses import replace

from tests.catalogue.families.examples import (
    BARE,
    CASE,
    DEVICE,
    FLAT,
    MOMENTS,
    SCARCE,
    SMALL,
    Example,
    patched,
    sized,
    slipping,
    solid,
    walled,
)

EXAMPLES: tuple[Example, ...] = (
    Example(
        "steps=2",
        "steps=1",
        "steps=1 is not supported for representation=populations (use 2 to 8, or family direct or column)",
    ),
    Example(
        "representation=moments,steps=1",
        "representation=moments,steps=1",
        "representation=moments is not supported for collision=bgk (use populations, or "
        "case.collision=regularised): only regularised collision depends on moments alone",
        case=CASE,
        legal_case=MOMENTS,
    ),
    Example(
        "representation=moments,storage=fp16s",
        "representation=moments,storage=fp16c",
        "storage=fp16c is not supported for representation=moments (use fp16s or bf16): it holds numbers below "
        "2, and moments are larger",
        case=MOMENTS,
    ),
    Example(
        "representation=moments",
        "representation=moments",
        "slip face x- is not supported for representation=moments (use populations): its cells complete what "
        "arrives, population by population, which moments do not hold",
        case=slipping(MOMENTS),
        legal_case=walled(MOMENTS),
    ),
    Example(
        "flags=memory",
        "flags=memory",
        "a moving patch is not supported for family temporal-blocking (use direct): whole faces only",
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
        "flags=memory,chunk_planes=32",
        "chunk_planes=32",
        "flags=compiled is not supported for geometry sphere (use memory, or family sparse): solid cells have flags",
        case=solid(SMALL),
    ),
    Example(
        "rows=1",
        "rows=2",
        "rows=2 is not supported for lattice=d2q9 (use 1): in two dimensions warps go up along y on their own",
        case=FLAT,
    ),
    Example(
        "warp_sync=block",
        "warp_sync=neighbours",
        "warp_sync=neighbours is not supported for lattice=d2q9 (use block): in two dimensions warps go up along "
        "y on their own",
        case=FLAT,
    ),
    Example(
        "z_buffer=registers",
        "z_buffer=shared",
        "z_buffer=shared is not supported for lattice=d2q9 (use registers): in two dimensions warps go up along "
        "y on their own",
        case=FLAT,
    ),
    Example(
        "chunk_schedule=uniform",
        "chunk_schedule=tapered",
        "chunk_schedule=tapered is not supported for lattice=d2q9 (use uniform): in two dimensions warps go up "
        "along y on their own",
        case=FLAT,
    ),
    Example(
        "representation=moments,pack=2",
        "representation=moments,pack=3",
        "pack=3 is not supported for family temporal-blocking (use 1, 2, 4 or 8)",
        case=MOMENTS,
    ),
    Example(
        "representation=moments,pack=8",
        "representation=moments,pack=8",
        "pack=8 is not supported for lattice=d2q9: a cell has 6 moments",
        case=FLAT,
        legal_case=MOMENTS,
    ),
    Example(
        "pack=2,plane_fetch=cp_async,storage=fp16s,cells_per_thread=2",
        "pack=2,plane_fetch=cp_async,storage=fp16s",
        "plane_fetch=cp_async with 2 bytes at once: an asynchronous copy moves 4, 8 or 16",
    ),
    Example(
        "pack=2,cells_per_thread=4",
        "pack=4,cells_per_thread=4",
        "pack=4 is not supported for lattice=d3q19: the last 3 of 19 populations are no vector",
    ),
    Example(
        "cells_per_thread=2",
        "cells_per_thread=2",
        "domain 127x64x64: nx=127 is not a multiple of cells_per_thread=2",
        case=sized(CASE, 127, 64, 64),
        legal_case=sized(CASE, 128, 64, 64),
    ),
    Example(
        "plane_fetch=bulk",
        "plane_fetch=bulk",
        "plane_fetch=bulk with nx=130: bulk copies move multiples of 16 bytes, which is 4 cells of fp32 with pack=1",
        case=sized(CASE, 130, 64, 64),
        legal_case=sized(CASE, 132, 64, 64),
    ),
    Example("block=32x8x1", "block=64x8x1", "block 64x8x1 is not supported for temporal blocking (use 32 x n x 1)"),
    Example(
        "block=32x9x1,steps=4",
        "block=32x8x1,steps=4",
        "steps=4: the halo leaves 24 x 0 cells of a tile (use fewer steps, or a larger block)",
    ),
    Example(
        "z_buffer=registers,block=32x20x1,cells_per_thread=2",
        "z_buffer=shared,block=32x20x1,cells_per_thread=2,steps=4",
        "315,392 bytes of shared memory; a block of this device has 232,448",
    ),
    Example(
        "",
        "",
        "5,100,273,664 elements of a plane with cut links; at most 2,147,483,647",
        case=walled(sized(CASE, 4194304, 64, 64)),
        legal_case=sized(CASE, 1024, 64, 64),
    ),
    Example("chunk_planes=256", "chunk_planes=257", "chunk_planes=257: a column of this domain has 256 cells"),
    Example(
        "block=32x32x1",
        "block=32x33x1",
        "block 32x33x1 = 1056 threads; this device allows 1024 (use fewer along an axis)",
    ),
    Example(
        "storage=fp64,compute=fp64,cells_per_thread=2",
        "storage=fp64,compute=fp64,cells_per_thread=4",
        "cells_per_thread=4 x 8 bytes = 32; one access moves at most 16 bytes",
    ),
    Example(
        "register_limit=8-blocks",
        "register_limit=9-blocks",
        "9 blocks of 256 threads; a multiprocessor holds 2048 threads (use fewer or smaller blocks)",
    ),
    Example(
        "register_limit=64-registers",
        "register_limit=20-registers",
        "register_limit=20-registers is not supported (use 32-registers to 255-registers)",
    ),
    Example(
        "plane_fetch=cp_async",
        "plane_fetch=cp_async",
        "plane_fetch=cp_async is not supported by this device (use registers): it has no cp.async",
        limits=BARE,
    ),
    Example(
        "plane_fetch=bulk",
        "plane_fetch=bulk",
        "plane_fetch=bulk is not supported by this device (use cp_async): it has no bulk copies",
        limits=replace(DEVICE, bulk=False),
    ),
    Example(
        "register_limit=2-blocks",
        "register_limit=3-blocks",
        "3 blocks of (22,528 + 1,024 reserved) bytes of shared memory; a multiprocessor has 49,152",
        limits=BARE,
    ),
    Example(
        "rows=5,block=32x4x1,register_limit=32-registers",
        "rows=6,block=32x4x1,register_limit=32-registers",
        "steps=2 x rows=6 x cells_per_thread=1: 228 registers from plane to plane, more than 6 times the 32 that "
        "a thread has (use fewer of them, or a smaller block)",
    ),
    Example(
        "launch=dependent",
        "launch=dependent",
        "launch=dependent is not supported by this device (use call or graph): it needs compute capability 9.0",
        limits=BARE,
    ),
    Example(
        "representation=moments,chunk_planes=2",
        "representation=moments,chunk_planes=2",
        "grid 1x65536x1 for block 32x8x1; this device allows 2147483647x65535x65535",
        case=sized(FLAT, 64, 131_072, 1),
        legal_case=sized(FLAT, 64, 131_070, 1),
    ),
    Example(
        "plane_fetch=registers,overread=1",
        "plane_fetch=none,overread=1",
        "overread=1 is not supported for plane_fetch=none (use overread=0): no plane is read ahead",
    ),
    Example(
        "layout=rows,pack=2",
        "layout=soa,pack=2",
        "pack=2 is not supported for layout=soa (use pack=1): arrays of single values are what soa means",
    ),
    Example(
        "steps=8,block=32x20x1",
        "steps=9,block=32x20x1",
        "steps=9 is not supported for family temporal-blocking (use 1 to 8)",
    ),
    Example(
        "chunk_planes=1",
        "chunk_planes=0",
        "chunk_planes=0 is not supported for family temporal-blocking (use a whole number from 1 up)",
    ),
    Example(
        "storage=fp64,compute=fp64", "storage=fp64", "compute=fp32 is narrower than storage=fp64; use compute=fp64"
    ),
    Example(
        "",
        "",
        "domain 256x256x256 needs 2.375 GiB in fp32 push; the device has 1 GiB free, enough for 176x176x176",
        legal_case=sized(CASE, 64, 64, 64),
        limits=SCARCE,
    ),
)
