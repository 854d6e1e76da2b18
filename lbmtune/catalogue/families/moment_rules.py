"""What keeps a kernel of moments from any device, whatever form it has there."""

from __future__ import annotations

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import NO_COLLISION, Case

INCOMPLETE = (
    "its cells complete what arrives, population by population, which moments do not tell; "
    "take representation populations"
)
"""What keeps faces that are no walls from kernels of moments."""


def why_no_moments(case: Case, config: KernelConfig) -> str | None:
    """The first reason, or None."""
    if case.collision not in ("regularised", NO_COLLISION):
        needed = "only case.collision=regularised depends on nothing else; set it"
        return f"representation moments with collision {case.collision}: {needed}"
    if config.scheme != "pull":
        return (
            f"scheme {config.scheme} with representation moments: "
            "its neighbours' moments are read from one copy and written to the other"
        )
    if config.storage == "fp16c":
        return "storage fp16c with representation moments: it holds numbers below 2, and moments are larger"
    return None
