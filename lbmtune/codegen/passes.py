"""The passes of a scheme as entries of a program: their names and buffers."""

from typing import NamedTuple

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.pointer_swap import exchange
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.lattice import Lattice

BUFFERS = ("f0", "f1")
"""Names of the copies of the lattice."""
SLOT = "slot_"
"""Prefix of launch arguments that are the start of a slot of f0: a pointer on a GPU, else the number of an element."""
POINTER = "pointer_"
"""Prefix of the parameters that take those."""
FACE_ARRAYS = ("faces_0", "faces_1")
"""Launch arguments that are the starts of the two arrays in f0 of what crosses between tiles (face exchange)."""
REFRESH = "refresh_"
"""Prefix of kernels that refresh ghost cells."""


class Pass(NamedTuple):
    """One pass of a step of a parity. entry: name of its kernel; slots: those that its pointers lead to, in order."""

    phase: Phase
    entry: str
    slots: tuple[int, ...] = ()

    @property
    def buffers(self) -> tuple[str, ...]:
        """Return the buffer of a pass in place, or the one that is read and the one that is written."""
        source, target = BUFFERS[self.phase.source], BUFFERS[self.phase.target]
        return (source,) if self.phase.in_place else (source, target)

    @property
    def places(self) -> tuple[str, ...]:
        """Return the launch arguments of buffers and slots."""
        return (*self.buffers, *(f"{SLOT}{slot}" for slot in self.slots))

    def refresh(self, when: str) -> str:
        """Return the name of the kernel that refreshes ghost cells before the pass reads or after it writes (when)."""
        return f"{REFRESH}{when}_{self.entry.removeprefix('step_')}"


def pointer_name(number: int) -> str:
    """Return the name of the parameter that leads to a slot."""
    return f"{POINTER}{number}"


def passes_of(config: KernelConfig, lattice: Lattice, parity: int) -> tuple[Pass, ...]:
    """Return the passes of a step of a parity: step_0, then passes that move, move_0 and so on.

    With pointer swap, all parities share one step_0, which takes pointers to slots.
    """
    if config.pointer_swap:
        phase, slots = exchange(config.propagation, lattice)
        return (Pass(phase, "step_0", slots[parity]),)
    first, *rest = config.propagation.passes(lattice, parity)
    moves = (Pass(phase, f"move_{parity}" if len(rest) == 1 else f"move_{parity}_{n}") for n, phase in enumerate(rest))
    return (Pass(first, f"step_{parity}"), *moves)


def passes(config: KernelConfig, lattice: Lattice) -> tuple[Pass, ...]:
    """Return the passes of all parities, in order, each entry once."""
    every = (one for parity in range(config.propagation.period) for one in passes_of(config, lattice, parity))
    return tuple({one.entry: one for one in every}.values())
