"""Several time steps per launch on the CPU: the order of rows replayed on integers, kernels against the oracle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.config import CpuConfig, cpu
from lbmtune.catalogue.families.cpu.wavefront import fetched, has_wavefront, lag
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import HERE, Place, in_place_phase
from lbmtune.codegen.cpu.wavefront import loops
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Resources
from lbmtune.runtime import Simulation
from tests.support.devices import interpreted_simd
from tests.support.devices.interpreted_simd import RaceError
from tests.support.kernels.cpu_cases import (
    LAYOUTS,
    LIMITS,
    SCHEME_NAMES,
    InterpretingDevice,
    case_of,
    config_of,
    interpret,
    program_of,
)

IN_PLACE = ["aa", "esoteric-twist", "esoteric-pull"]
TILES: dict[str, Any] = {"family": "wavefront", "tile": (3, 2)}


def _config(scheme: str, layout: str = "soa", precision: str = "fp64", **axes: Any) -> CpuConfig:
    return config_of(scheme, layout, precision, **{"steps": 3, **TILES, **axes})


@dataclass
class Replay:
    """Runs the printed order with rows that only count their steps. Rows of one worker between barriers are kept."""

    domain: tuple[int, int, int]
    parity: int
    level: np.ndarray = field(init=False)
    worker: int = 0
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.level = np.zeros(self.domain[:0:-1], int)

    def prange(self, count: int) -> Iterator[int]:
        self.check_races()
        for self.worker in range(count):
            yield self.worker
        self.check_races()

    def row(self, parity: int) -> Callable[..., None]:
        def take(*arguments: Any) -> None:
            *_, y, z = arguments
            step = self.level[z, y]
            assert (self.parity + step) % 2 == parity
            nz, ny = self.level.shape
            around = self.level[np.ix_([(z + d) % nz for d in (-1, 0, 1)], [(y + d) % ny for d in (-1, 0, 1)])]
            assert (around >= step).all(), f"row {y}, {z} takes step {step} before its neighbours have taken the last"
            self.level[z, y] += 1
            self.rows.append((self.worker, y, z, step))

        return take

    def check_races(self) -> None:
        """Rows that may run at once touch nothing in common: they are of one step, or further apart than steps."""
        found, self.rows = np.array(self.rows).reshape(-1, 4), []
        nz, ny = self.level.shape
        worker, y, z, step = (column[:, None] - column for column in found.T)
        distance = np.maximum(_around(y, ny), _around(z, nz))
        races = (worker != 0) & (step != 0) & (distance <= abs(step))
        assert not races.any()

    def run(self, text: str, steps: int) -> None:
        simd = SimpleNamespace(row=lambda f: f, kernel=lambda *_, **__: lambda f: f, prange=self.prange)
        names: dict[str, Any] = {"simd": simd, "np": np, "row_0": self.row(0), "row_1": self.row(1)}
        exec(compile(text, "<order>", "exec"), names)
        names["sweep"](None, *self.domain, 1.0, self.parity, steps)
        assert (self.level == steps).all(), self.level


def _around(difference: np.ndarray, extent: int) -> np.ndarray:
    return np.minimum(difference % extent, -difference % extent)


def _text(lattice: str, steps: int, threads: int, tile: tuple[int, int]) -> str:
    config = _config("esoteric-pull", steps=steps, threads=threads, tile=tile)
    return loops(case_of("box", lattice), config)


@settings(max_examples=60)
@given(
    lattice=st.sampled_from(["d2q9", "d3q19"]),
    most=st.integers(2, 6),
    steps=st.integers(1, 7),
    extents=st.tuples(st.integers(1, 17), st.integers(1, 17)),
    threads=st.integers(1, 4),
    tile=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    parity=st.integers(0, 1),
)
def test_each_row_takes_each_step_once_and_after_its_neighbours(
    lattice: str,
    most: int,
    steps: int,
    extents: tuple[int, int],
    threads: int,
    tile: tuple[int, int],
    parity: int,
) -> None:
    domain = (16, extents[0], 1 if lattice == "d2q9" else extents[1])
    Replay(domain, parity).run(_text(lattice, most, threads, tile), steps)


ORDERS = {
    "steps of a tile side by side": ("lag_y, lag_z = 1, 1", "lag_y, lag_z = 0, 1"),
    "planes of a tile, too": ("lag_y, lag_z = 1, 1", "lag_y, lag_z = 1, 0"),
    "tiles that do not reach the end": ("to_y + (lag_y + grow_y) * (steps - 1), 3)", "to_y - 1, 3)"),
    "slabs that do not shrink": ("(2 * grows - 1) * lag_z)", "grows * lag_z)"),
    "gaps that nobody fills": ("(2 * grows - 1) * lag_z)", "(grows - 1) * lag_z)"),
    "no second pass along y": ("for grows in range(2):\n        from_y", "for grows in range(1):\n        from_y"),
    "too many slabs": ("max(1, min(2, nz // max(1, 2 * lag_z * (some - 1))))", "min(2, nz)"),
    "too many steps at once": ("min(steps, 4, ny // 2 + 1, nz // 2 + 1)", "min(steps, 4)"),
    "parity of the launch": ("first, some = parity + done", "first, some = done"),
    "no barrier": (
        "        for grows in range(2):\n            for k in simd.prange(slabs):\n",
        "        for k in simd.prange(slabs):\n            for grows in range(2):\n",
    ),
}


@pytest.mark.parametrize("mutation", ORDERS)
def test_a_wrong_order_is_noticed(mutation: str) -> None:
    text = _text("d3q19", 4, 2, (3, 2))
    mutant = text.replace(*ORDERS[mutation])
    assert mutant != text
    domains = [(16, 7, 11), (16, 9, 16), (16, 3, 9)]
    for domain in domains:
        Replay(domain, 1).run(text, 4)
    with pytest.raises((AssertionError, RaceError)):  # noqa: PT012
        for domain in domains:
            Replay(domain, 1).run(mutant, 4)


@pytest.mark.parametrize("lattice", LATTICES)
def test_lag_follows_from_the_tables(lattice: str) -> None:
    found = {name: lag(scheme, LATTICES[lattice]) for name, scheme in SCHEMES.items() if name in IN_PLACE}
    assert found == dict.fromkeys(IN_PLACE, (1, int(lattice != "d2q9")))


def test_a_table_that_reaches_further_lags_further() -> None:
    def read_place(i: int, parity: int) -> Place:
        x, y, z = LATTICES["d3q19"].velocities[i]
        return Place(i, (x, 2 * y, z)) if parity else Place(i, HERE)

    further = replace(SCHEMES["aa"], phase=lambda lattice, parity: in_place_phase(lattice, read_place, parity))
    assert lag(further, LATTICES["d3q19"]) == (2, 1)


def test_schemes_that_sweep() -> None:
    assert [name for name, scheme in SCHEMES.items() if has_wavefront(scheme, LATTICES["d3q19"])] == IN_PLACE


@pytest.mark.parametrize(
    ("scheme", "flow", "layout", "axes"),
    [
        ("esoteric-pull", "moving-x", "soa", {"threads": 2}),
        ("esoteric-twist", "channel", "aosoa", {"steps": 2}),
        ("aa", "box", "soa-scalar", {"steps": 4, "threads": 3}),
        ("aa", "moving-x", "soa-select", {"steps": 2, "threads": 2}),
        ("esoteric-twist", "box", "soa", {"collision_passes": "two", "threads": 2}),
        ("esoteric-pull", "channel", "tiled-cells", {"threads": 2}),
        ("aa", "cavity", "soa", {"collision_passes": "pipelined", "steps": 2, "prefetch_rows": 1}),
        ("esoteric-pull", "cavity", "soa-256", {"flags": "memory", "threads": 2, "prefetch_rows": 1}),
        ("aa", "moving-x", "soa", {"flags": "memory", "steps": 2}),
    ],
)
def test_kernels_of_several_steps(scheme: str, flow: str, layout: str, axes: dict[str, Any]) -> None:
    found = interpret(program_of(case_of(flow, "d2q9"), _config(scheme, layout, **axes)), periods=2)
    assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "lattice", "flow", "flags"),
    list(product(IN_PLACE, ("d3q19", "d3q27"), ("box", "channel", "cavity", "moving-x"), ("compiled", "memory"))),
)
def test_every_scheme_and_flow(scheme: str, lattice: str, flow: str, flags: str) -> None:
    case, config = case_of(flow, lattice, "trt"), _config(scheme, flags=flags, threads=2)
    if flow == "box" and flags == "memory":
        case = replace(case, geometry="blocks:fraction=0.2")
    found = interpret(program_of(case, config), periods=1)
    assert found.passed, found


@pytest.mark.skipif(vector_bits() < 256, reason="this processor has no such vectors")
@pytest.mark.parametrize(
    ("scheme", "flow", "lattice", "precision", "axes"),
    [
        ("esoteric-twist", "moving-x", "d2q9", "fp32", {"collision_passes": "two", "threads": 2}),
        pytest.param(
            "aa", "box", "d3q19", "fp16s", {"collision_passes": "pipelined", "steps": 4}, marks=pytest.mark.slow
        ),
        pytest.param("esoteric-pull", "cavity", "d3q19", "fp64", {"flags": "memory"}, marks=pytest.mark.slow),
    ],
)
def test_compiled(scheme: str, flow: str, lattice: str, precision: str, axes: dict[str, Any]) -> None:
    program = program_of(case_of(flow, lattice), _config(scheme, "soa-256", precision, **axes))
    found = verify(program, compile_cpu(program), open_cpu())
    assert found.passed, found


def _simulation(case: Case, config: CpuConfig) -> Simulation:
    simulation = Simulation(program_of(case, config), Binary(b"", "", Resources()), InterpretingDevice())
    simulation.initialise(oracle.random_state(case))
    return simulation


@pytest.mark.parametrize(("scheme", "steps"), [("aa", 3), ("esoteric-pull", 4)])
def test_any_number_of_steps_leaves_the_bits_of_single_steps(scheme: str, steps: int) -> None:
    case = replace(case_of("moving-x", "d2q9"), domain=(16, 9, 1))
    one, many = (
        _simulation(case, config_of(scheme, "soa", "fp32", **axes)) for axes in ({}, {**TILES, "steps": steps})
    )
    for number in (1, steps, 2, 2 * steps + 1, 0, 5):
        one.step(number)
        many.step(number)
        assert many.steps_done == one.steps_done
        assert (many.populations() == one.populations()).all()


@pytest.mark.parametrize("scheme", IN_PLACE)
def test_row_kernels_are_those_of_single_steps(scheme: str) -> None:
    case = case_of("moving-x", "d3q19")
    configs = config_of(scheme, "soa", parallel_loop="tile-3x2"), _config(scheme, steps=3)
    one, many = (program_of(case, config).source for config in configs)

    def kernels(text: str) -> list[str]:
        return ["def row" + part.split("\n\n\n")[0] for part in text.split("def row")[1:3]]

    assert kernels(one)[0] == kernels(many)[0]
    assert one.count("def row_1(") == many.count("def row_1(") == 1
    row_1 = one[one.index("def row_1(") :].split("\n\n\n")[0]
    assert row_1 in many


@pytest.mark.parametrize(("scheme", "steps", "launches"), [("aa", 4, 1), ("aa", 3, 2), ("esoteric-twist", 2, 1)])
def test_launches_of_a_period_end_where_they_began(scheme: str, steps: int, launches: int) -> None:
    program = program_of(case_of("box", "d2q9"), _config(scheme, steps=steps))
    assert (len(program.period), program.steps, program.any_steps) == (launches, steps, True)
    simulation = _simulation(replace(program.case, domain=(16, 5, 1)), program.config)  # type: ignore[arg-type]
    assert simulation.cycle_steps == launches * steps


def test_what_all_steps_ask_for_is_what_the_first_takes_next() -> None:
    """Each step a share of the slots: together every row but those that the first tiles begin with."""
    case = replace(case_of("box", "d2q9"), domain=(16, 20, 1))
    simulation = _simulation(case, _config("aa", tile=(2, 2), prefetch_rows=1, row_padding=0))
    interpreted_simd.prefetches.clear()
    simulation.step(3)
    pitch = 16 + 2
    asked = {divmod(index // pitch, 20) for _, index in interpreted_simd.prefetches}
    assert asked >= set(product(range(9), range(8, 20)))
    starts = {index % pitch for _, index in interpreted_simd.prefetches}
    assert starts == {1, 1 + 8}, "vectors from the first cell of a row on"


KERNELS = {
    "one step too few": lambda t: t.replace("for s in range(steps):", "for s in range(steps - 1):"),
    "a row of the next step": lambda t: t.replace("if (first + s) % 2 == 0:", "if (first + s) % 2 == 1:"),
    "no lag": lambda t: t.replace("lag_y, lag_z = 1, 0", "lag_y, lag_z = 0, 0"),
    "around the domain in the wrong row": lambda t: t.replace("else row_y - ny,", "else row_y - ny + 1,"),
}


@pytest.mark.parametrize("mutation", KERNELS)
def test_a_wrong_kernel_fails(mutation: str) -> None:
    program = program_of(case_of("box", "d2q9"), _config("aa", threads=2))
    mutant = replace(program, source=KERNELS[mutation](program.source))
    assert mutant.source != program.source
    with contextlib.suppress(RaceError):
        assert not interpret(mutant, periods=1).passed


@pytest.mark.parametrize(("steps", "threads", "lattice"), list(product((2, 5, 8), (1, 2, 64), ("d2q9", "d3q19"))))
def test_verification_meets_all_regions(steps: int, threads: int, lattice: str) -> None:
    """Of slabs and of what grows between them, on a domain that is small however many threads there are."""
    config, case = _config("aa", steps=steps, threads=threads), case_of("box", lattice)
    _, *extents = config.awkward_domain(case)
    slabs = extents[lattice != "d2q9"]
    assert slabs // (2 * (steps - 1)) >= min(threads, 3)
    assert all(n > 2 * (steps - 1) or n == 1 for n in extents)
    assert np.prod(extents) < 2500
    thin = next(iter(config.extra_domains(case)), None)
    assert (thin is None) == (steps == 2)
    assert thin is None or thin[1] // 2 + 1 < steps


def test_memory_is_met_once_and_at_edges_again() -> None:
    case = replace(case_of("box", "d3q19"), domain=(64, 48, 40))
    config = cpu.Wavefront(scheme="aa", tile=(8, 2), steps=4, threads=2)
    # five edges between six tiles and two of the gap, each with three rows; two gaps of six planes
    assert fetched(case, config) == (1 + 7 * 3 / 48) * (1 + 2 * 6 / 40)
    flat = replace(case_of("box", "d2q9"), domain=(64, 48, 1))
    assert fetched(flat, config) == 1 + 2 * 6 / 48
    assert fetched(replace(flat, domain=(64, 5, 1)), config) == 1 + 6 / 5


@pytest.mark.parametrize("scheme", [name for name in SCHEME_NAMES if name not in IN_PLACE])
def test_other_schemes_are_refused(scheme: str) -> None:
    reason = broken(case_of("box", "d2q9"), _config(scheme), LIMITS)
    assert reason is not None
    assert f"scheme={scheme} is not supported" in reason


def test_every_layout_of_rows_sweeps() -> None:
    case = case_of("box", "d2q9")
    assert all(broken(case, _config("aa", layout), LIMITS) is None for layout in LAYOUTS)
