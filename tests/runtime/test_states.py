"""A window of a state is a part of the whole state, and its sums are those of its cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lbmtune.catalogue.boundaries.cut_links import Window, solid_in, whole
from lbmtune.catalogue.config import KernelConfig, cpu, cuda
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import buffer_elements
from lbmtune.catalogue.layouts import AoSoA, Rows, SoA
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.runtime import moments, placement, states
from lbmtune.runtime.states import HostCopies, State, state_of

DOMAIN = (32, 6, 5)
BOX, LID = box("d3q19", "regularised", DOMAIN), cavity("d3q19", "bgk", DOMAIN, 1.2)
POROUS = replace(box("d3q19", "bgk", DOMAIN), geometry="blocks:fraction=0.3", flow="porous")
SLAB = replace(LID, faces=(*LID.faces[:4], "periodic", "periodic"))
PLAIN: dict[str, Any] = {"storage": "fp64", "compute": "fp64", "vector_bits": 0}
SAMPLES: dict[str, tuple[Case, KernelConfig]] = {
    "aa": (BOX, cpu.Direct(scheme="aa", row_offset=3, **PLAIN)),
    "aa, groups of cells": (BOX, cpu.Direct(scheme="aa", layout=AoSoA(width=4), row_offset=4, **PLAIN)),
    "aa, a lid": (SLAB, cpu.Direct(scheme="aa", row_offset=1, **PLAIN)),
    "twist, a lid": (LID, cuda.Direct(scheme="esoteric-twist", storage="fp64", compute="fp64", block=(32, 1, 1))),
    "push, a ghost layer": (
        BOX,
        cuda.Direct(scheme="push", wrap="ghost", storage="fp64", compute="fp64", block=(32, 1, 1)),
    ),
    "sites": (POROUS, cpu.Sparse(scheme="aa", **PLAIN)),
    "sites without walls": (POROUS, cpu.Sparse(scheme="esoteric-twist", boundary="implicit", **PLAIN)),
    "moments": (BOX, cpu.MomentsWavefront(storage="fp64", compute="fp64", layout=SoA())),
    "moments in rows": (
        BOX,
        cuda.TemporalBlocking(representation="moments", storage="fp64", compute="fp64", layout=Rows(), chunk_planes=5),
    ),
}
WINDOWS: tuple[Window, ...] = (
    (range(32), range(2, 3), range(5)),
    (range(5, 6), range(6), range(1, 4)),
    (range(7, 23), range(1, 4), range(4, 5)),
)
BEYOND: Window = (range(-2, 3), range(4, 8), range(-1, 1))
"""Cells beyond periodic faces, which are those of the image."""


def filled(case: Case, config: KernelConfig) -> tuple[State, Any]:
    """A state, and storage in which every element differs."""
    random = np.random.default_rng(3)
    return state_of(case, config, np), random.uniform(-0.01, 0.01, buffer_elements(case, config, case.domain))


def joined(blocks: Iterator[Any]) -> Any:
    return np.concatenate(list(blocks))


def part_of(found: Any, window: Window) -> Any:
    x, y, z = (np.arange(one.start, one.stop) for one in window)
    nz, ny, nx = found.shape[1:]
    return found[:, z[:, None, None] % nz, y[:, None] % ny, x % nx]


@pytest.fixture(params=[False, True], ids=["few at once", "one at a time"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large windows are read one direction at a time."""
    if request.param:
        for module in (moments, placement):
            monkeypatch.setattr(module, "_FEW_VALUES", 0)
        monkeypatch.setattr(placement, "_VALUES_OF_FEW_CELLS", 0)
        monkeypatch.setattr(states, "_FEW_SITES", 0)
        moments.few_places.cache_clear()


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("parity", [0, 1])
def test_a_window_is_a_part_of_the_whole(name: str, parity: int, sizes: None) -> None:
    case, config = SAMPLES[name]
    assert broken(case, config, Limits()) is None
    kept, buffer = filled(case, config)
    parity %= config.propagation.period
    all_cells = joined(kept.blocks(buffer, parity))
    assert all_cells.shape == (case.stencil.q, *reversed(case.domain))
    windows = [*WINDOWS, *([BEYOND] if set(case.faces) == {"periodic"} else [])]
    for window in windows:
        # twice, because places of the last windows are kept
        for _ in range(2):
            np.testing.assert_array_equal(joined(kept.blocks(buffer, parity, window)), part_of(all_cells, window))


class Elsewhere:
    """An array of a device: the host has not its elements."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)

    def __setitem__(self, at: Elsewhere, values: Elsewhere) -> None:
        self.values[at.values] = values.values


class Device:
    """A device that counts what is read from it."""

    reads = 0
    xp = SimpleNamespace(asarray=Elsewhere)

    @classmethod
    def gathered(cls, array: Elsewhere, indices: Any) -> Any:
        cls.reads += 1
        assert isinstance(indices, np.ndarray)
        return array.values[indices]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_host_reads_and_writes_few_cells_of_a_device_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, config = SAMPLES[name]
    kept, buffer = filled(case, config)
    there = Elsewhere(buffer)
    monkeypatch.setattr(Device, "reads", 0)
    for window in WINDOWS:
        found = joined(kept.blocks(HostCopies(there, Device), 0, window))  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, joined(kept.blocks(buffer, 0, window)))
    assert Device.reads == len(WINDOWS)
    state = joined(kept.blocks(buffer, 0))[..., ::-1]
    kept.put(state, buffer)
    kept.put(state, HostCopies(there, Device))  # type: ignore[arg-type]
    np.testing.assert_array_equal(there.values, buffer)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("parity", [0, 1])
def test_totals_of_a_window_are_those_of_its_fluid_cells(name: str, parity: int, sizes: None) -> None:
    case, config = SAMPLES[name]
    kept, buffer = filled(case, config)
    parity %= config.propagation.period
    for window in (whole(case.domain), *WINDOWS):
        deviations = joined(kept.blocks(buffer, parity, window)) - kept.weights
        fluid = None
        if case.geometry:
            fluid = ~solid_in(case, window)
            assert window != whole(case.domain) or 0 < fluid.sum() < fluid.size
            deviations[:, ~fluid] = 0.0
        totals, reached = kept.totals(buffer, parity, window, fluid)
        np.testing.assert_allclose(totals, deviations.sum(axis=(1, 2, 3)), rtol=0, atol=1e-13)
        largest = np.abs(deviations).max(axis=(1, 2, 3))
        if config.of_moments:  # a bound from those of the moments
            assert (reached >= largest).all()
        else:
            np.testing.assert_allclose(reached, largest, rtol=1e-12)


def test_a_moving_wall_adds_to_what_is_read_beside_it() -> None:
    """Storage of zeros is a fluid at rest, but for what the wall adds."""
    case, config = SAMPLES["aa, a lid"]
    kept, buffer = filled(case, config)
    assert all(kept.totals(0 * buffer, parity, whole(case.domain), None)[1].max() > 1e-3 for parity in (0, 1))


@pytest.mark.parametrize("name", [name for name, (_, config) in SAMPLES.items() if not config.of_moments])
def test_places_computed_at_once_are_those_of_each_direction(name: str) -> None:
    case, config = SAMPLES[name]
    found = []
    for parity, window in product(range(config.propagation.period), (whole(case.domain), *WINDOWS)):
        (at_once,) = placement.PopulationPlaces(case, config, parity, np, window).blocks()
        each = list(placement.PopulationPlaces(case, config, parity, np, window).each())
        np.testing.assert_array_equal(at_once.indices, np.stack([one.indices for one in each]))
        for gain, one in zip(np.broadcast_to(at_once.gain, at_once.indices.shape), each, strict=True):
            np.testing.assert_array_equal(gain, np.broadcast_to(one.gain, gain.shape))
        found.append(at_once.indices.tobytes())
    assert len(set(found)) == len(found)  # of each parity and window others
