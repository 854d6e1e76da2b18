"""Everything that needs a GPU, in parts that fit a time limit, with its results packed into a few files.

    python -m scripts.gpu OUT                     all parts
    python -m scripts.gpu OUT --parts fp32,fp64 --time 4m --work build/gpu-work
    python -m scripts.gpu OUT --parts tests,turns --limit 500 --plan      says what would run, and nothing else

Parts: tests, conformance, devices, claims, fp32, fp64, fp16s (the flagship), cavity, d2q9, d3q27, fast-fp32,
fast-fp64, fast-fp16s, fast-d2q9, fast-d3q27, fast-cavity, fast-cavity-flags and fast-sphere (walls that are read),
fast-bgk (populations with several steps per launch), moments-fp32, moments-fp64, moments-fp16s, porous-fp64,
porous-fp32 (sites listed), porous-direct-fp64 and porous-direct-fp32 (a few kernels of the whole box), small-32 to
small-128 (small domains), fast-384 (the fast box with 384^3 cells),
unseen-d3q27-trt-fp64, unseen-oblong, unseen-fast and unseen-cavity (cases that the model was not made by), profile
(the ladders of the best kernels recorded, and of some that are not), turns (kernels of small domains beside one
another), fastest (those of large domains: scripts/fastest.toml), accuracy (what 16 bits and steps per launch cost),
physics (what regularised collision changes), sanitize (one kernel of each skeleton under compute-sanitizer);
fast-seeds (the fast box searched with three seeds, which have to find the same speed), only where it is asked for.

Seconds that they take on an H200 with 16 cores: devices 65, profile 150, claims 520, conformance 100, tests 280,
sanitize 80, physics 100, accuracy 50, turns 90, fastest 120 (an estimate); a study its search, a minute besides, and
three seconds for each run of seconds (fast-384 six): a small domain 90 and 60, unseen-oblong 135 of the 180 that it may
take.
The description of the device comes first, wherever it stands among the parts: studies search by its predictions.
With --limit a part that no longer fits is left out; what each needs is said before the first one begins. One that takes
twice as long is stopped, so that the others have their time.

With --device cpu the studies run on the processor, as many threads as this process may use cores:

    CUDA_VISIBLE_DEVICES= taskset -c 0,1 python -m scripts.gpu OUT --device cpu --parts devices,fast-fp32 --time 140s

OUT gets log.txt, sanitize.txt, summary.json, machine.toml, claims.json and claims.html, turns.json, fastest.json,
accuracy-*.json, physics.json, one archive per study, and the profiles in a folder of their own.
A study that exists in --work is resumed. A part that failed, or was left out because --limit did not reach for it,
shows in the exit code.
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
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from lbmtune.cores import usable_cores
from lbmtune.errors import InputError
from lbmtune.units import parse_duration_s

ROOT = Path(__file__).resolve().parent.parent

SANDSTONE = "case.geometry=sandstone:fraction=0.6"
OBLONG = "case.domain=208x224x192"
BETWEEN_WALLS = "case.domain=192x208x224"
LISTED, DIRECT = ("addressing=indirect", SANDSTONE), "addressing=direct"
STUDIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "fp32": ("d3q19-box", ("storage=fp32",)),
    "fp64": ("d3q19-box", ("storage=fp64",)),
    "fp16s": ("d3q19-box", ("storage=fp16s",)),
    "cavity": ("d3q19-cavity", ()),
    "d2q9": ("d2q9-box", ()),
    "d3q27": ("d3q27-box", ()),
    **{f"fast-{one}": ("d3q19-box-fast", (f"storage={one}",)) for one in ("fp32", "fp64", "fp16s")},
    "fast-d2q9": ("d2q9-box-fast", ()),
    "fast-d3q27": ("d3q27-box-fast", ()),
    "fast-cavity": ("d3q19-cavity-fast", ()),
    "fast-bgk": ("d3q19-box-fast", ("case.collision=bgk",)),
    "fast-cavity-flags": ("d3q19-cavity-fast", ("flags=memory",)),
    "fast-sphere": ("d3q19-cavity-fast", ("case.flow=box", "case.geometry=sphere", "flags=memory")),
    **{f"moments-{one}": ("d3q19-moments", (f"storage={one}",)) for one in ("fp32", "fp64", "fp16s")},
    "porous-fp64": ("porous", ("storage=fp64", *LISTED)),
    "porous-fp32": ("porous", ("storage=fp32", *LISTED)),
    "porous-direct-fp64": ("porous", ("storage=fp64", DIRECT, "case.geometry=packing:fraction=0.1")),
    "porous-direct-fp32": ("porous", ("storage=fp32", DIRECT, SANDSTONE)),
    **{f"small-{edge}": ("d3q19-small", (f"case.domain={edge}x{edge}x{edge}",)) for edge in (32, 48, 64, 80, 96, 128)},
    "fast-384": ("d3q19-box-fast", ("case.domain=384x384x384",)),
    "unseen-d3q27-trt-fp64": ("d3q27-box", ("case.collision=trt", "storage=fp64")),
    "unseen-oblong": ("d3q27-box", ("case.collision=trt", "storage=fp64", OBLONG, "seed=2")),
    "unseen-fast": ("d3q27-box-fast", ("storage=fp64", OBLONG, "seed=2")),
    "unseen-cavity": (
        "d3q19-cavity",
        ("case.lattice=d3q27", "case.collision=trt", "storage=fp64", BETWEEN_WALLS, "seed=3"),
    ),
}
"""The study file of each part, and what is set in it."""
PARTS = (
    "devices",
    *STUDIES,
    "profile",
    "turns",
    "fastest",
    "accuracy",
    "physics",
    "claims",
    "conformance",
    "tests",
    "sanitize",
)
RECORDED = ROOT / "studies" / "recorded" / "nvidia-h200"
PROFILES: dict[str, tuple[str, ...]] = {
    "one-step-fp32": (str(RECORDED / "d3q19-box-fp32" / "best.json"),),
    "one-step-fp64": (str(RECORDED / "d3q19-box-fp64" / "best.json"),),
    "one-step-fp16s": (str(RECORDED / "d3q19-box-fp16s" / "best.json"),),
    "many-steps": (str(RECORDED / "d3q19-box-fast-fp32" / "best.json"),),
    "aa": (
        "scheme=aa,layout=aosoa,width=128,block=64x2x1,cells_per_thread=4,min_blocks=2,storage=fp32",
        *("--study", "d3q19-box"),
    ),
    "aos": ("scheme=pull,layout=aos,block=128x1x1,storage=fp32", "--study", "d3q19-box"),
}
"""Kernels whose ladders are kept: the best of each precision, in place, of several steps, and one that lies badly."""
FLAGSHIP = ("fp32", "fp64", "fp16s")
KINDS = {
    **dict.fromkeys(FLAGSHIP, "flagship"),
    "moments-fp32": "wide",
    **{part: "sample" for part in STUDIES if part.startswith("small-")},
    **{part: "few" for part in STUDIES if part.startswith("porous-direct-")},
    **dict.fromkeys(("fast-cavity-flags", "fast-sphere", "fast-384", "unseen-fast"), "aside"),
}
"""Of studies that get more time and trials than the others, or less."""
SEARCH_S = {"flagship": 180, "wide": 200, "sample": 40, "few": 30, "aside": 40, "other": 60}
"""Search time of a study unless --time says otherwise."""
TRIALS = {"flagship": 1150, "wide": 900, "sample": 128, "few": 30, "aside": 200, "other": 380}
SAMPLED = {"flagship": 0.5, "wide": 0.8, "sample": 0.5, "few": 1.0, "aside": 0.4, "other": 0.5}
"""Share of the trials that belong to the sample that fills the space; the rest looks for the best."""
SUSTAINED = 20
"""So many of the best of a study are run for seconds."""
OVERHEAD_S, SUSTAINED_S = 60, 3
"""What a study needs besides its search: start, ceiling, finals, report; and each run of seconds."""
SUSTAINED_OF_S = {"fast-384": 6}
"""Of runs on larger domains, which are verified before."""
SEEDS_S, ALONE_S = 300, 12
TAKES_S = {
    **{"devices": 65, "profile": 150, "turns": 90, "fastest": 120, "accuracy": 50, "physics": 100},
    **{"claims": 520, "conformance": 100, "tests": 280, "sanitize": 80},
}
"""What other parts take on an H200; of those on other devices nothing is known."""
PATIENCE = 2
"""So many times as long as it should take a part may take, where time is limited."""
SEEDS, WITHIN = (1, 2, 3), 0.03
"""Of the search for the fastest kernel, and how much slower than the fastest that is known each may be."""
KNOWN = RECORDED / "d3q19-moments-fp32" / "best.json"
"""A kernel of that box that was found by another study; it is measured beside them."""
LEFT_OUT = ("optuna.log",)
ACCURACIES = {
    "bgk": ("--steps", "1,2,3"),
    "regularised": ("--collision", "regularised", "--steps", "1,2,3,4"),
}
"""Tables of accuracy, by collision, with what is asked of `scripts/accuracy.py`."""
SPARE_CORES = 2
"""Those that the process with the device needs."""


@dataclass
class Run:
    """Folders and clock of one call. out: results; work: what another call goes on with."""

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
        """Of the whole call."""
        return self.end - time.monotonic()

    @property
    def limit_s(self) -> float:
        """Of what is left of the present part: the time of others is not its own."""
        return min(self.end, self.part_end) - time.monotonic()

    def begin(self, part: str) -> None:
        """Gives a part its time, where time is limited and its need is known."""
        needed = needs_s(part, self) if math.isfinite(self.end) else 0
        self.part_end = time.monotonic() + PATIENCE * needed if needed else math.inf

    def call(self, name: str, command: list[str], limit_s: float, answer: Path | None = None) -> dict[str, object]:
        """Runs a command into the log; what it printed is kept whatever becomes of it. answer: for its output alone."""
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
    """The machine description, of the device alone that is asked about."""
    command = [sys.executable, "-m", "lbmtune", "devices", "--device", run.device, "--refresh", "--calibrate"]
    done = run.call("devices", command, run.limit_s)
    keep_machine(run, run.out / "machine.toml")
    return done


def keep_machine(run: Run, target: Path) -> None:
    """Copies the description of the device as it is now, if there is one."""
    backend = "cpu" if run.device == "cpu" else "cuda"
    for path in (run.work / "config").glob("machines/*.toml"):
        if f'backend = "{backend}"' in path.read_text():
            shutil.copy(path, target)


def tests(run: Run) -> dict[str, object]:
    """The tests marked gpu."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-rA", "--durations=10", "-p", "no:cacheprovider", "tests"]
    return run.call("tests", command, run.limit_s)


def conformance(run: Run) -> dict[str, object]:
    """Every pair of choices of the catalogue against the oracle."""
    command = [sys.executable, "-m", "scripts.conformance", "--on", run.device, "--workers", workers()]
    return run.call("conformance", command, run.limit_s)


def sanitize(run: Run) -> dict[str, object]:
    """One kernel of each CUDA skeleton under compute-sanitizer."""
    command = [sys.executable, "-m", "scripts.sanitize", str(run.out / "sanitize.txt")]
    return run.call("sanitize", [*command, "--device", run.device, "--workers", workers()], run.limit_s)


def workers() -> str:
    """Processes that compile at once."""
    return str(max(1, usable_cores() - SPARE_CORES))


def turns(run: Run) -> dict[str, object]:
    """Kernels of small domains, measured in turns."""
    return in_turns(run, "turns")


def fastest(run: Run) -> dict[str, object]:
    """The fastest kernels known of large domains, measured in turns."""
    return in_turns(run, "fastest", "--known", str(ROOT / "scripts" / "fastest.toml"))


def in_turns(run: Run, part: str, *which: str) -> dict[str, object]:
    """Kernels measured in turns. which: arguments that say which kernels."""
    command = [sys.executable, "-m", "scripts.interleaved", str(run.out), "--device", run.device]
    return run.call(part, [*command, *which], run.limit_s)


def physics(run: Run) -> dict[str, object]:
    """What regularised collision changes of a flow."""
    command = [sys.executable, "-m", "scripts.physics", str(run.out), "--device", run.device]
    return run.call("physics", command, run.limit_s)


def accuracy(run: Run) -> dict[str, object]:
    """The tables of `ACCURACIES`, each as a file named by its collision."""
    codes: dict[str, int] = {}
    for name, asked in ACCURACIES.items():
        folder = run.work / f"accuracy-{name}"
        command = [sys.executable, "-m", "scripts.accuracy", str(folder), "--device", run.device, *asked]
        done = run.call(f"accuracy {name}", [*command, "--workers", workers()], run.limit_s)
        codes[name] = int(str(done["exit_code"]))
        if not codes[name]:
            shutil.copy(folder / "accuracy.json", run.out / f"{folder.name}.json")
    return {"part": "accuracy", "exit_code": max(map(abs, codes.values())), "exit_codes": codes}


def claims(run: Run) -> dict[str, object]:
    """The published claims; begun or resumed."""
    folder = run.work / "claims"
    command = [sys.executable, "-m", "lbmtune", "claims", "--device", run.device, "--out", str(folder)]
    done = run.call("claims", [*command, *(["--resume"] if folder.exists() else [])], run.limit_s)
    for name in ("claims.json", "claims.html"):
        if (folder / name).exists():
            shutil.copy(folder / name, run.out / name)
    return done


def study(run: Run, part: str) -> dict[str, object]:
    """One study, begun or resumed, packed without the search's own database."""
    name, overrides = STUDIES[part]
    kind = KINDS.get(part, "other")
    trials = run.trials or TRIALS[kind]
    folder = run.work / f"{name}-{part}"
    command = [sys.executable, "-m", "lbmtune", "study", "--device", run.device, "--out", str(folder)]
    command += ["--time", run.time or f"{SEARCH_S[kind]}s", "--trials", str(trials)]
    sample = int(trials * SAMPLED[kind])
    for override in (*overrides, *run.overrides, f"budget.sample={sample}", f"protocol.sustained_top={run.sustained}"):
        command += ["--set", override]
    command += ["--resume"] if (folder / "study.json").exists() else []
    command += ["--refresh"] if run.refresh else []
    done = run.call(part, [*command, str(ROOT / "studies" / f"{name}.toml")], run.limit_s)
    if folder.is_dir():
        keep_machine(run, folder / "machine.toml")
        pack(folder, run.out / f"{folder.name}.tar.gz")
        done |= facts(folder)
    return done


def profile(run: Run) -> dict[str, object]:
    """The ladders of `PROFILES`, each a page and its record, by the description of this call, or the recorded one."""
    folder, now = run.out / "profiles", run.out / "machine.toml"
    machine = now if now.exists() else RECORDED / "machine.toml"
    codes: dict[str, int] = {}
    for name, subject in PROFILES.items():
        page = folder / f"{name}.html"
        command = [sys.executable, "-m", "lbmtune", "profile", *subject, "--device", run.device, "--out", str(page)]
        command += ["--machine", str(machine)]
        codes[name] = int(str(run.call(f"profile {name}", command, run.limit_s)["exit_code"]))
    return {"part": "profile", "exit_code": max(map(abs, codes.values())), "exit_codes": codes}


def fast_seeds(run: Run) -> dict[str, object]:
    """The fast box with several seeds; fails where one of them is slower than the best, or a known one, by `WITHIN`.

    What is compared are the kernels that they chose, each measured by itself, like the known one.
    """
    finals: dict[str, float] = {}
    alone: dict[str, float] = {}
    codes: list[int] = []
    for seed in SEEDS:
        folder = run.work / f"fast-seed-{seed}"
        command = [sys.executable, "-m", "lbmtune", "study", "--device", run.device, "--out", str(folder)]
        command += ["--time", run.time or f"{SEEDS_S}s", "--seed", str(seed), "--set", "protocol.sustained_top=0"]
        command += [*(["--resume"] if folder.exists() else []), str(ROOT / "studies" / "d3q19-box-fast.toml")]
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


OTHERS = {
    "devices": devices,
    "claims": claims,
    "conformance": conformance,
    "tests": tests,
    "sanitize": sanitize,
    "profile": profile,
    "turns": turns,
    "fastest": fastest,
    "accuracy": accuracy,
    "physics": physics,
    "fast-seeds": fast_seeds,
}


def needs_s(part: str, run: Run) -> float:
    """Seconds that a part may take where nothing is wrong; 0: nothing is known of it on this device."""
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
    """A part with the seconds that it needs, and those that are left when all before it took theirs."""

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
    """What becomes of the parts if each takes what it needs: those that no longer fit take nothing."""
    found = []
    for part in parts:
        found.append(Planned(part, needs_s(part, run), limit_s))
        limit_s -= found[-1].needs_s if found[-1].fits else 0
    return found


def pack(folder: Path, archive: Path) -> None:
    """The folder as one archive."""
    with tarfile.open(archive, "w:gz") as target:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in LEFT_OUT:
                target.add(path, f"{folder.name}/{path.relative_to(folder)}")


def facts(folder: Path) -> dict[str, object]:
    """How many trials ended how, how fast they went, and the best."""
    from lbmtune.records.store import read_study  # here: a call that runs no study needs none of it

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
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma separated; default: all")
    parser.add_argument("--work", type=Path, default=None, help="study folders [default: OUT/../gpu-work]")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds for the whole call [none]")
    parser.add_argument("--time", default=None, help="search time of each study, such as 4m")
    parser.add_argument("--trials", type=int, default=0, help="trials of each study at most; 0: as many as it is given")
    parser.add_argument("--sustained", type=int, default=SUSTAINED, help="so many of the best run for seconds [20]")
    parser.add_argument("--device", default="0")
    parser.add_argument("--set", action="append", default=[], help="what is set in every study, besides")
    parser.add_argument("--plan", action="store_true", help="say what each part needs, and run none")
    parser.add_argument("--refresh", action="store_true", help="measure the ceilings anew with each study")
    given = parser.parse_args()
    try:
        parse_duration_s(given.time or "0")
    except InputError as error:
        parser.error(f"--time: {error}")
    unknown = set(given.parts.split(",")) - {*PARTS, *OTHERS}
    if unknown:
        parser.error(f"unknown parts {', '.join(sorted(unknown))}; there are {', '.join((*PARTS, 'fast-seeds'))}")
    return given


def main() -> int:
    """Runs the parts in order; a part that no longer fits is named and left out."""
    given = arguments()
    work = (given.work or given.out.resolve().parent / "gpu-work").resolve()
    asked = (given.device, given.time, given.refresh, given.trials, given.sustained, tuple(given.set))
    run = Run(given.out.resolve(), work, time.monotonic() + given.limit, *asked)
    # studies look where the model says: it should know the device, whose description comes first
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
