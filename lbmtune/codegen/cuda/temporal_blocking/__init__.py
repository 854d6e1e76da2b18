"""CUDA text of temporal blocking: tiles with a halo, one or several time steps per launch."""

from lbmtune.codegen.cuda.temporal_blocking.program import render

__all__ = ["render"]
