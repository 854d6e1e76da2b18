"""Programmatic dependent launch: kernels start before the launch that they depend on has ended."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.catalogue.config import CudaConfig
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.program import Launch, Program


def launched(program: Program, config: CudaConfig) -> Program:
    """Return the program with the launches that its configuration asks for.

    The entries of dependent launches wait for the launch before them (`entry.entry_head`).
    """
    if config.launch != "dependent":
        return program
    every = (program.period, program.with_macroscopics, program.prologue)
    period, storing, prologue = (tuple(tuple(map(_early, step)) for step in steps) for steps in every)
    source = f"{fill('shared/programmatic_launch.cu', {})}\n{program.source}"
    return replace(program, source=source, period=period, with_macroscopics=storing, prologue=prologue)


def _early(launch: Launch) -> Launch:
    return replace(launch, mode="dependent")
