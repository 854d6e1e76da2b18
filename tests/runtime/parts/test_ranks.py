"""Parts that have a process each, here a thread with devices of its own, against one device: bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Barrier, Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.protocol import DeviceFaultError
from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render, render_on_planes
from lbmtune.decomposition.coupling import Coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.decomposition.transfers import runs
from lbmtune.errors import InputError
from lbmtune.measure.parts.proof import Agreement, agreement
from lbmtune.measure.verification.oracle import random_state
from lbmtune.runtime import Simulation
from lbmtune.runtime.parts import ranks
from lbmtune.runtime.parts.messages import messages, runs_of
from lbmtune.runtime.parts.ranks import RankedSimulation
from lbmtune.runtime.parts.transports import Work, moved
from tests.runtime.parts.test_coupled import OVERLAPS, alone, between_plates, compiler_of, coupled
from tests.runtime.parts.test_decomposed import ROUNDING, case_named, config, needs_compiler, tiles, words
from tests.shim.device import HostDevice, compile_on_host
from tests.shim.queues import Host
from tests.support.kernels.cuda_samples import LAYOUT_AXES, LAYOUT_NAMES

Array = Any
WAIT_S = 60.0


class Mailbox:
    """What ranks send to each other, a queue for each pair; a rank that waits for what nobody sends fails."""

    def __init__(self, ranks: int) -> None:
        self._boxes = {(a, b): SimpleQueue[Array]() for a in range(ranks) for b in range(ranks)}
        self.sent: list[tuple[int, int, int]] = []

        self._largest, self._met = [0.0] * ranks, Barrier(ranks)
        self.ended, self.waits = False, False

    def largest(self, rank: int, value: float) -> float:
        self._largest[rank] = value
        self._met.wait(WAIT_S)
        found = max(self._largest)
        self._met.wait(WAIT_S)  # before the next values come
        return found

    def of(self, rank: int) -> Post:
        return Post(self, rank)


class Post:
    """The side of one rank."""

    def __init__(self, mailbox: Mailbox, rank: int) -> None:
        self._mailbox, self._rank = mailbox, rank

    def exchange(self, sent: Sequence[tuple[int, Array]], received: Sequence[tuple[int, Array]]) -> None:
        for rank, array in sent:
            self._mailbox.sent.append((self._rank, rank, array.nbytes))
            self._mailbox._boxes[self._rank, rank].put(array.copy())
        for rank, array in received:
            array[...] = self._mailbox._boxes[rank, self._rank].get(timeout=WAIT_S)

    def largest(self, value: float) -> float:
        return self._mailbox.largest(self._rank, value)

    def check(self, *, more: bool) -> None:
        if self._mailbox.ended and (more or self._mailbox.waits):
            raise DeviceFaultError("a rank has ended")


class OneAtATime(HostDevice):
    """A device whose launches are made while no other thread makes one: fibres belong to the process."""

    _free = Lock()

    def load(self, program: Any, binary: Any) -> Any:
        found = super().load(program, binary)
        return SimpleNamespace(launch=partial(self._launch, found), recorded=found.recorded)

    def _launch(self, found: Any, *launch: Any) -> None:
        with self._free:
            found.launch(*launch)


def of_each_rank(
    case: Case,
    one: KernelConfig,
    cut: str,
    coupling: Coupling,
    work: Callable[[RankedSimulation], Any],
    *,
    orders: Sequence[str | int] = ("random", "last"),
    poisons: bool = True,
    depth: int | None = None,
) -> tuple[list[Any], Mailbox]:
    """What a function returns of the part of each rank, set to a random state, and what they sent."""
    found, program, compiler = decomposed(case, one, parse_cut(cut), depth), render(case, one), compiler_of(one)
    taking, mailbox = render_on_planes(program) or program, Mailbox(len(found.parts))
    binary = compiler(taking)

    def run(rank: int) -> Any:
        device, post = OneAtATime(Host(orders[rank % len(orders)])), mailbox.of(rank)
        part = RankedSimulation(taking, binary, device, found, rank, post, coupling, compiler, poisons=poisons)
        part.initialise(random_state(case))
        return work(part)

    with ThreadPoolExecutor(len(found.parts)) as pool:
        return list(pool.map(run, range(len(found.parts)))), mailbox


def advanced(part: RankedSimulation, rounds: Sequence[int]) -> Array:
    """The populations of a part after some steps each time, zero in others."""
    for steps in rounds:
        part.step(steps)
    populations = part.populations()
    assert np.isnan(populations[:, ~part.held]).all()
    return np.where(part.held, populations, 0.0)


def differences(case: Case, one: KernelConfig, cut: str, coupling: Coupling, *rounds: int, **how: Any) -> Array:
    found, _ = of_each_rank(case, one, cut, coupling, partial(advanced, rounds=rounds), **how)
    populations = sum(found)
    expected, fluid = alone(case, one, *rounds), ~solid_in(case, whole(case.domain))
    return np.where(fluid & (expected != populations), populations - expected, 0.0)


@needs_compiler
@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("scheme", ["pull", "aa", "esoteric-pull"])
def test_ranks_have_the_state_of_one_device(scheme: str, overlap: Any) -> None:
    one = config(scheme=scheme, storage="fp64", block=(4, 2, 1))
    assert not differences(case_named("grinder"), one, "z:3", Coupling("nccl", overlap), 4).any()


@needs_compiler
@pytest.mark.parametrize("cut", ["y:3", "2x1x2"])
def test_cuts_across_any_axis(cut: str) -> None:
    one = config(scheme="pull", storage="fp16s", block=(4, 2, 1))
    assert not differences(case_named("box"), one, cut, Coupling("nccl", "none"), 3).any()


@needs_compiler
@pytest.mark.parametrize("layout", ["aosoa", "rows", "bundle"])
def test_layouts(layout: str) -> None:
    case = replace(case_named("box"), domain=(32, 6, 9))
    one = config(scheme="pull", storage="fp64", layout=layout, block=(8, 2, 1), **LAYOUT_AXES.get(layout, {}))
    assert not differences(case, one, "z:2", Coupling("nccl", "none"), 2).any()


@needs_compiler
@pytest.mark.parametrize(
    ("flow", "cut", "knobs"),
    [
        ("box", "2x1x2", {"representation": "moments", "steps": 1, "pack": 4}),
        ("sphere", "z:2", {"representation": "moments", "steps": 2, "pack": 2}),
        ("channel", "z:2", {"representation": "populations", "steps": 1}),
    ],
)
def test_cells_of_a_halo(flow: str, cut: str, knobs: dict[str, Any]) -> None:
    case = replace(case_named(flow, collision="regularised"), domain=(33, 7, 9))
    one = tiles(**words(case), **knobs)
    found = differences(case, one, cut, Coupling("nccl", "none"), 2 * knobs["steps"])
    assert np.abs(found).max() <= (ROUNDING if knobs["representation"] == "moments" else 0.0)


@needs_compiler
@pytest.mark.parametrize("pack", [1, 4])
def test_a_halo_of_moments_is_a_run_for_each_face(pack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All planes at once, out of the state into the buffer and back, as between parts of one process."""
    case = replace(case_named("box", collision="regularised"), domain=(32, 7, 9))
    one, tables = tiles(representation="moments", steps=1, pack=pack), list[Array]()

    def seen(table: Array, *others: Any) -> Work:
        tables.append(table)
        return moved(table, *others)

    monkeypatch.setattr(ranks, "moved", seen)
    of_each_rank(case, one, "z:2", Coupling("nccl", "none"), lambda part: None)
    found = decomposed(case, one, parse_cut("z:2"))
    assert [runs(found, face) for face in found.faces] == [1] * 4
    assert {len(table) for table in tables} == {2}
    assert {tuple(table[:, 2]) for table in tables} == {(10 * 32 * 7,) * 2}


@pytest.mark.parametrize(
    "one",
    [
        *(tiles(representation="moments", steps=2, pack=pack) for pack in (1, 2, 4)),
        tiles(representation="moments", steps=2, layout="soa"),
        *(config(scheme="pull", layout=name, block=(8, 2, 1), **LAYOUT_AXES.get(name, {})) for name in LAYOUT_NAMES),
    ],
    ids=lambda one: f"{one.family} {one.memory}",
)
@pytest.mark.parametrize("cut", ["z:2", "y:3"])
def test_buffers_have_the_runs_of_parts_of_one_process(one: KernelConfig, cut: str) -> None:
    """Neighbours in the state of the sender are neighbours in the buffer, and in the state that takes it."""
    found = decomposed(replace(case_named("box"), domain=(32, 12, 14)), one, parse_cut(cut))
    faces = [face for face in found.faces if 1 in (face.source, face.target)]
    for message, face in zip(messages(found, {1}, 0), faces, strict=True):
        buffer = np.arange(face.values)
        assert len(runs_of(message.taken, buffer)) == len(runs_of(buffer, message.put)) == runs(found, face)


@needs_compiler
def test_index_lists() -> None:
    case = case_named("porous")
    one = config(family="sparse", scheme="aa", storage="fp64", block=(32, 1, 1))
    assert not differences(case, one, "bisection:3", Coupling("nccl", "none"), 4).any()


@needs_compiler
def test_graphs_and_several_launches_between_exchanges() -> None:
    case = replace(case_named("box", collision="regularised"), domain=(33, 13, 23))
    one = tiles(representation="moments", steps=1)
    found = differences(case, one, "z:2", Coupling("nccl"), 2, 8, 2, depth=2, poisons=False)
    assert np.abs(found).max() <= ROUNDING


@needs_compiler
def test_a_face_that_walls_close_sends_nothing(tmp_path: Path) -> None:
    case = between_plates(tmp_path)
    one = config(scheme="pull", storage="fp64", **words(case))
    _, mailbox = of_each_rank(case, one, "z:2", Coupling("nccl", "none"), lambda part: part.step(3))
    assert not mailbox.sent
    assert not differences(case, one, "z:2", Coupling("nccl", "none"), 3).any()


@needs_compiler
def test_each_exchange_is_one_message_to_each_rank() -> None:
    """Of both faces, above and below, of five populations of a plane."""
    case, one = case_named("box"), config(scheme="pull", storage="fp32", block=(4, 2, 1))
    _, mailbox = of_each_rank(case, one, "z:2", Coupling("nccl"), lambda part: advanced(part, [3]))
    first = 2  # the exchange that connects ranks, and that of the initial state
    x, y, _ = case.domain
    assert sorted(mailbox.sent) == sorted([(0, 1, 2 * 5 * 4 * x * y), (1, 0, 2 * 5 * 4 * x * y)] * (3 + first))


@needs_compiler
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (partial(coupled, coupling=Coupling("nccl", "none")), r"for parts of one process \(use copy or pack\)"),
        (partial(of_each_rank, coupling=Coupling("copy", "none"), work=advanced), r"between processes \(use nccl\)"),
    ],
)
def test_a_transport_of_the_other_kind_is_refused(made: Callable[..., Any], said: str) -> None:
    one = config(scheme="pull", block=(4, 2, 1))
    with pytest.raises(InputError, match=rf"transport=\w+ is not supported {said}"):
        made(case_named("box"), one, "z:2")


@needs_compiler
def test_ranks_with_unequal_cards_are_all_refused() -> None:
    """Each names its own card, since a name does not fit into a number."""
    kinds = iter(("H100", "A100"))

    class Card(OneAtATime):
        def __init__(self, host: Host) -> None:
            super().__init__(host)
            self.environment = replace(HostDevice.environment, device=next(kinds))

    def said(rank: int) -> str:
        device = Card(Host("random"))
        with pytest.raises(InputError) as refused:
            RankedSimulation(program, binary, device, found, rank, mailbox.of(rank), Coupling("nccl"), compile_on_host)
        return str(refused.value)

    case, one = case_named("box"), config(scheme="pull", block=(4, 2, 1))
    found, program, mailbox = decomposed(case, one, parse_cut("z:2")), render(case, one), Mailbox(2)
    binary = compile_on_host(program)
    with ThreadPoolExecutor(2) as pool:
        told = sorted(pool.map(said, range(2)))
    assert [text.split(" of rank")[0] for text in told] == ["device=A100", "device=H100"]
    assert all("(use devices of one kind): they take different times for equal parts." in text for text in told)


@needs_compiler
def test_a_rank_that_has_ended_is_told_before_more_steps_and_by_what_waits_for_it() -> None:
    met = Barrier(2)

    def work(part: RankedSimulation) -> list[str]:
        part.step(2)
        met.wait(WAIT_S)
        mailbox = part._group._mailbox  # type: ignore[attr-defined]
        mailbox.ended, said = True, []
        part.synchronize()  # all that was enqueued had come
        met.wait(WAIT_S)
        for waits, again in ((False, partial(part.step, 2)), (True, part.synchronize)):
            mailbox.waits = waits
            met.wait(WAIT_S)
            with pytest.raises(DeviceFaultError, match="a rank has ended") as fault:
                again()
            said.append(str(fault.value))
            met.wait(WAIT_S)
        return said

    one = config(scheme="pull", storage="fp64", block=(4, 2, 1))
    found, _ = of_each_rank(case_named("box"), one, "z:2", Coupling("nccl", "none"), work)
    assert found == [["a rank has ended"] * 2] * 2


@needs_compiler
def test_all_ranks_have_the_times_of_the_one_that_takes_longest() -> None:
    case, one = case_named("box"), config(scheme="pull", storage="fp64", block=(4, 2, 1))

    def timed(part: RankedSimulation) -> tuple[float, ...]:
        return part.time_s(2), part.time_s(2, "launches"), part.exchange_s(1), part.largest(float(part._rank))

    (first, second), _ = of_each_rank(case, one, "z:2", Coupling("nccl"), timed, poisons=False)
    assert first == second
    assert min(first[:3]) > 0.0
    assert first[3] == 1.0


@needs_compiler
@pytest.mark.parametrize("wrong", [False, True])
def test_a_rank_that_is_wrong_is_known_to_all(wrong: bool) -> None:
    case, one = case_named("box"), config(scheme="aa", storage="fp64", block=(4, 2, 1))
    program, free = render(case, one), Lock()
    binary = compiler_of(one)(program)

    def compared(part: RankedSimulation) -> Agreement:
        if wrong and part._rank == 1:
            step, whole_part = part.step, part.parts[0]
            part.step = lambda steps: (step(steps), part.synchronize(), whole_part.poison())  # type: ignore
        with free:
            reference = Simulation(program, binary, OneAtATime())
        return agreement(reference, part, 1)

    (first, second), _ = of_each_rank(case, one, "z:2", Coupling("nccl"), compared)
    assert (first.different, first.worst) == (second.different, second.worst)
    assert first.passed == second.passed == (not wrong)
