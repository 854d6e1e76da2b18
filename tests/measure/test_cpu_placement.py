"""Threads that are bound, pages that are huge or normal, and who touches them first: that each really acts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import get_native_id
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu
from lbmtune.backend.cpu.device import CpuDevice, CpuExecutable
from lbmtune.backend.cpu.placement import numa, pages, threads
from lbmtune.backend.protocol import Binary, OutOfMemoryError, Placing, TooManyResourcesError
from lbmtune.codegen.program import Launch
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Resources
from tests.support.kernels.configs import varied
from tests.support.kernels.cpu_cases import InterpretingDevice, case_of, config_of, program_of

MANY = min(2, len(threads.ALLOWED))
needs_two = pytest.mark.skipif(MANY < 2, reason="one processor")
needs_huge = pytest.mark.skipif(not pages.huge_pages(), reason="no transparent huge pages here")


@pytest.fixture(autouse=True)
def _free() -> Iterator[None]:
    yield
    threads.bind(1, "none")


def _launched(count: int, pinning: str) -> None:
    CpuExecutable({"step": lambda: None}, Resources(), count, pinning).launch(Launch("step", ()), (1, 1, 1), ())


@needs_two
def test_a_launch_binds_every_thread_to_a_processor_of_its_own() -> None:
    _launched(MANY, "cores")
    masks = [os.sched_getaffinity(thread) for thread in threads.team(MANY)]
    assert sorted(masks, key=min) == [{processor} for processor in sorted(threads.processors()[:MANY])]
    _launched(MANY, "none")
    assert all(os.sched_getaffinity(thread) == threads.ALLOWED for thread in threads.team(MANY))


@needs_two
def test_one_thread_after_two_and_none_bound_after_one() -> None:
    _launched(MANY, "cores")
    _launched(1, "cores")
    assert os.sched_getaffinity(get_native_id()) == {threads.processors()[0]}
    _launched(MANY, "none")
    assert all(os.sched_getaffinity(thread) == threads.ALLOWED for thread in threads.team(MANY))


def test_threads_take_one_processor_of_each_core_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "ALLOWED", frozenset(range(4)))
    monkeypatch.setattr(threads, "siblings", lambda processor: f"{processor // 2}")
    threads.processors.cache_clear()
    assert threads.processors() == (0, 2, 1, 3)
    threads.processors.cache_clear()


def _two_nodes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Node 0 has the first processor, node 1 the second, node 2 memory alone, as HBM beside DRAM has."""
    first, second, *_ = [*sorted(threads.ALLOWED), 99]
    for number, processors in enumerate((str(first), f"{second}-{second}", "")):
        (folder / f"node{number}").mkdir()
        (folder / f"node{number}" / "cpulist").write_text(processors + "\n", encoding="ascii")
    monkeypatch.setattr(numa, "_NODES", folder)


def test_nodes_are_those_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numa, "_NODES", tmp_path)
    assert numa.nodes() == ()
    (tmp_path / "node2").mkdir()
    (tmp_path / "node2" / "cpulist").write_text("0-3,8,10-11\n", encoding="ascii")
    assert numa.nodes() == (frozenset(), frozenset(), frozenset({0, 1, 2, 3, 8, 10, 11}))
    assert numa.processors_of("node-2") == numa.nodes()[2]
    assert numa.processors_of("any") == frozenset()


@needs_two
def test_threads_run_on_the_processors_of_their_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _two_nodes(tmp_path, monkeypatch)
    threads._masks.cache_clear()
    second = sorted(threads.ALLOWED)[1]
    _launched(1, "node-1")
    assert os.sched_getaffinity(get_native_id()) == {second}
    _launched(MANY, "node-2")
    masks = [os.sched_getaffinity(thread) for thread in threads.team(MANY)]
    assert sorted(masks, key=min) == [{processor} for processor in sorted(threads.processors()[:MANY])]
    _launched(1, "none")
    assert os.sched_getaffinity(get_native_id()) == threads.ALLOWED
    threads._masks.cache_clear()


def test_memory_lies_on_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        array = _mapped(numa="node-0")
    except OutOfMemoryError as error:
        pytest.skip(str(error))
    assert numa.node_of(array) == 0
    with pytest.raises(OutOfMemoryError, match="pinning=node-15: the system binds no memory to it"):
        _mapped(numa="node-15")
    monkeypatch.setattr(numa, "node_of", lambda array: 1)
    with pytest.raises(OutOfMemoryError, match="pinning=node-0: the memory lies on node 1"):
        _mapped(numa="node-0")


def test_more_shares_than_threads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_thread_numbers", lambda numbers: numbers.fill(7))
    with pytest.raises(TooManyResourcesError, match="2 shares of a loop ran on 1 threads"):
        threads.team(2) if MANY == 2 else pytest.skip("one processor")


def _mapped(size: int = 5 << 20, **said: Any) -> Any:
    return pages.mapped(size, replace(Placing("normal", "serial", MANY, 3), **said))


def test_normal_pages_are_none_of_them_huge() -> None:
    array = _mapped()
    assert array.ctypes.data % pages.HUGE_BYTES == 0
    assert array.size == 5 << 20
    array[:] = 1
    assert pages.huge_bytes(array) == 0


@needs_huge
def test_huge_pages_are_all_of_them_huge() -> None:
    assert pages.huge_bytes(_mapped(pages="huge")) == 6 << 20


def test_pages_that_did_not_come_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_advice", lambda pages, size: 15)
    with pytest.raises(OutOfMemoryError, match="pages=huge: 0 of 6291456 bytes lie in huge pages"):
        _mapped(pages="huge")


def _faults() -> dict[int, int]:
    """Page faults of each thread so far. Source: proc(5), minflt of stat."""
    stats = {int(p.name): (p / "stat").read_text() for p in Path("/proc/self/task").iterdir()}
    return {thread: int(text.rpartition(")")[2].split()[7]) for thread, text in stats.items()}


@needs_two
@pytest.mark.parametrize("first_touch", ["serial", "parallel"])
def test_who_touches_first(first_touch: str) -> None:
    team = threads.team(MANY)
    _mapped(first_touch=first_touch)
    before = _faults()
    kept = _mapped(8 << 20, first_touch=first_touch)
    faults = {thread: count - before.get(thread, 0) for thread, count in _faults().items()}
    share = kept.size // 4096 // MANY
    others = sum(count for thread, count in faults.items() if thread != get_native_id())
    assert faults[get_native_id()] >= share * 0.9
    assert others < share / 4 if first_touch == "serial" else others >= share * (MANY - 1) * 0.9, (team, faults)


@needs_two
def test_each_share_of_every_array_is_touched() -> None:
    touched = np.ones(3000, np.uint8)
    pages._touch_shares(touched, 3, MANY, 1)
    assert not touched.any()


@needs_two
@pytest.mark.parametrize(
    "axes",
    [
        {"first_touch": "parallel"},
        {"pinning": "node-0"},
        pytest.param({"pages": "huge"}, marks=needs_huge),
        {"pages": "normal", "family": "sparse", "first_touch": "parallel"},
    ],
)
def test_what_kernels_work_on_is_placed_so(axes: dict[str, Any]) -> None:
    config = varied(config_of("aa", "soa-scalar", threads=MANY), **axes)
    program = program_of(case_of("cavity", "d2q9"), config)
    asked: list[Placing | None] = []

    class Watching(InterpretingDevice):
        def empty(self, elements: int, dtype: str, placing: Placing | None = None) -> Any:
            asked.append(placing)
            return super().empty(elements, dtype, placing)

    assert verify(program, Binary(b"", "", Resources()), PooledDevice(Watching()), 1).passed
    assert {(p.pages, p.first_touch, p.threads) for p in asked if p} == {(config.pages, config.first_touch, MANY)}
    assert {p.numa for p in asked if p} == {config.numa}
    assert {p.arrays for p in asked if p} >= {9}
    assert None not in asked


def test_a_loaded_program_is_bound_as_its_configuration_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path))
    program = program_of(case_of("box", "d2q9"), config_of("aa", "soa-scalar", pinning="cores"))
    assert verify(program, compile_cpu(program), CpuDevice(), 1).passed
    assert os.sched_getaffinity(get_native_id()) == {threads.processors()[0]}


def test_the_text_does_not_say_where_it_runs() -> None:
    case, config = case_of("box", "d2q9"), config_of("aa", "soa-scalar", threads=2)
    other = replace(config, pinning="cores", pages="huge", first_touch="parallel")
    for pinning in ("node-1", "cores"):
        assert program_of(case, config).digest == program_of(case, replace(other, pinning=pinning)).digest
    assert program_of(case, config).digest == program_of(case, other).digest
    assert config.key != other.key
