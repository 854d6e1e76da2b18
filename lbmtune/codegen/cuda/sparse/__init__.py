"""CUDA text of the sparse family: fluid sites whose neighbours an index list holds."""

from lbmtune.codegen.cuda.sparse.program import render

__all__ = ["render"]
