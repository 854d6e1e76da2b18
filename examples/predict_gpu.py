"""Compare GPUs by the model, without having one: the fastest kernels of a case, and what limits them.

Usage: python examples/predict_gpu.py [MACHINE ...]
"""

from __future__ import annotations

import sys

from lbmtune import Case, api, predict


def main(*machines: str) -> None:
    """Print the expected speed of one configuration, then of the best of a space, on each machine."""
    case = Case("box", "d3q19", "bgk", (128, 128, 128), 1.6)
    for machine in machines or ("h200", "a100"):
        simple = predict(case, "scheme=pull,block=128x1x1", machine)
        ranking = api.rank("quick", machine, top=1, compiled=0)
        best = ranking.entries[0]
        print(f"{ranking.machine}: pull {simple.mlups:,.0f} MLUPS at {simple.bytes_per_update:.0f} bytes per update")
        print(f"  best of {ranking.legal:,}: {best.prediction.mlups:,.0f} MLUPS, {best.config.said}")
        print(f"  limit: {best.prediction.terms[0].name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
