"""Remarks on kernels whose working set fits in the last-level cache, where memory bandwidth is no bound."""

from __future__ import annotations

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.records.study import StudyRecord
from lbmtune.units import format_bytes

_TIMES_CACHE = 4
"""Footprint over the last-level cache from which on memory bandwidth decides."""


def last_cache(backend: str, caches_bytes: dict[str, int]) -> int:
    """Return the bytes of one last-level cache of a processor; 0 for a GPU, or if unknown."""
    return max(caches_bytes.values(), default=0) if BACKENDS[backend].shares_host else 0


def in_cache(footprint_bytes: int, cache_bytes: int, domain: tuple[int, ...]) -> str:
    """Return a remark if a cache holds the footprint of a kernel, else ''."""
    if not 0 < footprint_bytes <= cache_bytes:
        return ""
    return (
        f"A footprint of {format_bytes(footprint_bytes)} fits in the last cache ({format_bytes(cache_bytes)}): "
        "the bandwidth model and the ceiling do not apply to one step per launch, so that predictions "
        "are too low and shares of the ceiling too high; use a larger domain, such as --set "
        f"case.domain={'x'.join(map(str, beyond(footprint_bytes, cache_bytes, domain)))}."
    )


def in_cache_of(study: StudyRecord) -> str:
    """Return the remark on the smallest of the verified kernels of a study, or ''."""
    sizes = [t.prediction.footprint_bytes for t in study.ranked if t.prediction]
    return in_cache(min(sizes, default=0), study.header.last_cache_bytes, study.header.spec.case.domain)


def beyond(footprint_bytes: int, cache_bytes: int, domain: tuple[int, ...]) -> tuple[int, ...]:
    """Return the domain, doubled along each axis with several cells until memory bandwidth decides."""
    each = 2 ** sum(n > 1 for n in domain)
    while each > 1 and footprint_bytes < _TIMES_CACHE * cache_bytes:
        footprint_bytes, domain = footprint_bytes * each, tuple(2 * n if n > 1 else n for n in domain)
    return domain
