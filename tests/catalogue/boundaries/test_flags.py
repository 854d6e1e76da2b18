"""Flags in memory: the words, the CUDA kernels that read them, their bytes, and faults that verification finds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cuda import nvrtc
from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS, words
from lbmtune.catalogue.boundaries.cut_links import cut_kinds
from lbmtune.catalogue.config import CudaConfig, cuda, knobs_by_name, parse_config
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes, traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import cavity, porous
from lbmtune.catalogue.problem.geometry import solid
from lbmtune.codegen.describe import describe_kernel
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.errors import DeviceUnavailableError, InputError
from lbmtune.measure.verification.verify import verify
from lbmtune.runtime import Simulation, simulation
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels import compiled
from tests.support.kernels.cuda_samples import (
    LATTICE_NAMES,
    LAYOUT_NAMES,
    VECTOR_SCHEMES,
    Sample,
    config,
    flows,
    label,
    legal,
    samples,
)
from tests.support.kernels.full_size import verify_full_size

needs_a_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
ROCK = "blocks:fraction=0.3"
STONE = porous("d3q19", "bgk", (8, 6, 4), 1.3, ROCK)
LID = cavity("d3q19", "bgk", (8, 6, 4), 1.3)


def rocky(lattice: str, flow: str = "grinder") -> Case:
    return replace(flows(lattice, "bgk")[flow], geometry=ROCK)


def _flagged(scheme: str, layout: str = "soa", **axes: Any) -> CudaConfig:
    cells = 1 if layout == "aos" else 4
    chosen = {"scheme": scheme, "layout": layout, "cells_per_thread": cells, "flags": "memory", **axes}
    found: CudaConfig = config(family="direct", **chosen)
    return found


def _check(case: Case, one: CudaConfig) -> None:
    assert broken(case, one, Limits()) is None
    program = render(case, one)
    found = verify(program, compile_on_host(program), HostDevice())
    assert found.passed, found


@pytest.mark.parametrize("case", [STONE, replace(LID, geometry=ROCK)], ids=lambda case: case.flow)
def test_words_say_of_every_link_what_it_meets(case: Case) -> None:
    kinds, rock = cut_kinds(case), solid(case).reshape(-1)
    flags, moving = words(case, WORDS, np), words(case, MOVING_WORDS, np)
    for i, opposite in enumerate(case.stencil.opposite):
        cut = kinds[opposite].reshape(-1)
        assert ((flags >> i & 1) == (cut > 0)).all()
        assert ((moving >> i & 1) == (cut == 2)).all()
    assert ((flags & 1) == rock).all()
    assert (flags[rock] == 2**19 - 1).all()
    assert flags.dtype == np.uint32


def test_a_population_and_the_flag_of_its_link() -> None:
    """Bit 1 of the first cell of a row says that what comes along +x is sent back by the wall at x-."""
    assert LID.stencil.velocities[1] == (1, 0, 0)
    flags = words(LID, WORDS, np).reshape(4, 6, 8)
    assert flags[2, 3].tolist() == [flags[2, 3, 0], 0, 0, 0, 0, 0, 0, flags[2, 3, 7]]
    assert flags[2, 3, 0] & 0b110 == 0b010
    assert flags[2, 3, 7] & 0b110 == 0b100


@pytest.mark.thinned(8)
@needs_a_compiler
@pytest.mark.parametrize(("scheme", "layout", "lattice"), list(product(VECTOR_SCHEMES, LAYOUT_NAMES, LATTICE_NAMES)))
def test_every_scheme_and_layout_with_solids_and_moving_walls(scheme: str, layout: str, lattice: str) -> None:
    case, one = rocky(lattice), _flagged(scheme, layout)
    if not legal(case, one):
        one = replace(one, cells_per_thread=1)
    _check(case, one)


@pytest.mark.thinned(8)
@needs_a_compiler
@pytest.mark.parametrize("scheme", VECTOR_SCHEMES)
@pytest.mark.parametrize(("cells", "boundary"), [(1, "branch"), (1, "predicated"), (2, "branch"), (8, "branch")])
def test_vectors_and_selected_places(scheme: str, cells: int, boundary: str) -> None:
    storage = "fp16s" if cells == 8 else "fp32"
    _check(rocky("d3q19"), _flagged(scheme, cells_per_thread=cells, boundary=boundary, storage=storage))


def _sampled(count: int, seed: int) -> list[Sample]:
    """Samples of all axes with flags, on cases with and without solid cells."""
    return list(islice(_samples(seed), count))


def _samples(seed: int) -> Iterator[Sample]:
    draw = random.Random(seed)
    for case, one in samples(seed):
        geometry = draw.choice(("", ROCK, "blocks:fraction=0.7", "sphere", "packing:fraction=0.5:radius=2"))
        changed = replace(case, geometry=geometry), replace(one, flags="memory", wrap="arithmetic")
        if legal(*changed):
            yield changed


@pytest.mark.thinned(8)
@needs_a_compiler
@pytest.mark.parametrize("sample", _sampled(30, seed=5), ids=label)
def test_all_axes_together(sample: Sample) -> None:
    _check(*sample)


@needs_a_compiler
@pytest.mark.parametrize("scheme", ["pull", "aa", "esoteric-twist"])
def test_the_measured_domain_itself(scheme: str) -> None:
    case = porous("d3q19", "bgk", (64, 12, 10), 1.3, "packing:fraction=0.5:radius=3")
    program = render(case, _flagged(scheme))
    assert verify_full_size(program, compile_on_host(program), HostDevice()).passed


@needs_a_compiler
@pytest.mark.parametrize("scheme", VECTOR_SCHEMES)
def test_the_mass_of_the_fluid_stays(scheme: str) -> None:
    case = porous("d3q19", "bgk", (32, 6, 4), 1.3, ROCK, force=(0.0, 0.0, 0.0))
    program = render(case, _flagged(scheme, storage="fp64", cells_per_thread=2))
    running = Simulation(program, compile_on_host(program), HostDevice())
    fluid = ~solid(case)
    weights = np.array([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
    running.initialise(np.random.default_rng(1).uniform(0.9, 1.1, (19, *fluid.shape)) * weights)
    before = running.populations()[:, fluid].sum()
    running.step(10)
    assert running.populations()[:, fluid].sum() == pytest.approx(before, rel=1e-12)


def _text(old: str, new: str) -> Callable[[Program], Program]:
    def mutate(program: Program) -> Program:
        assert old in program.source
        return replace(program, source=program.source.replace(old, new, 1))

    return mutate


FAULTS: dict[str, Callable[[Program], Program]] = {
    "another bit": _text("read_cut(f[3], flags.cut, 3,", "read_cut(f[3], flags.cut, 4,"),
    "cut link not read again": _text("        read_cut(f[5]", "        //read_cut(f[5]"),
    "wall that does not move": _text("        add_cut(f[", "        //add_cut(f["),
    "solid cells seen as fluid": _text("cut[v] = solid ? 0u : own.of[v];", "cut[v] = 0u;"),
}
IN_PLACE_FAULTS: dict[str, Callable[[Program], Program]] = {
    "written over a cut link": _text("if (!(shut >> v & 1u))", "if (true)"),
    "cut link not kept": _text("        write_cut(f[7]", "        //write_cut(f[7]"),
    "flags of the neighbour ignored": _text("made.shut[0] = lane.first ? ~0u : before;", "made.shut[0] = 0;"),
}


@needs_a_compiler
@pytest.mark.parametrize("fault", [*FAULTS, *IN_PLACE_FAULTS])
def test_verification_finds_a_wrong_kernel(fault: str) -> None:
    scheme, mutate = ("pull", FAULTS[fault]) if fault in FAULTS else ("esoteric-pull", IN_PLACE_FAULTS[fault])
    program = mutate(render(rocky("d3q19"), _flagged(scheme)))
    assert not verify(program, compile_on_host(program), HostDevice()).passed


@needs_a_compiler
@pytest.mark.parametrize("scheme", ["pull", "push", "aa", "esoteric-twist", "esoteric-pull"])
def test_verification_finds_one_wrong_bit(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag of one link of a fluid cell, at its one end."""
    program = render(rocky("d3q19", "box"), _flagged(scheme))
    binary = compile_on_host(program)

    def wrong(case: Case, *arguments: object) -> np.ndarray:
        made = words(case, *arguments).copy()  # type: ignore[arg-type]
        made[int(np.flatnonzero(~solid(case).reshape(-1))[7])] ^= 1 << 11
        aligned = HostDevice().empty(made.size, "uint32")
        aligned[:] = made
        return aligned

    assert verify(program, binary, HostDevice()).passed
    monkeypatch.setattr(simulation, "words", wrong)
    assert not verify(program, binary, HostDevice()).passed


def test_text_without_flags_knows_nothing_of_them() -> None:
    assert "Flags" not in render(flows("d3q19", "bgk")["cavity"], config()).source


def test_bytes_of_flags_are_a_term_of_their_own() -> None:
    case = replace(STONE, domain=(10, 10, 10))
    assert case.fluid_sites == 700
    pull = cuda.Direct(compute="fp64", flags="memory", storage="fp64")
    assert traffic(case, pull).populations == 2 * 19 * 8
    assert traffic(case, pull).flags == pytest.approx(4 / 0.7)
    assert bytes_per_update(case, pull) == pytest.approx(304 + 4 / 0.7)
    assert footprint_bytes(case, pull) == 1000 * (2 * 19 * 8 + 4)
    compiled = cuda.Direct(compute="fp64", storage="fp64")
    assert traffic(LID, compiled).flags == 0
    # AA needs them every second step where all cells are fluid; a table of moving walls lies beside
    assert traffic(LID, replace(pull, scheme="aa")).flags == 4
    assert traffic(replace(LID, faces=("wall",) * 6), replace(pull, scheme="aa")).flags == 2
    assert footprint_bytes(LID, pull) == LID.sites * (2 * 19 * 8 + 8)


def test_the_description_lists_the_tables() -> None:
    kernel = describe_kernel(render(LID, cuda.Direct(flags="memory")))
    assert [buffer.name for buffer in kernel.buffers] == ["f0", "f1", "flags", "moving"]
    assert kernel.buffers[2].bytes == 4 * LID.sites
    assert kernel.period[0][0].arguments[:4] == ("f0", "f1", "flags", "moving")


@pytest.mark.parametrize(
    ("case", "axes", "reason"),
    [
        (
            STONE,
            {},
            "flags=compiled is not supported for geometry blocks:fraction=0.3 (use memory, or family",
        ),
        (flows("d3q19", "bgk")["box"], {"flags": "memory"}, "flags=memory is not supported for flow box (use compiled"),
        (
            LID,
            {"flags": "memory", "boundary": "predicated", "cells_per_thread": 4},
            "boundary=predicated is not supported for cells_per_thread=4 (use branch): a vector has one address",
        ),
        (LID, {"boundary": "predicated"}, "boundary=predicated is not supported for flags=compiled (use boundary="),
        (
            replace(LID, faces=(*LID.faces[:4], "periodic", "periodic")),
            {"flags": "memory", "wrap": "ghost"},
            "flags=memory is not supported for wrap=ghost with periodic faces along z (use arithmetic): the refresh",
        ),
        (
            replace(LID, faces=("wall", "wall", *("periodic",) * 4)),
            {"flags": "memory", "wrap": "ghost"},
            "flags=memory is not supported for wrap=ghost with periodic faces along y and z (use arithmetic)",
        ),
        (
            LID,
            {"flags": "memory", "scheme": "ghost-cell"},
            "flags=memory is not supported for scheme=ghost-cell (use compiled): the rings of its blocks",
        ),
    ],
)
def test_what_is_illegal_has_a_reason(case: Case, axes: dict[str, Any], reason: str) -> None:
    found = broken(case, cuda.Direct(block=(8, 1, 1), **axes), Limits())
    assert found is not None
    assert found.startswith(reason)


def test_columns_have_no_flags() -> None:
    assert "flags" not in knobs_by_name(cuda.Column)
    with pytest.raises(InputError, match=r"flags is not a knob of family column \(families direct, "):
        parse_config("family=column,flags=memory")


@pytest.mark.parametrize("scheme", VECTOR_SCHEMES)
def test_flagged_text_compiles_for_a_gpu(scheme: str) -> None:
    try:
        nvrtc.nvrtc()
    except DeviceUnavailableError as error:
        pytest.skip(str(error))
    for axes in ({}, {"cells_per_thread": 1, "boundary": "predicated"}):
        program = render(rocky("d3q19"), _flagged(scheme, **axes))
        assert compiled.resources("flags.txt", program).spill_bytes == 0
