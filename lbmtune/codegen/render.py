"""The one entry to code generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program

Renderers = Mapping[str, Callable[[Case, KernelConfig], Program]]


def render(case: Case, config: KernelConfig) -> Program:
    """Return the program of a legal configuration; equal arguments give equal text in every process."""
    # imported here: SymPy takes long to import
    renderers: Renderers = import_module(f"lbmtune.codegen.{config.backend}").RENDERERS
    return renderers[config.family](case, config)


def render_single(program: Program) -> Program | None:
    """Return the program of one step on the same state; None if launches do one step or any number of them."""
    if program.steps == 1 or program.any_steps:
        return None
    return render(program.case, program.config.single_step())
