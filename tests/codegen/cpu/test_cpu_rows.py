"""Direction arrays that lie a given stride apart, and rows that fill their far ends between two parts of a loop."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.compilation.modules import import_text
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.backend.protocol import Binary, TooManyResourcesError
from lbmtune.catalogue.collisions import COLLISIONS, collision
from lbmtune.catalogue.collisions.min_instruction_forms import by_axes
from lbmtune.catalogue.collisions.operator import assignments
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.codegen.cpu.direct.row_kernel import between
from lbmtune.codegen.cpu.shared.collision import relaxation_text
from lbmtune.measure.verification.verify import compare, verify
from lbmtune.model.instructions import operations
from lbmtune.records import Resources
from lbmtune.runtime import Simulation
from tests.support.kernels.cpu_cases import LIMITS, InterpretingDevice, case_of, config_of, interpret, program_of

PASSES = ("one", "two", "pipelined", "minimal")
BETWEEN: dict[str, Any] = {"row_tail": "peeled"}
LEGAL = [
    scheme for scheme in SCHEMES if broken(case_of("box", "d2q9"), config_of(scheme, "soa", **BETWEEN), LIMITS) is None
]
CELLS = 100 * 11
"""More than a direction array has of the domains that verification chooses here."""


@pytest.mark.parametrize(("scheme", "layout"), list(product(LEGAL, ("soa-256", "aosoa-256"))))
def test_every_scheme_fills_between(scheme: str, layout: str) -> None:
    program = program_of(case_of("moving-x", "d2q9"), config_of(scheme, layout, **BETWEEN))
    assert "    for part in range(" in program.source
    found = interpret(program, periods=1)
    assert found.passed, found


def test_far_ends_that_nothing_fills_late() -> None:
    assert {"pull", "aa", "esoteric-pull", "esoteric-twist"} <= set(LEGAL)
    assert not {"push", "swap-ordered"} & set(LEGAL)


@pytest.mark.parametrize(
    ("passes", "vectors", "flow"), list(product(("one", "pipelined"), (1, 2, 3, 4), ("box", "moving-x")))
)
def test_rows_of_few_vectors(passes: str, vectors: int, flow: str) -> None:
    case = case_of(flow, "d2q9")
    program = program_of(case, config_of("aa", "soa", "fp32", collision_passes=passes, vector_bits=256, **BETWEEN))
    there = replace(case, domain=(8 * vectors, 3, 1))
    found = compare(program, Binary(b"", "", Resources()), InterpretingDevice(), there, periods=1)
    assert found.passed, found


@pytest.mark.parametrize("passes", PASSES)
def test_no_condition_is_left_in_the_loop(passes: str) -> None:
    text = program_of(
        case_of("cavity", "d3q19"), config_of("esoteric-twist", "soa", collision_passes=passes, **BETWEEN)
    ).source
    loops = text.split("        for x in range(part * late, ")[1:]
    assert len(loops) == 1, "the other parity reads beyond the near ends"
    body = [line for line in loops[0].splitlines()[1:] if line.startswith(" " * 12)]
    assert len([line for line in body if "store(" in line]) == 19
    assert not [line for line in body if line.strip().startswith("if ")]


@pytest.mark.parametrize(
    ("scheme", "precision", "axes"),
    [
        ("pull", "fp32", {}),
        ("aa", "fp16s", {"collision_passes": "pipelined"}),
        ("esoteric-twist", "fp32", {"collision_passes": "two", **BETWEEN}),
        ("esoteric-pull", "fp32", {"collision_passes": "minimal"}),
    ],
)
def test_a_stride_is_a_number_in_the_text(scheme: str, precision: str, axes: dict[str, Any]) -> None:
    config = config_of(scheme, "soa-256", precision, **{"padding": 0, "stride": CELLS, **axes})
    program = program_of(case_of("moving-x", "d2q9"), config)
    assert f"    stride = {CELLS}\n" in program.source
    assert program.buffer_elements((16, 3, 1)) == 9 * CELLS
    found = interpret(program, periods=1)
    assert found.passed, found


@pytest.mark.skipif(vector_bits() < 256, reason="this processor has no such vectors")
@pytest.mark.parametrize(
    ("scheme", "passes", "precision", "axes"),
    [
        ("esoteric-twist", "pipelined", "fp16s", {"parallel_loop": "zy"}),
        (
            "aa",
            "pipelined",
            "fp32",
            {"family": "wavefront", "tile": (3, 2), "steps": 3, "prefetch_rows": 1, "threads": 2},
        ),
        ("esoteric-twist", "minimal", "fp32", {"family": "wavefront", "tile": (3, 1), "steps": 2}),
        ("esoteric-pull", "one", "fp64", {"prefetch_local": 16, "prefetch_propagated": 32}),
    ],
)
def test_compiled(scheme: str, passes: str, precision: str, axes: dict[str, Any]) -> None:
    many = {"collision_passes": passes, "padding": 0, "stride": 40_000, **BETWEEN, **axes}
    program = program_of(case_of("moving-x", "d3q19"), config_of(scheme, "soa-256", precision, **many))
    found = verify(program, compile_cpu(program), open_cpu())
    assert found.passed, found


TILED = {"family": "wavefront", "tile": (3, 2)}
ASKING = {"stride": CELLS, "prefetch_local": 16, "prefetch_propagated": 32}


def _loop(text: str) -> list[str]:
    """The lines of the first loop over x."""
    _, rest = text.split("for x in range(", 1)[1].split("\n", 1)
    depth = len(rest) - len(rest.lstrip())
    return [line.strip() for line in rest.split("\n" + " " * (depth - 4) + "x = ")[0].splitlines()]


def test_converted_populations_are_found_by_few_addresses() -> None:
    config = config_of("esoteric-twist", "soa", "fp16s", collision_passes="pipelined", **{**ASKING, "stride": 40_000})
    lines = _loop(program_of(case_of("box", "d3q19"), config).source)
    placed = [line for line in lines if " = place(field, " in line]
    assert sorted(line.split(" = ")[0] for line in placed) == [
        f"field_{y}_{z}" for y in ("here", "high") for z in ("here", "high")
    ]
    accesses = [line for line in lines if re.search(r"\b(load|store|prefetch)\(", line)]
    assert len(accesses) == 4 * 19
    assert not [line for line in accesses if re.search(r"\bx\b", line) or "(field_" not in line]


@pytest.mark.parametrize(
    ("axes", "is_placed"),
    [
        ({}, True),
        ({"stride": 0}, False),
        ({"vector_bits": 256}, False),
        ({"collision_passes": "one"}, False),
        (None, False),
    ],
)
def test_addresses_only_where_they_help(axes: dict[str, Any] | None, is_placed: bool) -> None:
    precision, axes = ("fp32", {}) if axes is None else ("fp16s", axes)
    config = config_of("aa", "soa", precision, **{"collision_passes": "pipelined", "stride": CELLS, **axes})
    text = program_of(case_of("box", "d2q9"), config).source
    assert ("import places, simd" in text) == ("place = places.place" in text) == is_placed


@pytest.mark.parametrize(
    ("scheme", "passes", "flow"),
    [*product(("pull", "push", "aa"), ("two", "pipelined"), ("box",)), ("esoteric-twist", "pipelined", "moving-x")],
)
def test_addresses_lead_where_rows_do(scheme: str, passes: str, flow: str) -> None:
    program = program_of(case_of(flow, "d2q9"), config_of(scheme, "soa", "fp16s", collision_passes=passes, **ASKING))
    assert " = place(" in program.source
    found = interpret(program, periods=1)
    assert found.passed, found


@pytest.mark.skipif(vector_bits() < 512, reason="this processor has no such vectors")
def test_no_conversion_has_an_index(tmp_path: Path) -> None:
    program = program_of(
        case_of("box", "d2q9"), config_of("aa", "soa", "fp16s", collision_passes="pipelined", **ASKING)
    )
    (code,) = import_text(tmp_path / "placed.py", program.source).step_1.inspect_asm().values()
    loop = max(re.split(r"^\.\w+:$", code, flags=re.M), key=lambda block: block.count("prefetcht0"))
    loaded = re.findall(r"vcvtph2ps\s+[-\w]*\((.*)\), %zmm", loop)
    # to memory, or to a register that is stored after it, as compiled for Zen
    stored = re.findall(r"vcvtps2ph\s.*%zmm\d+, (?:[-\w]*\((.*)\)|%ymm\d+)", loop)
    assert (len(loaded), len(stored)) == (2 * 9, 9)
    assert not [address for address in (*loaded, *stored) if "," in address]


@pytest.mark.parametrize(
    ("precision", "axes", "runs"),
    [
        ("fp16s", {}, [1] * 9),
        ("fp32", {}, [9]),
        ("fp32", {**TILED, "steps": 2}, [1] * 9),
        ("fp32", {**TILED, "steps": 2, "prefetch_rows": 1}, [1] * (9 + 5)),
    ],
)
def test_prefetches_lie_apart_where_much_else_is_done(precision: str, axes: dict[str, Any], runs: list[int]) -> None:
    config = config_of(
        "aa", "soa", precision, collision_passes="pipelined", prefetch_local=16, prefetch_propagated=32, **axes
    )
    lines = _loop(program_of(case_of("box", "d2q9"), config).source)
    kinds = groupby(lines, lambda line: line.startswith("prefetch("))
    assert [len([*group]) for asks, group in kinds if asks] == runs


@pytest.mark.parametrize("lattice", ["d2q9", "d3q19", "d3q27"])
def test_lean_cells_do_less(lattice: str) -> None:
    lean, twice = (operations(relaxation_text(case_of("box", lattice), passes)) for passes in ("minimal", "two"))
    assert (lean.quotients, twice.quotients) == (1, 1)
    assert lean.plain < twice.plain
    texts = [
        program_of(case_of("box", lattice), config_of("aa", "soa", "fp32", collision_passes=passes)).source
        for passes in ("minimal", "two")
    ]
    assert len(re.findall(r" [-+*/] ", texts[0])) < len(re.findall(r" [-+*/] ", texts[1]))


@pytest.mark.parametrize("name", COLLISIONS)
def test_reads_lean_is_legal_where_it_is_another_form(name: str) -> None:
    case = case_of("box", "d3q27", name)
    reason = broken(case, config_of("aa", "soa", "fp32", collision_passes="minimal"), LIMITS)
    leaner = by_axes(collision(name), case.stencil, False) != assignments(collision(name), case.stencil, False)
    assert (reason is None) == leaner
    assert leaner or f"collision_passes=minimal is not supported for collision={name} (use two): bgk and trt" in str(
        reason
    )


def test_equal_shares() -> None:
    assert between([], ["a", "b"]) == ["a", "b"]
    assert between(["1", "2"], list("abcde")) == ["1", "a", "b", "2", "c", "d", "e"]
    assert between(["1", "2", "3"], ["a"]) == ["1", "2", "3", "a"]


def test_a_domain_that_does_not_fit_is_refused() -> None:
    case, config = case_of("box", "d2q9"), config_of("aa", "soa", stride=600)
    program = program_of(case, config)
    there = replace(case, domain=(96, 7, 1))
    said = "stride=600: the direction arrays of domain 96x7x1 have 686 elements"
    assert broken(there, config, LIMITS) == said
    with pytest.raises(TooManyResourcesError, match=said):
        Simulation(program, Binary(b"", "", Resources()), InterpretingDevice(), there)
