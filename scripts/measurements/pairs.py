"""Measure kernels of recorded sets in several processes and keep all measurements, for the spread between runs.

    python -m scripts.measurements.pairs OUT/pairs.jsonl.gz --device 0 SET:60 SET:30:128x128x128

A set is the folder of a study, with the number of kernels and, if wanted, another domain. The first line of the file
says where the others come from; each of those is a measurement: set, key, family, visit (of all sets, each in new
processes), at (seconds), mlups, low, high (95 % interval within the run), samples_s, disturbed, share of the processor.
"""

import argparse
import gzip
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lbmtune import __version__
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records.spec import TimingProtocol
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord

NEVER_DISMISSED = TimingProtocol(bail_out=1e9)


def chosen(record: StudyRecord, count: int) -> list[KernelConfig]:
    """Return kernels of a study: half of the fastest third, half of all others."""
    random, ranked = np.random.default_rng(7), record.ranked
    first = random.permutation(max(count, len(ranked) // 3))[: count // 2]
    rest = [n for n in random.permutation(len(ranked)) if n not in set(first)][: count - count // 2]
    return [from_flat(ranked[n].config) for n in (*first, *rest) if n < len(ranked)]


def measured(case: Case, device: str, configs: list[KernelConfig], seed: int) -> Iterator[dict[str, Any]]:
    """Yield a measurement of each kernel in random order, in processes that end with them."""
    order = np.random.default_rng(seed).permutation(len(configs)).tolist()
    with Evaluator(case, device, NEVER_DISMISSED) as evaluator:
        while order or evaluator.in_flight:
            while order and evaluator.in_flight < evaluator.max_in_flight:
                evaluator.submit(order[-1], configs[order.pop()])
            trial = evaluator.next()
            if found := trial.measurement:
                yield {
                    "key": trial.key,
                    "family": configs[trial.number].family,
                    "mlups": found.mlups,
                    "low": found.ci_low_mlups,
                    "high": found.ci_high_mlups,
                    "samples_s": [float(f"{one:.6g}") for one in found.samples_s],
                    "disturbed": found.disturbed,
                    "share": found.conditions.cpu_share,
                }


def lines(sets: list[str], device: str, visits: int) -> Iterator[dict[str, Any]]:
    """Yield the provenance, then all measurements: every set once, then again."""
    begin = time.monotonic()
    yield {"device": device, "command": sys.argv[1:], "lbmtune": __version__, "date": time.strftime("%Y-%m-%d")}
    for visit in range(visits):
        for one in sets:
            folder, count, *domain = one.split(":")
            record = read_study(Path(folder))
            case = record.header.spec.case
            if domain:
                x, y, z = map(int, domain[0].split("x"))
                case = replace(case, domain=(x, y, z))
            for row in measured(case, device, chosen(record, int(count)), 100 + visit):
                yield {"set": one, "visit": visit, "at": round(time.monotonic() - begin, 2), **row}


def main() -> None:
    """Record the pairs that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("sets", nargs="+", metavar="SET:COUNT[:DOMAIN]")
    parser.add_argument("--device", default="0")
    parser.add_argument("--visits", type=int, default=2)
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(given.out, "wt") as file:
        for line in lines(given.sets, given.device, given.visits):
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
