"""Kernels of users in C."""

from typing import Any

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.own_kernel.definition import filled
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.own_program import OwnProgram, options_of
from lbmtune.codegen.program import Launch


def render(case: Case, config: KernelConfig) -> OwnProgram:
    """Return the text of a user with the macros of a configuration."""
    own: Any = config
    period = tuple((Launch(filled(entry, own.values), ()),) for entry in own.kernel.entries)
    return OwnProgram("cpu", case, config, own.kernel.source, options_of(own, case), period, in_c=True)
