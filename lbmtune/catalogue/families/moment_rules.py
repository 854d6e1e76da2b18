"""Rules of kernels that store moments, on any device."""

from lbmtune.catalogue.collisions import NO_COLLISION
from lbmtune.catalogue.families.groups import Represented
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told
from lbmtune.catalogue.record import KernelConfig

INCOMPLETE = "its cells complete what arrives, population by population, which moments do not hold"
"""Why faces that are no walls need populations."""


def moments(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require a collision that moments suffice for, and a format that holds them."""
    if not config.of_moments:
        return None
    if case.collision not in ("regularised", NO_COLLISION):
        return (
            f"{_kept(config)} is not supported for collision={case.collision} (use {_instead(config)}, or "
            "case.collision=regularised): only regularised collision depends on moments alone"
        )
    if config.storage == "fp16c":
        return (
            f"storage=fp16c is not supported for {_kept(config)} (use fp16s or bf16): it holds numbers below 2, "
            "and moments are larger"
        )
    return None


def faces(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require faces that are periodic or walls."""
    where = told(case)
    if not (config.of_moments and where):
        return None
    return f"{where} is not supported for {_kept(config)} (use {_instead(config)}): {INCOMPLETE}"


def patches(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Require whole faces."""
    if not case.patches:
        return None
    return f"a {case.patches[0].kind} patch is not supported for family {config.family} (use direct): whole faces only"


def _kept(config: KernelConfig) -> str:
    """Return what makes a kernel keep moments: the knob, or the family if it has no other form."""
    return "representation=moments" if isinstance(config, Represented) else f"family {config.family}"


def _instead(config: KernelConfig) -> str:
    return "populations" if isinstance(config, Represented) else "family direct"
