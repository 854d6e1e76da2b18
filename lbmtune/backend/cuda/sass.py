"""Spill hazards, read from the instructions of a cubin without a GPU: no compiler log reports them.

A spill hazard is a word of local memory that is loaded, and stored again before anything waits for that load: the store
stalls until its cache line has arrived (docs/design/gpu.md). Compilers create them for registers that a loop spills.
All loads that are outstanding at a stall have completed after it.

Instructions have 16 bytes since compute capability 7.0, and until 9.0 this layout: opcode (bits 0 to 11), address
register (24 to 31), address offset (40 to 63), access width (73 to 75), the scoreboard barrier that the result releases
(110 to 112; 7: none), and the barriers that are waited for first (116 to 121). The distance of a branch in words of
four bytes is in bits 34 to 81 before 9.0; there, bits 16 to 23 are its lowest bits. Source: Jia, Maggioni, Staiger,
Scarpazza: Dissecting the NVIDIA Volta GPU architecture via microbenchmarking, 2018 (arXiv:1804.06826), section 2; local
memory and branches: `nvdisasm`.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LOAD, _STORE, _BRANCH = 0x983, 0x387, 0x947
"""LDL, STL and BRA."""
_BYTES, _WORD = 16, 4
_TEXT, _NO_BITS = ".text.", 8
_KNOWN = range(70, 100)
"""Compute capabilities, times ten, with this layout of instructions; later ones differ."""
_SPLIT = 90
"""The first compute capability whose branches have their lowest bits in bits 16 to 23."""
_WORDS = {5: 2, 6: 4}
"""Words of a load or store by its width, if more than one."""
_CAPABILITY_SHIFT = {7: 0, 8: 8}
"""Position of the compute capability in the flags of a cubin, by the version of its format."""


Place = tuple[int, int]
"""A word of local memory: address register and offset."""


class Instruction(NamedTuple):
    """An instruction as far as it is decoded. address: of the first word; words: moved to or from local memory.

    releases: barrier that the result releases; waits: bits of the barriers that are waited for first; leads:
    instructions from the next one to the target of a branch.
    """

    code: int
    address: Place
    words: int
    releases: int
    waits: int
    leads: int


def spill_hazards(image: bytes) -> dict[str, int]:
    """Return the spill hazards of one iteration of the longest loop of each entry of a cubin; 0 without loops.

    Empty for other architectures and formats, and for a truncated image.
    """
    try:
        capability = _capability(image)
        if capability not in _KNOWN:
            return {}
        return {name: _hazards(_instructions(text, split=capability >= _SPLIT)) for name, text in _texts(image)}
    except (struct.error, IndexError, ValueError, OverflowError):  # truncated
        return {}


def _capability(image: bytes) -> int:
    """Return the compute capability of a cubin, times ten; 0 for anything else."""
    if image[:4] != b"\x7fELF" or image[8] not in _CAPABILITY_SHIFT:
        return 0
    (flags,) = struct.unpack_from("<I", image, 48)
    return int(flags) >> _CAPABILITY_SHIFT[image[8]] & 0xFF


def _texts(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the code of each entry. Source: System V ABI, ELF-64: sections and their names."""
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
    """Decode one instruction. split: whether the lowest bits of a branch are in bits 16 to 23."""
    code = low & 0xFFF
    leads = 0
    if code == _BRANCH:
        words = _signed(low >> 34 | (high & 0x3FFFF) << 30, 48)
        leads = (words << 8 | low >> 16 & 0xFF if split else words) * _WORD // _BYTES
    return Instruction(
        code=code,
        address=(low >> 24 & 0xFF, _signed(low >> 40, 24)),
        words=_WORDS.get(high >> 9 & 7, 1),
        releases=high >> 46 & 7,
        waits=high >> 52 & 0x3F,
        leads=leads,
    )


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def _loop(code: Sequence[Instruction]) -> Sequence[Instruction]:
    """Return the body of the branch that leads furthest back, or nothing.

    Every text ends with a branch to itself, which is never executed.
    """
    back = [(one.leads, at) for at, one in enumerate(code) if one.leads < -1]
    if not back:
        return ()
    leads, last = min(back)
    return code[max(0, last + 1 + leads) : last + 1]


def _hazards(code: Sequence[Instruction]) -> int:
    """Return the spill hazards of an iteration that follows another one.

    A wait for one load, or a store that stalls, lasts about as long as all outstanding loads.
    """
    hazards, pending, fresh = 0, set[int](), set[Place]()
    loop = _loop(code)
    for counts in (0, 1):
        for one in loop:
            if waited := {barrier for barrier in pending if one.waits >> barrier & 1}:
                pending -= waited
                fresh.clear()
            if one.code == _LOAD:
                pending.add(one.releases)
                fresh.update(_places(one))
            elif one.code == _STORE and not fresh.isdisjoint(_places(one)):
                hazards += counts
                fresh.clear()
    return hazards


def _places(one: Instruction) -> Iterator[Place]:
    register, number = one.address
    return ((register, number + _WORD * word) for word in range(one.words))
