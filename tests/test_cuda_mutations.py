"""Faults that verification must find, in every precision: each changes the text or the launches of a right kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from shim.device import COMPILER, HostDevice, compile_on_host

from cuda_samples import PRECISIONS, config, flows
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verify import verify

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


MUTATIONS: dict[str, tuple[dict[str, object], str, Callable[[Program], Program]]] = {
    "swapped direction": ({}, "box", _text("(f[7], source + component(7, n)", "(f[7], source + component(9, n)")),
    "wrong sign of an offset": ({}, "box", _text("read_before(f[1],", "read_after(f[1],")),
    "wrong row": ({}, "box", _text("component(15, n), row_mm", "component(15, n), row_mp")),
    "wrong weight": ({}, "box", _text("Real(1.0 / 36)", "Real(1.0 / 18)")),
    "wrong relaxation": ({}, "box", _text("Real(1) - omega;", "Real(1.01) - omega;")),
    "row end ignored": ({}, "box", _text("made.first = starts && !ring;", "made.first = false;")),
    "ring of the wrong length": ({}, "box", _text("ring ? nx / CELLS - 1 : 0", "ring ? nx / CELLS - 2 : 0")),
    "wrong value from a wall": ({}, "cavity", _text("f[1][0] = widen((source + component(2, n))", "f[1][0] = widen((source + component(1, n))")),
    "lid moves the other way": ({}, "cavity", _text("add(f[8], -Real", "add(f[8], Real")),
    "stale halo": ({"wrap": "ghost"}, "box", _stale_ghosts),
    "lost ghost component": ({"wrap": "ghost"}, "box", _text("if (used_7) populations", "if (false) populations")),
    "in place, wrong slot": ({"scheme": "aa"}, "box", _text("(f[7], populations + component(8, n), row_mo", "(f[7], populations + component(7, n), row_mo")),
    "in place, cut link moves on": ({"scheme": "esoteric-pull"}, "cavity", _text("lane, true, !x_low, x_high, populations + component(2, n) + (row_oo + element(lane, CELLS)))", "lane)")),
}  # fmt: skip


@pytest.mark.parametrize("storage", PRECISIONS)
@pytest.mark.parametrize("fault", MUTATIONS)
def test_verification_finds(fault: str, storage: str) -> None:
    axes, flow, mutate = MUTATIONS[fault]
    program = mutate(_program(axes, flow, storage))
    assert not verify(program, compile_on_host(program), HostDevice()).passed


@pytest.mark.parametrize("storage", PRECISIONS)
def test_the_right_kernels_pass(storage: str) -> None:
    for axes, flow, _ in {(str(a), f): (a, f, m) for a, f, m in MUTATIONS.values()}.values():
        program = _program(axes, flow, storage)
        assert verify(program, compile_on_host(program), HostDevice()).passed


def _program(axes: dict[str, object], flow: str, storage: str) -> Program:
    case = flows("d3q19", "bgk")[flow]
    return render(case, config(storage=storage, cells_per_thread=2, **axes))
