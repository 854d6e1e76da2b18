"""Tables of the pass that follows each step if walls are interpolated (`catalogue.boundaries.second_order`)."""

from types import ModuleType
from typing import Any

from lbmtune.backend.protocol import TooManyResourcesError
from lbmtune.catalogue.boundaries.second_order import Means, means
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.footprint import buffer_elements
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import WALL_PLACES, WALL_SHARE
from lbmtune.codegen.render import WALL_ELEMENTS
from lbmtune.runtime.placement import PopulationPlaces

Array = Any


def wall_tables(case: Case, config: KernelConfig, xp: ModuleType) -> dict[str, Array]:
    """Return the weights of all interpolated links, and the elements of their populations, by name.

    Raises TooManyResourcesError.
    """
    if buffer_elements(case, config) > WALL_ELEMENTS:
        raise TooManyResourcesError(f"a word of the tables of walls reaches {WALL_ELEMENTS:,} elements")
    links = {one.direction: one for one in means(case, xp)}
    share = xp.concatenate([one.share(xp) for one in links.values()]).astype(config.computed.dtype)
    tables = {WALL_SHARE: share}
    for parity, names in enumerate(WALL_PLACES[: config.propagation.period]):
        tables |= dict(zip(names, _elements(links, case, config, parity, xp), strict=True))
    return tables


def _elements(
    links: dict[int, Means], case: Case, config: KernelConfig, parity: int, xp: ModuleType
) -> tuple[Array, Array]:
    """Return the elements of the population of each link, and of the other one, of states of a parity."""
    own, here, behind = dict[int, Array](), dict[int, Array](), dict[int, Array]()
    for k, place in enumerate(PopulationPlaces(case, config, parity, xp).each()):
        at, i = place.indices.reshape(-1), case.stencil.opposite[k]
        if i in links:
            own[i], behind[i] = at[links[i].cells], at[links[i].behind]
        if k in links:
            here[k] = at[links[k].cells]
    other = [xp.where(one.near, here[i], behind[i]) for i, one in links.items()]
    both = xp.concatenate([own[i] for i in links]), xp.concatenate(other)
    return both[0].astype(xp.uint32), both[1].astype(xp.uint32)
