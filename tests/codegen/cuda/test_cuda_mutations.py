"""Faults that verification must find, in every precision: each changes the text or the launches of a right kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification.verify import verify
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.cuda_samples import PRECISIONS, config, flows
from tests.support.kernels.full_size import verify_full_size

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def _text(old: str, new: str, count: int = 1) -> Callable[[Program], Program]:
    def mutate(program: Program) -> Program:
        assert old in program.source
        return replace(program, source=program.source.replace(old, new, count))

    return mutate


def _stale_ghosts(program: Program) -> Program:
    """The first two steps fill both lattices' ghost cells, the next ones leave them as they are."""
    (launches,) = program.period
    step = tuple(launch for launch in launches if launch.over == "cells")
    assert len(step) < len(launches)
    return replace(program, period=(launches, launches, step, step))


def _line(start: str, old: str, new: str) -> Callable[[Program], Program]:
    """Changes the first line that starts so."""

    def mutate(program: Program) -> Program:
        lines = program.source.split("\n")
        number = next(n for n, line in enumerate(lines) if line.strip().startswith(start) and old in line)
        lines[number] = lines[number].replace(old, new)
        return replace(program, source="\n".join(lines))

    return mutate


MUTATIONS: dict[str, tuple[dict[str, object], str, Callable[[Program], Program]]] = {
    "swapped direction": ({}, "box", _line("read_before(f[7]", "component(7,", "component(9,")),
    "wrong sign of an offset": ({}, "box", _text("read_before(f[1],", "read_after(f[1],")),
    "wrong row": ({}, "box", _line("read_here(f[15]", "row_mm", "row_mp")),
    "wrong weight": ({}, "box", _text("Real(1.0 / 36)", "Real(1.0 / 18)")),
    "wrong relaxation": ({}, "box", _text("Real(1) - omega;", "Real(1.01) - omega;")),
    "row end ignored": ({}, "box", _text("made.first = starts && !ring;", "made.first = false;")),
    "ring of the wrong length": ({}, "box", _text("ring ? nx / CELLS - 1 : 0", "ring ? nx / CELLS - 2 : 0")),
    "wall along x returns another one": ({}, "cavity", _line("x_low, source", "component(2,", "component(4,")),
    "wall along y returns another one": ({}, "cavity", _line("read_here(f[3]", "component(4,", "component(2,")),
    "lid moves the other way": ({}, "cavity", _text("add(f[8], -Real", "add(f[8], Real")),
    "stale halo": ({"wrap": "ghost"}, "box", _stale_ghosts),
    "lost ghost component": ({"wrap": "ghost"}, "box", _text("if (used_7) populations", "if (false) populations")),
    "in place, wrong slot": ({"scheme": "aa"}, "box", _line("read_before(f[7]", "component(8,", "component(7,")),
    "in place, cut link not turned": ({"scheme": "esoteric-pull"}, "cavity", _line("x_high, pop", "x_high,", "false,")),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("storage", PRECISIONS)
@pytest.mark.parametrize("fault", MUTATIONS)
def test_verification_finds(fault: str, storage: str) -> None:
    axes, flow, mutate = MUTATIONS[fault]
    program = mutate(_program(axes, flow, storage))
    assert not verify(program, compile_on_host(program), HostDevice()).passed


RIGHT = {"-".join((*map(str, axes.values()), flow)): (axes, flow) for axes, flow, _ in MUTATIONS.values()}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("storage", PRECISIONS)
@pytest.mark.parametrize("kernel", RIGHT)
def test_the_right_kernels_pass(kernel: str, storage: str) -> None:
    program = _program(*RIGHT[kernel], storage)
    assert verify(program, compile_on_host(program), HostDevice()).passed


def test_verification_at_full_size_exchanges_the_buffers_both_ways() -> None:
    case = replace(flows("d3q19", "bgk")["box"], domain=(96, 10, 6))
    program = render(case, config(storage="fp32", cells_per_thread=2))
    (launches,) = program.period
    back = tuple(replace(step, arguments=("f1", "f0", *step.arguments[2:])) for step in launches)
    for wrong in (False, True):
        tried = replace(program, period=(launches, back)) if wrong else program
        found = verify_full_size(tried, compile_on_host(tried), HostDevice())
        assert found.passed != wrong
        assert found.worst_steps == 2


def _program(axes: dict[str, object], flow: str, storage: str) -> Program:
    case = flows("d3q19", "bgk")[flow]
    return render(case, config(storage=storage, cells_per_thread=2, **axes))
