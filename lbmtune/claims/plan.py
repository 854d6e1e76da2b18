"""The plan of a document on a device: a configuration for each variant, or the reason for having none."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig, Scalar, backend_knobs, completed, cuda, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import footprint_bytes, largest_cube
from lbmtune.catalogue.problem.case import Case
from lbmtune.claims.sizing import beyond_cache
from lbmtune.errors import InputError
from lbmtune.records.claims import Document, Group, OverDevices, Row, Series, SideTask, Variant
from lbmtune.units import format_bytes

STAGED = "staged"
"""Side task of a domain on the host that passes through the device part by part."""
WALLS = "walls"
"""Side task of the pass that follows each step if walls are interpolated, beside variants with half-way walls."""
_PART = re.compile(r"n([xyz])/([1-9]\d*)")
CORES = "cores"
"""Value of the knob `threads` for one thread on every physical core."""
_PAST_CAPACITY = 1.6
"""Memory that two lattices need for a domain past capacity, in budgets: one lattice takes 0.8."""
_STEP = 32
"""Cells by which the edge of a domain past capacity grows."""


@dataclass(frozen=True, kw_only=True)
class Here:
    """The device as far as a plan depends on it.

    physical_cores: of the host; budget_bytes: of a small device; last_cache_bytes: of a processor, 0 if
    unknown; memory_bytes: of the device, whatever is free now, so that a run that goes on has the same domains;
    devices: their number.
    """

    backend: str
    limits: Limits
    physical_cores: int
    budget_bytes: int
    last_cache_bytes: int = 0
    memory_bytes: int = 2**63
    devices: int = 1


@dataclass(frozen=True)
class Entry:
    """A variant to be measured. config: None if it cannot be, for the given reason; accuracy: measured as well."""

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
        """Return the entries with a configuration."""
        return tuple(entry for entry in self.entries if entry.config is not None)

    def is_of(self, group: Group) -> bool:
        """Return whether a group is the whole result of this plan: same configurations, same case, nothing missing."""
        rows = tuple(map(question, group.rows))
        mine = tuple(question(self.row(entry)) for entry in self.entries)
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
        """Return an entry as a row without a measurement."""
        config = entry.config
        return Row(
            variant=entry.variant.name,
            config=config.flat() if config else {},
            reason=entry.reason,
            duty=entry.variant.duty,
            over=entry.variant.over,
            footprint_bytes=footprint_bytes(self.case, config) if config else 0,
        )


def question(row: Row) -> tuple[str, KernelConfig | None, SideTask | None, OverDevices | None]:
    """Return what a row asks: variant, configuration, side task and cut. Knobs that came later have their default."""
    return row.variant, from_flat(row.config) if row.config else None, row.duty, row.over


def plans(document: Document, here: Here) -> Iterator[Plan]:
    """Return the groups of a document on a device, in order."""
    for series in document.series:
        cases = series.cases.get(here.backend, ())
        for case in cases:
            mine = [variant for variant in document.variants if series.name in variant.series]
            sized = _sized(case, series, mine, here)
            found = [_entry(variant, series, sized, here) for variant in mine]
            # once per series, because the vortex of accuracy has its own domain
            accurate = document.of_accuracy if case is cases[-1] else ()
            entries = tuple(replace(one, accuracy=one.variant.name in accurate) for one in found)
            yield Plan(document=document.name, series=series, case=sized, entries=entries)


def _sized(case: Case, series: Series, variants: Sequence[Variant], here: Here) -> Case:
    """Return the case on the domain that the device asks for: of capacity its budget, of main memory its cache."""
    if series.past_capacity:
        return _past_capacity(case, here.budget_bytes)
    grows = series.main_memory
    if grows is None or not here.last_cache_bytes:
        return case

    def sizes(on: Case) -> list[int]:
        entries = (_entry(variant, series, on, here) for variant in variants)
        return [footprint_bytes(on, entry.config) for entry in entries if entry.config]

    return beyond_cache(case, grows, sizes, here.last_cache_bytes, here.memory_bytes)


def _entry(variant: Variant, series: Series, case: Case, here: Here) -> Entry:
    text = variant.configs.get(here.backend, "")
    if not text:
        return Entry(variant, None, f"{variant.title}: no configuration for {BACKENDS[here.backend].title} devices")
    try:
        asked = replace(case, walls="interpolated") if variant.duty and variant.duty.kind == WALLS else case
        config = configuration(text, here, case.domain)
        reason: str | None = broken(asked, config, here.limits)
    except InputError as error:
        return Entry(variant, None, f"{variant.title}: {_not_in_catalogue(str(error))}")
    if reason is None and series.devices > here.devices:
        reason = f"it takes {series.devices} devices, and this run has {here.devices} (give --devices 0,1)"
    if reason is None and series.past_capacity and not (variant.duty and variant.duty.kind == STAGED):
        reason = _past_budget(case, config, here.budget_bytes)
    return Entry(variant, config) if reason is None else Entry(variant, None, f"{variant.title}: {reason}")


def configuration(text: str, here: Here, domain: tuple[int, int, int]) -> KernelConfig:
    """Return the configuration of a text on a device; knobs with one legal value are completed.

    'nz/4' is a quarter of the domain along z. Raises InputError, also for names that the catalogue does not have.
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
            f"threads={CORES} is not supported on this processor: its {threads} threads run on "
            f"{here.physical_cores} physical cores, so that it means the same as threads=all."
        )
    return here.physical_cores


def _not_in_catalogue(message: str) -> str:
    """Turn 'unknown scheme 'swap'; did you mean ...' into 'this catalogue has no scheme 'swap''."""
    first = message.partition(";")[0].rstrip(".")
    return f"this catalogue has no {first.removeprefix('unknown ')}" if first.startswith("unknown ") else first


def _past_capacity(case: Case, budget_bytes: int) -> Case:
    """Return the case on the largest square or cube that fits in the budget with one lattice and not with two."""
    usual = cuda.Direct(storage="fp64", compute="fp64")
    return replace(case, domain=largest_cube(case, usual, _PAST_CAPACITY * budget_bytes, _STEP))


def _past_budget(case: Case, config: KernelConfig, budget_bytes: int) -> str | None:
    needed = footprint_bytes(case, config)
    if needed <= budget_bytes:
        return None
    return f"it needs {format_bytes(needed)}; the budget of the device is {format_bytes(budget_bytes)}"
