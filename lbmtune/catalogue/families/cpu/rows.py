"""Groups of knobs that CPU kernels of a box of populations share: rows with ghost columns, or selected indices."""

from dataclasses import dataclass

from lbmtune.catalogue.backend_records import CpuConfig
from lbmtune.catalogue.families import common_rules
from lbmtune.catalogue.families.cpu import rules
from lbmtune.catalogue.families.groups import Bounded, RowsOfCells
from lbmtune.catalogue.families.small_domains import distinct, is_flat, odd
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told
from lbmtune.catalogue.record import Cells
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.lattice import Lattice

_THIN = 3
"""Rows of a domain too thin for all steps at once."""
_LEANER = ("bgk", "trt")
"""Operators that `collisions.min_instruction_forms` has a form of, named here without SymPy."""


@dataclass(frozen=True, kw_only=True)
class BoxOfRows(RowsOfCells, Bounded):
    """Rows of a box of populations."""

    def awkward_domain(self, case: Case) -> Cells:
        """Return extents of no whole tile of rows."""
        return distinct(case, self.awkward_row, odd(self.tile_y + 2), odd(self.tile_z))

    def frame(self, lattice: Lattice) -> StorageFrame:
        """Return where the cells of a domain lie in storage; tiles of blockwise schemes have rings along y and z."""
        ends = self.wrap == "ghost"
        before, after = self.row_offset, ends + self.row_padding
        if self.propagation.phase(lattice, 0).blockwise:
            solid = int(lattice.dimensions == 3)
            blocks = (0, self.tile_y, self.tile_z * solid)
            ghost = (ends, True, bool(solid))
            return StorageFrame(ghost, (before, 1, solid), (after, 1, solid), self.memory.tile, lattice.q, blocks)
        return StorageFrame((ends, False, False), (before, 0, 0), (after, 0, 0), self.memory.tile, lattice.q)


@dataclass(frozen=True, kw_only=True)
class TilesOfRows(CpuConfig):
    """Several steps of the rows of a tile, one behind the other."""

    @property
    def tile(self) -> tuple[int, ...]:
        """Return the extents of a tile, rows along y and z last."""
        raise NotImplementedError

    @property
    def loop(self) -> str:
        """Return the loop: threads share tiles."""
        return "tile"

    @property
    def tile_y(self) -> int:
        """Return the rows of a tile along y."""
        return self.tile[-2]

    @property
    def tile_z(self) -> int:
        """Return the rows of a tile along z."""
        return self.tile[-1]

    def extra_domains(self, case: Case) -> tuple[Cells, ...]:
        """Return a domain that is too thin for all steps of a launch at once, if they are several."""
        if self.steps <= _THIN // 2 + 1:
            return ()
        return ((self.awkward_domain(case)[0], _THIN, 1 if is_flat(case) else _THIN + 2),)


def _patches(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if case.patches and config.flags == "compiled":
        return f"flags=compiled is not supported for a patch on face {case.patches[0].face} (use memory)"
    return None


def _rows(case: Case, config: BoxOfRows, limits: Limits) -> str | None:
    if config.wrap == "ghost" and config.row_offset < 1:
        return (
            f"row_offset={config.row_offset} is not supported for wrap=ghost (use 1 or more): it needs a ghost column"
        )
    run = config.memory.run
    if run > 1 and config.row_offset % run:
        return f"row_offset={config.row_offset} is not a multiple of the runs of {run} cells of {config.memory.name}"
    return None


def several_passes(config: BoxOfRows) -> str:
    """Return how an error about more than one pass per row begins; empty if there is one."""
    passes = config.collision_passes
    return "" if passes == "one" else f"collision_passes={passes} is not supported for"


def _passes_at_faces(case: Case, config: BoxOfRows, limits: Limits) -> str | None:
    if (what := several_passes(config)) and (face := told(case)):
        return f"{what} a {face} (use one): what completes cells at such a face is not in memory"
    return None


def _passes_of_operators(case: Case, config: BoxOfRows, limits: Limits) -> str | None:
    if config.collision_passes == "minimal" and case.collision not in _LEANER:
        what, leaner = several_passes(config), " and ".join(_LEANER)
        return f"{what} collision={case.collision} (use two): {leaner} have a form of fewer instructions"
    return None


def _passes_of_layouts(case: Case, config: BoxOfRows, limits: Limits) -> str | None:
    if (what := several_passes(config)) and config.memory.run > 1:
        return f"{what} layout={config.memory.name} (use one): cells that lie in groups would be put together twice"
    return None


_PASSES = (_passes_at_faces, _passes_of_operators, _passes_of_layouts)
"""Rules about several passes, each of which looks at few knobs."""


def prefetch_rows(case: Case, config: TilesOfRows, limits: Limits) -> str | None:
    """Require rows of one direction, and steps that have work in a cache meanwhile."""
    if not config.prefetch_rows:
        return None
    if config.steps == 1:
        return "prefetch_rows=1 is not supported for steps=1 (use 0): there is no work in a cache meanwhile"
    if config.memory.name != "soa":
        return f"prefetch_rows=1 is not supported for layout={config.memory.name} (use soa)"
    return None


ROW_RULES = (common_rules.flags, _patches, rules.vectors, _rows, rules.stride, *_PASSES)
