"""Sparse on CUDA: one time step of the fluid sites per launch; neighbours are found by an index list."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm, prod
from typing import ClassVar

from lbmtune.catalogue.backend_records import Block
from lbmtune.catalogue.boundaries.cell_flags import WORD_BYTES
from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.domain_conditions import Condition, DomainRule, sites
from lbmtune.catalogue.families import common_rules
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.groups import (
    CacheHints,
    Indexed,
    Launched,
    Listed,
    Propagated,
    ThreadBlocks,
    Vectorised,
)
from lbmtune.catalogue.families.small_domains import odd, rounded
from lbmtune.catalogue.footprint import pass_bytes
from lbmtune.catalogue.knobs import Acts, knob
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.pointer_swap import period_phases
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.catalogue.sparse.index_list import listed_rows, used
from lbmtune.lattice import Lattice


@dataclass(frozen=True, kw_only=True)
class Sparse(Indexed, CacheHints, Launched, Vectorised, ThreadBlocks, Listed, Propagated):
    """One step of fluid sites, by an index list."""

    family: ClassVar[str] = "sparse"
    title: ClassVar[str] = "one step of fluid sites"
    clipped_knob: ClassVar[str] = "block"
    layouts: ClassVar[tuple[str, ...]] = ("soa", "aos", "aosoa", "rows", "bundle", "bundle-aosoa")

    block: Block = knob((256, 1, 1), "threads per block", unit="threads", search=("64x1x1", "128x1x1", "256x1x1"))
    sites_per_thread: int = knob(1, "sites, a thread block apart, that a thread updates in turn", unit="sites")
    prefetch_sites: int = knob(
        0,
        "turns ahead for which a thread reads the words of the list",
        unit="turns",
        allowed=(0, 1, 2, 3),
        acts=(Acts(on="sites_per_thread", values=(1,), unless=True, because="a thread has no next site"),),
    )
    prefetch_to: str = knob(
        "registers",
        "destination of words that are read ahead: registers, or shared memory by cp.async",
        allowed=("registers", "shared"),
        acts=(Acts(on="prefetch_sites", values=(0,), unless=True, because="nothing is read ahead"),),
    )

    @property
    def site_granule(self) -> int:
        """Return the number whose multiples are numbers of sites: whole vectors and runs of the layout."""
        return lcm(self.cells_per_thread, max(self.memory.run, 1))

    def block_cells(self, lattice: Lattice) -> Block:
        """Return the sites that the threads of a block update at once, in turns along the last axis."""
        x, y, z = self.block
        return x * self.cells_per_thread, y, z * self.sites_per_thread

    def blocks(self, case: Case) -> Block:
        """Return the thread blocks of a launch."""
        return -(-case.sites // (self.block_cells(case.stencil)[0] * self.sites_per_thread)), 1, 1

    def awkward_domain(self, case: Case) -> Block:
        """Return extents of no whole block of sites."""
        x, y, z = self.block_cells(case.stencil)
        return rounded(case, self.row_cells(1), x, odd(y), odd(z))

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of populations that one update moves: each pass reads and writes once."""
        return pass_bytes(case, self)

    def shared_bytes(self, case: Case) -> int:
        """Return the most shared memory of a thread block, in any pass, for words of the list that are copied ahead."""
        return max(self.pass_shared_bytes(case, phase) for phase in period_phases(self, case.stencil))

    def pass_shared_bytes(self, case: Case, phase: Phase) -> int:
        """Return the shared memory of a thread block in a pass of the scheme; each thread copies its own words."""
        if self.prefetch_to != "shared":
            return 0
        needed = used(seen_by(case, self), self.propagation, phase)
        words = len(listed_rows(case, self).read_first(needed))
        return self.prefetch_sites * WORD_BYTES * self.cells_per_thread * self.block[0] * words


def _scheme(case: Case, config: Sparse, limits: Limits) -> str | None:
    if config.propagation.phase(case.stencil, 0).blockwise:
        return f"scheme={config.scheme} is not supported for family sparse (use pull): its blocks are cut out of a box"
    return launch_rules.in_order(case, config, limits)


def _block(case: Case, config: Sparse, limits: Limits) -> str | None:
    x = config.block[0]
    if prod(config.block[1:]) > 1:
        return f"block {extents(config.block)} is not supported for family sparse (use {x}x1x1): sites have one index"
    return None


@DomainRule
def _turns(case: Case, config: Sparse, limits: Limits) -> Iterator[str | Condition]:
    turns = config.sites_per_thread
    if turns > 1:
        taken, what = config.block[0] * config.cells_per_thread * turns, f"sites_per_thread={turns}"
        said = f"{what}: a block takes {taken:,} sites of a domain of {{value:,}} cells"
        yield Condition(value=sites, least=taken, because=what, said=said)
    if config.prefetch_sites and config.prefetch_sites >= turns:
        yield f"prefetch_sites={config.prefetch_sites}: a thread has {turns - 1} turns after its first"


RULES = (
    _scheme,
    launch_rules.size,
    launch_rules.vectors,
    _block,
    launch_rules.whole_warps,
    launch_rules.register_limit,
    common_rules.implicit,
    common_rules.chains,
    _turns,
    launch_rules.asynchronous,
    launch_rules.prefetch_buffer,
    launch_rules.shared,
    launch_rules.index_bits,
    launch_rules.dependent,
    launch_rules.grid,
    common_rules.nodes,
)
