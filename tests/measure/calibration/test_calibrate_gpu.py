"""Calibration: every micro-benchmark moves what it says, on a device that stands in for a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import fields
from operator import is_
from typing import Any, NamedTuple

import numpy as np
import pytest

from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.probes import (
    AGAIN,
    AGAIN_EACH,
    DISPLACED,
    HOLES,
    KINDS,
    LISTED,
    MEETINGS,
    PARTS,
    PIECES,
    RUNS,
    SHUFFLED,
    SPILLED,
    STRUCTURES,
    exchange_probe,
    issue_probe,
    probe,
    shuffled_probe,
    spilled_probe,
    structures_probe,
)
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.calibration import gpu_bench, gpu_caches, gpu_latency, gpu_memory, gpu_structures
from lbmtune.measure.calibration.gpu import calibrate, calibrate_quickly, texts
from lbmtune.measure.calibration.gpu_bench import Part
from lbmtune.measure.calibration.microbench import Kernel
from lbmtune.model.machine import benchmark_names as measured
from lbmtune.model.machine.benchmark_names import Parts
from lbmtune.model.machine.description import Calibration
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Resources
from tests.shim.device import COMPILER, HEADER, HostExecutable, compile_text
from tests.support.kernels.compiled import ptx
from tests.support.paths import RECORDED

WIDTHS = {"unsigned short": 2, "unsigned int": 4, "unsigned long long": 8, "uint2": 8, "uint4": 16}


class Card:
    """Copies in NumPy. wrong: whether it forgets to displace; fills_holes: whether it leaves nothing out."""

    xp = np
    limits = Limits(
        shared_bytes_per_block=227 << 10,
        shared_bytes_per_multiprocessor=228 << 10,
        multiprocessors=132,
        asynchronous=True,
    )
    caches_bytes = {"L2": 60 << 20}
    resources = Resources()

    def __init__(self, wrong: bool = False, fills_holes: bool = False) -> None:
        self.wrong, self.fills_holes = wrong, fills_holes
        self.asked: list[tuple[str, int, int]] = []
        self.options: dict[str, Any] = {}
        self.repeated: Any = None

    def empty(self, elements: int, dtype: str) -> Any:
        return np.zeros(elements, dtype)

    def load(self, program: Program, binary: Binary) -> Card:
        defined = (option[2:].split("=") for option in program.options if option.startswith("-D"))
        self.options = {name: int(value) if value.isdecimal() else value for name, value in defined}
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
        moving = (RUNS, DISPLACED, LISTED, AGAIN, SHUFFLED, SPILLED, HOLES, PIECES, STRUCTURES, PARTS)
        if launch.entry not in moving:
            return
        source, target, *numbers = arguments
        asked = launch.entry, launch.block, tuple(self.options.items())
        same = self.repeated and asked == self.repeated[0] and all(map(is_, arguments, self.repeated[1]))
        if same and target.view("bool").any():
            return
        self.repeated = asked, arguments  # held, so that no other argument can be where one of them was
        if launch.entry == AGAIN:
            words = int(numbers[0]) * AGAIN_EACH * 4 * launch.block[0]
            target[:words] = source[:words]
            return
        if launch.entry == HOLES:
            words, holes = self.options["STREAMS"] * int(numbers[0]), int(numbers[1])
            at = np.arange(words)
            kept = (at % 8 != 0) | (at // 8 % 64 >= holes) | self.fills_holes
            target[:words] = np.where(kept, source[:words], target[:words])
            return
        if launch.entry == PARTS:
            accesses, mask = map(int, numbers)
            elements, width = self.options["STREAMS"], WIDTHS[self.options["ACCESS"]]
            moved = [self.fills_holes or bool(mask >> n & 1) for n in range(elements)]
            there, here = (
                array.view("uint16")[: elements * accesses * width // 2].reshape(accesses, elements, -1)
                for array in (source, target)
            )
            here[:, moved] = there[:, moved]
            return
        if launch.entry == PIECES:
            accesses, pieces, later = map(int, numbers)
            at = np.arange(accesses)
            _, sector = np.unique((at & ~later) // 8, return_inverse=True)
            apart = (at % 8 == 0) & (sector % 64 < pieces - self.fills_holes)
            target[np.where(apart, at ^ later, at)] = source[at]
            return
        streams, steps, run = self.options["STREAMS"], 1, self.options.get("RUN", 0)
        width = WIDTHS[self.options.get("ELEMENT") or self.options["ACCESS"]]
        load = store = np.zeros(streams, int)
        if launch.entry == RUNS:
            (accesses,) = map(int, numbers)
        elif launch.entry == SPILLED:
            accesses, words, apart, steps = map(int, numbers)
            assert accesses % (apart * steps) == 0
            assert words % 4 == 0
            assert words < self.options["LOCAL"]
        elif launch.entry in (DISPLACED, SHUFFLED, STRUCTURES):
            accesses, *sides, apart, steps = map(int, numbers)
            assert accesses % (apart * steps) == 0
            if launch.entry == STRUCTURES:
                words, run = sides.pop(), 1
                assert words % 4 == 0
                assert words < self.options["LOCAL"]
                assert accesses == apart * steps, "all threads are there from the beginning to the end"
            q, elements = np.arange(streams), self.options.get("VECTOR", 1)
            load, store = (
                near * (q % 3 - 1) + elements * far * (q // 3 % 3 - 1) for near, far in (sides[:2], sides[2:])
            )
        else:
            entries, accesses, *used, _ahead = numbers
            load, store = (np.full(streams, int(entries[0]) * int(side)) for side in used)
        assert grid[0] * launch.block[0] * steps >= accesses
        if launch.entry == SHUFFLED:  # elements are displaced, and vectors counted
            accesses, run = accesses * self.options["VECTOR"], run * self.options["VECTOR"]
        run = run or int(accesses)
        if source is target or accesses % run or streams * accesses * width > source.nbytes:
            return
        there, here = (
            array.view("uint16")[: streams * accesses * width // 2].reshape(-1, streams, run, width // 2)
            for array in (source, target)
        )
        moved = np.moveaxis(there, 1, 0).reshape(streams, accesses, -1)
        rolled = [np.roll(one, 0 if self.wrong else to - of, 0) for one, of, to in zip(moved, load, store, strict=True)]
        here[:] = np.moveaxis(np.reshape(rolled, (streams, -1, run, width // 2)), 0, 1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_bench, "_STREAM_BYTES", 1 << 15)
    monkeypatch.setattr(measured, "SHUFFLED", ((4, 8), (2, 16)))
    monkeypatch.setattr(gpu_caches, "_SPILLED_KIB", (0, 216))
    monkeypatch.setattr(measured, "LATER", (1 << 8, 1 << 11))
    monkeypatch.setattr(gpu_latency, "_CHASED_BYTES", 1 << 20)
    for name, value in {"_SAMPLES": 3, "_WARMUP_S": 1e-5, "_SAMPLE_S": 1e-5}.items():
        monkeypatch.setattr(gpu_bench, name, value)


def compiled(_: Program) -> Binary:
    return Binary(b"", "", Resources())


@pytest.mark.usefixtures("small")
def test_a_card_is_calibrated() -> None:
    card, heard, asked = Card(), [], []

    def noting(program: Program) -> Binary:
        asked.append(program)
        return compiled(program)

    found = calibrate(card, noting, heard.append)  # type: ignore[arg-type]
    assert asked == [*texts(Card.limits)], "what is compiled ahead is what is asked for, in this order"
    for each in fields(Calibration):
        value = getattr(found, each.name)
        figures = value.values() if isinstance(value, dict) else [value]
        assert all(figure > 0 for figure in figures), each.name
    assert {"4", "16", "16 of 512"} <= set(found.runs_bytes_per_s)
    assert set(found.local_bytes_per_s) == {"L1", "L2", "memory"}
    assert {"2 of 64 stores by 64", "8 none by 256", "4 rows by 64 walking"} <= set(found.displaced_bytes_per_s)
    assert "8 of 8 x 27 in place by 64 walking" in found.displaced_bytes_per_s
    assert {"4 x 2 none by 64", "2 x 8 of 512 in place by 64 walking"} <= set(found.shuffled_bytes_per_s)
    assert {"4 by 2048 of 96", "16 by 2048 of 0 walking"} <= set(found.spilled_bytes_per_s)
    assert {"4 loads", "8 in place displaced", "2 stores ahead"} <= set(found.listed_bytes_per_s)
    assert {"2 of 64 rows by 16", "4 none by 16 walking", "8 stay by 256"} <= set(found.displaced_bytes_per_s)
    assert {"multiply-add, 8 warps of 8, meeting", "double", "conversion"} <= set(found.instructions_per_s)
    assert {"call 4980736", "dependent 4980736"} <= set(found.small_s)
    assert {"apart 0", "apart 64", "in place 8"} <= set(found.holes_bytes_per_s)
    assert {f"{2 * 19 * 4 * 256} 0", f"{2 * 19 * 4 * 2048} 64"} <= set(found.pieces_bytes_per_s)
    assert {"8 x 19 by 512 of 0 stay", "4 x 27 by 512 of 960 in place"} <= set(found.structures_bytes_per_s)
    assert {"16384 4 x 27 loads", "131072 8 x 19 in place"} <= set(found.planes_bytes_per_s)
    assert {"2 x 19 1", "8 x 27 9"} <= set(found.parts_bytes_per_s)
    assert {"none by 8", "block by 12", "neighbours by 16"} <= set(found.stages_s)
    assert set(found.overtaken_s) == {f"{how} by {warps}" for how in ("used", "overtaken") for warps in (8, 16, 32)}
    assert found.l2_latency_s > 0
    assert not [*measured.lacking(found)], "what a file is refused for is what is measured"
    assert len(heard) > 4
    # 256 threads in blocks of 64: four share the memory of a multiprocessor, what the system keeps of it left out
    assert (RUNS, 64, (228 << 10) // 4 - 1024) in card.asked


@pytest.mark.usefixtures("small")
def test_a_quick_calibration_measures_what_ranks_and_borrows_the_rest() -> None:
    heard: list[str] = []
    known = read_machine(RECORDED / "nvidia-h200" / "machine.toml").calibration
    assert known
    found = calibrate_quickly(Card(), compiled, heard.append, known)  # type: ignore[arg-type]
    assert not [*measured.lacking(found)]
    tables = {one.name for one in fields(Calibration) if getattr(found, one.name) != getattr(known, one.name)}
    assert tables == {
        *("runs_bytes_per_s", "threads_bytes_per_s", "displaced_bytes_per_s", "local_bytes_per_s"),
        *("instructions_per_s", "stages_s"),
    }
    assert 1 < len(heard) < 8


class Clock(Card):
    """A card on which every launch takes a millisecond."""

    def time_s(self, run: Callable[[], None]) -> float:
        before = len(self.asked)
        run()
        return 1e-3 * (len(self.asked) - before)


@pytest.mark.usefixtures("small")
def test_figures_are_what_a_launch_does_over_what_it_takes() -> None:
    """Each byte that is read and each that is written, words of a list among them; each instruction of each warp."""
    found = calibrate(Clock(), compiled, lambda _: None)  # type: ignore[arg-type]
    both = 2 * 19 * (1 << 15)
    whole = {
        "4": found.runs_bytes_per_s,
        "16 by 64": found.threads_bytes_per_s,
        "2 of 64 stores by 64": found.displaced_bytes_per_s,
        "4 x 2 none by 64": found.shuffled_bytes_per_s,
        "4 by 2048 of 96": found.spilled_bytes_per_s,
        "apart 8": found.holes_bytes_per_s,
        f"{2 * 19 * 4 * 256} 8": found.pieces_bytes_per_s,
        f"{24 << 20}": found.again_bytes_per_s,
    }
    for name, table in whole.items():
        assert table[name] == pytest.approx(both / 1e-3), name
    for copied in (1, 9):
        assert found.parts_bytes_per_s[f"8 x 19 {copied}"] == pytest.approx(2 * copied * (1 << 15) / 1e-3)
    for width in (2, 4, 8):
        moved = 19 * (1 << 14) // width * (2 * width + 4)
        assert found.listed_bytes_per_s[f"{width} in place ahead"] == pytest.approx(moved / 1e-3)
    for level, threads, each in (("L1", 512, 192), ("L2", 1024, 416), ("memory", 2048, 1024)):
        assert found.local_bytes_per_s[level] == pytest.approx(132 * threads * 2 * each * 8 / 1e-3)
    turns, warps = 128 * 2000, {"double": 32, "shuffle": 32, "multiply-add, 8 warps of 8, meeting": 8}
    for name, count in warps.items():
        assert found.instructions_per_s[name] == pytest.approx(132 * count * turns / 1e-3)
    for there_and_back in ("conversion", "shared memory"):
        assert found.instructions_per_s[there_and_back] == pytest.approx(2 * 132 * 32 * turns / 1e-3)
    assert found.stages_s == pytest.approx(dict.fromkeys(found.stages_s, 1e-3 / 2000))
    for warps in (8, 16, 32):
        words = 2 * 2000 * warps
        assert found.overtaken_s[f"overtaken by {warps}"] == pytest.approx(1e-3 / words, rel=1e-6, abs=0)
    assert found.latency_s == found.l2_latency_s == pytest.approx(1e-3 / (1 << 14))
    assert found.meeting_s == pytest.approx(1e-3 / 500)
    copies = [2 * 19 * 4 * edge**3 for edge in (32, 48, 64, 96, 128)]
    names = [f"{way} {moved}" for way in ("call", "graph", "dependent") for moved in copies]
    assert found.small_s == pytest.approx(dict.fromkeys(names, 1e-3))


@pytest.mark.usefixtures("small")
def test_figures_are_less_precise_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm-up of two runs; then samples of as many runs as fill them."""
    runs: list[int] = []
    monkeypatch.setattr(gpu_bench, "_WARMUP_S", 1.5e-3)
    monkeypatch.setattr(gpu_bench, "_SAMPLE_S", 0.004)
    for limit_s, samples, each in ((60.0, gpu_bench._SAMPLES, 4), (0.0, 2, 1)):
        bench = gpu_bench.GpuBench(Clock(), limit_s)  # type: ignore[arg-type]
        monkeypatch.setattr(
            bench.device, "time_s", lambda run: (before := len(runs), run(), 1e-3 * (len(runs) - before))[2]
        )
        runs.clear()
        bench.per_s(lambda: runs.append(1), 1.0)
        assert len(runs) == 2 + samples * each


def test_words_are_overtaken_on_all_multiprocessors_by_the_kernel_that_does_so() -> None:
    """One block on each, with a MiB of local memory in all its threads."""
    limits, seen = Clock().limits, {}
    for part in gpu_latency.spill_hazards(limits):
        ((launch,),) = part.program.period
        options = dict(one.removeprefix("-D").split("=") for one in part.program.options if one.startswith("-D"))
        assert int(options["LOCAL"]) * 4 * launch.block[0] == 1 << 20
        assert options["TOGETHER"] == "2"
        grids = Grids()
        ((name, _),) = part.figures(grids, grids)  # type: ignore[arg-type]
        seen[name] = (options["OVERTAKES"], launch.block[0])
        assert grids.asked == [limits.multiprocessors]
    by = {
        f"{how} by {warps}": (flag, 32 * warps)
        for how, flag in (("used", "0"), ("overtaken", "1"))
        for warps in (8, 16, 32)
    }
    assert seen == by


class Grids:
    """In the place of a bench and of its kernel: keeps how many blocks were asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.device, self.target = Clock(), None

    def by(self, blocks: int, *_: object) -> Callable[[], None]:
        self.asked.append(blocks)
        return lambda: None

    def per_s(self, _: Callable[[], None], each: float) -> float:
        return each


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("wrong", [{"wrong": True}, {"fills_holes": True}], ids=str)
def test_a_copy_that_moves_something_else_is_noticed(wrong: dict[str, bool]) -> None:
    with pytest.raises(RuntimeError, match="did not move what it should"):
        calibrate(Card(**wrong), compiled, lambda _: None)  # type: ignore[arg-type]


class Noted(NamedTuple):
    """What a copy was launched with. to_itself: from an array to the same one."""

    blocks: int
    to_itself: bool
    numbers: tuple[int, ...]


class Measuring:
    """A bench with arrays as large as on a card, and a kernel that notes what it is asked for and moves nothing."""

    stream_bytes, source, target = 48 << 20, object(), object()
    device = Card()
    launch = Launch(DISPLACED, (), block=(64, 1, 1), covers=(64, 1, 1))

    def __init__(self) -> None:
        self.asked: list[Noted] = []

    def by(self, blocks: int, *arguments: Any) -> Callable[[], None]:
        source, target, *numbers = arguments
        return lambda: self.asked.append(Noted(blocks, source is target, tuple(map(int, numbers))))

    def copied_per_s(self, run: Callable[[], None], moved: float) -> float:
        run()
        return moved

    def check(self, *_: Any) -> None: ...


def measured_by(parts: Iterable[Part]) -> dict[str, tuple[float, Noted]]:
    """By name, bytes that were counted and what was asked for."""
    found = {}
    for part in parts:
        bench = Measuring()
        for name, moved in part.figures(bench, bench):  # type: ignore[arg-type]
            found[name] = moved, bench.asked.pop()
    return found


IN_OTHERS = {"loads": (1, 0), "stores": (0, 1), "in place": (1, 1), "stay": (0, 0)}
"""Whether loads and stores are displaced, by side."""


def test_planes_are_as_far_apart_as_their_names_say() -> None:
    """Each thread takes one structure of about all that there is room for."""
    for name, (moved, noted) in measured_by(gpu_structures.planes(Card.limits)).items():
        apart, width, _, elements, *side = name.split()
        loads, stores = IN_OTHERS[" ".join(side)]
        accesses, *rest = noted.numbers
        far = int(apart)
        assert rest == [loads, far * loads, stores, far * stores, far, 1], name
        assert noted.to_itself == (side == ["in", "place"])
        assert noted.blocks * 64 == accesses
        assert accesses % far == 0, "whole planes"
        assert moved == 2 * accesses * int(width) * int(elements) > 0.8 * 2 * 19 * (48 << 20)


def test_threads_that_keep_words_go_through_structures_one_after_another() -> None:
    """As many as a card has at a time, through a quarter of its arrays."""
    for name, (moved, noted) in measured_by(gpu_structures.structures(Card.limits)).items():
        width, _, elements, _, threads, _, local, *side = name.split()
        loads, stores = IN_OTHERS[" ".join(side)]
        accesses, *rest, words, apart, steps = noted.numbers
        assert rest == [loads, 65536 * loads, stores, 65536 * stores], name
        assert (words, apart) == (int(local) // 4, 132 * int(threads))
        assert noted.blocks * 64 == apart
        assert accesses == apart * steps
        assert moved == 2 * accesses * int(width) * int(elements) > 0.8 * 2 * 19 * (48 << 20) / 4


class Idle(Card):
    """One that copies nothing."""

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Any) -> None: ...


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("card", [Card(fills_holes=True), Idle()], ids=["more", "nothing"])
def test_wrong_parts_are_noticed(card: Card) -> None:
    """Other elements of a structure are left as they were, and these are copied."""
    part = next(gpu_structures.parts(Card.limits))
    launch = next(one for one in part.program.period[0] if one.entry == part.entry)
    bench = gpu_bench.GpuBench(card)  # type: ignore[arg-type]
    kernel = Kernel(card.load(part.program, compiled(part.program)), launch)
    with pytest.raises(RuntimeError, match="did not move what it should"):
        list(part.figures(bench, kernel))


@pytest.mark.parametrize("access_bytes", [2, 4, 8, 16])
@pytest.mark.parametrize("run_bytes", [0, 128])
def test_probes_compile_without_spills(access_bytes: int, run_bytes: int) -> None:
    found = compile_cuda(probe(access_bytes=access_bytes, run_bytes=run_bytes, local_bytes=256)).resources
    assert found.spill_bytes == 0
    assert found.local_bytes == 256
    assert 0 < found.registers <= 128  # 512 threads of the widest access share a multiprocessor


@pytest.mark.parametrize("access_bytes", [2, 4, 8, 16])
def test_the_probe_of_spills_spills_what_it_says(access_bytes: int) -> None:
    found = compile_cuda(spilled_probe(access_bytes=access_bytes, local_bytes=4096, threads=128)).resources
    assert (found.spill_bytes, found.local_bytes) == (0, 4096)
    assert 0 < found.registers <= 128


@pytest.mark.parametrize("access_bytes", [4, 8])
@pytest.mark.parametrize("streams", [19, 27])
def test_the_probe_of_structures_has_room_for_its_threads(access_bytes: int, streams: int) -> None:
    program = structures_probe(streams=streams, access_bytes=access_bytes, local_bytes=4096, threads=64)
    found = compile_cuda(program).resources
    assert (found.spill_bytes, found.local_bytes) == (0, 4096)
    assert 0 < found.registers <= 65536 // measured.STRUCTURE_THREADS, (
        "all of them are on a multiprocessor at the same time"
    )


_BLOCK_ON_HOST = "static const struct { unsigned x; } blockDim = {64};"
_ON_HOST = """
static void call(void** v) {
    auto number = [v](int n) { return *static_cast<int*>(v[n]); };
    copy_structures(*static_cast<ACCESS**>(v[0]), *static_cast<ACCESS**>(v[1]), number(2), number(3), number(4),
                    number(5), number(6), number(7), number(8), number(9));
}
extern "C" size_t run_copy_structures(const unsigned* grid, const unsigned* block, void** values) {
    return host::launch(call, grid, block, values, host::as_loop, 0);
}
static void part(void** v) {
    copy_parts(*static_cast<ACCESS**>(v[0]), *static_cast<ACCESS**>(v[1]), *static_cast<int*>(v[2]),
               *static_cast<unsigned*>(v[3]));
}
extern "C" size_t run_copy_parts(const unsigned* grid, const unsigned* block, void** values) {
    return host::launch(part, grid, block, values, host::as_loop, 0);
}
"""


def run_on_host(entry: str, elements: int, *arguments: Any) -> None:
    """A copy of structures of so many words, by two blocks."""
    program = structures_probe(streams=elements, access_bytes=4, local_bytes=64, threads=64)
    defined = [f"#define {option[2:].replace('=', ' ')}" for option in program.options if option.startswith("-D")]
    text = "\n".join([f'#include "{HEADER}"', _BLOCK_ON_HOST, *defined, program.source, _ON_HOST])
    launch = next(one for one in program.period[0] if one.entry == entry)
    HostExecutable(program, compile_text(text)).launch(launch, (2, 1, 1), arguments)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("one", [Parts(4, 19, copied) for copied in measured.COPIED], ids=str)
def test_parts_of_structures_are_copied_and_nothing_else(one: Parts) -> None:
    """As many elements as the name says, which lie apart."""
    structures = 100  # no whole number of blocks
    source = np.random.default_rng(2).integers(1, 1 << 30, (structures, one.elements), np.uint32)
    target = np.zeros((128, one.elements), np.uint32)
    run_on_host(PARTS, one.elements, source, target, np.int32(structures), np.uint32(one.mask))
    (moved,) = np.nonzero(target[0])
    assert len(moved) == one.copied
    assert np.diff([*moved, moved[0] + one.elements]).min() >= one.elements // one.copied, "also from one to the next"
    assert np.array_equal(target[:structures, moved], source[:, moved])
    assert np.count_nonzero(target) == structures * one.copied


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("side", ["stay", "loads", "stores", "in place"])
def test_structures_are_displaced_and_kept(side: str) -> None:
    """Each element of a structure goes where it should, whatever its thread keeps meanwhile."""
    q, apart, steps, far = 19, 96, 3, 64
    source = np.random.default_rng(1).integers(0, 1 << 30, (apart * steps, q), np.uint32)
    target = np.zeros_like(source)
    load, load_far, store, store_far = np.multiply(gpu_memory.SIDES[side], (1, far, 1, far))
    numbers = np.int32([apart * steps, load, load_far, store, store_far, 8, apart, steps])
    run_on_host(STRUCTURES, q, source, target, *numbers)
    for at in range(q):
        near, rows = at % 3 - 1, at // 3 % 3 - 1
        by = (store - load) * near + (store_far - load_far) * rows
        assert np.array_equal(target[:, at], np.roll(source[:, at], by)), at


@pytest.mark.parametrize(("element_bytes", "access_bytes"), [(2, 4), (2, 16), (4, 16), (8, 16)])
@pytest.mark.parametrize("run_bytes", [0, 512])
def test_probes_of_vectors_compile_without_spills(element_bytes: int, access_bytes: int, run_bytes: int) -> None:
    asked = {"element_bytes": element_bytes, "access_bytes": access_bytes, "run_bytes": run_bytes}
    found = compile_cuda(shuffled_probe(**asked, threads=64)).resources
    assert found.spill_bytes == found.local_bytes == 0
    assert 0 < found.registers <= 255


@pytest.mark.parametrize("access_bytes", [4, 8])
def test_words_in_local_memory_are_stored_and_loaded_when_all_values_are_there(access_bytes: int) -> None:
    """Four of them in a turn, behind the last load of a value, at a place that each value could move."""
    copies = [
        spilled_probe(access_bytes=access_bytes, local_bytes=4096, threads=128),
        structures_probe(streams=STREAMS, access_bytes=access_bytes, local_bytes=4096, threads=64),
    ]
    for program in copies:
        text = [line.strip() for line in ptx(program).splitlines()]
        kept = [n for n, line in enumerate(text) if line.startswith("st.volatile.local")]
        again = [n for n, line in enumerate(text) if line.startswith("ld.volatile.local")]
        before = text[: kept[0]]
        assert (len(kept), len(again)) == (4, 4)
        assert kept[-1] < again[0]
        assert sum(line.startswith("ld.global") for line in before) == STREAMS
        assert sum(line.startswith("setp.eq") and line.endswith("-1;") for line in before) == STREAMS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("meets", [False, True])
def test_probes_of_instructions_compile_without_spills(kind: str, meets: bool) -> None:
    found = compile_cuda(issue_probe(kind=kind, chains=8, length=16, meets=meets, threads=1024)).resources
    assert found.spill_bytes == found.local_bytes == 0
    assert found.registers <= 64  # 1024 threads are one block


@pytest.mark.parametrize("meeting", MEETINGS)
def test_the_probe_of_exchanges_compiles_without_spills(meeting: str) -> None:
    program = exchange_probe(meeting=meeting, threads=512)
    found = compile_cuda(program).resources
    assert found.spill_bytes == 0
    rows, flags = 4 * (512 + 2 * 32) * 16, 2 * 512 // 32 * 8
    assert found.shared_bytes == rows + flags * (meeting == "neighbours"), "what its addresses lead to is there"
    assert compile_cuda(program, "sm_80").resources.spill_bytes == 0
    assert ("bar.sync" in ptx(program).rpartition("fma")[2]) == (meeting == "block"), "after the last instruction"
    assert ("mbarrier.try_wait" in ptx(program)) == (meeting == "neighbours")
