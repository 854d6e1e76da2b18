"""What a kernel of moments cannot be, and why. The rules of the catalogue ask here first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig, defaults
from lbmtune.catalogue.march import WARP, sector_cells, shared_bytes, tile
from lbmtune.catalogue.moments import orders

_MARCHES = "its blocks march over a box, with loads, stores and neighbours of their own"
_FIXED = {
    "scheme": "its neighbours' moments are read from one copy and written to the other",
    "padding": _MARCHES,
    "wrap": _MARCHES,
    "boundary": _MARCHES,
    "load_hint": _MARCHES,
    "store_hint": _MARCHES,
    "l2_prefetch": _MARCHES,
    "index_bits": _MARCHES,
    "block_order": _MARCHES,
    "macroscopics": "density and velocity are among what it keeps",
}
"""Axes that have no say, and why."""
MAX_STEPS, MAX_ROWS, PACKS = 8, 8, (1, 2, 4, 8)


def why_no_moments(case: Case, config: CudaConfig, shared_limit_bytes: int) -> str | None:
    """The first reason, or None."""
    return next((reason for rule in _RULES if (reason := rule(case, config, shared_limit_bytes))), None)


def why_no_march(config: CudaConfig) -> str | None:
    """What a kernel of populations leaves to those of moments."""
    for name in ("steps", "rows", "pack"):
        if getattr(config, name) != 1:
            return f"{name} {getattr(config, name)} with representation populations: only kernels of moments have them"
    return None


def _physics(case: Case, config: CudaConfig, _: int) -> str | None:
    if case.collision != "regularised":
        return f"representation moments with collision {case.collision}: only regularised depends on nothing else"
    if case.local_faces:
        face, kind = case.local_faces[0]
        where = f"{kind} face {'xyz'[face // 2]}{'+' if face % 2 else '-'}"
        return f"{where} with representation moments: its cells complete what arrives, which is not kept"
    if config.indirect:
        return f"representation moments with {config.addressing} addressing: blocks march over a box"
    return None


def _other_axes(_case: Case, config: CudaConfig, _: int) -> str | None:
    usual = defaults("cuda")
    for name, reason in _FIXED.items():
        if getattr(config, name) != usual[name]:
            return f"{name} {getattr(config, name)} with representation moments: {reason}"
    return None


def _format(case: Case, config: CudaConfig, _: int) -> str | None:
    if config.storage == "fp16c":
        return "storage fp16c with representation moments: it holds numbers below 2, and moments are larger"
    if config.layout not in ("soa", "rows"):
        return f"layout {config.layout} with representation moments: soa and rows exist"
    if config.pack not in PACKS or (config.layout == "soa" and config.pack > 1):
        return f"pack {config.pack} with layout {config.layout}: 1 for soa, {_list(PACKS)} for rows"
    if config.pack > len(orders(case.stencil)):
        return f"pack {config.pack} with lattice {case.lattice}: a cell has {len(orders(case.stencil))} moments"
    cells = config.cells_per_thread
    rest = len(orders(case.stencil)) % config.pack or config.pack
    least = min(rest, config.pack) * cells * config.stored.bytes
    if config.prefetch == 2 and least < 4:
        return f"prefetch 2 with {least} bytes at once: an asynchronous copy moves 4, 8 or 16"
    if config.pack * cells * config.stored.bytes > 32:
        return f"pack {config.pack} x {cells} cells x {config.stored.bytes} bytes: at most 32 at once"
    if case.domain[0] % cells:
        return f"domain of {case.domain[0]} cells along x is not divisible by cells_per_thread {cells}"
    return None


def _block(case: Case, config: CudaConfig, shared_limit_bytes: int) -> str | None:
    x, _, z = config.block
    if (x, z) != (WARP, 1):
        return f"block {'x'.join(map(str, config.block))} with representation moments: its blocks are {WARP} x n x 1"
    if not 1 <= config.steps <= MAX_STEPS or not 1 <= config.rows <= MAX_ROWS:
        return f"steps {config.steps} and rows {config.rows}: 1 to {MAX_STEPS} and 1 to {MAX_ROWS}"
    if case.stencil.dimensions == 2 and config.rows > 1:
        return f"rows {config.rows} with lattice {case.lattice}: warps march along y, row by row"
    width, height = tile(case.stencil, config)
    if width < sector_cells(config) or height < 1:
        return f"steps {config.steps}: the halo leaves {max(width, 0)} x {max(height, 0)} cells of a tile"
    if config.prefetch not in (0, 1, 2):
        return f"prefetch {config.prefetch} with representation moments: 0, 1 and 2 exist"
    needed = shared_bytes(case, config)
    if needed > shared_limit_bytes:
        return f"{needed:,} bytes of shared memory; a block of this device has {shared_limit_bytes:,}"
    return None


def _chunks(case: Case, config: CudaConfig, _: int) -> str | None:
    height = case.domain[case.stencil.dimensions - 1]
    if not 1 <= config.march <= height:
        return f"march {config.march}: a column of this domain has {height} cells"
    return None


def _list(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


_RULES: tuple[Callable[[Case, CudaConfig, int], str | None], ...] = (_physics, _other_axes, _format, _block, _chunks)
