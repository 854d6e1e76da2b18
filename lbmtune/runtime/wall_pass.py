"""A simulation whose walls are of second order, by a pass of its own after each step."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lbmtune.backend.protocol import TooManyResourcesError
from lbmtune.catalogue.boundaries.second_order import Means, Walls, means
from lbmtune.codegen.program import Launch
from lbmtune.codegen.wall_pass import ENTRY, LINKS, SHARE, tables_of
from lbmtune.runtime.placement import placements
from lbmtune.runtime.simulation import Bound, Simulation

Array = Any
_ELEMENTS = 1 << 32
"""Elements that a word of a table reaches."""
_WORDS, _POPULATIONS = 2, 3
"""What the pass moves for a link: words of its tables; it reads two populations and writes one."""


class Tables(NamedTuple):
    """Tables of all links. parities: elements of each link, and of its other population, of states of each parity."""

    share: Array
    parities: tuple[tuple[Array, Array], ...]


class Walled(Simulation):
    """Interpolates what walls send back, after each step (`catalogue.boundaries.second_order`)."""

    @property
    def walls(self) -> Walls:
        """The rule of solid cells."""
        return Walls.INTERPOLATED

    @property
    def bytes_per_update(self) -> float:
        """Bytes of an update by the model of traffic, with those of the pass."""
        config, links = self.program.config, len(self._tables.share)
        moved = 4 * _WORDS + config.computed.bytes + _POPULATIONS * config.stored.bytes
        return super().bytes_per_update + moved * links / self.case.fluid_sites

    def _bind(self) -> None:
        self._others |= {SHARE: self._tables.share, LINKS: np.int32(len(self._tables.share))}
        for parity, tables in enumerate(self._tables.parities):
            self._others |= dict(zip(tables_of(parity), tables, strict=True))
        super()._bind()

    def _bound(self, launch: Launch, flip: int, parity: int = 0, steps: int = 1) -> Bound:
        bound, grid, arguments = super()._bound(launch, flip, parity, steps)
        if launch.entry == ENTRY:
            grid = (max(1, -(-len(self._tables.share) // launch.block[0])), 1, 1)
        return bound, grid, arguments

    @cached_property
    def _tables(self) -> Tables:
        """The tables, on the device. Raises TooManyResourcesError."""
        if self.state.size > _ELEMENTS:
            raise TooManyResourcesError(f"a word of the tables of walls reaches {_ELEMENTS} elements")
        xp, config = self.xp, self.program.config
        links = {one.direction: one for one in means(self.case, xp)}
        share = xp.concatenate([one.share(xp) for one in links.values()]).astype(config.computed.dtype)
        return Tables(share, tuple(self._elements(links, p) for p in range(config.propagation.period)))

    def _elements(self, links: dict[int, Means], parity: int) -> tuple[Array, Array]:
        """Return the elements of the population of each link, and of the other one, of states of a parity."""
        xp, opposite = self.xp, self.case.stencil.opposite
        own, here, behind = dict[int, Array](), dict[int, Array](), dict[int, Array]()
        for k, place in enumerate(placements(self.case, self.program.config, parity, xp)):
            at, i = place.indices.reshape(-1), opposite[k]
            if i in links:
                own[i], behind[i] = at[links[i].cells], at[links[i].behind]
            if k in links:
                here[k] = at[links[k].cells]
        other = [xp.where(one.near, here[i], behind[i]) for i, one in links.items()]
        both = xp.concatenate([own[i] for i in links]), xp.concatenate(other)
        return both[0].astype(xp.uint32), both[1].astype(xp.uint32)
