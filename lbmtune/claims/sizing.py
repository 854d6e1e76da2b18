"""Domains of experiments on main memory: so large that the last-level cache of a processor holds little of them."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from math import prod

from lbmtune.catalogue.limits import extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.records.claims import Claims, Document, Group, MainMemory
from lbmtune.records.remarks import TIMES_CACHE
from lbmtune.units import format_bytes

_STEP = 32
"""Cells by which the shortest edge grows, and of which all edges are multiples: whole vectors and runs of layouts."""
_SHARE_OF_MEMORY = 1 / 4
"""Most memory of a kernel: verification keeps states in float64 beside it."""


def beyond_cache(
    case: Case,
    grows: MainMemory,
    footprints_bytes: Callable[[Case], Collection[int]],
    cache_bytes: int,
    memory_bytes: int,
) -> Case:
    """Return the case on the least domain of which the smallest kernel takes TIMES_CACHE caches, or on the largest.

    The largest is that of the experiment, or the last that memory holds. Footprints grow as the cells do, or less where
    rows are padded: they are taken only of a domain that may be large enough, because geometries take time to make.
    """
    sizes, found, enough = footprints_bytes(case), case, TIMES_CACHE * cache_bytes
    if not sizes:
        return case
    for domain in _domains(case.domain, grows.at_most):
        larger, times = replace(case, domain=domain), prod(domain) / case.sites
        if times > 1 and times * max(sizes) > _SHARE_OF_MEMORY * memory_bytes:
            break
        found = larger
        if times * min(sizes) >= enough and min(footprints_bytes(larger), default=0) >= enough:
            break
    return found


def _domains(least: tuple[int, int, int], most: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield domains of about one shape, from the least to the largest."""
    yield least
    shortest = min(n for n in least if n > 1)
    for edge in range(shortest + _STEP, max(most) + 1, _STEP):
        x, y, z = (_STEP * -(-n * edge // (shortest * _STEP)) if n > 1 else n for n in least)
        if any(n > limit for n, limit in zip((x, y, z), most, strict=True)):
            return
        yield x, y, z


def domain_texts(claims: Claims, document: Document) -> Iterator[str]:
    """Yield a sentence on each domain that follows from the cache: what is printed, what was measured, and why."""
    series = {one.name: one for one in document.series}
    for group in claims.groups:
        grows = series[group.series].main_memory if group.series in series else None
        cache_bytes = claims.header.last_cache_bytes
        if group.document == document.name and grows and cache_bytes:
            yield f"{series[group.series].title}: {_domain_text(group, grows, cache_bytes)}"


def _domain_text(group: Group, grows: MainMemory, cache_bytes: int) -> str:
    domain = group.case.domain
    smallest = min((row.footprint_bytes for row in group.rows if row.footprint_bytes), default=0)
    times = smallest / cache_bytes
    reached = f"{times:.3g} last-level caches of {format_bytes(cache_bytes)}"
    text = (
        f"{extents(domain)} (printed: {grows.printed}); the smallest kernel takes {format_bytes(smallest)}, {reached}"
    )
    if times >= TIMES_CACHE:
        return f"{text}."
    larger = list(_domains(domain, grows.at_most))[1:]
    limit = "a larger one does not fit in memory" if larger else "a larger one takes too much time"
    return f"{text} of {TIMES_CACHE} that are asked for: {limit}."
