"""Launches that begin before the one before them has ended: what is added to a text, and that nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification.verify import verify
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.compiled import ptx
from tests.support.kernels.configs import refusal
from tests.support.kernels.cuda_samples import config, flows, needs_nvrtc

KINDS: dict[str, dict[str, Any]] = {
    "one step": {"scheme": "aa", "cells_per_thread": 2},
    "columns": {"z_cells": 3},
    "stored every step": {"macroscopics": "every-step"},
    "ghost": {"scheme": "push", "wrap": "ghost"},
    "rings": {"scheme": "ghost-cell"},
    "listed": {"family": "sparse", "scheme": "esoteric-twist", "block": (32, 1, 1)},
    "moments": {
        "family": "temporal-blocking",
        "representation": "moments",
        "block": (32, 6, 1),
        "chunk_planes": 5,
        "plane_fetch": "none",
    },
}


def program(name: str, launch: str) -> Program:
    return render(
        flows("d2q9" if name == "ghost" else "d3q19", "regularised")["box"], config(**KINDS[name], launch=launch)
    )


@pytest.mark.parametrize("name", KINDS)
def test_every_entry_begins_with_its_wait_and_nothing_else_changes(name: str) -> None:
    plain, early = program(name, "call"), program(name, "dependent")
    assert set(early.entries) == set(plain.entries)
    assert early.source.count("{  begin_early();") == plain.source.count('extern "C" __global__') >= len(early.entries)
    for line in plain.source.split("\n"):
        assert line.startswith("// ") or line in early.source
    assert {launch.mode for step in early.period for launch in step} == {"dependent"}
    assert {launch.mode for step in plain.period for launch in step} == {"plain"}


@needs_nvrtc
def test_the_wait_is_an_instruction_where_there_is_one() -> None:
    early = program("ghost", "dependent")
    assert ptx(early).count("griddepcontrol.wait") == len(early.entries)
    assert "griddepcontrol" not in ptx(early, "compute_80")


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_steps_are_right() -> None:
    one = program("ghost", "dependent")
    assert verify(one, compile_on_host(one), HostDevice()).passed


def test_a_device_that_cannot_says_so() -> None:
    case, one = flows("d3q19", "bgk")["box"], config(launch="dependent")
    assert broken(case, one, Limits(dependent=True)) is None
    assert "launch=dependent is not supported by this device" in str(broken(case, one, Limits()))
    assert "launch=later is not supported for family direct" in refusal(case, Limits(), config(), launch="later")
