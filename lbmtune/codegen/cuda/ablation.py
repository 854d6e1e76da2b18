"""Kernels without their reads or their writes, which measure the cost of the other parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda import column, direct, sparse, temporal_blocking
from lbmtune.codegen.cuda.shared.ablation import Parts
from lbmtune.codegen.passes import REFRESH
from lbmtune.codegen.program import Program

_RENDERERS: Mapping[str, Callable[[Case, Any, Parts], Program]] = {
    "direct": direct.render,
    "column": column.render,
    "sparse": sparse.render,
    "temporal-blocking": temporal_blocking.render,
}


def can_be_ablated(program: Program) -> bool:
    """Return whether parts of a program can be left out: it has one kernel per time step or launch."""
    one_kernel = not any(entry.startswith(REFRESH) for entry in program.entries)
    return program.target == "cuda" and one_kernel and program.config.family in _RENDERERS


def ablated(program: Program, *, reads: bool, writes: bool) -> Program:
    """Return the program without its reads, its writes, or both."""
    config = program.config
    assert isinstance(config, CudaConfig)
    return _RENDERERS[config.family](program.case, config, Parts(reads, writes))
