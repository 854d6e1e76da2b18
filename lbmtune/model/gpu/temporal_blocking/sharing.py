"""Predict how blocks of several launches share a device: the bandwidth of memory, and the room of multiprocessors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from lbmtune.catalogue.limits import REGISTERS, WARP
from lbmtune.codegen.cuda.exchange import THREADS
from lbmtune.model.gpu.inputs import WARPS, Inputs
from lbmtune.model.gpu.temporal_blocking import plane_s
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs

_SENDING_REGISTERS = 32
"""Registers of a thread that sends, compiled for compute capability 9.0."""


def pace_of(inputs: TemporalInputs, room: int, own: float) -> Callable[[int], float]:
    """Return how fast some blocks that run at once get on, over those that fill the room of a device.

    own: how much longer a launch takes than it is predicted to. If a full device is faster than predicted, a lone block
    is as predicted, and blocks wait as much less for each other.
    """
    lone_s, room_s = plane_s(inputs, 1), plane_s(inputs, room)
    full_s = max(lone_s, min(1.0, own) * room_s)
    less = (full_s - lone_s) / (room_s - lone_s) if room_s > lone_s else 1.0
    return cache(lambda blocks: max(1.0, full_s / (lone_s + less * (plane_s(inputs, blocks) - lone_s))))


def room_of_senders(inputs: Inputs, blocks: int) -> int:
    """Return the blocks of a kernel whose room those of one that sends need; 0: they run beside all of them.

    Where a block of the kernel ended, as many start as its registers and threads, and those left over, suffice for.
    """
    registers = WARP * max(entry.registers for entry in inputs.entries or (inputs.resources,))
    sending, warps = THREADS * _SENDING_REGISTERS, THREADS // WARP

    def beside(there: int) -> int:
        used = there * inputs.block_warps
        return min((REGISTERS - used * registers) // sending, (WARPS - used) // warps)

    if beside(inputs.blocks) * inputs.machine.multiprocessors >= blocks:
        return 0
    return -(-blocks // max(1, beside(inputs.blocks - 1)))
