"""Direct on CPUs: one time step of a box per launch, row by row."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from lbmtune.catalogue.families.cpu import rules
from lbmtune.catalogue.families.cpu.rows import ROW_RULES, BoxOfRows, several_passes
from lbmtune.catalogue.families.groups import BLOCKWISE, ORDERED, WHOLE_LINES, AnyStorage, Propagated
from lbmtune.catalogue.footprint import pass_bytes, ring_bytes
from lbmtune.catalogue.knobs import Acts, Scalar, knob
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import keeps_links, reach

_TILE = "tile-"
_LOOP = re.compile(r"z|zy|tile-[1-9]\d*x[1-9]\d*")


@dataclass(frozen=True, kw_only=True)
class Direct(AnyStorage, BoxOfRows, Propagated):
    """One step of a box, row by row."""

    family: ClassVar[str] = "direct"
    title: ClassVar[str] = "one step of a box"

    parallel_loop: str = knob(
        "z",
        "iterations that threads share: planes (z), rows (zy), or tiles of Y x Z rows (tile-YxZ)",
        search=("z", "zy", "tile-8x4", "tile-16x4"),
        acts=(Acts(on="scheme", values=ORDERED, unless=True, because="a thread takes the rows of a slab in order"),),
    )
    streaming_stores: int = knob(
        0, "non-temporal stores (1) or ordinary ones (0)", search=(0, 1), allowed=(0, 1), acts=(WHOLE_LINES,)
    )

    @classmethod
    def implied(cls, values: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return tiles for schemes whose blocks are tiles of rows."""
        return {"parallel_loop": "tile-8x4"} if values.get("scheme") in BLOCKWISE else {}

    @property
    def loop(self) -> str:
        """Return what the parallel loop runs over: z, zy or tile."""
        return self.parallel_loop.partition("-")[0]

    @property
    def tile_y(self) -> int:
        """Return the rows of a tile along y; 0 without tiles."""
        return self._tile[0]

    @property
    def tile_z(self) -> int:
        """Return the rows of a tile along z; 0 without tiles."""
        return self._tile[1]

    @property
    def _tile(self) -> tuple[int, int]:
        y, _, z = self.parallel_loop.removeprefix(_TILE).partition("x")
        return (int(y), int(z)) if y.isdecimal() and z.isdecimal() else (0, 0)

    def shares(self, case: Case) -> int:
        """Return the planes, rows or tiles of a launch; of a scheme that takes rows in order, those that a slab has."""
        _, ny, nz = case.domain
        if self.propagation.phase(case.stencil, 0).ordered:
            return ny if case.stencil.dimensions == 2 else nz
        if self.loop == "tile":
            return ceil(ny / self.tile_y) * ceil(nz / self.tile_z)
        return nz if self.loop == "z" else ny * nz

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of populations that one update moves: each pass reads and writes once; and rings."""
        return pass_bytes(case, self, allocates=not self.streaming_stores) + ring_bytes(case, self)

    def scratch_bytes(self, case: Case) -> int:
        """Return the bytes of the rows that threads keep until all have read what these replace."""
        phase = self.propagation.phase(case.stencil, 0)
        if not phase.blockwise:
            return 0
        rows, planes = reach(phase)
        kept = rows + planes * self.tile_y + 1
        return self.threads * kept * case.domain[0] * case.stencil.q * self.computed.bytes


def _parallel_loop(case: Case, config: Direct, limits: Limits) -> str | None:
    if not _LOOP.fullmatch(config.parallel_loop):
        return f"parallel_loop={config.parallel_loop} is not supported (use z, zy, or tiles such as tile-8x4)"
    if config.propagation.phase(case.stencil, 0).blockwise and config.loop != "tile":
        return f"parallel_loop={config.parallel_loop} is not supported for scheme={config.scheme} (use tile-8x4)"
    return None


def _in_order(case: Case, config: Direct, limits: Limits) -> str | None:
    if not config.propagation.phase(case.stencil, 0).ordered:
        return None
    what = f"is not supported for scheme={config.scheme}"
    if config.wrap != "ghost":
        return f"wrap={config.wrap} {what} (use ghost): the last cell of a row swaps over ghost columns"
    if config.flags != "compiled":
        return f"flags={config.flags} {what} (use compiled): a row knows by faces alone which swaps are due"
    return None


def _passes_of_weights(case: Case, config: Direct, limits: Limits) -> str | None:
    if (what := several_passes(config)) and not config.stored.shifted:
        return f"{what} storage={config.storage} (use one): each load would take the weight again"
    return None


def _passes_of_schemes(case: Case, config: Direct, limits: Limits) -> str | None:
    if not (what := several_passes(config)):
        return None
    phases = config.propagation.phases(case.stencil)
    if any(phase.blockwise or phase.ordered or not keeps_links(phase, case.stencil) for phase in phases):
        return f"{what} scheme={config.scheme} (use one): a pair is not left where it was read"
    return None


RULES = (
    _parallel_loop,
    _in_order,
    *ROW_RULES,
    _passes_of_weights,
    _passes_of_schemes,
    rules.streaming_stores,
    rules.threads,
    rules.numa,
    rules.pages,
)
