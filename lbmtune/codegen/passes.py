"""The passes of a scheme as entries of a program: their names and the buffers that they take."""

from __future__ import annotations

from typing import NamedTuple

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.pointer_swap import exchange
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.lattice import Lattice

BUFFERS = ("f0", "f1")
"""Names of the lattice copies."""
SLOT = "slot_"
"""How the names of launch arguments begin that say where a slot of f0 starts: a pointer on a GPU, else an element."""
FACE_ARRAYS = ("faces_0", "faces_1")
"""The same of the two arrays of f0 in which lies what crosses between tiles
(`catalogue.families.cuda.face_exchange`)."""
REFRESH = "refresh_"
"""How the names of kernels begin that refresh ghost cells."""


class Pass(NamedTuple):
    """One pass of a step of a parity; entry: name of its kernel; slots: that its pointers lead to, in their order."""

    phase: Phase
    entry: str
    slots: tuple[int, ...] = ()

    @property
    def buffers(self) -> tuple[str, ...]:
        """The buffer that it works on in place, or the one that it reads and the one that it writes."""
        source, target = BUFFERS[self.phase.source], BUFFERS[self.phase.target]
        return (source,) if self.phase.in_place else (source, target)

    @property
    def places(self) -> tuple[str, ...]:
        """The same, and the slots, as a launch names them."""
        return (*self.buffers, *(f"{SLOT}{slot}" for slot in self.slots))

    def refresh(self, when: str) -> str:
        """Name of the kernel that refreshes ghost cells before it reads or after it writes."""
        return f"{REFRESH}{when}_{self.entry.removeprefix('step_')}"


def passes_of(config: KernelConfig, lattice: Lattice, parity: int) -> tuple[Pass, ...]:
    """Those of a step of that parity: step_0, then what moves, move_0 and so on; one step_0 that takes pointers."""
    if config.pointer_swap:
        phase, slots = exchange(config.propagation, lattice)
        return (Pass(phase, "step_0", slots[parity]),)
    first, *rest = config.propagation.passes(lattice, parity)
    moves = (Pass(phase, f"move_{parity}" if len(rest) == 1 else f"move_{parity}_{n}") for n, phase in enumerate(rest))
    return (Pass(first, f"step_{parity}"), *moves)


def passes(config: KernelConfig, lattice: Lattice) -> tuple[Pass, ...]:
    """Those of all parities, in order, each entry once."""
    every = (one for parity in range(config.propagation.period) for one in passes_of(config, lattice, parity))
    return tuple({one.entry: one for one in every}.values())
