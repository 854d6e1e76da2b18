"""A lid-driven cavity at Reynolds number 100 with a kernel that lbmtune found, compared with Ghia, Ghia, Shin 1982.

    lbmtune study cavity --lattice d2q9 --domain 128x128x1 --device cpu --out results
    lbmtune export results -o best.json

Usage: python cavity.py [best.json [CELLS along an edge]]
"""

import sys

import numpy as np

import lbmtune

# Velocity along x, over that of the lid, at heights y on the vertical centre line (table I)
GHIA = {
    0.0547: -0.03717,
    0.1016: -0.06434,
    0.1719: -0.10150,
    0.2813: -0.15662,
    0.4531: -0.21090,
    0.5000: -0.20581,
    0.6172: -0.13641,
    0.7344: 0.00332,
    0.8516: 0.23151,
    0.9531: 0.68717,
}
LID = 0.1


def main(path: str = "best.json", cells: str = "128") -> float:
    """Print the profile on the centre line, and return its largest difference from Ghia."""
    n = int(cells)
    rate = 1 / (3 * LID * n / 100 + 0.5)
    flow = lbmtune.load(path, domain=(n, n, 1), relaxation_rate=rate, wall_velocity=(LID, 0, 0))
    change, before = 1.0, 0.0
    while change > 1e-6 * LID:
        flow.step(10 * n)
        velocity = flow.velocity()
        change, before = abs(velocity - before).max(), velocity
    line = velocity[0, 0, :, (n - 1) // 2 : n // 2 + 1].mean(axis=1) / LID  # of two columns if their number is even
    found = np.interp(list(GHIA), (np.arange(n) + 0.5) / n, line)  # walls lie half-way between cells
    for (height, expected), u in zip(GHIA.items(), found, strict=True):
        print(f"y = {height:.4f}: u = {u:8.5f}, Ghia {expected:8.5f}")
    worst = float(abs(found - list(GHIA.values())).max())
    print(f"{flow.steps_done} steps, mass {flow.density().mean():.6f}, largest difference {worst:.4f}")
    return worst


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0.02)
