"""CUDA text: the skeletons of kernels/cuda, with constants, population access and collision printed from the tables."""

from lbmtune.codegen.cuda.program import render_cuda

__all__ = ["render_cuda"]
