"""Configurations as earlier versions wrote them: the one table by which old files stay readable."""

from __future__ import annotations

from collections.abc import Mapping

from lbmtune.catalogue.config import KernelConfig, Scalar, from_flat


def config_of(flat: Mapping[str, Scalar]) -> KernelConfig:
    """Return the configuration that a flat dict of this version or an earlier one stands for. Raises InputError."""
    return from_flat(flat)
