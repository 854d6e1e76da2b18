"""One kernel of each CUDA skeleton, verified under compute-sanitizer: reads and writes out of bounds, races, barriers.

    python -m scripts.sanitize REPORT                     all cases under memcheck, racecheck and synccheck
    python -m scripts.sanitize REPORT --cases march --tools racecheck --device 0

A case is a configuration with walls, where its kind can have them, on the small domain that verification takes. It
runs in a process of its own, started by the tool. racecheck and synccheck look at kernels with shared memory. Halo
cells of a march come to nonsense from poisoned buffers, which is never stored: that is within bounds.
Of "march, neighbours" racecheck reports hazards, since it does not follow that the lanes of a warp have met before one
of them raises its flag (docs/lab/moments.md). Its line says so, and does not count; the case after it is the same
kernel with a flag that all lanes raise, in which racecheck has to find nothing.
Prints a line per case and tool; REPORT gets the same with versions, device and date, and what a tool had to say. The
exit code is 1 where a tool found another error or a result is wrong.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.config import from_flat
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification.domains import awkward_domain
from lbmtune.measure.verification.verify import verify
from tests.support.choices import Sample, case_of

ROOT = Path(__file__).resolve().parent.parent

SANITIZER = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
TOOLS = ("memcheck", "racecheck", "synccheck")
OF_SHARED_MEMORY = ("racecheck", "synccheck")
FOUND, WRONG = 9, 1
"""Exit codes: of the tool where it found something, and of a case whose result is wrong."""
LIMIT_S, QUOTED_LINES = 240, 40
_MARCH: Mapping[str, Any] = {"representation": "moments", "layout": "rows", "block": "32x8x1", "march": 5, "pack": 2}
_STEPS: Mapping[str, Any] = {"scheme": "push", "layout": "rows", "block": "32x8x1", "march": 5, "steps": 2}
_TILES: Mapping[str, Any] = {"representation": "moments", "halo": "faces", "block": "8x4x2"}
_ON_CHIP: Mapping[str, Any] = {"launch": "resident", "layout": "rows", "block": "8x2x1", "march": 2}
_MOMENTS_ON_CHIP: Mapping[str, Any] = {
    **_ON_CHIP,
    "representation": "moments",
    "block": "16x4x1",
    "march": 4,
    "held": 2,
}
CASES: Mapping[str, tuple[str, str, str, Mapping[str, Any]]] = {
    "one step": ("grinder", "d3q19", "bgk", {"block": "32x2x1"}),
    "one step, in place, vectors": (
        *("grinder", "d3q19", "bgk"),
        {"scheme": "aa", "block": "8x2x1", "cells_per_thread": 4},
    ),
    "one step, pairs of halves": (
        *("cavity", "d3q19", "trt"),
        {"scheme": "esoteric-pull", "block": "8x4x1", "cells_per_thread": 8, "storage": "fp16s"},
    ),
    "ghost layer": ("cavity", "d3q27", "bgk", {"scheme": "esoteric-twist", "wrap": "ghost", "block": "32x2x1"}),
    "flags": ("solids", "d3q19", "bgk", {"flags": "memory", "block": "32x2x1", "storage": "fp16c"}),
    "flags, predicated": (
        *("solids", "d3q19", "bgk"),
        {"scheme": "aa", "flags": "memory", "boundary": "predicated", "block": "32x2x1", "storage": "bf16"},
    ),
    "implicit walls": (
        *("rocks", "d3q19", "bgk"),
        {"scheme": "esoteric-twist", "flags": "memory", "boundary": "implicit", "block": "32x2x1"},
    ),
    "column": ("grinder", "d3q19", "bgk", {"block": "32x2x1", "march": 3}),
    "column, ahead": ("grinder", "d3q19", "bgk", {"block": "32x2x1", "march": 3, "prefetch": 1}),
    "column, far ahead": ("grinder", "d3q19", "bgk", {"block": "32x2x1", "march": 5, "prefetch": 2}),
    "column, copied": (
        *("grinder", "d3q19", "bgk"),
        {"scheme": "aa", "block": "32x2x1", "march": 5, "prefetch": 2, "fetch": "shared", "cells_per_thread": 2},
    ),
    "pointers exchanged": (
        "grinder",
        "d3q19",
        "bgk",
        {"scheme": "esoteric-twist", "parity": "pointers", "block": "32x2x1", "cells_per_thread": 2},
    ),
    "hints and order": (
        *("grinder", "d3q19", "bgk"),
        {"block": "32x2x1", "load_hint": "streaming", "store_hint": "streaming", "block_order": "z-curve"},
    ),
    "macroscopics": ("grinder", "d3q19", "bgk", {"block": "32x2x1", "macroscopics": "every-step"}),
    "early launches": ("grinder", "d3q19", "bgk", {"block": "32x2x1", "launch": "dependent"}),
    "two-step": ("grinder", "d3q19", "bgk", {"scheme": "two-step", "block": "32x2x1"}),
    "swap": ("grinder", "d3q19", "bgk", {"scheme": "swap", "block": "32x2x1"}),
    "ghost cells of blocks": ("grinder", "d3q19", "bgk", {"scheme": "ghost-cell", "block": "8x4x4"}),
    "indirect": ("rocks", "d3q19", "bgk", {"addressing": "indirect", "block": "32x1x1"}),
    "indirect, in place, ahead": (
        *("rocks", "d3q19", "bgk"),
        {"scheme": "aa", "addressing": "indirect", "block": "32x1x1", "prefetch_index": 96},
    ),
    "indirect, chased": (
        *("rocks", "d3q19", "bgk"),
        {"scheme": "esoteric-twist", "addressing": "indirect", "neighbours": "chase", "block": "32x1x1"},
    ),
    "indirect, column": (
        *("rocks", "d3q19", "bgk"),
        {"addressing": "indirect", "block": "32x1x1", "march": 3, "prefetch": 1},
    ),
    "indirect, copied": (
        *("rocks", "d3q19", "bgk"),
        {"addressing": "indirect", "block": "32x1x1", "march": 3, "prefetch": 2, "fetch": "shared"},
    ),
    "patches": ("patched", "d3q19", "bgk", {"flags": "memory", "block": "32x2x1"}),
    "patches, compiled": ("patched", "d3q19", "bgk", {"scheme": "aa", "block": "32x2x1", "cells_per_thread": 2}),
    "indirect, pointers exchanged": (
        *("solids", "d3q19", "bgk"),
        {"scheme": "esoteric-pull", "parity": "pointers", "addressing": "indirect", "block": "32x1x1"},
    ),
    "march": ("box", "d3q19", "regularised", {**_MARCH, "steps": 3, "rows": 2, "prefetch": 1}),
    "march, copies on their way": ("box", "d3q27", "regularised", {**_MARCH, "steps": 2, "rows": 2, "prefetch": 2}),
    "march, bulk copies": (
        *("box", "d3q19", "regularised"),
        {**_MARCH, "steps": 3, "rows": 2, "prefetch": 3, "beyond": 1},
    ),
    "march, on shelves": (
        *("box", "d3q19", "regularised"),
        {**_MARCH, "steps": 2, "rows": 2, "prefetch": 2, "pending": "shared"},
    ),
    "march, one step": ("box", "d3q19", "regularised", {**_MARCH, "cells_per_thread": 2, "prefetch": 1}),
    "march, neighbours": (
        *("box", "d3q19", "regularised"),
        {**_MARCH, "steps": 2, "rows": 2, "prefetch": 1, "barrier": "neighbours"},
    ),
    "march, neighbours, all lanes": (
        *("box", "d3q19", "regularised"),
        {**_MARCH, "steps": 2, "rows": 2, "prefetch": 1, "barrier": "neighbours"},
    ),
    "march, faces": ("grinder", "d3q19", "regularised", {**_MARCH, "steps": 2, "prefetch": 1}),
    "march, words": ("solids", "d3q19", "regularised", {**_MARCH, "steps": 2, "flags": "memory", "prefetch": 2}),
    "march, words of some planes": (
        "cavity",
        "d3q19",
        "regularised",
        {**_MARCH, "steps": 2, "rows": 2, "flags": "memory", "prefetch": 2},
    ),
    "march of populations": ("box", "d3q19", "bgk", {**_STEPS, "rows": 2, "prefetch": 2}),
    "march of populations, faces": ("grinder", "d3q19", "bgk", {**_STEPS, "prefetch": 1}),
    "march in two dimensions": ("grinder", "d2q9", "regularised", {**_MARCH, "steps": 3, "prefetch": 2}),
    "tiles and their faces": ("solids", "d3q19", "regularised", {**_TILES, "flags": "memory", "fetch": "shared"}),
    "on chip": ("grinder", "d3q19", "bgk", {**_ON_CHIP}),
    "on chip, neighbours, words": ("solids", "d3q19", "bgk", {**_ON_CHIP, "meeting": "neighbours", "flags": "memory"}),
    "moments on chip": ("grinder", "d3q19", "regularised", {**_MOMENTS_ON_CHIP}),
}
"""Flow, lattice, collision and axes."""
NOT_FOLLOWED = ("racecheck", "march, neighbours")
"""What a tool takes for a race, and is none."""
ALL_LANES: Mapping[str, str] = {
    "mbarrier.init.shared.b64 [%0], 1;": "mbarrier.init.shared.b64 [%0], 32;",
    "if (lane == 0) raise(own);": "raise(own);",
    "LANES = 32 * CELLS * WARPS,": "LANES = 32 * CELLS * (WARPS + 1),",  # rows beyond those of a block are nobody's
}
"""Where all lanes raise the flag of their warp."""
MORE_BYTES = 16 << 10
"""Of shared memory that those rows take, and more."""


@dataclass(frozen=True)
class Verdict:
    """Of one case under one tool. code: 0 where nothing was found; log: what the tool and the case printed."""

    name: str
    tool: str
    code: int
    log: str

    @property
    def line(self) -> str:
        """The case, the tool, and what came of it."""
        said = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", self.log)
        words = {0: "nothing found", FOUND: "errors found", WRONG: "wrong result"}
        ended = words.get(self.code, f"exit code {self.code}")
        known = "; not followed by the tool, does not count" if self.known else ""
        return f"{self.name:30} {self.tool:10} {ended}; {'; '.join(said) or '-'}{known}"

    @property
    def known(self) -> bool:
        """Whether what was found is none."""
        return self.code == FOUND and (self.tool, self.name) == NOT_FOLLOWED

    @property
    def quoted(self) -> list[str]:
        """What was said where something was found."""
        return self.log.splitlines()[:QUOTED_LINES] if self.code else []


def sample(name: str) -> Sample:
    """Case and configuration of that name, for a domain that is large enough; verification takes a smaller one."""
    flow, lattice, collision, axes = CASES[name]
    config = from_flat({"backend": "cuda", **axes})
    case = case_of(flow, lattice, collision)
    if axes.get("launch") == "resident":
        case = replace(case, domain=awkward_domain(case, config))
    return case, config


def program_of(name: str) -> Program:
    """The program of a case."""
    program = render(*sample(name))
    if name != "march, neighbours, all lanes":
        return program
    assert all(now in program.source for now in ALL_LANES)
    source = reduce(lambda text, change: text.replace(*change), ALL_LANES.items(), program.source)
    ((launch,),) = program.period
    return replace(program, source=source, period=((replace(launch, shared_bytes=launch.shared_bytes + MORE_BYTES),),))


def run(name: str, device_name: str) -> int:
    """Verifies one case in this process: what the tool starts."""
    import cupy

    cupy.cuda.set_allocator(None)  # each array an allocation of its own: beyond its end is out of bounds
    device = open_device(device_name)
    program = program_of(name)
    found = verify(program, compiler_for(device.environment)(program), device, periods=2)
    print(f"error {found.error:.2e} of {found.bound:.2e} allowed")
    return 0 if found.passed else WRONG


def under(tool: str, name: str, device_name: str) -> Verdict:
    """One case in a process that a tool starts."""
    command = [SANITIZER, "--tool", tool, "--error-exitcode", str(FOUND), sys.executable, "-m", "scripts.sanitize"]
    command += ["-", "--run", name, "--device", device_name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        return Verdict(name, tool, 124, f"{error}")
    return Verdict(name, tool, done.returncode, done.stdout + done.stderr)


def jobs(cases: list[str], tools: list[str]) -> Iterator[tuple[str, str]]:
    """Tool and case; those that look at shared memory alone, where a kernel has some."""
    for name in cases:
        shares = "__shared__" in render(*sample(name)).source
        yield from ((tool, name) for tool in tools if shares or tool not in OF_SHARED_MEMORY)


def provenance(device_name: str) -> str:
    """Versions, device and date."""
    version = subprocess.run([SANITIZER, "--version"], capture_output=True, text=True, check=False).stdout
    found = open_device(device_name).environment
    number = re.search(r"Version\s+(\S+)", version)
    return (
        f"compute-sanitizer {number[1] if number else '?'}, {found.device}, driver {found.driver}, "
        f"{found.runtime}, {found.compiler}, {found.date}"
    )


def chosen(wanted: str) -> list[str]:
    """Cases whose names begin so; comma separated."""
    return [name for name in CASES if any(name.startswith(one) for one in wanted.split(","))] if wanted else list(CASES)


def main() -> int:
    """1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--cases", default="", help="beginnings of names, comma separated [all]")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--device", default="0", help="index of a GPU")
    parser.add_argument("--workers", type=int, default=4, help="cases at a time")
    parser.add_argument("--run", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        return run(given.run, given.device)
    head = provenance(given.device)
    print(head, flush=True)
    failed = False
    with given.report.open("w") as report, ThreadPoolExecutor(given.workers) as pool:
        print(f"{head}\n", file=report, flush=True)
        todo = jobs(chosen(given.cases), given.tools.split(","))
        for verdict in pool.map(lambda job: under(*job, given.device), todo):
            print(verdict.line, flush=True)
            print(verdict.line, *verdict.quoted, sep="\n    ", file=report, flush=True)
            failed = failed or bool(verdict.code and not verdict.known)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
