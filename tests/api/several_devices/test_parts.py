"""Parts on several devices: what is refused before anything runs, and what is said if a device fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from lbmtune import Case, api
from lbmtune.api.several_devices import parts as several
from lbmtune.api.several_devices.outcomes import Proof
from lbmtune.backend.protocol import DeviceFaultError, OutOfMemoryError
from lbmtune.backend.ranks import Rank
from lbmtune.backend.registry import open_device
from lbmtune.catalogue.config import parse_config
from lbmtune.decomposition.coupling import Coupling, coupling_refusal
from lbmtune.decomposition.parts import decomposed
from lbmtune.errors import InputError, NothingValidError
from tests.runtime.parts.test_decomposed import needs_compiler
from tests.runtime.parts.test_ranks import Mailbox, OneAtATime
from tests.shim.device import HostDevice, compile_on_host

CASE = Case("box", "d3q19", "bgk", (32, 24, 20), 1.6)
KERNEL = "scheme=aa,threads=1"


def test_devices_of_one_kind_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal parts would take different times."""

    class Card:
        def __init__(self, name: str) -> None:
            kind = "H100" if name == "0" else "A100"
            self.environment = replace(open_device("cpu").environment, device=kind, device_id=f"{kind} {name}")

    monkeypatch.setattr(several, "open_device", Card)
    with pytest.raises(InputError, match=r"devices=0,1 is not supported \(use devices of one kind\): A100 and H100"):
        api.prove_parts(CASE, "scheme=aa", ["0", "1"])
    with pytest.raises(InputError, match=r"devices=cpu,0 is not supported \(use GPUs alone\)"):
        api.prove_parts(CASE, "scheme=aa", ["cpu", "0"])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            DeviceFaultError("an illegal address"),
            "a device failed: an illegal address; nothing that ran since is proved",
        ),
        (OutOfMemoryError("20 GB"), "the parts do not fit: 20 GB; choose a smaller domain"),
    ],
)
@pytest.mark.parametrize("asked", [api.prove_parts, api.race_parts])
def test_a_device_that_fails(asked: Any, error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(several, "agreement", failing)
    monkeypatch.setattr(several, "race", failing)
    with pytest.raises(NothingValidError, match=said):
        asked(CASE, KERNEL, ["cpu", "cpu"], "z:2", "overlap=none")


def test_a_small_domain_has_legal_parts_that_fill_no_whole_block() -> None:
    found = api.prove_parts(CASE, KERNEL, ["cpu"] * 3, "y:3", "overlap=none")
    x, y, z = found.domain
    assert (y % 3, found.passed, found.cut) == (0, True, "y:3")
    assert x * y * z < CASE.sites * 3


def test_a_coupling_that_is_refused_says_why() -> None:
    with pytest.raises(InputError, match=r"overlap=edge-first is not supported for family=direct \(use none\)"):
        api.prove_parts(CASE, KERNEL, ["cpu", "cpu"], "z:2", "overlap=edge-first")
    with pytest.raises(InputError, match=r"overlap=edge-first is not supported for family=direct \(use none\)"):
        api.race_parts(CASE, KERNEL, ["cpu", "cpu"], "z:2", "overlap=edge-first")


def test_a_small_domain_has_room_for_the_edges_that_are_asked_for() -> None:
    one = parse_config("scheme=aa,block=4x2x1")
    chosen, small = several.small_case(CASE, one, "z:2", [HostDevice(), HostDevice()], edge=64)
    found = decomposed(small, one, chosen)
    coupling = Coupling("pack", "edge-priority", 64)
    assert coupling_refusal(found, coupling, planes=True, reached=True) is None
    _, usual = several.small_case(CASE, one, "z:2", [HostDevice(), HostDevice()])
    assert usual.sites < small.sites


def test_deep_halos_are_proved_and_refused_by_their_rules() -> None:
    with pytest.raises(InputError, match=r"depth=2 is not supported for scheme=aa \(use 1\)"):
        api.prove_parts(CASE, KERNEL, ["cpu", "cpu"], "z:2", "overlap=none", depth=2)
    with pytest.raises(InputError, match=r"depth=2 is not supported for scheme=aa \(use 1\)"):
        api.race_parts(CASE, KERNEL, ["cpu", "cpu"], "z:2", "overlap=none", depth=2)
    assert api.prove_parts(CASE, KERNEL, ["cpu", "cpu"], "z:2", "overlap=none", depth=1).passed


def test_a_small_domain_has_room_for_a_deep_halo() -> None:
    one = parse_config(
        "family=temporal-blocking,representation=moments,layout=rows,steps=2,block=32x8x1,chunk_planes=8"
    )
    case, devices = replace(CASE, collision="regularised"), [HostDevice(), HostDevice()]
    chosen, small = several.small_case(case, one, "z:2", devices, depth=6)
    found = decomposed(small, one, chosen, 6)
    assert all(part.box.extents[2] > 12 for part in found.parts)


@needs_compiler
def test_ranks_prove_their_parts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads stand for processes, host devices for their GPUs, and a mailbox for NCCL."""
    mailbox = Mailbox(2)
    monkeypatch.setattr(several, "joined", lambda place: mailbox.of(place.number))
    monkeypatch.setattr(several, "opened_devices", lambda names: nullcontext([OneAtATime()] * len(names)))
    monkeypatch.setattr(several, "compiler_for", lambda _: compile_on_host)
    kernel = "backend=cuda,scheme=pull,block=32x1x1"

    def proved(number: int) -> Proof:
        return api.prove_parts(CASE, kernel, ["0", "0"], "z:2", rank=Rank(number, 2, number))

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(proved, range(2))
    assert first == second
    assert first.passed
    assert not first.refused
    assert {str(one) for one in first.found} == {
        f"transport=nccl{more}" for more in ("", ",overlap=none", ",overlap=edge-first")
    }
    assert {rank for rank, *_ in mailbox.sent} == {0, 1}
