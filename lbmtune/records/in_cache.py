"""Kernels on a processor whose last cache holds all that they keep: memory is no bound there."""

from __future__ import annotations

from lbmtune.records.study import StudyRecord
from lbmtune.units import format_bytes

_TIMES_CACHE = 4
"""A footprint of so many last caches is of memory; one not far above a single cache is still lifted by it."""


def last_cache(backend: str, caches_bytes: dict[str, int]) -> int:
    """Bytes of the last cache of a processor, one instance of it; 0 for a GPU, and where it is not known."""
    return max(caches_bytes.values(), default=0) if backend == "cpu" else 0


def in_cache(footprint_bytes: int, cache_bytes: int, domain: tuple[int, ...]) -> str:
    """What to know of a kernel with this footprint that a cache holds, in a sentence; empty where none holds it."""
    if not 0 < footprint_bytes <= cache_bytes:
        return ""
    return (
        f"A footprint of {format_bytes(footprint_bytes)} fits in the last cache ({format_bytes(cache_bytes)}): "
        "predictions of one step per launch and the ceiling are of memory, which is no bound there, so predictions "
        "come out too low and shares of the ceiling too high; take a larger domain, such as --set "
        f"case.domain={'x'.join(map(str, beyond(footprint_bytes, cache_bytes, domain)))}."
    )


def in_cache_of(study: StudyRecord) -> str:
    """The same of the smallest of the verified kernels of a study."""
    sizes = [t.prediction.footprint_bytes for t in study.ranked if t.prediction]
    return in_cache(min(sizes, default=0), study.header.last_cache_bytes, study.header.spec.case.domain)


def beyond(footprint_bytes: int, cache_bytes: int, domain: tuple[int, ...]) -> tuple[int, ...]:
    """The domain, doubled along each axis that has cells until the footprint is that of memory."""
    each = 2 ** sum(n > 1 for n in domain)
    while each > 1 and footprint_bytes < _TIMES_CACHE * cache_bytes:
        footprint_bytes, domain = footprint_bytes * each, tuple(2 * n if n > 1 else n for n in domain)
    return domain
