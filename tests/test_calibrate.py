"""Calibration: every micro-benchmark moves what it says, on a device that stands in for a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.nvrtc import compile_cuda
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.rules import Limits
from lbmtune.codegen.probes import CHASE, KINDS, LISTED, MEET, RUNS, SPILL, STAGES, WALK, issue_probe, probe
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure import calibrate as calibration
from lbmtune.measure import microbench
from lbmtune.model.machine import Calibration
from lbmtune.records import Resources


class Card:
    """Copies in NumPy. wrong: whether it forgets to displace."""

    xp = np
    limits = Limits(shared_bytes_per_block=227 << 10, shared_bytes_per_multiprocessor=228 << 10, multiprocessors=132)
    caches_bytes = {"L2": 60 << 20}
    resources = Resources()

    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong
        self.asked: list[tuple[str, int, int]] = []
        self.elements = calibration._STREAM_BYTES // 4  # of a stream
        self.listed = 0

    def empty(self, elements: int, dtype: str) -> Any:
        return np.zeros(elements, dtype)

    def load(self, program: Program, binary: Binary) -> Card:
        self.listed = next((int(o[-1]) for o in program.options if o.startswith("-DLISTED")), 0)
        return self

    def synchronize(self) -> None: ...

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        return run

    def time_s(self, run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Any) -> None:
        assert 0 <= launch.shared_bytes <= self.limits.shared_bytes_per_block
        self.asked.append((launch.entry, launch.block[0], launch.shared_bytes))
        if launch.entry in (SPILL, CHASE, STAGES, MEET):
            return
        if launch.entry == WALK:
            source, target, accesses, _apart, steps = arguments
            assert grid[0] * launch.block[0] * steps >= accesses
            target[:] = source
            return
        if launch.entry == LISTED:
            source, target, entries, accesses = arguments
            size = 4 * self.elements // 2 // int(accesses)  # half of a stream is copied
            there, here = (
                a.view(f"uint{8 * size}")[: STREAMS * accesses].reshape(STREAMS, -1) for a in (source, target)
            )
            shift = 0 if self.wrong else int(entries[0])
            if source is not target:
                here[:] = np.roll(there, -shift if self.listed & 1 else shift, 1)
            return
        source, target, accesses, load, store, turns = arguments
        assert grid[0] * launch.block[0] >= accesses
        if source is target or turns > 1 or accesses <= 64:
            return
        shift = 0 if self.wrong else int(store - load)
        target.reshape(STREAMS, -1)[:] = np.roll(source.reshape(STREAMS, -1), shift, 1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_STREAM_BYTES", 1 << 14)
    for name, value in {"_SAMPLES": 3, "_WARMUP_S": 1e-5, "_SAMPLE_S": 1e-5}.items():
        monkeypatch.setattr(microbench, name, value)


def compiled(_: Program) -> Binary:
    return Binary(b"", "", Resources())


@pytest.mark.usefixtures("small")
def test_a_card_is_calibrated() -> None:
    card, heard = Card(), []
    found = calibration.calibrate(card, compiled, heard.append)  # type: ignore[arg-type]
    for each in fields(Calibration):
        value = getattr(found, each.name)
        figures = value.values() if isinstance(value, dict) else [value]
        assert all(figure > 0 for figure in figures), each.name
    assert {"4", "4 of 4", "16 of 512"} <= set(found.runs_bytes_per_s)
    assert set(found.local_bytes_per_s) == {"L1", "L2", "memory"}
    assert {"2 of 64 stores by 64", "8 none by 256"} <= set(found.displaced_bytes_per_s)
    assert {"multiply-add, 8 warps of 4, meeting", "double", "conversion"} <= set(found.instructions_per_s)
    assert {"call 4980736", "dependent 4980736"} <= set(found.small_s)
    assert len(heard) > 4
    # 256 threads in blocks of 64: four share the memory of a multiprocessor, what the system keeps of it left out
    assert (RUNS, 64, (228 << 10) // 4 - 1024) in card.asked


@pytest.mark.usefixtures("small")
def test_a_copy_that_is_not_displaced_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="did not move what it should"):
        calibration.calibrate(Card(wrong=True), compiled, lambda _: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("access_bytes", [2, 4, 8, 16])
@pytest.mark.parametrize("run_bytes", [0, 128])
def test_probes_compile_without_spills(access_bytes: int, run_bytes: int) -> None:
    found = compile_cuda(probe(access_bytes=access_bytes, run_bytes=run_bytes, local_bytes=256)).resources
    assert found.spill_bytes == 0
    assert found.local_bytes == 256
    assert 0 < found.registers <= 128  # 512 threads of the widest access share a multiprocessor


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("meets", [False, True])
def test_probes_of_instructions_compile_without_spills(kind: str, meets: bool) -> None:
    found = compile_cuda(issue_probe(kind=kind, chains=8, length=16, meets=meets, threads=1024)).resources
    assert found.spill_bytes == found.local_bytes == 0
    assert found.registers <= 64  # 1024 threads are one block
