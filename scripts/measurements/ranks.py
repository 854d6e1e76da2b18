"""Time parts of a domain that have a process and a GPU each, in turns with one GPU.

    python -m scripts.measurements.ranks OUT.json                           two processes on this host, all kernels
    python -m scripts.measurements.ranks OUT.json --devices 4
    python -m scripts.measurements.ranks OUT.json --kernel "moments fp32"   this kernel alone

Each kernel is proved and timed by `lbmtune measure --ranks --weak`. Prints a row for each coupling; OUT.json has all
figures. Parts of one process are measured by `scripts.measurements.couplings`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.paths import RECORDED

_BEST = RECORDED / "nvidia-h100"
KERNELS: Mapping[str, tuple[str, ...]] = {
    "one-step fp32": (str(_BEST / "d3q19-box-fp32" / "best.json"),),
    "moments fp32": (str(_BEST / "d3q19-box-fast-fp32" / "best.json"), "--set", "case.domain=384x384x384"),
    "aa fp32 soa": ("scheme=aa,layout=soa,block=128x1x1", "--study", "d3q19-box", "--set", "case.domain=256x256x256"),
}
CALLS = ("--coupling", "transport=nccl,launching=call")
LIMIT_S = 200


def main() -> int:
    """Return 1 if a kernel fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--devices", type=int, default=2, help="processes, each with a GPU of this host")
    parser.add_argument("--kernel", choices=KERNELS, action="append", help="one of the kernels; several times: these")
    given = parser.parse_args()
    found, failed = dict[str, Any](), dict[str, str]()
    for name in given.kernel or KERNELS:
        words = KERNELS[name]
        for kind, coupling in ((name, ()), (f"{name}, call by call", CALLS)):
            try:
                measure = ("-m", "lbmtune", "measure", *words, "--ranks", "--weak", "--json", *coupling)
                found[kind] = json.loads(of_ranks(measure, given.devices))
                print(*rows(kind, found[kind]), sep="\n", flush=True)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed[kind] = str(error)
                print(f"{kind}: {error}", file=sys.stderr, flush=True)
            given.out.write_text(json.dumps({"devices": given.devices, "kernels": found, "failed": failed}, indent=1))
    return 1 if failed else 0


def rows(kind: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row of a page for each coupling."""
    for one in facts["couplings"]:
        coupling = f"overlap={one['overlap']},launching={one['launching']}"
        if "refused" in one:
            yield f"| {kind} | {coupling} | {one['refused']} |"
            continue
        launches, exchange = (1e6 * one[name] for name in ("launches_s", "exchange_s"))
        speeds = f"{one['mlups']:,.0f} | {one['efficiency']:.3f} | {launches:.1f} | {exchange:.1f}"
        yield f"| {kind} | {coupling} | {speeds} |"


def of_ranks(words: Sequence[str], count: int, limit_s: float = LIMIT_S) -> str:
    """Return what rank 0 of some processes prints, each of Python with some words. Raises RuntimeError if one fails."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    run = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port - 1)}
    started = [
        subprocess.Popen(
            (sys.executable, *words),
            env={**os.environ, **run, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        said = [one.communicate(timeout=limit_s) for one in started]
    finally:
        for one in started:
            one.kill()
    if any(one.returncode for one in started):
        ends = "; ".join(f"rank {rank}: {errors.strip()[-600:]}" for rank, (_, errors) in enumerate(said))
        raise RuntimeError(ends)
    return said[0][0]


if __name__ == "__main__":
    sys.exit(main())
