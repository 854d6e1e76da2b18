"""Launches that begin before the one that they depend on has ended (programmatic dependent launch)."""

from __future__ import annotations

import re
from dataclasses import replace

from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.program import Launch, Program

_ENTRY = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\([^{]*\{')


def dependent(program: Program) -> Program:
    """The program with entries that wait by themselves for the launch before them, each as the first thing it does."""
    assert set(program.entries) <= set(_ENTRY.findall(program.source))
    text = _ENTRY.sub(r"\g<0>  begin_early();", program.source)
    every = (program.period, program.with_macroscopics, program.prologue)
    period, storing, prologue = (tuple(tuple(map(_early, step)) for step in steps) for steps in every)
    source = f"{fill('cuda/dependent.cu', {})}\n{text}"
    return replace(program, source=source, period=period, with_macroscopics=storing, prologue=prologue)


def _early(launch: Launch) -> Launch:
    return replace(launch, mode="dependent")
