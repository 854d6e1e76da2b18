"""Kernels of users in C, for CPUs: what their description says, and threads of OpenMP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lbmtune.catalogue.backend_records import CpuConfig
from lbmtune.catalogue.families.cpu import rules
from lbmtune.catalogue.own_kernel.config import BASES, OwnConfig
from lbmtune.catalogue.own_kernel.rules import OWN_RULES
from lbmtune.catalogue.problem.case import Case


@dataclass(frozen=True, kw_only=True)
class OwnCpu(OwnConfig, CpuConfig):
    """A configuration of a user's kernel in C."""

    by_device: ClassVar[Mapping[str, str]] = {"threads": "one per processor"}

    vector_bits: int = field(default=512, init=False, repr=False)
    pinning: str = field(default="none", init=False, repr=False)
    pages: str = field(default="default", init=False, repr=False)
    first_touch: str = field(default="serial", init=False, repr=False)

    def shares(self, case: Case) -> int:
        """Return the parts of a launch, of which only the text knows: as many as there are threads."""
        return self.threads


BASES["cpu"] = OwnCpu
RULES = (*OWN_RULES, rules.threads)
