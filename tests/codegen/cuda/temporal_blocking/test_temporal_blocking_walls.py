"""Kernels of populations of several steps with walls, moving walls and solid cells, in every step of a launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.footprint import footprint_bytes, traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import cavity, half_channel
from lbmtune.codegen.render import render
from lbmtune.measure.verification.verify import verify
from tests.codegen.cuda.temporal_blocking.test_temporal_blocking import LIMITS, _text
from tests.codegen.cuda.temporal_blocking.test_temporal_blocking import config as solid_config
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import case_of
from tests.support.kernels.configs import refusal
from tests.support.kernels.full_size import verify_full_size

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def config(**axes: object) -> CudaConfig:
    return solid_config(**axes)


def lid(lattice: str = "d3q19", size: tuple[int, int, int] = (64, 64, 64)) -> Case:
    return cavity(lattice, "bgk", size, 1.3)


def test_bytes_of_words_and_of_what_returns() -> None:
    """A word is read once per launch; 18 populations may return to a cell, and wait in shared memory."""
    one = config(flags="memory")
    assert traffic(lid(), one).flags == 2
    assert footprint_bytes(lid(), one) - footprint_bytes(lid(), config()) == 4 * 64**3
    without = replace(lid(), faces=("periodic",) * 6)
    assert one.shared_bytes(lid()) - one.shared_bytes(without) == (18 + 2 + 2 + 1) * 4 * 32 * 8


@pytest.mark.parametrize(
    ("case", "knobs", "reason"),
    [
        (case_of("patched", "d3q19", "bgk"), {"flags": "memory"}, "family temporal-blocking (use direct): whole faces"),
        (case_of("rocks", "d3q19", "bgk"), {}, "flags=compiled is not supported for geometry"),
        (lid(), {"flags": "memory", "boundary": "predicated"}, "boundary is not a knob of family temporal-blocking"),
    ],
)
def test_illegal(case: Case, knobs: dict[str, object], reason: str) -> None:
    assert reason in refusal(case, LIMITS, config(), **knobs)


_FLAT = {"block": (32, 2, 1), "steps": 3}
ROCKY = replace(case_of("opened", "d3q19", "bgk"), geometry="blocks:fraction=0.2")
SAMPLES: dict[str, tuple[Case, dict[str, object]]] = {
    "channel": (case_of("channel", "d3q19", "trt"), {}),
    "cavity, three steps": (lid(), {"steps": 3, "rows": 2, "pack": 2, "plane_fetch": "cp_async"}),
    "cavity of 27, flags": (lid("d3q27"), {"rows": 2, "plane_fetch": "registers", "flags": "memory"}),
    "grinder, vectors": (case_of("grinder", "d3q19", "bgk"), {"cells_per_thread": 2, "rows": 2}),
    "solids": (
        case_of("solids", "d3q19", "mrt"),
        {"rows": 2, "pack": 2, "plane_fetch": "registers", "flags": "memory"},
    ),
    "rocks, halves": (case_of("rocks", "d3q19", "bgk"), {"storage": "fp16s", "flags": "memory", "pack": 2}),
    "cavity in the plane": (case_of("cavity", "d2q9", "bgk"), {**_FLAT, "cells_per_thread": 2}),
    "solids in the plane": (case_of("solids", "d2q9", "bgk"), {**_FLAT, "flags": "memory"}),
    "symmetry plane": (half_channel("d3q19", "bgk", (64, 64, 64), 1.3), {"rows": 3}),
    "inlet, outlet, slip": (case_of("opened", "d3q19", "trt"), {"rows": 2, "pack": 2, "cells_per_thread": 2}),
    "slip across x, words, 27": (case_of("slipping", "d3q27", "bgk"), {"steps": 3, "rows": 3, "flags": "memory"}),
    "inlet in the plane": (case_of("opened", "d2q9", "bgk"), {**_FLAT, "storage": "fp16s", "pack": 2}),
    "solid cells at an inlet": (ROCKY, {"rows": 2, "flags": "memory"}),
}


_NOT_EVERY_DAY = ("symmetry plane", "solid cells at an inlet")


@needs_compiler
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one in _NOT_EVERY_DAY else one for one in SAMPLES]
)
def test_kernels_on_the_host(name: str) -> None:
    case, axes = SAMPLES[name]
    assert broken(case, config(**axes), LIMITS) is None
    program = render(case, config(**axes))
    found = verify(program, compile_on_host(program), HostDevice(), 2)
    assert found.passed, found


@needs_compiler
@pytest.mark.parametrize(("flags", "size"), [("compiled", (2, 3, 1)), ("memory", (31, 9, 2))])
def test_domains_smaller_than_the_halo(flags: str, size: tuple[int, int, int]) -> None:
    """Three steps of a launch see both faces of a narrow box."""
    program = render(lid(size=size), config(steps=3, rows=2, plane_fetch="registers", flags=flags, chunk_planes=1))
    found = verify_full_size(program, compile_on_host(program), HostDevice())
    assert found.passed, found


FAULTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "a link returns what another sends": ("compiled", _text("where_cut(cut, 7, left", "where_cut(cut, 7, right")),
    "a lid at rest": ("compiled", _text("const Word moving = (", "const Word moving = 0u & (")),
    "nothing comes back from above": ("compiled", _text("] + current[14];", "];")),
    "what came back stays": ("compiled", _text("current[15] = 0;", "")),
    "solid cells send": ("memory", _text("m[k] = word & 1u ? Real(0) : m[k]", "(void)k")),
}


AT_FACES: dict[str, tuple[str, Callable[[str], str]]] = {
    "nothing is completed": ("opened", _text("complete(m[r][v], first_x", "if (!nx) complete(m[r][v], first_x")),
    "the face of another plane": ("opened", _text("if (z == 0)", "if (z == 1)")),
    "an inlet before slip": ("slipping", lambda text: _swapped(text, "at_x_high(m);", "at_y_high(m, ")),
}


def _swapped(text: str, first: str, then: str) -> str:
    """Two lines of one function in the other order."""
    lines = text.split("\n")
    a, b = (next(n for n, line in enumerate(lines) if part in line) for part in (first, then))
    assert a < b
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


@needs_compiler
@pytest.mark.parametrize("fault", AT_FACES)
def test_verification_finds_a_wrong_face(fault: str) -> None:
    flow, change = AT_FACES[fault]
    program = render(case_of(flow, "d3q19", "bgk"), config(rows=2, plane_fetch="registers"))
    changed = replace(program, source=change(program.source))
    assert changed.source != program.source
    assert not verify(changed, compile_on_host(changed), HostDevice(), 1).passed


def test_a_kernel_without_such_faces_has_no_word_of_them() -> None:
    assert "complete(" not in render(lid(), config()).source
    program = render(case_of("opened", "d3q19", "bgk"), config())
    assert program.source.count("complete(m[r][v], first_x + v, first_y + r, here_z") == 1
    (launch,) = program.period[0]
    assert {"inlet_x", "excess", "wall_x"} <= set(launch.arguments)
    assert len(set(launch.arguments)) == len(launch.arguments)


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_verification_finds(fault: str) -> None:
    flags, change = FAULTS[fault]
    case = case_of("solids", "d3q19", "bgk") if flags == "memory" else lid()
    program = render(case, config(rows=2, plane_fetch="registers", flags=flags))
    changed = replace(program, source=change(program.source))
    assert changed.source != program.source
    assert not verify(changed, compile_on_host(changed), HostDevice(), 1).passed
