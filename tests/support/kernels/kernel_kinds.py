"""One kernel of each kind that a solver has to launch in a way of its own, with its case."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.layouts import Rows, SoA
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, porous

_MARCH = cuda.TemporalBlocking(chunk_planes=5)


def _box(collision: str = "bgk") -> Case:
    return box("d3q19", collision, (64, 16, 12), 1.3)


def _cavity(collision: str = "bgk") -> Case:
    return cavity("d3q19", collision, (64, 16, 12), 1.3)


KINDS: dict[str, tuple[Case, CudaConfig]] = {
    "one step": (_box(), cuda.Direct()),
    "one step, doubles": (_box(), cuda.Direct(compute="fp64", launch="graph", storage="fp64")),
    "in place, walls that are read": (_cavity(), cuda.Direct(flags="memory", scheme="aa", storage="fp16s")),
    "ghost cells": (_cavity(), cuda.Direct(scheme="esoteric-pull", wrap="ghost")),
    "pointers exchanged": (_box(), cuda.Direct(pointer_swap=1, scheme="esoteric-twist")),
    "two passes, whose buffers keep their roles": (_cavity(), cuda.Direct(scheme="two-step")),
    "two passes in place": (_cavity(), cuda.Direct(scheme="swap")),
    "density and velocity with every step": (_box(), cuda.Direct(macroscopics="every-step")),
    "sites listed": (
        porous("d3q19", "bgk", (64, 16, 12), 1.2, "blocks:fraction=0.3"),
        cuda.Sparse(block=(64, 1, 1)),
    ),
    "several steps": (_cavity(), _MARCH),
    "several steps of moments, which begin early": (
        _box("regularised"),
        replace(_MARCH, representation="moments", steps=3, pack=2, launch="dependent"),
    ),
    "populations on chip": (_cavity(), cuda.Persistent(layout=Rows(), block=(64, 4, 1), tile_planes=3)),
    "moments on chip": (
        _box("regularised"),
        cuda.Persistent(
            layout=Rows(), cells_per_thread=2, grid_sync="neighbours", representation="moments", tile_planes=3
        ),
    ),
    "tiles with faces": (_cavity("regularised"), cuda.FaceExchange(layout=SoA(), tile=(8, 4, 2))),
}
