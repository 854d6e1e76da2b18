"""Messages between GPUs of several processes: what is asked of NCCL, on a stand-in for CuPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cuda import nccl
from lbmtune.backend.cuda.nccl import NcclGroup, joined
from lbmtune.backend.protocol import DeviceFaultError
from lbmtune.backend.ranks import Rank
from lbmtune.errors import DeviceUnavailableError


class NcclError(RuntimeError): ...


NAMES = {"14": bytes(range(64, 192)), "13": (*range(64, 128), *range(-128, -64))}
"""The name of a communicator as two versions of CuPy have it."""


def stand_in(calls: list[Any], fails: str = "", version: str = "14") -> Any:
    """The module of CuPy, which writes down what is called. fails: name of the function that raises."""

    def called(name: str, *arguments: Any) -> None:
        if name == fails:
            raise NcclError(f"{name}: unhandled system error")
        calls.append((name, *arguments))

    def communicator(count: int, name: Any, number: int) -> Any:
        if type(name) is not type(NAMES[version]):
            raise TypeError("Argument 'commId' has incorrect type")
        called("join", count, name, number)
        return SimpleNamespace(**{name: partial(called, name) for name in ("send", "recv", "allReduce", "abort")})

    return SimpleNamespace(
        available=True,
        NcclError=NcclError,
        NCCL_UINT8=1,
        NCCL_FLOAT64=8,
        NCCL_MAX=2,
        get_unique_id=lambda: NAMES[version],
        groupStart=partial(called, "start"),
        groupEnd=partial(called, "end"),
        NcclCommunicator=communicator,
    )


def array(address: int, size: int) -> Any:
    return SimpleNamespace(data=SimpleNamespace(ptr=address), nbytes=size)


def cupy(synchronize: Callable[[], object] = lambda: None) -> Any:
    cuda = SimpleNamespace(
        get_current_stream=lambda: SimpleNamespace(ptr=77),
        Device=lambda index: SimpleNamespace(use=lambda: None, synchronize=synchronize),
    )

    return SimpleNamespace(cuda=cuda, asarray=lambda values, dtype: Held(np.asarray(values, dtype)))


class Held:
    """An array at an address."""

    data = SimpleNamespace(ptr=5)

    def __init__(self, values: Any) -> None:
        self._values = values

    def __getitem__(self, place: int) -> float:
        return float(self._values[place])


@pytest.mark.parametrize("version", NAMES)
def test_messages_are_one_group_in_the_current_stream(version: str) -> None:
    calls: list[Any] = []
    group = NcclGroup(cupy(), stand_in(calls, version=version), Rank(0, 1, 0))
    group.exchange([(1, array(100, 8)), (2, array(108, 16))], [(2, array(200, 16))])
    assert calls == [
        ("join", 1, NAMES[version], 0),
        ("start",),
        ("send", 100, 8, 1, 1, 77),
        ("send", 108, 16, 1, 2, 77),
        ("recv", 200, 16, 1, 2, 77),
        ("end",),
    ]


@pytest.mark.parametrize("fails", ["send", "end"])
def test_a_link_that_fails_is_a_fault_of_the_device(fails: str) -> None:
    group = NcclGroup(cupy(), stand_in([], fails), Rank(0, 1, 0))
    with pytest.raises(DeviceFaultError, match=f"NCCL: {fails}: unhandled system error"):
        group.exchange([(1, array(100, 8))], [])


def test_a_group_that_cannot_be_joined_is_told() -> None:
    with pytest.raises(DeviceUnavailableError, match="rank 0 of 1 cannot join the others by NCCL: join: unhandled"):
        NcclGroup(cupy(), stand_in([], "join"), Rank(0, 1, 0))


def test_without_nccl_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "cupy", cupy)
    monkeypatch.setattr(nccl, "_module", lambda: SimpleNamespace(available=False))
    with pytest.raises(DeviceUnavailableError, match=r"ranks need NCCL, .* install nvidia-nccl-cu13"):
        joined(Rank(0, 2, 0))


def test_the_largest_value_of_all_ranks_comes_from_nccl() -> None:
    calls: list[Any] = []
    assert NcclGroup(cupy(), stand_in(calls), Rank(0, 1, 0)).largest(2.5) == 2.5
    assert calls[-1] == ("allReduce", 5, 5, 1, 8, 2, 77)


def test_what_a_rank_sent_before_it_ended_counts_and_nothing_more_is_asked_of_it() -> None:
    calls: list[Any] = []
    group = NcclGroup(cupy(), stand_in(calls), Rank(0, 1, 0))
    group.check(more=True)
    group._one_ended(1)
    group.check(more=False)
    for work in (partial(group.check, more=True), partial(group.exchange, [], []), partial(group.largest, 0.0)):
        with pytest.raises(DeviceFaultError, match="rank 1 has ended, and rank 0 needs what it sends"):
            work()
    assert [name for name, *_ in calls] == ["join"], "neither an abort nor a message"


def test_work_that_waits_for_a_rank_that_has_ended_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "GRACE_S", 0.02)
    calls: list[Any] = []
    waits = Event()
    group = NcclGroup(cupy(waits.wait), stand_in(calls), Rank(0, 1, 0))
    group._one_ended(3)
    waits.set()
    assert calls[-1] == ("abort",)
    with pytest.raises(DeviceFaultError, match="rank 3 has ended, and rank 0 needs what it sends"):
        group.check(more=False)
