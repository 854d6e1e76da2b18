"""Rules of temporal blocking on CUDA."""

from collections.abc import Iterator
from math import prod

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.domain_conditions import Condition, DomainRule, along
from lbmtune.catalogue.families import common_rules, moment_rules
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.cuda.temporal_blocking import (
    TemporalBlocking,
    piece_cells,
    sector_cells,
    tile,
    waiting_words,
)
from lbmtune.catalogue.knobs import field_names
from lbmtune.catalogue.limits import WARP, Limits, extents, registers_allowed
from lbmtune.catalogue.problem.case import Case

MOST_OF_PLANE = 2**31
_TIMES_REGISTERS = 6
"""Values that a thread may keep from plane to plane, in registers that it has; those beyond go to local memory.

Of 2,651 recorded trials the worst has 5.8 times as many (5 cells in doubles, 4 steps, 640 threads)."""
_NOT_SHARED = frozenset({"steps", "launch", "register_limit", "chunk_planes", "chunk_schedule", "overread"})
"""Fields that shared memory does not depend on, and the one that single steps have otherwise."""
_FLAT = "in two dimensions warps go up along y on their own"


def _single_step(case: Case, config: TemporalBlocking, limits: Limits) -> str | None:
    if config.of_moments or config.steps > 1:
        return None
    return "steps=1 is not supported for representation=populations (use 2 to 8, or family direct or column)"


def _two_dimensions(case: Case, config: TemporalBlocking, limits: Limits) -> str | None:
    if case.stencil.dimensions == 3:
        return None
    usual = ("rows", 1), ("warp_sync", "block"), ("z_buffer", "registers"), ("chunk_schedule", "uniform")
    return launch_rules.usual_alone(config, f"lattice={case.lattice}", *((*one, _FLAT) for one in usual))


def _pack(case: Case, config: TemporalBlocking, limits: Limits) -> str | None:
    values, cells = config.kept.values(case.stencil), config.cells_per_thread
    what = f"pack={config.pack} is not supported for lattice={case.lattice}"
    if config.pack > values:
        return f"{what}: a cell has {values} {config.kept.name}"
    rest = values % config.pack or config.pack
    if rest & (rest - 1):
        return f"{what}: the last {rest} of {values} {config.kept.name} are no vector"
    least = min(rest, config.pack) * cells * config.stored.bytes
    if config.plane_fetch == "cp_async" and least < 4:
        return f"plane_fetch=cp_async with {least} bytes at once: an asynchronous copy moves 4, 8 or 16"
    if config.pack * cells * config.stored.bytes > 32:
        return f"pack={config.pack} x {cells} cells x {config.stored.bytes} bytes: at most 32 at once"
    return None


@DomainRule
def _rows_of_domain(case: Case, config: TemporalBlocking, limits: Limits) -> Iterator[Condition]:
    yield launch_rules.whole_vectors(case, config.cells_per_thread)
    if config.plane_fetch == "bulk":
        piece = piece_cells(case.stencil, config)
        because = (
            f"bulk copies move multiples of 16 bytes, which is {piece} cells of {config.storage} with "
            f"pack={config.pack}"
        )
        said = f"plane_fetch=bulk with nx={{value}}: {because}"
        yield Condition(value=along(0), multiple=piece, because=because, said=said)


def _tile(case: Case, config: TemporalBlocking, limits: Limits) -> str | None:
    x, _, z = config.block
    if (x, z) != (WARP, 1):
        return f"block {extents(config.block)} is not supported for temporal blocking (use {WARP} x n x 1)"
    width, height = tile(case.stencil, config)
    if width < sector_cells(config) or height < 1:
        left = f"{max(width, 0)} x {max(height, 0)} cells"
        return f"steps={config.steps}: the halo leaves {left} of a tile (use fewer steps, or a larger block)"
    return None


def _on_chip(case: Case, config: TemporalBlocking, limits: Limits) -> str | None:
    """Shared memory that a block has, also in launches of one step for those left over."""
    needed = max(kernel.shared_bytes(case) for kernel in (config, *_left_over(config)))
    if needed > limits.shared_bytes_per_block:
        return f"{needed:,} bytes of shared memory; a block of this device has {limits.shared_bytes_per_block:,}"
    return None


def _left_over(config: TemporalBlocking) -> tuple[TemporalBlocking, ...]:
    """Return the configuration of single steps if it may need more shared memory: runs of bulk copies may be longer.

    It has the fields that shared memory depends on, and is made from these so that no rule looks at others.
    """
    if config.plane_fetch != "bulk" or config.steps == 1:
        return ()
    own = (name for name in field_names(TemporalBlocking) if name not in _NOT_SHARED)
    return (TemporalBlocking(steps=1, **{name: getattr(config, name) for name in own}),)


@DomainRule
def _planes(case: Case, config: TemporalBlocking, limits: Limits) -> Iterator[Condition]:
    """Planes whose addresses are 32 bits if links are cut: one value says that there is no address."""
    if cuts(case) and case.stencil.dimensions == 3:
        most, what, memory = MOST_OF_PLANE - 1, "elements of a plane with cut links", config.memory
        said = f"{{value:,}} {what}; at most {most:,}"
        yield Condition(value=lambda place: memory.along_z(1, place.stored), most=most, because=what, said=said)


@DomainRule
def _chunks(case: Case, config: TemporalBlocking, limits: Limits) -> Iterator[Condition]:
    what = f"chunk_planes={config.chunk_planes}"
    said = f"{what}: a column of this domain has {{value}} cells"
    up = along(case.stencil.dimensions - 1)
    yield Condition(value=up, least=config.chunk_planes, because=what, said=said)


def _registers(case: Case, config: TemporalBlocking, limits: Limits) -> str | None:
    threads = prod(config.block) * max(1, config.min_blocks)
    allowed = config.max_registers or registers_allowed(threads)
    needed = waiting_words(case, config)
    if needed <= _TIMES_REGISTERS * allowed:
        return None
    return (
        f"steps={config.steps} x rows={config.rows} x cells_per_thread={config.cells_per_thread}: {needed:,} registers "
        f"from plane to plane, more than {_TIMES_REGISTERS} times the {allowed} that a thread has "
        "(use fewer of them, or a smaller block)"
    )


def _copies(case: Case, config: TemporalBlocking, limits: Limits) -> str | None:
    if config.plane_fetch in ("cp_async", "bulk") and not limits.asynchronous:
        return f"plane_fetch={config.plane_fetch} is not supported by this device (use registers): it has no cp.async"
    if config.plane_fetch == "bulk" and not limits.bulk:
        return "plane_fetch=bulk is not supported by this device (use cp_async): it has no bulk copies"
    return None


RULES = (
    _single_step,
    moment_rules.moments,
    moment_rules.faces,
    moment_rules.patches,
    common_rules.flags,
    _two_dimensions,
    _pack,
    _rows_of_domain,
    _tile,
    _on_chip,
    _planes,
    _chunks,
    launch_rules.size,
    launch_rules.vectors,
    launch_rules.register_limit,
    _copies,
    launch_rules.shared,
    _registers,
    launch_rules.dependent,
    launch_rules.grid,
)
