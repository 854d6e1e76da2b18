"""The model of several devices: links by their curve, and what of an exchange shows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.catalogue.config import KernelConfig, parse_config
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.decomposition.coupling import Coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import Decomposition, decomposed
from lbmtune.decomposition.transfers import face_bytes, runs, sent_bytes
from lbmtune.model.exchange import (
    OVERLAPS,
    Overlap,
    Period,
    measured_over_predicted,
    period,
)
from lbmtune.model.gpu.families import inputs_of
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs
from lbmtune.model.gpu.temporal_blocking.sharing import pace_of, room_of_senders
from lbmtune.model.machine.description import Links, Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.messages import copy_s, exchange_s, known_transport
from lbmtune.model.predict import predict
from lbmtune.records import Resources
from lbmtune.records.best_json.document import read_best
from tests.support.paths import RECORDED

CARD = read_machine(RECORDED / "nvidia-h100" / "machine.toml")
LINKS = CARD.links
assert LINKS is not None
PULL = parse_config("scheme=pull,block=64x1x1")
MOMENTS = parse_config("family=temporal-blocking,representation=moments,steps=3,block=32x12x1,rows=3,pack=4")

FAST = read_best(RECORDED / "nvidia-h100" / "d3q19-box-fast-fp32" / "best.json").config


def of(case: Case, config: KernelConfig, cut: str, overlap: Overlap, machine: Machine = CARD, **more: int) -> Period:
    coupling = Coupling(overlap=overlap)
    return period(decomposed(case, config, parse_cut(cut), **more), machine, coupling)


def slower(links: Links, times: float) -> Machine:
    """Return the same card with links that take so many times as long."""
    curve = {name: times * seconds for name, seconds in links.copy_s.items()}
    return replace(CARD, links=replace(links, copy_s=curve, both_ways_bytes_per_s=links.both_ways_bytes_per_s / times))


def test_copies_take_what_was_measured_and_a_little_more_both_ways() -> None:
    sizes = sorted(map(int, LINKS.copy_s))
    both = [copy_s(LINKS, size) / LINKS.copy_s[str(size)] for size in sizes]
    assert all(1 < ratio < 1.1 for ratio in both)
    assert len({round(ratio, 9) for ratio in both}) == 1
    assert copy_s(LINKS, sizes[-1]) == pytest.approx(2 * sizes[-1] / LINKS.both_ways_bytes_per_s)


@given(st.lists(st.integers(1, 1 << 32), min_size=2, max_size=2))
def test_more_bytes_take_no_less_time_and_never_exceed_the_bandwidth(sent: list[int]) -> None:
    less, more = sorted(sent)
    assert copy_s(LINKS, less) <= copy_s(LINKS, more)
    assert more / copy_s(LINKS, more) <= LINKS.both_ways_bytes_per_s / 2 * (1 + 1e-9)


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_both_waits_of_an_exchange_take_their_time_and_are_hidden_like_it(overlap: Overlap) -> None:
    case = box("d3q19", "bgk", (256, 256, 256))
    unknown, waiting = (replace(CARD, links=replace(LINKS, wait_s=wait_s)) for wait_s in (None, 8e-6))
    without, found = (of(case, PULL, "z:2", overlap, card) for card in (unknown, waiting))
    assert found.exchange_s == pytest.approx(without.exchange_s + 16e-6)
    assert found.shown_s == pytest.approx(without.shown_s + (16e-6 if overlap == "none" else 0.0))
    alone = of(case, PULL, "z:1", overlap, waiting)
    assert alone.exchange_s == 0


def test_few_bytes_take_the_latency_and_many_the_bandwidth() -> None:
    least, largest = min(map(int, LINKS.copy_s)), max(map(int, LINKS.copy_s))
    assert copy_s(LINKS, 1) == copy_s(LINKS, least)
    assert copy_s(LINKS, 8 * largest) == pytest.approx(8 * copy_s(LINKS, largest))


def test_a_link_with_one_measured_size() -> None:
    links = replace(LINKS, copy_s={"1000000": 1e-5}, both_ways_bytes_per_s=2e11)
    assert [copy_s(links, size) for size in (10, 1_000_000, 4_000_000)] == pytest.approx([1e-5, 1e-5, 4e-5])


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_one_part_exchanges_nothing(overlap: Overlap) -> None:
    case = box("d3q19", "bgk", (256, 256, 256))
    found = of(case, PULL, "1x1x1", overlap, replace(CARD, links=None))
    assert (found.extra_s, found.exchange_s, found.shown_s) == (0, 0, 0)
    assert found.total_s == pytest.approx(case.sites / predict(case, PULL, CARD).mlups / 1e6)


@settings(max_examples=25, deadline=None)
@given(
    config=st.sampled_from((PULL, parse_config("scheme=aa,block=128x1x1"), MOMENTS)),
    cut=st.sampled_from(("z:2", "z:4", "y:2", "1x2x2")),
    sides=st.tuples(*[st.integers(4, 8).map(lambda n: 32 * n)] * 3),
    overlap=st.sampled_from(OVERLAPS),
    times=st.sampled_from((1, 30)),
)
def test_time_is_that_of_own_cells_and_of_what_is_added(
    config: KernelConfig, cut: str, sides: tuple[int, int, int], overlap: Overlap, times: float
) -> None:
    case = box("d3q19", "regularised", sides)
    assert ALONE.links
    found, machine = decomposed(case, config, parse_cut(cut)), slower(ALONE.links, times)
    assert machine.links
    one = period(found, machine, Coupling(overlap=overlap))
    assert one.steps == config.fused_steps
    redundant = cut != "z:2" and cut != "z:4"
    if config is not MOMENTS:  # whose blocks may suit the part better or worse, and take the room of others
        assert (one.extra_s > 0) == (redundant or one.overlap == "edge-first")
        assert one.shown_s <= one.exchange_s
    assert one.shown_s >= 0
    assert machine.links.wait_s
    assert one.exchange_s == pytest.approx(copied_s(found, machine.links) + 2 * machine.links.wait_s)
    assert one.total_s == one.own_s + one.extra_s + one.shown_s
    assert case.sites * one.steps / one.total_s / 1e6 < found.cut.parts * predict(case, config, CARD).mlups * 1.1


def copied_s(found: Decomposition, links: Links) -> float:
    """Copies of each run of each message, one after another, of the part that takes longest."""
    seconds = dict.fromkeys(range(len(found.parts)), 0.0)
    for face in found.faces:
        each = face_bytes(found, face) / runs(found, face)
        seconds[face.source] += runs(found, face) * copy_s(links, each)
    return max(seconds.values())


ALONE = replace(CARD, links=replace(LINKS, message_copy_s={}, message_store_s={}))
"""Links of which messages between devices that wait for each other were not measured."""


def test_a_copy_moves_one_run_and_a_kernel_all() -> None:
    """The halves of a box in arrays of their own send five runs to each side, in rows of all components one."""
    found = decomposed(box("d3q19", "bgk", (256, 256, 256)), PULL, parse_cut("z:2"))
    (sent,), (packed, copied) = (
        {*sent_bytes(found).values()},
        (period(found, ALONE, Coupling(transport, "none")).exchange_s for transport in ("pack", "copy")),
    )
    assert [runs(found, face) for face in found.faces] == [5] * 4
    assert LINKS.store_both_ways_bytes_per_s
    assert LINKS.wait_s
    stored = 2 * sent / LINKS.store_both_ways_bytes_per_s + 2 * LINKS.wait_s
    assert packed == pytest.approx(stored + 1.9e-6, rel=0.01)
    assert copied == pytest.approx(copied_s(found, LINKS) + 2 * LINKS.wait_s)
    rows = decomposed(box("d3q19", "regularised", (256, 256, 256)), MOMENTS, parse_cut("z:2"))
    assert [runs(rows, face) for face in rows.faces] == [1] * 4


def test_measured_messages_take_the_place_of_their_copies_and_stores() -> None:
    """Both messages of a part have 1,310,720 bytes; of five copies four take what copies of their size take."""
    found = decomposed(box("d3q19", "bgk", (256, 256, 256)), PULL, parse_cut("z:2"))
    message = sent_bytes(found)[0] // 2
    assert (message, LINKS.wait_s) == (5 * 256 * 256 * 4, 5.2e-6)
    measured = {str(message // 2): 10e-6, str(2 * message): 40e-6}  # 20 us between them
    card = replace(CARD, links=replace(LINKS, message_copy_s=measured, message_store_s=measured))
    packed, copied = (period(found, card, Coupling(way, "none")).exchange_s for way in ("pack", "copy"))
    assert packed == pytest.approx(2 * (5.2e-6 + 20e-6))
    more_s = 5 * copy_s(LINKS, message / 5) - copy_s(LINKS, message)
    assert more_s > 0
    assert copied == pytest.approx(packed + 2 * more_s)
    large = decomposed(box("d3q19", "bgk", (512, 512, 256)), PULL, parse_cut("z:2"))
    assert period(large, card, Coupling("pack", "none")).exchange_s == pytest.approx(2 * (5.2e-6 + 80e-6))


def test_without_overlap_all_of_the_exchange_shows_and_the_halo_is_computed() -> None:
    case = box("d3q19", "bgk", (256, 256, 256))
    found = of(case, PULL, "y:2", "none")
    stored = predict(replace(case, domain=(256, 130, 256)), PULL, CARD)
    assert found.shown_s == found.exchange_s
    assert found.own_s + found.extra_s == pytest.approx(256 * 256 * 130 / stored.mlups / 1e6, rel=0.01)


def test_slabs_of_kernels_that_take_planes_have_no_redundant_ones() -> None:
    """A layer of ghost cells is refreshed as a whole, so that such kernels take none."""
    case, ghosts = box("d3q19", "bgk", (256, 256, 256)), replace(PULL, wrap="ghost")
    found, redundant = (of(case, one, "z:2", "none") for one in (PULL, ghosts))
    assert found.extra_s == 0
    assert found.shown_s == found.exchange_s
    stored = predict(replace(case, domain=(256, 256, 130)), ghosts, CARD)
    assert redundant.own_s + redundant.extra_s == pytest.approx(256 * 256 * 130 / stored.mlups / 1e6, rel=0.01)


def test_edge_first_shows_what_the_interior_does_not_hide() -> None:
    case = box("d3q19", "bgk", (256, 256, 256))
    hidden = of(case, PULL, "z:2", "edge-first")
    assert hidden.overlap == "edge-first"
    assert hidden.shown_s == pytest.approx(2 * 2 * 5 * 256 * 256 * 4 / CARD.copy_bytes_per_s)
    slow = of(case, PULL, "z:2", "edge-first", slower(LINKS, 1000))
    interior = slow.exchange_s - slow.shown_s
    assert 0.9 < interior / slow.own_s * 128 / 126 < 1.1
    assert slow.extra_s == hidden.extra_s


def test_edges_cost_starts_of_launches() -> None:
    """Two launches more, whose starts were measured alone; what a call takes its host is not theirs."""
    case = box("d3q19", "bgk", (256, 256, 256))
    calls, graph = (of(case, replace(PULL, launch=how), "z:2", "edge-first") for how in ("call", "graph"))
    assert CARD.calibration
    assert graph.extra_s == pytest.approx(2 * CARD.calibration.small_s["graph 4980736"], rel=0.05)
    assert calls.extra_s == pytest.approx(graph.extra_s, rel=0.3)
    beside = of(case, PULL, "z:2", "edge-priority")
    assert (beside.overlap, beside.extra_s) == ("edge-priority", 0)
    assert of(case, PULL, "1x2x2", "edge-first").overlap == "none"


def test_slabs_without_an_interior_are_exchanged_after_the_launch() -> None:
    case = box("d3q19", "regularised", (256, 256, 96))
    assert of(case, MOMENTS, "z:16", "edge-first").overlap == "none"


def test_deep_halos_are_exchanged_less_often_and_computed_redundantly() -> None:
    case = box("d3q19", "regularised", (256, 256, 192))
    once, deep = (of(case, FAST, "z:2", "none", depth=depth) for depth in (3, 6))
    assert (once.steps, deep.steps) == (3, 6)
    assert deep.own_s == pytest.approx(2 * once.own_s)
    plane_s = once.own_s / 2 / (48 + 6)  # two waves of blocks of 48 planes, with three around them on either side
    assert deep.extra_s - 2 * once.extra_s == pytest.approx(2 * 3 * plane_s, rel=0.01)
    assert deep.exchange_s < 2 * once.exchange_s
    hidden = of(case, FAST, "z:2", "edge-first", depth=6)
    assert hidden.overlap == "edge-first"
    assert hidden.shown_s < deep.shown_s


def test_blocks_of_the_interior_are_no_longer_than_those_of_edges() -> None:
    """Half of 256 planes with blocks of 64: edges of 32 take two waves of 132 multiprocessors, all together three."""
    found = decomposed(box("d3q19", "regularised", (256, 256, 256)), FAST, parse_cut("z:2"))
    short, long = (
        period(found, CARD, Coupling("copy", overlap, block_planes=block))
        for overlap, block in (("edge-priority", 0), ("none", 64))
    )
    assert short.own_s + short.extra_s < 0.9 * (long.own_s + long.extra_s)
    assert short.shown_s < 0.3 * short.exchange_s < long.shown_s


def test_a_kernel_that_sends_needs_the_room_of_few_blocks() -> None:
    """A block of 384 threads with 168 registers leaves no room; where one ended, eight of 256 with 32 start."""
    case = box("d3q19", "regularised", (256, 256, 256))
    inputs = inputs_of(case, FAST, CARD, Resources(registers=168, shared_bytes=164_640))
    assert room_of_senders(inputs, 128) == 16
    few = inputs_of(case, FAST, CARD, Resources(registers=128, shared_bytes=164_640))
    assert room_of_senders(few, 128) == 0
    assert room_of_senders(few, 300) == 38


def test_few_blocks_are_no_slower_and_one_that_is_limited_by_memory_much_faster() -> None:
    case = box("d3q19", "regularised", (256, 256, 128))
    for config, least, most in ((FAST, 1.05, 1.2), (replace(FAST, steps=1, chunk_planes=32), 2, 3)):
        inputs = inputs_of(case, config, CARD)
        assert isinstance(inputs, TemporalInputs)
        pace = pace_of(inputs, 132, 1.0)
        found = [pace(blocks) for blocks in range(1, 133)]
        assert all(fewer >= more * (1 - 1e-9) for fewer, more in pairwise(found))
        assert (found[-1], least < found[0] < most) == (1, True)
        capped = pace_of(inputs, 132, 0.9)
        assert capped(1) == pytest.approx(max(1.0, 0.9 * found[0]))
        # a lone block is as predicted, and those between wait as much less as all do: their planes lie on a line
        for blocks in (40, 90) if capped(1) > 1 else ():
            few, lone = 1 / found[blocks - 1] - 1 / found[0], 1 - 1 / found[0]
            assert 0.9 / capped(blocks) - 1 / found[0] == pytest.approx(few * (0.9 - 1 / found[0]) / lone)


def test_launches_take_as_much_longer_as_those_of_one_device_did() -> None:
    case = box("d3q19", "bgk", (256, 256, 256))
    alone, halves = (decomposed(case, PULL, parse_cut(cut)) for cut in ("1x1x1", "z:2"))
    as_is, measured = (period(halves, CARD, Coupling(overlap="none"), own=own) for own in (1.0, 1.25))
    assert measured.own_s == pytest.approx(1.25 * as_is.own_s)
    assert measured.exchange_s == as_is.exchange_s
    launch_s = 1.25 * period(alone, CARD, Coupling(overlap="none")).total_s
    assert measured_over_predicted(alone, CARD, launch_s) == pytest.approx(1.25, rel=1e-4)


def test_a_host_that_calls_keeps_small_parts_waiting() -> None:
    """Two parts, two messages each: 6 launches, 12 runs of a queue, 8 marks and so on; a graph is one call."""
    small, large = (decomposed(box("d3q19", "bgk", (n, n, n)), PULL, parse_cut("z:2")) for n in (64, 512))
    calls = {"launch": 5e-6, "copy": 4e-6, "run": 2e-6, "mark": 3e-6, "wait": 1e-6, "turn": 6e-6}
    card = replace(CARD, links=replace(LINKS, call_s=calls))
    packed, copied = (Coupling(way, launching="call") for way in ("pack", "copy"))
    # of a part: edges and interior; of a message: waits for both ends, and a kernel or five copies
    parts_s = 2 * (6e-6 + 3 * 5e-6 + 2 * (2e-6 + 3e-6) + (4 + 2) * 1e-6)
    messages_s = 4 * (6e-6 + 2e-6 + 3e-6 + 2 * 1e-6)
    assert period(small, card, packed).host_s == pytest.approx(parts_s + messages_s + 4 * 5e-6)
    assert period(small, card, copied).host_s == pytest.approx(parts_s + messages_s + 4 * 5 * 4e-6)
    assert period(small, card, packed).total_s == period(small, card, packed).host_s
    assert period(large, card, packed).total_s > 10 * period(large, card, packed).host_s
    assert period(small, card, Coupling("pack")).host_s == 0
    assert period(small, CARD, packed).host_s == pytest.approx(10 * CARD.calibration.small_s["call 4980736"], rel=0.01)


def test_copies_beside_launches_take_what_copies_of_a_busy_device_take() -> None:
    found = decomposed(box("d3q19", "bgk", (128, 128, 128)), PULL, parse_cut("z:2"))
    slower = {size: 4 * seconds for size, seconds in LINKS.copy_s.items()}
    card = replace(CARD, links=replace(LINKS, busy_copy_s=slower))
    idle, busy = (period(found, one, Coupling("copy")) for one in (CARD, card))
    assert idle.exchange_s == busy.exchange_s
    more_s = 10 * 3 * LINKS.copy_s["65536"]
    # what copies of a busy device leave once all launches have ended, which idle ones move
    assert CARD.calibration
    hidden_s = busy.own_s - 2 * CARD.calibration.small_s["graph 4980736"]
    left = 1 - hidden_s / (busy.exchange_s + more_s)
    assert 0.1 < left < 0.9
    assert busy.shown_s == pytest.approx(left * busy.exchange_s, rel=0.1)
    assert idle.shown_s < 0.1 * busy.shown_s
    for other in (Coupling("pack"), Coupling("copy", "none")):
        assert period(found, card, other) == period(found, CARD, other)


def test_messages_through_the_host_take_what_was_measured_of_them() -> None:
    found = decomposed(box("d3q19", "bgk", (256, 256, 256)), PULL, parse_cut("z:2"))
    sent, (part, _) = sent_bytes(found)[0] // 2, found.parts
    through = replace(LINKS, message_host_s={str(sent // 2): 40e-6, str(2 * sent): 100e-6})
    assert not known_transport(LINKS, "host")
    assert known_transport(through, "host")
    seconds = exchange_s(found, part, through, "host", 0.0)
    # each of four runs more is a copy to the host, and one from there
    assert seconds == pytest.approx(2 * (5.2e-6 + 60e-6 + 4 * 2 * copy_s(LINKS, 0)))
    for way in ("host", "nccl"):
        with pytest.raises(ValueError, match=f"transport={way}: links do not say"):
            exchange_s(found, part, LINKS, way, 0.0)  # type: ignore[arg-type]


def test_messages_beside_launches_take_what_was_measured_of_those() -> None:
    """Runs of a message after the first take what copies of a busy device take."""
    found = decomposed(box("d3q19", "bgk", (256, 256, 256)), PULL, parse_cut("z:2"))
    part, least = found.parts[0], min(LINKS.copy_s, key=int)
    flat = {name: {least: seconds} for name, seconds in (("idle", 20e-6), ("beside", 29e-6), ("busy_copy", 90e-6))}
    links = replace(
        replace(LINKS, copy_s={least: 10e-6}, busy_copy_s={least: 12e-6}, message_copy_s=flat["idle"]),
        **{"busy_message_copy_s": flat["beside"], "message_store_s": flat["idle"]},
        busy_message_store_s=flat["busy_copy"],
    )
    sent = sent_bytes(found)[0] / 2 / int(least)
    idle, busy = (exchange_s(found, part, links, "copy", 0.0, busy=one) for one in (False, True))
    assert busy - idle == pytest.approx(2 * (sent * 9e-6 + 4 * sent / 5 * 2e-6))
    idle, busy = (exchange_s(found, part, links, "pack", 0.0, busy=one) for one in (False, True))
    assert (idle, busy) == (pytest.approx(2 * (5.2e-6 + sent * 20e-6)), pytest.approx(2 * (5.2e-6 + sent * 90e-6)))


def test_edges_behind_the_interior_wait_for_messages_that_have_come() -> None:
    case = box("d3q19", "bgk", (256, 256, 256))
    card = replace(CARD, links=replace(LINKS, met_wait_s=4e-6))
    for overlap, more_s in (("edge-first", 4e-6), ("edge-priority", 0.0), ("none", 0.0)):
        found, without = (of(case, PULL, "z:2", overlap, one) for one in (card, CARD))
        assert found.total_s - without.total_s == pytest.approx(more_s, abs=1e-12)


def test_the_busiest_part_sets_the_time(tmp_path: Path) -> None:
    solid = np.zeros((64, 64, 64), np.uint8)
    solid[:32] = 1
    solid[0] = 0
    np.save(tmp_path / "half.npy", solid)
    geometry = f"file:path={tmp_path / 'half.npy'}"
    case = Case("porous", "d3q19", "bgk", (64, 64, 64), 1.2, force=(1e-5, 0.0, 0.0), geometry=geometry)
    sparse = parse_config("family=sparse,block=64x1x1")
    slabs, halves = (of(case, sparse, cut, "none") for cut in ("z:2", "bisection:2"))
    assert slabs.own_s / halves.own_s == pytest.approx(32 / 17)
