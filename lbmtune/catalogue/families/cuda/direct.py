"""Direct: one time step of a box per launch; a thread updates one cell, or a vector of cells along x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.families.cuda.box import Box
from lbmtune.catalogue.families.groups import Bounded
from lbmtune.catalogue.knobs import Acts, knob


@dataclass(frozen=True, kw_only=True)
class Direct(Bounded, Box):
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
