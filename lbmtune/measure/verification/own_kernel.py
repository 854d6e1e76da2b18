"""Verify users' kernels: against a function in NumPy, or another entry of their text, on random values.

What the measurer asks of kernels from the catalogue (`verify`, `aftermath`, `timing.state`) is registered here for
these.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Binary, Device
from lbmtune.backend.registry import compiler_for
from lbmtune.catalogue.own_kernel.definition import Argument, OwnKernel
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.own_program import OwnProgram, reference_program
from lbmtune.measure.timing.state import WrongResultError, all_true, check_state, excite, fill_random
from lbmtune.measure.verification.aftermath import Sums, check_line, check_slab, check_slabs, check_sums, sums
from lbmtune.measure.verification.verify import verify, verify_simulation, worst_of
from lbmtune.records import Verification
from lbmtune.runtime.own_kernel import OwnSimulation, first_values, poison

Array = Any
Arrays = dict[str, Array]
Step = Callable[[Arrays, int], Arrays]
"""Returns the arrays after one launch, before any change places. Takes also how many launches were before it."""
_ODD = "odd"
"""Name by which a reference in NumPy may ask whether a launch is an odd one: 0 or 1."""
_XP = "xp"
"""Name by which it may ask for the module of its arrays, which are then those of the device: NumPy or CuPy."""
_ROUNDINGS = 32
"""Roundings of the largest value that a launch may deviate by, unless the description says more."""


def _compared(simulation: OwnSimulation, launches: int, *, full_size: bool) -> Verification:
    return replace(worst_of(_launched(simulation, launches)), full_size=full_size)


def _launched(simulation: OwnSimulation, launches: int) -> Iterator[Verification]:
    """Yield the difference from the reference after each launch."""
    arrays = started(simulation)
    simulation.set(arrays)
    step = reference(simulation)
    for before in range(launches):
        expected = step(arrays, before)
        simulation.step(1)
        yield difference(simulation, expected)
        arrays = exchanged(simulation.program.kernel, expected)


def memory_of(simulation: OwnSimulation) -> ModuleType:
    """Return the module of arrays that are compared: that of the device if the reference takes it, else NumPy."""
    reference = simulation.program.kernel.reference
    on_device = reference.python and _XP in _asked(_function(reference.python, reference.entry))
    return simulation.xp if on_device else np


def started(simulation: OwnSimulation) -> Arrays:
    """Return first values: random ones of what is read or changes places, and poison of what is only written."""
    kernel, arrays, xp = simulation.program.kernel, Arrays(), memory_of(simulation)
    swapped = {name for one in kernel.buffers if one.swap for name in (one.name, one.swap)}
    for seed, one in enumerate(kernel.buffers):
        arrays[one.name] = first_values(one, simulation.buffers[one.name].size, seed, xp)
        if one.role == "out" and one.name not in swapped:
            poison(one, arrays[one.name])
    return arrays


def exchanged(kernel: OwnKernel, arrays: Arrays) -> Arrays:
    """Return the arrays by the arguments that they are in the next launch."""
    found = dict(arrays)
    for one in kernel.buffers:
        if one.swap:
            found[one.name], found[one.swap] = arrays[one.swap], arrays[one.name]
    return found


def difference(simulation: OwnSimulation, expected: Arrays) -> Verification:
    """Return the largest deviation of all buffers after a launch, relative to its bound.

    expected: by the arguments of that launch. What both leave as poison is equal.
    """
    xp = memory_of(simulation)
    found = _before_exchange(simulation, xp)
    described, worst = simulation.described, (-1.0, -1.0, 1.0, 0, 0)
    for number, (name, argument) in enumerate(described.items()):
        bound = _bound(simulation.program.kernel, argument, expected[name], xp)
        error, place = _largest(found[name], expected[name], argument, xp)
        if error / bound > worst[0]:
            worst = error / bound, error, bound, number, place
    _, error, bound, number, place = worst
    domain, steps = simulation.case.domain, simulation.steps_done
    name, after = list(described)[number], f"after {steps} launch{'es' * (steps != 1)}"
    said = f"{name}[{place}] on domain {'x'.join(map(str, domain))}"
    off = "is not the number" if error >= sys.float_info.max else f"is off by {error:.3g}"
    return Verification(
        error=error,
        bound=bound,
        worst_cell=(place, 0, 0),
        worst_direction=number,
        worst_steps=steps,
        domains=(domain,),
        where=f"{said} {off} {after}; the bound is {bound:.3g}",
    )


def _bound(kernel: OwnKernel, argument: Argument, expected: Array, xp: ModuleType) -> float:
    if argument.is_whole:
        return 0.5
    share = kernel.reference.tolerance
    share = _ROUNDINGS * float(np.finfo(argument.type).eps) if share is None else share
    sizes = xp.abs(expected.astype(np.float64))
    sizes[~xp.isfinite(sizes)] = 0.0
    largest = float(sizes.max()) if sizes.size else 0.0
    return share * largest or sys.float_info.min


def _largest(found: Array, expected: Array, argument: Argument, xp: ModuleType) -> tuple[float, int]:
    """Return the largest deviation and its element; one that alone is not finite deviates by the largest number."""
    if argument.is_whole:
        wrong = found != expected
        return float(wrong.max()), int(wrong.argmax())
    with np.errstate(invalid="ignore"):
        off = xp.abs(found.astype(np.float64) - expected)
    off[xp.isnan(found) & xp.isnan(expected)] = 0.0
    off[~xp.isfinite(off)] = sys.float_info.max
    return float(off.max()), int(off.argmax())


def reference(simulation: OwnSimulation) -> Step:
    """Return what a launch should do, with arrays of `memory_of`."""
    program, kernel = simulation.program, simulation.program.kernel
    if kernel.reference.python:
        return _in_numpy(program, simulation.case, memory_of(simulation))
    made = reference_program(program)
    other = OwnSimulation(made, _compiled(made, simulation.device), simulation.device, simulation.case)

    def step(arrays: Arrays, before: int) -> Arrays:
        other.set(arrays)
        other.steps_done = before % 2 if kernel.odd_entry else 0  # buffers lie as in the first launch
        other.step(1)
        return _before_exchange(other, np)

    return step


def _before_exchange(simulation: OwnSimulation, xp: ModuleType) -> Arrays:
    """Return the arrays by the arguments that they were in the launch before."""
    return exchanged(simulation.program.kernel, simulation.arrays(xp))


_BINARIES: dict[str, Binary] = {}


def _compiled(program: OwnProgram, device: Device) -> Binary:
    if program.digest not in _BINARIES:
        _BINARIES[program.digest] = compiler_for(device.environment)(program)
    return _BINARIES[program.digest]


def _in_numpy(program: OwnProgram, case: Case, xp: ModuleType) -> Step:
    kernel, values = program.kernel, program.own.values
    function = _function(kernel.reference.python, kernel.reference.entry)
    known: dict[str, Any] = {**kernel.scope(values, case.domain), **kernel.numbers(values, case.domain)}
    wanted = _asked(function)

    def step(arrays: Arrays, before: int) -> Arrays:
        copies = {name: array.copy() for name, array in arrays.items()}
        given = {_ODD: before % 2, _XP: xp, **known, **copies}
        if missing := [name for name in wanted if name not in given]:
            raise WrongResultError(
                f"the reference {kernel.reference.entry} asks for {missing[0]!r}, which is neither an argument of the "
                "kernel nor a knob nor nx, ny or nz"
            )
        with _as_wrong():
            function(**{name: given[name] for name in wanted})
        return copies

    return step


def _asked(function: Callable[..., None]) -> list[str]:
    """Return the names of what a reference takes."""
    return list(inspect.signature(function).parameters)


@lru_cache(maxsize=8)
def _function(text: str, name: str) -> Callable[..., None]:
    """Return a function of a text, which is run for that. Raises WrongResultError if there is none."""
    module = ModuleType("reference")
    with _as_wrong():
        exec(compile(text, "reference", "exec"), vars(module))
    if not callable(found := getattr(module, name, None)):
        raise WrongResultError(f"the reference has no function {name!r}")
    return found  # type: ignore[no-any-return]


@contextmanager
def _as_wrong() -> Iterator[None]:
    """Take whatever goes wrong in the text of a user for the reason why nothing is verified."""
    try:
        yield
    except Exception as error:
        raise WrongResultError(f"the reference failed: {type(error).__name__}: {error}") from error


@verify.register
def _(program: OwnProgram, binary: Binary, device: Device, periods: int = 3) -> Verification:
    """Compare every buffer after each of some launches, on the domain of the description."""
    case = replace(program.case, domain=program.own.awkward_domain(program.case))
    simulation = OwnSimulation(program, binary, device, case)
    return _compared(simulation, periods, full_size=case.domain == program.case.domain)


@verify_simulation.register
def _(simulation: OwnSimulation) -> Verification:
    """Compare every buffer on the domain of the case, until buffers that change places are where they were."""
    return _compared(simulation, simulation.cycle_steps, full_size=True)


@excite.register
def _(simulation: OwnSimulation) -> None:
    """Fill every buffer with random first values, which repeat."""
    simulation.steps_done = 0
    for name, one in simulation.described.items():
        buffer, (low, high) = simulation.buffers[name], one.random
        if one.is_whole:
            buffer[...] = simulation.xp.asarray(first_values(one, buffer.size, 0))
            continue
        fill_random(buffer, 1.0, simulation.xp)  # from 0.5 to 1.5
        buffer -= 0.5
        buffer *= high - low
        buffer += low


@check_state.register
def _(simulation: OwnSimulation) -> None:
    """Raise WrongResultError if a number of any buffer is not finite."""
    for name, one in simulation.described.items():
        if not one.is_whole and not all_true(simulation.xp.isfinite(simulation.buffers[name])):
            raise WrongResultError(f"the timed run left values in {name} that are not finite numbers")


@check_line.register
@check_sums.register
def _(simulation: OwnSimulation, *_: object) -> None:
    """Check nothing: of a trial `check_state` does, and sums that an unknown kernel conserves are unknown."""


@sums.register
def _(simulation: OwnSimulation) -> Sums:
    """Return no sums."""
    return Sums(simulation.steps_done, (), ())


@check_slab.register
@check_slabs.register
def _(simulation: OwnSimulation, *_: object) -> None:
    """Raise WrongResultError if the next launch is wrong, on the state as it is."""
    before, timed = simulation.arrays(memory_of(simulation)), simulation.steps_done
    expected = reference(simulation)(before, timed)
    simulation.step(1)
    found = difference(simulation, expected)
    if not found.passed:
        raise WrongResultError(f"the state goes wrong after {timed} timed steps: {found.where}")
