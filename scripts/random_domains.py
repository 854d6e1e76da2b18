"""Run kernels of the catalogue on random domains: each is right or refused; none is wrong.

    python -m scripts.random_domains              2,000: the CUDA text on the host shim, and the CPU kernels compiled
    python -m scripts.random_domains --on 0       the CUDA kernels on GPU 0

A kernel is compiled for the domain of its sample, as a best.json holds it, and runs on others: tiny ones, prime ones,
and those that are a cell off what fits. Where the rules admit the domain it is compared with the oracle, and so is the
kernel of steps that are left over; neither may write outside its arrays. What the file would say of each domain has to
agree with the rules. Prints how many of each family are right and refused, and the kernels that are wrong.
"""

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

from lbmtune.backend.protocol import Binary, Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import Cells
from lbmtune.codegen.describe_domain import domain_rules
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render, render_single
from lbmtune.cores import usable_cores
from lbmtune.errors import InputError
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.verification.verify import compare, describe_failure, verify_single
from lbmtune.records.best_json.domain import DomainRules
from lbmtune.runtime.memory import array_names
from tests.support.conformance.choices import ROOMY, Sample
from tests.support.conformance.covering import everything

_FEW, _MOST_CELLS, OF_A_KERNEL, _PERIODS = (1, 2, 3, 5, 7, 11, 13, 17, 19, 23), 12_000, 4, 2
LIMITS = replace(ROOMY, memory_bytes=2**120)
"""Memory that any domain fits into: how much there is says nothing of a kernel."""
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"


class Outcome(NamedTuple):
    """What became of a kernel on a domain, and why."""

    verdict: str
    family: str
    kernel: str
    domain: Cells
    said: str = ""


def domains(case: Case, config: KernelConfig, draw: random.Random) -> Iterator[Cells]:
    """Yield random extents without an end: along each axis as many cells as fit, a few off that, or a small number."""
    fitting = [case.domain, config.awkward_domain(case), *config.extra_domains(case)]
    while True:
        x, y, z = (_extent([domain[axis] for domain in fitting], draw) for axis in range(3))
        if x * y * z <= _MOST_CELLS:
            yield x, y, z if case.stencil.dimensions == 3 or draw.random() < 0.1 else 1


def _extent(fitting: Sequence[int], draw: random.Random) -> int:
    how = draw.random()
    if how < 0.2:
        return draw.choice(_FEW)
    return max(1, draw.choice(fitting) // draw.choice((1, 1, 1, 2, 3)) + draw.choice((-2, -1, 1, 2)) * (how > 0.75))


def refusal(sample: Sample, domain: Cells, limits: Limits = LIMITS) -> str | None:
    """Return why a domain does not fit a kernel by the rules of its case and of its family, or None."""
    try:
        return broken(replace(sample[0], domain=domain), sample[1], limits)
    except InputError as error:
        return str(error)


def refused_by(rules: DomainRules, sample: Sample, domain: Cells) -> str | None:
    """Return why a domain does not fit by what a best.json says, or None."""
    try:
        stored = sample[1].stored_extents(sample[0], domain)[:3]
    except InputError:  # a list of sites is there for cases alone
        stored = domain
    numbers = dict(zip(("nx", "ny", "nz", "NX", "NY", "NZ"), (*domain, *stored), strict=True))
    return rules.refusal(numbers, LIMITS.multiprocessors)


def outcomes(sample: Sample, seed: int, where: str = "") -> list[Outcome]:
    """Return what becomes of a kernel on a few domains. where: the index of a GPU; the shim or the processor if not."""
    case, config = sample
    source = domains(case, config, random.Random(f"{seed} {case} {config.key}"))
    kernel = f"{case.lattice} {case.flow} {case.collision} {config.brief}"
    program = render(case, config)
    rules = domain_rules(program, LIMITS)
    made: _Made | None = None
    found = []
    for domain in (next(source) for _ in range(OF_A_KERNEL)):
        reason = refusal(sample, domain)
        verdict, said = REFUSED, reason or ""
        if (refused_by(rules, sample, domain) is None) != (reason is None):
            verdict, said = WRONG, f"by the rules: {reason}; by the file: {refused_by(rules, sample, domain)}"
        elif reason is None:
            made = made or _made(program, where)
            verdict, said = _run(program, made, replace(case, domain=domain))
        found.append(Outcome(verdict, f"{config.backend} {config.family}", kernel, domain, said))
    return found


class _Made(NamedTuple):
    """A compiled kernel, its device, and the kernel of the steps that are left over."""

    binary: Binary
    device: Device
    single: tuple[Program, Binary] | None


def _made(program: Program, where: str) -> _Made:
    compiler, device = _place(program, where)
    single = render_single(program)
    return _Made(compiler(program), device, (single, compiler(single)) if single else None)


def _place(program: Program, where: str) -> tuple[Callable[[Program], Binary], Device]:
    if where:
        device = open_device(where)
        return compiler_for(device.environment), device
    if program.target == "cuda":
        from tests.shim.device import HostDevice, compile_on_host

        return compile_on_host, HostDevice()
    from lbmtune.backend.cpu import compile_cpu, open_cpu

    return compile_cpu, open_cpu()


def _run(program: Program, made: _Made, case: Case) -> tuple[str, str]:
    device = PooledDevice(made.device)  # with guard bands around what it gives
    checks = [lambda: compare(program, made.binary, device, case, _PERIODS)]
    if single := made.single:
        checks.append(lambda: verify_single(program, made.binary, device, single, case))
    for check in checks:
        device.reset()
        found = check()
        if not found.passed:
            return WRONG, describe_failure(found)
        device.check_guards(array_names(program))
    return RIGHT, ""


def survived(sample: Sample, seed: int, work: Callable[[Sample, int], list[Outcome]]) -> list[Outcome]:
    """Return what becomes of a kernel by a function; what it raises is a failure."""
    try:
        return work(sample, seed)
    except Exception:
        # a failure of one kernel must not prevent the others
        return [failed(sample, traceback.format_exc(limit=-2))]


def failed(sample: Sample, said: str) -> Outcome:
    """Return the outcome of a kernel that could not be tried."""
    case, config = sample
    kernel = f"{case.lattice} {case.flow} {case.collision} {config.brief}"
    return Outcome(WRONG, f"{config.backend} {config.family}", kernel, case.domain, said)


def in_parallel(
    samples: Sequence[Sample], seed: int, work: Callable[[Sample, int], list[Outcome]], workers: int
) -> Iterator[list[Outcome]]:
    """Yield what becomes of kernels by a function, in several processes; one that ends its process is wrong."""
    todo = list(samples)
    while todo:
        with ProcessPoolExecutor(workers) as pool:
            try:
                for found in pool.map(partial(survived, seed=seed, work=work), todo[:]):
                    yield found
                    todo.pop(0)
                continue
            except BrokenProcessPool:
                pass
        with ProcessPoolExecutor(1) as pool:  # alone: the first one that is left need not be the one that ended it
            try:
                yield pool.submit(survived, todo[0], seed, work).result()
            except BrokenProcessPool:
                yield [failed(todo[0], "ends its process")]
        todo.pop(0)


def chosen(backends: Sequence[str], seed: int) -> list[Sample]:
    """Return the kernels of a conformance run in a random order, one of each family in turn."""
    draw, by_family = random.Random(seed), dict[str, list[Sample]]()
    for sample in (one for backend in backends for one in everything(backend).samples):
        by_family.setdefault(f"{sample[1].backend} {sample[1].family}", []).append(sample)
    for samples in by_family.values():
        draw.shuffle(samples)
    return [one for turn in zip_longest(*by_family.values()) for one in turn if one]


def main() -> int:
    """Return 1 if a kernel is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="", help="the index of a GPU; without it the host shim and the processor")
    parser.add_argument("--count", type=int, default=2000, help="domains")
    parser.add_argument("--skip", type=int, default=0, help="kernels to leave out, of those that the seed gives")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=usable_cores())
    given = parser.parse_args()
    samples = chosen(("cuda",) if given.on else ("cuda", "cpu"), given.seed)[given.skip :]
    found = in_parallel(
        samples[: -(-given.count // OF_A_KERNEL)], given.seed, partial(outcomes, where=given.on), given.workers
    )
    return told(found)


def told(outcomes_of: Iterable[Sequence[Outcome]]) -> int:
    """Print what is wrong as it comes, then counts; return whether anything is."""
    begin, counts = time.monotonic(), Counter[tuple[str, str]]()
    for found in outcomes_of:
        for one in found:
            counts[one.family, one.verdict] += 1
            if one.verdict == WRONG:
                print(f"{one.kernel} on {one.domain}: {one.said}", flush=True)
    for family in dict.fromkeys(family for family, _ in counts):
        print(f"{family:24}", *(f"{counts[family, verdict]:6} {verdict}" for verdict in (RIGHT, REFUSED, WRONG)))
    all_of = Counter(dict.fromkeys((RIGHT, REFUSED, WRONG), 0))
    for (_, verdict), n in counts.items():
        all_of[verdict] += n
    print(*(f"{n} {verdict}" for verdict, n in all_of.items()), f"in {time.monotonic() - begin:.0f} s", sep=", ")
    return int(all_of[WRONG] > 0)


if __name__ == "__main__":
    sys.exit(main())
