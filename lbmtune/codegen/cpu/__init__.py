"""Numba kernels as Python text, by kernel family. Imports no numba."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu import direct, moments_wavefront, sparse, wavefront
from lbmtune.codegen.cpu.moments_wavefront.cell import cell_text
from lbmtune.codegen.cpu.shared.collision import relaxation_text
from lbmtune.codegen.program import Program

__all__ = ["RENDERERS", "cell_text", "relaxation_text"]

RENDERERS: Mapping[str, Callable[[Case, Any], Program]] = {
    "direct": direct.render,
    "sparse": sparse.render,
    "wavefront": wavefront.render,
    "moments-wavefront": moments_wavefront.render,
}
"""The function that returns the program of a legal configuration, by its family."""
