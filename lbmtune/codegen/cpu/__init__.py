"""Numba kernels as Python text: the row kernel of each phase, and the loop over rows. Imports no numba."""

from __future__ import annotations

from functools import cache
from textwrap import indent

import sympy

from lbmtune.catalogue.boundaries.cell_flags import tables
from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.collisions.min_instruction_forms import by_axes
from lbmtune.catalogue.collisions.operator import Parameters, assignments, population, relaxed, wall_gain
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import suffix, walls, words_of
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.cpu.direct import slabs
from lbmtune.codegen.cpu.direct.faces import complete, needs_lanes
from lbmtune.codegen.cpu.direct.flagged import (
    AT,
    FlaggedCells,
    guarded_after,
    guarded_fill,
    guarded_fill_late,
    open_box,
)
from lbmtune.codegen.cpu.direct.pairwise_update import InTurns, in_turns
from lbmtune.codegen.cpu.direct.rows import KEPT, GhostRow, LinearRow, Row, SelectedRow, converts, ghost_row, has_places
from lbmtune.codegen.cpu.moments_wavefront import walls as pipeline_walls
from lbmtune.codegen.cpu.moments_wavefront.moments import Cell
from lbmtune.codegen.cpu.moments_wavefront.program import pipeline, pipeline_launches
from lbmtune.codegen.cpu.shared.expressions import Constants, Hoisted, divide_late, hoist, text
from lbmtune.codegen.cpu.shared.filling import between, filled, indented
from lbmtune.codegen.cpu.shared.loops import faces_name, loops, row_name, spread
from lbmtune.codegen.cpu.shared.signatures import DOMAIN, launch_arguments, parameter_names, signature
from lbmtune.codegen.cpu.shared.streams import ASKED, Streams
from lbmtune.codegen.cpu.sparse.program import BLOCK, Sites
from lbmtune.codegen.cpu.wavefront.program import sweep, sweep_launches
from lbmtune.codegen.passes import Pass, passes, passes_of
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.support import support_digest
from lbmtune.lattice import Lattice

_BY_AXES = ("ahead", "lean")
"""Ways to read populations whose cells have their operator in its form of fewest instructions."""
_LANE = "lane, with_lane = lanes.lane, lanes.with_lane"


def render_cpu(case: Case, config: CpuConfig) -> Program:
    """The Python module of a legal configuration: step_0, step_1 advance a state of that parity."""
    constants = Constants()
    steps = _functions(case, config, constants)
    source = filled(
        "sites_module" if config.indirect else "module",
        title=f"{case.flow}, {case.lattice}, {case.collision}: {_what(config)}; {config.printed.brief}",
        support=support_of(case, config),
        compute=config.computed.dtype,
        codes=f', "{config.storage}"' if config.stored.codes else "",
        lanes=str(config.lanes),
        constants="\n".join(constants.definitions()),
        steps="\n\n\n".join(steps),
        **(_grouping(case, config) if config.indirect else _access(case, config)),
    )
    return Program("cpu", case, config, source, (), _period(case, config), steps=config.steps)


def _what(config: CpuConfig) -> str:
    return "moments, in a pipeline of rows" if config.of_moments else config.propagation.title


def _functions(case: Case, config: CpuConfig, constants: Constants) -> list[str]:
    if config.of_moments:
        return [pipeline(case, config, constants)]
    steps = [_step(case, config, one, constants) for one in passes(config, case.stencil)]
    return [*steps, sweep(case, config)] if config.steps > 1 else steps


def _period(case: Case, config: CpuConfig) -> tuple[tuple[Launch, ...], ...]:
    """The launches of each parity."""
    if config.of_moments:
        return pipeline_launches(case, config)
    if config.steps > 1:
        return sweep_launches(case, config)
    return tuple(
        tuple(launch for one in passes_of(config, case.stencil, parity) for launch in _launches(case, config, one))
        for parity in range(config.propagation.period)
    )


def _launches(case: Case, config: CpuConfig, one: Pass) -> tuple[Launch, ...]:
    step = Launch(one.entry, launch_arguments(case, config, one))
    rings = (Launch(one.refresh("read"), (*one.buffers, *DOMAIN)),) if one.phase.blockwise else ()
    faces = (Launch(faces_name(one), (*one.buffers, *DOMAIN)),) if one.phase.ordered else ()
    return (*rings, step, *faces)


def support_of(case: Case, config: CpuConfig) -> str:
    """The digest of the support modules that the kernel of a configuration imports."""
    used = {"lists": config.indirect, "lanes": _uses_lanes(case, config), "chase": config.chased}
    used |= {"places": has_places(config), "walls": bool(pipeline_walls.names(case, config))}
    return support_digest(*(name for name, is_used in used.items() if is_used))


def _uses_lanes(case: Case, config: CpuConfig) -> bool:
    """Whether cells are taken out of vectors."""
    return needs_lanes(case, config.lanes, by_word=config.indirect)


def _grouping(case: Case, config: CpuConfig) -> dict[str, str]:
    """How nodes lie in a slot, and names for the access functions."""
    width, some = max(config.memory.run, 1), Extents(0, 1, 1, case.stencil.q)
    group = str(config.memory.along_x(width, some) - config.memory.along_x(0, some))
    chasing = _chasing(config, str(width), group)
    names = ("gather", "gather_cut", "scatter", "scatter_cut", "load_cut", "store_cut", "chosen")
    one_lane = [_LANE] if _uses_lanes(case, config) else []
    return {
        "width": str(width),
        "group": group,
        "form": config.gather,
        "imports": ", ".join([*(["chase"] if config.chased else []), *(["lanes"] if one_lane else []), "lists, simd"]),
        "names": "\n".join([*(f"{name} = by_list.{name}" for name in names), *_asking(config), *chasing, *one_lane]),
    }


def _chasing(config: CpuConfig, width: str, group: str) -> list[str]:
    """Names for what chases pointers."""
    if not config.chased:
        return []
    codes = f', "{config.storage}"' if config.stored.codes else ""
    access = f'"{config.computed.dtype}", {config.lanes}, {width}, {group}, "{config.gather}"{codes}'
    names = ("led_by", "led_on", "gather_at", "gather_at_cut", "scatter_at", "scatter_at_cut")
    return [f"by_chase = chase.nodes({access})", *(f"{name} = by_chase.{name}" for name in names)]


def _asking(config: CpuConfig) -> list[str]:
    return ["prefetch = simd.prefetch"] if config.prefetch_index else []


def _access(case: Case, config: CpuConfig) -> dict[str, str]:
    """Support modules, and names for what they offer."""
    others = {"lanes": (_uses_lanes(case, config), _LANE), "places": (has_places(config), "place = places.place")}
    by_words = pipeline_walls.names(case, config)
    others["walls"] = (bool(by_words), by_words)
    used = {module: names for module, (is_used, names) in others.items() if is_used}
    return {"imports": ", ".join([*used, "simd"]), "names": "\n".join([_names(config), *used.values()])}


def _names(config: CpuConfig) -> str:
    """Plain names for the access functions: kernels can use no attributes of other objects."""
    names = ["load", "store", *(["stream"] if config.streaming_stores else [])]
    if config.memory.run > 1 and config.wrap == "ghost" and config.vector_bits:
        names += ["load_before", "load_after", "store_before", "store_after"]
    lines = [f"{name} = many.{name}" for name in names]
    asks = config.prefetch_propagated or config.prefetch_local or config.prefetch_rows
    lines += ["prefetch = simd.prefetch"] if asks else []
    return "\n".join([*lines, "load_one, store_one = one.load, one.store"] if config.wrap == "ghost" else lines)


def _step(case: Case, config: CpuConfig, one: Pass, constants: Constants) -> str:
    """The row kernel and the loop over rows of one pass."""
    if config.indirect:
        return _sites_step(case, config, one, constants)
    flagged = bool(tables(case, config, one.phase))
    # a pass that reads no flags must know the faces all the same: what they cut may lie in a ghost column
    known = config.flags == "compiled" or (not flagged and config.wrap == "ghost")
    box = case if known else open_box(case)
    row = _cells(case, config, one.phase) if flagged and config.wrap == "select" else _row(box, config, one.phase)
    names = parameter_names(case, config, one.phase)
    places = (KEPT, "line") if one.phase.blockwise else ("first",) if one.phase.ordered else ()
    places = (ASKED,) if config.prefetch_rows else places
    arguments = ", ".join((*names, *places))
    invariants, body = _collision(case, config, constants) if one.phase.collides else _nothing(one.phase)
    ends = complete(case, row.lanes, constants, words_of(case, config)) if one.phase.collides else []
    lines = {"row": row_name(one), "arguments": arguments, "lanes": str(row.lanes)}
    if one.phase.collides and config.reads != "once":
        assert isinstance(row, LinearRow)
        before = [*invariants, *_wall_gains(row, constants), *row.before()]
        lines |= {"before": indented(before, 1), "after": indented(row.after(), 1)}
        lines |= _in_turns(config, in_turns(row, _relaxation(case, config).body, constants))
        name = "row_ahead" if config.reads == "ahead" else "row"
        return _with_loops(_filled_row(name, row, lines), case, config, one, row)
    if flagged and isinstance(row, GhostRow):
        lines |= {
            "before": indented([*invariants, *row.before_open(), AT, *guarded_fill(row)], 1),
            "body": indented([*row.cell(), *row.prefetches(), *row.loads(), *body, *row.stores()], 3),
            "late": indented(guarded_fill_late(row), 2),
            "after": indented(guarded_after(row), 1),
        }
        cells = _cells(case, config, one.phase)
        lines["cells_before"] = indented([*invariants, *_wall_gains(cells, constants), *cells.before()], 1)
        # a cell at such a face has cut links: it is one of these
        ends = complete(case, 1, constants, words_of(case, config)) if one.phase.collides else []
        lines["cells_body"] = indented([*cells.cell(), *cells.loads(), *ends, *body, *cells.stores()], 2)
    else:
        cell = [*row.fill_late(), *row.cell(), *row.prefetches(), *row.loads(), *ends, *body, *row.stores()]
        lines |= {
            "before": indented([*invariants, *_wall_gains(row, constants), *row.before()], 1),
            "body": indented(cell, 2),
            "after": indented(row.after(), 1),
        }
    if one.phase.ordered:
        assert isinstance(row, GhostRow)
        lines |= _ordered(row, lines["before"], [*row.cell(), *row.prefetches(), *row.loads(), *ends, *body])
    name = "row_flagged" if "cells_body" in lines else "row"
    return _with_loops(_filled_row(name, row, lines), case, config, one, row)


def _filled_row(name: str, row: Row, lines: dict[str, str]) -> str:
    """A row kernel; in two parts where its far end is filled between them."""
    between = row.fill_between()
    if not between:
        return filled(name, **lines)
    deeper = indent(lines["body"], " " * 4)
    return filled(f"{name}_between", **{**lines, "between": indented(between, 2), "body": deeper})


def _with_loops(rows: str, case: Case, config: CpuConfig, one: Pass, row: Row) -> str:
    """Row kernels and what goes through the rows of their pass, unless several steps go through them together."""
    return rows.rstrip() if config.steps > 1 else rows.rstrip() + "\n\n\n" + loops(case, config, one, row)


def _in_turns(config: CpuConfig, cell: InTurns) -> dict[str, str]:
    """The loop over x of cells whose pairs take turns."""
    row = cell.row
    ahead = config.reads == "ahead"
    lines, asks = cell.ahead() if ahead else cell.twice(), row.prefetches()
    # where registers have much to do, or caches all to give, many asked for at once wait for each other, and all else
    # for them
    asked = between(asks, lines) if converts(config) or config.steps > 1 else [*asks, *lines]
    body = {"body": indented([*row.fill_late(), *row.cell(), *asked], 2)}
    if not ahead:
        return body
    first, last = [*row.fill_only(), *cell.first()], [*row.cell(), *cell.last()]
    return {"first": indented(first, 1), **body, "last": indented(last, 1)}


def _wall_gains(row: Row, constants: Constants) -> list[str]:
    """What moving walls add, worked out once per row."""
    gains = _gains(row.streams, constants)
    if gains:
        constants.name(sympy.Integer(0))
    return gains


def _gains(streams: Streams, constants: Constants) -> list[str]:
    """Of each moving wall, by the number of its patch where there are several."""
    case, several = streams.case, len(walls(streams.case)) > 1
    return [
        f"gain{i}{f'_{wall}' if several else ''} = {text(_of_wall(wall_gain(case.stencil, i), wall), constants)}"
        for wall in walls(case)
        for i in streams.gains
    ]


def _of_wall(gain: sympy.Expr, wall: int) -> sympy.Expr:
    return gain.xreplace({symbol: sympy.Symbol(f"{symbol}{suffix(wall)}") for symbol in Parameters.wall})


def _sites_step(case: Case, config: CpuConfig, one: Pass, constants: Constants) -> str:
    """The same over blocks of sites."""
    sites = Sites(_streams(seen_by(case, config), config, one.phase))
    invariants, body = _collision(case, config, constants) if one.phase.collides else _nothing(one.phase)
    gains = _gains(sites.streams, constants)
    if words_of(case, config).walls:
        constants.name(sympy.Integer(1))
    words, lanes = words_of(case, config), config.lanes
    ends = sites.complete(complete(case, lanes, constants, words)) if one.phase.collides else []
    return filled(
        "sites",
        entry=one.entry,
        row=row_name(one),
        arguments=", ".join(parameter_names(case, config, one.phase)),
        signature=signature(case, config, one.phase),
        **spread(config),
        lanes=str(lanes),
        block=str(BLOCK),
        before=indented([*invariants, *gains, *sites.before()], 1),
        body=indented([*sites.cell(), *sites.prefetches(), *sites.loads(), *ends, *body, *sites.stores()], 2),
    ).rstrip()


def _collision(case: Case, config: CpuConfig, constants: Constants) -> tuple[list[str], list[str]]:
    """What is worked out once per row, and for every cell."""
    steps = _relaxation(case, config)
    scale = f"unit = {constants.name(sympy.Integer(int(config.stored.scale)))}"
    invariants = [scale, *(f"{a.name} = {text(a.value, constants)}" for a in steps.invariants)]
    return invariants, [f"{a.name} = {text(a.value, constants)}" for a in steps.body]


def _relaxation(case: Case, config: CpuConfig) -> Hoisted:
    return _relaxed_by(case, config.reads)


def _relaxed_by(case: Case, reads: str) -> Hoisted:
    return _relaxed(case.collision, case.stencil, case.forced, reads in _BY_AXES)


@cache
def _relaxed(name: str, lattice: Lattice, forced: bool, by_axis: bool) -> Hoisted:
    """The operator's assignments: in short chains where a cell waits for its own, in few where nothing waits, or
    where few values are to be alive at any time.

    Passes of a kernel share them, and kernels of one study.
    """
    usual = assignments(collision(name), lattice, forced)
    steps = by_axes(collision(name), lattice, forced) if by_axis else usual
    return hoist(divide_late(usual, lattice) if steps == usual else steps, _parameters())


def relaxation_text(case: Case, reads: str) -> str:
    """The assignments of a cell's collision, a line each, for cells that read their populations so."""
    constants, relaxation = Constants(), _relaxed_by(case, reads)
    return "\n".join(f"{a.name} = {text(a.value, constants)}" for a in relaxation.body)


def cell_text(case: Case) -> str:
    """What a cell of moments does in a step, a line each."""
    cell = Cell(case, Constants())
    return "\n".join([*cell.gather(), *cell.relax(), *cell.spread()])


def _nothing(phase: Phase) -> tuple[list[str], list[str]]:
    """A pass that only moves."""
    return [], [f"{relaxed(a.direction)} = {population(a.direction)}" for a in phase.accesses]


def _ordered(row: GhostRow, before: str, body: list[str]) -> dict[str, str]:
    """What differs where cells swap with others once they have collided."""
    other = ghost_row(slabs.swaps(row.streams))
    return {
        "before": before + "\n" + indented(slabs.before(other), 1),
        "body": indented([*body, *slabs.stores(row, other)], 2),
        "after": indented(slabs.after(row, other), 1),
    }


def _row(case: Case, config: CpuConfig, phase: Phase) -> Row:
    streams = _streams(case, config, phase)
    return SelectedRow(streams, 1) if config.wrap == "select" else ghost_row(streams)


def _cells(case: Case, config: CpuConfig, phase: Phase) -> FlaggedCells:
    ghosts = config.wrap == "ghost"
    return FlaggedCells(_streams(case, config, phase), 1, one="_one" if ghosts else "", wraps=not ghosts)


def _streams(case: Case, config: CpuConfig, phase: Phase) -> Streams:
    in_place = ("field", KEPT if phase.blockwise else "field")
    return Streams(case, config, phase, in_place if phase.in_place else ("source", "target"))


def _parameters() -> list[sympy.Symbol]:
    return [Parameters.omega, Parameters.omega_minus, Parameters.unit, *Parameters.force]
