"""Run a few time steps of a kernel as the target of a hardware profiler.

    python -m lbmtune.measure.profiling.profiler_target REQUEST...

REQUEST is a file of `write_request`. Whole periods are run from a valid state; nothing is timed. Requests that have not
started after `--limit` seconds are skipped.
"""

import argparse
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from lbmtune.backend.protocol import Binary, Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.timing.state import excite, stable_case
from lbmtune.records import Environment
from lbmtune.records.whole_files import write_atomically
from lbmtune.runtime import Simulation

WARM_CYCLES = 4
"""Cycles of parity and buffer swap before the profiled one."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel and its device. sources: folder for the kernel text with line information; empty: none."""

    case: Case
    config: dict[str, int | str]
    device: str
    sources: str = ""


def write_request(path: Path, case: Case, config: KernelConfig, device: str, sources: str = "") -> None:
    """Write a request for `main`."""
    request = Request(case=case, config=config.flat(), device=device, sources=sources)
    write_atomically(path, msgspec.json.encode(request))


def launches(program: Program) -> int:
    """Return the number of kernel launches in the profiled cycle."""
    exchanges = program.config.propagation.exchanges(program.case.stencil)
    parities = len(program.period)
    steps = max(parities, 2 if exchanges else 1)
    return sum(len(program.period[t % parities]) for t in range(steps))


def prepared(request: Request, environment: Environment) -> tuple[Program, Binary]:
    """Render and compile the kernel; needs no device."""
    program = render(request.case, from_flat(request.config))
    return program, compiled(program, environment, Path(request.sources) if request.sources else None)


def run(request: Request, program: Program, binary: Binary, device: Device) -> None:
    """Run the warm-up cycles and the profiled one."""
    simulation = Simulation(program, binary, device, stable_case(request.case))
    excite(simulation)
    simulation.step(WARM_CYCLES * simulation.parity_steps)
    device.synchronize()
    with device.marked(program.config.key), device.looked_at():
        simulation.step(simulation.parity_steps)
        device.synchronize()


def compiled(program: Program, environment: Environment, sources: Path | None) -> Binary:
    """Compile as for timing; with a folder, with line numbers that refer to the text there."""
    if sources is None or program.target != "cuda":
        return compiler_for(environment)(program)
    from lbmtune.backend.cuda.nvrtc import compile_text

    options = (*program.options, "--generate-line-info", f"--gpu-architecture={environment.architecture}")
    return compile_text(plain_text(program.source), options, str(text_on_disk(program, sources)))


def text_on_disk(program: Program, folder: Path) -> Path:
    """Write the text of a kernel into a folder; return its path."""
    path = folder.resolve() / f"{program.config.key}.cu"
    write_atomically(path, plain_text(program.source).encode())
    return path


def plain_text(source: str) -> str:
    """Return the text without #line marks, so that line numbers are its own."""
    return "".join(line for line in source.splitlines(keepends=True) if not line.startswith("#line "))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the requests of files in order."""
    parser = argparse.ArgumentParser(prog="python -m lbmtune.measure.profiling.profiler_target", description=__doc__)
    parser.add_argument("requests", nargs="+", type=Path)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no other request starts")
    given = parser.parse_args(arguments)
    begin_s = time.monotonic()
    requests = [msgspec.json.decode(path.read_bytes(), type=Request) for path in given.requests]
    devices = {name: open_device(name) for name in {request.device for request in requests}}
    with ThreadPoolExecutor(1) as pool:  # compile the next kernels meanwhile
        jobs = [pool.submit(prepared, request, devices[request.device].environment) for request in requests]
        for request, job in zip(requests, jobs, strict=True):
            if time.monotonic() - begin_s > given.limit:
                break
            run(request, *job.result(), devices[request.device])
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
