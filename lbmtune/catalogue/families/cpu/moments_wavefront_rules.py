"""What keeps a kernel of moments from a CPU, where its rows go through a pipeline of steps."""

from __future__ import annotations

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.families.cpu.moments_wavefront import EDGE_ROWS, MARGIN, MAX_STEPS, reach, width
from lbmtune.catalogue.families.moment_rules import INCOMPLETE, why_no_moments
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told

_FIXED = {
    "wrap": "ghost",
    "reads": "once",
    "prefetch_propagated": 0,
    "prefetch_local": 0,
    "stride": 0,
    "far_ends": "inside",
}


def why_no_pipeline(case: Case, config: CpuConfig) -> str | None:
    """The first reason against a kernel of moments on a CPU, or None."""
    return why_no_moments(case, config) or _physics(case, config) or _form(config) or _extents(case, config)


def _physics(case: Case, config: CpuConfig) -> str | None:
    if where := told(case):
        return f"{where} with representation moments: {INCOMPLETE}"
    if case.patches:
        return f"{case.patches[0].kind} patch with representation moments: its rows know whole faces alone"
    if config.flags == "memory" and not case.geometry:
        return "flags memory with representation moments: on a CPU faces are known by their place, and no cell is solid"
    return None


def _form(config: CpuConfig) -> str | None:
    if config.indirect:
        return f"representation moments with {config.addressing} addressing: rows of a box wait for each other"
    if config.layout not in ("soa", "rows"):
        return f"layout {config.layout} with representation moments: soa and rows exist"
    if config.loop != "tile":
        return f"loop {config.loop} with representation moments: tiles go through the steps of a launch"
    for name, value in _FIXED.items():
        if getattr(config, name) != value:
            return f"{name} {getattr(config, name)} with representation moments: its rows have ways of their own"
    return None


def _extents(case: Case, config: CpuConfig) -> str | None:
    if not 1 <= config.steps <= MAX_STEPS:
        return f"steps {config.steps} with representation moments: 1 to {MAX_STEPS}"
    if config.tile_x < MARGIN or config.tile_x % MARGIN:
        return f"tile_x {config.tile_x}: rows of a tile have a multiple of {MARGIN} cells"
    if width(case.stencil, config) < EDGE_ROWS * reach(case.stencil):
        return f"tile_y {config.tile_y}: what a cell sends may pass {EDGE_ROWS} rows of a tile"
    return None
