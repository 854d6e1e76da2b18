"""Rank all legal configurations of a study by the model, without a device."""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from lbmtune.api.code_digest import code_digest
from lbmtune.api.machines.devices import LOG, limits_of
from lbmtune.api.machines.shipped import as_machine
from lbmtune.api.predicted.estimates import predictor
from lbmtune.api.predicted.grouping import Differences, differences, families, folded
from lbmtune.backend.cuda import compiled_cache, nvrtc
from lbmtune.backend.cuda.compiled_cache import Compiled
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig, Scalar, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.cores import usable_cores
from lbmtune.errors import DeviceUnavailableError
from lbmtune.files.studyfile import as_spec
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import predict
from lbmtune.records import Prediction, Resources
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import cache_folder
from lbmtune.records.whole_files import write_atomically
from lbmtune.regular_file import regular_bytes
from lbmtune.search.estimates import estimates
from lbmtune.search.kinds import kind_of
from lbmtune.search.spaces.bounds import legal_of

_KEPT = 1000
"""Least number of configurations that are kept on disk, the first ones."""
_QUIET_S = 10.0
"""Seconds between two lines of progress."""

Say = Callable[[str], None]
T = TypeVar("T")


class Entry(NamedTuple):
    """A configuration with its prediction; compiled: it knows the registers and spills of the kernel."""

    config: KernelConfig
    prediction: Prediction
    compiled: bool


class Row(msgspec.Struct, Generic[T], frozen=True):
    """Configurations that a person does not tell apart, by the first of them. place: its place, from 1 on.

    compiled: how many of them were compiled; differ: the axes in which they differ, where that is said.
    """

    place: int
    first: T
    size: int
    compiled: int
    differ: Differences


@dataclass(frozen=True)
class Ranking:
    """Configurations with their predictions, the fastest first; equal ones in the order of the space.

    legal: how many there are, of which `entries` are the first; rows: the first of those that a person tells apart, as
    many, and so from more of them; families: the best of each.
    """

    study: str
    case: Case
    machine: str
    legal: int
    entries: tuple[Entry, ...]
    rows: tuple[Row[Entry], ...]
    families: tuple[Row[Entry], ...]

    def facts(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "study": self.study,
            "case": self.case,
            "machine": self.machine,
            "legal_configurations": self.legal,
            "first": [_facts(entry) for entry in self.entries],
            "rows": [_row_facts(row) for row in self.rows],
            "families": [_row_facts(row) for row in self.families],
        }


def _facts(entry: Entry) -> dict[str, Any]:
    config, prediction, compiled = entry
    return {"config": config.flat(), "key": config.key, "compiled": compiled, "prediction": prediction}


def _row_facts(row: Row[Entry]) -> dict[str, Any]:
    return {
        "place": row.place,
        "configurations": row.size,
        "compiled_configurations": row.compiled,
        "differ_in": row.differ,
        "family": str(kind_of(row.first.config)),
        **_facts(row.first),
    }


class _One(msgspec.Struct, frozen=True):
    """A configuration on disk: flat, with its key and its compiled resources."""

    key: str
    config: dict[str, Scalar]
    resources: Resources | None


class _First(msgspec.Struct, frozen=True):
    """The first of a ranking on disk. ranked: its length; legal: with those that do not compile."""

    legal: int
    ranked: int
    ones: list[_One]
    rows: list[Row[_One]]
    families: list[Row[_One]]

    def named(self, key: str) -> _One | None:
        """Return the configuration with a key if it was printed."""
        every = (*self.ones, *(row.first for row in (*self.rows, *self.families)))
        return next((one for one in every if one.key == key), None)


def rank(
    spec: StudySpec | Case | Path | str,
    machine: Machine | Path | str,
    top: int = 10,
    compiled: int = 200,
    say: Say = LOG.info,
) -> Ranking:
    """Return the fastest configurations of a study's legal space, as the model expects them on a machine.

    spec: a study, a case, a study file or the name of a shipped study; machine: a description, a file of one or the
    name of a shipped one; top: how many; compiled: how many of the first are compiled and predicted again, if NVRTC
    compiles for the machine.
    The ranking is kept on disk. Raises InputError if nothing is legal.
    """
    spec, machine = as_spec(spec), as_machine(machine)
    compiler = compiler_of(machine, say) if compiled else ""
    path = cache_folder("rankings") / f"{_name(spec, machine, compiler, compiled)}.json"
    found = _kept(path)
    if found is None or len(found.ones) < min(top, found.ranked):
        found = _ranked(spec, machine, compiled if compiler else 0, max(top, _KEPT), say)
        write_atomically(path, msgspec.json.encode(found))

    def entry(one: _One) -> Entry:
        """Return the entry with its prediction, which is made again."""
        config = from_flat(one.config)
        return Entry(config, predict(spec.case, config, machine, one.resources), one.resources is not None)

    entries = tuple(map(entry, found.ones[:top]))
    rows, kinds = (
        tuple(Row(row.place, entry(row.first), row.size, row.compiled, row.differ) for row in several)
        for several in (found.rows[:top], found.families)
    )
    return Ranking(spec.name, spec.case, machine.name, found.legal, entries, rows, kinds)


def ranked_before(key: str) -> KernelConfig | None:
    """Return the configuration with a key from any ranking on disk, or None."""
    for path in cache_folder("rankings").glob("*.json"):
        found = _kept(path)
        if found and (one := found.named(key)):
            return from_flat(one.config)
    return None


def _kept(path: Path) -> _First | None:
    """Return a ranking on disk; None if it is missing or of another version."""
    try:
        return msgspec.json.decode(regular_bytes(path), type=_First)
    except (OSError, msgspec.DecodeError):
        return None


def _name(spec: StudySpec, machine: Machine, compiler: str, compiled: int) -> str:
    """Return a digest of the legal space, machine, compiler and the text of this package."""
    space = (spec.case, spec.axes, spec.families, spec.max_footprint_bytes)
    named = msgspec.json.encode((*space, machine, compiler, compiled, code_digest()))
    return hashlib.sha256(named).hexdigest()[:32]


def compiler_of(machine: Machine, say: Say) -> str:
    """Return NVRTC and its version; empty, with a remark, if it does not compile for the machine."""
    if not BACKENDS[machine.environment.backend].reports_resources:
        return ""
    alone = "the ranking is of estimates alone"
    try:
        name, known = f"NVRTC {'.'.join(map(str, nvrtc.version()))}", nvrtc.architectures()
    except DeviceUnavailableError as error:
        say(f"{error}; {alone}.")
        return ""
    architecture = machine.environment.architecture
    if architecture.rstrip("af") not in known:
        say(f"{name} compiles for {known[0]} and newer, not for {architecture}: {alone}.")
        return ""
    return name


def _ranked(spec: StudySpec, machine: Machine, compiled: int, keep: int, say: Say) -> _First:
    """Estimate all, compile the first, and sort again without those that do not compile."""
    environment = machine.environment
    say(f"estimating all legal configurations of {spec.name} on {machine.name}")
    space = legal_of(spec, environment.backend, limits_of(machine))
    found = estimates(predictor(spec.case, machine), space.configs)
    speeds = {n: one.mlups for n, one in enumerate(found)}
    resources: dict[int, Resources] = {}
    first = _fastest(speeds)[:compiled]
    if first:
        say(f"{len(speeds)} configurations estimated; compiling the first {len(first)} for {environment.architecture}")
        refused = []
        answers = compiled_first(spec.case, [space.configs[n] for n in first], environment.architecture, say)
        for n, one in zip(first, answers, strict=True):
            if one.resources is None:
                refused.append(one.reason.splitlines()[0])
                del speeds[n]
            else:
                resources[n] = one.resources
                speeds[n] = predict(spec.case, space.configs[n], machine, one.resources).mlups
        if refused:
            say(f"{len(refused)} of them do not compile and are left out: {refused[0]}")
    return _first(space.configs, speeds, resources, keep)


def _first(
    configs: Sequence[KernelConfig], speeds: Mapping[int, float], resources: Mapping[int, Resources], keep: int
) -> _First:
    """Return the first `keep` places and rows, and all families. speeds, resources: by number."""
    order = _fastest(speeds)
    places = {n: place for place, n in enumerate(order, 1)}

    def one(n: int) -> _One:
        return _One(configs[n].key, configs[n].flat(), resources.get(n))

    def row(group: list[int], differ: Differences) -> Row[_One]:
        return Row(places[group[0]], one(group[0]), len(group), sum(n in resources for n in group), differ)

    rows = [row(group, differences(configs[n] for n in group)) for group in folded(order, configs, speeds)[:keep]]
    kinds = [row(group, {}) for group in families(order, configs)]
    return _First(len(configs), len(order), [one(n) for n in order[:keep]], rows, kinds)


def compiled_first(case: Case, configs: Sequence[KernelConfig], architecture: str, say: Say) -> Iterator[Compiled]:
    """Compile configurations with NVRTC and report progress every few seconds."""
    said_s, count = time.monotonic(), len(configs)
    for done, one in enumerate(compiled_cache.compiled_all(case, configs, architecture, usable_cores()), 1):
        yield one
        if done < count and time.monotonic() - said_s >= _QUIET_S:
            said_s = time.monotonic()
            say(f"{done} of {count} compiled")


def _fastest(speeds: Mapping[int, float]) -> list[int]:
    """Return numbers in the order of their speeds; equal ones as they are numbered."""
    return sorted(speeds, key=lambda n: (-speeds[n], n))
