"""Blocks of launches that share multiprocessors, round after round: by hand, and beside what two H100 took."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.model.rounds import Blocks, round_s

NOTHING: dict[str, Any] = {"inner": None, "edges": 0, "first": False, "packs": None, "wait_s": 0.0, "start_s": 0.0}


def launch(columns: int, *seconds: float) -> Blocks:
    return Blocks(tuple((columns, each) for each in seconds))


def took(room: int, *chain: Blocks, exchange_s: float = 0.0, **more: Any) -> float:
    return round_s(room, chain, exchange_s=exchange_s, **{**NOTHING, **more})


def test_the_last_blocks_of_a_launch_run_alone() -> None:
    assert took(10, launch(10, 1.0)) == pytest.approx(1.0)
    assert took(10, launch(11, 1.0)) == pytest.approx(2.0)
    assert took(10, launch(5, 3.0, 1.0, 1.0)) == pytest.approx(3.0)


def test_launches_and_an_exchange_without_overlap_follow_each_other() -> None:
    assert took(10, launch(10, 1.0), launch(20, 1.0), exchange_s=0.5) == pytest.approx(3.5)
    assert took(10, launch(10, 1.0), exchange_s=0.5, start_s=0.25) == pytest.approx(1.75)


def test_the_interior_hides_the_exchange_if_it_lasts() -> None:
    """Edges take one wave and the interior two: an exchange of up to two waves does not show."""
    for exchange_s, expected in ((0.5, 3.0), (1.9, 3.0), (2.5, 3.5)):
        found = took(10, launch(10, 1.0), edges=1, inner=launch(10, 1.0, 1.0), exchange_s=exchange_s)
        assert found == pytest.approx(expected)


def test_an_interior_behind_its_edges_takes_no_room_of_theirs() -> None:
    edges = launch(5, 1.0)
    beside = took(10, edges, edges=1, inner=launch(5, 1.0))
    behind = took(10, edges, edges=1, inner=launch(5, 1.0), first=True)
    assert (beside, behind) == (pytest.approx(1.0), pytest.approx(2.0))


def test_edges_wait_for_room_that_the_interior_took_while_they_waited_for_messages() -> None:
    long, short = (took(10, launch(10, 1.0), edges=1, inner=launch(10, each), exchange_s=1.0) for each in (3.0, 1.5))
    assert short == pytest.approx(2.5)
    assert long == pytest.approx(4.0)


def test_a_kernel_that_sends_waits_for_room() -> None:
    work: dict[str, Any] = {"edges": 1, "inner": launch(10, 1.0, 1.0)}
    copied = took(10, launch(10, 1.0), **work, exchange_s=0.5)
    stored = took(10, launch(10, 1.0), **work, packs=launch(4, 0.5), wait_s=0.1)
    assert copied == pytest.approx(3.0)
    assert stored > 3.4


def test_few_blocks_are_faster_if_they_share_the_bandwidth_of_memory() -> None:
    """Ten blocks fill it, five are twice as fast: 15 take as long as one and a half waves, and 5 beside 5 as 10."""

    def pace(blocks: int) -> float:
        return 10 / blocks

    assert took(10, launch(15, 1.0), pace=pace) == pytest.approx(1.5)
    assert took(10, launch(5, 1.0), launch(5, 1.0), pace=pace) == pytest.approx(1.0)
    assert took(10, launch(5, 1.0), edges=1, inner=launch(5, 1.0), pace=pace) == pytest.approx(1.0)
    assert took(10, launch(5, 1.0, 3.0), pace=pace) == pytest.approx(2.0)


def test_what_is_sent_gets_on_as_links_do() -> None:
    alone = took(10, launch(10, 1.0), edges=1, inner=launch(10, 0.0), packs=launch(1, 0.5), pace=lambda n: 10 / n)
    assert alone == pytest.approx(1.5)


def test_edges_of_a_second_launch_begin_behind_the_interior_beside_them() -> None:
    """They are ready at once, but edges wait for the other device, too: the exchange is behind all of the interior."""
    chain, inner = (launch(10, 1.0), launch(10, 1.0)), launch(10, 1.0)
    found = took(10, *chain, edges=1, inner=inner, exchange_s=0.5, start_s=0.01)
    assert found == pytest.approx(3.5, abs=0.05)
    assert took(10, *chain, edges=1, inner=inner, exchange_s=0.5) == pytest.approx(3.0)


@given(
    st.integers(1, 20),
    st.lists(st.tuples(st.integers(1, 40), st.floats(0.1, 3.0)), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 40), st.floats(0.1, 3.0)), min_size=1, max_size=3),
    st.floats(0.0, 5.0),
    st.booleans(),
)
def test_no_round_is_shorter_than_its_work_or_longer_than_one_thing_after_another(
    room: int, edge: list[tuple[int, float]], inner: list[tuple[int, float]], exchange_s: float, first: bool
) -> None:
    edges, inside = Blocks(tuple(edge)), Blocks(tuple(inner))
    found = took(room, edges, edges=1, inner=inside, exchange_s=exchange_s, first=first)
    work = (edges.seconds + inside.seconds) / room
    longest = edges.seconds + inside.seconds + exchange_s
    assert work * (1 - 1e-9) <= found <= longest * (1 + 1e-9)


H100, COLUMNS, PLANE_S, AROUND = 132, 90, 589.6e-6 / 210, 6
"""Multiprocessors; columns of 256 x 256 cells; seconds of a plane, by one GPU in three waves of 70; planes around."""


@pytest.mark.parametrize(
    ("edge", "inner", "measured_s"),
    [
        (32, (32, 32), 335.3e-6),
        (16, (16,) * 6, 387.9e-6),
        (22, (21,) * 4, 394.9e-6),
        (26, (26, 25, 25), 369.2e-6),
        (16, (48, 48), 375.2e-6),
        (32, (64,), 414.1e-6),
    ],
)
def test_half_of_256_planes_on_each_of_two_h100(edge: int, inner: tuple[int, ...], measured_s: float) -> None:
    """Three steps in a launch, an exchange of 65 us by copies; what its traffic takes from launches is left out."""
    of = [launch(COLUMNS, (edge + AROUND) * PLANE_S)] * 2
    inside = launch(COLUMNS, *((planes + AROUND) * PLANE_S for planes in inner))
    found = took(H100, *of, edges=2, inner=inside, exchange_s=65e-6, start_s=2e-6)
    assert found == pytest.approx(measured_s, rel=0.05)


def test_a_launch_without_blocks_takes_no_time() -> None:
    nothing = Blocks(((0, 1.0),))
    assert took(10, launch(10, 1.0), nothing, exchange_s=0.5, start_s=0.25) == pytest.approx(1.75)
    assert took(10, nothing, launch(10, 1.0)) == pytest.approx(1.0)
    assert took(10, Blocks(()), exchange_s=0.5) == pytest.approx(0.5)
