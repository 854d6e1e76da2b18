"""Compile direct CUDA kernels with NVRTC: every legal combination of knobs that change the text.

python -m scripts.nvrtc_all [--jobs N] [--architectures sm_80 sm_90] [--every N]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import islice, product
from typing import Any

from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.backend.protocol import CompileError
from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.problem.case import Case, collides
from lbmtune.catalogue.problem.flows import box, cavity, channel
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.codegen.render import render
from lbmtune.cores import usable_cores
from lbmtune.lattice import LATTICES

Job = tuple[Case, CudaConfig, str]

PRECISIONS = (
    *(("fp64", "fp64"), ("fp32", "fp32"), ("fp32", "fp64"), ("fp16s", "fp32"), ("fp16s", "fp64")),
    *(("fp16c", "fp32"), ("bf16", "fp32")),
)
LAYOUT_PARAMETERS: dict[str, Any] = {
    "aosoa": {"width": 16},
    "bundle": {"group": 3},
    "bundle-aosoa": {"group": 5, "width": 16},
}
"""What differs from the defaults of a layout."""
LAYOUTS_TO_COMPILE = tuple(layout(**LAYOUT_PARAMETERS.get(name, {})) for name, layout in LAYOUTS.items())
REGISTERS = ("none", "64-registers", "8-blocks")
"""No limit, a cap, and launch bounds."""


def cases() -> Iterator[Case]:
    """Yield three flows with every collision of each lattice."""
    for lattice, collision in product(LATTICES, COLLISIONS):
        if not collides(collision, lattice):
            continue
        domain = (256, 64, 1 if lattice == "d2q9" else 64)
        yield box(lattice, collision, domain)
        yield cavity(lattice, collision, domain, 1.6)
        yield channel(lattice, collision, domain, 1.6)


def jobs(architectures: list[str]) -> Iterator[Job]:
    """Yield all legal combinations."""
    axes = product(SCHEMES, LAYOUTS_TO_COMPILE, PRECISIONS, (1, 2, 4, 8), ("arithmetic", "ghost"), REGISTERS)
    for case, (scheme, layout, precision, cells, wrap, limit) in product(cases(), list(axes)):
        one = cuda.Direct(scheme=scheme, layout=layout, block=(32, 4, 1), register_limit=limit)
        one = replace(one, storage=precision[0], compute=precision[1], cells_per_thread=cells, wrap=wrap)
        if broken(case, one, Limits()) is None:
            yield from ((case, one, architecture) for architecture in architectures)


def failure(job: Job) -> str:
    """Return an error, or an empty text."""
    case, config, architecture = job
    try:
        registers = compile_cuda(render(case, config), architecture).resources.registers
    except CompileError as error:
        return f"{case.lattice} {case.flow} {case.collision} {config} {architecture}: {error}"
    if config.max_registers and registers > config.max_registers:
        return f"{case.lattice} {case.flow} {config} {architecture}: {registers} registers despite the cap"
    return ""


def main() -> int:
    """Return 1 if a combination fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=usable_cores())
    parser.add_argument("--architectures", nargs="+", default=["sm_80", "sm_90"])
    parser.add_argument("--every", type=int, default=1, help="compile only every N-th combination")
    given = parser.parse_args()
    found = list(islice(jobs(given.architectures), 0, None, given.every))
    failed = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for number, problem in enumerate(pool.map(failure, found, chunksize=16), 1):
            failed += bool(problem)
            if problem:
                print(problem)
            if number % 500 == 0 or number == len(found):
                print(f"{number} of {len(found)} compiled, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
