"""Run everything that needs a GPU, in parts that fit a time limit, and pack the results into a few files.

    python -m scripts.gpu OUT                     all parts
    python -m scripts.gpu OUT --parts fp32,fp64 --time 4m --work build/gpu-work
    python -m scripts.gpu OUT --parts tests,turns --limit 500 --plan      print the plan only

Parts: tests, conformance, devices, claims, fp32, fp64, fp16s (the flagship), cavity, d2q9, d3q27, fast-fp32,
fast-fp64, fast-fp16s, fast-d2q9, fast-d3q27, fast-cavity, fast-cavity-flags and fast-sphere (walls by flags),
fast-bgk (populations with several steps per launch), moments-fp32, moments-fp64, moments-fp16s, porous-fp64,
porous-fp32 (sparse), porous-direct-fp64 and porous-direct-fp32 (a few kernels of the whole box), small-32 to
small-128 (small domains), fast-384 (the fast box with 384^3 cells),
unseen-d3q27-trt-fp64, unseen-oblong, unseen-fast and unseen-cavity (cases that the model was not calibrated with),
profile (loss breakdowns of the best recorded kernels, and of some others), turns (kernels of small domains,
interleaved), fastest (kernels of large domains: scripts/measurements/fastest.toml), accuracy (of 16 bits and of
several steps per launch), physics (regularised collision against BGK), headers (exported headers beside lbmtune),
proof-cost (what proving the timed state costs a study), sanitize (one kernel of each skeleton, passes and output under
compute-sanitizer).
Only on request: fast-seeds (the fast box searched with three seeds, which must find the same speed), first-minute (a
first study of a minute, with five seeds), uniform-one-step, uniform-blocking and uniform-oblong (2,000 random draws
each), pairs (kernels measured in two processes), calibration-time (seconds of each part of a calibration); with several
GPUs couplings (ways to exchange between two), ranks (a process for each, by NCCL), scaling (weak and strong, over 2, 4,
... of all), cut-study (kernel, cut and exchange together), claims-parts, one-device and all-devices (studies whose
trials per second are compared).

Seconds that they take on an H200 with 16 cores: devices 65, profile 150, claims 520, conformance 100, tests 280,
physics 100, accuracy 50, turns 90, headers 120, proof-cost 130, first-minute 340, couplings 320, ranks 240,
scaling 320, cut-study 100, claims-parts 90, one-device 90, all-devices 90, sanitize 120, fastest 120 (most are
estimates); a study its search, a minute besides, and three seconds for each sustained run (fast-384 six).
The device is always described first, because studies search by its predictions.
With --limit a part that no longer fits is left out; the plan is printed first. A part that takes twice its time is
stopped.

With --device cpu the studies run on all usable cores of the processor:

    CUDA_VISIBLE_DEVICES= taskset -c 0,1 python -m scripts.gpu OUT --device cpu --parts devices,fast-fp32 --time 140s

OUT gets log.txt, sanitize.txt, summary.json, machine.toml, claims.json and claims.html, turns.json, fastest.json,
accuracy-*.json, physics.json, one archive per study, and the profiles in a folder of their own.
A study that exists in --work is resumed. The exit code tells if a part failed or was left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lbmtune.backend.registry import backend_of
from lbmtune.cores import usable_cores
from lbmtune.errors import InputError
from lbmtune.units import parse_duration_s
from scripts.gpu_commands import COMMANDS, Asked
from scripts.gpu_parts import (
    ACCURACIES,
    ALONE_S,
    KINDS,
    KNOWN,
    LEFT_OUT,
    OVERHEAD_S,
    PARTS,
    PATIENCE,
    PROFILES,
    RECORDED,
    SAMPLED,
    SEARCH_S,
    SEEDS,
    SEEDS_S,
    SPACES,
    SPARE_CORES,
    STUDIES,
    SUSTAINED,
    SUSTAINED_OF_S,
    SUSTAINED_S,
    TAKES_S,
    TRIALS,
    WITHIN,
)
from scripts.paths import ROOT


@dataclass
class Run:
    """Folders and clock of one call. out: results; work: state for later calls."""

    out: Path
    work: Path
    end: float
    device: str
    time: str | None
    refresh: bool
    trials: int
    sustained: int = SUSTAINED
    overrides: tuple[str, ...] = ()
    part_end: float = math.inf

    @property
    def left_s(self) -> float:
        """Seconds left of the whole call."""
        return self.end - time.monotonic()

    @property
    def limit_s(self) -> float:
        """Seconds left of the present part."""
        return min(self.end, self.part_end) - time.monotonic()

    def begin(self, part: str) -> None:
        """Set the end of a part, if time is limited and its need is known."""
        needed = needs_s(part, self) if math.isfinite(self.end) else 0
        self.part_end = time.monotonic() + PATIENCE * needed if needed else math.inf

    def call(self, name: str, command: list[str], limit_s: float, answer: Path | None = None) -> dict[str, object]:
        """Run a command with its output in the log. answer: a file for its standard output instead."""
        environment = {
            **os.environ,
            "LBMTUNE_CONFIG": str(self.work / "config"),
            "LBMTUNE_CACHE": str(self.work / "cache"),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "160",
        }
        start, timeout_s = time.monotonic(), None if math.isinf(limit_s) else max(limit_s, 0.0)
        print(f"== {name}: {' '.join(command)}", flush=True)
        with ExitStack() as files:
            log = files.enter_context((self.out / "log.txt").open("a"))
            printed = files.enter_context(answer.open("w")) if answer else log
            log.write(f"\n== {name}: {' '.join(command)}\n")
            log.flush()
            try:
                code = subprocess.run(
                    command, cwd=ROOT, env=environment, stdout=printed, stderr=log, timeout=timeout_s, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                code = 124
        seconds = round(time.monotonic() - start, 1)
        print(f"   exit code {code} after {seconds} s", flush=True)
        return {"part": name, "exit_code": code, "seconds": seconds}


def devices(run: Run) -> dict[str, object]:
    """Measure the machine description."""
    command = [sys.executable, "-m", "lbmtune", "devices", "--device", run.device, "--refresh", "--calibrate"]
    done = run.call("devices", command, run.limit_s)
    keep_machine(run, run.out / "machine.toml")
    return done


def keep_machine(run: Run, target: Path) -> None:
    """Copy the present description of the device, if there is one."""
    backend = backend_of(run.device)
    for path in (run.work / "config").glob("machines/*.toml"):
        if f'backend = "{backend}"' in path.read_text():
            shutil.copy(path, target)


def workers() -> str:
    """Return the number of compile processes."""
    return str(max(1, usable_cores() - SPARE_CORES))


def command(run: Run, part: str) -> dict[str, object]:
    """Run a part that is one command."""
    limit_s = run.limit_s
    asked = Asked(run.out, run.work, run.device, devices_here(), workers(), limit_s)
    words, answer = COMMANDS[part](asked)
    return run.call(part, [*words], limit_s, run.out / answer if answer else None)


def devices_here() -> int:
    """Return the number of GPUs of this host, as the driver lists them; 0 if there is none."""
    listed = shutil.which("nvidia-smi")
    lines = subprocess.run([listed, "-L"], capture_output=True, text=True, check=False).stdout if listed else ""
    return len(lines.splitlines())


def accuracy(run: Run) -> dict[str, object]:
    """Measure the tables of `ACCURACIES`, each in a file named by its collision."""
    codes: dict[str, int] = {}
    for name, asked in ACCURACIES.items():
        folder = run.work / f"accuracy-{name}"
        command = [sys.executable, "-m", "scripts.measurements.accuracy", str(folder), "--device", run.device, *asked]
        done = run.call(f"accuracy {name}", [*command, "--workers", workers()], run.limit_s)
        codes[name] = int(str(done["exit_code"]))
        if not codes[name]:
            shutil.copy(folder / "accuracy.json", run.out / f"{folder.name}.json")
    return {"part": "accuracy", "exit_code": max(map(abs, codes.values())), "exit_codes": codes}


def claims(run: Run) -> dict[str, object]:
    """Measure the published claims; start or resume."""
    folder = run.work / "claims"
    command = [sys.executable, "-m", "lbmtune", "reproduce", "--device", run.device, "--output", str(folder)]
    done = run.call("claims", [*command, *(["--resume"] if folder.exists() else [])], run.limit_s)
    for name in ("claims.json", "claims.html"):
        if (folder / name).exists():
            shutil.copy(folder / name, run.out / name)
    return done


def study(run: Run, part: str) -> dict[str, object]:
    """Run a study, started or resumed, and pack it without the database of the search."""
    name, overrides = STUDIES[part]
    kind = KINDS.get(part, "other")
    trials = run.trials or TRIALS[kind]
    folder = run.work / f"{name}-{part}"
    command = [sys.executable, "-m", "lbmtune", "study", "--device", run.device, "--output", str(folder)]
    command += ["--search-time", run.time or f"{SEARCH_S[kind]}s", "--trials", str(trials)]
    sample = int(trials * SAMPLED[kind])
    for override in (*overrides, *run.overrides, f"budget.sample={sample}", f"protocol.sustained_top={run.sustained}"):
        command += ["--set", override]
    command += ["--resume"] if (folder / "study.json").exists() else []
    command += ["--refresh"] if run.refresh else []
    done = run.call(part, [*command, name], run.limit_s)
    if folder.is_dir():
        keep_machine(run, folder / "machine.toml")
        pack(folder, run.out / f"{folder.name}.tar.gz")
        done |= facts(folder)
    return done


def profile(run: Run) -> dict[str, object]:
    """Measure the loss breakdowns of `PROFILES` by the description of this call, or the recorded one."""
    folder, now = run.out / "profiles", run.out / "machine.toml"
    machine = now if now.exists() else RECORDED / "machine.toml"
    codes: dict[str, int] = {}
    for name, subject in PROFILES.items():
        page = folder / f"{name}.html"
        command = [sys.executable, "-m", "lbmtune", "profile", *subject, "--device", run.device, "--output", str(page)]
        command += ["--machine", str(machine)]
        codes[name] = int(str(run.call(f"profile {name}", command, run.limit_s)["exit_code"]))
    return {"part": "profile", "exit_code": max(map(abs, codes.values())), "exit_codes": codes}


def fast_seeds(run: Run) -> dict[str, object]:
    """Search the fast box with several seeds; fail if one is slower than the best or a known one by `WITHIN`.

    The chosen kernels are compared, each measured alone, like the known one.
    """
    finals: dict[str, float] = {}
    alone: dict[str, float] = {}
    codes: list[int] = []
    for seed in SEEDS:
        folder = run.work / f"fast-seed-{seed}"
        command = [sys.executable, "-m", "lbmtune", "study", "--device", run.device, "--output", str(folder)]
        command += ["--search-time", run.time or f"{SEEDS_S}s", "--seed", str(seed)]
        command += ["--set", "protocol.sustained_top=0", "--set", "protocol.profiled=0"]
        command += [
            *(["--resume"] if folder.exists() else []),
            str(SPACES / "d3q19-box-fast.toml"),
        ]
        codes.append(int(str(run.call(f"fast-seeds, seed {seed}", command, run.limit_s)["exit_code"])))
        if folder.is_dir():
            pack(folder, run.out / f"{folder.name}.tar.gz")
            finals[str(seed)] = float(str(facts(folder).get("mlups", 0)))
    chosen = {seed: run.work / f"fast-seed-{seed}" / "best.json" for seed in finals}
    for name, path in {**chosen, "known": KNOWN}.items():
        command = [sys.executable, "-m", "lbmtune", "measure", str(path), "--device", run.device, "--json"]
        answer = run.out / f"alone-{name}.json"
        codes.append(int(str(run.call(f"fast-seeds, {name} alone", command, run.limit_s, answer)["exit_code"])))
        if not codes[-1]:
            alone[name] = json.loads(answer.read_text())["measurement"]["mlups"]
    whole = len(alone) == len(SEEDS) + 1
    near = whole and min(alone[seed] for seed in finals) >= (1 - WITHIN) * max(alone.values())
    return {
        "part": "fast-seeds",
        "exit_code": max(codes) or int(not near),
        "finals_mlups": finals,
        "alone_mlups": alone,
        "within": near,
    }


OTHERS: dict[str, Callable[[Run], dict[str, object]]] = {
    **{part: partial(command, part=part) for part in COMMANDS},
    "devices": devices,
    "claims": claims,
    "profile": profile,
    "accuracy": accuracy,
    "fast-seeds": fast_seeds,
}


def needs_s(part: str, run: Run) -> float:
    """Return the seconds that a part normally takes; 0: unknown on this device."""
    if part == "fast-seeds":
        return len(SEEDS) * (_search_s(run, SEEDS_S) + OVERHEAD_S) + (len(SEEDS) + 1) * ALONE_S
    if part in STUDIES:
        each = SUSTAINED_OF_S.get(part, SUSTAINED_S)
        return _search_s(run, SEARCH_S[KINDS.get(part, "other")]) + OVERHEAD_S + each * run.sustained
    return 0 if run.device == "cpu" else TAKES_S.get(part, 0)


def _search_s(run: Run, usual_s: float) -> float:
    return parse_duration_s(run.time) if run.time else usual_s


@dataclass(frozen=True)
class Planned:
    """A part, the seconds that it needs, and those left after the parts before it."""

    part: str
    needs_s: float
    left_s: float

    @property
    def fits(self) -> bool:
        return self.needs_s <= self.left_s

    def __str__(self) -> str:
        needs = f"needs {self.needs_s:.0f} s" if self.needs_s else "needs no known time"
        left = f"; {self.left_s:.0f} s left for it: left out, unless others end sooner"
        return f"{self.part:24} {needs}{'' if self.fits else left}"


def planned(parts: Sequence[str], run: Run, limit_s: float) -> list[Planned]:
    """Plan the parts; those that no longer fit are left out."""
    found = []
    for part in parts:
        found.append(Planned(part, needs_s(part, run), limit_s))
        limit_s -= found[-1].needs_s if found[-1].fits else 0
    return found


def pack(folder: Path, archive: Path) -> None:
    """Pack a folder into an archive."""
    with tarfile.open(archive, "w:gz") as target:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in LEFT_OUT:
                target.add(path, f"{folder.name}/{path.relative_to(folder)}")


def facts(folder: Path) -> dict[str, object]:
    """Return the outcomes, costs and the best kernel of a study."""
    from lbmtune.records.store import read_study  # here: only studies need it

    try:
        record = read_study(folder)
    except InputError as error:
        return {"error": str(error)}
    outcomes: dict[str, int] = {}
    for trial in record.trials:
        outcomes[trial.outcome] = outcomes.get(trial.outcome, 0) + 1
    ceiling = record.header.ceiling.stream_bytes_per_s
    found: dict[str, object] = {"trials": len(record.trials), "outcomes": outcomes, "ceiling_gb_per_s": ceiling}
    found["costs"] = str(record.costs)
    found |= {"binaries": record.verified_binaries, "search_s": record.search_s, "per_s": record.verified_per_s}
    if record.ranked:
        best = record.ranked[0]
        measured = best.best_measurement
        found |= {
            "mlups": round(measured.mlups),
            "share_of_copy": round(measured.bandwidth_bytes_per_s / ceiling.get("16", max(ceiling.values())), 4),
            "config": best.config,
        }
    return found


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma separated; default: all")
    parser.add_argument("--work", type=Path, default=None, help="study folders [default: OUT/../gpu-work]")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds for the whole call [none]")
    parser.add_argument("--time", default=None, help="search time of each study, such as 4m")
    parser.add_argument("--trials", type=int, default=0, help="most trials of each study; 0: those of its kind")
    parser.add_argument(
        "--sustained", type=int, default=SUSTAINED, help="number of the best kernels that are run for seconds [20]"
    )
    parser.add_argument("--device", default="0")
    parser.add_argument("--set", action="append", default=[], help="override of every study")
    parser.add_argument("--plan", action="store_true", help="print the plan only")
    parser.add_argument("--refresh", action="store_true", help="measure the ceilings again for each study")
    given = parser.parse_args()
    try:
        parse_duration_s(given.time or "0")
    except InputError as error:
        parser.error(f"--time: {error}")
    unknown = set(given.parts.split(",")) - {*PARTS, *OTHERS}
    if unknown:
        parser.error(
            f"unknown parts {', '.join(sorted(unknown))}; there are {', '.join(dict.fromkeys((*PARTS, *OTHERS)))}"
        )
    return given


def main() -> int:
    """Run the parts in order; a part that no longer fits is left out."""
    given = arguments()
    work = (given.work or given.out.resolve().parent / "gpu-work").resolve()
    asked = (given.device, given.time, given.refresh, given.trials, given.sustained, tuple(given.set))
    run = Run(given.out.resolve(), work, time.monotonic() + given.limit, *asked)
    # studies search by predictions, so the device is described first
    parts = sorted(given.parts.split(","), key=lambda part: part != "devices")
    plan = planned(parts, run, given.limit)
    print("\n".join(map(str, plan)), flush=True)
    print(f"all: {sum(one.needs_s for one in plan):.0f} s; limit: {given.limit:.0f} s", flush=True)
    if given.plan:
        return 0 if all(one.fits for one in plan) else 1
    for folder in (run.out, work):
        folder.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, object]] = []
    for part in parts:
        needed = needs_s(part, run)
        run.begin(part)
        if run.left_s < needed:
            left_out = f"{max(run.left_s, 0):.0f} s left, needs {needed:.0f} s"
            results.append({"part": part, "left_out": left_out, "exit_code": 1})
        else:
            results.append(study(run, part) if part in STUDIES else OTHERS[part](run))
        (run.out / "summary.json").write_text(json.dumps(results, indent=1, default=str) + "\n")
    print(json.dumps(results, indent=1, default=str))
    return max(abs(int(str(result["exit_code"]))) for result in results)


if __name__ == "__main__":
    sys.exit(main())
