"""Our CPU kernels beside lbmpy's generated ones: D3Q19 BGK, one process, one round after the other.

In single precision, or with --precision fp64 in double, all from the same random state.
lbmpy's kernels are vectorised for AVX-512 (AVX where that is missing) and run under OpenMP on as many threads as
ours, on arrays of fixed shape. They update the box without its periodic boundary; ours include it.
What counts are ratios within a round, because a machine drifts and other programs come and go.

Which of our kernels is fastest differs by processor: the list has the best of several, and best.json files of studies
on this one may be added. All run in a few heats first; the fastest of each kind go on, and only later rounds count.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.device import CpuDevice
from lbmtune.catalogue.config import KernelConfig, from_flat, parse_config
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.layouts.layout import array_length
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.catalogue.storage import stored_extents
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.measure.timing.random_fill import fill_random
from lbmtune.measure.verification.verify import verify
from lbmtune.records.best import read_best
from lbmtune.runtime import Simulation

OURS = Path(__file__).with_name("peer_cpu.txt")
PEERS = ("pull", "aa", "esotwist", "esopull")
SWEPT = "several steps per launch, "
"""Kinds of kernels that do several time steps at once, which their steps of a round are a multiple of."""
PAGE_BYTES = 2 << 20
NOISE = 1e-4
"""Deviations from the weights that all start from."""
RELAXATION_RATE = 1.6


@dataclass
class Contender:
    """A kernel and its speed in each round, in MLUPS. kind: 'two lattices', 'in place', 'fp16s', or SWEPT before those.

    reset: makes what lies in its memory a state of this kernel.
    """

    name: str
    kind: str
    reset: Callable[[], None]
    run: Callable[[int], None]
    mlups: list[float] = field(default_factory=list)

    def time(self, sites: int, steps: int) -> None:
        """One round: a warm-up of one period, then the steps."""
        self.reset()
        self.run(2)
        start_s = time.perf_counter()
        self.run(steps)
        self.mlups.append(sites * steps / (time.perf_counter() - start_s) / 1e6)


class SharedMemory(CpuDevice):
    """The CPU with buffers that all programs share: only one runs at a time, and the box is large."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        raw = np.zeros(size_bytes + PAGE_BYTES, np.uint8)
        self._memory = raw[-raw.ctypes.data % PAGE_BYTES :]
        self.used_bytes = 0

    def empty(self, elements: int, dtype: str, _placing: Any = None) -> Any:
        """The next part of the memory."""
        size = elements * np.dtype(dtype).itemsize
        part = self._memory[self.used_bytes : self.used_bytes + size]
        assert part.size == size
        self.used_bytes += -(-size // PAGE_BYTES) * PAGE_BYTES
        return part.view(dtype)


def strided(case: Case, text: str) -> dict[str, Any]:
    """A configuration in flat form; `stride=padded` stands for the stride that rows and padding make of the case."""
    flat = parse_config(text.replace(",stride=padded", ""), "cpu").flat()
    if not text.endswith(",stride=padded"):
        return flat
    elements = array_length(from_flat(flat).memory, stored_extents(case, from_flat(flat)))
    return {**flat, "padding": 0, "stride": elements}


def our_configs(case: Case, listed: Path, paths: list[Path], threads: int, precision: str) -> list[KernelConfig]:
    """Those of the best.json files and those of a list, in double what it has in single."""
    lines = [line.partition("#")[0].strip() for line in listed.read_text(encoding="utf-8").splitlines()]
    flats = [strided(case, line) for line in lines if line]
    if precision == "fp64":
        double = {"storage": "fp64", "compute": "fp64"}
        flats = [{**flat, **double} for flat in flats if flat["storage"] == "fp32"]
    flats += [read_best(path).configuration for path in paths]
    return [from_flat({**flat, "backend": "cpu", "threads": threads}) for flat in flats]


def our_contender(case: Case, config: KernelConfig, memory: SharedMemory) -> Contender:
    """A verified program of ours. Raises InputError where the configuration is not legal here."""
    if reason := broken(case, config, memory.limits):
        raise InputError(f"{config}: {reason}.")
    program = render(case, config)
    binary = compile_cpu(program)
    if not (found := verify(program, binary, open_cpu())).passed:
        raise InputError(f"{config} is wrong: {found}.")
    memory.used_bytes = 0
    simulation = Simulation(program, binary, memory)
    kind = "fp16s" if config.storage == "fp16s" else "in place" if config.propagation.in_place else "two lattices"
    kind = SWEPT + kind if config.fused_steps > 1 else kind

    def reset() -> None:
        for buffer in simulation.buffers.values():
            fill_random(buffer, NOISE, np, config.stored)

    return Contender(config.said, kind, reset, simulation.step)


def peer_contender(pattern: str, threads: int, bits: int, flat: list[Any], arrays: list[Any]) -> Contender:
    """The kernel that lbmpy generates for a streaming pattern; arrays: views of the flat ones."""
    import pystencils as ps
    from lbmpy import LBMConfig, LBMOptimisation, LBStencil, Method, Stencil
    from lbmpy.advanced_streaming import Timestep, is_inplace
    from lbmpy.creationfunctions import create_lb_function

    in_place = is_inplace(pattern)
    fields = [ps.Field.create_from_numpy_array(n, a, index_dimensions=1) for n, a in zip("ab", arrays, strict=True)]
    target = ps.Target.X86_AVX512 if bits == 512 else ps.Target.X86_AVX

    def kernel(timestep: Any) -> Any:
        config = ps.CreateKernelConfig(target=target, default_dtype=str(flat[0].dtype), ghost_layers=1)
        config.cpu.openmp.enable, config.cpu.openmp.num_threads = True, threads
        config.cpu.vectorize.enable = config.cpu.vectorize.assume_inner_stride_one = True
        method = LBMConfig(
            stencil=LBStencil(Stencil.D3Q19),
            method=Method.SRT,
            relaxation_rate=RELAXATION_RATE,
            compressible=True,
            streaming_pattern=pattern,
            timestep=timestep,
        )
        places = LBMOptimisation(symbolic_field=fields[0], symbolic_temporary_field=None if in_place else fields[1])
        return create_lb_function(lbm_config=method, lbm_optimisation=places, config=config)

    kernels = [kernel(t) for t in ((Timestep.EVEN, Timestep.ODD) if in_place else (Timestep.BOTH,))]

    def run(steps: int) -> None:
        for step in range(steps):
            if in_place:
                kernels[step % 2](a=arrays[0])
            else:
                kernels[0](a=arrays[step % 2], b=arrays[1 - step % 2])

    def reset() -> None:
        for array in flat:
            fill_random(array, NOISE, np)

    return Contender(f"lbmpy {pattern}", "in place" if in_place else "two lattices", reset, run)


def peer_arrays(domain: tuple[int, int, int], dtype: str) -> tuple[list[Any], list[Any]]:
    """Two lattices of deviations from the weights: flat, and as (x, y, z, direction), x fastest, with a ghost layer."""
    shape = (19, *(n + 2 for n in reversed(domain)))
    flat = [np.empty(prod(shape), dtype) for _ in range(2)]
    return flat, [array.reshape(shape).transpose(3, 2, 1, 0) for array in flat]


def ratio(above: Contender, below: Contender) -> str:
    """Median and range of the ratio within a round."""
    values = [a / b for a, b in zip(above.mlups, below.mlups, strict=True)]
    return f"{median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def qualified(contenders: list[Contender], places: int) -> list[Contender]:
    """The fastest of each kind by their best round, in their order; what they ran so far counts no more."""
    ranked = sorted(contenders, key=lambda c: -max(c.mlups))
    ahead = {id(c): sum(other.kind == c.kind for other in ranked[:place]) for place, c in enumerate(ranked)}
    chosen = [c for c in contenders if ahead[id(c)] < places]
    for contender in chosen:
        contender.mlups.clear()
    return chosen


def run_rounds(contenders: list[Contender], what: str, rounds: int, sites: int, steps: int) -> None:
    """So many rounds, one contender after the other."""
    for number in range(rounds):
        for contender in contenders:
            contender.time(sites, steps)
        print(f"{what} {number + 1} of {rounds}", file=sys.stderr)


def best(contenders: list[Contender], kind: str) -> Contender:
    """The highest median of a kind."""
    return max((c for c in contenders if c.kind == kind), key=lambda c: median(c.mlups))


RATIOS: tuple[tuple[Mapping[str, float], str, str, str], ...] = (
    ({"fp32": 1.0, "fp64": 0.95}, "in place", "lbmpy", "in place"),
    ({"fp32": 1.2}, "two lattices", "lbmpy", "two lattices"),
    ({"fp32": 1.7}, "fp16s", "ours", "in place"),
    ({"fp32": 1.6}, SWEPT + "in place", "ours", "in place"),
    ({"fp32": 1.4}, SWEPT + "in place", "lbmpy", "in place"),
    ({"fp32": 2.1}, SWEPT + "fp16s", "ours", "in place"),
)
"""What the project is held to, by the precision of what is compared with: at least that many times as fast is our best
kernel of a kind as the best of another."""


def report(ours: list[Contender], peers: list[Contender], precision: str) -> None:
    """The table and the ratios, each with what the project is held to in this precision, if it is."""
    print(f"{'median':>8} {'lowest':>8} {'highest':>8}  MLUPS")
    for c in sorted(ours + peers, key=lambda c: (c.kind, -median(c.mlups))):
        print(f"{median(c.mlups):8.1f} {min(c.mlups):8.1f} {max(c.mlups):8.1f}  {c.kind}: {c.name}")
    kinds = {c.kind for c in ours}
    for aims, kind, whose, other in RATIOS:
        if kind not in kinds:
            continue
        above, below = best(ours, kind), best(peers if whose == "lbmpy" else ours, other)
        print(f"{ratio(above, below)}, aim {aims.get(precision, 'none')}: {above.name} / {below.name}")


def main() -> int:
    """Prints the table; 1 where lbmpy is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("best", nargs="*", type=Path, help="best.json files of studies, beside the committed list")
    parser.add_argument("--list", type=Path, default=OURS, help="a file of our configurations, one a line")
    parser.add_argument("--edge", type=int, default=256, help="cells along each axis")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--heats", type=int, default=2, help="rounds of all our kernels ahead of them")
    parser.add_argument("--places", type=int, default=2, help="kernels of each kind that go on")
    parser.add_argument("--steps", type=int, default=24, help="time steps of a round, an even number")
    parser.add_argument("--threads", type=int, default=open_cpu().limits.cores)
    parser.add_argument("--precision", choices=("fp32", "fp64"), default="fp32", help="of lbmpy's and our list's")
    options = parser.parse_args()
    try:
        import lbmpy  # noqa: F401
    except ImportError:
        print(
            "lbmpy is not installed in this environment; run make peer-cpu, or pip install lbmpy==2.0.", file=sys.stderr
        )
        return 1
    domain = (options.edge,) * 3
    case = box("d3q19", "bgk", domain, RELAXATION_RATE)
    dtype = {"fp32": "float32", "fp64": "float64"}[options.precision]
    memory = SharedMemory(int(1.3 * 2 * 19 * np.dtype(dtype).itemsize * case.sites))
    configs = our_configs(case, options.list, options.best, options.threads, options.precision)
    ours = [our_contender(case, config, memory) for config in configs]
    flat, arrays = peer_arrays(domain, dtype)
    bits = memory.limits.vector_bits
    peers = [peer_contender(pattern, options.threads, bits, flat, arrays) for pattern in PEERS]
    if options.heats:
        run_rounds(ours, "heat", options.heats, case.sites, options.steps)
        ours = qualified(ours, options.places)
    run_rounds(ours + peers, "round", options.rounds, case.sites, options.steps)
    report(ours, peers, options.precision)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"peer_cpu: {error}")
