"""Rules of CPU kernels."""

import re
from collections.abc import Iterator
from typing import Any

from lbmtune.catalogue.backend_records import ANY_NODE, CpuConfig, node_number
from lbmtune.catalogue.domain_conditions import Condition, DomainRule, along
from lbmtune.catalogue.family_knobs import knobs_by_name
from lbmtune.catalogue.footprint import within_stride
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case

_PINNING = re.compile(r"none|cores|node-(0|[1-9]\d{0,2})")


@DomainRule
def vectors(case: Case, config: CpuConfig, limits: Limits) -> Iterator[str | Condition]:
    """Require vectors that the processor has and that rows and runs are multiples of."""
    if config.vector_bits > 2 * limits.vector_bits:
        yield f"vector_bits={config.vector_bits}; this CPU has {limits.vector_bits}, and two registers make a vector"
    if not config.vector_bits:
        return
    lanes = config.vector_bits // (8 * config.computed.bytes)
    if not config.indirect:
        use = "wrap=select or " if "wrap" in knobs_by_name(type(config)) else ""
        what = f"{lanes} lanes of {config.compute}"
        said = f"domain {extents(case.domain)}: nx={{value}} is not a multiple of {what} (use {use}vector_bits=0)"
        yield Condition(value=along(0), multiple=lanes, because=what, said=said)
    if config.wrap == "select":
        yield f"vector_bits={config.vector_bits} is not supported for wrap=select (use 0): vectors need ghost columns"
    run = config.memory.run
    if run and run % lanes:
        yield (
            f"vector_bits={config.vector_bits} is not supported for layout={config.memory.name}: "
            f"its runs of {run} cells are not multiples of {lanes} lanes"
        )


def threads(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Require threads that the device has cores for."""
    if not 1 <= config.threads <= limits.cores:
        return f"threads={config.threads}; this device has {limits.cores} cores"
    return None


def numa(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Require bindings that are known, and nodes that the device has, with processors enough."""
    if not _PINNING.fullmatch(config.pinning):
        return f"pinning={config.pinning} is not supported (use none, cores, or a NUMA node such as node-0)"
    if config.numa == ANY_NODE:
        return None
    node, found = node_number(config.numa), limits.numa_nodes
    what = f"pinning={config.numa} is not supported here (use none or cores)"
    if not found:
        return f"{what}: the NUMA nodes of this device are not known"
    if len(found) == 1:
        return f"{what}: this device has one NUMA node"
    if node >= len(found):
        return f"{what}: this device has the NUMA nodes 0 to {len(found) - 1}"
    if 0 < found[node] < config.threads:
        return f"pinning={config.numa} with threads={config.threads}: this node has {found[node]} processors"
    return None


def pages(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Require huge pages that the system gives."""
    if config.pages == "huge" and not limits.huge_pages:
        return "pages=huge is not supported here (use normal): this system gives no transparent huge pages of 2 MiB"
    return None


@DomainRule
def stride(case: Case, config: CpuConfig, limits: Limits) -> Iterator[str | Condition]:
    """Require a stride that holds the arrays, instead of padding."""
    stride, padding = _of_soa(config)
    if stride and padding:
        yield f"stride={stride} is not supported for padding={padding} (use 0): the stride includes it"
    if stride:
        yield within_stride(case, stride)


def _of_soa(config: CpuConfig) -> tuple[int, int]:
    return getattr(config.layout, "stride", 0), getattr(config.layout, "padding", 0)


@DomainRule
def streaming_stores(case: Case, config: Any, limits: Limits) -> Iterator[str | Condition]:
    """Require stores that fill cache lines."""
    if not config.streaming_stores:
        return
    line = _line(config)
    if partial := _partial_lines(config):
        yield partial
    if config.memory.name != "soa":
        yield f"streaming_stores=1 is not supported for layout={config.memory.name} (use soa)"
    stride, padding = _of_soa(config)
    between, name = (stride, "stride") if stride else (padding, "padding")
    what = f"streaming_stores=1: row_offset={config.row_offset}, row length {{value}} and {name}={between}"
    said = f"{what} must be multiples of {line} elements"
    if config.row_offset % line or between % line:
        yield said.format(value=config.stored_extents(case).x)
    because = f"streaming_stores=1 fills lines of {line} elements"
    yield Condition(value=lambda place: place.stored.x, multiple=line, because=because, said=said)


def streaming_to_sites(case: Case, config: Any, limits: Limits) -> str | None:
    """Require stores of listed sites that fill cache lines; a slot starts at a line, and groups hold whole vectors."""
    if not config.streaming_stores:
        return None
    line, (_, padding) = _line(config), _of_soa(config)
    if padding % line:
        return f"streaming_stores=1: padding={padding} must be a multiple of {line} elements"
    return _partial_lines(config)


def _line(config: CpuConfig) -> int:
    """Return the elements of a cache line."""
    return 64 // config.stored.bytes


def _partial_lines(config: CpuConfig) -> str | None:
    if config.vector_bits == 512 and config.computed.bytes == config.stored.bytes:
        return None
    return (
        f"streaming_stores=1 with {config.vector_bits} bits of {config.storage}: "
        "a store must fill a cache line of 64 bytes"
    )


MACHINE = (vectors, threads, numa, pages)
