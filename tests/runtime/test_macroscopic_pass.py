"""Density and velocity of states, by a kernel of its own, are those that the host sums up, for every family."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import open_cpu
from lbmtune.backend.protocol import Binary, Device
from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.records import Resources
from lbmtune.runtime import Simulation
from lbmtune.runtime.macroscopic_pass import MacroscopicPass
from tests.support.conformance.choices import Sample
from tests.support.conformance.covering import everything

_NONE = Binary(b"", "", Resources())
_EVERY = {"cuda": 16, "cpu": 12}


class _Idle:
    """A device that loads nothing but the pass: states are written by the test."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def load(self, program: Program, binary: Binary) -> Any:
        return self._device.load(program, binary) if binary.image else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


@cache
def samples(backend: str) -> tuple[Sample, ...]:
    return everything(backend).samples[:: _EVERY[backend]]


def with_state(sample: Sample, device: Device, parity: int) -> Simulation:
    """A simulation whose buffers hold small numbers everywhere, before a step of a parity."""
    case, config = sample
    program = render(case, config)
    simulation = Simulation(program, _NONE, _Idle(device), replace(case, domain=config.awkward_domain(case)))  # type: ignore[arg-type]
    random, stored = np.random.default_rng(parity), program.config.stored
    for buffer in simulation.buffers.values():
        values = 1e-2 * random.uniform(-1, 1, buffer.size) / case.stencil.q
        buffer[...] = stored.stored(values, np, config.unit)
    simulation.steps_done = parity
    return simulation


def check(sample: Sample, device: Device, compiler: Any) -> None:
    case, config = sample
    for parity in range(config.propagation.period):
        simulation = with_state(sample, device, parity)
        found = MacroscopicPass(simulation, device, compiler)().reshape(4, *simulation.case.domain[::-1])
        density, velocity = simulation.macroscopic()
        solid = (
            solid_in(simulation.case, whole(simulation.case.domain)) if case.geometry else np.zeros(density.shape, bool)
        )
        bound = {"fp64": 1e-12, "fp32": 2e-6}[config.compute]
        assert np.abs(found[0] - density)[~solid].max() < bound, (parity, sample)
        assert np.abs(found[1:] - velocity)[:, ~solid].max() < bound, (parity, sample)
        assert (found[0][solid] == 1).all()
        assert (found[1:][:, solid] == 0).all()


@pytest.mark.parametrize("number", range(200))
def test_fields_on_a_cpu(number: int) -> None:
    if number < len(samples("cpu")):
        check(samples("cpu")[number], open_cpu(), None)
