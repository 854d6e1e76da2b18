"""Measure ways to exchange between two GPUs of one host beside one of them, each proved first.

    python -m scripts.measurements.couplings OUT.json [SECONDS [GROUP ...]]

A group is a kernel on a domain with a cut. Its kernel on parts is compared with one GPU on a small domain; then each
coupling with the first one, bit for bit, on the domain that is timed. OUT.json is written after each group, and the
groups most wanted come first: what does not fit into the seconds is left out.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from numpy import finfo

from lbmtune.backend.protocol import Binary, Compiler, DeviceFaultError, PeerDevice
from lbmtune.backend.registry import compiler_for, link, open_device
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render, render_on_planes
from lbmtune.decomposition.coupling import Coupling, parse_coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.decomposition.transfers import sent_bytes
from lbmtune.errors import InputError
from lbmtune.measure.calibration.gpu_links import LinksBench
from lbmtune.measure.parts.proof import agreement
from lbmtune.measure.parts.race import Race, race
from lbmtune.measure.timing.state import excite
from lbmtune.records.best import read_best
from lbmtune.runtime.parts.coupled import CoupledSimulation
from lbmtune.runtime.simulation import Simulation
from scripts.paths import RECORDED

WAYS = tuple(f"transport={t},overlap={o}" for t in ("copy", "pack") for o in ("none", "edge-first", "edge-priority"))
HOST = ("transport=host,overlap=none", "transport=host,overlap=edge-priority")
CALLS = ("transport=copy,launching=call", "transport=pack,launching=call")
THICK = tuple(f"transport=copy,edge_planes={planes}" for planes in (8, 16, 32, 48))
BLOCKS = tuple(f"transport=copy,block_planes={planes}" for planes in (16, 22, 26, 32, 43, 64))
PACKED = tuple(f"transport=pack,overlap={overlap}" for overlap in ("none", "edge-first", "edge-priority"))
ROUNDS, ROUNDING = 5, 64
"""Rounds of a proof (a graph, and one that is launched by itself), and units in the last place by which sums may differ
that are added up in another order: walls between blocks have it so."""


@dataclass(frozen=True)
class Group:
    """A kernel on a domain with a cut, and the couplings to measure.

    weak: each GPU has the domain; depth: launches between two exchanges; best: folder of the recorded set that has
    the kernel, for another one `config`.
    """

    name: str
    case: Case
    config: Mapping[str, Any]
    couplings: tuple[str, ...]
    weak: bool = True
    cut: str = "z:2"
    launches: int = 1
    best: str = ""

    @property
    def small(self) -> tuple[int, int, int]:
        """Return the cells along each axis of half of the domain of its proof."""
        return (64, 45, 200) if self.kernel.family == "temporal-blocking" else (256, 13, 19)

    @property
    def kernel(self) -> KernelConfig:
        """Return the configuration of its kernel."""
        best = read_best(RECORDED / self.best / "best.json").config.flat() if self.best else {}
        return from_flat({**best, "backend": "cuda", **self.config})

    @property
    def whole(self) -> Case:
        """Return the case of both GPUs."""
        x, y, z = self.case.domain
        if not self.weak:
            return self.case
        along = {"x": (2 * x, y, z), "y": (x, 2 * y, z), "z": (x, y, 2 * z)}
        return replace(self.case, domain=along[self.cut[0]])


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
    Group("moments fp16s", _moments(), HALF, (*BEST, "transport=copy,block_planes=96",
          "transport=copy,edge_planes=32")),
    Group("porous index list fp32, half each", POROUS, {}, PACKED[:1], weak=False, cut="bisection:2",
          best="nvidia-h200/porous-fp32"),
    Group("moments fp32, half each", _moments(domain=(256,) * 3), {}, (*WAYS, *BLOCKS[2:5], *THICK[1:2], *CALLS),
          weak=False, best=FAST),
    Group("cavity moments fp32", cavity("d3q19", "regularised", (384,) * 3, 1.6), {}, (*BEST, *BLOCKS[-1:]),
          best="nvidia-h200/d3q19-cavity-fast-fp32"),
    Group("moments fp32", _moments(), {}, (*WAYS, *HOST[1:], *CALLS[:1]), best=FAST),
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
    Group("one-step fp32 aosoa, y", _one_step(), {}, PACKED[:1], cut="y:2", best=PULL),
    Group("pull fp32 soa, y", _one_step(), {**SOA, "scheme": "pull"}, PACKED[:1], cut="y:2"),
    Group("moments fp32, middle, depth 6", _moments(domain=(384, 384, 192)), {}, WAYS[2::3], launches=2, best=FAST),
)  # fmt: skip


class Laboratory:
    """Two devices with a compiler, and the time that is left. compile_ahead: kernels of later groups meanwhile."""

    def __init__(self, devices: Sequence[PeerDevice], compiler: Compiler, seconds: float) -> None:
        self.devices, self._compiler = devices, compiler
        self._end, self._begin = time.monotonic() + seconds, time.monotonic()
        self._made: dict[str, Future[Binary]] = {}
        self._pool = ThreadPoolExecutor(6)

    @property
    def left_s(self) -> float:
        """Return the seconds that are left."""
        return self._end - time.monotonic()

    def say(self, *words: object) -> None:
        """Print words behind the time."""
        print(f"{time.monotonic() - self._begin:6.1f}", *words, flush=True)

    def close(self) -> None:
        """Compile nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def programs(self, group: Group, case: Case) -> tuple[Program, Program]:
        """Return the kernel of one device and that of parts, which are compiled from now on."""
        alone = render(case, group.kernel)
        taking = render_on_planes(alone) or alone
        for one in (alone, taking):
            if one.digest not in self._made:
                self._made[one.digest] = self._pool.submit(self._compiler, one)
        return alone, taking

    def binary(self, program: Program) -> Binary:
        """Return a compiled kernel."""
        if program.digest in self._made:
            with suppress(Exception):  # it is compiled again, and by itself
                return self._made[program.digest].result()
        return self._compiler(program)

    def pair(
        self, group: Group, alone: Case, whole: Case, coupling: Coupling, *, poisons: bool = False
    ) -> tuple[Simulation, CoupledSimulation]:
        """Return one device with a case, and both with another one."""
        first, _ = self.programs(group, alone)
        _, second = self.programs(group, whole)
        with self.devices[0].current():
            one = Simulation(first, self.binary(first), self.devices[0])
        found = decomposed(whole, group.kernel, parse_cut(group.cut), group.launches * group.kernel.fused_steps)
        return one, CoupledSimulation(
            second, self.binary(second), self.devices, found, coupling, self.binary, poisons=poisons
        )

    def free(self) -> None:
        """Return the memory of all that is gone."""
        gc.collect()
        for device in self.devices:
            with device.current():
                device.synchronize()
                if hasattr(device.xp, "get_default_memory_pool"):
                    device.xp.get_default_memory_pool().free_all_blocks()


class Repeated:
    """Parts that start from the same state with each coupling, and the state that the first coupling leaves.

    Launches update some planes, or all couplings are without overlap: then halos are equal, too.
    """

    def __init__(self, parts: CoupledSimulation) -> None:
        self._parts = parts
        for one in self._current():
            excite(one)
        parts.exchange()
        self._start = [{name: one.xp.array(buffer) for name, buffer in one.buffers.items()} for one in self._current()]
        self._first: list[Any] = []

    def different(self, coupling: Coupling) -> tuple[int, float]:
        """Return how many elements a coupling leaves otherwise than the first one did, and the largest difference.

        The latter is infinite if the values of elements have no difference as they are stored.
        """
        parts = self._parts
        for one, start in zip(self._current(), self._start, strict=True):
            one.steps_done = 0
            for name, values in start.items():
                one.buffers[name][...] = values
        parts.synchronize()
        parts.couple(coupling)
        parts.step(ROUNDS * parts.decomposition.steps)
        parts.synchronize()
        if not self._first:
            self._first = [one.xp.array(one.state) for one in self._current()]
        count, worst = 0, 0.0
        for one, first in zip(self._current(), self._first, strict=True):
            words = f"uint{8 * first.itemsize}"
            apart = int(one.xp.count_nonzero(first.view(words) != one.state.view(words)))
            if apart:
                numbers = first.dtype.kind == "f" and first.itemsize > 2
                worst = max(worst, float(one.xp.nanmax(abs(first - one.state))) if numbers else inf)
            count += apart
        return count, worst

    def _current(self) -> Iterator[Simulation]:
        for one, device in zip(self._parts.parts, self._parts.devices, strict=True):
            with device.current():
                yield one


def measured(group: Group, laboratory: Laboratory, repeats: int, sample_s: float) -> dict[str, Any]:
    """Prove and time the couplings of a group."""
    couplings = [parse_coupling(text) for text in group.couplings]
    proof = proved(group, laboratory, couplings[0])
    laboratory.free()
    laboratory.say("   proved", proof)
    alone, parts = laboratory.pair(group, group.case, group.whole, couplings[0])
    found, different = parts.decomposition, compared(parts, couplings, laboratory)
    laboratory.free()
    bound = ROUNDING * float(finfo(group.kernel.computed.dtype).eps)
    right = [one for one, (_, worst) in different.items() if worst <= bound]
    laboratory.say("   compared", len(different), "equal", sum(not count for count, _ in different.values()))
    times = race(alone, parts, right, repeats=repeats, sample_s=sample_s)
    sent = parts.messages_before(parts.parts[0].parity)
    return {
        "name": group.name,
        "kind": "weak" if group.weak else "strong",
        "flow": group.case.flow,
        "lattice": group.case.lattice,
        "collision": group.case.collision,
        "geometry": group.case.geometry,
        "domain": list(group.case.domain),
        "cut": group.cut,
        "steps": found.steps,
        "depth": found.depth,
        "config": found.config.flat(),
        "sent_bytes": max(sent_bytes(found).values()),
        "runs": [len(one.runs) for one in sent],
        "cells": [alone.case.fluid_sites, found.case.fluid_sites],
        "proof": proof,
        "unequal": {
            str(one): {"elements": count, "worst": worst} for one, (count, worst) in different.items() if count
        },
        "bound": bound,
        "alone_s": list(times.alone),
        "couplings": list(rows(times, laboratory)),
    }


def compared(
    parts: CoupledSimulation, couplings: Sequence[Coupling], laboratory: Laboratory
) -> dict[Coupling, tuple[int, float]]:
    """Return how far the state that each legal coupling leaves lies from that of the first one."""
    if len(couplings) == 1:
        return {couplings[0]: (0, 0.0)}
    repeated, different = Repeated(parts), dict[Coupling, tuple[int, float]]()
    for one in couplings:
        try:
            different[one] = repeated.different(one)
        except InputError as error:
            laboratory.say("   refused", one, error)
    return different


def proved(group: Group, laboratory: Laboratory, coupling: Coupling) -> dict[str, Any]:
    """Compare parts with one device on a small domain, with poison in the halo before each exchange."""
    x, y, z = group.small
    domain = {"x": (2 * x, y, z), "y": (x, 2 * y, z)}.get(group.cut[0], (x, y, 2 * z))
    small = replace(group.case, domain=domain)
    alone, parts = laboratory.pair(group, small, small, coupling, poisons=True)
    found = agreement(alone, parts, 2)
    if not found.passed:
        raise ValueError(f"parts have another state than one device: {found}")
    return {"domain": list(domain), "different": found.different, "worst": found.worst}


def rows(times: Race, laboratory: Laboratory) -> Iterator[dict[str, Any]]:
    """Yield the row of each coupling that was timed."""
    for one in times.coupled:
        if one.refused:
            laboratory.say("   refused", one.coupling, one.refused)
            continue
        share = times.efficiency(one)
        laboratory.say(
            f"   {str(one.coupling) or 'default':55s} {times.mlups(one):9,.0f} MLUPS {share.median:.4f} "
            f"({share.low:.4f}..{share.high:.4f}) all {1e6 * one.median_s:7.1f} launches {1e6 * one.launches_s:7.1f} "
            f"exchange {1e6 * one.exchange_s:6.1f} us"
        )
        yield {
            **vars(one.coupling),
            "mlups": times.mlups(one),
            "period_s": list(one.samples),
            "launches_s": one.launches_s,
            "exchange_s": one.exchange_s,
        }


def links(devices: Sequence[PeerDevice], compiler: Compiler) -> list[dict[str, Any]]:
    """Measure the links between the devices, as `lbmtune devices --links` does; none if there is no clock."""
    try:
        return [
            vars(one)
            for one in LinksBench(devices, compiler, lambda one, other: link(str(one), str(other))).measure(
                lambda _: None
            )
        ]
    except NotImplementedError:
        return []


def main(
    arguments: Sequence[str],
    opened: tuple[Sequence[PeerDevice], Compiler] | None = None,
    groups: Sequence[Group] = GROUPS,
    repeats: int = 3,
    sample_s: float = 0.04,
) -> int:
    """Measure all groups, or those of the command line."""
    out, seconds, names = Path(arguments[0]), float([*arguments, "200"][1]), arguments[2:]
    devices, compiler = opened or _both()
    laboratory = Laboratory(devices, compiler, seconds)
    chosen = [group for group in groups if not names or group.name in names]
    device = devices[0].environment
    document: dict[str, Any] = {
        "what": "two GPUs of one host in turns with one, seconds from one exchange to the next",
        "date": datetime.now(UTC).date().isoformat(),
        "device": device.device,
        "driver": device.driver,
        "devices": len(devices),
        "links": links(devices, compiler),
        "groups": [],
        "failed": [],
    }
    laboratory.say("links", document["links"])
    for group in chosen:
        laboratory.programs(group, group.case)
    for group in chosen:
        if laboratory.left_s < 12:
            laboratory.say("no time for", group.name)
            document["failed"].append([group.name, "no time"])
            continue
        laboratory.say(group.name)
        try:
            document["groups"].append(measured(group, laboratory, repeats, sample_s))
        except DeviceFaultError:  # nothing runs in this process any more
            document["failed"].append([group.name, traceback.format_exc()])
            out.write_text(json.dumps(document, indent=1))
            later = [one.name for one in chosen[chosen.index(group) + 1 :]]
            return elsewhere(out, laboratory.left_s, later)
        except Exception:  # the next group may be well
            laboratory.say("   failed", traceback.format_exc())
            document["failed"].append([group.name, traceback.format_exc()])
        laboratory.free()
        out.write_text(json.dumps(document, indent=1))
    laboratory.close()
    rows_of = [row for group in document["groups"] for row in group["couplings"]]
    laboratory.say(len(rows_of), "couplings of", len(document["groups"]), "groups")
    if rows_of:
        laboratory.say("median exchange", f"{1e6 * median(row['exchange_s'] for row in rows_of):.1f} us")
    return 0


def elsewhere(out: Path, seconds: float, names: Sequence[str]) -> int:
    """Measure other groups in a new process, and add what it wrote."""
    other = out.with_suffix(".rest.json")
    if names:
        command = [sys.executable, "-m", "scripts.measurements.couplings", str(other), f"{seconds:.0f}", *names]
        subprocess.run(command, check=False)
    if other.exists():
        document, rest = json.loads(out.read_text()), json.loads(other.read_text())
        for part in ("groups", "failed"):
            document[part] += rest[part]
        out.write_text(json.dumps(document, indent=1))
    return 0


def _both() -> tuple[Sequence[PeerDevice], Compiler]:
    devices: list[Any] = [open_device("0"), open_device("1")]
    return devices, compiler_for(devices[0].environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
