"""Ways in which a message reaches another device: copies, stores of a kernel, or through the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from lbmtune.backend.protocol import Binary, Compiler, Executable, PeerDevice
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.codegen.cuda.exchange import ALONG, PIECES, PUT, TAKEN, WORDS, blocks_of, mover, pieces_of
from lbmtune.codegen.program import Launch, Program
from lbmtune.errors import InputError
from lbmtune.runtime.parts.messages import Message
from lbmtune.runtime.simulation import Simulation

Array = Any
Work = Callable[[], None]
MOST_COPIES = 1 << 10
"""Copies of a message; more of them take longer than a kernel that moves each element."""


class Way(NamedTuple):
    """The work of a message: on the device that sends it, then on the one that receives it, if that has any."""

    send: Work
    receive: Work | None = None


class End(NamedTuple):
    """A part at one end of a message: its simulation, the buffer of its state, and its device."""

    part: Simulation
    state: Array
    device: PeerDevice


class Movers:
    """Kernels that move words, each compiled once and loaded once on each device."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._binaries: dict[int, tuple[Program, Binary]] = {}
        self._loaded: dict[tuple[int, int], Executable] = {}

    def of(self, source: End, word_bytes: int) -> tuple[Executable, Launch]:
        """Return the kernel for words of some bytes on the device of a part, with its launch."""
        if word_bytes not in self._binaries:
            made = mover(source.part.case, source.part.program.config, word_bytes)
            self._binaries[word_bytes] = made, self._compiler(made)
        program, binary = self._binaries[word_bytes]
        place = id(source.device), word_bytes
        if place not in self._loaded:
            with source.device.current():
                self._loaded[place] = source.device.load(program, binary)
        return self._loaded[place], program.period[0][0]


def way_of(transport: str, message: Message, source: End, target: End, movers: Movers) -> Way:
    """Return the way of a message; of none, if walls cut all links of a face, it does nothing. Raises InputError."""
    return TRANSPORTS[transport](message, source, target, movers) if len(message.taken) else Way(lambda: None)


def by_copies(message: Message, source: End, target: End, _: Movers) -> Way:
    """Return a copy for each run; parts in one memory need no runs. Raises InputError if there are too many."""
    if BACKENDS[source.part.program.target].shares_host:
        return Way(partial(_put, source.state, target.state, message))
    pairs = [(target.state[put : put + n], source.state[taken : taken + n]) for taken, put, n in _few(message, "copy")]
    return Way(partial(_copied, source.device, pairs))


def by_kernel(message: Message, source: End, target: End, movers: Movers) -> Way:
    """Return one launch that loads all runs and stores them into the memory of the other device."""
    return Way(moved(message.runs, source, target.state, movers))


def moved(table: Array, source: End, put: Array, movers: Movers) -> Work:
    """Return one launch on a device that loads runs from an array and stores them into another one.

    table: first elements in both arrays, and their number (`Message.runs`).
    """
    size = source.state.itemsize
    word = gcd(int(np.gcd.reduce(table, axis=None)) * size, max(WORDS))
    pieces = pieces_of(table * size // word)
    executable, launch = movers.of(source, word)
    with source.device.current():
        given = {TAKEN: source.state, PUT: put, ALONG: source.device.xp.asarray(pieces.ravel())}
    arguments = [*(given[name] for name in (TAKEN, PUT, ALONG)), np.int32(len(pieces))]
    assert launch.arguments == (*given, PIECES)
    return partial(executable.launch, launch, (blocks_of(len(pieces)), 1, 1), arguments)


def by_host(message: Message, source: End, target: End, _: Movers) -> Way:
    """Return copies of each run into memory of the host, and from there."""
    table = _few(message, "host")
    held = source.device.host_empty(int(table[:, 2].sum()), source.state.dtype.name)
    places = np.concatenate([[0], np.cumsum(table[:, 2])])
    out = [(held[a : a + n], source.state[taken : taken + n]) for a, (taken, _, n) in zip(places, table, strict=False)]
    into = [(target.state[put : put + n], held[a : a + n]) for a, (_, put, n) in zip(places, table, strict=False)]
    return Way(partial(_copied, source.device, out), partial(_copied, target.device, into))


TRANSPORTS: Mapping[str, Callable[[Message, End, End, Movers], Way]] = {
    "copy": by_copies,
    "pack": by_kernel,
    "host": by_host,
}
"""The ways by the name of the knob."""


def _copied(device: PeerDevice, pairs: list[tuple[Array, Array]]) -> None:
    for to, of in pairs:
        device.copy(to, of)


def _put(source: Array, target: Array, message: Message) -> None:
    target[message.put] = source[message.taken]


def _few(message: Message, transport: str) -> Array:
    table = message.runs
    if len(table) > MOST_COPIES:
        raise InputError(
            f"transport={transport} is not supported for a message of {len(table):,} runs (use pack): a copy moves one "
            f"run, and {MOST_COPIES:,} are the most."
        )
    return table
