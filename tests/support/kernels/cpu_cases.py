"""Cases, configurations and a device that interprets instead of compiling, for the tests of CPU kernels."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from lbmtune.backend.cpu.device import CpuDevice, CpuExecutable
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.config import CpuConfig, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.knobs import scalar
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, channel
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.render import render
from lbmtune.lattice import lattice as lattice_named
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Resources, Verification
from tests.support.devices import interpreted_simd

LIMITS = Limits(cores=8, numa_nodes=(8, 8))
SCHEME_NAMES = list(SCHEMES)
BLOCKWISE = [name for name, scheme in SCHEMES.items() if scheme.phase(lattice_named("d2q9"), 0).blockwise]
ORDERED = [name for name, scheme in SCHEMES.items() if scheme.phase(lattice_named("d2q9"), 0).ordered]
TILES = {"parallel_loop": "tile-3x2", "threads": 2}
"""Blocks with rings are tiles, here of which some are cut short and others lie between tiles."""
PRECISIONS = {"fp64": ("fp64", "fp64"), "fp32": ("fp32", "fp32"), "fp16s": ("fp16s", "fp32")}
PRECISIONS |= {"fp16c": ("fp16c", "fp32"), "bf16": ("bf16", "fp32")}
LAYOUTS: dict[str, dict[str, Any]] = {
    "soa": {"vector_bits": 512, "row_offset": 1},
    "soa-256": {"vector_bits": 256, "row_offset": 3, "row_padding": 2, "padding": 5},
    "soa-scalar": {"vector_bits": 0, "row_offset": 1},
    "soa-select": {"vector_bits": 0, "row_offset": 0, "wrap": "select", "row_padding": 1},
    "aos": {"layout": "aos", "vector_bits": 0, "row_offset": 1},
    "aos-select": {"layout": "aos", "vector_bits": 0, "row_offset": 0, "wrap": "select"},
    "aosoa": {"layout": "aosoa", "width": 16, "vector_bits": 512, "row_offset": 16},
    "aosoa-256": {"layout": "aosoa", "width": 32, "vector_bits": 256, "row_offset": 32},
    "aosoa-scalar": {"layout": "aosoa", "width": 4, "vector_bits": 0, "row_offset": 4},
    "bundle": {"layout": "bundle", "group": 3, "vector_bits": 0, "row_offset": 1},
    "bundle-select": {"layout": "bundle", "group": 4, "vector_bits": 0, "row_offset": 0, "wrap": "select"},
    "bundle-aosoa": {"layout": "bundle-aosoa", "group": 5, "width": 16, "vector_bits": 512, "row_offset": 16},
    "bundle-aosoa-256": {"layout": "bundle-aosoa", "group": 2, "width": 32, "vector_bits": 256, "row_offset": 32},
    "tiled": {"layout": "tiled", "layout_tile": (16, 2, 1), "vector_bits": 512, "row_offset": 16},
    "tiled-scalar": {"layout": "tiled", "layout_tile": (1, 3, 1), "vector_bits": 0, "row_offset": 1},
    "tiled-select": {"layout": "tiled", "layout_tile": (6, 3, 1), "vector_bits": 0, "row_offset": 0, "wrap": "select"},
    "tiled-cells": {"layout": "tiled-cells", "layout_tile": (32, 2, 1), "vector_bits": 256, "row_offset": 32},
    "tiled-cells-scalar": {"layout": "tiled-cells", "layout_tile": (1, 4, 1), "vector_bits": 0, "row_offset": 2},
    "aosoa-select": {"layout": "aosoa", "width": 4, "vector_bits": 0, "row_offset": 0, "wrap": "select"},
}
SCHEMES_AND_LAYOUTS = [(s, a) for s in SCHEME_NAMES for a in LAYOUTS if not (s in ORDERED and "select" in a)]
FLAGGED = [name for name in SCHEME_NAMES if name not in ORDERED]


def case_of(flow: str, lattice: str, collision: str = "bgk") -> Case:
    """A case whose domain is a multiple of everything; verification takes extents of its own."""
    domain = (96, 5, 1 if lattice == "d2q9" else 3)
    if flow == "box":
        return box(lattice, collision, domain)
    if flow == "channel":
        return channel(lattice, collision, domain, 1.1, force=1e-3)
    case = cavity(lattice, collision, domain, 1.3)
    if flow == "cavity":
        return case
    assert flow == "moving-x"
    # a lid at each end of the rows that meets another at y+
    faces = ("moving", "moving", "wall", "moving", *case.faces[4:])
    return replace(case, faces=faces, wall_velocity=(0.03, 0.05, 0.0 if lattice == "d2q9" else -0.02))


def config_of(scheme: str, layout: str, precision: str = "fp64", **given: Any) -> Any:
    """A configuration of family direct, or of the one given, in one of the layouts above."""
    stored, computed = PRECISIONS[precision]
    chosen = {"scheme": scheme, "storage": stored, "compute": computed, **LAYOUTS[layout]}
    tiles = TILES if scheme in BLOCKWISE and given.get("family", "direct") == "direct" else {}
    flat = {"backend": "cpu", "family": "direct", **chosen, **tiles, **given}
    return from_flat({name: scalar(value) for name, value in flat.items()})


def program_of(case: Case, config: CpuConfig) -> Program:
    assert broken(case, config, LIMITS) is None
    return render(case, config)


class InterpretingDevice(CpuDevice):
    """Runs the text of a program as Python."""

    def load(self, program: Program, binary: Binary) -> CpuExecutable:
        modules = r"from lbmtune\.backend\.cpu import ((?:\w+, )*simd)\n"
        (imported,) = re.findall(modules, program.source)
        text = re.sub(modules, "", program.source)
        names: dict[str, Any] = dict.fromkeys(imported.split(", "), interpreted_simd)
        exec(compile(text, "<generated>", "exec"), names)
        return _Interpreted({name: names[name] for name in program.entries}, Resources(), 1)


class _Interpreted(CpuExecutable):
    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Any) -> None:
        with np.errstate(all="ignore"):
            self.entries[launch.entry](*(int(a) if isinstance(a, np.integer) else a for a in arguments))


def interpret(program: Program, periods: int = 2) -> Verification:
    return verify(program, Binary(b"", "", Resources()), InterpretingDevice(), periods)
