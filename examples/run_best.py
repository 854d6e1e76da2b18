"""Load the kernel of a best.json and run its flow on the processor.

Usage: python examples/run_best.py BEST_JSON [STEPS]
"""

from __future__ import annotations

import sys

import numpy as np

import lbmtune


def main(path: str, steps: int = 400) -> None:
    """Print the kinetic energy per cell, in lattice units, while the flow runs."""
    solver = lbmtune.load(path, "cpu")
    print(solver)
    for _ in range(5):
        density, velocity = solver.macroscopic()
        energy = 0.5 * float(np.mean(density * np.sum(np.square(velocity), axis=0)))
        print(f"step {solver.steps_done:5d}: kinetic energy {energy:.3e} per cell")
        solver.step(steps // 5)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
