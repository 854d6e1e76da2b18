"""Time kernels that are known to be fast, interleaved in one process.

    python -m scripts.measurements.interleaved OUT                          every small domain, on GPU 0
    python -m scripts.measurements.interleaved OUT --edges 64,96 --rounds 15
    python -m scripts.measurements.interleaved OUT --known scripts/measurements/fastest.toml

The kernels of a small domain are the fastest finals of its recorded set, with moments on chip and without, and the
moments on chip of docs/lab/small-domains.md, each once, with all of its names. They are measured like the finalists of
a study: each is verified on the whole domain, then all are timed in `--rounds` rounds of random order, with rests on a
GPU, so that a ratio of two is a median of pairs (`lbmtune.measure.timing.interleaved`). OUT gets turns.json: version,
device, protocol and the trials, with all samples. With --known the kernels are those of a file, after which the result
is named: fastest.json. The exit code is 1 if a kernel has no speed.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from lbmtune import __version__
from lbmtune.catalogue.config import KernelConfig, completed, flat_values, from_flat
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.files.studyfile import load_study
from lbmtune.records import Environment, Trial
from lbmtune.records.comparison.statistics import paired_ratio
from lbmtune.records.spec import TimingProtocol
from lbmtune.records.store import read_study
from lbmtune.units import format_mlups
from scripts.paths import ROOT

STUDY = "d3q19-small"
RECORDED = ROOT / "studies" / "recorded" / "nvidia-h200"
ON_CHIP = "family=persistent,representation=moments,layout=rows"
NAMED: Mapping[int, str] = {
    32: "block=32x8x1,tile_planes=1,grid_sync=neighbours",
    48: "block=16x12x1,cells_per_thread=3,tile_planes=2",
}
"""Moments on chip in single precision, by the edge of the domain, if its recorded set has none."""
IN_HALVES: Mapping[int, str] = {96: "block=32x4x1,cells_per_thread=3,tile_planes=6,min_blocks=3,grid_sync=neighbours"}
"""Moments on chip in 16 bits, if another shape than in single precision is known to be faster."""
HALVED = (64, 80, 96)
"""Edges of domains that are also measured in 16 bits."""
EDGES = (32, 48, 64, 80, 96, 128)
LEAST_ROUNDS = 9
_LIMIT_S = 120.0


class Evaluator(Protocol):
    """Times kernels interleaved."""

    environment: Environment
    limits: Limits

    def finals(self, configs: list[KernelConfig]) -> list[Trial]:
        """Return a trial for each, in order."""
        ...


Opener = Callable[[Case, TimingProtocol], AbstractContextManager[Evaluator]]


@dataclass(frozen=True)
class Named:
    """A kernel and its name."""

    name: str
    config: KernelConfig


@dataclass(frozen=True)
class Group:
    """A case and its kernels. known: returns each once; limits: of the device, for knobs that a text leaves out."""

    case: Case
    known: Callable[[Limits], Iterable[Named]]


def small(edge: int) -> Group:
    """Return the kernels of a small domain."""
    return Group(case_of(edge), partial(named, edge))


def read(path: Path) -> list[Group]:
    """Return the groups of a file: a study, its overrides, and kernels."""

    def group(found: Mapping[str, Any]) -> Group:
        texts: list[str] = found["kernels"]
        case = load_study(found["study"], found["set"]).case
        return Group(case, lambda limits: [Named(text, configuration(text, limits)) for text in texts])

    return [group(found) for found in tomllib.loads(path.read_text())["group"]]


def case_of(edge: int) -> Case:
    """Return the case of the study on a cube of that edge."""
    return load_study(STUDY, [f"case.domain={edge}x{edge}x{edge}"]).case


def named(edge: int, limits: Limits) -> Iterator[Named]:
    """Yield the kernels of a domain, each once. limits: of the device, for knobs that a text leaves out."""
    names: dict[KernelConfig, list[str]] = {}
    for kernel in _known(edge, limits):
        names.setdefault(kernel.config, []).append(kernel.name)
    yield from (Named("; ".join(said), config) for config, said in names.items())


def _known(edge: int, limits: Limits) -> Iterator[Named]:
    """Yield kernels by name; one of several names comes more than once."""
    folder = RECORDED / f"{STUDY}-{edge}"
    single: KernelConfig | None = None
    if folder.exists():
        finals = [from_flat(trial.config) for trial in read_study(folder).ranked if trial.final]
        yield Named(f"fastest of {folder.name} without moments on chip", next(c for c in finals if not _on_chip(c)))
        single = next(filter(_on_chip, finals), None)
        if single:
            yield Named(f"fastest of {folder.name} with moments on chip", single)
    if shape := NAMED.get(edge):
        single = configuration(f"{ON_CHIP},storage=fp32,{shape}", limits)
    for storage in ("fp32", *(("fp16s", "bf16") if edge in HALVED else ())):
        name = f"moments on chip, {storage}"
        if storage != "fp32" and (shape := IN_HALVES.get(edge)):
            yield Named(name, configuration(f"{ON_CHIP},storage={storage},{shape}", limits))
        elif single:
            yield Named(name, replace(single, storage=storage))


def _on_chip(config: KernelConfig) -> bool:
    return config.family == "persistent" and config.of_moments


def configuration(text: str, limits: Limits) -> KernelConfig:
    """Return the configuration of a text; the device decides knobs that are left out."""
    return from_flat(completed({"backend": "cuda", **flat_values(text)}, limits))


def measured(group: Group, rounds: int, opened: Opener) -> tuple[dict[str, Any], Environment]:
    """Time the kernels of a group; return its record and the environment."""
    start = time.monotonic()
    protocol = TimingProtocol(final_rounds=rounds, measure_limit_s=_LIMIT_S)
    with opened(group.case, protocol) as evaluator:
        kernels = list(group.known(evaluator.limits))
        trials = evaluator.finals([kernel.config for kernel in kernels])
        environment = evaluator.environment
    rows = [{"name": kernel.name, "trial": trial} for kernel, trial in zip(kernels, trials, strict=True)]
    seconds = round(time.monotonic() - start, 1)
    return {"case": group.case, "protocol": protocol, "seconds": seconds, "kernels": rows}, environment


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield a table of a group: speeds, and ratios to the first kernel that has one."""
    first = next((row["trial"].final for row in found["kernels"] if row["trial"].final), None)
    yield f"{'x'.join(map(str, found['case'].domain))}, {found['seconds']} s"
    for row in found["kernels"]:
        trial = row["trial"]
        if trial.final is None or first is None:
            yield f"  {row['name']:48} {trial.outcome}: {trial.reason}"
            continue
        share = paired_ratio(first.samples_s, trial.final.samples_s)
        said = f"{share.median:.3f} ({share.low:.3f} to {share.high:.3f})"
        yield f"  {row['name']:48} {format_mlups(trial.final.mlups):>8} MLUPS  {said}  {from_flat(trial.config).brief}"


def opener(device: str) -> Opener:
    """Return a function that opens evaluators on a device."""
    from lbmtune.measure.workers.evaluate import Evaluator as Real

    def opened(case: Case, protocol: TimingProtocol) -> AbstractContextManager[Evaluator]:
        return Real(case, device, protocol)

    return opened


def main() -> int:
    """Measure the domains in order; each result is written at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--edges", default=",".join(map(str, EDGES)), help="cells along each edge of the domains")
    parser.add_argument("--known", type=Path, help="a file of cases and kernels instead")
    parser.add_argument("--rounds", type=int, default=TimingProtocol().final_rounds, help="samples of each [15]")
    parser.add_argument("--device", default="0")
    given = parser.parse_args()
    if given.rounds < LEAST_ROUNDS:
        parser.error(f"--rounds {given.rounds}: at least {LEAST_ROUNDS} samples of each kernel")
    given.out.mkdir(parents=True, exist_ok=True)
    groups: list[dict[str, Any]] = []
    date = datetime.now(UTC).isoformat(timespec="seconds")
    asked = read(given.known) if given.known else [small(int(edge)) for edge in given.edges.split(",")]
    kept = given.out / f"{given.known.stem if given.known else 'turns'}.json"
    for group in asked:
        found, environment = measured(group, given.rounds, opener(given.device))
        groups.append(found)
        print("\n".join(lines(found)), flush=True)
        facts = {"version": __version__, "date": date, "environment": environment, "groups": groups}
        kept.write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n")
    return 0 if all(row["trial"].final for found in groups for row in found["kernels"]) else 1


if __name__ == "__main__":
    sys.exit(main())
