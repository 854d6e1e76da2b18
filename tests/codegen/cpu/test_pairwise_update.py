"""Kernels that read populations again, pair by pair: right for every scheme, and few values alive at a time."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import collides
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import HERE, Access, Phase, Place, keeps_links
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification.verify import compare, verify
from lbmtune.records import Resources
from tests.support.kernels.cpu_cases import LIMITS, InterpretingDevice, case_of, config_of, interpret, program_of

AGAIN = ("two", "pipelined", "minimal")
LEGAL = [
    scheme
    for scheme in SCHEMES
    if broken(case_of("box", "d2q9"), config_of(scheme, "soa", collision_passes="two"), LIMITS) is None
]


@pytest.mark.parametrize(("scheme", "passes", "flow"), list(product(LEGAL, AGAIN, ("moving-x", "channel"))))
def test_every_scheme(scheme: str, passes: str, flow: str) -> None:
    found = interpret(
        program_of(case_of(flow, "d2q9", "trt"), config_of(scheme, "soa", collision_passes=passes)), periods=1
    )
    assert found.passed, found


def test_schemes_that_leave_pairs_where_they_were() -> None:
    assert {"pull", "push", "aa", "esoteric-pull", "esoteric-twist"} <= set(LEGAL)
    assert not {"swap-ordered", "ghost-cell"} & set(LEGAL)


@pytest.mark.parametrize("passes", AGAIN)
@pytest.mark.parametrize(
    ("collision", "lattice"),
    [
        *((name, "d2q9") for name in COLLISIONS if collides(name, "d2q9")),
        pytest.param("cumulant", "d3q27", marks=pytest.mark.slow),
    ],
)
def test_every_collision(collision: str, lattice: str, passes: str) -> None:
    case, config = case_of("channel", lattice, collision), config_of("esoteric-twist", "soa", collision_passes=passes)
    if passes == "minimal" and broken(case, config, LIMITS):
        assert collision not in ("bgk", "trt")
        return
    found = interpret(program_of(case, config), periods=1)
    assert found.passed, found


@pytest.mark.parametrize("passes", AGAIN)
def test_rows_of_one_vector(passes: str) -> None:
    case, config = case_of("cavity", "d3q19"), config_of("aa", "soa", "fp32", collision_passes=passes, vector_bits=256)
    program = program_of(case, config)
    nothing = Binary(b"", "", Resources())
    found = compare(program, nothing, InterpretingDevice(), replace(case, domain=(8, 4, 3)), periods=1)
    assert found.passed, found


@pytest.mark.parametrize(("passes", "vectors"), list(product(("one", *AGAIN), (1, 2, 3, 4))))
def test_periodic_rows_of_few_vectors(passes: str, vectors: int) -> None:
    program = program_of(
        case_of("box", "d2q9"), config_of("aa", "soa", "fp32", collision_passes=passes, vector_bits=256)
    )
    found = compare(
        program,
        Binary(b"", "", Resources()),
        InterpretingDevice(),
        replace(case_of("box", "d2q9"), domain=(8 * vectors, 3, 1)),
        periods=1,
    )
    assert found.passed, found


@pytest.mark.skipif(vector_bits() < 256, reason="this processor has no such vectors")
@pytest.mark.parametrize(("passes", "precision"), [("two", "fp32"), ("pipelined", "fp16s")])
def test_compiled(passes: str, precision: str) -> None:
    config = config_of("esoteric-pull", "soa", precision, collision_passes=passes, vector_bits=256)
    program = program_of(case_of("moving-x", "d2q9"), config)
    found = verify(program, compile_cpu(program), open_cpu())
    assert found.passed, found


@pytest.mark.parametrize("collision", ["bgk", "trt"])
def test_each_pair_is_loaded_just_before_it_is_replaced(collision: str) -> None:
    program = program_of(case_of("box", "d3q19", collision), config_of("aa", "soa", "fp32", collision_passes="two"))
    first, _ = program.source.split("def row_1")
    moved = re.findall(r"(f\d+) = load\(|store\(field, .*(g\d+)\)", first)
    loaded, then = moved[:19], moved[19:]
    assert sorted(name for name, _ in loaded) == sorted(f"f{i}" for i in range(19))
    along_the_same_axes_together = (1, 3, 5, 7, 13, 9, 11, 15, 17)
    pairs = [(i, i + 1) for i in along_the_same_axes_together]
    expected = [("f0", ""), ("", "g0")]
    for pair in pairs:
        expected += [*((f"f{i}", "") for i in pair), *(("", f"g{i}") for i in pair)]
    assert then == expected


def test_values_of_the_next_cells_come_before_the_turns_of_these() -> None:
    program = program_of(case_of("box", "d3q19"), config_of("aa", "soa", "fp32", collision_passes="pipelined"))
    loop = program.source.split("for x in range(0, nx - 16, 16):")[1].split("x = nx - 16")[0]
    lines = [line.strip() for line in loop.splitlines()]
    summed = max(n for n, line in enumerate(lines) if line.startswith("next_"))
    relaxing = min(n for n, line in enumerate(lines) if line.startswith("f0 ="))
    assert summed < relaxing < min(n for n, line in enumerate(lines) if line.startswith("store("))
    arrived = [line for line in lines if re.fullmatch(r"(\w+) = next_\1", line)]
    assert sorted(arrived) == [f"{name} = next_{name}" for name in ("density", "inverse", "jx", "jy", "jz")]


def test_a_pair_that_is_left_elsewhere_is_noticed() -> None:
    lattice = LATTICES["d2q9"]
    phase = SCHEMES["aa"].phase(lattice, 0)
    assert keeps_links(phase, lattice)
    first, second, third, *rest = phase.accesses
    swapped = (first, second._replace(write=third.write), third._replace(write=second.write), *rest)
    assert not keeps_links(replace(phase, accesses=swapped), lattice)
    elsewhere = Place(first.write.slot, (1, 0, 0))
    assert not keeps_links(replace(phase, accesses=(first._replace(write=elsewhere), second, third, *rest)), lattice)
    rest_of_all = tuple(Access(i, Place(i, HERE), Place(i, HERE), Place(i, HERE), Place(i, HERE)) for i in range(9))
    assert not keeps_links(Phase(rest_of_all, "none"), lattice), "each leaves by the place of its opposite"


def test_flags_are_not_asked_twice() -> None:
    case, config = case_of("cavity", "d2q9"), config_of("aa", "soa", flags="memory")
    assert broken(case, config, LIMITS) is None
    reason = str(broken(case, replace(config, collision_passes="two"), LIMITS))
    assert reason.startswith("collision_passes=two is not supported for flags=memory")


def test_what_a_face_completes_is_not_read_again() -> None:
    config = config_of("aa", "soa", collision_passes="two")
    case = replace(case_of("box", "d2q9"), faces=("slip", "slip", *("periodic",) * 4))
    assert broken(case, replace(config, collision_passes="one"), LIMITS) is None
    reason = broken(case, config, LIMITS)
    assert reason is not None
    assert reason.startswith("collision_passes=two is not supported for a slip face x- (use one)")
