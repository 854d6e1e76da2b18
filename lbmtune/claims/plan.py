"""A document on a device: which configuration stands for each variant, and why some have none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lbmtune.catalogue.config import KernelConfig, Scalar, backend_knobs, completed, cuda, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.records.claims import Document, Duty, Group, Row, Series, Variant
from lbmtune.units import format_bytes

STAGED = "staged"
"""The duty of a domain that is kept on the host and passes through the device part by part."""
_PART = re.compile(r"n([xyz])/([1-9]\d*)")
CORES = "cores"
"""Value of the axis `threads` that stands for one thread on every physical core."""
_PAST_CAPACITY = 1.6
"""Memory that two lattices need of a domain past capacity, in budgets: one lattice takes 0.8."""
_STEP = 32
"""Cells by which the edge of such a domain grows."""


@dataclass(frozen=True, kw_only=True)
class Here:
    """What of the device decides on a plan. physical_cores: of the host; budget_bytes: stands for a small device."""

    backend: str
    limits: Limits
    physical_cores: int
    budget_bytes: int


@dataclass(frozen=True)
class Entry:
    """A variant about to be measured. config: None where it cannot be, for the given reason; accuracy: as well."""

    variant: Variant
    config: KernelConfig | None
    reason: str = ""
    accuracy: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A group to be measured."""

    document: str
    series: Series
    case: Case
    entries: tuple[Entry, ...]

    @property
    def runnable(self) -> tuple[Entry, ...]:
        """Those with a configuration."""
        return tuple(entry for entry in self.entries if entry.config is not None)

    def is_of(self, group: Group) -> bool:
        """Whether a group is this plan carried out: the same configurations on the same case, nothing missing, be it an
        accuracy or the speed of what was found right.
        """
        rows = tuple((row.variant, row.config, row.duty) for row in group.rows)
        mine = tuple((row.variant, row.config, row.duty) for row in map(self.row, self.entries))
        same = (group.document, group.series, group.case, rows) == (self.document, self.series.name, self.case, mine)
        return (
            same
            and not any(row.is_untimed for row in group.rows)
            and all(
                row.trial.accuracy is not None
                for entry, row in zip(self.entries, group.rows, strict=True)
                if entry.accuracy and row.trial and not row.why_not
            )
        )

    def row(self, entry: Entry) -> Row:
        """An entry as a row that has not been measured."""
        config = entry.config
        return Row(
            variant=entry.variant.name,
            config=config.flat() if config else {},
            reason=entry.reason,
            duty=entry.variant.duty,
            footprint_bytes=footprint_bytes(self.case, config) if config else 0,
        )


def plans(document: Document, here: Here) -> Iterator[Plan]:
    """The groups of a document on a device, in order."""
    for series in document.series:
        cases = series.cases.get(here.backend, ())
        for case in cases:
            mine = [variant for variant in document.variants if series.name in variant.series]
            sized = _past_capacity(case, here.budget_bytes) if series.past_capacity else case
            found = [_entry(variant, series, sized, here) for variant in mine]
            # claims are judged on the last domain, and the vortex of accuracy has one of its own
            asked = document.of_accuracy if case is cases[-1] else ()
            entries = tuple(replace(one, accuracy=one.variant.name in asked) for one in found)
            yield Plan(document=document.name, series=series, case=sized, entries=entries)


def _entry(variant: Variant, series: Series, case: Case, here: Here) -> Entry:
    text = variant.configs.get(here.backend, "")
    if not text:
        return Entry(variant, None, f"{variant.title}: this is not for {_KINDS[here.backend]}")
    try:
        config = configuration(text, here, case.domain)
        reason: str | None = broken(case, config, here.limits)
    except InputError as error:
        return Entry(variant, None, f"{variant.title}: {_not_in_catalogue(str(error))}")
    if reason is None and series.past_capacity and not _staged(variant.duty):
        reason = _past_budget(case, config, here.budget_bytes)
    return Entry(variant, config) if reason is None else Entry(variant, None, f"{variant.title}: {reason}")


_KINDS = {"cuda": "GPUs", "cpu": "CPUs"}


def configuration(text: str, here: Here, domain: tuple[int, int, int]) -> KernelConfig:
    """The configuration that a text stands for on a device; axes with one legal neighbour follow by themselves.

    'nz/4' is a quarter of the domain along z. Raises InputError, also for what this catalogue does not have.
    """
    values: dict[str, Scalar] = {"backend": here.backend}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        part = _PART.fullmatch(value.strip())
        values[name.strip()] = domain["xyz".index(part[1])] // int(part[2]) if part else value.strip()
    known = backend_knobs(here.backend)
    for name in values:
        if name != "backend" and name not in known:
            raise InputError(f"unknown knob {name!r}; choose another.")
    if values.get("threads") == CORES:
        values["threads"] = _one_thread_per_core(here)
    config = from_flat(completed(values, here.limits))
    _ = config.propagation, config.stored, config.computed
    for name, chosen in config.flat().items():
        if name in known and known[name].allowed and chosen not in known[name].allowed:
            raise InputError(f"unknown {name} {chosen!r}; choose another.")
    return config


def _one_thread_per_core(here: Here) -> int:
    threads = here.limits.cores
    if here.physical_cores >= threads:
        raise InputError(
            f"the {threads} threads of this processor run on {here.physical_cores} cores: there is one way."
        )
    return here.physical_cores


def _not_in_catalogue(message: str) -> str:
    """A refusal as a reason: 'unknown scheme 'swap'; did you mean ...' as 'this catalogue has no scheme 'swap''."""
    first = message.partition(";")[0].rstrip(".")
    return f"this catalogue has no {first.removeprefix('unknown ')}" if first.startswith("unknown ") else first


def _past_capacity(case: Case, budget_bytes: int) -> Case:
    """The case on the largest square or cube that two lattices cannot hold in the budget and one lattice can."""
    usual = cuda.Direct(storage="fp64", compute="fp64")
    flat = case.stencil.dimensions == 2
    edge = _STEP
    while footprint_bytes(replace(case, domain=_cube(edge + _STEP, flat)), usual) <= _PAST_CAPACITY * budget_bytes:
        edge += _STEP
    return replace(case, domain=_cube(edge, flat))


def _cube(edge: int, flat: bool) -> tuple[int, int, int]:
    return (edge, edge, 1 if flat else edge)


def _past_budget(case: Case, config: KernelConfig, budget_bytes: int) -> str | None:
    needed = footprint_bytes(case, config)
    if needed <= budget_bytes:
        return None
    return f"it needs {format_bytes(needed)}, and {format_bytes(budget_bytes)} stand for the device"


def _staged(duty: Duty | None) -> bool:
    return duty is not None and duty.kind == STAGED
