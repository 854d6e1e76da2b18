"""CUDA text: the skeletons of kernels/cuda, with constants, population access and collision printed from the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda import column, direct, face_exchange, persistent, sparse, temporal_blocking
from lbmtune.codegen.program import Program

__all__ = ["RENDERERS"]

RENDERERS: Mapping[str, Callable[[Case, Any], Program]] = {
    "direct": direct.render,
    "column": column.render,
    "sparse": sparse.render,
    "temporal-blocking": temporal_blocking.render,
    "persistent": persistent.render,
    "face-exchange": face_exchange.render,
}
"""The function that returns the program of a legal configuration, by its family."""
