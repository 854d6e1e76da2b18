"""Parts that exchange while they compute, as one device: bit for bit, or to rounding if cells keep moments.

Every transport and overlap, in any order: the work of queues is done as late as their marks allow, and at random.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lbmtune.api.several_devices.parts import failures
from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.backend.protocol import Compiler, DeviceFaultError
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.exchange import WORDS, mover
from lbmtune.codegen.render import render, render_on_planes
from lbmtune.decomposition.coupling import Coupling, parse_coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.errors import InputError, NothingValidError
from lbmtune.measure.verification.oracle import random_state
from lbmtune.runtime import Simulation
from lbmtune.runtime.parts.coupled import CoupledSimulation
from lbmtune.runtime.parts.schedule import Schedule
from tests.runtime.parts.test_decomposed import ROUNDING, case_named, config, needs_compiler, tiles, words
from tests.shim.device import QUICK, QUICKLY_MADE, HostDevice, compile_on_host
from tests.shim.queues import Host

TRANSPORTS = ("copy", "pack", "host")
OVERLAPS = ("none", "edge-first", "edge-priority")


def compiler_of(one: KernelConfig) -> Compiler:
    """Tiles run for longer than the optimiser takes."""
    return partial(compile_on_host, level=QUICK if one.family == "temporal-blocking" else QUICKLY_MADE)


@lru_cache(16)
def alone(case: Case, one: KernelConfig, *rounds: int) -> np.ndarray:
    """One device from a random state, after some steps each time: several tests compare with it."""
    program = render(case, one)
    simulation = Simulation(program, compiler_of(one)(program), HostDevice())
    simulation.initialise(random_state(case))
    for steps in rounds:
        simulation.step(steps)
    return simulation.populations()


def coupled(
    case: Case,
    one: KernelConfig,
    cut: str,
    coupling: Coupling,
    *,
    order: str | int = "random",
    poisons: bool = True,
    depth: int | None = None,
) -> CoupledSimulation:
    """Several devices at the same random state. depth: layers of the halo."""
    host, chosen, program = Host(order), parse_cut(cut), render(case, one)
    taking = render_on_planes(program) or program
    devices = [HostDevice(host) for _ in range(chosen.parts)]
    found = decomposed(case, one, chosen, depth)
    compiler = compiler_of(one)
    parts = CoupledSimulation(taking, compiler(taking), devices, found, coupling, compiler, poisons=poisons)
    parts.initialise(random_state(case))
    return parts


def differences(case: Case, one: KernelConfig, cut: str, coupling: Coupling, exchanges: int = 4, **how: Any) -> Any:
    """How far the populations of fluid cells lie apart after some exchanges; NaN where poison was read."""
    parts = coupled(case, one, cut, coupling, **how)
    steps = exchanges * parts.decomposition.steps
    parts.step(steps)
    expected, found = alone(case, one, steps), parts.populations()
    fluid = ~solid_in(case, whole(case.domain))
    assert np.isfinite(expected[:, fluid]).all()
    assert np.abs(expected - random_state(case))[:, fluid].max() > 1e-3
    return np.where(fluid & (expected != found), found - expected, 0.0)


@needs_compiler
@pytest.mark.parametrize("order", ["random", "first", "last", 0, 3, 6])
@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("scheme", ["pull", "push", "aa", "esoteric-pull"])
def test_no_order_of_queues_changes_the_state(scheme: str, overlap: Any, order: str | int) -> None:
    one = config(scheme=scheme, storage="fp64", block=(4, 2, 1))
    assert not differences(case_named("grinder"), one, "z:3", Coupling("copy", overlap), order=order).any()


@needs_compiler
@pytest.mark.parametrize("flow", ["box", "cavity", "channel", "sphere", "porous"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_transports_and_flows(transport: Any, flow: str) -> None:
    case = case_named(flow)
    one = config(scheme="aa", storage="fp64", block=(4, 2, 1), **words(case))
    assert not differences(case, one, "z:2", Coupling(transport)).any()


@needs_compiler
@pytest.mark.parametrize("cut", ["y:3", "2x2x2", "x:2"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_cuts_across_any_axis(transport: Any, cut: str) -> None:
    one = config(scheme="pull", storage="fp64", block=(4, 2, 1))
    assert not differences(case_named("grinder"), one, cut, Coupling(transport, "none")).any()


@needs_compiler
@pytest.mark.parametrize("storage", ["fp32", "fp16s", "bf16"])
def test_words_of_all_lengths(storage: str) -> None:
    one = config(scheme="pull", storage=storage, block=(4, 2, 1))
    assert not differences(case_named("box"), one, "z:2", Coupling("pack")).any()


@needs_compiler
@pytest.mark.parametrize(("kept", "steps", "edge"), [("moments", 1, 0), ("moments", 2, 4), ("populations", 3, 3)])
@pytest.mark.parametrize("overlap", OVERLAPS)
def test_edges_of_several_steps(kept: str, steps: int, edge: int, overlap: Any) -> None:
    case = replace(case_named("box", collision="regularised"), domain=(33, 23, 41))
    one = tiles(representation=kept, steps=steps)
    coupling = Coupling("pack", overlap, 0 if overlap == "none" else edge)
    found = differences(case, one, "z:2", coupling, exchanges=3)
    assert np.abs(found).max() <= (ROUNDING if kept == "moments" else 0.0)


@needs_compiler
@pytest.mark.parametrize(("steps", "depth"), [(1, 2), (1, 3), (2, 4)])
@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("poisons", [True, False])
def test_several_launches_between_exchanges(steps: int, depth: int, overlap: Any, poisons: bool) -> None:
    """Each computes the planes that later ones read: two buffers and two or three launches, so a round ends in both."""
    case = replace(case_named("box", collision="regularised"), domain=(33, 13, 23))
    one = tiles(representation="moments", steps=steps)
    parts = coupled(case, one, "z:2", Coupling("copy", overlap), depth=depth, poisons=poisons)
    rounds = depth, 2 * depth, depth
    for several in rounds:
        parts.step(several)
    assert np.abs(alone(case, one, *rounds) - parts.populations()).max() <= ROUNDING


@needs_compiler
@pytest.mark.parametrize("cut", ["y:2", "1x2x2"])
def test_several_launches_between_exchanges_across_other_axes(cut: str) -> None:
    case = replace(case_named("box", collision="regularised"), domain=(33, 23, 23))
    one = tiles(representation="moments", steps=1)
    assert np.abs(differences(case, one, cut, Coupling("pack", "none"), exchanges=3, depth=2)).max() <= ROUNDING


@needs_compiler
def test_several_launches_between_walls() -> None:
    case = replace(case_named("cavity", collision="regularised"), domain=(33, 23, 41))
    one = tiles(representation="moments", steps=1)
    found = differences(case, one, "z:2", Coupling("copy", "edge-priority"), exchanges=3, depth=3)
    assert np.abs(found).max() <= ROUNDING


@needs_compiler
@pytest.mark.parametrize("schedule", ["uniform", "tapered"])
@pytest.mark.parametrize("coupling", ["block_planes=2,overlap=none", "block_planes=3,edge_planes=4", "block_planes=9"])
def test_blocks_of_any_planes(schedule: str, coupling: str) -> None:
    case = replace(case_named("box", collision="regularised"), domain=(33, 23, 41))
    one = tiles(representation="moments", steps=2, chunk_schedule=schedule)
    assert np.abs(differences(case, one, "z:2", parse_coupling(coupling), exchanges=2)).max() <= ROUNDING


@needs_compiler
@pytest.mark.parametrize("flow", ["box", "sphere"])
def test_edges_of_tapered_chunks(flow: str) -> None:
    case = replace(case_named(flow, collision="regularised"), domain=(33, 23, 41))
    one = tiles(representation="moments", steps=2, chunk_schedule="tapered", **words(case))
    assert np.abs(differences(case, one, "z:2", Coupling("copy", "edge-priority", 4), exchanges=2)).max() <= ROUNDING


def between_plates(folder: Path) -> Case:
    """A box in which solid planes close the faces between two halves along z."""
    case = case_named("box")
    nx, ny, nz = case.domain
    solid = np.zeros((nz, ny, nx), np.uint8)
    solid[[0, nz // 2 - 1, nz // 2, -1]] = 1
    np.save(folder / "plates.npy", solid)
    return replace(case, geometry=f"file:path={folder / 'plates.npy'}", force=(1e-3, 0.0, 0.0))


@needs_compiler
@pytest.mark.parametrize("transport", ["copy", "pack", "host"])
def test_a_face_that_walls_close_sends_nothing(transport: Any, tmp_path: Path) -> None:
    case = between_plates(tmp_path)
    one = config(scheme="pull", **words(case))
    parts = coupled(case, one, "z:2", Coupling(transport, "none"))
    assert not any(len(one.taken) for one in parts.messages_before(0))
    assert not differences(case, one, "z:2", Coupling(transport, "none")).any()


@needs_compiler
def test_columns() -> None:
    one = config(family="column", scheme="pull", storage="fp64", block=(8, 2, 1), z_cells=4)
    assert not differences(case_named("box"), one, "z:2", Coupling()).any()


@needs_compiler
@pytest.mark.parametrize("scheme", ["pull", "aa"])
def test_kernels_that_write_density_and_velocity_have_edges(scheme: str) -> None:
    one = config(scheme=scheme, storage="fp64", block=(4, 2, 1), macroscopics="every-step")
    assert not differences(case_named("grinder"), one, "z:3", Coupling("copy", "edge-priority")).any()


@needs_compiler
def test_index_lists_have_no_planes() -> None:
    case = case_named("porous")
    one = config(family="sparse", scheme="aa", storage="fp64", block=(32, 1, 1))
    assert render_on_planes(render(case, one)) is None
    assert not differences(case, one, "bisection:3", Coupling("pack", "none")).any()
    with pytest.raises(InputError, match=r"overlap=edge-first is not supported for family=sparse \(use none\)"):
        coupled(case, one, "z:2", Coupling("pack", "edge-first"))


@needs_compiler
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_graphs_have_the_state_of_launches(transport: Any) -> None:
    """Steps that are no whole graph come one by one, before and behind graphs."""
    case, one = case_named("grinder"), config(scheme="pull", storage="fp64", block=(4, 2, 1))
    parts = coupled(case, one, "z:2", Coupling(transport), poisons=False)
    rounds = 1, 4, 3, 70, 1
    for steps in rounds:
        parts.step(steps)
    assert {launches for launches, _ in parts._schedule._graphs} >= {32}
    assert np.array_equal(alone(case, one, *rounds), parts.populations())


class Dying(HostDevice):
    """A device that fails at a launch, as one whose link or memory fails does."""

    def __init__(self, host: Host, launches: int) -> None:
        super().__init__(host)
        self._left = launches

    def load(self, program: Any, binary: Any) -> Any:
        found = super().load(program, binary)
        return SimpleNamespace(launch=partial(self._launch, found), recorded=found.recorded)

    def _launch(self, found: Any, *launch: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise DeviceFaultError("a link was lost")
        found.launch(*launch)


@needs_compiler
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("launches", [0, 3, 8])
def test_a_peer_that_dies_ends_the_run_with_its_sentence(transport: Any, launches: int) -> None:
    host, case = Host("random"), case_named("box")
    one = config(scheme="pull", storage="fp64", block=(4, 2, 1))
    program, taking = render(case, one), render_on_planes(render(case, one))
    assert taking
    devices = [HostDevice(host), Dying(host, launches)]
    found = decomposed(case, one, parse_cut("z:2"))
    parts = CoupledSimulation(taking, compile_on_host(taking), devices, found, Coupling(transport), compile_on_host)
    parts.initialise(random_state(program.case))
    said = r"a device failed: a link was lost; nothing that ran since is proved"
    with pytest.raises(NothingValidError, match=said), failures():
        parts.time_s(9)


class LateUploads(HostDevice):
    """A device whose uploads are done by a queue for which no other one waits. late: from now on."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.late, self._uploads = False, host.queue()

    @property
    def xp(self) -> Any:
        return SimpleNamespace(**{**vars(np), "asarray": self._uploaded}) if self.late else np

    def _uploaded(self, values: Any) -> Any:
        found = np.full_like(values, 1 << 40)
        self._uploads.run(lambda: np.copyto(found, values))
        return found


@needs_compiler
@pytest.mark.parametrize("launching", ["call", "graph"])
def test_a_kernel_that_sends_waits_for_the_table_of_what_it_sends(launching: Any) -> None:
    """Queues are independent of the one of uploads: a kernel once read what had lain in the memory of the table."""
    host, case = Host("last"), case_named("porous")
    one = config(family="sparse", scheme="aa", storage="fp64", block=(32, 1, 1))
    program, state = render(case, one), random_state(case)
    devices, binary = [LateUploads(host) for _ in range(2)], compile_on_host(program)
    found, coupling = decomposed(case, one, parse_cut("z:2")), Coupling("pack", "none", launching=launching)
    parts = CoupledSimulation(program, binary, devices, found, coupling, compile_on_host)
    parts.initialise(state)
    for device in devices:
        device.late = True
    alone = Simulation(program, binary, HostDevice())
    alone.initialise(state)
    for each in (alone, parts):
        each.step(3)
    for device in devices:
        device.late = False
    fluid = ~solid_in(case, whole(case.domain))
    assert np.array_equal(alone.populations()[:, fluid], parts.populations()[:, fluid])


@needs_compiler
@pytest.mark.parametrize("left_out", ["edge", "inner", "sent"])
def test_each_mark_is_needed(left_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the marks of one kind of queue some order spoils the state."""
    case, one = case_named("grinder"), config(scheme="aa", storage="fp64", block=(4, 2, 1))
    spoiled = []
    for order in ("first", "last", 0, 2, 4):
        parts = coupled(case, one, "z:2", Coupling("copy", "edge-priority"), order=order)
        never = property(lambda _: [[], []] if left_out == "sent" else [None, None], lambda *_: None)
        monkeypatch.setattr(Schedule, f"_{left_out}_marks", never, raising=False)
        parts.step(4)
        spoiled.append(not np.array_equal(alone(case, one, 4), parts.populations()))
        monkeypatch.undo()
    assert any(spoiled)


def test_parts_of_a_processor() -> None:
    from lbmtune.catalogue.config import from_flat

    case, device = case_named("grinder"), open_device("cpu")
    usual = {"backend": "cpu", "storage": "fp64", "compute": "fp64", "threads": 1, "vector_bits": 0}
    one = from_flat({**usual, "family": "direct", "scheme": "pull"})
    program, compiler = render(case, one), compiler_for(device.environment)
    binary = compiler(program)
    found: Any = device
    parts = CoupledSimulation(
        program,
        binary,
        [found] * 2,
        decomposed(case, one, parse_cut("z:2")),
        Coupling("copy", "none"),
        compiler,
        poisons=True,
    )
    alone = Simulation(program, binary, device)
    for each in (parts, alone):
        each.initialise(random_state(case))
        each.step(3)
    assert np.array_equal(parts.populations(), alone.populations())


@pytest.mark.parametrize(
    ("text", "cut", "reason"),
    [
        ("block_planes=4", "z:2", r"block_planes=4 is not supported for family=direct \(use 0\): its blocks have"),
        ("overlap=none,edge_planes=4", "z:2", r"edge_planes=4 is not supported for overlap=none \(use 0\)"),
        ("edge_planes=6", "z:2", r"edge_planes=6 is not supported for cut=z:2 \(use fewer planes, or parts\): part 0"),
        (
            "overlap=edge-first",
            "y:2",
            r"overlap=edge-first is not supported for cut=y:2 \(use none, or slabs",
        ),
    ],
)
@needs_compiler
def test_refusals(text: str, cut: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        coupled(case_named("box"), config(scheme="pull", block=(4, 2, 1)), cut, parse_coupling(text))


@needs_compiler
def test_devices_that_do_not_reach_each_other_exchange_through_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostDevice, "reaches", lambda self, other: self is other)
    case, one = case_named("box"), config(scheme="pull", storage="fp64", block=(4, 2, 1))
    with pytest.raises(InputError, match=r"transport=pack is not supported on these devices \(use host\)"):
        coupled(case, one, "z:2", Coupling("pack"))
    assert not differences(case, one, "z:2", Coupling("host")).any()


def test_couplings_have_a_text() -> None:
    assert str(Coupling()) == ""
    text = "transport=pack,overlap=edge-first,edge_planes=8"
    assert str(parse_coupling(text)) == text
    with pytest.raises(InputError, match="unknown knob of a decomposition 'transprt'; did you mean 'transport'"):
        parse_coupling("transprt=copy")
    with pytest.raises(InputError, match=r"overlap=all is not supported for a decomposition \(use none, edge-first or"):
        parse_coupling("overlap=all")


@pytest.mark.parametrize("word", WORDS)
def test_nvrtc_compiles_the_kernel_that_moves_runs(word: int) -> None:
    compiled = partial(compile_cuda, architecture="sm_90")(mover(case_named("box"), config(), word))
    assert compiled.resources.entries["move_runs"].spill_bytes == 0


@pytest.mark.parametrize("scheme", ["pull", "aa", "esoteric-pull"])
def test_nvrtc_compiles_kernels_that_take_planes(scheme: str) -> None:
    """Limits that are arguments cost no registers."""
    program = render(case_named("box"), config(scheme=scheme, block=(32, 1, 1)))
    taking = render_on_planes(program)
    assert taking
    wide, narrow = (max(e.registers for e in compile_cuda(p).resources.entries.values()) for p in (taking, program))
    assert wide <= narrow + 2
