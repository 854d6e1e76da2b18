"""A fixed part of the conformance run, and what its list must hold."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import prod
from pathlib import Path

import pytest

from choices import LIMITS, Sample, sample_of, values_of
from covering import Missing, everything, schemes_layouts_lattices
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.collisions import OPERATORS
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.rules import broken
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.codegen.render import render
from shim.device import COMPILER, HostDevice, compile_on_host

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
import conformance


@cache
def kernels(backend: str = "cuda") -> tuple[Sample, ...]:
    """All of the list; it takes a while to make."""
    return everything(backend).samples


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_a_part_on_the_host_shim() -> None:
    _all_right(conformance.on_shim, kernels()[::70])


def test_a_part_on_the_processor() -> None:
    _all_right(conformance.on_cpu, kernels("cpu")[::120])


def _all_right(check: Callable[[Sample], str | None], samples: Sequence[Sample]) -> None:
    wrong = {f"{case} {config.brief}": check((case, config)) for case, config in samples}
    assert not {sample: verdict for sample, verdict in wrong.items() if verdict}


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_no_scheme_layout_addressing_or_lattice_is_forgotten(backend: str) -> None:
    """Each of their combinations is in the list, or there is a reason against it that is no accident of a draw."""
    values = values_of(backend)
    combined = list(schemes_layouts_lattices(backend))
    assert len(combined) == prod(len(values[name]) for name in ("scheme", "layout", "addressing", "lattice"))
    against = {found.reason for found in combined if isinstance(found, Missing)}
    assert all(reason.startswith(("scheme ", "layout tiled")) for reason in against)


def test_the_list_is_legal_and_has_every_scheme_layout_and_operator() -> None:
    assert all(broken(case, config, LIMITS) is None for case, config in kernels())
    assert len({(case, config) for case, config in kernels()}) == len(kernels())
    assert {config.scheme for _, config in kernels()} == {*SCHEMES} - {"swap-ordered"}
    assert {config.layout for _, config in kernels()} == set(LAYOUTS)
    assert {case.collision for case, _ in kernels()} == set(OPERATORS)


def test_the_covering_array_covers() -> None:
    """Of all pairs of values of three axes, each is in a sample or said to be impossible."""
    values, found = values_of("cuda"), set()
    for _, config in kernels():
        flat = config.flat()
        found |= set(combinations(sorted((n, flat[n]) for n in ("scheme", "layout", "cells_per_thread")), 2))
    orderless = [name for name in values["scheme"] if name != "swap-ordered"]
    schemes = [(("layout", a), ("scheme", b)) for a in values["layout"] for b in orderless]
    assert all(pair in found for pair in schemes)
    impossible = {("cells_per_thread", n) for n in (2, 4, 8)}
    missing = {(("cells_per_thread", n), ("layout", a)) for n in (1, 2, 4, 8) for a in values["layout"]} - found
    assert all(cells in impossible for cells, _ in missing)
    assert {layout for _, (_, layout) in missing} <= {"aos", "bundle", "tiled-cells"}


def test_a_wrong_kernel_is_reported() -> None:
    sample = sample_of(
        "cuda", {"flow": "box", "lattice": "d2q9", "collision": "bgk", "scheme": "pull", "block": "8x2x1"}
    )
    assert conformance._checked(sample, lambda _: _wrong(sample), HostDevice()).startswith("wrong: ")


def _wrong(sample: Sample) -> Binary:
    program = render(*sample)
    return compile_on_host(replace(program, source=program.source.replace("lane.before)", "lane.after)")))
