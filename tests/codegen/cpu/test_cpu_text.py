"""Generated CPU kernels, run as plain Python: every scheme, layout and lattice with walls, and no races."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from lbmtune.backend.protocol import Binary
from lbmtune.codegen.program import Program
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import oracle
from lbmtune.records import Resources
from lbmtune.runtime import Simulation
from tests.support.devices import interpreted_simd
from tests.support.devices.interpreted_simd import RaceError
from tests.support.kernels.cpu_cases import (
    BLOCKWISE,
    ORDERED,
    PRECISIONS,
    SCHEME_NAMES,
    SCHEMES_AND_LAYOUTS,
    InterpretingDevice,
    case_of,
    config_of,
    interpret,
    program_of,
)
from tests.support.paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "cpu"
REWRITE = "LBMTUNE_REWRITE_GOLDEN"


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("scheme", "layout"), SCHEMES_AND_LAYOUTS)
def test_every_scheme_and_layout_with_walls(scheme: str, layout: str) -> None:
    found = interpret(program_of(case_of("moving-x", "d2q9"), config_of(scheme, layout)))
    assert found.passed, found


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("scheme", "lattice", "flow"), list(product(SCHEME_NAMES, ("d3q19", "d3q27"), ("moving-x", "channel")))
)
def test_every_scheme_in_three_dimensions(scheme: str, lattice: str, flow: str) -> None:
    found = interpret(program_of(case_of(flow, lattice), config_of(scheme, "soa")), periods=1)
    assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "layout"), SCHEMES_AND_LAYOUTS)
def test_everything(scheme: str, layout: str) -> None:
    for lattice, flow, precision in product(LATTICES, ("box", "channel", "cavity", "moving-x"), PRECISIONS):
        found = interpret(program_of(case_of(flow, lattice, "trt"), config_of(scheme, layout, precision)))
        assert found.passed, (lattice, flow, precision, found)


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("scheme", "precision"), list(product(SCHEME_NAMES, PRECISIONS)))
def test_every_precision(scheme: str, precision: str) -> None:
    found = interpret(program_of(case_of("channel", "d2q9", "trt"), config_of(scheme, "soa", precision)))
    assert found.passed, found


@pytest.mark.parametrize(("scheme", "precision"), list(product(["pull", "aa"], ["fp64", "fp32"])))
def test_streaming_stores_are_aligned(scheme: str, precision: str) -> None:
    config = config_of(scheme, "soa", precision, streaming_stores=1, row_offset=16, row_padding=15)
    assert interpret(program_of(case_of("cavity", "d3q19"), config), periods=1).passed


def test_in_place_only_what_stays_in_its_cell_is_streamed() -> None:
    """All 19 populations of the steps of AA that do not propagate, and the rest population of the others."""
    config = config_of("aa", "soa", "fp32", streaming_stores=1, row_offset=16, row_padding=15)
    source = program_of(case_of("box", "d3q19"), config).source
    assert [len(re.findall(rf"^ +{verb}\(field", source, re.M)) for verb in ("stream", "store")] == [20, 18]
    assert source.count("simd.fence()") == 2


@pytest.mark.parametrize("layout", ["soa", "aosoa"])
@pytest.mark.parametrize(("scheme", "local", "propagated"), [("pull", 1, 18), ("aa", 20, 18)])
def test_what_is_prefetched_is_what_is_read_further_on(scheme: str, layout: str, local: int, propagated: int) -> None:
    """Over all parities: of a pull all but the rest comes from neighbours, of AA nothing does in every second step."""
    config = config_of(scheme, layout, "fp32", prefetch_local=32, prefetch_propagated=64)
    program = program_of(case_of("box", "d3q19"), config)
    found = [re.findall(rf"prefetch\((\w+, .*\(x \+ {cells}\).*)\)$", program.source, re.M) for cells in (32, 64)]
    assert [len(group) for group in found] == [local, propagated]
    if layout == "soa":
        read = set(re.findall(r"= load\((.*)\)$", program.source, re.M))
        assert {
            text.replace(f"(x + {n})", "x") for group, n in zip(found, (32, 64), strict=True) for text in group
        } == read
    interpreted_simd.prefetches.clear()
    assert interpret(program, periods=1).passed
    size, last = interpreted_simd.prefetches[0][0], max(i for _, i in interpreted_simd.prefetches)
    assert min(i for _, i in interpreted_simd.prefetches) >= 0
    assert last > size - 96  # beyond the end of the last row


@pytest.mark.parametrize("loop", ["z", "zy", "tile-3x2"])
def test_loops_visit_every_row(loop: str) -> None:
    found = interpret(program_of(case_of("cavity", "d3q19"), config_of("aa", "soa", parallel_loop=loop, threads=2)))
    assert found.passed, found


def test_rows_that_share_an_element_are_noticed() -> None:
    program = program_of(case_of("box", "d2q9"), config_of("aa", "soa"))
    mutant = replace(program, source=program.source.replace("if y > 0 else ny - 1", "if y > 0 else 0"))
    with pytest.raises(RaceError):
        interpret(mutant)


BLOCKS = {
    "a ring that nobody refreshes": lambda t: t.replace("if y % 3 == 0:", "if y < 0:", 1),
    "a ring of the wrong row": lambda t: t.replace("y - 1 if y > 0 else ny - 1", "y"),
    "home too early": lambda t: t.replace("behind = 1\n", "behind = 0\n"),
    "home in another row": lambda t: t.replace("first_y + home % rows_y", "first_y + (home + 1) % rows_y"),
}


@pytest.mark.parametrize("mutation", BLOCKS)
def test_wrong_blocks_fail(mutation: str) -> None:
    program = program_of(case_of("box", "d2q9"), config_of("ghost-cell", "soa"))
    mutant = replace(program, source=BLOCKS[mutation](program.source))
    assert mutant.source != program.source
    assert not interpret(mutant).passed


ORDER = {
    "a swap with a row that is not updated yet": lambda t: re.sub("(closed_low_here) = .*", r"\1 = False", t),
    "a swap that no pass makes": lambda t: t.replace("    if y == 0 or number - 1 < first:", "    if y == 0:"),
    "a swap that both passes make": lambda t: t.replace("    if y == 0 or number - 1 < first:", "    if True:"),
    "neighbours of a row that wait for each other": lambda t: re.sub(r"\n    store_one\(field, p1, .*", "", t),
}


@pytest.mark.parametrize("mutation", ORDER)
def test_a_wrong_order_fails(mutation: str) -> None:
    program = program_of(case_of("box", "d2q9"), config_of("swap-ordered", "soa", threads=2))
    assert interpret(program).passed
    mutant = replace(program, source=ORDER[mutation](program.source))
    assert mutant.source != program.source
    with contextlib.suppress(RaceError):
        assert not interpret(mutant).passed


def test_slabs_that_swap_at_once_are_noticed() -> None:
    program = program_of(case_of("box", "d3q19"), config_of("swap-ordered", "soa", threads=2))
    mutant = replace(program, source=program.source.replace("< first", "< 0"))
    with pytest.raises(RaceError):
        interpret(mutant)


@pytest.mark.parametrize("scheme", [*BLOCKWISE, *ORDERED])
def test_any_number_of_threads_leaves_the_same_bits(scheme: str) -> None:
    case = replace(case_of("moving-x", "d2q9"), domain=(16, 7, 1))
    states = [_run(program_of(case, config_of(scheme, "soa", "fp32", threads=n)), 3) for n in (1, 2, 3, 8)]
    assert all((state == states[0]).all() for state in states)


def _run(program: Program, steps: int) -> np.ndarray:
    simulation = Simulation(program, Binary(b"", "", Resources()), InterpretingDevice())
    simulation.initialise(oracle.random_state(program.case))
    simulation.step(steps)
    return simulation.populations()


def test_a_block_that_reads_past_its_ring_is_noticed() -> None:
    program = program_of(case_of("box", "d2q9"), config_of("ghost-cell", "soa"))
    mutant = replace(program, source=program.source.replace("((((y // 3) * 5)", "((((y // 3) * 3)"))
    with pytest.raises(RaceError):
        interpret(mutant)


def test_rows_go_home_as_soon_as_they_may() -> None:
    """What a thread keeps is all that the footprint says, not the whole block."""
    config = config_of("ghost-cell", "soa", parallel_loop="tile-4x3")
    program = program_of(case_of("box", "d3q19"), config)
    assert "behind = 1 + 1 * rows_y" in program.source
    kept = int(re.search(r"np\.zeros\((\d+) \* nx", program.source)[1])  # type: ignore[index]
    assert kept == 19 * (4 + 2)
    assert config.scratch_bytes(program.case) == 2 * kept * 96 * 8


def _swap(text: str, first: str, second: str) -> str:
    return text.replace(first, "\0").replace(second, first).replace("\0", second)


MUTATIONS = {
    "two directions swapped on reading": lambda t: _swap(t, "f1 = load(", "f2 = load("),
    "wrong sign of an offset": lambda t: re.sub(r"(p2 = 2 \* stride .*) \+ \d+", r"\1 + 0", t, count=1),
    "wrong weight": lambda t: t.replace("c1_9 = real(1 / 9)", "c1_9 = real(1 / 6)"),
    "stale ghost column": lambda t: re.sub(r"\n    store_one\(.*", "", t, count=1),
    "one direction never written": lambda t: re.sub(r"\n        store\(.*, g3\)", "", t, count=1),
}


@pytest.mark.parametrize(("mutation", "precision"), list(product(MUTATIONS, PRECISIONS)))
def test_mutations_fail(mutation: str, precision: str) -> None:
    program = program_of(case_of("box", "d2q9"), config_of("pull", "soa", precision))
    assert interpret(program, periods=3).passed
    mutant = replace(program, source=MUTATIONS[mutation](program.source))
    assert mutant.source != program.source
    assert not interpret(mutant, periods=3).passed


STREAMED = {"streaming_stores": 1, "row_offset": 16, "row_padding": 15, "threads": 2}
TILED = {"parallel_loop": "tile-4x1"}
SWEPT = {"family": "wavefront", "tile": (8, 1), "threads": 2, "steps": 4}
SHARED_ROWS = {"threads": 2, "parallel_loop": "zy"}
EXAMPLES = {
    "pull_d3q19_box": ("box", "d3q19", config_of("pull", "soa", "fp32", **STREAMED)),
    "esoteric-pull_d2q9_channel": (
        "channel",
        "d2q9",
        config_of("esoteric-pull", "soa", "fp16s", **SHARED_ROWS),
    ),
    "aa_aosoa_d2q9_cavity": ("cavity", "d2q9", config_of("aa", "aosoa", "fp32")),
    "esoteric-twist_aos_d2q9_cavity": ("cavity", "d2q9", config_of("esoteric-twist", "aos-select", "fp64")),
    "swap-ordered_d2q9_channel": ("channel", "d2q9", config_of("swap-ordered", "soa", "fp32", threads=2)),
    "ghost-cell_d2q9_cavity": ("cavity", "d2q9", config_of("ghost-cell", "soa", "fp16s")),
    "aa_ahead_d2q9_channel": ("channel", "d2q9", config_of("aa", "soa", "fp16s", collision_passes="pipelined")),
    "esoteric-twist_sweep_d3q19_channel": ("channel", "d3q19", config_of("esoteric-twist", "soa", "fp32", **SWEPT)),
    "push_d2q9_lids": ("moving-x", "d2q9", config_of("push", "soa-256", "fp64", **TILED)),
}


def _example(name: str) -> Program:
    flow, lattice, config = EXAMPLES[name]
    return program_of(case_of(flow, lattice), config)


def _lasting(text: str) -> str:
    """The text without the digest of the support module, which changes more often than kernels do."""
    return re.sub(r"(made for: )\w+", r"\1-", text)


@pytest.mark.parametrize("name", EXAMPLES)
def test_golden_text(name: str) -> None:
    """Set LBMTUNE_REWRITE_GOLDEN=1 to accept the present text."""
    path, text = GOLDEN / f"{name}.py.txt", _lasting(_example(name).source)
    if os.environ.get(REWRITE):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
