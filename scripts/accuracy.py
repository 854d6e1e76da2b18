"""What each storage format costs in accuracy: `lbmtune accuracy` of all of them, with the device that ran them.

    python scripts/accuracy.py OUT                            on this processor
    python scripts/accuracy.py OUT --device 0 --lattice d3q27
    python scripts/accuracy.py OUT --device 0 --collision regularised --steps 1,2,3,4 --workers 8

OUT gets accuracy.json: L2 errors of a Taylor-Green vortex against float64 and against the exact solution, at several
peak velocities and after 1000 steps. --steps: steps per launch; of populations and, with regularised collision, of
moments, in every format on the same cells. What the rules refuse is left out, and said.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from lbmtune import __version__
from lbmtune.backend.registry import backend_of
from lbmtune.catalogue.axes import completed
from lbmtune.catalogue.case import Case, box
from lbmtune.catalogue.config import KernelConfig, Scalar, from_flat
from lbmtune.catalogue.precision import STORAGES
from lbmtune.codegen.render import render
from lbmtune.errors import NothingValidError
from lbmtune.measure.evaluate import Evaluator
from lbmtune.records.study import TimingProtocol

_MARCH: dict[str, Scalar] = {"layout": "rows", "block": "32x8x1", "rows": 2, "march": 4}
_TILES: dict[str, Scalar] = {"scheme": "esoteric-twist", "loop": "tile", "tile_y": 8, "tile_z": 4}
_FUSED: dict[str, dict[str, Scalar]] = {"cuda": {"scheme": "push", **_MARCH}, "cpu": _TILES}
_MOMENTS: dict[str, dict[str, Scalar]] = {
    "cuda": {"representation": "moments", **_MARCH},
    "cpu": {"representation": "moments"},
}


def kinds(backend: str, collision: str, steps: Sequence[int]) -> Iterator[dict[str, Scalar]]:
    """What of a kernel its rounding depends on besides the formats, as configurations that say so much."""
    for taken in steps:
        yield {"backend": backend, **(_FUSED[backend] if taken > 1 else {}), "steps": taken}
    if collision == "regularised":
        yield from ({"backend": backend, **_MOMENTS[backend], "steps": taken} for taken in steps)


def recorded(evaluator: Evaluator, case: Case, config: KernelConfig) -> dict[str, Any]:
    """One kernel with its errors. Raises NothingValidError."""
    accuracy = evaluator.accuracy(config)
    digest = render(replace(case, domain=accuracy.domain), config).digest
    return {"key": config.key, "config": config.flat(), "source_digest": digest, "accuracy": accuracy}


def main() -> int:
    """Measures one format after the other, some at once on a GPU, where compiling takes longest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lattice", default="d3q19")
    parser.add_argument("--collision", default="bgk")
    parser.add_argument("--steps", default="1", help="steps per launch, with commas")
    parser.add_argument("--workers", type=int, default=1, help="processes that compile and run at once")
    given = parser.parse_args()
    case = box(given.lattice, given.collision, (32, 32, 4))
    asked = kinds(backend_of(given.device), given.collision, [int(n) for n in given.steps.split(",")])
    free: SimpleQueue[Evaluator] = SimpleQueue()

    def one(kind: dict[str, Scalar], storage: str, evaluator: Evaluator) -> dict[str, Any] | None:
        config = from_flat(completed({**kind, "storage": storage}, evaluator.limits))
        what = f"{config.kept.name}, {storage}, {config.fused_steps} steps per launch"
        try:
            found = recorded(evaluator, case, config)
        except NothingValidError as error:
            print(f"{what}: left out, {error}", flush=True)
            return None
        after = found["accuracy"].after
        print(f"{what}: {after.velocity:.2e} in velocity after {after.steps} steps", flush=True)
        return found

    def next_free(pair: tuple[dict[str, Scalar], str]) -> dict[str, Any] | None:
        evaluator = free.get()
        try:
            return one(*pair, evaluator)
        finally:
            free.put(evaluator)

    with ExitStack() as stack:
        for _ in range(given.workers):
            evaluator = stack.enter_context(Evaluator(case, given.device, TimingProtocol()))
            free.put(evaluator)
        pool = stack.enter_context(ThreadPoolExecutor(given.workers))
        found = [entry for entry in pool.map(next_free, product(asked, STORAGES)) if entry]
        environment = evaluator.environment
    date = datetime.now(UTC).isoformat(timespec="seconds")
    facts = {"version": __version__, "date": date, "environment": environment, "found": found}
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "accuracy.json").write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
