"""The kernels of a portfolio on the domains of its range: which are legal, and how fast they are or should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from lbmtune.api.configs import config_of
from lbmtune.catalogue.config import KernelConfig, Scalar, backend_knobs, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import predict
from lbmtune.records import Resources, Trial
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.comparison.race import slower
from lbmtune.records.portfolio_store import MeasuredDomain
from lbmtune.records.spec import StudySpec, tables
from lbmtune.search.portfolio.cover import Table, corrected
from lbmtune.search.regression.features import Array

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


@dataclass
class Contenders:
    """The kernels that may be chosen. configs: by key, the last resort first; resources: as compiled, by key."""

    spec: StudySpec
    machine: Machine
    limits: Limits
    configs: dict[str, KernelConfig]
    resources: dict[str, Resources | None] = field(default_factory=dict)
    _legal: dict[tuple[Int3, str], bool] = field(default_factory=dict)
    _predicted: dict[tuple[Int3, str], float] = field(default_factory=dict)
    _defaults: dict[Int3, KernelConfig] = field(default_factory=dict)

    def add(self, trials: Sequence[Trial]) -> None:
        """Take note of kernels that were measured."""
        for trial in trials:
            self.configs.setdefault(trial.key, from_flat(trial.config))
            self.resources.setdefault(trial.key, trial.resources)

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys, the last resort first."""
        return tuple(self.configs)

    def default(self, domain: Int3) -> KernelConfig:
        """Return the default kernel on a domain, a contender from now on; the last resort if that is illegal there."""
        if domain not in self._defaults:
            found = default_config(self.spec, domain, self.limits, self.machine.environment.backend)
            if not takes(self.spec, found, self.limits, domain):
                found = self.configs[self.keys[0]]
            self._defaults[domain] = self.configs.setdefault(found.key, found)
        return self._defaults[domain]

    def takes(self, key: str, domain: Int3) -> bool:
        """Return whether a kernel is legal on a domain."""
        if (domain, key) not in self._legal:
            self._legal[domain, key] = takes(self.spec, self.configs[key], self.limits, domain)
        return self._legal[domain, key]

    def expected(self, domain: Int3) -> Array:
        """Return MLUPS by the model, in the order of `keys`; 0: illegal there."""
        return np.array([self._expected(domain, key) for key in self.keys])

    def _expected(self, domain: Int3, key: str) -> float:
        known = self._predicted.get((domain, key))
        if known is None:
            known = 0.0
            if self.takes(key, domain):
                case, config = case_on(self.spec.case, domain), self.configs[key]
                known = predict(case, config, self.machine, self.resources.get(key)).mlups
            self._predicted[domain, key] = known
        return known

    def table(self, measured: Sequence[MeasuredDomain], others: Sequence[Int3]) -> Table:
        """Return the speeds on domains that were measured, then on others, as far as they are known by now."""
        rows = [one for one in measured if self._base(one)]
        domains = [*(one.domain for one in rows), *others]
        model = np.array([self.expected(domain) for domain in domains])
        seen = np.full(model.shape, np.nan)
        behind = np.zeros(model.shape, dtype=bool)
        for row, one in enumerate(rows):
            base = self._base(one)
            for trial in one.trials:
                column = self.keys.index(trial.key)
                seen[row, column] = (trial.mlups or 0.0) / base
                behind[row, column] = slower_than_default(one, trial)
        known = np.isfinite(seen)
        speeds = corrected(np.array(domains, dtype=float), model, np.where(known, seen, np.nan))
        return Table(np.array(domains, dtype=float), speeds, known, behind)

    def _base(self, one: MeasuredDomain) -> float:
        """Return the speed of the last resort on a domain; 0 if it failed there."""
        return next((trial.mlups or 0.0 for trial in one.trials if trial.key == self.keys[0]), 0.0)


def slower_than_default(found: MeasuredDomain, trial: Trial) -> bool:
    """Return whether a kernel is slower than the default one at 95 %, by rounds of both."""
    usual = next((one for one in found.trials if one.key == found.default), None)
    return bool(usual and trial.key != usual.key and slower(trial, usual))
