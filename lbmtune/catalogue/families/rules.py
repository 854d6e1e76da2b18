"""Legality, said once: a rule is a pure function of case, configuration and limits that returns a reason or None.

A reason is a sentence with the relation and the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.cpu import rules as cpu
from lbmtune.catalogue.families.cpu.rules import FAR_ENDS, FIRST_TOUCHES, PAGES, PINNINGS, READS
from lbmtune.catalogue.families.cuda import rules as cuda
from lbmtune.catalogue.limits import Limits, cuda_limits
from lbmtune.catalogue.problem.case import Case

__all__ = [
    "FAR_ENDS",
    "FIRST_TOUCHES",
    "PAGES",
    "PINNINGS",
    "READS",
    "RULES",
    "Limits",
    "Rule",
    "broken",
    "cuda_limits",
]

Rule = Callable[[Case, Any, Limits], str | None]
RULES: Mapping[str, tuple[Rule, ...]] = {"cuda": cuda.RULES, "cpu": cpu.RULES}
"""Those of each backend, in the order in which they are asked."""


def broken(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """The reason why the configuration is illegal for the case on a device with these limits, or None."""
    return next((reason for rule in RULES[config.backend] if (reason := rule(case, config, limits))), None)
