"""Kernels without their reads or their writes, which measure the cost of the other parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.catalogue.config import KernelConfig, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda import column, direct, sparse, temporal_blocking
from lbmtune.codegen.cuda.shared.ablation import Parts
from lbmtune.codegen.passes import REFRESH
from lbmtune.codegen.program import Program

_RENDERERS: Mapping[type[KernelConfig], Callable[[Case, Any, Parts], Program]] = {
    cuda.Direct: direct.render,
    cuda.Column: column.render,
    cuda.Sparse: sparse.render,
    cuda.TemporalBlocking: temporal_blocking.render,
}


def can_be_ablated(program: Program) -> bool:
    """Return whether parts of a program can be left out: it has one kernel per time step or launch."""
    one_kernel = not any(entry.startswith(REFRESH) for entry in program.entries)
    return one_kernel and type(program.config) in _RENDERERS


def ablated(program: Program, *, reads: bool, writes: bool) -> Program:
    """Return the program without its reads, its writes, or both."""
    return _RENDERERS[type(program.config)](program.case, program.config, Parts(reads, writes))
