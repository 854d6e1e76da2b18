"""Kernels on domains with cuts, and the couplings to measure: for two GPUs, and for scaling over all of a host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.records.best_json.document import read_best
from scripts.paths import RECORDED

Cells = tuple[int, int, int]

WAYS = tuple(f"transport={t},overlap={o}" for t in ("copy", "pack") for o in ("none", "edge-first", "edge-priority"))
HOST = ("transport=host,overlap=none", "transport=host,overlap=edge-priority")
CALLS = ("transport=copy,launching=call", "transport=pack,launching=call")
THICK = tuple(f"transport=copy,edge_planes={planes}" for planes in (8, 16, 32, 48))
BLOCKS = tuple(f"transport=copy,block_planes={planes}" for planes in (16, 22, 26, 32, 43, 64))
LONG = (32, 96, 128)
PACKED = tuple(f"transport=pack,overlap={overlap}" for overlap in ("none", "edge-first", "edge-priority"))


@dataclass(frozen=True)
class Group:
    """A kernel on a domain with a cut, and the couplings to measure.

    weak: each GPU has the domain; along: the axis that is cut, or 'bisection'; launches: those between two exchanges;
    best: folder of the recorded set that has the kernel, for another one `config`; alone: domain of the one GPU beside
    them, if it is another one.
    """

    name: str
    case: Case
    config: Mapping[str, Any]
    couplings: tuple[str, ...]
    weak: bool = True
    along: str = "z"
    launches: int = 1
    best: str = ""
    devices: int = 2
    alone: Cells | None = None

    @property
    def cut(self) -> str:
        """Return the cut into as many parts as there are GPUs."""
        return f"{self.along}:{self.devices}"

    @property
    def kernel(self) -> KernelConfig:
        """Return the configuration of its kernel."""
        best = read_best(RECORDED / self.best / "best.json").config.flat() if self.best else {}
        return from_flat({**best, "backend": "cuda", **self.config})

    @property
    def of_one(self) -> Case:
        """Return the case of the GPU that is timed in turns with all."""
        return replace(self.case, domain=self.alone) if self.alone else self.case

    @property
    def whole(self) -> Case:
        """Return the case of all GPUs."""
        return self._times(self.case.domain) if self.weak else self.case

    @property
    def proof(self) -> Case:
        """Return the case of the small domain of the proof."""
        blocked = self.kernel.family == "temporal-blocking"
        return self._times((64, 45, 200) if blocked else (256, 13, 19))

    def _times(self, domain: Cells) -> Case:
        """Return the case of a domain that is as many times as long as there are GPUs."""
        axis = "xyz".index(self.along) if self.along in "xyz" else 2
        x, y, z = (cells * (self.devices if each == axis else 1) for each, cells in enumerate(domain))
        return replace(self.case, domain=(x, y, z))


def _moments(lattice: str = "d3q19", domain: tuple[int, int, int] = (384, 384, 384)) -> Case:
    return box(lattice, "regularised", domain, 1.6)


def _one_step(domain: tuple[int, int, int] = (256, 256, 256), lattice: str = "d3q19") -> Case:
    return box(lattice, "bgk", domain, 1.6)


FAST, PULL = "nvidia-h100/d3q19-box-fast-fp32", "nvidia-h100/d3q19-box-fp32"
SOA: Mapping[str, Any] = {"family": "direct", "layout": "soa", "block": "64x1x1", "cells_per_thread": 4}
HALF: Mapping[str, Any] = {
    "family": "temporal-blocking", "representation": "moments", "storage": "fp16s", "layout": "rows", "steps": 2,
    "rows": 3, "pack": 8, "block": "32x16x1", "chunk_planes": 192, "plane_fetch": "cp_async", "overread": 1,
    "warp_sync": "neighbours", "z_buffer": "shared",
}  # fmt: skip
SMALL = (256, 256, 128)
POROUS = replace(box("d3q19", "bgk", (256, 256, 512), 1.6), geometry="sandstone:fraction=0.6", force=(1e-6, 0.0, 0.0))
BEST = ("transport=copy,overlap=none", "transport=copy", "transport=copy,overlap=edge-first", *PACKED[::2])
GROUPS = (
    Group("moments fp16s", _moments(), HALF, (*BEST, *(f"transport=copy,edge_planes={planes}" for planes in LONG),
          *(f"transport=copy,edge_planes={planes},block_planes=388" for planes in (16, 64)))),
    Group("porous index list fp32, half each", POROUS, {}, PACKED[:1], weak=False, along="bisection",
          best="nvidia-h200/porous-fp32"),
    Group("porous index list fp32", POROUS, {}, PACKED[:1], along="bisection", best="nvidia-h200/porous-fp32"),
    Group("moments fp32, half each", _moments(domain=(256,) * 3), {}, (*WAYS, *BLOCKS[2:5], *THICK[1:2], *CALLS),
          weak=False, best=FAST),
    Group("cavity moments fp32", cavity("d3q19", "regularised", (384,) * 3, 1.6), {}, (*BEST, *BLOCKS[-1:]),
          best="nvidia-h200/d3q19-cavity-fast-fp32"),
    Group("moments fp32", _moments(), {}, (*WAYS, *HOST[1:], *CALLS[:1],
          *(f"transport=copy,edge_planes={planes}" for planes in LONG)), best=FAST),
    Group("one-step fp32 aosoa", _one_step(), {}, (*PACKED, *CALLS[1:], "transport=pack,edge_planes=16"), best=PULL),
    Group("one-step fp16s aosoa", _one_step(), {"storage": "fp16s"}, (*PACKED, *CALLS[1:]), best=PULL),
    Group("aa fp32 soa", _one_step(), {**SOA, "scheme": "aa"}, (*WAYS, *HOST)),
    Group("esoteric-pull fp32 soa", _one_step(), {**SOA, "scheme": "esoteric-pull"}, (*WAYS, *CALLS)),
    Group("moments fp32, middle", _moments(domain=(384, 384, 192)), {}, (*WAYS, *BLOCKS[4:5], *THICK[2:3]), best=FAST),
    Group("moments fp32, short", _moments(domain=SMALL), {}, (*WAYS, *BLOCKS[1:2], *CALLS), best=FAST),
    Group("moments fp32, short, depth 6", _moments(domain=SMALL), {}, WAYS, launches=2, best=FAST),
    Group("moments fp32, large, half each", _moments(domain=(512,) * 3), {}, (*BEST, *THICK[2:3]), weak=False,
          best=FAST),
    Group("one-step fp32 aosoa, half each", _one_step((512,) * 3), {}, PACKED, weak=False, best=PULL),
    Group("moments fp32, one step", _moments(domain=SMALL), {"steps": 1, "chunk_planes": 32}, WAYS, best=FAST),
    Group("moments fp32, one step, depth 2", _moments(domain=SMALL), {"steps": 1, "chunk_planes": 32}, WAYS, launches=2,
          best=FAST),
    Group("moments fp32, one step, depth 4", _moments(domain=SMALL), {"steps": 1, "chunk_planes": 32}, WAYS, launches=4,
          best=FAST),
    Group("pull fp32 soa", _one_step(), {**SOA, "scheme": "pull"}, (*WAYS, *HOST, *CALLS, *THICK[:1])),
    Group("aa fp32 soa, small", _one_step((128,) * 3), {**SOA, "scheme": "aa", "block": "32x1x1"}, (*WAYS, *CALLS)),
    Group("one-step fp32 aosoa, small", _one_step((128,) * 3), {"block": "32x1x1"}, (*PACKED, *CALLS[1:]), best=PULL),
    Group("moments fp64", _moments(domain=(256,) * 3), {}, WAYS, best="nvidia-h200/d3q19-moments-fp64"),
    Group("D3Q27 one-step fp32", _one_step(lattice="d3q27"), {}, PACKED, best="nvidia-h200/d3q27-box-fp32"),
    Group("D3Q27 moments fp32", _moments("d3q27", (256,) * 3), {}, BEST, best="nvidia-h200/d3q27-box-fast-fp32"),
    Group("column fp32 soa", _one_step(), {"family": "column", "scheme": "pull", "layout": "soa", "block": "64x1x1"},
          (*WAYS, *HOST[1:])),
    Group("moments fp32, short, depth 9", _moments(domain=SMALL), {}, WAYS[2::3], launches=3, best=FAST),
    Group("one-step fp32 aosoa, y", _one_step(), {}, PACKED[:1], along="y", best=PULL),
    Group("pull fp32 soa, y", _one_step(), {**SOA, "scheme": "pull"}, PACKED[:1], along="y"),
    Group("moments fp32, middle, depth 6", _moments(domain=(384, 384, 192)), {}, WAYS[2::3], launches=2, best=FAST),
)  # fmt: skip


def scaling(devices: int) -> Iterator[Group]:
    """Yield weak and strong scaling on 2, 4, ... GPUs, up to a number; the largest number first.

    No GPU has the memory of 1024^3 cells by itself: beside them one GPU has the share of one, or of one of four.
    """
    number = devices
    while number > 1:
        for one in (*_WEAK, *_STRONG):
            yield replace(one, name=f"{one.name}, {number} GPUs", devices=number)
        for one in _LARGE:
            share = (1024, 1024, 1024 // max(4, number))
            yield replace(one, name=f"{one.name}, {number} GPUs", devices=number, alone=share)
        number //= 2


_WEAK = (
    Group("moments fp32", _moments(), {}, (*BEST, *HOST[1:]), best=FAST),
    Group("moments fp16s", _moments(), HALF, BEST),
    Group("one-step fp32", _one_step(), {}, (*PACKED, *HOST[1:]), best=PULL),
    Group("one-step fp16s", _one_step(), {"storage": "fp16s"}, PACKED, best=PULL),
)
_STRONG = (
    Group("moments fp32, 512^3", _moments(domain=(512,) * 3), {}, (BEST[1], BEST[-1], *BLOCKS[2:6:3]), weak=False,
          best=FAST),
    Group("one-step fp32, 512^3", _one_step((512,) * 3), {}, PACKED[::2], weak=False, best=PULL),
    Group("porous index list fp32", POROUS, {}, PACKED[:1], weak=False, along="bisection",
          best="nvidia-h200/porous-fp32"),
)  # fmt: skip
_LARGE = (
    Group("moments fp32, 1024^3", _moments(domain=(1024,) * 3), {}, BEST[1:2], weak=False, best=FAST),
    Group("aa fp32 soa, 1024^3", _one_step((1024,) * 3), {**SOA, "scheme": "aa"}, BEST[1:2], weak=False),
)
