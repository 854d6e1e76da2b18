"""Studies as a user begins them: no cache, no description of the device, a minute of the clock; then a second one.

    python -m scripts.measurements.first_minute OUT --device 0 --seeds 5 box
    python -m scripts.measurements.first_minute OUT --device 0 --seeds 5 --long 560 box --domain 300x200x500

Arguments behind those of this script go to `lbmtune study`. Each seed has its own folders; the second study, of
--again seconds, has those of the last seed. --long: a study of that many seconds beside them, as a reference. OUT gets
first-minute.json, to which later calls add, and best.json and report of each study. Prints a row for each; the exit
code is 1 if a study took longer than it was given, or if its winner is slower than the fastest one by more than 1 %.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lbmtune.records.best_json.document import read_best
from scripts.paths import ROOT

WITHIN = 0.01
"""Least shortfall from the fastest winner that counts."""
KEPT = ("best.json", "report.html", "study.json", "trials.jsonl")


@dataclass(frozen=True)
class Row:
    """A study: what it was asked, the seconds that it was given and took, and its winner; no MLUPS without one."""

    asked: str
    kind: str
    seed: int
    given_s: float
    took_s: float
    mlups: float
    config: str


def row(asked: Sequence[str], kind: str, seed: int, seconds: float, home: Path, out: Path) -> Row:
    """Run a study with the cache and the descriptions in a folder, and keep its files."""
    name = "-".join(one.strip("-") for one in (*asked, kind, str(seed)))
    environment = {**os.environ, "LBMTUNE_CONFIG": str(home / "config"), "LBMTUNE_CACHE": str(home / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "lbmtune", "study", *asked, "--time", f"{seconds:.0f}s", "--seed", str(seed)]
    begin, known = time.perf_counter(), set(home.glob("lbmtune-studies/*"))
    subprocess.run(command, cwd=home, env=environment, check=False)
    took = time.perf_counter() - begin
    (folder,) = {*home.glob("lbmtune-studies/*")} - known
    (out / name).mkdir(parents=True, exist_ok=True)
    for path in (folder / file for file in KEPT):
        if path.exists():
            shutil.copy(path, out / name)
    best = out / name / "best.json"
    found = read_best(best) if best.exists() else None
    mlups = found.expected.mlups if found else 0.0
    return Row(" ".join(asked), kind, seed, seconds, took, mlups, str(found.config) if found else "")


def told(rows: Sequence[Row]) -> list[str]:
    """Return a line for each study, with its share of the fastest of the same question."""
    lines = []
    for one in rows:
        best = max(each.mlups for each in rows if each.asked == one.asked)
        share = one.mlups / best if best else 0.0
        lines.append(
            f"{one.asked:40} {one.kind:8} seed {one.seed}: {one.took_s:6.1f} of {one.given_s:.0f} s "
            f"{one.mlups:9,.0f} MLUPS {share:7.2%}"
        )
    return lines


def short(rows: Sequence[Row]) -> list[Row]:
    """Return the studies that took longer than given, or whose winner is slower than the fastest one."""
    best = {one.asked: max(each.mlups for each in rows if each.asked == one.asked) for one in rows}
    return [one for one in rows if one.took_s > one.given_s or one.mlups < (1 - WITHIN) * best[one.asked]]


def main(words: Sequence[str] | None = None) -> int:
    """Run the studies of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="0")
    parser.add_argument("--seeds", type=int, default=5, help="number of first studies [5]")
    parser.add_argument("--first", type=float, default=60.0, help="seconds of each [60]")
    parser.add_argument("--again", type=float, default=25.0, help="seconds of the second study; 0: none [25]")
    parser.add_argument("--long", type=float, default=0.0, help="seconds of a reference [none]")
    given, asked = parser.parse_known_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "first-minute.json"
    rows = [Row(**one) for one in json.loads(file.read_text())] if file.exists() else []
    asked = [*asked, "--device", given.device]
    with tempfile.TemporaryDirectory() as folder:
        plans = [("first", seed, given.first, Path(folder, f"home-{seed}")) for seed in range(1, given.seeds + 1)]
        if given.again and given.seeds:
            plans.append(("second", given.seeds + 1, given.again, plans[-1][-1]))
        if given.long:
            plans.append(("long", 0, given.long, Path(folder, "home-long")))
        for kind, seed, seconds, home in plans:
            home.mkdir(exist_ok=True)
            rows.append(row(asked, kind, seed, seconds, home, given.out.resolve()))
            file.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
    print("\n".join(told(rows)))
    return int(bool(short(rows)))


if __name__ == "__main__":
    sys.exit(main())
