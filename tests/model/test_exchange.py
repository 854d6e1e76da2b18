"""The model of several devices: links by their curve, and what of an exchange shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.catalogue.config import KernelConfig, parse_config
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.decomposition.transfers import sent_bytes
from lbmtune.model.exchange import OVERLAPS, Overlap, Period, exchange_s, period
from lbmtune.model.machine.description import Links, Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from tests.support.paths import RECORDED

CARD = read_machine(RECORDED / "nvidia-h100" / "machine.toml")
LINKS = CARD.links
assert LINKS is not None
PULL = parse_config("scheme=pull,block=64x1x1")
MOMENTS = parse_config("family=temporal-blocking,representation=moments,steps=3,block=32x12x1,rows=3,pack=4")


def of(case: Case, config: KernelConfig, cut: str, overlap: Overlap, machine: Machine = CARD, **more: int) -> Period:
    return period(decomposed(case, config, parse_cut(cut), **more), machine, overlap)


def slower(links: Links, times: float) -> Machine:
    """The same card with links that take so many times as long."""
    curve = {name: times * seconds for name, seconds in links.copy_s.items()}
    return replace(CARD, links=replace(links, copy_s=curve, both_ways_bytes_per_s=links.both_ways_bytes_per_s / times))


def test_copies_take_what_was_measured_and_a_little_more_both_ways() -> None:
    sizes = sorted(map(int, LINKS.copy_s))
    both = [exchange_s(LINKS, size) / LINKS.copy_s[str(size)] for size in sizes]
    assert all(1 < ratio < 1.1 for ratio in both)
    assert len({round(ratio, 9) for ratio in both}) == 1
    assert exchange_s(LINKS, sizes[-1]) == pytest.approx(2 * sizes[-1] / LINKS.both_ways_bytes_per_s)


@given(st.lists(st.integers(1, 1 << 32), min_size=2, max_size=2))
def test_more_bytes_take_no_less_time_and_never_exceed_the_bandwidth(sent: list[int]) -> None:
    less, more = sorted(sent)
    assert exchange_s(LINKS, less) <= exchange_s(LINKS, more)
    assert more / exchange_s(LINKS, more) <= LINKS.both_ways_bytes_per_s / 2 * (1 + 1e-9)


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
    assert exchange_s(LINKS, 1) == exchange_s(LINKS, least)
    assert exchange_s(LINKS, 8 * largest) == pytest.approx(8 * exchange_s(LINKS, largest))


def test_a_link_with_one_measured_size() -> None:
    links = replace(LINKS, copy_s={"1000000": 1e-5}, both_ways_bytes_per_s=2e11)
    assert [exchange_s(links, size) for size in (10, 1_000_000, 4_000_000)] == pytest.approx([1e-5, 1e-5, 4e-5])


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
    found, machine = decomposed(case, config, parse_cut(cut)), slower(LINKS, times)
    assert machine.links
    one = period(found, machine, overlap)
    assert one.steps == config.fused_steps
    redundant = cut != "z:2" and cut != "z:4"
    assert (one.extra_s > 0) == (redundant or one.overlap == "edge-first")
    assert 0 <= one.shown_s <= one.exchange_s
    copied_s = max(exchange_s(machine.links, sent) for sent in sent_bytes(found).values())
    assert machine.links.wait_s
    assert one.exchange_s == pytest.approx(copied_s + 2 * machine.links.wait_s)
    assert one.total_s == one.own_s + one.extra_s + one.shown_s
    assert case.sites * one.steps / one.total_s / 1e6 < found.cut.parts * predict(case, config, CARD).mlups * 1.1


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
    case = box("d3q19", "bgk", (256, 256, 256))
    calls, graph = (of(case, replace(PULL, launch=how), "z:2", "edge-first") for how in ("call", "graph"))
    assert graph.extra_s < calls.extra_s
    beside = of(case, PULL, "z:2", "edge-priority")
    assert (beside.overlap, beside.extra_s) == ("edge-priority", 0)
    assert of(case, PULL, "1x2x2", "edge-first").overlap == "none"


def test_slabs_without_an_interior_and_deep_halos_are_exchanged_after_the_launch() -> None:
    case = box("d3q19", "regularised", (256, 256, 96))
    assert of(case, MOMENTS, "z:16", "edge-first").overlap == "none"
    deep = of(case, MOMENTS, "z:2", "edge-first", depth=6)
    assert (deep.overlap, deep.steps) == ("none", 6)
    once = of(case, MOMENTS, "z:2", "none")
    assert deep.own_s == pytest.approx(2 * once.own_s)
    assert deep.extra_s > 2 * once.extra_s


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
