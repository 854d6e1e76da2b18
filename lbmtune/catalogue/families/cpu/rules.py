"""Rules of CPU kernels."""

from typing import Any

from lbmtune.catalogue.backend_records import CpuConfig
from lbmtune.catalogue.family_knobs import knobs_by_name
from lbmtune.catalogue.footprint import beyond_stride
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case


def vectors(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Vectors that the processor has and that rows and runs are multiples of."""
    if config.vector_bits > 2 * limits.vector_bits:
        return f"vector_bits={config.vector_bits}; this CPU has {limits.vector_bits}, and two registers make a vector"
    if not config.vector_bits:
        return None
    lanes = config.vector_bits // (8 * config.computed.bytes)
    if not config.indirect and case.domain[0] % lanes:
        domain, use = extents(case.domain), "wrap=select or " if "wrap" in knobs_by_name(type(config)) else ""
        lacks = f"nx={case.domain[0]} is not a multiple of {lanes} lanes of {config.compute}"
        return f"domain {domain}: {lacks} (use {use}vector_bits=0)"
    if config.wrap == "select":
        return f"vector_bits={config.vector_bits} is not supported for wrap=select (use 0): vectors need ghost columns"
    run = config.memory.run
    if run and run % lanes:
        return (
            f"vector_bits={config.vector_bits} is not supported for layout={config.memory.name}: "
            f"its runs of {run} cells are not multiples of {lanes} lanes"
        )
    return None


def threads(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Threads that the device has cores for."""
    if not 1 <= config.threads <= limits.cores:
        return f"threads={config.threads}; this device has {limits.cores} cores"
    return None


def pages(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Huge pages that the system gives."""
    if config.pages == "huge" and not limits.huge_pages:
        return "pages=huge is not supported here (use normal): this system gives no transparent huge pages of 2 MiB"
    return None


def stride(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """A stride that holds the arrays, instead of padding."""
    stride, padding = _of_soa(config)
    if not stride:
        return None
    if padding:
        return f"stride={stride} is not supported for padding={padding} (use 0): the stride includes it"
    return beyond_stride(case, config)


def _of_soa(config: CpuConfig) -> tuple[int, int]:
    return getattr(config.layout, "stride", 0), getattr(config.layout, "padding", 0)


def streaming_stores(case: Case, config: Any, limits: Limits) -> str | None:
    """Stores that fill cache lines."""
    if not config.streaming_stores:
        return None
    line = 64 // config.stored.bytes
    if config.vector_bits != 512 or config.computed.bytes != config.stored.bytes:
        return (
            f"streaming_stores=1 with {config.vector_bits} bits of {config.storage}: "
            "a store must fill a cache line of 64 bytes"
        )
    if config.memory.name != "soa":
        return f"streaming_stores=1 is not supported for layout={config.memory.name} (use soa)"
    row = config.stored_extents(case).x
    stride, padding = _of_soa(config)
    between, name = (stride, "stride") if stride else (padding, "padding")
    if config.row_offset % line or row % line or between % line:
        return (
            f"streaming_stores=1: row_offset={config.row_offset}, row length {row} and {name}={between} "
            f"must be multiples of {line} elements"
        )
    return None


MACHINE = (vectors, threads, pages)
