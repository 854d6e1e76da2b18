"""Configurations by name: the registry of families, and the forms of a configuration as text and flat values."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from lbmtune.catalogue.backend_records import ALL_PROCESSORS as ALL_PROCESSORS
from lbmtune.catalogue.backend_records import ANY_NODE as ANY_NODE
from lbmtune.catalogue.backend_records import PHYSICAL_CORES as PHYSICAL_CORES
from lbmtune.catalogue.backend_records import Block as Block
from lbmtune.catalogue.backend_records import CpuConfig as CpuConfig
from lbmtune.catalogue.backend_records import CudaConfig as CudaConfig
from lbmtune.catalogue.families import cpu as cpu
from lbmtune.catalogue.families import cuda as cuda
from lbmtune.catalogue.family_knobs import defaults as defaults
from lbmtune.catalogue.family_knobs import knobs as knobs
from lbmtune.catalogue.family_knobs import knobs_by_name as knobs_by_name
from lbmtune.catalogue.knobs import Knob as Knob
from lbmtune.catalogue.knobs import Scalar as Scalar
from lbmtune.catalogue.knobs import field_names as field_names
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.own_kernel.config import declared, is_own
from lbmtune.catalogue.record import FAMILIES as FAMILIES
from lbmtune.catalogue.record import KernelConfig as KernelConfig
from lbmtune.catalogue.record import families_with as families_with
from lbmtune.errors import InputError, named

DEFAULT_FAMILY = "direct"


def family(backend: str, name: str) -> type[KernelConfig]:
    """Return the record of a family by name. Raises InputError."""
    if is_own(name):
        return declared(name)
    return named(f"family of {backend}", name, named("backend", backend, FAMILIES))


@cache
def backend_knobs(backend: str) -> Mapping[str, Knob]:
    """Return the knobs of all families of a backend by name, `family` first; of a shared one the first declaration."""
    names = tuple(FAMILIES[backend])
    chosen = Knob(
        name="family",
        meaning="kernel family",
        unit="",
        default=DEFAULT_FAMILY,
        search=(DEFAULT_FAMILY,),
        allowed=names,
        least=0,
        acts=(),
    )
    found = {"family": chosen}
    for record in FAMILIES[backend].values():
        for one in knobs(record):
            first = found.setdefault(one.name, one)
            if first.allowed and one.allowed:
                merged = tuple(dict.fromkeys((*first.allowed, *one.allowed)))
                found[one.name] = replace(first, allowed=merged)
    return MappingProxyType(found)


def from_flat(values: Mapping[str, Scalar]) -> KernelConfig:
    """Return the configuration of flat values; missing knobs have their defaults. Raises InputError."""
    rest = dict(values)
    record = family(str(rest.pop("backend", "cuda")), str(rest.pop("family", DEFAULT_FAMILY)))
    return record.parse(rest)


def flat_values(text: str) -> dict[str, Scalar]:
    """Return the flat values of 'family=direct,scheme=aa,block=256x1x1' as they are written. Raises InputError."""
    values: dict[str, Scalar] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        if not equals:
            raise InputError(
                f"configuration part {item!r} is not of the form knob=value; write for example scheme=aa, "
                "the 12 digits of a trial's key, or a best.json."
            )
        if name.strip() in values:
            raise InputError(f"{name.strip()} is given twice in {text!r}; leave one of them out.")
        values[name.strip()] = value.strip()
    return values


def parse_config(text: str, backend: str = "cuda") -> KernelConfig:
    """Return the configuration of 'family=direct,scheme=aa,block=256x1x1'. Raises InputError."""
    return from_flat({"backend": backend, **flat_values(text)})


def completed(values: Mapping[str, Scalar], limits: Limits) -> dict[str, Scalar]:
    """Return flat values with those filled in that the device or another knob decides, if they are not given.

    compute follows storage (fp64 for fp64); threads are those of all processors; vectors are as wide as the CPU has
    them; knobs that another keeps from acting have the value that this means.
    """
    full = dict(values)
    record = family(str(full.setdefault("backend", "cuda")), str(full.setdefault("family", DEFAULT_FAMILY)))
    full.setdefault("compute", "fp64" if full.get("storage") == "fp64" else "fp32")
    if "threads" in record.by_device:
        full.setdefault("threads", ALL_PROCESSORS)
        full["threads"] = _threads(limits, str(full.get("pinning", ""))).get(full["threads"], full["threads"])
        full.setdefault("vector_bits", 0 if full.get("wrap") == "select" else limits.vector_bits)
    full = {**record.implied(full), **full}
    usual = defaults(record)
    for one in knobs(record):
        if one.name not in full and (neutral := one.neutral({**usual, **full})) is not None and neutral != one.default:
            full[one.name] = neutral
    return full


def _threads(limits: Limits, pinning: str) -> Mapping[Scalar, int]:
    """Return what the words of the knob `threads` stand for, on a NUMA node if one with processors is named.

    A device whose physical cores are unknown has no SMT.
    """
    here = {f"node-{n}": processors for n, processors in enumerate(limits.numa_nodes)}.get(pinning, 0) or limits.cores
    share = min(limits.physical_cores, limits.cores) or limits.cores
    return {ALL_PROCESSORS: here, PHYSICAL_CORES: max(1, here * share // limits.cores)}
