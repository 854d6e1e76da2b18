"""A user's kernel with its buffers on a device."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Binary, Device
from lbmtune.catalogue.own_kernel.definition import Argument
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.own_program import OwnProgram
from lbmtune.runtime.simulation import Simulation

Array = Any
_BYTE = 0xFF
"""Every byte of a poisoned buffer of whole numbers."""


class OwnSimulation(Simulation):
    """The buffers of a user's kernel, which launches advance. It knows of no populations: see `arrays`."""

    shares_state = False
    program: OwnProgram

    def __init__(self, program: OwnProgram, binary: Binary, device: Device, case: Case | None = None) -> None:
        """Load the program and allocate its buffers, poisoned. Raises OutOfMemoryError, TooManyResourcesError."""
        self.program, self.device, self.case = program, device, case or program.case
        self.executable = device.load(program, binary)
        self.steps_done, self.outputs = 0, {}
        sizes = program.sizes(self.case.domain)
        self.buffers = {one.name: device.empty(sizes[one.name], one.type) for one in program.kernel.buffers}
        self._turns, self._grid = [one for (one,) in program.period], program.grid(program.launch, self.case.domain)
        self._arguments = [self._passed(flip) for flip in range(self.cycle_steps)]
        self.poison()

    @property
    def described(self) -> dict[str, Argument]:
        """Return the arguments that are buffers, by name."""
        return {one.name: one for one in self.program.kernel.buffers}

    @property
    def cycle_steps(self) -> int:
        """Return the launches until buffers that change places are where they were, and entries begin again."""
        return 2 if self._swapped or self.program.kernel.odd_entry else 1

    @property
    def parity_steps(self) -> int:
        """Return the launches of a cycle."""
        return self.cycle_steps

    @property
    def _swapped(self) -> dict[str, str]:
        pairs = [(one.name, one.swap) for one in self.program.kernel.buffers if one.swap]
        return {**dict(pairs), **{other: name for name, other in pairs}}

    def poison(self) -> None:
        """Fill every buffer with NaN, or with bytes of ones, so that missing stores show."""
        for name, buffer in self.buffers.items():
            poison(self.described[name], buffer)

    def prepare(self, steps: int) -> None:
        """Return at once: nothing has to be made for launches."""

    def step(self, steps: int) -> None:
        """Enqueue launches, after each of which buffers change places."""
        for _ in range(steps):
            arguments = self._arguments[self.steps_done % len(self._arguments)]
            self.executable.launch(self._turns[self.steps_done % len(self._turns)], self._grid, arguments)
            self.steps_done += 1

    def set(self, values: Mapping[str, Array]) -> None:
        """Set buffers to numpy arrays, before the first launch."""
        self.steps_done = 0
        for name, value in values.items():
            self.buffers[name][...] = self.xp.asarray(value)

    def arrays(self, xp: ModuleType = np) -> dict[str, Array]:
        """Return copies of all buffers, by the argument that each is in the next launch.

        xp: the module of the copies: NumPy of those in the memory of the host, or that of the device.
        """
        self.device.synchronize()
        swapped = self._swapped if self.steps_done % self.cycle_steps else {}
        found = {name: self.buffers[swapped.get(name, name)] for name in self.buffers}
        return {name: on_host(one, self.xp) if xp is np else one.copy() for name, one in found.items()}

    def _passed(self, flip: int) -> list[Any]:
        """Return the arguments of a launch. flip: 1 if buffers have changed places."""
        kernel, swapped = self.program.kernel, self._swapped if flip else {}
        numbers = kernel.numbers(self.program.own.values, self.case.domain)
        return [
            self.buffers[swapped.get(one.name, one.name)]
            if one.is_buffer
            else np.dtype(one.type).type(numbers[one.name])
            for one in kernel.arguments
        ]


def poison(argument: Argument, buffer: Array) -> None:
    """Fill a buffer with NaN, or with bytes of ones if its elements are whole numbers."""
    if argument.is_whole:
        buffer.view("uint8").fill(_BYTE)
    else:
        buffer.fill(np.nan)


def first_values(argument: Argument, elements: int, seed: int, xp: ModuleType = np) -> Array:
    """Return random first values of a buffer, as its description bounds them; whole numbers include both bounds.

    xp: the module of the array. Real numbers on a device are made there, without a copy of each.
    """
    low, high = argument.random
    if xp is not np:
        if argument.is_whole:
            return xp.asarray(first_values(argument, elements, seed))
        return (low + (high - low) * _scattered(elements, seed, xp)).astype(argument.type)
    random = np.random.default_rng(seed)
    if argument.is_whole:
        return random.integers(int(low), int(high), elements, dtype=argument.type, endpoint=True)
    return random.uniform(low, high, elements).astype(argument.type)


def _scattered(elements: int, seed: int, xp: ModuleType) -> Array:
    """Return numbers from 0 to 1 by mixing the bits of their places. Source: Appleby, MurmurHash3."""
    mixed = xp.arange(elements, dtype=np.uint32) + np.uint32((seed + 1) * 0x9E3779B9 & 0xFFFFFFFF)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    return (mixed ^ (mixed >> np.uint32(16))) / np.float64(2**32)


def on_host(array: Array, xp: ModuleType) -> Array:
    """Return a copy of an array in the memory of the host."""
    return np.array(array) if xp is np else xp.asnumpy(array)
