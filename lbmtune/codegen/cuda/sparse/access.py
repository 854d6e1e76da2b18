"""Loads and stores of populations of listed sites as C text: one line per direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import walls
from lbmtune.catalogue.schemes.scheme import Phase, Scheme
from lbmtune.catalogue.sparse.index_list import (
    CUT_BIT,
    MOVING_BIT,
    NodeList,
    Pointer,
    Used,
    Way,
    gains,
    pointer,
    selects,
    used,
    ways,
)
from lbmtune.codegen.cuda.shared import physics
from lbmtune.codegen.cuda.shared.access import slot
from lbmtune.lattice import Vector

_SIGN = {-1: "m", 0: "o", 1: "p"}
_BITS = {CUT_BIT: "CUT", MOVING_BIT: "MOVING"}


def words(case: Case, scheme: Scheme, rows: NodeList, phase: Phase, ahead: int = 0) -> str:
    """Return the declarations of the list words that a pass reads, stored ones before those found through them.

    ahead: sites by which words of the list are prefetched; 0: none.
    """
    needed = used(case, scheme, phase)
    return "\n".join([*_early(rows, needed, ahead), *_declared(rows, needed, partial(_load, rows))])


def copies(case: Case, scheme: Scheme, rows: NodeList, phase: Phase, ahead: int = 0) -> str:
    """Return the copies of those words that lie in the list to shared memory; ahead: as in `words`."""
    needed = used(case, scheme, phase)
    found = [
        f"    fetch_words(waiting + {n} * BLOCK, links, {row}, {_pitch(rows)}, site);"
        for n, row in enumerate(rows.read_first(needed))
    ]
    return "\n".join([*_early(rows, needed, ahead), *found])


def copied(case: Case, scheme: Scheme, rows: NodeList, phase: Phase) -> str:
    """Return the declarations of the words if those that lie in the list have been copied."""
    needed = used(case, scheme, phase)
    first = rows.read_first(needed)
    return "\n".join(_declared(rows, needed, lambda name, row: _copied(name, first.index(row))))


def _declared(rows: NodeList, needed: Used, own: Callable[[str, int], str]) -> list[str]:
    """Return the declarations. own: the declaration of a word, by name and row, that lies at the site itself."""
    found = [rows.pointers[n] for n in needed.pointers]
    lines = [_pointer(rows, p, own) for p in (sorted(found, key=lambda p: sum(p.open)) if rows.chased else found)]
    others = [("mask", rows.mask_row)] * needed.masks + [("types", rows.type_row)] * needed.types
    return lines + [own(name, row) for name, row in others]


def names(case: Case, scheme: Scheme, rows: NodeList, phase: Phase) -> tuple[str, ...]:
    """Return the names of those words, always in the same order."""
    needed = used(case, scheme, phase)
    others = [*["mask"] * needed.masks, *["types"] * needed.types]
    return (*(_name(rows.pointers[n]) for n in needed.pointers), *others)


def _early(rows: NodeList, needed: Used, ahead: int) -> list[str]:
    """Return the prefetches of the words that lie in the list, for a site further on."""
    if not ahead:
        return []
    asked = [f"        ask_for(links, {row}, {_pitch(rows)}, site + {ahead});" for row in rows.read_first(needed)]
    return [f"    if (site + {ahead} < sites) {{", *asked, "    }"] if asked else []


def reads(case: Case, rows: NodeList, phase: Phase, buffer: str) -> str:
    """Return the loads of all populations, and the momentum of moving walls."""
    plain = [_access(case, rows, way, buffer) for way in _of("read", case, phase)]
    return "\n".join(plain + _gains(case, rows, phase, "read"))


def writes(case: Case, rows: NodeList, phase: Phase, buffer: str) -> str:
    """Return the momentum of moving walls, and the stores of all populations."""
    plain = [_access(case, rows, way, buffer) for way in _of("write", case, phase)]
    return "\n".join(_gains(case, rows, phase, "write") + plain)


def gain_scalars(case: Case, phase: Phase) -> set[str]:
    """Return the launch arguments of the wall terms of a pass."""
    return physics.wall_scalars(case, (way.link for way in ways(case.stencil, phase) if gains(case, phase, way)))


def _of(verb: str, case: Case, phase: Phase) -> Iterator[Way]:
    return (way for way in ways(case.stencil, phase) if way.verb == verb)


def _pointer(rows: NodeList, found: Pointer, own: Callable[[str, int], str]) -> str:
    start = rows.before(found)
    if start is None:
        return own(_name(found), rows.row(found))
    return f"    const Words {_name(found)} = words_at(links, {rows.row(found)}, nodes, {_name(start)});"


def _load(rows: NodeList, name: str, row: int) -> str:
    return f"    const Words {name} = words(links, {row}, {_pitch(rows)}, site);"


def _copied(name: str, number: int) -> str:
    return f"    const Words {name} = waiting[{number} * BLOCK];"


def _pitch(rows: NodeList) -> str:
    """Return the number of words of a row of the list."""
    return "nodes" if rows.chased else "sites"


def _name(found: Pointer) -> str:
    """Return the name of a word: link_pom follows a link and stays where it is cut; node_pom leads to an offset."""
    return f"link_{_signs(found.link)}" if found.link else f"node_{_signs(found.open)}"


def _signs(offset: Vector) -> str:
    return "".join(_SIGN[a] for a in offset)


def _access(case: Case, rows: NodeList, way: Way, buffer: str) -> str:
    """Return one load or store; with both slots and the flag if the slot depends on it."""
    found = pointer(case, way)
    slots = slot(way.open, buffer)
    where = f"{_name(found)}, n" if found else "at"
    flag = ""
    if selects(case, way):
        slots += f", {slot(way.cut, buffer)}"
        flag = f", {_flag(rows, way.link)}"
    return f"    {way.verb}_{'node' if found else 'here'}(f[{way.direction}], {slots}, {where}{flag});"


def _flag(rows: NodeList, link: Vector) -> str:
    """Return words and bit that tell whether a link is cut."""
    row, bit = rows.flags(link)
    return f"mask, {bit}" if row == rows.mask_row else f"{_name(rows.pointers[row])}, {_BITS[bit]}"


def _gains(case: Case, rows: NodeList, phase: Phase, verb: str) -> list[str]:
    """Return the momentum of moving walls; flags in a row of their own are loaded only at such a wall."""
    lines: list[str] = []
    masked: list[str] = []
    for wall, way in product(walls(case), _of(verb, case, phase)):
        if gains(case, phase, way):
            i = way.direction if verb == "read" else case.stencil.opposite[way.direction]
            row, bit = rows.flags(way.link)
            own = row == rows.mask_row
            found, bit_name = ("moving", str(bit)) if own else (_name(rows.pointers[row]), "MOVING")
            flag = f"{physics.of_wall(case, wall, found, 'types.of', everywhere=True)}, {bit_name}"
            (masked if own else lines).append(
                f"add(f[{way.direction}], {physics.gain(case.lattice, i, wall)}, {flag});"
            )
    text = [f"    {line}" for line in lines]
    if masked:
        head = ["    if (any(mask, MOVING)) {", f"    {_load(rows, 'moving', rows.mask_row + 1)}"]
        text += [*head, *(f"        {line}" for line in masked), "    }"]
    return text
