"""CUDA text from the tables: the skeletons of kernels/cuda with constants, population access and collision printed in."""

from lbmtune.codegen.cuda.program import render_cuda

__all__ = ["render_cuda"]
