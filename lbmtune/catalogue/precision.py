"""How populations are stored, and in which precision a cell is computed.

What is stored is the deviation f_i - w_i times a power of two (`scale`). The collision operator is
homogeneous in it once the density one is replaced by `scale`, so nothing is rescaled on load or store.
Source: shifted populations: Skordos 1993; scaled 16-bit storage: Lehmann et al. 2022 (arXiv 2112.08926).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lbmtune.errors import unknown


@dataclass(frozen=True)
class Storage:
    """A storage format. bytes: per value; dtype: NumPy name; epsilon: unit round-off of one rounding."""

    name: str
    title: str
    bytes: int
    dtype: str
    scale: float
    epsilon: float


@dataclass(frozen=True)
class Compute:
    """An arithmetic precision."""

    name: str
    bytes: int
    dtype: str
    epsilon: float


STORAGES: Mapping[str, Storage] = {
    s.name: s
    for s in (
        Storage("fp64", "IEEE double", 8, "float64", 1.0, 2.0**-53),
        Storage("fp32", "IEEE single", 4, "float32", 1.0, 2.0**-24),
        Storage("fp16s", "IEEE half of shifted populations times 2^15", 2, "float16", 2.0**15, 2.0**-11),
    )
}
COMPUTES: Mapping[str, Compute] = {
    c.name: c for c in (Compute("fp64", 8, "float64", 2.0**-53), Compute("fp32", 4, "float32", 2.0**-24))
}


def storage(name: str) -> Storage:
    """The storage format of that name. Raises InputError for an unknown one."""
    try:
        return STORAGES[name]
    except KeyError:
        raise unknown("storage", name, STORAGES) from None


def compute(name: str) -> Compute:
    """The arithmetic precision of that name. Raises InputError for an unknown one."""
    try:
        return COMPUTES[name]
    except KeyError:
        raise unknown("compute", name, COMPUTES) from None
