"""The one entry to code generation; it adds the pass of interpolated walls to kernels of any family."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import Any

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families import module_of
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.passes import BUFFERS, REFRESH
from lbmtune.codegen.program import WALL_LINKS, WALL_PLACES, WALL_SHARE, Launch, Program

Renderer = Callable[[Case, KernelConfig], Program]
"""Function that the module of a family in `codegen` offers by the name of `render`."""
WALLS = "walls"
"""Name of the entry of the pass of interpolated walls."""
WALL_ELEMENTS = 1 << 32
"""Elements of a copy of the lattice that a word of its tables reaches."""


def render(case: Case, config: KernelConfig) -> Program:
    """Return the program of a legal configuration; equal arguments give equal text in every process."""
    renderer: Renderer = module_of(f"lbmtune.codegen.{config.backend}", config).render
    program = renderer(case, config)
    return with_walls(program) if case.interpolates else program


def render_single(program: Program) -> Program | None:
    """Return the program of one step on the same state; None if launches do one step or any number of them."""
    if program.steps == 1 or program.any_steps:
        return None
    return render(program.case, program.config.single_step())


def render_on_planes(program: Program) -> Program | None:
    """Return the program whose launches take the planes that they update; None if there is none.

    Parts of a domain are computed so, edge by edge: the first plane and that behind the last are launch arguments, and
    every update has the same arithmetic. Without other values the planes are those of the whole domain. Kernels have
    loops over planes of a box in three dimensions, and no other launches follow or precede theirs. The module of a
    family says TAKES_PLANES if its `render` takes `planes`.
    """
    module: Any = module_of(f"lbmtune.codegen.{program.target}", program.config)
    alone = not any(one.entry.startswith((REFRESH, WALLS)) for one in chain(*program.period))
    if program.case.stencil.dimensions < 3 or not alone or not getattr(module, "TAKES_PLANES", False):
        return None
    found: Program = module.render(program.case, program.config, planes=True)
    return found


def with_walls(program: Program) -> Program:
    """Return the program whose steps are followed by the pass, for the case with interpolated walls."""
    config, parities, threads = program.config, len(program.period), (256, 1, 1)
    buffer = BUFFERS[1 if config.exchanges(program.case.stencil) else 0]
    walls = import_module(f"lbmtune.codegen.{config.backend}.wall_pass")  # here: workers start without it
    launches = [
        Launch(WALLS, (buffer, *WALL_PLACES[p], WALL_SHARE, WALL_LINKS), threads, threads, over="wall_links")
        for p in range(config.propagation.period)
    ]
    period = tuple((*step, launches[(p + 1) % parities % len(launches)]) for p, step in enumerate(program.period))
    return replace(
        program,
        case=replace(program.case, walls="interpolated"),
        source=f"{program.source}\n{walls.text(config)}\n",
        period=period,
        max_elements=min(program.max_elements or WALL_ELEMENTS, WALL_ELEMENTS),
    )
