"""Configurations by the knobs of version 0.1, for tests that draw them together: their family follows from them."""

from __future__ import annotations

from typing import Any

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.knobs import scalar
from lbmtune.records.legacy import migrated


def old_cuda(**knobs: Any) -> Any:
    """Return the CUDA configuration that version 0.1 knew by these knobs."""
    return _old("cuda", knobs)


def old_cpu(**knobs: Any) -> Any:
    """Return the CPU configuration that version 0.1 knew by these knobs."""
    return _old("cpu", knobs)


def _old(backend: str, knobs: dict[str, Any]) -> KernelConfig:
    return from_flat(migrated({"backend": backend, **{name: scalar(value) for name, value in knobs.items()}}))
