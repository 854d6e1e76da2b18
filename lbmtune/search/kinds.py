"""Kinds of kernels: what rankings, finals, accuracy and figures tell apart, by the family of a configuration."""

from dataclasses import dataclass
from typing import NamedTuple

from lbmtune.catalogue.config import KernelConfig

_LATTICES = {0: "its own buffers", 1: "one lattice", 2: "two lattices"}
_LINKS = {"compiled": "", "flags": ", flags read", "list": ", sites listed"}


@dataclass(frozen=True)
class Kind:
    """Kernels that are compared with one another by their best.

    representation: "populations" or "moments"; place: of the state, empty for arrays of all cells; lattices: copies of
    the state; links: source of cut links, "compiled", "flags" or "list"; steps: time steps per launch; on_chip: whether
    the state stays on chip through all steps of a launch, whose number is an argument.
    """

    representation: str
    place: str
    lattices: int
    links: str
    scheme: str
    steps: int
    on_chip: bool

    @property
    def state(self) -> str:
        """Name what a cell stores and where, such as "moments on chip"."""
        return f"{self.representation} {self.place}".rstrip()

    @property
    def requirements(self) -> tuple[str, int, str, bool]:
        """Return what a solver provides: state, lattices, links, and if a launch does several steps.

        Without the last, one step in place would have no final if several steps in place lead.
        """
        return self.state, self.lattices, self.links, self.steps > 1

    @property
    def pattern(self) -> str:
        """Name the scheme, or the representation if that is not populations."""
        return self.scheme if self.representation == "populations" else self.representation

    @property
    def label(self) -> str:
        """Name the kind in figures, such as "aa" or "moments, 2 steps per launch"."""
        if self.on_chip:
            return f"{self.pattern} {self.place}"
        if self.steps == 1 and self.pattern == self.scheme:
            return self.scheme
        return f"{self.pattern}, {steps_per_launch(self.steps)}"

    def __str__(self) -> str:
        """Name the kind in tables, such as "aa, populations in one lattice, flags read"."""
        several = f", {self.steps} steps per launch" if self.steps > 1 else ""
        return f"{self.scheme}, {self.state} in {_LATTICES[self.lattices]}{_LINKS[self.links]}{several}"


class Rounding(NamedTuple):
    """Kernels that round alike, except for the order of sums. steps: time steps per launch."""

    state: str
    storage: str
    compute: str
    steps: int

    @property
    def said(self) -> str:
        """Name it in a sentence."""
        return f"{self.state} stored as {self.storage}, computed in {self.compute}, {steps_per_launch(self.steps)}"


def kind_of(config: KernelConfig) -> Kind:
    """Return the kind of a configuration."""
    return Kind(
        config.kept.name,
        config.state_place,
        config.copies,
        config.link_source,
        config.scheme,
        config.fused_steps,
        config.on_chip,
    )


def rounding_of(config: KernelConfig) -> Rounding:
    """Return what the rounding of a configuration depends on."""
    return Rounding(kind_of(config).state, config.storage, config.compute, config.fused_steps)


def steps_per_launch(steps: int) -> str:
    """Name a number of time steps per launch."""
    return f"{steps} step{'' if steps == 1 else 's'} per launch"


_USUAL = {"backend", "family", "storage", "compute"}
"""Knobs that a default kernel may have otherwise: it solves the same problem in the same formats."""


def is_default(config: KernelConfig) -> bool:
    """Return whether a kernel is direct and leaves all knobs at their defaults, but for its number formats."""
    return config.family == "direct" and config.identity.keys() <= {*_USUAL, *config.by_device}
