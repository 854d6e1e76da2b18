"""All legal configurations of a study in the order that the model expects, without a device."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lbmtune.catalogue.config import from_flat
from lbmtune.codegen.skeleton import kernels_folder
from lbmtune.cores import usable_cores
from lbmtune.errors import DeviceUnavailableError
from lbmtune.model.predict import predict
from lbmtune.records import Resources
from lbmtune.records.caches import cache_folder
from lbmtune.records.store import write_atomically
from lbmtune.units import format_mlups

if TYPE_CHECKING:
    from lbmtune.backend.compiled import Compiled
    from lbmtune.catalogue.case import Case
    from lbmtune.catalogue.config import KernelConfig
    from lbmtune.model.machine import Machine
    from lbmtune.records import Prediction
    from lbmtune.records.study import StudySpec

_KEPT = 1000
"""How many of the first are kept on disk, at least."""
_SAME = 1e-9
"""Predictions that are relatively nearer are one: only the order of their sums differs."""
_QUIET_S = 10.0
"""Seconds between two lines on how far compiling is."""
_PACKAGE = Path(__file__).resolve().parent.parent

Say = Callable[[str], None]


class Entry(NamedTuple):
    """A configuration with its prediction; compiled: whether that knows what was compiled."""

    config: KernelConfig
    prediction: Prediction
    compiled: bool


@dataclass(frozen=True)
class Ranking:
    """Configurations with their predictions, the fastest first; those that are expected to be equal as in the space.

    legal: how many there are, of which `entries` are the first.
    """

    study: str
    case: Case
    machine: str
    legal: int
    entries: tuple[Entry, ...]

    def facts(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "study": self.study,
            "case": self.case,
            "machine": self.machine,
            "legal_configurations": self.legal,
            "first": [
                {"config": config.flat(), "key": config.key, "compiled": compiled, "prediction": prediction}
                for config, prediction, compiled in self.entries
            ],
        }


class _First(msgspec.Struct, frozen=True):
    """The first of a ranking, as they are kept: keys, configurations in flat form, and what was compiled of them."""

    legal: int
    keys: list[str]
    configs: list[dict[str, int | str]]
    resources: list[Resources | None]


def ranking(spec: StudySpec, described: Machine, top: int, compiled: int, say: Say) -> Ranking:
    """The first of the legal space of a study, of which so many are compiled and predicted anew.

    What was found is kept on disk, named after all that it follows from. Raises InputError where nothing is legal.
    """
    compiler = compiler_of(described, say) if compiled else ""
    path = cache_folder("rankings") / f"{_name(spec, described, compiler, compiled)}.json"
    found = _kept(path)
    if found is None or len(found.configs) < min(top, found.legal):
        found = _ranked(spec, described, compiled if compiler else 0, max(top, _KEPT), say)
        write_atomically(path, msgspec.json.encode(found))
    configs = map(from_flat, found.configs[:top])
    entries = (
        Entry(config, predict(spec.case, config, described, resources), resources is not None)
        for config, resources in zip(configs, found.resources, strict=False)
    )
    return Ranking(spec.name, spec.case, described.name, found.legal, tuple(entries))


def ranked_before(key: str) -> KernelConfig | None:
    """The configuration that has a key, from any ranking that is kept."""
    for path in cache_folder("rankings").glob("*.json"):
        found = _kept(path)
        if found and key in found.keys:
            return from_flat(found.configs[found.keys.index(key)])
    return None


def _kept(path: Path) -> _First | None:
    """None where it is not there, or was written by another version."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_First)
    except (OSError, msgspec.DecodeError):
        return None


def _name(spec: StudySpec, described: Machine, compiler: str, compiled: int) -> str:
    """The digest of what a ranking follows from: case and axes, machine, compiler, and the text of this package."""
    digest = hashlib.sha256(msgspec.json.encode((spec.case, spec.axes, described, compiler, compiled)))
    for path in sorted((*_PACKAGE.rglob("*.py"), *kernels_folder().rglob("*.*"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def compiler_of(described: Machine, say: Say) -> str:
    """NVRTC and its version, or '' where it does not compile for the machine, which is said."""
    from lbmtune.backend import nvrtc

    if described.environment.backend == "cpu":
        return ""
    alone = "the ranking is of estimates alone"
    try:
        name, known = f"NVRTC {'.'.join(map(str, nvrtc.version()))}", nvrtc.architectures()
    except DeviceUnavailableError as error:
        say(f"{error}; {alone}.")
        return ""
    architecture = described.environment.architecture
    if architecture.rstrip("af") not in known:
        say(f"{name} compiles for {known[0]} and newer, not for {architecture}: {alone}.")
        return ""
    return name


def _ranked(spec: StudySpec, described: Machine, compiled: int, keep: int, say: Say) -> _First:
    """Estimates of all; the first of them compiled, and all sorted anew. What cannot be compiled is left out."""
    from lbmtune.cli.devices import limits_of, predictor
    from lbmtune.search.estimates import estimates
    from lbmtune.search.space import legal_set

    environment = described.environment
    say(f"estimating all legal configurations of {spec.name} on {described.name}")
    space = legal_set(spec.case, environment.backend, spec.axes[environment.backend], limits_of(described))
    found = estimates(predictor(spec.case, described), space.configs)
    speeds = {n: one.mlups for n, one in enumerate(found)}
    resources: dict[int, Resources] = {}
    first = _fastest(speeds)[:compiled]
    if first:
        say(f"{len(speeds)} configurations estimated; compiling the first {len(first)} for {environment.architecture}")
        configs = [space.configs[n] for n in first]
        refused = []
        answers = compiled_first(spec.case, configs, environment.architecture, say)
        for n, one in zip(first, answers, strict=True):
            if one.resources is None:
                refused.append(one.reason.splitlines()[0])
                del speeds[n]
            else:
                resources[n] = one.resources
                speeds[n] = predict(spec.case, space.configs[n], described, one.resources).mlups
        if refused:
            say(f"{len(refused)} of them do not compile and are left out: {refused[0]}")
    order = _fastest(speeds)[:keep]
    first_configs = [space.configs[n] for n in order]
    return _First(
        legal=len(space.configs),
        keys=[config.key for config in first_configs],
        configs=[config.flat() for config in first_configs],
        resources=[resources.get(n) for n in order],
    )


def compiled_first(case: Case, configs: Sequence[KernelConfig], architecture: str, say: Say) -> Iterator[Compiled]:
    """What NVRTC says of them, and every few seconds how many there have been: those on chip take seconds each."""
    from lbmtune.backend.compiled import compiled_all

    said_s, count = time.monotonic(), len(configs)
    for done, one in enumerate(compiled_all(case, configs, architecture, usable_cores()), 1):
        yield one
        if done < count and time.monotonic() - said_s >= _QUIET_S:
            said_s = time.monotonic()
            say(f"{done} of {count} compiled")


def _fastest(speeds: dict[int, float]) -> list[int]:
    """Numbers in the order of their speeds; equal ones as they are numbered."""
    return sorted(speeds, key=lambda n: (-speeds[n], n))


def print_ranking(ranked: Ranking) -> None:
    """As a table, or two on a narrow terminal."""
    from lbmtune.cli import output
    from lbmtune.report.info import subject

    rows = (
        (format_mlups(prediction.mlups), binding(prediction), "yes" if compiled else "no", config.key, config.said)
        for config, prediction, compiled in ranked.entries
    )
    title = f"{ranked.study} on {ranked.machine}: {ranked.legal:,} legal configurations\n{subject(ranked.case, [])}"
    whole = output.table(title, ("MLUPS>", "limit", "compiled", "key", "configuration"), rows)
    console = output.stdout()
    for part in output.fitted(whole, console.width, ("compiled",)):
        console.print(part)
    if remark := ties(ranked):
        console.print(remark, markup=False)


def ties(ranked: Ranking) -> str:
    """Which neighbours the model does not tell apart, in a sentence; empty where it tells all of them apart."""
    speeds = [entry.prediction.mlups for entry in ranked.entries]
    ends = [n for n, (one, next_one) in enumerate(pairwise(speeds), 1) if not isclose(one, next_one, rel_tol=_SAME)]
    groups = [(first + 1, last) for first, last in pairwise([0, *ends, len(speeds)]) if last - first > 1]
    if not groups:
        return ""
    places = ", ".join(f"{first} to {last}" for first, last in groups)
    return f"Ties: the model expects the same of places {places}; their order says nothing."


def binding(prediction: Prediction) -> str:
    """The two largest terms of a prediction in a few words, in picoseconds of the whole device."""
    return ", ".join(f"{one.name} {one.seconds * 1e12:.3g} ps" for one in prediction.terms[:2])
