"""Who is proven at full size and measured again: the best, and the best of each family that one would compare.

Statements such as 'in place as fast as with two lattices, in half the memory' rest on finals on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.search.accuracy import kept_where

NEAR = 0.95
"""A family whose best is within this share of the best of all has a final: by first measurements alone, ranks that
are nearer than that may turn out otherwise."""


class Class(NamedTuple):
    """What decides what a kernel needs: the state of a cell, where and how often it is kept, where cut links come from.

    several: whether a launch does several steps. Without it one step in place would have no final beside one step with
    two lattices wherever several steps lead in one lattice.
    """

    keeps: str
    lattices: int
    links: str
    several: bool


class Family(NamedTuple):
    """Kernels of a class that propagate in the same way."""

    of: Class
    scheme: str
    steps: int

    def __str__(self) -> str:
        """Such as 'aa, populations in one lattice, flags read'."""
        keeps, lattices, links, _ = self.of
        several = f", {self.steps} steps per launch" if self.steps > 1 else ""
        return f"{self.scheme}, {keeps} in {_LATTICES[lattices]}{_LINKS[links]}{several}"


_LATTICES = {1: "one lattice", 2: "two lattices"}
_LINKS = {"compiled": "", "flags": ", flags read", "list": ", sites listed"}


def family_of(config: KernelConfig) -> Family:
    """The family of a configuration."""
    links = "list" if config.indirect else "flags" if config.flags == "memory" else "compiled"
    of = Class(kept_where(config), config.copies, links, config.fused_steps > 1)
    return Family(of, config.scheme, config.fused_steps)


def finalists_of(record: StudyRecord) -> tuple[Trial, ...]:
    """The finalists by their first measurements, best first, without final ones; `stands_for` names what each leads.

    They are the best of all, as many as the protocol says (a winner needs at least one); the best of each class; and
    the best of each family that comes near the best. Where small is what counts, the best of all alone.
    """
    first = replace(record, trials=tuple(replace(t, final=None, verification=None) for t in record.trials))
    ranked = first.ranked
    best = {trial.number for trial in ranked[: max(1, record.header.spec.protocol.finalists)]}
    led = _led(ranked) if record.header.spec.objective == "mlups" else {}
    by_number = {trial.number: trial for trial in record.trials}
    return tuple(
        replace(by_number[trial.number], final=None, stands_for=str(led.get(trial.number, "")))
        for trial in ranked
        if trial.number in best or trial.number in led
    )


def _led(ranked: tuple[Trial, ...]) -> Mapping[int, Family]:
    """Number of the trial that leads a family -> the family, of those that come near the best or lead their class."""
    led: dict[int, Family] = {}
    families: set[Family] = set()
    classes: set[Class] = set()
    for trial in ranked:
        family = family_of(from_flat(trial.config))
        near = (trial.mlups or 0.0) >= NEAR * (ranked[0].mlups or 0.0)
        if family.of not in classes or (near and family not in families):
            led[trial.number] = family
        families.add(family)
        classes.add(family.of)
    return led
