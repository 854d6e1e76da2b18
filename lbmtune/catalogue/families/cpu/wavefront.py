"""Wavefront on CPUs: several time steps of an in-place scheme in one sweep over the rows of a box.

A cell may take a step as soon as what it accesses has taken the step before, and what it accesses in place belongs to
cells of its neighbourhood. So a tile of rows can go through several steps while it stays in a cache, if the rows of
each step lie further back than those of the step before. Source: Wittmann, Hager, Wellein 2010 (temporal blocking);
Wonnacott 2000 (time skewing).
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from math import ceil
from typing import ClassVar

from lbmtune.catalogue.families.cpu import rules
from lbmtune.catalogue.families.cpu.direct import Direct
from lbmtune.catalogue.families.cpu.rows import ROW_RULES, BoxOfRows, TilesOfRows, prefetch_rows
from lbmtune.catalogue.families.groups import VECTORS
from lbmtune.catalogue.families.small_domains import distinct, is_flat, odd
from lbmtune.catalogue.footprint import pass_bytes
from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import Cells, KernelConfig
from lbmtune.catalogue.schemes.scheme import Phase, Scheme
from lbmtune.lattice import Lattice

MAX_STEPS = 16
"""Most steps of a launch: beyond them tiles that fit in a cache are mostly overlap."""
_SIDE_BY_SIDE = 3
"""Threads that work side by side on a small domain."""
IN_PLACE = ("aa", "esoteric-twist", "esoteric-pull")


@dataclass(frozen=True, kw_only=True)
class InPlace(KernelConfig):
    """An in-place scheme, declared before the knobs that depend on it."""

    scheme: str = knob("aa", "propagation scheme", search=IN_PLACE)


@dataclass(frozen=True, kw_only=True)
class Wavefront(TilesOfRows, BoxOfRows, InPlace):
    """Several steps per launch, in place; the rows of a tile follow one another from step to step."""

    family: ClassVar[str] = "wavefront"
    title: ClassVar[str] = "wavefront"

    tile: tuple[int, int] = knob((16, 1), "rows of a tile, y by z", unit="rows", search=("8x1", "16x1", "32x1"))
    steps: int = knob(
        4, "time steps of a launch", unit="steps", search=(2, 4, 8), allowed=tuple(range(2, MAX_STEPS + 1))
    )
    prefetch_rows: int = knob(
        0, "all steps prefetch their share of the rows that the first takes next (1)", allowed=(0, 1), acts=(VECTORS,)
    )

    def awkward_domain(self, case: Case) -> Cells:
        """Leave a core to regions that shrink from step to step, side by side for a few threads."""
        gap, regions = 2 * (self.steps - 1), min(self.threads, _SIDE_BY_SIDE)
        ny = odd(self.tile_y + 2) + gap * (regions if is_flat(case) else 1)
        return distinct(case, self.awkward_row, ny, odd(self.tile_z) + gap * regions)

    def single_step(self) -> Direct:
        """Return the kernel of one step over the same tiles."""
        own = {"scheme", "tile", "steps", "prefetch_rows"}
        shared = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in own}
        return Direct(scheme=self.scheme, parallel_loop=f"tile-{self.tile_y}x{self.tile_z}", **shared)

    def shares(self, case: Case) -> int:
        """Return the most slabs, each of a thread, that the domain has room for."""
        flat, lags = case.stencil.dimensions == 2, lag(self.propagation, case.stencil)
        return case.domain[1 if flat else 2] // max(1, 2 * lags[not flat] * (self.steps - 1))

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of populations per update: a launch reads and writes a row once, and again at tile edges."""
        return fetched(case, self) * pass_bytes(case, self, allocates=True) / self.steps


@lru_cache(maxsize=64)
def lag(scheme: Scheme, lattice: Lattice) -> tuple[int, int]:
    """Return the rows along y and along z by which a step stays behind the one before it.

    The largest distance between two rows that touch the same slot of the same row of storage in steps that follow each
    other.
    """
    phases = scheme.phases(lattice)
    pairs = [(now, phases[(n + 1) % len(phases)]) for n, now in enumerate(phases)]
    y, z = (max(_distance(*pair, axis) for pair in pairs) for axis in (1, 2))
    return y, z


def _distance(now: Phase, later: Phase, axis: int) -> int:
    return max(abs(a.offset[axis] - b.offset[axis]) for a in now.places() for b in later.places() if a.slot == b.slot)


def has_wavefront(scheme: Scheme, lattice: Lattice) -> bool:
    """Return whether several steps can be under way at once: one lattice, one pass a step, rows in any order."""
    passes = [scheme.passes(lattice, parity) for parity in range(scheme.period)]
    simple = (len(one) == 1 and not one[0].blockwise and not one[0].ordered for one in passes)
    return scheme.in_place and all(simple)


def fetched(case: Case, config: Wavefront) -> float:
    """Return how often a launch brings a row from memory, where a tile stays in a cache until its steps are taken.

    Once, and again along each edge between tiles, and where regions that shrink from step to step meet those that grow.
    """
    behind = config.steps - 1
    if not behind:
        return 1.0
    flat, (y, z) = case.stencil.dimensions == 2, lag(config.propagation, case.stencil)
    _, ny, nz = case.domain
    several = config.busy_threads(case)
    if flat:
        return 1 + 2 * behind * y * several / ny
    edges = ceil(ny / config.tile_y) - 1 + 2
    return (1 + edges * behind * y / ny) * (1 + 2 * behind * z * several / nz)


def _wavefront(case: Case, config: Wavefront, limits: Limits) -> str | None:
    if has_wavefront(config.propagation, case.stencil):
        return None
    return (
        f"scheme={config.scheme} is not supported for family wavefront (use aa, esoteric-twist or esoteric-pull): "
        "each step must be one pass over one lattice in place, in any order"
    )


RULES = (_wavefront, *ROW_RULES, prefetch_rows, rules.threads, rules.numa, rules.pages)
