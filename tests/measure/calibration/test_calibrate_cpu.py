"""Calibration of a CPU: what is gone through lies in the arrays, is moved, and is asked for in the ways that count."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.protocol import Binary, Device
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.probes.walks import (
    CHAINS,
    DIVIDE,
    MIXED,
    MULTIPLY_ADD,
    WALK,
    WORKED,
    arithmetic,
    chains_of,
    walk,
    walks_digest,
)
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import STREAMS, CpuAccess
from lbmtune.measure.calibration import cpu as calibration
from lbmtune.measure.calibration import cpu_bench
from lbmtune.model.machine.benchmark_names import lacking_of_cpu
from lbmtune.model.machine.memory_walks import Walk, calibrated
from lbmtune.records import Resources

CACHES = {"L1": 32 << 10, "L2": 256 << 10}


class Cores:
    """Goes through streams in NumPy, a row of each part. wrong: whether it forgets what it read."""

    xp = np
    limits = Limits(cores=2, vector_bits=512)
    resources = Resources()

    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong
        self.launched: list[tuple[int, int]] = []
        self.program: Program | None = None

    def empty(self, elements: int, dtype: str) -> Any:
        return np.zeros(elements, dtype)

    def load(self, program: Program, binary: Binary) -> Cores:
        self.program = program
        return self

    def time_s(self, run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start + 1e-3

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Any) -> None:
        if launch.entry != WALK:
            return
        source, target, starts, parts, apart, rows, pitch, length, _ = arguments
        last = (parts - 1) * apart + (rows - 1) * pitch
        assert starts.min() >= 0
        assert starts.max() + last + length <= len(source) == len(target)
        self.launched.append((int(starts[0]), parts))
        if not self.wrong:
            for read, written in starts.reshape(2, STREAMS).T:
                target[written : written + 16] = source[read : read + 16]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "_STREAM_BYTES": 1 << 17,
        "_SAMPLE_S": 1e-5,
        "_TIMES_CACHE": 1,
    }.items():
        monkeypatch.setattr(cpu_bench, name, value)
    monkeypatch.setattr(calibration, "_ROUNDS", 1)


def compiled(_: Program) -> Binary:
    return Binary(b"", "", Resources())


@pytest.mark.usefixtures("small")
def test_a_cpu_is_calibrated() -> None:
    heard: list[str] = []
    found = calibration.calibrate_cpu(Cores(), compiled, CACHES, heard.append)  # type: ignore[arg-type]
    assert list(found.walks_bytes_per_s) == [one.name for one in calibrated((4, 32, 64))]
    assert len(found.thread_walks_bytes_per_s) == 7
    by_width = (
        found.worked_per_s,
        found.multiply_add_per_s,
        found.mixed_per_s,
        found.divide_per_s,
        found.cached_bytes_per_s,
    )
    assert all(set(one) == {"4", "32", "64"} for one in by_width)
    assert min(found.walks_bytes_per_s.values()) > 0
    assert found.refill_s >= 0
    assert list(found.hidden) == [f"in place, {width} bytes{ahead}" for width in (32, 64) for ahead in ("", ", ahead")]
    assert all(0 <= share <= 1 for share in found.hidden.values())
    assert list(found.cached_hidden) == ["in place, 32 bytes", "in place, 64 bytes"]
    together = {"in place": (10, 13, 19), "copy": (20, 26, 38), "streaming": (10, 13, 19)}
    ways = [("in place", 32), ("copy", 32), ("in place", 64), ("copy", 64), ("streaming", 64)]
    assert list(found.refills_s) == [
        f"{kind}, {width} bytes, {lines} together" for kind, width in ways for lines in together[kind]
    ]
    assert min(found.refills_s.values()) >= 0
    assert found.digest == walks_digest()
    assert "arithmetic, round 1 of 1" in heard


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shifted", [False, True])
def test_streams_lie_apart(shifted: bool) -> None:
    bench = cpu_bench.CpuBench(Cores(), compiled, CACHES)  # type: ignore[arg-type]
    starts, pitch = bench._apart(Walk("copy", 4, shifted))
    assert min(np.diff(starts[STREAMS:])) >= bench._parts * cpu_bench._ROWS * pitch


@pytest.mark.usefixtures("small")
def test_some_streams_share_a_set_of_the_first_cache() -> None:
    """64 sets of lines of 64 bytes: the first of them start there in the same one, the others in one of their own."""
    bench = cpu_bench.CpuBench(Cores(), compiled, CACHES)  # type: ignore[arg-type]
    for together in (0, 10, 13, STREAMS):
        starts, _ = bench._apart(Walk("in place", 32), together)
        sets = [4 * start // 64 % 64 for start in starts[:STREAMS:3]]  # of those that are not displaced
        crowd = len(range(0, together, 3))
        assert len(set(sets[:crowd])) == min(crowd, 1)
        assert len(set(sets)) == len(sets) - max(0, crowd - 1)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("l3", "lengths"), [(2 << 20, (1632, 10336)), ((2 << 20) - 1, (1632, 0))])
def test_what_is_in_the_last_cache_alone_is_measured_where_it_holds_that_of_all_cores(
    l3: int, lengths: tuple[int, int]
) -> None:
    """Two cores with 256 KiB each go through half of that, or three times as much, which takes 2 MiB in all."""
    caches = {**CACHES, "L3": l3}
    bench = cpu_bench.CpuBench(Cores(), compiled, caches)  # type: ignore[arg-type]
    assert bench.cached_lengths() == lengths
    found = calibration.calibrate_cpu(Cores(), compiled, caches, lambda _: None)  # type: ignore[arg-type]
    ways = [(4, ""), (32, ""), (64, ""), (32, ", ahead"), (64, ", ahead")]
    names = [f"in place, {width} bytes{ahead}" for width, ahead in ways]
    assert list(found.last_cached_bytes_per_s) == (names if lengths[1] else [])
    filled = [f"{name}, {share} of the last cache" for name in names[1:] for share in ("0.33", "0.67", "1.33")]
    assert sorted(found.filled_bytes_per_s) == (sorted(filled) if lengths[1] else [])
    probes = bench.probes()
    assert list(probes) == ["memory_bytes_per_s", "work_per_s", *["last_cache_bytes_per_s"] * bool(lengths[1])]
    assert all(one.amount > 0 for one in probes.values())


@pytest.mark.parametrize(("both_s", "share"), [(2.5e-9, 0.0), (2e-9, 0.5), (1.5e-9, 1.0), (1e-9, 1.0), (3e-9, 0.0)])
def test_what_hides_is_what_both_together_do_not_take(both_s: float, share: float) -> None:
    assert cpu_bench.hidden_share(1.5e-9, 1e-9, both_s) == pytest.approx(share)
    assert cpu_bench.hidden_share(1e-9, 1.5e-9, both_s) == pytest.approx(share)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("shares", "seconds"), [([1.0], 0.0), ([0.5, 0.9, 0.96], 2.0), ([0.5, 0.9, 0.8], 1.0)])
def test_a_sample_that_another_program_disturbs_is_taken_again(
    monkeypatch: pytest.MonkeyPatch, shares: list[float], seconds: float
) -> None:
    """At most three times; then the one with most of the processors counts."""
    cores = Cores()
    bench = cpu_bench.CpuBench(cores, compiled, CACHES)  # type: ignore[arg-type]
    seen, times = iter(shares), iter(range(len(shares)))
    monkeypatch.setattr(cpu_bench, "cpu_share", lambda *_: next(seen))
    monkeypatch.setattr(cores, "time_s", lambda run: float(next(times)))
    assert bench._sample_s(lambda: None) == seconds
    assert next(times, None) is None


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("threads", "windows"), [(1, 10), (2, 5), (16, 1)])
def test_a_run_in_memory_is_short_and_the_next_one_goes_on_behind_it(threads: int, windows: int) -> None:
    """Otherwise a run of one thread takes as long as the last cache is large."""
    cores = Cores()
    caches = {**CACHES, "L3": 320 * cpu_bench._ROWS * cpu_bench._SHIFTED_PITCH * 4 * STREAMS}
    bench = cpu_bench.CpuBench(cores, compiled, caches)  # type: ignore[arg-type]
    assert bench._parts == 320
    one = Walk("in place", 4)
    cells, run = bench._rows(one, threads, *bench._apart(one))
    for _ in range(windows + 1):
        run()
    starts, parts = zip(*cores.launched, strict=True)
    assert set(parts) == {320 // windows}
    assert 320 // windows <= cpu_bench._WINDOW * threads
    assert cells == parts[0] * cpu_bench._ROWS * cpu_bench._CELLS
    apart = parts[0] * cpu_bench._ROWS * cpu_bench._PITCH
    assert [start - starts[0] for start in starts] == [*(n * apart for n in range(windows)), 0]


@pytest.mark.usefixtures("small")
def test_a_calibration_ends_in_time_with_fewer_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_ROUNDS", 5)
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr(calibration.time, "monotonic", lambda: float(next(clock)))
    heard: list[str] = []
    found = calibration._in_rounds({"streams": {"one": iter((3.0, 1.0)).__next__}}, heard.append)
    assert found == {"streams": {"one": 2.0}}
    assert heard == ["streams, round 1 of 5", "streams, round 2 of 5", "2 of 5 rounds: 35 s are over"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("limit_s", [1e9, -1.0])
def test_a_quick_calibration_is_one_round_without_what_the_model_can_do_without(
    monkeypatch: pytest.MonkeyPatch, limit_s: float
) -> None:
    monkeypatch.setattr(calibration, "_QUICK_LIMIT_S", limit_s)
    monkeypatch.setattr(calibration, "_ROUNDS", 5)
    heard: list[str] = []
    caches = {**CACHES, "L3": 2 << 20}
    found = calibration.calibrate_cpu(Cores(), compiled, caches, heard.append, quick=True)  # type: ignore[arg-type]
    assert not [*lacking_of_cpu(found)]
    assert found.refill_s >= 0
    assert len(heard) == len(set(heard)) == 11, "each group once"
    optional = (
        *(found.worked_per_s, found.hidden, found.cached_hidden, found.refills_s),
        *(found.last_cached_bytes_per_s, found.filled_bytes_per_s),
    )
    assert [bool(table) for table in optional] == [limit_s > 0] * 6
    assert sum("left out" in text for text in heard) == (0 if limit_s > 0 else 6)
    assert not any("left out" in text for text in heard[:5]), "what the model needs comes first"


@pytest.mark.usefixtures("small")
def test_a_walk_that_moves_nothing_has_no_rate() -> None:
    with pytest.raises(RuntimeError, match="did not move what it should"):
        calibration.calibrate_cpu(Cores(wrong=True), compiled, CACHES, lambda _: None)  # type: ignore[arg-type]


def test_walks_and_chains_do_what_they_say() -> None:
    """As compiled: every element of every row, and no other; products with sums, and quotients."""
    device = open_cpu()
    parts, rows, pitch, length, lanes = 3, 2, 24, 16, 8
    program = walk(CpuAccess("float32", lanes, streaming=False), 1, ahead=False, grouped=False)
    executable = device.load(program, compile_cpu(program))
    stride = parts * rows * pitch
    source = np.arange(1, STREAMS * stride + 2, dtype=np.float32)
    target = np.zeros_like(source)
    read = [q * stride for q in range(STREAMS)]
    starts = np.array([*(1 + place for place in read), *reversed(read)], np.int64)
    numbers = parts, rows * pitch, rows, pitch, length, 0
    executable.launch(program.period[0][0], (1, 1, 1), (source, target, starts, *numbers))
    expected = np.zeros_like(target)
    for one, other in starts.reshape(2, STREAMS).T:
        for row in range(parts * rows):
            at = row * pitch
            expected[other + at : other + at + length] = source[one + at : one + at + length]
    assert (target == expected).all()

    worked = walk(CpuAccess("float32", lanes, streaming=False), 1, ahead=False, grouped=False, worked=True)
    executable = device.load(worked, compile_cpu(worked))
    own = np.array(read * 2, np.int64)
    before = source.copy()
    executable.launch(worked.period[0][0], (1, 1, 1), (source, source, own, *numbers))
    values = before[:-1].reshape(STREAMS, -1, pitch)[:, :, :length].astype(np.float64)
    for _ in range(WORKED // (2 * STREAMS)):
        for q in range(STREAMS):
            values[q] = (values[q] + values[(q + 1) % STREAMS]) / 2
    np.testing.assert_allclose(source[:-1].reshape(STREAMS, -1, pitch)[:, :, :length], values, rtol=1e-6)

    for count in (CHAINS, CHAINS // 2):
        assert _results(device, lanes, count) == {MULTIPLY_ADD: 2 * count, MIXED: 2.875 * count, DIVIDE: 0.5 * count}


def _results(device: Device, lanes: int, count: int) -> dict[str, float]:
    """What each kind of chains leaves of twos after three turns: sums go from 2 to 2.5, 2.75 and 2.875."""
    chains = arithmetic(CpuAccess("float32", lanes, streaming=False), 1, count)
    executable = device.load(chains, compile_cpu(chains))
    results = {}
    for launch in chains.period[0]:
        values = np.full(64 + lanes, 2, np.float32)
        executable.launch(launch, (1, 1, 1), (values, np.float32(0.5), 1, 3))
        (results[launch.entry],) = {float(value) for value in values[:lanes]}
    return results


@pytest.mark.parametrize(
    ("width", "vector_bits", "count"), [(4, 256, 10), (32, 256, 10), (64, 256, 5), (64, 512, 10), (4, 0, 10)]
)
def test_chains_stay_in_registers(width: int, vector_bits: int, count: int) -> None:
    """Sixteen of them, of which a vector that is too long takes two."""
    assert chains_of(CpuAccess("float32", width // 4, streaming=False), vector_bits) == count
