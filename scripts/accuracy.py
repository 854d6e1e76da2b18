"""What each storage format costs in accuracy: `lbmtune accuracy` of all of them, with the device that ran them.

    python scripts/accuracy.py OUT                            on this processor
    python scripts/accuracy.py OUT --device 0 --lattice d3q27

OUT gets accuracy.json: L2 errors of a Taylor-Green vortex against float64 and against the exact solution, at several
peak velocities and after 1000 steps.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from lbmtune import __version__
from lbmtune.backend.registry import backend_of
from lbmtune.catalogue.axes import completed
from lbmtune.catalogue.case import box
from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.precision import STORAGES
from lbmtune.codegen.render import render
from lbmtune.measure.evaluate import Evaluator
from lbmtune.records.study import TimingProtocol


def main() -> int:
    """Measures one format after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lattice", default="d3q19")
    parser.add_argument("--collision", default="bgk")
    given = parser.parse_args()
    case = box(given.lattice, given.collision, (32, 32, 4))
    found = []
    with Evaluator(case, given.device, TimingProtocol()) as evaluator:
        for storage in STORAGES:
            config = from_flat(completed({"backend": backend_of(given.device), "storage": storage}, evaluator.limits))
            accuracy = evaluator.accuracy(config)
            digest = render(replace(case, domain=accuracy.domain), config).digest
            found.append({"key": config.key, "config": config.flat(), "source_digest": digest, "accuracy": accuracy})
            assert accuracy.after is not None
            print(storage, f"{accuracy.after.velocity:.2e} in velocity after {accuracy.after.steps} steps", flush=True)
        environment = evaluator.environment
    date = datetime.now(UTC).isoformat(timespec="seconds")
    facts = {"version": __version__, "date": date, "environment": environment, "found": found}
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "accuracy.json").write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
