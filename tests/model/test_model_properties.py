"""Properties of every prediction of every kernel: units, ceilings, and that faster memory makes none slower."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lbmtune.catalogue.config import CpuConfig, KernelConfig, cpu, cuda, from_flat
from lbmtune.catalogue.layouts import AoS, Rows, SoA
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, porous
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.records import Resources
from lbmtune.records.store import read_study
from lbmtune.records.terms import LAUNCH
from tests.support.kernels.configs import varied
from tests.support.paths import RECORDED

CARD, HOST = (read_machine(RECORDED / name / "machine.toml") for name in ("nvidia-h200", "xeon-2-cores"))
PEAK_BYTES_PER_S = 4.8e12
"""Source: data sheet of the NVIDIA H200."""
BOX, MOMENTS = box("d3q19", "bgk", (256, 256, 256)), box("d3q19", "regularised", (256, 256, 256))
STONE = porous("d3q19", "bgk", (64, 64, 64), 1.2, "blocks:fraction=0.3", (1e-6, 0.0, 0.0))
MARCH = cuda.TemporalBlocking(representation="moments", rows=2, steps=1)
STRUCTURES = cuda.Direct(layout=AoS(), compute="fp64", storage="fp64")
LEAN, SPILLED = Resources(registers=64), Resources(registers=128, spill_bytes=400, local_bytes=160)


SAMPLED = 6
"""Kernels of each recorded set."""


class Kind(NamedTuple):
    """resources: None on a CPU; known: the machine, or the usual one of its kind."""

    case: Case
    config: KernelConfig
    resources: Resources | None = None
    known: Machine | None = None

    @property
    def machine(self) -> Machine:
        return self.known or (HOST if isinstance(self.config, CpuConfig) else CARD)


KINDS: dict[str, Kind] = {
    "pull": Kind(BOX, cuda.Direct(), LEAN),
    "in place, vectors that spill": Kind(BOX, cuda.Direct(block=(64, 1, 1), cells_per_thread=4, scheme="aa"), SPILLED),
    "structures": Kind(BOX, cuda.Direct(layout=AoS(), scheme="push"), LEAN),
    "structures of doubles that spill": Kind(BOX, replace(STRUCTURES, scheme="aa"), SPILLED),
    "structures in columns that spill": Kind(
        BOX, varied(STRUCTURES, family="column", scheme="esoteric-twist", z_cells=8), SPILLED
    ),
    "rings of structures": Kind(BOX, replace(STRUCTURES, scheme="ghost-cell", block=(64, 1, 1)), LEAN),
    "columns": Kind(BOX, cuda.Column(), LEAN),
    "solid cells": Kind(STONE, cuda.Direct(flags="memory", scheme="push"), LEAN),
    "solid cells, spilled": Kind(STONE, cuda.Direct(flags="memory", scheme="esoteric-pull"), SPILLED),
    "list": Kind(STONE, cuda.Sparse(prefetch_index=65536), LEAN),
    "list that spills": Kind(STONE, cuda.Sparse(cells_per_thread=2, scheme="aa"), SPILLED),
    "march of one step": Kind(MOMENTS, MARCH, Resources(registers=100)),
    "march of one step that spills": Kind(MOMENTS, MARCH, SPILLED),
    "march of several steps": Kind(MOMENTS, replace(MARCH, steps=2), Resources(registers=128)),
    "march of several steps that spills": Kind(MOMENTS, replace(MARCH, steps=3, warp_sync="neighbours"), SPILLED),
    "march between walls": Kind(
        cavity("d3q19", "regularised", (256, 256, 256), 1.5), replace(MARCH, steps=2), Resources(registers=128)
    ),
    "march in two dimensions": Kind(
        box("d2q9", "regularised", (4096, 4096, 1)),
        replace(MARCH, block=(32, 4, 1), rows=1, steps=2),
        Resources(registers=128),
    ),
    "tiles with faces, a cell of a row to a warp": Kind(
        MOMENTS, cuda.FaceExchange(layout=SoA(), tile=(1, 32, 16)), LEAN
    ),
    "tiles with faces, spilled": Kind(MOMENTS, cuda.FaceExchange(layout=AoS()), SPILLED),
    "resident": Kind(
        box("d3q19", "bgk", (64, 64, 64)),
        cuda.Persistent(layout=Rows(), block=(64, 8, 1)),
        SPILLED,
    ),
    "moments on chip": Kind(
        box("d3q19", "regularised", (64, 64, 64)),
        cuda.Persistent(layout=Rows(), block=(32, 8, 1), cells_per_thread=2, representation="moments"),
        SPILLED,
    ),
    "ghost cells": Kind(BOX, cuda.Direct(block=(32, 2, 4), scheme="ghost-cell"), LEAN),
    "two passes that spill": Kind(
        BOX, cuda.Direct(cells_per_thread=2, register_limit="64-registers", scheme="swap"), SPILLED
    ),
    "processor": Kind(BOX, cpu.Direct(scheme="aa", threads=2)),
    "processor, two lattices": Kind(BOX, cpu.Direct(streaming_stores=1, threads=2)),
    "processor, several steps": Kind(BOX, cpu.Wavefront(threads=2)),
}


def scaled(value: Any, name: str, rate: float, time: float) -> Any:
    """A figure, or all of a table, by the unit in its name."""
    factor = rate if name.endswith(("_per_s", "_hz")) else time if name.endswith("_s") else 1.0
    return {key: factor * one for key, one in value.items()} if isinstance(value, dict) else factor * value


def changed(machine: Machine, rate: float, time: float, only: str = "") -> Machine:
    """A machine whose rates, and times, are so many times as large; only: those whose name ends like that."""

    def table(of: Any) -> dict[str, Any]:
        known = {one.name: getattr(of, one.name) for one in fields(of) if one.name.endswith(only or ("_s", "_hz"))}
        return {name: scaled(value, name, rate, time) for name, value in known.items() if value is not None}

    parts = {name: getattr(machine, name) for name in ("environment", "calibration", "cpu")}
    return replace(
        machine, **table(machine), **{name: part and replace(part, **table(part)) for name, part in parts.items()}
    )


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def adds_up(kind: Kind) -> None:
    found = predict(kind.case, kind.config, kind.machine, kind.resources)
    assert found.mlups > 0
    assert 1e6 * found.mlups * sum(term.seconds for term in found.terms) == pytest.approx(1)


def takes_twice_as_long_at_half_the_speed(kind: Kind) -> None:
    whole = predict(kind.case, kind.config, kind.machine, kind.resources)
    half = predict(kind.case, kind.config, changed(kind.machine, 0.5, 2.0), kind.resources)
    assert half.mlups == pytest.approx(whole.mlups / 2)


def gains_by_faster_memory_no_more_than_it(kind: Kind) -> None:
    before = predict(kind.case, kind.config, kind.machine, kind.resources, {LAUNCH}).mlups
    after = predict(
        kind.case, kind.config, changed(kind.machine, 1.25, 1.0, "_bytes_per_s"), kind.resources, {LAUNCH}
    ).mlups
    assert before * (1 - 1e-12) <= after <= 1.25 * before * (1 + 1e-12)


def moves_no_more_than_memory_does(kind: Kind) -> None:
    """But for what never goes there. Small domains gain by a launch, since they stay in caches."""
    if kind.config.family == "persistent":
        return
    cpu = kind.machine.cpu
    most = max(cpu.walks_bytes_per_s.values()) if cpu else PEAK_BYTES_PER_S
    found = predict(kind.case, kind.config, kind.machine, kind.resources, {LAUNCH})
    assert 1e6 * found.mlups * found.bytes_per_update <= most


def test_terms_add_up_to_the_time_of_an_update(kind: Kind) -> None:
    adds_up(kind)


def test_a_machine_of_half_the_speed_takes_twice_as_long(kind: Kind) -> None:
    """All rates halved, and all times doubled: whatever adds figures of different units is found by that."""
    takes_twice_as_long_at_half_the_speed(kind)


def test_faster_memory_makes_no_kernel_slower_nor_faster_than_itself(kind: Kind) -> None:
    gains_by_faster_memory_no_more_than_it(kind)


def test_no_kernel_moves_more_than_memory_does(kind: Kind) -> None:
    moves_no_more_than_memory_does(kind)


@pytest.mark.parametrize(
    "folder", sorted(header.parent for header in RECORDED.glob("*/*/study.json")), ids=lambda folder: folder.name
)
def test_all_of_that_holds_of_kernels_that_were_recorded(folder: Path) -> None:
    """Some of each set, with the registers that they were compiled to."""
    study, machine = read_study(folder), read_machine(folder.parent / "machine.toml")
    trials = [one for one in study.trials if one.mlups is not None]
    for trial in trials[:: -(-len(trials) // SAMPLED)]:
        one = Kind(study.header.spec.case, from_flat(trial.config), trial.resources, machine)
        adds_up(one)
        takes_twice_as_long_at_half_the_speed(one)
        gains_by_faster_memory_no_more_than_it(one)
        moves_no_more_than_memory_does(one)
