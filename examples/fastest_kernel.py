"""Find the fastest verified kernel of a flow on this machine's processor, and put it into a file.

Usage: python examples/fastest_kernel.py [FOLDER] [TRIALS]
"""

from __future__ import annotations

import logging
import sys

import lbmtune


def main(folder: str = "fastest-kernel", trials: int = 10) -> None:
    """Search a lid-driven cavity of 64 x 32 x 32 cells; write report.html and best.json into a folder."""
    overrides = [
        "case.flow=cavity",
        "case.domain=64x32x32",
        "case.reynolds=100",
        "storage=fp64",
        f"budget.trials={trials}",
        "protocol.sustained_top=0",
        "protocol.profiled=0",
    ]
    study = lbmtune.study("quick", "cpu", folder, overrides=overrides)
    print(f"{len(study.ranked)} of {len(study.record.trials)} kernels are verified and timed")
    print(f"fastest: {study.config.said}, {study.winner.mlups:.1f} MLUPS")
    print(f"report: {study.report()}")
    print(f"kernel: {study.export()}")


if __name__ == "__main__":  # kernels are compiled and timed in processes of their own, which import this file
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
