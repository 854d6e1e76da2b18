"""CPU text of the moments_wavefront family."""

from lbmtune.codegen.cpu.moments_wavefront.program import render

__all__ = ["render"]
