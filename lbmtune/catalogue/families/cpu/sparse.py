"""Sparse on CPUs: one time step of the fluid sites per launch; neighbours are found by an index list."""

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from lbmtune.catalogue.backend_records import CpuConfig
from lbmtune.catalogue.families import common_rules
from lbmtune.catalogue.families.cpu import rules
from lbmtune.catalogue.families.groups import VECTORS, WHOLE_LINES, Listed, Propagated
from lbmtune.catalogue.families.small_domains import distinct
from lbmtune.catalogue.footprint import pass_bytes
from lbmtune.catalogue.knobs import Acts, knob
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import Cells
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.lattice import Lattice

SITES_AT_ONCE = 256
"""Sites of an iteration of the parallel loop."""


@dataclass(frozen=True, kw_only=True)
class Sparse(Listed, CpuConfig, Propagated):
    """One step of fluid sites, by an index list."""

    family: ClassVar[str] = "sparse"
    title: ClassVar[str] = "one step of fluid sites"
    layouts: ClassVar[tuple[str, ...]] = ("soa", "aos", "aosoa", "rows", "bundle", "bundle-aosoa")
    without: ClassVar[frozenset[str]] = frozenset({"stride"})

    prefetch_index: int = knob(
        0, "sites ahead whose words of the index list are prefetched; 0: none", unit="sites", acts=(VECTORS,)
    )
    prefetch_propagated: int = knob(
        0,
        "sites ahead whose populations from neighbours are prefetched, of each vector those of its first site; 0: none",
        unit="sites",
        acts=(
            VECTORS,
            Acts(on="links", values=("all",), because="later nodes are known when their pointers have been chased"),
        ),
    )
    prefetch_local: int = knob(
        0, "sites ahead whose populations of the site itself are prefetched; 0: none", unit="sites", acts=(VECTORS,)
    )
    streaming_stores: int = knob(
        0,
        "non-temporal stores to the site itself (1) or ordinary ones (0)",
        allowed=(0, 1),
        acts=(VECTORS, WHOLE_LINES),
    )
    gather: str = knob(
        "vector",
        "access to listed nodes: gather instructions, or lane by lane",
        allowed=("vector", "lanes"),
        acts=(VECTORS,),
    )

    @property
    def site_granule(self) -> int:
        """Return the number whose multiples are numbers of sites: whole runs of the layout."""
        return max(self.memory.run, 1)

    def frame(self, lattice: Lattice) -> StorageFrame:
        """Return a frame of rows with a ghost column, which listed sites do not use."""
        return StorageFrame((True, False, False), (16, 0, 0), (1, 0, 0), self.memory.tile, lattice.q)

    def awkward_domain(self, case: Case) -> Cells:
        """Return a few rows of several vectors."""
        return distinct(case, self.awkward_row, 5, 3)

    def shares(self, case: Case) -> int:
        """Return the blocks of listed sites."""
        return ceil(case.fluid_sites / SITES_AT_ONCE)

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of populations that one update moves: each pass reads, allocates and writes once."""
        return pass_bytes(case, self, allocates=not self.streaming_stores)


def _listed_scheme(case: Case, config: Sparse, limits: Limits) -> str | None:
    phase = config.propagation.phase(case.stencil, 0)
    if phase.blockwise:
        return f"scheme={config.scheme} is not supported for family sparse (use pull): its blocks are cut out of a box"
    if phase.ordered:
        return f"scheme={config.scheme} is not supported for family sparse (use pull): its order is that of rows"
    return None


RULES = (
    _listed_scheme,
    *rules.MACHINE,
    rules.streaming_to_sites,
    common_rules.implicit,
    common_rules.chains,
    common_rules.nodes,
)
