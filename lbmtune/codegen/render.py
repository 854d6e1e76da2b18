"""The one entry to code generation."""

from collections.abc import Callable

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families import module_of
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.codegen.wall_pass import with_walls

Renderer = Callable[[Case, KernelConfig], Program]
"""What the module of a family in `codegen` offers by the name of `render`."""


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
