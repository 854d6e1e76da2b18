"""Published documents as TOML: experiments, rows, claims (`claims`). Every error names file, line and key."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.coupling import parse_coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.errors import InputError, suggestion, unknown
from lbmtune.files.casefile import CaseFile, case_of
from lbmtune.files.claims import BACKENDS, claim_of
from lbmtune.files.shipped import published
from lbmtune.files.source import Source, read_text
from lbmtune.files.trees import checked, parsed
from lbmtune.records import made_of
from lbmtune.records.claims import (
    SIDE_TASKS,
    Document,
    MainMemory,
    OverDevices,
    Printed,
    Series,
    SideTask,
    Variant,
)

T = TypeVar("T")
PAST_CAPACITY = "past capacity"
"""The domain of a series that follows from the memory budget."""
_ON = re.compile(r"(\w[\w -]*?)(?: every (\d+))?")


@dataclass(frozen=True, kw_only=True)
class SeriesFile:
    """A table [series.NAME]. case: the keys of a study's [case] without the domain; cuda, cpu: domains.

    main_memory: the experiment is about it, so that the domain of a processor grows beyond its caches. devices: their
    number, if it takes several.
    """

    title: str
    case: dict[str, Any]
    cuda: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    main_memory: dict[str, Any] | None = None
    devices: int = 1


@dataclass(frozen=True)
class MainMemoryFile:
    """The table main_memory. at_most: largest domain; printed: that of the document."""

    at_most: str
    printed: str


@dataclass(frozen=True, kw_only=True)
class VariantFile:
    """A table [variants.NAME]. duty: 'save every 10'; parts: 'cut=z:2,transport=pack,overlap=none'.

    published: device -> where -> MLUPS; where: 'DOMAIN or other circumstances', 'EXPERIMENT' or
    'EXPERIMENT: circumstances'.
    """

    title: str
    series: str | tuple[str, ...]
    cuda: str = ""
    cpu: str = ""
    published: dict[str, dict[str, float]] = field(default_factory=dict)
    duty: str = ""
    parts: str = ""


@dataclass(frozen=True, kw_only=True)
class DocumentFile:
    """The tables of a document."""

    name: str
    title: str
    source: str
    series: dict[str, dict[str, Any]] = field(default_factory=dict)
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    claims: dict[str, dict[str, Any]]


def load_documents(only: Sequence[str], devices: int = 1) -> tuple[Document, ...]:
    """Return the documents of names or paths. Raises InputError.

    Without names: all shipped ones that are asked of one device, or those of several, if there are so many.
    """
    shipped = published()
    found = tuple(load_document(_found(name, shipped)) for name in (only or shipped))
    return found if only else tuple(one for one in found if (one.devices > 1) == (devices > 1))


def _found(name: str, shipped: Mapping[str, Path]) -> Path:
    if name in shipped:
        return shipped[name]
    if Path(name).suffix == ".toml":
        return Path(name)
    if "," in name:
        each = " ".join(f"--only {one.strip()}" for one in name.split(","))
        raise InputError(f"--only {name}: each takes one document; say {each}.")
    raise unknown("published document", name, shipped)


def load_document(path: Path) -> Document:
    """Return the document of a file. Raises InputError."""
    return parse_document(read_text(path), str(path))


def parse_document(text: str, name: str) -> Document:
    """Return the document of a text. Raises InputError."""
    source = Source(name, text)
    file = checked(parsed(text, name), DocumentFile, "", source)
    series = tuple(_series(name, entry, source) for name, entry in file.series.items())
    variants = tuple(_variant(name, entry, file.series, source) for name, entry in file.variants.items())
    names = {v.name for v in variants} | {f"{v.name}@{s}" for v in variants for s in v.series}
    claims = tuple(claim_of(name, entry, names, source) for name, entry in file.claims.items())
    return made_of(Document, file, series=series, variants=variants, claims=claims)


def _series(name: str, entry: Mapping[str, Any], source: Source) -> Series:
    key = f"series.{name}"
    file = checked(entry, SeriesFile, key, source)
    domains = {backend: getattr(file, backend) for backend in BACKENDS}
    past = any(PAST_CAPACITY in several for several in domains.values())
    cases, missing = {}, ""
    for backend, several in domains.items():
        try:
            cases[backend] = tuple(_case(file.case, domain) for domain in several)
        except _NotHereError as error:
            missing = str(error)
        except InputError as error:
            source.fail(f"{key}.{backend}", str(error))
    grows = _main_memory(file, f"{key}.main_memory", source) if file.main_memory is not None and not missing else None
    if file.devices < 1:
        source.fail(f"{key}.devices", f"{file.devices} devices; give a positive number.")
    return Series(
        name=name,
        title=file.title,
        cases=cases,
        missing=missing,
        past_capacity=past,
        main_memory=grows,
        devices=file.devices,
    )


def _main_memory(series: SeriesFile, key: str, source: Source) -> MainMemory:
    file = checked(series.main_memory or {}, MainMemoryFile, key, source)
    if len(series.cpu) != 1:
        source.fail(f"{key}", f"{len(series.cpu)} domains of processors; give one, from which the domain grows.")
    try:
        least, most = (_case(series.case, domain).domain for domain in (series.cpu[0], file.at_most))
    except InputError as error:
        source.fail(f"{key}.at_most", str(error))
    if any(a > b for a, b in zip(least, most, strict=True)):
        source.fail(f"{key}.at_most", f"{file.at_most} is smaller than {series.cpu[0]}, from which the domain grows.")
    return MainMemory(at_most=most, printed=file.printed)


class _NotHereError(Exception):
    """The catalogue has no such flow, collision or key of a case."""


def _case(tree: Mapping[str, Any], domain: str) -> Case:
    """Return the case on a domain. What the catalogue lacks is not an error of the file."""
    for key in tree:
        if key not in {f.name for f in fields(CaseFile)}:
            raise _NotHereError(f"this catalogue's cases have no {key}")
    flat = str(tree.get("lattice", "")).startswith("d2")
    cells = ("64x64" if flat else "64x64x64") if domain == PAST_CAPACITY else domain
    try:
        return case_of(msgspec.convert({**tree, "domain": cells}, CaseFile))
    except msgspec.ValidationError as error:
        raise InputError(f"{error}; correct the case.") from None
    except InputError as error:
        if str(error).startswith("unknown "):
            raise _NotHereError(f"this catalogue has no {str(error).partition(';')[0][8:]}") from None
        raise


def _variant(name: str, entry: Mapping[str, Any], series: Mapping[str, Any], source: Source) -> Variant:
    key = f"variants.{name}"
    file = checked(entry, VariantFile, key, source)
    mine = (file.series,) if isinstance(file.series, str) else file.series
    for one in mine:
        if one not in series:
            source.fail(f"{key}.series", f"unknown series {one!r}; {suggestion(one, series)}")
    for backend in BACKENDS:
        for item in filter(None, getattr(file, backend).split(",")):
            if item.count("=") != 1 or not all(part.strip() for part in item.split("=")):
                source.fail(f"{key}.{backend}", f"{item!r} is not of the form knob=value; write for example scheme=aa.")
    return made_of(
        Variant,
        file,
        name=name,
        series=mine,
        configs={backend: text for backend in BACKENDS if (text := getattr(file, backend))},
        published=tuple(_printed(name, file.published, mine, series, source)),
        duty=_duty(file.duty, f"{key}.duty", source) if file.duty else None,
        over=_over(file.parts, [series[one] for one in mine], f"{key}.parts", source) if file.parts else None,
    )


def _over(text: str, series: Sequence[Mapping[str, Any]], key: str, source: Source) -> OverDevices:
    """Return the cut of a variant over the devices of its experiments."""
    given = {name.strip(): value.strip() for name, _, value in (one.partition("=") for one in text.split(","))}
    weak, halo = given.pop("weak", "no"), given.pop("halo", "left-out")
    for name, value, known in (("weak", weak, ("no", "yes")), ("halo", halo, ("left-out", "computed"))):
        if value not in known:
            source.fail(key, f"{name}={value} is not supported (use {' or '.join(known)}).")
    try:
        cut = str(parse_cut(given.pop("cut", "")))
        coupling = str(parse_coupling(",".join(f"{name}={value}" for name, value in given.items())))
    except InputError as error:
        source.fail(key, str(error))
    for one in series:
        if one.get("devices", 1) != parse_cut(cut).parts:
            source.fail(key, f"cut={cut} is not supported for {one.get('devices', 1)} devices: each has one part.")
    return OverDevices(cut=cut, coupling=coupling, weak=weak == "yes", halo_computed=halo == "computed")


def _printed(
    variant: str,
    published: Mapping[str, Mapping[str, float]],
    mine: Sequence[str],
    series: Mapping[str, Any],
    source: Source,
) -> Iterator[Printed]:
    """Return the figures in order. mine: the experiments of the variant; series: all of them."""
    for device, figures in published.items():
        for where, mlups in figures.items():
            first, _, rest = (part.strip() for part in where.partition(":"))
            if first in series and first not in mine:
                source.fail(f"variants.{variant}.published", f"{where!r} is no experiment of this variant.")
            if mlups <= 0:
                source.fail(f"variants.{variant}.published", f"{mlups:g} MLUPS; give a positive number.")
            of, circumstances = (first, rest) if first in series else ("", where)
            yield Printed(device=device, mlups=mlups, series=of, circumstances=circumstances)


def _duty(text: str, key: str, source: Source) -> SideTask:
    found = _ON.fullmatch(text)
    if not found or found[1] not in SIDE_TASKS:
        source.fail(key, f"unknown side task {text!r}; write one of {', '.join(SIDE_TASKS)}, and 'every 10' behind it.")
    every = int(found[2] or 1)
    if every < 1:
        source.fail(key, f"every {every} steps; give a positive number.")
    return SideTask(found[1], every)
