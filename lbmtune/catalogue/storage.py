"""Storage of a case's domain by a configuration: its extents and its limits."""

from __future__ import annotations

from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import KernelConfig
from lbmtune.catalogue.storage_frame import Domain, StorageFrame, aligned
from lbmtune.lattice import Lattice

__all__ = ["Domain", "StorageFrame", "aligned", "beyond_stride", "frame", "stored_extents"]


def frame(lattice: Lattice, config: KernelConfig) -> StorageFrame:
    """Return the frame of a configuration."""
    return config.frame(lattice)


def stored_extents(case: Case, config: KernelConfig, domain: tuple[int, int, int] | None = None) -> Extents:
    """Return the storage extents of the case's domain or of another one; with indirect addressing, one row of nodes."""
    return config.stored_extents(case, domain or case.domain)


def beyond_stride(case: Case, config: KernelConfig) -> str | None:
    """Return why the domain does not fit between direction arrays that are a given stride apart, or None."""
    stride = getattr(config.layout, "stride", 0)
    if not stride:
        return None
    x, y, z, _ = stored_extents(case, config)
    if (cells := x * y * z) <= stride:
        return None
    domain = "x".join(map(str, case.domain))
    return f"stride={stride}: the direction arrays of domain {domain} have {cells} elements"
