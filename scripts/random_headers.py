"""Run exported headers on random domains: each is right or refused before any launch; none is wrong.

    python -m scripts.random_headers              2,000 domains of 500 CUDA kernels, on the host shim
    python -m scripts.random_headers --cpu        the same of CPU kernels: object code with its C header

A header is compiled once and makes solvers on domains like those of `scripts.random_domains`. It must refuse exactly
those that the rules of the catalogue refuse. On the others it must agree with the oracle in populations, density and
velocity, for numbers of steps that leave some over. Kernels that no header can hold are left out.
"""

import argparse
import ctypes
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import Cells
from lbmtune.cores import usable_cores
from lbmtune.errors import InputError
from lbmtune.export.solver_text import check_exportable
from lbmtune.measure.verification.verify import describe_failure
from lbmtune.records.best_json.document import Best
from scripts.random_domains import LIMITS as ROOMY_LIMITS
from scripts.random_domains import (
    OF_A_KERNEL,
    REFUSED,
    RIGHT,
    WRONG,
    Outcome,
    chosen,
    domains,
    in_parallel,
    refusal,
    told,
)
from tests.shim.device import HostDevice
from tests.support.conformance.choices import Sample
from tests.support.kernels.headers import BAD_DOMAIN, RefusedError, best_of, compared, compiled, pointer
from tests.support.kernels.objects import exported, linked

LIMITS = {"cuda": replace(HostDevice.limits, memory_bytes=2**120), "cpu": ROOMY_LIMITS}


def exportable(sample: Sample) -> bool:
    """Return whether a header can hold a kernel."""
    case, config = sample
    try:
        check_exportable(case, config.backend, BACKENDS[config.backend].header)
    except InputError:
        return False
    return True


def outcomes(sample: Sample, seed: int, folder: Path | None = None) -> list[Outcome]:
    """Return what becomes of the header of a kernel on a few domains. folder: for its library; None: a cache."""
    found = best_of(*sample)
    library = compiled(found, folder) if sample[1].backend == "cuda" else _linked(found)
    return outcomes_of(library, found, sample, seed)


def outcomes_of(library: ctypes.CDLL, found: Best, sample: Sample, seed: int) -> list[Outcome]:
    """Return what becomes of a compiled header on a few domains."""
    case, config = sample
    source = domains(case, config, random.Random(f"{seed} {case} {config.key}"))
    kernel = f"{case.lattice} {case.flow} {case.collision} {config.brief}"
    at_once = (1, found.kernel.steps, len(found.kernel.period) * found.kernel.steps + 1)
    outcomes = []
    for domain in (next(source) for _ in range(OF_A_KERNEL)):
        reason = refusal(sample, domain, LIMITS[config.backend])
        verdict, said = _refused(library, case, domain) if reason else _run(library, found, case, domain, at_once)
        outcomes.append(Outcome(verdict, f"{config.backend} {config.family}", kernel, domain, said))
    return outcomes


def _linked(found: Best) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        exported(found, Path(folder))
        return linked(Path(folder))


def _refused(library: ctypes.CDLL, case: Case, domain: Cells) -> tuple[str, str]:
    """Return whether the header refuses a domain that the rules refuse, and how."""
    solid = np.zeros(domain, np.uint8) if case.geometry else None
    status = library.made_check_domain(*domain, pointer(solid))
    said = library.made_message().decode() if status else "not refused"
    return (REFUSED if status == BAD_DOMAIN else WRONG), said


def _run(library: ctypes.CDLL, found: Best, case: Case, domain: Cells, at_once: Sequence[int]) -> tuple[str, str]:
    """Return whether the header is right on a domain that the rules take."""
    try:
        deviation = compared(library, found, replace(case, domain=domain), at_once)
    except RefusedError as refused:
        return WRONG, f"refused: {refused}"
    return (RIGHT, "") if deviation.passed else (WRONG, describe_failure(deviation))


def main() -> int:
    """Return 1 if a header is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="domains")
    parser.add_argument("--skip", type=int, default=0, help="kernels to leave out, of those that the seed gives")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=usable_cores())
    parser.add_argument("--cpu", action="store_true", help="CPU kernels as object code")
    given = parser.parse_args()
    samples = [one for one in chosen(("cpu" if given.cpu else "cuda",), given.seed) if exportable(one)][given.skip :]
    samples = samples[: -(-given.count // OF_A_KERNEL)]
    with tempfile.TemporaryDirectory() as folder:
        return told(in_parallel(samples, given.seed, partial(outcomes, folder=Path(folder)), given.workers))


if __name__ == "__main__":
    sys.exit(main())
