"""The kernels of a portfolio on the domains of its range: which are legal, and how fast they are or should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType
from typing import Any

from lbmtune.api.configs import config_of
from lbmtune.api.portfolios.numbers import chunks_of, follows
from lbmtune.catalogue.config import KernelConfig, Scalar, backend_knobs
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import predict
from lbmtune.records import Resources, Trial
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.best_json.law import Chunks
from lbmtune.records.comparison.race import slower
from lbmtune.records.portfolio_store import MeasuredDomain
from lbmtune.records.spec import StudySpec, tables

_PRECISION = ("storage", "compute")


def case_on(case: Case, domain: Int3) -> Case:
    """Return a case on another domain. Raises InputError if it has none there."""
    return replace(case, domain=domain)


_ANY_ROW: Mapping[str, Scalar] = {"vector_bits": 0}
"""Knobs with which rows may have any length."""


def last_resort(spec: StudySpec, least: Int3, most: Int3, limits: Limits, backend: str) -> KernelConfig:
    """Return the default kernel of a range, without vectors if it takes no odd domains with them."""
    x, y, z = (n + 1 if n % 2 == 0 and n < high else n for n, high in zip(least, most, strict=True))
    ways = [{}, {name: value for name, value in _ANY_ROW.items() if name in backend_knobs(backend)}]
    found = [default_config(spec, one, limits, backend, way) for way in ways for one in (least, (x, y, z))]
    both = (one for one in found if takes(spec, one, limits, least) and takes(spec, one, limits, (x, y, z)))
    return next(both, found[0])


def default_config(
    spec: StudySpec, domain: Int3, limits: Limits, backend: str, given: Mapping[str, Scalar] = MappingProxyType({})
) -> KernelConfig:
    """Return the kernel on a domain if no knobs are given but some, and the precision of a study."""
    values = dict(given)
    for table in tables(spec.axes.get(backend, ())):
        values |= {name: table[name][0] for name in _PRECISION if name in table and name not in values}
    return config_of({"backend": backend, **values}, case_on(spec.case, domain), limits, backend)


def takes(spec: StudySpec, config: KernelConfig, limits: Limits, domain: Int3) -> bool:
    """Return whether a configuration is legal on a domain."""
    try:
        return broken(case_on(spec.case, domain), config, limits) is None
    except InputError:  # of a case that has no such domain
        return False


def even_chunks(config: KernelConfig) -> KernelConfig:
    """Return a kernel with chunks of as many planes in place of tapered ones: small domains have few planes for these.

    Others are returned as they are.
    """
    tapered = getattr(config, "chunk_schedule", "") == "tapered"
    knobs: Any = config
    found: KernelConfig = replace(knobs, chunk_schedule="uniform") if tapered else config
    return found


@dataclass
class Contenders:
    """The kernels that may be chosen. configs: by key, the last resort first; resources: as compiled, by key.

    A kernel whose planes of a chunk are a matter of the launch is one contender, whatever these are (`at`).
    """

    spec: StudySpec
    machine: Machine
    limits: Limits
    configs: dict[str, KernelConfig]
    resources: dict[str, Resources | None] = field(default_factory=dict)
    chunks: dict[str, Chunks | None] = field(default_factory=dict)
    _legal: dict[tuple[Int3, str], bool] = field(default_factory=dict)
    _counts: dict[tuple[Int3, str], int] = field(default_factory=dict)
    _at: dict[tuple[Int3, str], KernelConfig] = field(default_factory=dict)
    _named: dict[tuple[Int3, str], str] = field(default_factory=dict)
    _expected: dict[tuple[Int3, str], float] = field(default_factory=dict)
    _defaults: dict[Int3, KernelConfig] = field(default_factory=dict)

    def add(self, trials: Sequence[Trial]) -> list[str]:
        """Take note of kernels that were measured, and return their keys."""
        return [self.put(trial.kernel_config, trial.resources) for trial in trials]

    def put(self, config: KernelConfig, resources: Resources | None, chunks: Chunks | None = None) -> str:
        """Take note of a kernel and return its key. chunks: as a portfolio has them; None: they are found."""
        config = self.generic(config)
        self.configs.setdefault(config.key, config)
        if resources or config.key not in self.resources:
            self.resources[config.key] = resources
        if config.key not in self.chunks:
            self.chunks[config.key] = chunks or chunks_of(self.spec.case, config, self.machine, resources)
        return config.key

    def generic(self, config: KernelConfig) -> KernelConfig:
        """Return the configuration that stands for a kernel whatever the planes of a chunk, if launches set these."""
        knobs: Any = config
        if not follows(self.spec.case, config):
            return config
        found: KernelConfig = replace(knobs, **{config.length_knob: 2 * knobs.steps})
        return found

    def shape(self, config: KernelConfig) -> str:
        """Return what kernels have in common whose times go the same way with the domain; of most it is their key.

        Of kernels with chunks of planes it is the tile, the steps, and how chunks share the planes.
        """
        knobs: Any = self.generic(config)
        if not follows(self.spec.case, config):
            return str(knobs.key)
        return f"{knobs.block} {knobs.cells_per_thread} {knobs.rows} {knobs.steps} {knobs.chunk_schedule}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys, the last resort first."""
        return tuple(self.configs)

    def at(self, key: str, domain: Int3) -> KernelConfig:
        """Return the configuration of a kernel on a domain."""
        if (domain, key) not in self._at:
            config: Any = self.configs[key]
            if self.chunks.get(key):
                config = replace(config, **{config.length_knob: -(-domain[2] // self.count(key, domain))})
            self._at[domain, key] = config
        return self._at[domain, key]

    def count(self, key: str, domain: Int3) -> int:
        """Return the chunks of a kernel on a domain; 1 if launches do not set their number."""
        if (domain, key) not in self._counts:
            chunks = self.chunks.get(key)
            self._counts[domain, key] = chunks.count(domain) if chunks else 1
        return self._counts[domain, key]

    def named(self, key: str, domain: Int3) -> str:
        """Return the key of that configuration."""
        if (domain, key) not in self._named:
            self._named[domain, key] = self.at(key, domain).key
        return self._named[domain, key]

    def default(self, domain: Int3) -> str:
        """Return the default kernel on a domain, a contender from now on; the last resort if that is illegal there."""
        if domain not in self._defaults:
            found = default_config(self.spec, domain, self.limits, self.machine.environment.backend)
            legal = takes(self.spec, found, self.limits, domain)
            self._defaults[domain] = found if legal else self.configs[self.keys[0]]
        return self.put(self._defaults[domain], None)

    def takes(self, key: str, domain: Int3) -> bool:
        """Return whether a kernel is legal on a domain."""
        if (domain, key) not in self._legal:
            self._legal[domain, key] = takes(self.spec, self.at(key, domain), self.limits, domain)
        return self._legal[domain, key]

    def expected_s(self, key: str, domain: Int3) -> float:
        """Return the seconds of a step by the model."""
        if (domain, key) not in self._expected:
            case = case_on(self.spec.case, domain)
            found = predict(case, self.at(key, domain), self.machine, self.resources.get(key))
            self._expected[domain, key] = seconds_of(domain, found.mlups)
        return self._expected[domain, key]


def seconds_of(domain: Int3, mlups: float) -> float:
    """Return the seconds of a step."""
    return prod(domain) / (1e6 * mlups)


def slower_than_default(found: MeasuredDomain, trial: Trial) -> bool:
    """Return whether a kernel is slower than the default one at 95 %, by rounds of both."""
    usual = next((one for one in found.trials if one.key == found.default), None)
    return bool(usual and trial.key != usual.key and slower(trial, usual))
