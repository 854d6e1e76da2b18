"""Accuracies of roundings: measured once on a machine, and kept in the user's cache for later studies."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from lbmtune.api.code_digest import code_digest
from lbmtune.api.machines.devices import LOG
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError, NothingValidError
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Accuracy, Environment
from lbmtune.records.store import cache_folder
from lbmtune.records.whole_files import write_atomically
from lbmtune.regular_file import regular_bytes
from lbmtune.search.kinds import rounding_of

_COMPUTES = ("backend", "catalogue", "codegen", "measure/verification", "runtime")
"""Packages whose text decides how kernels round, and how that is measured."""


class Accuracies:
    """The accuracies of the kernels of a case on a device, by what their rounding depends on."""

    def __init__(self, case: Case, evaluator: Evaluator) -> None:
        self._case, self._evaluator = case, evaluator
        self._said: set[Path] = set()

    def kept(self, config: KernelConfig) -> Accuracy | None:
        """Return the whole accuracy as an earlier study measured it; None if none did."""
        return self._kept(config, brief=False)

    def measured(self, config: KernelConfig, *, brief: bool = False) -> Accuracy | None:
        """Return the accuracy, measured unless it is kept; None, with a remark, if it cannot be measured.

        brief: the run of many steps is enough.
        """
        if found := self._kept(config, brief=brief):
            return found
        try:
            now = self._evaluator.accuracy(config, brief=brief)
        except NothingValidError as error:
            LOG.warning(str(error))
            return None
        found = replace(now, date=datetime.now(UTC).date().isoformat())
        self._keep(config, found)
        return found

    def _kept(self, config: KernelConfig, *, brief: bool) -> Accuracy | None:
        path = self._path(config)
        try:
            found = msgspec.json.decode(regular_bytes(path), type=Accuracy)
        except (OSError, msgspec.DecodeError):  # missing, or of another version
            return None
        if not (found.points or brief):
            return None
        if path not in self._said:
            LOG.info("accuracy of %s: as measured on %s", rounding_of(config).said, found.date)
            self._said.add(path)
        return found

    def _keep(self, config: KernelConfig, found: Accuracy) -> None:
        try:
            write_atomically(self._path(config), msgspec.json.encode(found))
        except InputError as error:  # the study goes on: it has the value
            LOG.warning("the accuracy is not kept for later studies: %s", error)

    def _path(self, config: KernelConfig) -> Path:
        here: Environment = self._evaluator.environment
        device = (here.backend, here.device_id, here.architecture, here.driver, here.runtime, here.compiler)
        solved = (self._case.lattice, self._case.collision, self._case.magic)
        named = msgspec.json.encode((device, solved, rounding_of(config), code_digest(*_COMPUTES)))
        return cache_folder("accuracy") / f"{hashlib.sha256(named).hexdigest()[:32]}.json"
