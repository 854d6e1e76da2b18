"""Verify one kernel of each CUDA skeleton, passes, output and parts under compute-sanitizer: bounds, races, barriers.

    python -m scripts.sanitize REPORT                     all cases under the tools that concern them
    python -m scripts.sanitize REPORT --cases temporal --tools racecheck --device 0

A case is a configuration with walls, if its family supports them, on the small domain of verification. It runs in a
process of its own, started by the tool. racecheck and synccheck are run on kernels with shared memory. Halo results of
temporal blocking are invalid, because buffers are poisoned, and are discarded.
The cases "pass, ..." are kernels between the launches of steps (density and velocity, walls of second order) and output
with its copies. They run under every tool, initcheck too: their tables and fields are not poisoned beforehand.
The cases "parts, ..." are two parts of a domain on the one GPU: kernels on some planes, and those that exchange halos.
racecheck reports hazards of "temporal, neighbours": it does not see that the lanes of a warp are synchronised before
one of them raises the flag (docs/lab/moments.md). That does not count; in the next case, the same kernel with a flag
that all lanes raise, racecheck must find nothing. Nor do hazards in CuPy's own kernels count, such as its `nonzero`,
by which the tables of walls are made.
Prints a line per case and tool. REPORT also gets versions, device, date, and the messages of the tools. The exit code
is 1 if a tool found another error or a result is wrong.
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

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.config import parse_config
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render, render_on_planes
from lbmtune.decomposition.coupling import Coupling, Transport
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.measure.parts.proof import agreement
from lbmtune.measure.timing.output import check_fields, outputs
from lbmtune.measure.timing.state import WrongResultError, excite
from lbmtune.measure.verification.verify import describe_failure, verify, verify_simulation
from lbmtune.measure.workers.side_tasks import simulation_with, with_side_task
from lbmtune.records.claims import SideTask
from lbmtune.runtime import Simulation
from lbmtune.runtime.parts.coupled import CoupledSimulation
from scripts.conformance import wrong_fields
from tests.support.conformance.choices import Sample, case_of

SANITIZER = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
OF_SHARED_MEMORY, OF_PASSES = ("racecheck", "synccheck"), ("initcheck",)
FOUND, WRONG = 9, 1
"""Exit codes of a tool that found something, and of a case with a wrong result."""
LIMIT_S, QUOTED_LINES = 240, 40
_MOMENTS = "family=temporal-blocking,representation=moments,block=32x8x1,chunk_planes=5,pack=2"
_POPULATIONS = "family=temporal-blocking,block=32x8x1,chunk_planes=5,steps=2"
_PERSISTENT = "family=persistent,layout=rows"
_SPARSE = "family=sparse,block=32x1x1"
_COLUMN = "family=column,block=32x2x1"
CASES: Mapping[str, tuple[str, str, str, str]] = {
    "direct": ("grinder", "d3q19", "bgk", "block=32x2x1"),
    "direct, in place, vectors": ("grinder", "d3q19", "bgk", "scheme=aa,block=8x2x1,cells_per_thread=4"),
    "direct, pairs of halves": (
        *("cavity", "d3q19", "trt"),
        "scheme=esoteric-pull,storage=fp16s,block=8x4x1,cells_per_thread=8",
    ),
    "direct, ghost layer": ("cavity", "d3q27", "bgk", "scheme=esoteric-twist,block=32x2x1,wrap=ghost"),
    "direct, flags": ("solids", "d3q19", "bgk", "storage=fp16c,block=32x2x1,flags=memory"),
    "direct, flags, predicated": (
        *("solids", "d3q19", "bgk"),
        "scheme=aa,storage=bf16,block=32x2x1,boundary=predicated,flags=memory",
    ),
    "direct, implicit walls": (
        *("rocks", "d3q19", "bgk"),
        "scheme=esoteric-twist,block=32x2x1,boundary=implicit,flags=memory",
    ),
    "direct, pointer swap": (
        *("grinder", "d3q19", "bgk"),
        "scheme=esoteric-twist,block=32x2x1,cells_per_thread=2,pointer_swap=1",
    ),
    "direct, hints and order": (
        *("grinder", "d3q19", "bgk"),
        "block=32x2x1,block_order=z-curve,load_hint=streaming,store_hint=streaming",
    ),
    "direct, shared starts": ("grinder", "d3q19", "bgk", "block=32x2x1,addresses=shared"),
    "direct, macroscopics": ("grinder", "d3q19", "bgk", "block=32x2x1,macroscopics=every-step"),
    "direct, dependent launches": ("grinder", "d3q19", "bgk", "block=32x2x1,launch=dependent"),
    "direct, two-step": ("grinder", "d3q19", "bgk", "scheme=two-step,block=32x2x1"),
    "direct, swap": ("grinder", "d3q19", "bgk", "scheme=swap,block=32x2x1"),
    "direct, ghost cells of blocks": ("grinder", "d3q19", "bgk", "scheme=ghost-cell,block=8x4x4"),
    "direct, patches, flags": ("patched", "d3q19", "bgk", "block=32x2x1,flags=memory"),
    "direct, patches": ("patched", "d3q19", "bgk", "scheme=aa,block=32x2x1,cells_per_thread=2"),
    "column": ("grinder", "d3q19", "bgk", f"{_COLUMN},z_cells=3"),
    "column, prefetch": ("grinder", "d3q19", "bgk", f"{_COLUMN},z_cells=3,prefetch_cells=1"),
    "column, far prefetch": ("grinder", "d3q19", "bgk", f"{_COLUMN},z_cells=5,prefetch_cells=2"),
    "column, cp.async": (
        *("grinder", "d3q19", "bgk"),
        f"{_COLUMN},scheme=aa,cells_per_thread=2,prefetch_cells=2,prefetch_to=shared,z_cells=5",
    ),
    "sparse": ("rocks", "d3q19", "bgk", _SPARSE),
    "sparse, in place, prefetch": ("rocks", "d3q19", "bgk", f"{_SPARSE},scheme=aa,prefetch_index=96"),
    "sparse, three pointers": ("rocks", "d3q19", "bgk", f"{_SPARSE},scheme=esoteric-twist,links=three_pointers"),
    "sparse, six pointers": (
        *("rocks", "d3q19", "bgk"),
        f"{_SPARSE},scheme=aa,boundary=implicit,links=six_pointers",
    ),
    "sparse, several sites": ("rocks", "d3q19", "bgk", f"{_SPARSE},prefetch_sites=1,sites_per_thread=3"),
    "sparse, cp.async": ("rocks", "d3q19", "bgk", f"{_SPARSE},prefetch_sites=2,prefetch_to=shared,sites_per_thread=3"),
    "sparse, pointer swap": ("solids", "d3q19", "bgk", f"{_SPARSE},scheme=esoteric-pull,pointer_swap=1"),
    "temporal": ("box", "d3q19", "regularised", f"{_MOMENTS},steps=3,rows=2"),
    "temporal, cp.async": ("box", "d3q27", "regularised", f"{_MOMENTS},steps=2,rows=2,plane_fetch=cp_async"),
    "temporal, bulk copies": ("box", "d3q19", "regularised", f"{_MOMENTS},steps=3,rows=2,plane_fetch=bulk,overread=1"),
    "temporal, shared buffer": (
        *("box", "d3q19", "regularised"),
        f"{_MOMENTS},steps=2,rows=2,plane_fetch=cp_async,z_buffer=shared",
    ),
    "temporal, one step": ("box", "d3q19", "regularised", f"{_MOMENTS},steps=1,cells_per_thread=2"),
    "temporal, neighbours": ("box", "d3q19", "regularised", f"{_MOMENTS},steps=2,rows=2,warp_sync=neighbours"),
    "temporal, neighbours, all lanes": (
        *("box", "d3q19", "regularised"),
        f"{_MOMENTS},steps=2,rows=2,warp_sync=neighbours",
    ),
    "temporal, walls": ("grinder", "d3q19", "regularised", f"{_MOMENTS},steps=2"),
    "temporal, flags": ("solids", "d3q19", "regularised", f"{_MOMENTS},steps=2,flags=memory,plane_fetch=cp_async"),
    "temporal, flags of some planes": (
        *("cavity", "d3q19", "regularised"),
        f"{_MOMENTS},steps=2,rows=2,flags=memory,plane_fetch=cp_async",
    ),
    "temporal, populations": ("box", "d3q19", "bgk", f"{_POPULATIONS},rows=2,plane_fetch=cp_async"),
    "temporal, populations, walls": ("grinder", "d3q19", "bgk", _POPULATIONS),
    "temporal, two dimensions": ("grinder", "d2q9", "regularised", f"{_MOMENTS},steps=3,plane_fetch=cp_async"),
    "face exchange": (
        *("solids", "d3q19", "regularised"),
        "family=face-exchange,layout=soa,tile=8x4x2,flags=memory,prefetch_to=shared",
    ),
    "persistent": ("grinder", "d3q19", "bgk", f"{_PERSISTENT},block=8x2x1,tile_planes=2"),
    "persistent, neighbours, flags": (
        *("solids", "d3q19", "bgk"),
        f"{_PERSISTENT},block=8x2x1,tile_planes=2,grid_sync=neighbours,flags=memory",
    ),
    "persistent, moments": (
        *("grinder", "d3q19", "regularised"),
        f"{_PERSISTENT},representation=moments,block=16x4x1,tile_planes=4,register_planes=2",
    ),
}
"""Flow, lattice, collision and configuration."""
_WALLS, _OUTPUT = "pass, walls of second order", "pass, output"
PASSES: Mapping[str, tuple[str, str, str, str]] = {
    "pass, box": ("box", "d3q19", "bgk", "scheme=aa,block=32x2x1"),
    "pass, two dimensions": ("box", "d2q9", "bgk", "block=32x1x1"),
    "pass, halves, moving walls": ("grinder", "d3q19", "bgk", "scheme=aa,storage=fp16s,block=32x2x1"),
    "pass, double precision, flags": (
        *("solids", "d3q19", "bgk"),
        "scheme=esoteric-pull,storage=fp64,compute=fp64,block=32x2x1,flags=memory",
    ),
    "pass, inlets": ("opened", "d3q19", "bgk", "block=32x2x1"),
    "pass, list": ("rocks", "d3q19", "bgk", f"{_SPARSE},scheme=aa"),
    "pass, moments": ("box", "d3q19", "regularised", f"{_MOMENTS},steps=2"),
    _WALLS: ("beads", "d3q19", "bgk", f"{_SPARSE},scheme=aa"),
    _OUTPUT: ("box", "d3q19", "bgk", "block=32x2x1"),
}
"""Cases of the kernels whose states passes take have flow, lattice, collision and knobs, too."""
PARTS: Mapping[str, tuple[str, str, str, str]] = {
    "parts, direct": ("grinder", "d3q19", "bgk", "scheme=esoteric-pull,block=32x2x1"),
    "parts, copy": ("grinder", "d3q19", "bgk", "scheme=esoteric-pull,block=32x2x1"),
    "parts, host": ("grinder", "d3q19", "bgk", "scheme=esoteric-pull,block=32x2x1"),
    "parts, column": ("grinder", "d3q19", "bgk", f"{_COLUMN},z_cells=3"),
    "parts, temporal": ("box", "d3q19", "regularised", f"{_MOMENTS},steps=2"),
}
"""Cases of the kernels that update the parts of a domain have flow, lattice, collision and knobs, too."""
_TRANSPORT: Mapping[str, Transport] = {"parts, copy": "copy", "parts, host": "host"}
"""The ways in which parts exchange other than by a kernel that stores."""
ALL: Mapping[str, tuple[str, str, str, str]] = CASES | PASSES | PARTS
_RESIDUAL_ERROR = 1e-4
"""Relative rounding error of a residual in single precision."""
_PACKED, _PASS_DOMAIN, _PARTS_DOMAIN = "packing:fraction=0.4:radius=5", (24, 20, 18), (33, 23, 42)
"""Spheres whose walls are of second order, the domain of these and of output, and that of parts."""
FALSE_ALARM = ("racecheck", "temporal, neighbours")
"""A tool and the case in which it reports a race that is none."""
CUPY = "cupy_"
"""Beginning of the names of CuPy's kernels, which make the tables of a pass."""
ALL_LANES: Mapping[str, str] = {
    "mbarrier.init.shared.b64 [%0], 1;": "mbarrier.init.shared.b64 [%0], 32;",
    "if (lane == 0) raise(own);": "raise(own);",
    "LANES = 32 * CELLS * WARPS,": "LANES = 32 * CELLS * (WARPS + 1),",  # the added rows are unused
}
"""Changes by which all lanes raise the flag of their warp."""
MORE_BYTES = 16 << 10
"""Shared memory for the added rows, and more."""


@dataclass(frozen=True)
class Verdict:
    """The result of a case under a tool. code: 0 if nothing was found; log: output of the tool and the case."""

    name: str
    tool: str
    code: int
    log: str

    @property
    def line(self) -> str:
        """The case, the tool, and the result."""
        said = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", self.log)
        words = {0: "nothing found", FOUND: "errors found", WRONG: "wrong result"}
        ended = words.get(self.code, f"exit code {self.code}")
        known = "; does not count" if self.known else ""
        return f"{self.name:30} {self.tool:10} {ended}; {'; '.join(said) or '-'}{known}"

    @property
    def known(self) -> bool:
        """True for a false alarm, and for races that lie in CuPy's own kernels alone."""
        return self.code == FOUND and ((self.tool, self.name) == FALSE_ALARM or self._elsewhere)

    @property
    def _elsewhere(self) -> bool:
        """Return whether racecheck reports accesses of CuPy's kernels alone."""
        places = re.findall(r"access at (\S+)", self.log)
        return self.tool == "racecheck" and bool(places) and all(place.startswith(CUPY) for place in places)

    @property
    def quoted(self) -> list[str]:
        """The first lines of output, if something was found."""
        return self.log.splitlines()[:QUOTED_LINES] if self.code else []


def sample(name: str) -> Sample:
    """Return the case and configuration of a name, on a large enough domain; verification uses a smaller one."""
    flow, lattice, collision, text = ALL[name]
    config = parse_config(text, "cuda")
    case = case_of("box" if name == _WALLS else flow, lattice, collision)
    if name == _WALLS:
        case = replace(case, flow=flow, geometry=_PACKED)
    if name in (_WALLS, _OUTPUT):
        case = replace(case, domain=_PASS_DOMAIN)
    if name in PARTS:
        case = replace(case, domain=_PARTS_DOMAIN)
    if config.family == "persistent":
        case = replace(case, domain=config.awkward_domain(case))
    return case, config


def program_of(name: str) -> Program:
    """Return the program of a case."""
    program = render(*sample(name))
    if name != "temporal, neighbours, all lanes":
        return program
    assert all(now in program.source for now in ALL_LANES)
    source = reduce(lambda text, change: text.replace(*change), ALL_LANES.items(), program.source)
    ((launch,),) = program.period
    return replace(program, source=source, period=((replace(launch, shared_bytes=launch.shared_bytes + MORE_BYTES),),))


def run(name: str, device_name: str) -> int:
    """Verify one case in this process, which a tool has started."""
    import cupy

    # a separate allocation for each array, so that accesses past its end are out of bounds
    cupy.cuda.set_allocator(None)
    device = open_device(device_name)
    compiler = compiler_for(device.environment)
    check = wrong_pass if name in PASSES else wrong_parts if name in PARTS else wrong_step
    wrong = check(name, device, compiler)
    print(wrong or "right")
    return WRONG if wrong else 0


def wrong_step(name: str, device: Device, compiler: Compiler) -> str | None:
    """Verify the kernel of a case; return what is wrong, or None."""
    program = program_of(name)
    found = verify(program, compiler(program), device, periods=2)
    return None if found.passed else describe_failure(found)


def wrong_pass(name: str, device: Device, compiler: Compiler) -> str | None:
    """Verify what a pass leaves; return what is wrong, or None."""
    program, task = render(*sample(name)), SideTask("walls")
    if name == _WALLS:
        program = with_side_task(program, task)
        found = verify_simulation(simulation_with(task, program, compiler(program), device, program.case))
        return None if found.passed else describe_failure(found)
    if name == _OUTPUT:
        return _wrong_output(Simulation(program, compiler(program), device), device, compiler)
    return wrong_fields(program, device, compiler)


def wrong_parts(name: str, device: Device, compiler: Compiler) -> str | None:
    """Compare two parts on one device with the whole domain; return what is wrong, or None."""
    case, config = sample(name)
    program = render(case, config)
    some = render_on_planes(program)
    assert some, f"{name}: its kernel has no launches on some planes"
    found, coupling = decomposed(case, config, parse_cut("z:2")), Coupling(_TRANSPORT.get(name, "pack"), "edge-first")
    parts = CoupledSimulation(some, compiler(some), [device, device], found, coupling, compiler, poisons=True)
    apart = agreement(Simulation(program, compiler(program), device), parts, exchanges=2)
    return (
        None if apart.passed else f"the parts lie {apart.worst:.3g} apart from the whole; rounding: {apart.bound:.3g}"
    )


def _wrong_output(simulation: Simulation, device: Device, compiler: Compiler) -> str | None:
    excite(simulation)
    velocities = []
    with outputs(simulation, device, compiler, None) as found:
        for _ in range(2):
            simulation.step(2)
            velocities.append(simulation.macroscopic()[1])
            for act in found.kinds.values():
                act()
        try:
            check_fields(simulation, found.fields())
        except WrongResultError as error:
            return str(error)
        before, now = velocities
        expected = float(abs(now - before).sum() / abs(now).sum())
        right = abs(found.residual / expected - 1) < _RESIDUAL_ERROR
        return None if right else f"the residual is {found.residual}, which has to be {expected}"


def under(tool: str, name: str, device_name: str) -> Verdict:
    """Run one case in a process that a tool starts."""
    command = [SANITIZER, "--tool", tool, "--error-exitcode", str(FOUND), sys.executable, "-m", "scripts.sanitize"]
    command += ["-", "--run", name, "--device", device_name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        return Verdict(name, tool, 124, f"{error}")
    return Verdict(name, tool, done.returncode, done.stdout + done.stderr)


def jobs(cases: list[str], tools: list[str]) -> Iterator[tuple[str, str]]:
    """Yield tools and cases: all for passes; of steps, tools of shared memory only for kernels that use it."""
    for name in cases:
        shares = name in PASSES or "__shared__" in render(*sample(name)).source
        left_out = () if name in PASSES else (*OF_PASSES, *(() if shares else OF_SHARED_MEMORY))
        yield from ((tool, name) for tool in tools if tool not in left_out)


def provenance(device_name: str) -> str:
    """Return versions, device and date."""
    version = subprocess.run([SANITIZER, "--version"], capture_output=True, text=True, check=False).stdout
    found = open_device(device_name).environment
    number = re.search(r"Version\s+(\S+)", version)
    return (
        f"compute-sanitizer {number[1] if number else '?'}, {found.device}, driver {found.driver}, "
        f"{found.runtime}, {found.compiler}, {found.date}"
    )


def chosen(wanted: str) -> list[str]:
    """Return the cases whose names begin with one of comma-separated texts."""
    return [name for name in ALL if any(name.startswith(one) for one in wanted.split(",")) or not wanted]


def main() -> int:
    """Return 1 if something was found."""
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
