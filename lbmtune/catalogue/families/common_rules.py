"""Rules that families of both backends share. A rule returns the reason why a configuration is illegal, or None.

A rule looks at few knobs, so that its answer can be reused for all configurations that agree in these.
"""

from collections.abc import Callable, Iterator

from lbmtune.catalogue.domain_conditions import Condition, DomainRule, at_least
from lbmtune.catalogue.family_knobs import knobs, layout_knobs
from lbmtune.catalogue.footprint import footprint_bytes, footprint_fits, largest_cube
from lbmtune.catalogue.knobs import Knob, Scalar, cached, own_knobs, scalar
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import KernelConfig
from lbmtune.catalogue.schemes.scheme import not_reversed
from lbmtune.catalogue.sparse.index_list import CHAINS, MAX_NODES, listed_rows
from lbmtune.catalogue.sparse.site_orders import order
from lbmtune.units import format_bytes

Rule = Callable[[Case, KernelConfig, Limits], str | None]


def known_names(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Raise InputError for an unknown scheme, storage format or precision: bad input, not an illegal point."""
    _ = config.propagation, config.stored, config.computed
    if config.indirect:
        order(config.order)
    return None


@cached
def value_rules(record: type[KernelConfig]) -> tuple[Rule, ...]:
    """Return one rule for each knob of a family: its values, and the knobs that keep it from acting."""
    return tuple(_ValueRule(one) for one in knobs(record))


class _ValueRule:
    """Checks one knob against its declaration."""

    def __init__(self, one: Knob) -> None:
        self._knob = one

    def __call__(self, case: Case, config: KernelConfig, limits: Limits) -> str | None:
        """Return why the value of the knob is not supported, or None."""
        one, value = self._knob, value_of(config, self._knob.name)
        if value is None:
            return None
        what = f"{one.name}={value} is not supported"
        if one.allowed and value not in one.allowed:
            return f"{what} for family {config.family} ({one.use})"
        if not one.allowed and isinstance(value, int) and value < one.least:
            return f"{what} for family {config.family} ({one.use})"
        if one.is_extent and min(map(int, str(value).split("x"))) < 1:
            return f"{what} (each extent is at least 1)"
        for condition in one.acts:
            other = value_of(config, condition.on)
            usual = one.default if condition.neutral is None else condition.neutral
            if other is not None and not condition.holds({condition.on: other}) and value != usual:
                return f"{what} for {condition.on}={other} (use {one.name}={usual}): {condition.because}"
        return None


def value_of(config: KernelConfig, name: str) -> Scalar | None:
    """Return the value of a knob as text or number; None if it belongs to another layout."""
    if name not in layout_knobs(type(config)):
        return scalar(getattr(config, name))
    has_it = any(one.name == name for one in own_knobs(type(config.layout)))
    return scalar(getattr(config.layout, name)) if has_it else None


def bundles(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require bundles of some directions, not of all."""
    group, q = getattr(config.layout, "group", None), case.stencil.q
    if group is None or group < q:
        return None
    return f"group={group} is not supported for lattice={case.lattice} (use 2 to {q - 1}): it has {q} directions"


@DomainRule
def tiles_of_layout(case: Case, config: KernelConfig, limits: Limits) -> Iterator[Condition]:
    """Require tiles of a layout that lie within the domain."""
    tile = getattr(config.layout, "layout_tile", None)
    if tile is not None:
        what = f"layout_tile={extents(tile)}"
        yield from at_least(tile, what, f"{what} is larger than the domain {extents(case.domain)}; use a smaller tile")


def compute_holds_storage(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require arithmetic at least as wide as what is stored."""
    if config.computed.bytes < config.stored.bytes:
        return f"compute={config.compute} is narrower than storage={config.storage}; use compute={config.storage}"
    return None


def flags(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require flags that fit the case: solid cells need them, a case without walls has none."""
    if config.flags == "compiled":
        if case.geometry:
            what = f"flags=compiled is not supported for geometry {case.geometry}"
            return f"{what} (use memory, or family sparse): solid cells have flags"
        return None
    if not case.geometry and not case.walled:
        return (
            f"flags=memory is not supported for flow {case.flow} (use compiled): it has neither walls nor solid cells"
        )
    return None


@DomainRule
def nodes(case: Case, config: KernelConfig, limits: Limits) -> Iterator[Condition]:
    """Require nodes that a word of the list reaches."""
    reach = f"a word of the index list reaches {MAX_NODES:,}"
    said = f"{{value:,}} nodes of domain {extents(case.domain)}; {reach}"
    yield Condition(value=lambda place: place.stored.x, most=MAX_NODES, because=reach, said=said)


def fits_in_memory(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require buffers that fit into the device's memory."""
    if footprint_fits(case, config, limits.memory_bytes):
        return None
    needed = format_bytes(footprint_bytes(case, config))
    need = f"domain {extents(case.domain)} needs {needed} in {config.storage} {config.scheme}"
    if limits.memory_asked:
        return f"{need}; the study allows {format_bytes(limits.memory_bytes)}"
    limited = " within the memory limit of this process" if limits.memory_limited else ""
    free = f"the device has {format_bytes(limits.memory_bytes)} free{limited}"
    if config.indirect:
        return f"{need}, sparse; {free}"
    if case.interpolates:  # links of other domains are not counted for a hint
        return f"{need}; {free}"
    return f"{need}; {free}, enough for {extents(largest_cube(case, config, limits.memory_bytes))}"


def implicit(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require skipped cells that act as walls."""
    if not config.implicit:
        return None
    what = "boundary=implicit is not supported for"
    if not case.geometry:
        return f"{what} flow {case.flow} (use branch): it has no solid cells to skip"
    if case.walled:
        return f"{what} faces {', '.join(case.faces)} (use branch): behind a wall at a face is no cell to skip"
    scheme = config.propagation
    if scheme.lattices > 1:
        return f"{what} scheme={config.scheme} (use branch): a skipped cell is missing in the lattice of the next step"
    lost = not_reversed(scheme, case.stencil)
    if lost is not None:
        return f"{what} scheme={config.scheme} (use branch): a skipped cell does not reverse f_{lost}"
    return None


def chains(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require chains of pointers that lead to all places of the scheme, and that no cut link interrupts."""
    if not config.chases:
        return None
    what, own = f"links={config.links} is not supported for", CHAINS[config.scheme]
    if config.links != own:
        sides = "forward alone" if own == "three_pointers" else "to all sides"
        return f"{what} scheme={config.scheme} (use {own}): its pointers lead {sides}"
    if any(found.link for found in listed_rows(case, config).pointers):
        if case.walled:
            return f"{what} scheme={config.scheme} with walls at faces (use all): chains end at cut links"
        return f"{what} boundary={config.boundary} (use implicit): chains end at cut links"
    return None


def interpolated_walls(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require steps that a pass may follow which interpolates populations at walls."""
    if not case.interpolates:
        return None
    what = f"walls={case.walls} is not supported for"
    if config.of_moments or config.fused_steps > 1 or config.place_source == "fixed":
        return f"{what} family {config.family} (use sparse, or direct): a pass follows each step of populations"
    if config.implicit:
        return f"{what} boundary=implicit (use branch): skipped cells send populations back a step later"
    return None


FIRST: tuple[Rule, ...] = (known_names, interpolated_walls)
LAYOUTS: tuple[Rule, ...] = (bundles, tiles_of_layout, compute_holds_storage)
LAST: tuple[Rule, ...] = (fits_in_memory,)
"""The one that takes longest."""
