"""Links between GPUs, as NVML and CUDA tell them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from lbmtune.backend import registry
from lbmtune.backend.cuda import nvml

BUSES = ("00000000:0A:00.0", "00000000:0B:00.0")
SWITCH = "00000000:FF:00.0"


class NVMLError(Exception): ...


@dataclass
class Host:
    """Two GPUs, of which links lead somewhere, by their numbers; those that are down lead nowhere."""

    links: dict[int, str]
    version: int = 6
    status: int | None = 0
    pcie: tuple[int, int] | None = (5, 16)
    peers: bool = True

    def library(self) -> Any:
        def told(value: Any) -> Any:
            if value is None:
                raise NVMLError
            return value

        def of_pcie(place: int) -> Any:
            return lambda handle: told(self.pcie and self.pcie[place])

        return SimpleNamespace(
            NVMLError=NVMLError,
            nvmlDeviceGetHandleByPciBusId=lambda bus: f"00000000:{bus.decode()[5:]}",
            nvmlDeviceGetPciInfo=lambda handle: SimpleNamespace(busId=handle.encode()),
            nvmlDeviceGetP2PStatus=lambda handle, other, index: told(self.status if index == 2 else 0),
            nvmlDeviceGetNvLinkState=lambda handle, n: 1 if n in self.links else told(0 if n < 18 else None),
            nvmlDeviceGetNvLinkVersion=lambda handle, n: told(self.version if n in self.links else None),
            nvmlDeviceGetNvLinkRemotePciInfo=lambda handle, n: SimpleNamespace(busId=self.links[n].lower().encode()),
            nvmlDeviceGetMaxPcieLinkGeneration=of_pcie(0),
            nvmlDeviceGetMaxPcieLinkWidth=of_pcie(1),
        )

    def cupy(self) -> Any:
        runtime = SimpleNamespace(
            deviceGetPCIBusId=lambda index: BUSES[index][4:], deviceCanAccessPeer=lambda one, other: self.peers
        )
        return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


@pytest.mark.parametrize(
    ("host", "name"),
    [
        (Host(dict.fromkeys(range(18), SWITCH)), "NVLink 4, 18 links"),
        (Host({n: BUSES[1] if n < 4 else "another GPU" for n in range(12)}, 4), "NVLink 3, 4 links"),
        (Host({3: BUSES[1]}, 99), "NVLink, 1 link"),
        (Host({}), "PCIe 5 x16"),
        (Host(dict.fromkeys(range(18), SWITCH), status=3), "PCIe 5 x16"),
        (Host(dict.fromkeys(range(18), SWITCH), status=None), "PCIe 5 x16"),
        (Host({}, peers=False, pcie=(3, 8)), "PCIe 3 x8, no peer access"),
        (Host({}, pcie=None), "unknown"),
    ],
)
def test_the_link_of_two_gpus_has_a_name(monkeypatch: pytest.MonkeyPatch, host: Host, name: str) -> None:
    library = host.library()
    monkeypatch.setattr(nvml, "_nvml", lambda: library)
    monkeypatch.setitem(sys.modules, "cupy", host.cupy())
    assert registry.link("0", "1") == name


def test_without_nvml_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_nvml", lambda: None)
    monkeypatch.setitem(sys.modules, "cupy", Host({}).cupy())
    assert registry.link("0", "1") == "unknown"


def test_the_cores_of_a_host_have_none() -> None:
    assert registry.link("cpu", "cpu") == ""
