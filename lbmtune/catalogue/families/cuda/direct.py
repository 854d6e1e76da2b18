"""Direct: one time step of a box per launch; a thread updates one cell, or a vector of cells along x."""

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.boundaries.cell_flags import by_words
from lbmtune.catalogue.families import common_rules
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.cuda.box import LAUNCH, SHAPE, Box
from lbmtune.catalogue.families.groups import AnyStorage, Bounded
from lbmtune.catalogue.knobs import Acts, knob
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case


@dataclass(frozen=True, kw_only=True)
class Direct(AnyStorage, Bounded, Box):
    """One step of a box, a cell or a vector of cells per thread."""

    family: ClassVar[str] = "direct"
    title: ClassVar[str] = "one step of a box"

    boundary: str = knob(
        "branch",
        "cut links by flags: a branch, a selected address, or solid cells skipped (implicit bounce-back)",
        allowed=("branch", "predicated", "implicit"),
        acts=(Acts(on="flags", values=("memory",), because="faces that are compiled in need no flags"),),
    )
    macroscopics: str = knob(
        "never", "steps after which density and velocity are written", allowed=("never", "every-step")
    )


def _rings(case: Case, config: Box, limits: Limits) -> str | None:
    if not config.propagation.phase(case.stencil, 0).blockwise:
        return None
    refused = launch_rules.usual_alone(
        config,
        f"scheme={config.scheme}",
        ("cells_per_thread", 1, "rows of blocks are not aligned"),
        ("wrap", "arithmetic", "the rings of the blocks are its ghost layer"),
        ("block_order", "row", "a thread block updates the block of cells that it owns"),
        ("macroscopics", "never", "kernels of blocks with rings write none"),
        ("flags", "compiled", "the rings of its blocks hold whole faces alone"),
    )
    if refused or not case.patches:
        return refused
    return f"a {case.patches[0].kind} patch is not supported for scheme={config.scheme}: rings hold whole faces"


def _predicated(case: Case, config: Direct, limits: Limits) -> str | None:
    if config.boundary == "predicated" and config.cells_per_thread > 1 and by_words(case, config):
        return (
            f"boundary=predicated is not supported for cells_per_thread={config.cells_per_thread} (use branch): "
            "a vector has one address"
        )
    return None


def _ghosts_beside_words(case: Case, config: Direct, limits: Limits) -> str | None:
    if config.wrap != "ghost" or not by_words(case, config):
        return None
    layered = (axis for axis, ghost in enumerate(config.frame(case.stencil).ghost) if ghost)
    if periodic := [axis for axis in layered if case.faces[2 * axis] == "periodic"]:
        along = " and ".join("xyz"[axis] for axis in periodic)
        return (
            f"flags={config.flags} is not supported for wrap=ghost with periodic faces along {along} (use arithmetic): "
            "the refresh of ghost rows reads no words"
        )
    return None


def _macroscopics_beside_words(case: Case, config: Direct, limits: Limits) -> str | None:
    if config.macroscopics != "never" and by_words(case, config):
        return (
            f"macroscopics={config.macroscopics} is not supported for flags={config.flags} (use never): "
            "kernels that read words of cells write none"
        )
    return None


_BESIDE_WORDS = (_predicated, _ghosts_beside_words, _macroscopics_beside_words)
RULES = (_rings, launch_rules.in_order, common_rules.flags, *SHAPE, common_rules.implicit, *_BESIDE_WORDS, *LAUNCH)
