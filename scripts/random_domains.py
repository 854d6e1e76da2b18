"""Run kernels of the catalogue on random domains: each is right, or refused by a rule; none is wrong.

    python -m scripts.random_domains --count 2000      the CUDA text on the host shim, and the CPU kernels compiled

A kernel is rendered for the domain of its sample, as a best.json holds it, and run on others: tiny ones, prime ones,
and those that are one cell off what fits. Prints what was refused by the rule that did it, and kernels that are wrong.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from lbmtune.backend.protocol import Binary, CompileError, Device
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import Cells
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.cores import usable_cores
from lbmtune.errors import InputError
from lbmtune.measure.verification.verify import compare
from tests.support.conformance.choices import ROOMY, Sample
from tests.support.conformance.covering import everything

_FEW, _MOST_CELLS = (1, 2, 3, 5, 7, 11, 13, 17, 19, 23), 6000
_DOMAINS_OF_A_KERNEL = 4


class Outcome(NamedTuple):
    """What became of a kernel on a domain. verdict: right, refused, wrong or other text; said: why."""

    config: KernelConfig
    case: Case
    verdict: str
    said: str = ""


def domains(case: Case, config: KernelConfig, draw: random.Random) -> Iterator[Cells]:
    """Yield random extents without an end: of each axis a fitting number, one cell off it, or a small one."""
    fitting = [case.domain, config.awkward_domain(case), *config.extra_domains(case)]
    while True:
        x, y, z = (_extent([domain[axis] for domain in fitting], draw) for axis in range(3))
        domain = (x, y, 1 if case.stencil.dimensions == 2 else z)
        if x * y * z <= _MOST_CELLS:
            yield domain


def _extent(fitting: list[int], draw: random.Random) -> int:
    how = draw.random()
    if how < 0.2:
        return draw.choice(_FEW)
    extent = draw.choice(fitting) // draw.choice((1, 1, 1, 2, 3))
    return max(1, extent + (draw.choice((-2, -1, 1, 2)) if how > 0.75 else 0))


def outcomes(sample: Sample, seed: int) -> list[Outcome]:
    """Return what becomes of one kernel on a few domains."""
    case, config = sample
    draw = random.Random(f"{seed} {case} {config.key}")
    source = domains(case, config, draw)
    compiled: tuple[Program, Binary, Device] | None = None
    found = []
    for domain in (next(source) for _ in range(_DOMAINS_OF_A_KERNEL)):
        try:
            there = replace(case, domain=domain)
        except InputError as error:
            found.append(Outcome(config, case, "refused", str(error)))
            continue
        if reason := broken(there, config, ROOMY):
            found.append(Outcome(config, there, "refused", reason))
            continue
        compiled = compiled or _compiled(sample)
        found.append(Outcome(config, there, *_run(there, compiled)))
    return found


def _compiled(sample: Sample) -> tuple[Program, Binary, Device]:
    program = render(*sample)
    if program.target == "cuda":
        from tests.shim.device import HostDevice, compile_on_host

        return program, compile_on_host(program), HostDevice()
    from lbmtune.backend.cpu import compile_cpu, open_cpu

    return program, compile_cpu(program), open_cpu()


def _run(case: Case, compiled: tuple[Program, Binary, Device]) -> tuple[str, str]:
    program = compiled[0]
    found = compare(*compiled, case, 2)
    if found.passed:
        other = render(case, program.config)
        text = "" if other.source.split("\n", 2)[2] == program.source.split("\n", 2)[2] else "another text"
        return "right", text
    return "wrong", f"error {found.error:.3g}, bound {found.bound:.3g} after {found.worst_steps} steps"


def _alone(sample: Sample, seed: int) -> list[Outcome]:
    try:
        return outcomes(sample, seed)
    except (CompileError, ValueError, InputError, IndexError, KeyError, AssertionError, ZeroDivisionError) as error:
        return [Outcome(sample[1], sample[0], "failed", f"{type(error).__name__}: {error}")]


def main() -> int:
    """Return 1 if a kernel is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--family", default="")
    parser.add_argument("--backends", default="cuda,cpu")
    parser.add_argument("--workers", type=int, default=usable_cores())
    given = parser.parse_args()
    samples = [one for name in given.backends.split(",") for one in everything(name).samples]
    samples = [one for one in samples if given.family in one[1].family]
    random.Random(given.seed).shuffle(samples)
    number = -(-given.count // _DOMAINS_OF_A_KERNEL)
    begin, counts, reasons = time.monotonic(), Counter[str](), Counter[str]()
    with ProcessPoolExecutor(given.workers) as pool:
        chosen = samples[given.skip : given.skip + number]
        for found in pool.map(partial(_alone, seed=given.seed), chosen):
            for one in found:
                counts[one.verdict] += 1
                if one.verdict == "refused":
                    reasons[one.said] += 1
                elif one.verdict != "right" or one.said:
                    print(
                        one.verdict,
                        one.case.lattice,
                        one.case.flow,
                        one.case.collision,
                        one.case.domain,
                        one.config,
                        one.said,
                        flush=True,
                    )
    print(dict(counts), f"{time.monotonic() - begin:.0f} s")
    return int(counts["wrong"] + counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
