"""What a kernel whose blocks march over tiles cannot be, and why. The rules of the catalogue ask here first.

Those are kernels of moments, and kernels of populations with several steps per launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.config import CHUNKS, CudaConfig, defaults
from lbmtune.catalogue.families.cuda.temporal_blocking import WARP, piece_cells, sector_cells, shared_bytes, tile
from lbmtune.catalogue.families.moment_rules import INCOMPLETE, why_no_moments
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told
from lbmtune.catalogue.storage import stored_extents

_MARCHES = "its blocks march over a box, with loads, stores and neighbours of their own"
_FIXED = {
    "padding": _MARCHES,
    "wrap": _MARCHES,
    "boundary": _MARCHES,
    "load_hint": _MARCHES,
    "store_hint": _MARCHES,
    "l2_prefetch": _MARCHES,
    "index_bits": _MARCHES,
    "block_order": _MARCHES,
    "macroscopics": "only what a launch ends with is written",
    "fetch": "prefetch 2 lets the next plane wait in shared memory",
}
"""Axes that have no say, and why."""
_OTHERS = "kernels of moments or of several steps have them"
MAX_STEPS, MAX_ROWS, PACKS = 8, 8, (1, 2, 4, 8)
MOST_OF_PLANE = 2**31


def why_no_march(case: Case, config: CudaConfig, shared_limit_bytes: int) -> str | None:
    """The first reason, or None."""
    return next((reason for rule in _RULES if (reason := rule(case, config, shared_limit_bytes))), None)


def why_no_fusion(config: CudaConfig) -> str | None:
    """What a kernel of populations with one step per launch leaves to those that march."""
    for name, usual in (
        ("rows", 1),
        ("pack", 1),
        ("barrier", "block"),
        ("pending", "registers"),
        ("beyond", 0),
        ("chunks", "even"),
    ):
        if getattr(config, name) != usual:
            return f"{name} {getattr(config, name)} with representation populations and one step per launch: {_OTHERS}"
    return None


def _what(config: CudaConfig) -> str:
    """What makes a kernel one that marches."""
    return "representation moments" if config.of_moments else f"steps {config.steps}"


def _physics(case: Case, config: CudaConfig, _: int) -> str | None:
    if config.of_moments and (reason := why_no_moments(case, config)):
        return reason
    if config.of_moments and (where := told(case)):
        return f"{where} with {_what(config)}: {INCOMPLETE}"
    if case.patches:
        return f"{case.patches[0].kind} patch with {_what(config)}: its blocks know whole faces alone"
    if config.indirect:
        return f"{_what(config)} with {config.addressing} addressing: blocks march over a box"
    return None


def _scheme(_case: Case, config: CudaConfig, _: int) -> str | None:
    if not config.of_moments and config.scheme != "push":
        return (
            f"scheme {config.scheme} with steps {config.steps}: a launch leaves what arrived in its cell, as push does"
        )
    return None


def _other_axes(_case: Case, config: CudaConfig, _: int) -> str | None:
    usual = defaults("cuda")
    for name, reason in _FIXED.items():
        if getattr(config, name) != usual[name]:
            return f"{name} {getattr(config, name)} with {_what(config)}: {reason}"
    return None


def _format(case: Case, config: CudaConfig, _: int) -> str | None:
    if config.layout not in ("soa", "rows"):
        return f"layout {config.layout} with {_what(config)}: soa and rows exist"
    if config.pack not in PACKS or (config.layout == "soa" and config.pack > 1):
        return f"pack {config.pack} with layout {config.layout}: 1 for soa, {_list(PACKS)} for rows"
    values, cells = config.kept.values(case.stencil), config.cells_per_thread
    if config.pack > values:
        return f"pack {config.pack} with lattice {case.lattice}: a cell has {values} {config.kept.name}"
    rest = values % config.pack or config.pack
    if rest & (rest - 1):
        return f"pack {config.pack} with lattice {case.lattice}: {rest} of {values} {config.kept.name} are no vector"
    least = min(rest, config.pack) * cells * config.stored.bytes
    if config.prefetch == 2 and least < 4:
        return f"prefetch 2 with {least} bytes at once: an asynchronous copy moves 4, 8 or 16"
    if config.pack * cells * config.stored.bytes > 32:
        return f"pack {config.pack} x {cells} cells x {config.stored.bytes} bytes: at most 32 at once"
    if case.domain[0] % cells:
        return f"domain of {case.domain[0]} cells along x is not divisible by cells_per_thread {cells}"
    piece = piece_cells(case.stencil, config)
    if config.in_bulk and case.domain[0] % piece:
        return (
            f"prefetch 3 with a domain of {case.domain[0]} cells along x: bulk copies move multiples of 16 bytes, "
            f"which is {piece} cells of {config.storage} with pack {config.pack}"
        )
    return None


def _block(case: Case, config: CudaConfig, shared_limit_bytes: int) -> str | None:
    x, _, z = config.block
    if (x, z) != (WARP, 1):
        return f"block {'x'.join(map(str, config.block))} with {_what(config)}: its blocks are {WARP} x n x 1"
    if not 1 <= config.steps <= MAX_STEPS or not 1 <= config.rows <= MAX_ROWS:
        return f"steps {config.steps} and rows {config.rows}: 1 to {MAX_STEPS} and 1 to {MAX_ROWS}"
    if case.stencil.dimensions == 2 and config.rows > 1:
        return f"rows {config.rows} with lattice {case.lattice}: warps march along y, row by row"
    width, height = tile(case.stencil, config)
    if width < sector_cells(config) or height < 1:
        return f"steps {config.steps}: the halo leaves {max(width, 0)} x {max(height, 0)} cells of a tile"
    if config.prefetch not in (0, 1, 2, 3):
        return f"prefetch {config.prefetch} with {_what(config)}: 0, 1, 2 and 3 exist"
    if config.beyond not in (0, 1) or (config.beyond and not config.prefetch):
        return f"beyond {config.beyond} with prefetch {config.prefetch}: 0, and 1 where a plane is read ahead"
    if config.barrier not in ("block", "neighbours"):
        return f"barrier {config.barrier!r}: block and neighbours exist"
    if config.barrier != "block" and case.stencil.dimensions == 2:
        return f"barrier {config.barrier} with lattice {case.lattice}: warps march on their own, and wait for none"
    if config.pending not in ("registers", "shared"):
        return f"pending {config.pending!r}: registers and shared exist"
    if config.pending != "registers" and case.stencil.dimensions == 2:
        return f"pending {config.pending} with lattice {case.lattice}: its warps keep that in registers"
    if config.chunks not in CHUNKS:
        return f"chunks {config.chunks!r}: {' and '.join(CHUNKS)} exist"
    if config.chunks != "even" and case.stencil.dimensions == 2:
        return f"chunks {config.chunks} with lattice {case.lattice}: its warps end one by one"
    needed = shared_bytes(case, config)
    if needed > shared_limit_bytes:
        return f"{needed:,} bytes of shared memory; a block of this device has {shared_limit_bytes:,}"
    return None


def _planes(case: Case, config: CudaConfig, _: int) -> str | None:
    """Where links are cut, places within a plane wait as 32 bits, of which one value says that there is none."""
    elements = int(config.memory.along_z(1, stored_extents(case, config)))
    if cuts(case) and case.stencil.dimensions == 3 and elements >= MOST_OF_PLANE:
        cut = "faces or solid cells that cut links"
        return f"{cut} with {_what(config)}: {elements:,} elements of a plane; at most {MOST_OF_PLANE - 1:,}"
    return None


def _chunks(case: Case, config: CudaConfig, _: int) -> str | None:
    height = case.domain[case.stencil.dimensions - 1]
    if not 1 <= config.march <= height:
        return f"march {config.march}: a column of this domain has {height} cells"
    return None


def _list(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


_RULES: tuple[Callable[[Case, CudaConfig, int], str | None], ...] = (
    _physics,
    _scheme,
    _other_axes,
    _format,
    _block,
    _planes,
    _chunks,
)
