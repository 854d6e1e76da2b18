"""The parts of `scripts/gpu.py` that are a command each, and those that need several GPUs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scripts.gpu_parts import KNOWN_FASTEST, PAIRED


class Asked(NamedTuple):
    """What a command is made for. devices: number of GPUs; workers: of compile processes."""

    out: Path
    work: Path
    device: str
    devices: int
    workers: str
    limit_s: float


class Command(NamedTuple):
    """A command, and the file in the results that gets what it prints, or '' for the log."""

    words: tuple[str, ...]
    answer: str = ""


def _script(name: str, *words: object, answer: str = "") -> Command:
    return Command((sys.executable, "-m", f"scripts.{name}", *map(str, words)), answer)


def _lbmtune(*words: object, answer: str = "") -> Command:
    return Command((sys.executable, "-m", "lbmtune", *map(str, words)), answer)


_TESTS = (sys.executable, "-m", "pytest", "-m", "gpu", "-rA", "--durations=10", "-p", "no:cacheprovider", "tests")


def _all_of(asked: Asked) -> str:
    return ",".join(map(str, range(asked.devices)))


def _couplings(asked: Asked, name: str, *words: object) -> Command:
    """Groups that an earlier call measured stay in its file."""
    seconds = f"{min(asked.limit_s, COUPLINGS_S):.0f}"
    return _script("measurements.couplings", asked.out / name, "--seconds", seconds, *words)


COUPLINGS_S = 320
COMMANDS: dict[str, Callable[[Asked], Command]] = {
    "tests": lambda _: Command(_TESTS),
    "conformance": lambda a: _script("conformance", "--on", a.device, "--workers", a.workers),
    "sanitize": lambda a: _script("sanitize", a.out / "sanitize.txt", "--device", a.device, "--workers", a.workers),
    "turns": lambda a: _script("measurements.interleaved", a.out, "--device", a.device),
    "fastest": lambda a: _script("measurements.interleaved", a.out, "--device", a.device, "--known", KNOWN_FASTEST),
    "pairs": lambda a: _script("measurements.pairs", a.out / "pairs.jsonl.gz", "--device", a.device, *PAIRED),
    "calibration-time": lambda a: _script("measurements.calibration_time", a.device, answer="calibration-time.txt"),
    "physics": lambda a: _script("measurements.physics", a.out, "--device", a.device),
    "headers": lambda _: _script("measurements.header_speed", answer="headers.txt"),
    "proof-cost": lambda a: _script("measurements.proof_cost", "box", "--device", a.device, "--search-time", "60s",
                                    "--output", a.work / "proof-cost", answer="proof-cost.txt"),
    "first-minute": lambda a: _script("measurements.first_minute", a.out / "first-minute", "--device", a.device, "box"),
    "couplings": lambda a: _couplings(a, "couplings.json"),
    "ranks": lambda a: _script("measurements.ranks", a.out / "ranks.json", "--devices", a.devices),
    "scaling": lambda a: _couplings(a, "scaling.json", "--scaling", "--devices", a.devices),
    "cut-study": lambda a: _lbmtune("study", "box", "--devices", _all_of(a), "--cut", "auto", "--time", "90s",
                                    "--output", a.out / "cut-study"),
    "claims-parts": lambda a: _lbmtune("reproduce", "--devices", _all_of(a), "--only", "robertsen2018-parts",
                                       "--output", a.out / "claims-parts"),
    "one-device": lambda a: _lbmtune("study", "box", "--device", a.device, "--search-time", "25s", "--json",
                                     "--output", a.work / "one-device", answer="one-device.json"),
    "all-devices": lambda a: _lbmtune("study", "box", "--devices", _all_of(a), "--search-time", "25s", "--json",
                                      "--output", a.work / "all-devices", answer="all-devices.json"),
}  # fmt: skip
"""Parts by name. A study on one device and on all of them shows the verified trials per second of both."""
