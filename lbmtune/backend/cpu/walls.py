"""Support module of generated CPU kernels of moments with solid cells: bounce-back of a vector of cells.

A cell's word has a bit for each of its cut links, and bit 0 if it is solid
(`lbmtune.catalogue.boundaries.cell_flags`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types

from lbmtune.backend.cpu.lists import ANY, BIT, WORD, WORD_BYTES, Access, Site, of_lanes


class Cells(NamedTuple):
    """Functions for a number of lanes.

    some_cut(words, at): whether any of the words at, at + 1, ... is not zero. back(array, at, own, words, first, bit):
    elements at, at + 1, ...; those from `own` on if the bit is set in the word, from `first` on, of a fluid cell.
    """

    some_cut: Any
    back: Any


def cells(compute: str, lanes: int) -> Cells:
    """Return the functions for vectors (scalars for one lane) of the compute type, which is that of the array."""
    access, integer = Access(getattr(types, compute), lanes), types.int64
    return Cells(
        some_cut=access.function(types.boolean, (ANY, integer), _some_cut),
        back=access.function(access.value, (ANY, integer, integer, ANY, integer, integer), _back),
    )


def _some_cut(site: Site) -> Any:
    found, together = site.words(0, 1), ir.IntType(8 * WORD_BYTES * site.access.lanes)
    return site.builder.icmp_unsigned("!=", site.builder.bitcast(found, together), ir.Constant(together, 0))


def _back(site: Site) -> Any:
    builder, lanes, found = site.builder, site.access.lanes, site.words(3, 4)
    shift = site.wide(builder.trunc(site.values[5], WORD))
    cut = builder.and_(builder.lshr(found, shift), builder.not_(found))
    places = (site.place(at, lanes) for at in site.values[1:3])
    straight, returned = (builder.load(place, align=site.stored[1]) for place in places)
    return builder.select(builder.trunc(cut, of_lanes(BIT, lanes)), returned, straight)
