"""CPU text of the direct family."""

from lbmtune.codegen.cpu.direct.program import render

__all__ = ["render"]
