"""Measure the accuracy of each storage format (`lbmtune accuracy`) on a device.

    python -m scripts.measurements.accuracy OUT                            on this processor
    python -m scripts.measurements.accuracy OUT --device 0 --lattice d3q27
    python -m scripts.measurements.accuracy OUT --device 0 --collision regularised --steps 1,2,3,4 --workers 8
    python -m scripts.measurements.accuracy OUT --device shim --collision regularised    CUDA text compiled as C++

OUT gets accuracy.json: L2 errors of a Taylor-Green vortex against float64 and against the exact solution, at several
peak velocities and after 1000 steps. --steps: steps per launch; of populations and, with regularised collision, of
moments, in every format on the same cells. On a GPU also face exchange and persistent kernels, which round elsewhere.
Illegal configurations are left out with a message. On the shim of the tests only the run of 1000 steps is made.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, Self

import msgspec

from lbmtune import __version__
from lbmtune.backend.registry import backend_of
from lbmtune.catalogue.config import KernelConfig, Scalar, completed, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.precision import STORAGES
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.render import render
from lbmtune.errors import DeviceUnavailableError, NothingValidError
from lbmtune.measure.verification.accuracy import fitted, measure_accuracy
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Accuracy, Environment
from lbmtune.records.spec import TimingProtocol
from lbmtune.search.kinds import kind_of

Flat = dict[str, Scalar]
_BLOCKED: Flat = {
    **{"family": "temporal-blocking", "block": "32x8x1"},
    **{"rows": 2, "chunk_planes": 4, "plane_fetch": "none"},
}
_FUSED: Mapping[str, Flat] = {
    "cuda": _BLOCKED,
    "cpu": {"family": "wavefront", "scheme": "esoteric-twist", "tile": "8x4"},
}
_MOMENTS: Mapping[str, Flat] = {
    "cuda": {**_BLOCKED, "representation": "moments"},
    "cpu": {"family": "moments-wavefront", "tile": "0x0x0"},
}
_ON_CHIP: Flat = {"family": "persistent", "layout": "rows", "tile_planes": 2}
_ALONE: Mapping[str, tuple[Flat, ...]] = {"cuda": ({**_ON_CHIP, "block": "64x4x1"},), "cpu": ()}
_ALONE_MOMENTS: Mapping[str, tuple[Flat, ...]] = {
    "cuda": (
        {"family": "face-exchange", "layout": "soa", "tile": "8x4x2"},
        {**_ON_CHIP, "representation": "moments", "block": "32x4x1", "cells_per_thread": 2},
    ),
    "cpu": (),
}
"""Kernels of one step that keep or send values without rounding, or round elsewhere."""


def kinds(backend: str, collision: str, steps: Sequence[int]) -> Iterator[Flat]:
    """Yield kernels that round differently, as incomplete flat configurations without the storage format."""
    for taken in steps:
        yield {"backend": backend, **({**_FUSED[backend], "steps": taken} if taken > 1 else {})}
    alone = _ALONE[backend]
    if collision == "regularised":
        yield from ({"backend": backend, **_MOMENTS[backend], "steps": taken} for taken in steps)
        alone += _ALONE_MOMENTS[backend]
    yield from ({"backend": backend, **one} for one in alone)


def named(config: KernelConfig) -> str:
    """Return a kind of kernel in words."""
    return f"{kind_of(config).state}, {config.storage}, {config.fused_steps} steps per launch"


class Measures(Protocol):
    """Measures an accuracy."""

    environment: Environment
    limits: Limits

    def accuracy(self, config: KernelConfig) -> Accuracy:
        """Raises NothingValidError."""
        ...


class OnShim:
    """Runs CUDA texts on this processor, as the tests do."""

    def __init__(self, case: Case) -> None:
        """Raise DeviceUnavailableError if there is no C++ compiler."""
        from lbmtune.backend.cpu import open_cpu
        from tests.shim.device import COMPILER, QUICK, HostDevice, compile_on_host

        if COMPILER is None:
            raise DeviceUnavailableError("there is no C++ compiler (g++).")
        self._case, self._device, self._compiler = case, HostDevice(), partial(compile_on_host, level=QUICK)
        here = open_cpu().environment
        self.environment = replace(
            here, backend="cuda", device=f"CUDA text as C++ on {here.device}", compiler=_version()
        )
        self.limits = self._device.limits

    def accuracy(self, config: KernelConfig) -> Accuracy:
        """See Measures."""
        if reason := broken(*fitted(self._case, config), self.limits):
            raise NothingValidError(f"the accuracy cannot be measured: {reason}.")
        return measure_accuracy(self._case, config, self._device, self._compiler, brief=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release nothing."""


def _version() -> str:
    return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout.partition("\n")[0]


def recorded(evaluator: Measures, case: Case, config: KernelConfig) -> dict[str, Any]:
    """Return the record of a kernel with its errors. Raises NothingValidError."""
    accuracy = evaluator.accuracy(config)
    digest = render(replace(case, domain=accuracy.domain), config).digest
    return {"key": config.key, "config": config.flat(), "source_digest": digest, "accuracy": accuracy}


def main() -> int:
    """Measure all formats, some in parallel on a GPU, because compilation takes longest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lattice", default="d3q19")
    parser.add_argument("--collision", default="bgk")
    parser.add_argument("--steps", default="1", help="steps per launch, with commas")
    parser.add_argument("--workers", type=int, default=1, help="processes that compile and run at once")
    given = parser.parse_args()
    case = box(given.lattice, given.collision, (32, 32, 4))
    shimmed = given.device == "shim"
    backend = "cuda" if shimmed else backend_of(given.device)
    asked = kinds(backend, given.collision, [int(n) for n in given.steps.split(",")])
    free: SimpleQueue[Measures] = SimpleQueue()

    def one(kind: Flat, storage: str, evaluator: Measures) -> dict[str, Any] | None:
        config = from_flat(completed({**kind, "storage": storage}, evaluator.limits))
        what = named(config)
        try:
            found = recorded(evaluator, case, config)
        except NothingValidError as error:
            print(f"{what}: left out, {error}", flush=True)
            return None
        after = found["accuracy"].after
        print(f"{what}: {after.velocity:.2e} in velocity after {after.steps} steps", flush=True)
        return found

    def next_free(pair: tuple[Flat, str]) -> dict[str, Any] | None:
        evaluator = free.get()
        try:
            return one(*pair, evaluator)
        finally:
            free.put(evaluator)

    with ExitStack() as stack:
        for _ in range(given.workers):
            made = OnShim(case) if shimmed else Evaluator(case, given.device, TimingProtocol())
            evaluator: Measures = stack.enter_context(made)
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
