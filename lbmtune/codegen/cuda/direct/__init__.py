"""CUDA text of the direct family: one time step of a box, a cell or a vector of cells per thread."""

from lbmtune.codegen.cuda.direct.program import render

__all__ = ["render"]
