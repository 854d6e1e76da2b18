"""The state that timed launches leave is proved: a step on windows, sums, and again from random values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.catalogue.boundaries.second_order import Walls
from lbmtune.catalogue.config import cpu
from lbmtune.catalogue.layouts import SoA
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.catalogue.problem.patches import Patch
from lbmtune.codegen.program import Launch
from lbmtune.codegen.render import render
from lbmtune.measure.timing.state import WrongResultError, excite
from lbmtune.measure.verification import aftermath
from lbmtune.measure.verification.aftermath import check_line, check_slab, check_slabs, check_sums, sums
from lbmtune.runtime import Simulation
from tests.support.conformance.choices import patched
from tests.support.devices.fake_device import CASE, FakeDevice, FakeExecutable, compiler, renderer

ROWS, COLUMNS = CASE.domain[1], CASE.domain[0]


@dataclass
class Changed:
    """A step of a fake device, and what a fault makes of the target, which it had before."""

    inner: Any
    fault: Callable[[Any, Any], None]

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        target, before = (a.reshape(9, ROWS, COLUMNS) for a in (arguments[1], arguments[1].copy()))
        self.inner.launch(launch, grid, arguments)
        self.fault(target, before)


def one_row_is_left(target: Any, before: Any) -> None:
    target[:, 7] = before[:, 7]


def mass_leaks(target: Any, _: Any) -> None:
    target[:, 3, 3] += 1e-9


def momentum_leaks(target: Any, _: Any) -> None:
    target[1, 3, 3] += 1e-9
    target[2, 3, 3] -= 1e-9


def is_not_a_number(target: Any, _: Any) -> None:
    target[4, 7] = np.nan


def timed(steps: int = 20, case: Case = CASE) -> Simulation:
    """A simulation after some right steps."""
    wished = cpu.Direct(vector_bits=0, wrap="select", row_offset=0, layout=SoA(), storage="fp64", compute="fp64")
    program = renderer(case, wished)
    simulation = Simulation(program, compiler(program), FakeDevice())
    excite(simulation)
    simulation.step(steps)
    return simulation


def spoil(simulation: Simulation, fault: Callable[[Any, Any], None]) -> None:
    assert isinstance(simulation.executable, FakeExecutable | Changed)
    simulation.executable = Changed(simulation.executable, fault)  # type: ignore[assignment]


def test_what_a_right_kernel_leaves_passes() -> None:
    simulation = timed()
    before = sums(simulation)
    simulation.step(20)
    check_sums(simulation, before)
    check_line(simulation)
    check_slab(simulation)
    check_slabs(simulation, simulation.steps_done)


@pytest.mark.parametrize("check", [check_line, check_slab])
def test_a_row_that_no_longer_advances_is_seen(check: Callable[[Simulation], None]) -> None:
    """By each line along y, and by each slab along y: only a slab across y may lie at another row."""
    found = [message(check, steps) for steps in range(1, 9)]
    assert any("f_" in one and ", 7, 0) of 16x12x1 is off" in one for one in found)
    assert sum(map(bool, found)) == 8 if check is check_line else 3 <= sum(map(bool, found)) <= 8


def message(check: Callable[[Simulation], None], steps: int) -> str:
    """Return what a check says of a row that is left after some steps."""
    simulation = timed()
    spoil(simulation, one_row_is_left)
    simulation.step(steps)
    try:
        check(simulation)
    except WrongResultError as error:
        return str(error).removeprefix(f"the state goes wrong after {20 + steps} timed steps: ")
    return ""


def test_a_settled_state_hides_what_random_values_show() -> None:
    simulation = timed()
    spoil(simulation, one_row_is_left)
    for buffer in simulation.buffers.values():
        buffer.fill(0.0)
    check_slab(simulation)
    with pytest.raises(WrongResultError, match=r"goes wrong after 1000 timed steps: f_\d at cell \(\d+, 7, 0\)"):
        check_slabs(simulation, 1000)


@pytest.mark.parametrize("check", [check_line, check_slab, sums])
def test_a_state_that_is_no_number_is_told(check: Callable[[Simulation], object]) -> None:
    simulation = timed()
    spoil(simulation, is_not_a_number)
    simulation.step(2)
    with pytest.raises(WrongResultError, match="not finite numbers"):
        check(simulation)


@pytest.mark.parametrize(("fault", "name"), [(mass_leaks, "mass"), (momentum_leaks, "momentum along x")])
def test_a_sum_that_steps_conserve_is_compared_with_what_roundings_may_do(fault: Any, name: str) -> None:
    simulation = timed()
    before = sums(simulation)
    spoil(simulation, fault)
    simulation.step(20)
    with pytest.raises(
        WrongResultError, match=rf"^{name} has changed by .*e-0[78] in 20 timed steps; roundings change it"
    ):
        check_sums(simulation, before)


def test_which_sums_a_step_conserves() -> None:
    walls = Walls.HALF_WAY
    lid = cavity("d2q9", "bgk", (16, 12, 1), 1.2)
    assert [*aftermath._conserved(box("d2q9", "bgk", (16, 12, 1)), walls)] == [
        "mass",
        *(f"momentum along {a}" for a in "xyz"),
    ]
    assert [*aftermath._conserved(lid, walls)] == ["mass"]
    assert not aftermath._conserved(replace(lid, wall_velocity=(0.1, 0.1, 0.0)), walls)
    assert not aftermath._conserved(replace(lid, faces=("pressure", "pressure", *lid.faces[2:])), walls)
    forced = replace(box("d2q9", "bgk", (16, 12, 1)), force=(1e-6, 0.0, 0.0))
    assert [*aftermath._conserved(forced, walls)] == ["mass"]
    porous = replace(box("d2q9", "bgk", (16, 12, 1)), geometry="blocks:fraction=0.3", flow="porous")
    assert [*aftermath._conserved(porous, walls)] == ["mass"]
    for other in (Walls.IMPLICIT, Walls.INTERPOLATED):
        assert not aftermath._conserved(porous, other), "mass lies in walls, or is interpolated"
    program = render(porous, cpu.Sparse(scheme="esoteric-twist", boundary="implicit"))
    assert Simulation(program, compile_cpu(program), open_cpu()).walls is Walls.IMPLICIT
    assert not aftermath._conserved(patched("d2q9", "bgk", (192, 64, 1)), walls)
    inlet = Patch("velocity", "disc:radius=0.3", "x+", (-0.05, 0.0, 0.0))
    blown = replace(lid, faces=("wall",) * 4 + ("periodic",) * 2, patches=(inlet,))
    assert not aftermath._conserved(blown, walls)


@pytest.mark.parametrize("most_updates", [10**6, 2000, 100])
@pytest.mark.parametrize("layers", [1, 4])
def test_a_place_has_the_layers_that_affect_it(most_updates: int, layers: int) -> None:
    """Beyond periodic faces those of the image, none beyond walls; fewer cells are compared if they were too many."""
    case = cavity("d3q19", "bgk", (40, 20, 6), 1.2)
    case = replace(case, faces=(*case.faces[:4], "periodic", "periodic"))
    random = np.random.default_rng(1)
    for across in range(3):
        for _ in range(50):
            part, read = aftermath._place(case, layers, {*range(3)} - {across}, random, most_updates)
            assert len(part[across]) == 1
            for axis, (inner, outer, n) in enumerate(zip(part, read, case.domain, strict=True)):
                assert 0 <= inner.start < inner.stop <= n
                if inner == range(n):
                    assert outer == inner
                elif axis == 2:
                    assert (inner.start - outer.start, outer.stop - inner.stop) == (layers, layers)
                else:
                    assert outer == range(max(0, inner.start - layers), min(n, inner.stop + layers))
            cells = len(read[0]) * len(read[1]) * len(read[2])
            assert layers * cells <= most_updates or max(map(len, part)) == 1


def test_places_reach_every_cell() -> None:
    case, random = box("d3q19", "bgk", (10, 6, 4)), np.random.default_rng(1)
    for across, n in enumerate(case.domain):
        found = {aftermath._place(case, 1, {*range(3)} - {across}, random, 10**6).part[across] for _ in range(200)}
        assert found == {range(k, k + 1) for k in range(n)}


@dataclass
class Recorded:
    """A simulation that only tells what was done to it."""

    case: Any
    steps_done: int = 0
    steps: int = 1
    persistent: bool = False
    parity_steps: int = 2
    buffers: dict[str, Any] = field(default_factory=dict)
    done: list[Any] = field(default_factory=list)

    @property
    def program(self) -> Any:
        return self

    def step(self, steps: int) -> None:
        self.done.append(steps)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places are recorded, and nothing is compared."""
    monkeypatch.setattr(aftermath, "excite", lambda simulation: simulation.done.append("random values"))
    monkeypatch.setattr(aftermath, "_compare", lambda simulation, places, timed: simulation.done.append(places))


def long_axes(place: aftermath.Place) -> list[int]:
    return [axis for axis, cells in enumerate(place.part) if len(cells) > 1]


def test_lines_lie_along_y_and_z_and_slabs_across_every_axis(compared: None) -> None:
    many = [Recorded(box("d3q19", "bgk", (16, 16, 16)), steps_done=steps) for steps in range(20)]
    for check, expected in ((check_line, {(1,), (2,)}), (check_slab, {(1, 2), (0, 2), (0, 1)})):
        for one in many:
            check(one)  # type: ignore[arg-type]
        assert {tuple(long_axes(place)) for one in many for place in one.done.pop()} == expected
    flat = Recorded(box("d2q9", "bgk", (16, 16, 1)))
    check_line(flat)  # type: ignore[arg-type]
    assert [long_axes(place) for place in flat.done.pop()] == [[1]]


def test_random_values_are_advanced_before_slabs_across_all_axes_are_compared(compared: None) -> None:
    """Without a step ghost cells would not be those of the state."""
    one = Recorded(box("d3q19", "bgk", (16, 16, 16)))
    check_slabs(one, 1000)  # type: ignore[arg-type]
    *before, places = one.done
    assert before == ["random values", 2]
    assert [long_axes(place) for place in places] == [[1, 2], [0, 2], [0, 1]]


def test_a_comparison_takes_a_launch_of_several_steps_or_all_parities() -> None:
    case = box("d3q19", "bgk", (16, 16, 16))
    found = [
        aftermath._steps(Recorded(case, steps=steps, persistent=persistent))  # type: ignore[arg-type]
        for steps, persistent in ((1, False), (1, True), (5, False))
    ]
    assert found == [2, 4, 5]


@pytest.mark.parametrize(("steps", "cells"), [(1, 256), (2, 256), (4, 32), (8, 1)])
def test_a_line_of_a_launch_of_several_steps_is_no_point(compared: None, steps: int, cells: int) -> None:
    """A cell depends on a cube of 2 T + 1 cells along each axis."""
    one = Recorded(box("d3q19", "bgk", (256, 256, 256)), steps=steps, parity_steps=1)
    check_line(one)  # type: ignore[arg-type]
    ((place,),) = one.done
    assert max(map(len, place.part)) == cells


def place_at(row: int) -> aftermath.Place:
    x, y, z = range(COLUMNS), range(row, row + 1), range(1)
    return aftermath.Place((x, y, z), (x, range(row - 2, row + 3), z))


def test_every_place_is_compared() -> None:
    for rows in ((3, 7), (7, 3)):
        simulation = timed()
        spoil(simulation, one_row_is_left)
        with pytest.raises(WrongResultError, match=r", 7, 0\) of 16x12x1 is off"):
            aftermath._compare(simulation, [place_at(row) for row in rows], 20)


@pytest.mark.parametrize("garbage", [5.0, 1e-3])
def test_what_is_stored_for_solid_cells_does_not_count(garbage: float) -> None:
    """It is neither compared nor summed, nor taken for a flow that is too fast to be compared."""
    porous = replace(CASE, geometry="blocks:fraction=0.3", flow="porous")
    solid = solid_in(porous, whole(porous.domain))[0]
    assert 10 < solid.sum() < 100

    def litters(target: Any, _: Any) -> None:
        target[:, solid] = garbage * np.random.default_rng().uniform(0.5, 1.0)

    def litters_and_leaves(target: Any, before: Any) -> None:
        litters(target, before)
        target[:, 7, ~solid[7]] = before[:, 7, ~solid[7]]

    simulation = timed(case=porous)
    spoil(simulation, litters)
    simulation.step(2)
    before = sums(simulation)
    assert max(before.reached) < 1e-2
    simulation.step(20)
    check_sums(simulation, before)
    for row in range(3, 9):
        aftermath._compare(simulation, [place_at(row)], 20)
    spoil(simulation, litters_and_leaves)
    with pytest.raises(WrongResultError, match=r", 7, 0\) of 16x12x1 is off"):
        aftermath._compare(simulation, [place_at(7)], 20)


def test_what_is_larger_than_roundings_is_wrong() -> None:
    """In double precision the bound is 7e-15, of which most is for the oracle, that rounds populations of order one."""
    for size, wrong in ((1e-16, False), (2e-14, True)):
        simulation = timed()
        spoil(simulation, lambda target, _, size=size: target.__iadd__(size))
        if not wrong:
            aftermath._compare(simulation, [place_at(7)], 20)
            continue
        with pytest.raises(WrongResultError, match="is off by"):
            aftermath._compare(simulation, [place_at(7)], 20)


def test_flows_that_may_amplify_roundings_are_not_compared() -> None:
    simulation = timed()
    spoil(simulation, one_row_is_left)
    for buffer in simulation.buffers.values():
        buffer[...] = np.random.default_rng(1).uniform(0.0, 0.2, buffer.shape)
    before = sums(simulation)
    aftermath._compare(simulation, [place_at(7)], 20)
    check_sums(simulation, before)
    simulation.step(1)
    check_sums(simulation, before)
