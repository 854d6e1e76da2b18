"""CPU text of the wavefront family."""

from lbmtune.codegen.cpu.wavefront.program import render

__all__ = ["render"]
