"""The script that compares operators: what it starts from, what it reads off a flow, and a flow on the host."""

from __future__ import annotations

import json
from types import ModuleType

import numpy as np
import pytest

from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.render import render
from scripts.measurements import physics as physics_script
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.paths import RECORDED, ROOT

SCRIPT, RECORD = ROOT / "scripts" / "measurements" / "physics.py", RECORDED / "nvidia-h200" / "physics.json"


@pytest.fixture(scope="module")
def physics() -> ModuleType:
    return physics_script


def test_the_box_starts_with_the_energy_and_the_enstrophy_of_the_vortex(physics: ModuleType) -> None:
    """V0^2 / 8 and 3 V0^2 / (8 L^2)."""
    density, velocity = physics.start(32, np)
    length = 32 / (2 * np.pi)
    assert physics.energy(density, velocity) / physics.SPEED**2 == pytest.approx(1 / 8, rel=1e-3)
    assert physics.enstrophy(velocity, np) * length**2 / physics.SPEED**2 == pytest.approx(3 / 8, rel=1e-6)
    assert abs(density.mean() - 1) < 1e-12


def test_the_peak_of_the_dissipation_rate_is_that_of_a_known_curve(physics: ModuleType) -> None:
    times = np.arange(0, 12, 0.1)
    energies = 1 - np.cumsum(0.1 * 0.0125 * np.exp(-(((times - 0.05 - 9.03) / 3) ** 2)))
    found = physics.peak(energies, 0.1)
    assert found["peak"] == pytest.approx(0.0125, rel=1e-3)
    assert found["peak_time"] == pytest.approx(9.03, abs=0.02)


def test_deviation_is_the_largest_and_leaves_out_what_is_misprinted(physics: ModuleType) -> None:
    table = physics.GHIA[1]
    places, values = np.array([0.25, 0.5, 0.75]), np.array([0.25, 0.6, np.nan])
    assert physics.deviation((np.arange(8) + 0.5) / 8, (0.0, 1.0), places, values) == pytest.approx(0.1)
    assert np.isnan(table).sum() == 1
    assert len(table[0]) == len(physics.GHIA[0][0]) == 15


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_both_operators_decay_as_fast_as_the_vortex(physics: ModuleType) -> None:
    bench = physics.Bench(HostDevice(), compile_on_host)
    for operator in physics.OPERATORS:
        found = physics.decay(bench, "d2q9", operator, "fp64", 16)
        assert abs(found["viscosity_error"]) < 4e-3
        assert found["velocity"] < 0.03
    assert {name: len(digests) for name, digests in bench.sources.items()} == {
        "d2q9 regularised fp64": 1,
        "d2q9 bgk fp64": 1,
    }


def test_what_is_recorded_ran_by_the_texts_that_are_printed_now(physics: ModuleType) -> None:
    """Boxes of every lattice, operator and storage, and the cavity in two dimensions."""
    recorded = json.loads(RECORD.read_text())["sources"]
    assert set(recorded) == {
        f"{lattice} {operator} {storage}"
        for lattice in ("d2q9", "d3q19")
        for operator in physics.OPERATORS
        for storage in ("fp64", "fp32")
    }
    for name, digests in recorded.items():
        lattice, operator, storage = name.split()
        flows = [box(lattice, operator, (64, 64, 1))]
        flows += [cavity(lattice, operator, (64, 64, 1), 1.0, physics.SPEED)] if len(digests) > 1 else []
        assert {render(*physics.alike(flow, storage)).digest for flow in flows} == set(digests), name
    assert sum(map(len, recorded.values())) == len(recorded) + len(physics.OPERATORS)
