"""The bookkeeping of all strategies, and those that follow an order fixed before the first trial."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lbmtune.catalogue.config import KernelConfig
from lbmtune.search.interfaces import Gain, Seen
from lbmtune.search.regression.features import Array, Indices
from lbmtune.search.strategies.transfer import Source

_TIE = 1e-9
"""Difference of logarithms that a draw makes at most between configurations of one expected speed."""
_WIDTHS: Mapping[str, str] = {"cuda": "cells_per_thread", "cpu": "vector_bits"}
"""Knob of the width of an access, by backend."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """The task of a strategy. expected: MLUPS by the model; tiers: lower ones are tried first, None: all alike.

    costs: (configurations, other objectives), lower is better, known before anything is measured; None: speed alone.
    sample: configurations spread over the whole space that a strategy that learns tries early; sources: earlier studies
    that it learns from.
    """

    configs: Sequence[KernelConfig]
    expected: Sequence[float]
    seed: int = 0
    tiers: Sequence[int] | None = None
    costs: Array | None = None
    sample: int = 0
    sources: Sequence[Source] = ()


class Ordered(ABC):
    """Keeps what was asked for, what is under way and what was seen. A subclass picks one of several."""

    def __init__(self, task: Task) -> None:
        count = len(task.configs)
        self._random = np.random.default_rng(task.seed)
        self._log_expected = np.log(np.maximum(np.asarray(task.expected, dtype=float), 1e-9))
        self._tiers = np.zeros(count) if task.tiers is None else np.asarray(task.tiers, dtype=float)
        self._free = np.ones(count, dtype=bool)
        self._again: list[int] = []
        self._unknown: set[int] = set()
        self._broken: set[int] = set()
        self._under_way: list[int] = []
        self._seen: dict[int, Seen] = {}

    def wanted(self, count: int) -> list[int]:
        """Return what to compile next; one whose trial said nothing comes a second time."""
        found = [self._again.pop(0) for _ in self._again[:count]]
        while len(found) < count and self._free.any():
            index = self._pick(self._lowest(np.flatnonzero(self._free)), compiled=False)
            self._free[index] = False
            found.append(index)
        return found

    def next(self, ready: Collection[int]) -> int:
        """Return what to measure now, maybe once more: its trial may have been ended, or be that of another worker."""
        index = self._pick(self._lowest(np.array(sorted(ready), dtype=np.intp)), compiled=True)
        if index not in self._under_way:
            self._under_way.append(index)
        return index

    def refine(self, index: int, mlups: float | None) -> None:
        """Replace what is expected of a configuration."""
        if mlups is None:
            self._free[index] = False
            self._broken.add(index)
            self._ended(index)
        else:
            self._log_expected[index] = np.log(max(mlups, 1e-9))

    def observe(self, index: int, seen: Seen) -> None:
        """Note a result; the first that says nothing lets its configuration be asked for again."""
        self._free[index] = False
        self._ended(index)
        if not seen.known and index not in self._unknown:
            self._unknown.add(index)
            self._again.append(index)
        else:
            self._seen[index] = seen

    def _ended(self, index: int) -> None:
        if index in self._under_way:
            self._under_way.remove(index)

    def gain(self) -> Gain | None:
        """Return None: an order expects nothing."""
        return None

    @abstractmethod
    def _pick(self, among: Indices, *, compiled: bool) -> int:
        """Return one of several. compiled: to be measured now, else to be compiled."""

    def _lowest(self, among: Indices) -> Indices:
        tiers = self._tiers[among]
        lowest: Indices = among[tiers == tiers.min()]
        return lowest


class Listed(Ordered):
    """Goes down the model's list; of one expected speed those of wide accesses come first, then by chance."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        widths = np.array([getattr(config, _WIDTHS[config.backend], 1) for config in task.configs], dtype=float)
        self._tie: Array = _TIE * (widths + self._random.random(len(self._free)))

    def _pick(self, among: Indices, *, compiled: bool) -> int:  # noqa: ARG002
        return int(among[np.argmax(self._worth(among, self._log_expected[among]) + self._tie[among])])

    def _worth(self, indices: Indices, log_speeds: Array) -> Array:  # noqa: ARG002
        """Return what configurations are worth if they have these speeds: what is worth most comes first."""
        return log_speeds


class Random(Ordered):
    """Draws, whatever the model says."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._place = self._random.permutation(len(self._free))

    def _pick(self, among: Indices, *, compiled: bool) -> int:  # noqa: ARG002
        return int(among[np.argmin(self._place[among])])


class Exhaustive(Ordered):
    """Tries all, in the order of the legal set."""

    def _pick(self, among: Indices, *, compiled: bool) -> int:  # noqa: ARG002
        return int(among.min())
