"""Kernels of moments on the CPU with walls, moving walls and solid cells, in every step of a launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.catalogue.families.cpu.moments_wavefront import ring_rows, thread_values
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.footprint import footprint_bytes, traffic
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Resources
from lbmtune.runtime import Simulation
from tests.codegen.cpu.test_moments_wavefront import LIMITS, config, flow
from tests.support.conformance.choices import case_of
from tests.support.kernels.cpu_cases import InterpretingDevice, interpret
from tests.support.kernels.full_size import verify_full_size


def made(name: str, lattice: str = "d3q19", **axes: Any) -> Program:
    case = case_of(name, lattice, "regularised")
    chosen = config(**{"flags": "memory" if case.geometry else "compiled", **axes})
    assert broken(case, chosen, replace(LIMITS, vector_bits=512)) is None
    return render(case, chosen)


_DOUBLE = {"storage": "fp64", "compute": "fp64"}


@pytest.mark.parametrize("name", ["channel", "grinder", "solids"])
def test_interpreted_kernels_are_right(name: str) -> None:
    found = interpret(made(name, "d2q9", **_DOUBLE, steps=2, vector_bits=256), periods=1)
    assert found.passed, found


SAMPLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "cavity": ("cavity", "d3q19", {"steps": 3, "tile": (16, 4, 2)}),
    "channel, many steps": ("channel", "d3q19", {"steps": 8, "tile": (16, 2, 1), "streaming_stores": 1}),
    "grinder of 27, double": ("grinder", "d3q27", {**_DOUBLE, "steps": 2}),
    "grinder, single cells": ("grinder", "d2q9", {"steps": 3, "vector_bits": 0}),
    "grinder, tiles along x": ("grinder", "d3q19", {"steps": 5, "tile": (32, 3, 2), "storage": "bf16"}),
    "solids, halves": ("solids", "d3q19", {"steps": 4, "storage": "fp16s", "tile": (16, 5, 2), "threads": 1}),
    "solids, tiles along x": ("solids", "d3q19", {"steps": 2, "tile": (32, 2, 2)}),
    "solids, bfloat": ("solids", "d2q9", {"steps": 8, "storage": "bf16"}),
    "rocks of 27": ("rocks", "d3q27", {"steps": 3, "layout": "rows", "row_offset": 0}),
    "rocks, one step": ("rocks", "d3q19", {"steps": 1, "streaming_stores": 1}),
}
_EVERY_DAY = ("cavity", "solids, bfloat")


@pytest.mark.parametrize(
    "name", [one if one in _EVERY_DAY else pytest.param(one, marks=pytest.mark.slow) for one in SAMPLES]
)
def test_compiled_kernels_are_right(name: str) -> None:
    case, lattice, axes = SAMPLES[name]
    program, device = made(case, lattice, **{"vector_bits": vector_bits(), **axes}), open_cpu()
    binary = compile_cpu(program)
    found = verify(program, binary, device, 2)
    assert found.passed, found
    for domain in ((48, 17, 9), (16, 2, 3)) if lattice != "d2q9" else ((48, 17, 1), (16, 1, 1)):
        small = replace(program, case=replace(program.case, domain=domain))
        found = verify_full_size(small, binary, device)
        assert found.passed, found


@pytest.mark.parametrize("threads", [2, 3])
def test_any_number_of_threads_leaves_the_same_bits(threads: int) -> None:
    alone, several = (_after(made("solids", "d2q9", steps=2, threads=n), (32, 11, 1), 4) for n in (1, threads))
    assert (alone == several).all()


def _after(program: Program, domain: tuple[int, int, int], steps: int) -> np.ndarray:
    """Populations of the fluid after some steps of a random state."""
    case = replace(program.case, domain=domain)
    simulation = Simulation(replace(program, case=case), Binary(b"", "", Resources()), InterpretingDevice())
    simulation.initialise(oracle.random_state(case))
    simulation.step(steps)
    return simulation.populations()


def test_solid_cells_are_at_rest_when_a_launch_ends() -> None:
    program = made("rocks", "d2q9", steps=2)
    domain = (32, 11, 1)
    found = _after(program, domain, 2)
    solid = solid_in(replace(program.case, domain=domain), whole(domain))
    weights = np.array([float(w) for w in program.case.stencil.weights])
    assert solid.any()
    np.testing.assert_allclose(found[:, solid], np.repeat(weights[:, None], solid.sum(), axis=1), rtol=1e-6)


def _text(old: str, new: str) -> Callable[[str], str]:
    def changed(source: str) -> str:
        assert old in source, old
        return source.replace(old, new)

    return changed


FAULTS: dict[str, tuple[str, str, tuple[int, int, int], Callable[[str], str]]] = {
    "a lid at rest": ("grinder", "d2q9", (32, 7, 1), _text(" + gain", " + 0 * gain")),
    "a wall of another row": ("channel", "d2q9", (32, 7, 1), _text("if y == ny - 1:", "if y == ny - 2:")),
    "a side of another cell": ("grinder", "d2q9", (32, 7, 1), _text("if -first_x >= low:", "if first_x > low:")),
    "what another row has sent": ("channel", "d2q9", (32, 7, 1), _text("own_hd = before + number", "own_hd = number")),
    "solid cells take what is others'": ("solids", "d2q9", (32, 7, 1), _text("some_cut(flags, at)", "at == words")),
    "rows that the next tile misses": ("channel", "d3q19", (16, 6, 3), _text("if row == 2:", "if row == 3:")),
    "a row of this tile sought in the last": (
        "channel",
        "d3q19",
        (16, 6, 3),
        _text("if row == 0 else", "if row < 0 else"),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_kernels_fail(fault: str) -> None:
    name, lattice, domain, change = FAULTS[fault]
    program = made(name, lattice, **_DOUBLE, steps=2)
    wrong = replace(program, source=change(program.source))
    assert wrong.source != program.source
    difference = abs(_after(wrong, domain, 2) - _after(program, domain, 2))
    assert not difference.max() < 1e-6


def test_a_kernel_without_walls_has_no_word_of_them() -> None:
    periodic, walled = render(flow(), config(steps=2)).source, made("channel", steps=2).source
    for word in (" own_", "gain", "flags", "if y == 0"):
        assert word not in periodic, word
    assert " own_" in walled
    assert "flags" not in walled


def test_what_walls_need_besides() -> None:
    """What goes down waits for its own cells as long as what stays in its plane; words are read once per launch."""
    one = config(steps=2, tile=(32, 4, 2), flags="memory")
    channel, rock = (case_of(name, "d3q19", "regularised") for name in ("channel", "rocks"))
    assert [ring_rows(channel, one, c_z) for c_z in (-1, 0, 1)] == [4 + 3, 4 + 3, 2 * 4 + 3]
    more = 2 * 5 * 4 * (32 + 32)
    assert thread_values(channel, one) - thread_values(flow(), one) == more
    assert traffic(rock, one).flags == pytest.approx(2 * rock.sites / rock.fluid_sites)
    without = replace(rock, geometry="")
    words = footprint_bytes(rock, one) - footprint_bytes(without, replace(one, flags="compiled"))
    assert words == 4 * rock.sites + 2 * more * 4
