"""Measure what a study spends on proving the state that timing leaves, and the bands around its buffers.

    python -m scripts.measurements.proof_cost --device 0 box --search-time 60s

All arguments are those of `lbmtune study`, which runs with a clock around each check that follows a measurement: a line
of cells and the guard bands of every trial, slabs and sums of finals and sustained runs. Verification before timing is
not counted: no study is without it. Prints the seconds of each check, their calls, and their share of the whole study,
which should be 3 % at most; exit code 1 if it is more.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

from scripts.paths import ROOT

MOST = 0.03
TIMES = "LBMTUNE_PROOF_TIMES"
CHECKED = {
    "lbmtune.measure.workers.one_kernel": ("check_line", "check_slab", "check_slabs", "check_sums", "sums"),
    "lbmtune.measure.workers.worker_tasks": ("check_line", "check_slabs"),
    "lbmtune.measure.timing.pooled_device": ("PooledDevice.check_guards",),
    "lbmtune.measure.timing.guard_bands": ("GuardedBlock.add",),
}
"""Functions whose calls are timed, by the module that calls or has them."""
_HOOK = "from scripts.measurements.proof_cost import watch; watch()\n"


class Cost(NamedTuple):
    """The calls of a check, and their seconds."""

    name: str
    calls: int
    seconds: float


class _Watcher:
    """Finds modules as Python does, and times their checks once they are imported."""

    def find_spec(self, name: str, *_: object) -> Any:
        """Return the loader of a module with checks, which puts a clock around them; None for others."""
        if name not in CHECKED:
            return None
        sys.meta_path.remove(self)  # or it would be asked again
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def timed(module: Any) -> None:
            execute(module)
            for check in CHECKED[name]:
                put_clock(module, check)

        spec.loader.exec_module = timed  # type: ignore[method-assign]
        return spec


def watch() -> None:
    """Time the checks of this process if there is a file for their times."""
    if TIMES in os.environ:
        sys.meta_path.insert(0, _Watcher())  # type: ignore[arg-type]


def put_clock(owner: Any, check: str) -> None:
    """Replace a function of a module, or a method of its class, by one that notes its seconds."""
    *classes, name = check.split(".")
    for one in classes:
        owner = getattr(owner, one)
    setattr(owner, name, _timed(getattr(owner, name), check))


def _timed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    def timed(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            with Path(os.environ[TIMES]).open("a") as file:  # one line each: processes may append at once
                file.write(json.dumps([name, time.perf_counter() - start]) + "\n")

    return timed


def costs(lines: Iterable[str]) -> list[Cost]:
    """Return the calls and seconds of each check."""
    found: dict[str, list[float]] = {}
    for name, seconds in map(json.loads, lines):
        found.setdefault(name, []).append(seconds)
    return [Cost(name, len(all_s), sum(all_s)) for name, all_s in sorted(found.items())]


def study(arguments: Sequence[str], folder: Path) -> tuple[float, list[Cost]]:
    """Run a study with clocks. Returns its seconds and the costs of its checks. Raises CalledProcessError."""
    (folder / "sitecustomize.py").write_text(_HOOK)
    times = folder / "times"
    times.touch()
    paths = os.pathsep.join(filter(None, (str(folder), str(ROOT), os.environ.get("PYTHONPATH"))))
    begin = time.perf_counter()
    command = [sys.executable, "-m", "lbmtune", "study", *arguments]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths, TIMES: str(times)}, check=True)
    return time.perf_counter() - begin, costs(times.read_text().splitlines())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study of the command line; return 1 if its checks took more than they should."""
    with tempfile.TemporaryDirectory() as folder:
        whole_s, found = study(sys.argv[1:] if arguments is None else arguments, Path(folder))
    for one in found:
        print(f"{one.name:28} {one.calls:6} calls {one.seconds:8.3f} s {one.seconds / whole_s:7.2%}")
    spent_s = sum(one.seconds for one in found)
    print(f"{'all':28} {spent_s:21.3f} s {spent_s / whole_s:7.2%} of {whole_s:.1f} s")
    if not found:
        print("no check was timed", file=sys.stderr)
    return int(not found or spent_s > MOST * whole_s)


if __name__ == "__main__":
    sys.exit(main())
