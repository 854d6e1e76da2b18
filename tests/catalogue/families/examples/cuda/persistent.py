"""Examples of rules of the CUDA family persistent: a configuration that each refuses, and a legal neighbour."""

from dataclasses import replace

from tests.catalogue.families.examples import (
    DEVICE,
    FLAT,
    SMALL,
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
        "representation=moments",
        "representation=moments",
        "representation=moments is not supported for collision=bgk (use populations, or "
        "case.collision=regularised): only regularised collision depends on moments alone",
        case=SMALL,
        legal_case=SMALL_MOMENTS,
    ),
    Example(
        "representation=moments,layout=rows",
        "representation=moments,layout=aos",
        "layout=aos is not supported for representation=moments (use soa or rows)",
        case=SMALL_MOMENTS,
    ),
    Example(
        "representation=moments,rows=1,block=32x4x1,cells_per_thread=8",
        "representation=moments,rows=2,block=32x4x1,cells_per_thread=8",
        "rows=2 is not supported for lattice=d2q9 (use 1): threads go up along y",
        case=FLAT,
    ),
    Example(
        "representation=moments,register_planes=2",
        "representation=moments,register_planes=3",
        "register_planes=3 is not supported for tile_planes=4: registers keep one plane of each two, three or "
        "more, by which the planes of a tile are divisible",
        case=SMALL_MOMENTS,
    ),
    Example(
        "",
        "",
        "slip face x- is not supported for family persistent (use direct): its kernels complete no populations",
        case=slipping(SMALL),
        legal_case=walled(SMALL),
    ),
    Example(
        "flags=memory",
        "flags=memory",
        "a moving patch is not supported for family persistent (use direct): whole faces only",
        case=patched(SMALL),
        legal_case=walled(SMALL),
    ),
    Example(
        "block=32x4x1",
        "block=16x4x1",
        "block 16x4x1 is not supported (use 32 x n x 1): tiles are whole rows",
        case=SMALL,
    ),
    Example("block=32x4x1", "block=32x5x1", "the domain 32x32x32 is not divisible into tiles of 32x5x4", case=SMALL),
    Example(
        "representation=moments,block=16x4x1,cells_per_thread=2",
        "representation=moments,block=64x4x1",
        "block 64x4x1 is not supported for moments (use for example 32x4x1): 1, 2, 4, 8, 16 or 32 threads have a "
        "row, whole warps the rows",
        case=SMALL_MOMENTS,
    ),
    Example(
        "representation=moments,block=16x4x1,cells_per_thread=2",
        "representation=moments,block=16x4x1",
        "block 16x4x1 x 1 cells is not supported for moments (use 32 cells along x): tiles are whole rows",
        case=SMALL_MOMENTS,
    ),
    Example(
        "representation=moments,block=32x4x1",
        "representation=moments,block=32x5x1",
        "32 rows of the domain 32x32x32 are not divisible into tiles of 5",
        case=SMALL_MOMENTS,
    ),
    Example(
        "representation=moments,register_planes=2",
        "representation=moments,register_planes=2",
        "register_planes=2: nz=31 of the domain 32x32x31 is not a multiple of the 2 planes of a pass",
        case=sized(SMALL_MOMENTS, 32, 32, 31),
        legal_case=SMALL_MOMENTS,
    ),
    Example(
        "block=32x32x1,tile_planes=1",
        "block=32x64x1,tile_planes=1",
        "block 32x64x1 = 2048 threads; this device allows 1024 (use fewer along an axis)",
        case=sized(SMALL, 32, 64, 32),
    ),
    Example(
        "min_blocks=16,tile_planes=1",
        "min_blocks=17,tile_planes=1",
        "17 blocks of 128 threads; a multiprocessor holds 2048 threads (use fewer or smaller blocks)",
        case=SMALL,
    ),
    Example(
        "representation=moments,register_planes=8,tile_planes=16",
        "representation=moments,register_planes=9,tile_planes=18",
        "register_planes=9 is not supported (use up to 8): each has a text",
        case=sized(SMALL_MOMENTS, 32, 32, 144),
    ),
    Example(
        "representation=moments,block=32x8x1,register_planes=8,tile_planes=16",
        "representation=moments,block=32x16x1,register_planes=8,tile_planes=16,rows=2",
        "moments of 18 cells of a thread at once: 180 registers; with these blocks it has 128 (use fewer "
        "cells_per_thread, rows or register_planes, or a smaller block)",
        case=SMALL_MOMENTS,
    ),
    Example(
        "block=32x8x1,tile_planes=4",
        "block=32x32x1,tile_planes=8",
        "a tile of 32x32x8 needs 608 KiB of shared memory; a block here has 227 KiB",
        case=SMALL,
    ),
    Example(
        "",
        "",
        "family persistent is not supported by this device: it has no cooperative launch",
        case=SMALL,
        limits=replace(DEVICE, cooperative=False),
    ),
    Example(
        "",
        "",
        "1024 blocks of 32x4x4 cells do not run at once: 132 multiprocessors hold 1 each",
        case=sized(SMALL, 32, 128, 128),
        legal_case=SMALL,
    ),
    Example(
        "flags=memory",
        "flags=memory",
        "flags=memory is not supported for flow box (use compiled): it has neither walls nor solid cells",
        case=SMALL,
        legal_case=walled(SMALL),
    ),
    Example(
        "flags=memory",
        "",
        "flags=compiled is not supported for geometry sphere (use memory, or family sparse): solid cells have flags",
        case=solid(SMALL),
    ),
    Example(
        "grid_sync=neighbours",
        "grid_sync=some",
        "grid_sync=some is not supported for family persistent (use all or neighbours)",
        case=SMALL,
    ),
    Example(
        "representation=moments,cells_per_thread=2,block=16x4x1",
        "cells_per_thread=2,block=16x4x1",
        "cells_per_thread=2 is not supported for representation=populations (use cells_per_thread=1): a thread "
        "has one column of its tile of populations",
        case=SMALL_MOMENTS,
    ),
    Example(
        "layout=tiled-cells,layout_tile=8x4x32",
        "layout=tiled-cells,layout_tile=8x4x64",
        "layout_tile=8x4x64 is larger than the domain 32x32x32; use a smaller tile",
        case=SMALL,
    ),
    Example(
        "index_bits=64",
        "index_bits=64",
        "index_bits=64 is the same as 0: 4,295,491,616 elements need as many",
        case=sized(SMALL, 32, 16384, 8192),
        legal_case=SMALL,
        limits=replace(DEVICE, multiprocessors=2**30),
    ),
    Example(
        "",
        "",
        "grid 1x8x8 for block 32x4x1; this device allows 1024x4x8",
        case=SMALL,
        limits=replace(DEVICE, grid=(1024, 4, 8)),
    ),
    Example(
        "storage=fp64,compute=fp64,block=32x2x1",
        "storage=fp64,block=32x2x1",
        "compute=fp32 is narrower than storage=fp64; use compute=fp64",
        case=SMALL,
    ),
    Example(
        "",
        "",
        "domain 32x32x32 needs 4.75 MiB in fp32 pull; the device has 1 MiB free, enough for 16x16x16",
        case=SMALL,
        limits=replace(DEVICE, memory_bytes=2**20),
    ),
)
