"""CPU text of the sparse family."""

from lbmtune.codegen.cpu.sparse.program import render

__all__ = ["render"]
