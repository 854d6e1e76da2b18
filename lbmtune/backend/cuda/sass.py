"""What a GPU's compiled code says that no compiler's log does: read off the instructions of a cubin, without a GPU.

A word of local memory that is loaded, and stored anew before anybody waits for what was loaded, is overtaken: the load
of its line is still on its way then (docs/design/gpu.md). Compilers do so with registers that a loop spills. Loads that
were on their way by then have their answers when the store goes on.

An instruction is 16 bytes since compute capability 7.0, and until 9.0 as follows. Of each are read: its code (bits 0 to
11), the register of its address (24 to 31), the number that is added to that (40 to 63), how much it moves (73 to 75),
and what the scheduler is told: the barrier that its result will lift (110 to 112; 7: none), and those that are waited
for beforehand (116 to 121). How far a branch leads, in words of four bytes, are bits 34 to 81 before 9.0, and there the
same bits with 16 to 23 below them. Source: Jia, Maggioni, Staiger, Scarpazza: Dissecting the NVIDIA Volta GPU
architecture via microbenchmarking, 2018 (arXiv:1804.06826), section 2; local memory and branches: `nvdisasm`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LOAD, _STORE, _BRANCH = 0x983, 0x387, 0x947
"""LDL, STL and BRA."""
_BYTES, _WORD = 16, 4
_TEXT, _NO_BITS = ".text.", 8
_KNOWN = range(70, 100)
"""Compute capabilities, times ten, whose instructions are as above: those after them lay some of it out otherwise."""
_SPLIT = 90
"""The first whose branches have their lowest bits apart."""
_WORDS = {5: 2, 6: 4}
"""Of a load or store that is wider than one; narrower ones are in a word."""
_CAPABILITY_SHIFT = {7: 0, 8: 8}
"""Where the flags of a cubin have it, by the version of its format."""


Place = tuple[int, int]
"""Of a word of local memory: the register of its address, and the number that is added."""


class Instruction(NamedTuple):
    """address: of the first word; words: of local memory that are moved; lifts: the barrier that the result does.

    waits: bits of the barriers that are waited for first; leads: how many instructions a branch goes on from the one
    behind it.
    """

    code: int
    address: Place
    words: int
    lifts: int
    waits: int
    leads: int


def overtaken(image: bytes) -> dict[str, int]:
    """Stores that overtake a load, of a pass of the longest loop of each entry; none where nothing loops.

    image: a cubin; none of another device, of another format, or of one that is not whole.
    """
    try:
        known = _capability(image)
        if known not in _KNOWN:
            return {}
        return {name: _overtaken(_instructions(text, split=known >= _SPLIT)) for name, text in _texts(image)}
    except (struct.error, IndexError, ValueError, OverflowError):  # what it tells of lies behind its end
        return {}


def _capability(image: bytes) -> int:
    """Times ten, of the device that a cubin is for; 0 of anything else."""
    if image[:4] != b"\x7fELF" or image[8] not in _CAPABILITY_SHIFT:
        return 0
    (flags,) = struct.unpack_from("<I", image, 48)
    return int(flags) >> _CAPABILITY_SHIFT[image[8]] & 0xFF


def _texts(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Code by the name of its entry. Source: System V ABI, ELF-64: sections and their names."""
    (table,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    # name, kind, flags, address, place, length
    heads = [struct.unpack_from("<IIQQQQ", image, table + n * size) for n in range(count)]
    for head in heads:
        start = heads[names][4] + head[0]
        name = image[start : image.index(b"\0", start)].decode()
        if name.startswith(_TEXT) and head[1] != _NO_BITS:
            yield name.removeprefix(_TEXT), image[head[4] : head[4] + head[5]]


def _instructions(text: bytes, *, split: bool) -> list[Instruction]:
    places = range(0, len(text) - _BYTES + 1, _BYTES)
    return [_instruction(*struct.unpack_from("<QQ", text, at), split=split) for at in places]


def _instruction(low: int, high: int, *, split: bool) -> Instruction:
    """split: whether the lowest bits of a branch lie apart."""
    code = low & 0xFFF
    leads = 0
    if code == _BRANCH:
        words = _signed(low >> 34 | (high & 0x3FFFF) << 30, 48)
        leads = (words << 8 | low >> 16 & 0xFF if split else words) * _WORD // _BYTES
    return Instruction(
        code=code,
        address=(low >> 24 & 0xFF, _signed(low >> 40, 24)),
        words=_WORDS.get(high >> 9 & 7, 1),
        lifts=high >> 46 & 7,
        waits=high >> 52 & 0x3F,
        leads=leads,
    )


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def _loop(code: Sequence[Instruction]) -> Sequence[Instruction]:
    """What lies before the branch that leads furthest back; nothing where none does.

    Behind the end of every text is a branch to itself, which nobody passes.
    """
    back = [(one.leads, at) for at, one in enumerate(code) if one.leads < -1]
    if not back:
        return ()
    leads, last = min(back)
    return code[max(0, last + 1 + leads) : last + 1]


def _overtaken(code: Sequence[Instruction]) -> int:
    """In a pass that follows another one.

    A wait for any load takes about as long as the answers to all others do, and so does a store that is held up.
    """
    found, pending, fresh = 0, set[int](), set[Place]()
    loop = _loop(code)
    for counts in (0, 1):
        for one in loop:
            if waited := {barrier for barrier in pending if one.waits >> barrier & 1}:
                pending -= waited
                fresh.clear()
            if one.code == _LOAD:
                pending.add(one.lifts)
                fresh.update(_places(one))
            elif one.code == _STORE and not fresh.isdisjoint(_places(one)):
                found += counts
                fresh.clear()
    return found


def _places(one: Instruction) -> Iterator[Place]:
    """Words that it loads or stores, by the register of its address."""
    register, number = one.address
    return ((register, number + _WORD * word) for word in range(one.words))
