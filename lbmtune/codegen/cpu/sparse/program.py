"""The CPU program of the sparse family: blocks of fluid sites whose neighbours are found by an index list."""

from __future__ import annotations

import sympy

from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.families.cpu.sparse import Sparse
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.codegen.cpu.shared.collision import collision_lines, completion_lines, needs_lanes, wall_gain_lines
from lbmtune.codegen.cpu.shared.expressions import Constants
from lbmtune.codegen.cpu.shared.module import (
    LANES,
    buffer_names,
    codes,
    launch_arguments,
    module,
    parallel_loop,
    parameter_names,
    row_name,
    signature,
)
from lbmtune.codegen.cpu.shared.streams import Streams
from lbmtune.codegen.cpu.sparse.sites import Sites
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import LIST, Launch, Program, period_of
from lbmtune.codegen.skeleton import filled, indented

_BLOCK = 256
"""Sites that one thread takes at a time."""
_EXTENTS = (LIST, "sites", "nodes")
_BY_LIST = ("gather", "gather_cut", "scatter", "scatter_cut", "load_cut", "store_cut", "chosen")
_BY_CHASE = ("led_by", "led_on", "gather_at", "gather_at_cut", "scatter_at", "scatter_at_cut")


def render(case: Case, config: Sparse) -> Program:
    """Return the program of a legal configuration of the sparse family."""
    constants = Constants()
    steps = [_step(case, config, one, constants) for one in passes(config, case.stencil)]
    period = period_of(
        config, case.stencil, lambda one: [Launch(one.entry, launch_arguments(case, config, one, _EXTENTS))]
    )
    used = {
        "chase": config.links == "three_pointers",
        "lanes": needs_lanes(case, config.lanes, by_word=True),
        "lists": True,
    }
    support = [name for name, is_used in used.items() if is_used]
    width, group = _grouping(case, config)
    values = {"width": width, "group": group, "form": config.gather}
    names = _names(config, support, width, group)
    return module(case, config, constants, steps, period, names, support, "sparse/module", values)


def _grouping(case: Case, config: Sparse) -> tuple[str, str]:
    """Return the nodes of a group in a slot, and the elements from one group to the next."""
    width, extents = max(config.memory.run, 1), Extents(0, 1, 1, case.stencil.q)
    along = config.memory.along_x
    return str(width), str(along(width, extents) - along(0, extents))


def _names(config: Sparse, support: list[str], width: str, group: str) -> list[str]:
    """Return lines that name the access functions."""
    names = [f"{name} = by_list.{name}" for name in _BY_LIST]
    names += ["prefetch = simd.prefetch"] if config.prefetch_index else []
    if "chase" in support:
        access = f'"{config.computed.dtype}", {config.lanes}, {width}, {group}, "{config.gather}"{codes(config)}'
        names += [f"by_chase = chase.nodes({access})", *(f"{name} = by_chase.{name}" for name in _BY_CHASE)]
    return [*names, *([LANES] if "lanes" in support else [])]


def _step(case: Case, config: Sparse, one: Pass, constants: Constants) -> str:
    """Return the kernel of a pass over blocks of sites."""
    phase, words = one.phase, words_of(case, config)
    buffers, names = buffer_names(phase), parameter_names(case, config, phase, _EXTENTS)
    sites = Sites(Streams(seen_by(case, config), config, phase, (buffers[0], buffers[-1])))
    invariants, body = collision_lines(case, config, phase, constants)
    gains = wall_gain_lines(sites.streams, constants)
    if words.walls:
        constants.name(sympy.Integer(1))
    completion = sites.complete(completion_lines(case, config.lanes, constants, words)) if phase.collides else []
    return filled(
        "sparse/sites",
        entry=one.entry,
        row=row_name(one),
        arguments=", ".join(names),
        signature=signature(config, names),
        **parallel_loop(config),
        lanes=config.lanes,
        block=_BLOCK,
        before=indented([*invariants, *gains, *sites.before()], 1),
        body=indented([*sites.cell(), *sites.prefetches(), *sites.loads(), *completion, *body, *sites.stores()], 2),
    ).rstrip()
