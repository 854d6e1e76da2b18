"""All legal configurations of a study in the order that the model expects, without a device."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lbmtune.catalogue.config import Scalar, from_flat
from lbmtune.cli.format.grouping import Differences, differences, families, folded
from lbmtune.codegen.skeleton import kernels_folder
from lbmtune.cores import usable_cores
from lbmtune.errors import DeviceUnavailableError
from lbmtune.model.predict import predict
from lbmtune.records import Resources
from lbmtune.records.caches import cache_folder
from lbmtune.records.store import write_atomically
from lbmtune.search.kinds import kind_of

if TYPE_CHECKING:
    from lbmtune.backend.cuda.compiled_cache import Compiled
    from lbmtune.catalogue.config import KernelConfig
    from lbmtune.catalogue.problem.case import Case
    from lbmtune.model.machine.description import Machine
    from lbmtune.records import Prediction
    from lbmtune.records.study import StudySpec

_KEPT = 1000
"""How many of the first are kept on disk, at least."""
_QUIET_S = 10.0
"""Seconds between two lines on how far compiling is."""
_PACKAGE = Path(__file__).resolve().parent.parent

Say = Callable[[str], None]


class Entry(NamedTuple):
    """A configuration with its prediction; compiled: whether that knows what was compiled."""

    config: KernelConfig
    prediction: Prediction
    compiled: bool


class Row(NamedTuple):
    """Configurations of which the first one stands for all. place: its place in the ranking, from 1 on.

    compiled: how many of them were compiled; differ: the axes in which they differ, where that is said.
    """

    place: int
    first: Entry
    size: int
    compiled: int
    differ: Differences

    def facts(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "place": self.place,
            "configurations": self.size,
            "compiled_configurations": self.compiled,
            "differ_in": self.differ,
            "family": str(kind_of(self.first.config)),
            **_facts(self.first),
        }


@dataclass(frozen=True)
class Ranking:
    """Configurations with their predictions, the fastest first; those that are expected to be equal as in the space.

    legal: how many there are, of which `entries` are the first; rows: the first of those that a person tells apart, as
    many, and so from more of them; families: the best of each.
    """

    study: str
    case: Case
    machine: str
    legal: int
    entries: tuple[Entry, ...]
    rows: tuple[Row, ...]
    families: tuple[Row, ...]

    def facts(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "study": self.study,
            "case": self.case,
            "machine": self.machine,
            "legal_configurations": self.legal,
            "first": [_facts(entry) for entry in self.entries],
            "rows": [row.facts() for row in self.rows],
            "families": [row.facts() for row in self.families],
        }


def _facts(entry: Entry) -> dict[str, Any]:
    config, prediction, compiled = entry
    return {"config": config.flat(), "key": config.key, "compiled": compiled, "prediction": prediction}


class _One(msgspec.Struct, frozen=True):
    """A configuration as it is kept: in flat form, with its key, and with what was compiled of it."""

    key: str
    config: dict[str, Scalar]
    resources: Resources | None

    def entry(self, case: Case, described: Machine) -> Entry:
        """With its prediction, which is quickly made again."""
        config = from_flat(self.config)
        return Entry(config, predict(case, config, described, self.resources), self.resources is not None)


class _Several(msgspec.Struct, frozen=True):
    """A Row as it is kept."""

    place: int
    first: _One
    size: int
    compiled: int
    differ: dict[str, list[Scalar]]

    def row(self, case: Case, described: Machine) -> Row:
        """With the prediction of the first one."""
        return Row(self.place, self.first.entry(case, described), self.size, self.compiled, self.differ)


class _First(msgspec.Struct, frozen=True):
    """The first of a ranking, as they are kept. ranked: how many it has; legal: those that do not compile, too."""

    legal: int
    ranked: int
    ones: list[_One]
    rows: list[_Several]
    families: list[_Several]

    def named(self, key: str) -> _One | None:
        """The configuration with that key: any that was printed."""
        every = (*self.ones, *(row.first for row in (*self.rows, *self.families)))
        return next((one for one in every if one.key == key), None)


def ranking(spec: StudySpec, described: Machine, top: int, compiled: int, say: Say) -> Ranking:
    """The first of the legal space of a study, of which so many are compiled and predicted anew.

    What was found is kept on disk, named after all that it follows from. Raises InputError where nothing is legal.
    """
    compiler = compiler_of(described, say) if compiled else ""
    path = cache_folder("rankings") / f"{_name(spec, described, compiler, compiled)}.json"
    found = _kept(path)
    if found is None or len(found.ones) < min(top, found.ranked):
        found = _ranked(spec, described, compiled if compiler else 0, max(top, _KEPT), say)
        write_atomically(path, msgspec.json.encode(found))
    return Ranking(
        spec.name,
        spec.case,
        described.name,
        found.legal,
        tuple(one.entry(spec.case, described) for one in found.ones[:top]),
        tuple(row.row(spec.case, described) for row in found.rows[:top]),
        tuple(row.row(spec.case, described) for row in found.families),
    )


def ranked_before(key: str) -> KernelConfig | None:
    """The configuration that has a key, from any ranking that is kept."""
    for path in cache_folder("rankings").glob("*.json"):
        found = _kept(path)
        if found and (one := found.named(key)):
            return from_flat(one.config)
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
    from lbmtune.backend.cuda import nvrtc

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
    from lbmtune.cli.arguments.devices import limits_of, predictor
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
    return _first(space.configs, speeds, resources, keep)


def _first(
    configs: Sequence[KernelConfig], speeds: Mapping[int, float], resources: Mapping[int, Resources], keep: int
) -> _First:
    """So many places and rows, and all families. speeds, resources: by number, of those that have any."""
    order = _fastest(speeds)
    places = {n: place for place, n in enumerate(order, 1)}

    def one(n: int) -> _One:
        return _One(configs[n].key, configs[n].flat(), resources.get(n))

    def several(group: list[int], differ: Differences) -> _Several:
        return _Several(places[group[0]], one(group[0]), len(group), sum(n in resources for n in group), differ)

    return _First(
        legal=len(configs),
        ranked=len(order),
        ones=[one(n) for n in order[:keep]],
        rows=[
            several(group, differences(configs[n] for n in group)) for group in folded(order, configs, speeds)[:keep]
        ],
        families=[several(group, {}) for group in families(order, configs)],
    )


def compiled_first(case: Case, configs: Sequence[KernelConfig], architecture: str, say: Say) -> Iterator[Compiled]:
    """What NVRTC says of them, and every few seconds how many there have been: those on chip take seconds each."""
    from lbmtune.backend.cuda.compiled_cache import compiled_all

    said_s, count = time.monotonic(), len(configs)
    for done, one in enumerate(compiled_all(case, configs, architecture, usable_cores()), 1):
        yield one
        if done < count and time.monotonic() - said_s >= _QUIET_S:
            said_s = time.monotonic()
            say(f"{done} of {count} compiled")


def _fastest(speeds: Mapping[int, float]) -> list[int]:
    """Numbers in the order of their speeds; equal ones as they are numbered."""
    return sorted(speeds, key=lambda n: (-speeds[n], n))
