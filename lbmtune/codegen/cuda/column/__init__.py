"""CUDA text of the column family: one time step of a box, a column of cells along z per thread."""

from lbmtune.codegen.cuda.column.program import render

__all__ = ["render"]
