"""CUDA text: the skeletons of kernels/cuda, with constants, population access and collision printed from the tables."""

from dataclasses import replace

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.direct.macroscopics import with_macroscopics
from lbmtune.codegen.cuda.shared import program
from lbmtune.codegen.cuda.sparse.program import render_indirect
from lbmtune.codegen.program import Program

__all__ = ["render_cuda", "render_indirect"]


def render_cuda(case: Case, config: CudaConfig) -> Program:
    """The program of a legal configuration; where every step writes macroscopics, those entries are its launches."""
    plain = program.render_cuda(case, config)
    if config.macroscopics == "never":
        return plain
    storing = with_macroscopics(plain)
    return replace(storing, period=storing.with_macroscopics)
