"""The state that timed launches leave is proved: a step on windows, sums, and again from random values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from lbmtune.catalogue.boundaries.second_order import Walls
from lbmtune.catalogue.config import cpu
from lbmtune.catalogue.layouts import SoA
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.program import Launch
from lbmtune.measure.timing.state import WrongResultError, excite
from lbmtune.measure.verification import aftermath
from lbmtune.measure.verification.aftermath import check_line, check_slab, check_slabs, check_sums, sums
from lbmtune.runtime import Simulation
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


def timed(steps: int = 20) -> Simulation:
    """A simulation after some right steps."""
    wished = cpu.Direct(vector_bits=0, wrap="select", row_offset=0, layout=SoA(), storage="fp64", compute="fp64")
    program = renderer(CASE, wished)
    simulation = Simulation(program, compiler(program), FakeDevice())
    excite(simulation)
    simulation.step(steps)
    return simulation


def spoil(simulation: Simulation, fault: Callable[[Any, Any], None]) -> None:
    assert isinstance(simulation.executable, FakeExecutable)
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
    for other in (Walls.IMPLICIT, Walls.INTERPOLATED):
        assert not aftermath._conserved(forced, other), "mass lies in walls, or is interpolated"


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
            assert cells <= most_updates or max(map(len, part)) == 1
