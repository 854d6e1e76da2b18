"""CUDA text: the skeletons of kernels/cuda, with constants, population access and collision printed from the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.direct.macroscopics import with_macroscopics
from lbmtune.codegen.cuda.face_exchange import program as face_exchange
from lbmtune.codegen.cuda.persistent.moments import render_resident_moments
from lbmtune.codegen.cuda.persistent.populations import render_resident
from lbmtune.codegen.cuda.shared import layout, program
from lbmtune.codegen.cuda.shared.programmatic_launch import dependent
from lbmtune.codegen.cuda.sparse.program import render_indirect
from lbmtune.codegen.cuda.temporal_blocking import program as temporal_blocking
from lbmtune.codegen.program import Program

Render = Callable[[Case, CudaConfig], Program]
MaxElements = Callable[[Case, CudaConfig], int | None]


def render_cuda(case: Case, config: CudaConfig) -> Program:
    """Return the program of one step of a box; if every step writes macroscopics, those entries are its launches."""
    plain = program.render_cuda(case, config)
    if config.macroscopics == "never":
        return plain
    storing = with_macroscopics(plain)
    return replace(storing, period=storing.with_macroscopics)


def _render_persistent(case: Case, config: CudaConfig) -> Program:
    return render_resident_moments(case, config) if config.of_moments else render_resident(case, config)


def _family(render: Render, max_elements: MaxElements = layout.max_elements) -> Render:
    """Return the renderer of a family, whose programs have the longest buffer and the way they are launched."""

    def rendered(case: Case, config: CudaConfig) -> Program:
        made = replace(render(case, config), max_elements=max_elements(case, config))
        return dependent(made) if config.launch == "dependent" else made

    return rendered


RENDERERS: Mapping[str, Render] = {
    "direct": _family(render_cuda),
    "column": _family(render_cuda),
    "sparse": _family(render_indirect),
    "temporal-blocking": _family(temporal_blocking.render_march, temporal_blocking.max_elements),
    "persistent": _family(_render_persistent),
    "face-exchange": _family(face_exchange.render_tile_faces, face_exchange.max_elements),
}
"""The function that returns the program of a legal configuration, by its family."""
