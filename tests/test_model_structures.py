"""Arrays of structures: how much slower they are where threads keep words of local memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuda_samples import config
from lbmtune.catalogue.case import Case, box
from lbmtune.model.copies import bandwidth
from lbmtune.model.local import local_byte_s
from lbmtune.model.machine import Machine
from lbmtune.model.measured import Structures, structures
from lbmtune.model.structures import longer_s
from lbmtune.model.subject import Subject
from lbmtune.model.toml import read_machine
from lbmtune.records import Entry, Resources

CARD = read_machine(Path(__file__).resolve().parent.parent / "studies" / "recorded" / "nvidia-h200" / "machine.toml")
HERE: Case = box("d3q19", "bgk", (256, 256, 256))
DOUBLES: dict[str, Any] = {"layout": "aos", "storage": "fp64", "compute": "fp64", "block": (64, 1, 1)}
REGISTERS, THREADS = 128, 512
"""Of a thread, and how many of a multiprocessor that leaves."""
KEPT_BYTES, NONE_S = 64 << 10, 1e-12
LONGER_S = {"stay": 0.0, "loads": 1e-13, "stores": 2e-13, "in place": 8e-13}
"""Of a byte, where threads keep so many; beside what it takes where they keep none."""


def measured_as(rates: dict[str, float]) -> Machine:
    assert CARD.calibration is not None
    return replace(CARD, calibration=replace(CARD.calibration, structures_bytes_per_s=rates))


def slower(direction: int = 1) -> Machine:
    """One whose copies take longer for each byte that threads keep, and what words take."""

    def rate(one: Structures) -> float:
        kept = one.threads * one.local_bytes
        words_s = local_byte_s(CARD, one.element_bytes, kept, walking=True) * one.local_bytes
        longer = direction * LONGER_S[one.side] * kept / KEPT_BYTES
        return 1 / (NONE_S + longer + words_s / (one.elements * one.element_bytes))

    return measured_as({one.name: rate(one) for one in structures()})


def subject(machine: Machine, local_bytes: int | tuple[int, int], **axes: Any) -> Subject:
    """local_bytes: of a thread, by parity where there are two."""
    assert machine.calibration is not None
    each = local_bytes if isinstance(local_bytes, tuple) else (local_bytes, local_bytes)
    names = ("step_0", "step_1") if axes["scheme"] == "aa" else ("step_0",)
    entries = {
        name: Entry(registers=REGISTERS, local_bytes=local, spill_bytes=2 * local)
        for name, local in zip(names, each, strict=False)
    }
    found = Subject(HERE, config(**{**DOUBLES, **axes}), machine, machine.calibration, Resources(entries=entries))
    assert found.threads == THREADS
    return found


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("elements", [19, 27])
@pytest.mark.parametrize("side", LONGER_S)
def test_what_words_take_anywhere_is_no_part_of_it(side: str, elements: int, width: int) -> None:
    """Between two points that were measured, and beyond the last one."""
    found = [longer_s(slower(), width, elements, side, n * KEPT_BYTES) for n in (0, 0.5, 1, 2, 7.5, 15, 99)]
    most = 7.5 * LONGER_S[side]
    assert found == pytest.approx([n * LONGER_S[side] for n in (0, 0.5, 1, 2)] + [most, most, most], abs=1e-18)


@pytest.mark.parametrize("side", LONGER_S)
def test_no_copy_is_faster_for_its_words(side: str) -> None:
    assert longer_s(slower(-1), 8, 19, side, KEPT_BYTES) == 0


def test_what_lies_at_home_is_a_copy_that_stays() -> None:
    rates = {f"8 x 19 by 512 of {local} stay": rate for local, rate in ((0, 1e12), (128, 1e11))}
    assert longer_s(measured_as(rates), 8, 19, "none", KEPT_BYTES) > 0


@pytest.mark.parametrize(("scheme", "side"), [("pull", "loads"), ("push", "stores")])
def test_a_kernel_takes_as_much_longer_as_the_copy(scheme: str, side: str) -> None:
    before, now = (bandwidth(subject(machine, 64, scheme=scheme)) for machine in (measured_as({}), slower()))
    assert 1 / now - 1 / before == pytest.approx(LONGER_S[side] * THREADS * 64 / KEPT_BYTES)


@pytest.mark.parametrize("local_bytes", [(64, 0), (0, 64), (64, 64)])
def test_each_parity_takes_longer_by_what_its_own_entry_keeps(local_bytes: tuple[int, int]) -> None:
    """One step of AA stays in its cells, of the other both sides lie in others."""
    before, now = (bandwidth(subject(machine, local_bytes, scheme="aa")) for machine in (measured_as({}), slower()))
    scheme = config(**DOUBLES, scheme="aa").propagation
    away = [any(any(a.write.offset) for a in scheme.passes(HERE.stencil, n)[0].accesses) for n in (0, 1)]
    assert sorted(away) == [False, True]
    kept = THREADS * local_bytes[away.index(True)]
    assert 1 / now - 1 / before == pytest.approx(LONGER_S["in place"] * kept / KEPT_BYTES / 2)


@pytest.mark.parametrize(
    "axes",
    [{"storage": "fp16s", "compute": "fp32"}, {"layout": "soa"}, {"storage": "fp32", "compute": "fp32"}],
    ids=str,
)
def test_what_was_not_measured_is_as_before(axes: dict[str, Any]) -> None:
    """Streams that lie apart have no structures; of others those of doubles alone are measured here."""
    found = slower().calibration
    assert found is not None
    doubles = {name: rate for name, rate in found.structures_bytes_per_s.items() if name.startswith("8 ")}
    before, now = (bandwidth(subject(measured_as(one), 64, scheme="aa", **axes)) for one in ({}, doubles))
    assert now == before
