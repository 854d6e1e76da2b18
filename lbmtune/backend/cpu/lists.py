"""Support module of generated CPU kernels of the sparse family: access to the nodes of an index list, lane by lane.

A word of the list holds the number of a node and, above it, flags; a word of a mask holds flags only
(`lbmtune.catalogue.sparse.index_list`). Node n lies at element (n // width) * group + n % width after the start of its
slot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lbmtune.backend.cpu.simd import _DECODERS, _Bits, _narrowed
from lbmtune.backend.cpu.vectors import BYTES, VECTORS, data_of, llvm_type, splat

_NODE_MASK = (1 << 30) - 1
WORD, WIDE, BIT = ir.IntType(32), ir.IntType(64), ir.IntType(1)
WORD_BYTES = 4


class Nodes(NamedTuple):
    """Access functions. `flags` is the index of the first word of flags in the list, `nodes` that of nodes.

    gather(array, slot, links, nodes), scatter(array, slot, links, nodes, value): elements of nodes in a slot that
    starts at an element. gather_cut(array, slot, cut, links, nodes, flags, bit), scatter_cut likewise: of the slot
    that starts at `cut` if the bit is set. load_cut(array, at, cut, links, flags, bit), store_cut likewise:
    elements at, at + 1, ... or those from `cut`. chosen(links, flags, bit, value): the value if the bit is set,
    else zero.
    """

    gather: Any
    gather_cut: Any
    scatter: Any
    scatter_cut: Any
    load_cut: Any
    store_cut: Any
    chosen: Any


def nodes(compute: str, lanes: int, width: int, group: int, form: str, codes: str = "") -> Nodes:
    """Return the access for vectors (scalars for one lane) of the compute type.

    form: 'vector' for gather and scatter instructions if the CPU has them, 'lanes' for one access per lane;
    codes: format of 16-bit codes in memory, '' for IEEE halves.
    """
    access = Access(getattr(types, compute), lanes, width, group, form == "vector" and lanes > 1, codes)
    value, integer, flags = access.value, types.int64, (ANY, types.int64, types.int64)
    node, cut_node = (ANY, integer, ANY, integer), (ANY, integer, integer, ANY, integer, integer, integer)
    return Nodes(
        gather=access.function(value, node, lambda s: s.read(s.element(s.words(2, 3)))),
        gather_cut=access.function(value, cut_node, lambda s: s.read(s.element(s.words(3, 4), (3, 5, 6)))),
        scatter=access.function(types.void, (*node, value), lambda s: s.write(s.element(s.words(2, 3)), 4)),
        scatter_cut=access.function(
            types.void, (*cut_node, value), lambda s: s.write(s.element(s.words(3, 4), (3, 5, 6)), 7)
        ),
        load_cut=access.function(value, (ANY, integer, integer, *flags), _load_cut),
        store_cut=access.function(types.void, (ANY, integer, integer, *flags, value), _store_cut),
        chosen=access.function(value, (*flags, access.real), _chosen),
    )


ANY = None
"""Stands for an argument of any type: an array, or nodes."""


class Access(NamedTuple):
    """Lanes and compute type of an access, the width and group of the layout, and the form and codes of `nodes`."""

    real: Any
    lanes: int
    width: int = 1
    group: int = 1
    vector: bool = False
    codes: str = ""

    @property
    def value(self) -> Any:
        """Return the Numba type of the moved values."""
        return VECTORS[self.real, self.lanes] if self.lanes > 1 else self.real

    def function(self, result: Any, kinds: tuple[Any, ...], generated: Callable[[Site], Any]) -> Any:
        """Return a function of generated text. kinds: the Numba types of its arguments."""

        def declared(typing: Any, *given: Any) -> Any:
            def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                found = generated(Site(context, builder, sig.args, args, self))
                return context.get_dummy_value() if found is None else found

            return result(*(kind or own for kind, own in zip(kinds, given, strict=True))), generate

        return intrinsic(declared)


class Site(NamedTuple):
    """Context, builder, and types and values of the arguments of a call that is generated."""

    context: Any
    builder: Any
    kinds: Any
    values: Any
    access: Access

    def words(self, links: int, start: int) -> Any:
        """Return the words of the lanes, from argument `links` at argument `start`."""
        data = data_of(self.context, self.builder, self.kinds[links], self.values[links])
        place = self.builder.gep(data, [self.values[start]])
        return self.builder.load(
            self.builder.bitcast(place, of_lanes(WORD, self.access.lanes).as_pointer()), align=WORD_BYTES
        )

    def flags(self, links: int, start: int, bit: int) -> Any:
        """Return whether a bit of each word is set; the bit is a constant argument."""
        builder, words = self.builder, self.words(links, start)
        shifted = builder.lshr(words, self.wide(builder.trunc(self.values[bit], WORD)))
        return builder.trunc(shifted, of_lanes(BIT, self.access.lanes))

    def wide(self, value: Any) -> Any:
        """Return a value in every lane."""
        lanes = self.access.lanes
        return splat(self.builder, value, lanes) if lanes > 1 else value

    def element(self, words: Any, cut: tuple[int, int, int] | None = None) -> Any:
        """Return the elements of nodes, in 64 bits, in the slot that starts at argument 1.

        cut: arguments of `flags`; where those are set the slot starts at argument 2.
        """
        builder, access = self.builder, self.access
        node = builder.and_(words, _constant(WORD, _NODE_MASK, access.lanes))
        node = builder.zext(node, of_lanes(WIDE, access.lanes))
        group = _constant(WIDE, access.group, access.lanes)
        if access.width > 1:
            width = _constant(WIDE, access.width, access.lanes)
            groups = builder.mul(builder.udiv(node, width), group)
            node = builder.add(groups, builder.urem(node, width))
        elif access.group > 1:
            node = builder.mul(node, group)
        flagged = None if cut is None else self.flags(*cut)
        start = self.wide(self.values[1])
        if flagged is not None:
            start = builder.select(flagged, self.wide(self.values[2]), start)
        return builder.add(node, start)

    @property
    def stored(self) -> tuple[Any, int]:
        """Return the LLVM type of an element of the first argument, and its bytes."""
        kind = self.kinds[0].dtype
        return (WORD, WORD_BYTES) if kind is types.uint32 else (llvm_type(kind, 1), BYTES[kind])

    def place(self, index: Any, lanes: int = 1) -> Any:
        """Return the pointer to an element of the first argument, or to as many as there are lanes."""
        data = data_of(self.context, self.builder, self.kinds[0], self.values[0])
        return self.builder.bitcast(self.builder.gep(data, [index]), of_lanes(self.stored[0], lanes).as_pointer())

    def lane(self, vector: Any, number: int) -> Any:
        """Return the value of a lane."""
        return self.builder.extract_element(vector, _at(number)) if self.access.lanes > 1 else vector

    def places(self, elements: Any) -> list[Any]:
        """Return pointers to elements of the first argument, one per lane."""
        indices = [self.lane(elements, k) for k in range(self.access.lanes)]
        return [self.place(index) for index in indices]

    def addresses(self, elements: Any) -> Any:
        """Return pointers to elements of the first argument, as a vector."""
        builder, lanes, (kind, size) = self.builder, self.access.lanes, self.stored
        data = data_of(self.context, builder, self.kinds[0], self.values[0])
        start = self.wide(builder.ptrtoint(data, WIDE))
        offsets = builder.mul(elements, _constant(WIDE, size, lanes))
        return builder.inttoptr(builder.add(start, offsets), ir.VectorType(kind.as_pointer(), lanes))

    def loaded(self, elements: Any) -> Any:
        """Return elements of the first argument, as they are stored."""
        if self.access.vector:
            return self.masked("gather", [self.addresses(elements)])
        builder, lanes, (kind, size) = self.builder, self.access.lanes, self.stored
        each = [builder.load(place, align=size) for place in self.places(elements)]
        if lanes == 1:
            return each[0]
        found = ir.Constant(ir.VectorType(kind, lanes), ir.Undefined)
        for lane, one in enumerate(each):
            found = builder.insert_element(found, one, _at(lane))
        return found

    def read(self, elements: Any) -> Any:
        """Return elements of the first argument, in the compute type."""
        return self.widened(self.loaded(elements))

    def widened(self, found: Any) -> Any:
        """Return stored values in the compute type."""
        if self.access.codes and self.kinds[0].dtype is types.uint16:
            found = _DECODERS[self.access.codes](_Bits(self.builder, self.access.lanes), found)
        wide = llvm_type(self.access.real, self.access.lanes)
        return found if found.type == wide else self.builder.fpext(found, wide)

    def narrowed(self, value: int) -> Any:
        """Return an argument as the first argument stores it."""
        return _narrowed(self.builder, self.values[value], self.kinds[0].dtype, self.access.codes, self.access.lanes)

    def write(self, elements: Any, value: int) -> None:
        """Store an argument at elements of the first argument."""
        narrow = self.narrowed(value)
        if self.access.vector:
            self.masked("scatter", [narrow, self.addresses(elements)])
            return
        for number, place in enumerate(self.places(elements)):
            self.builder.store(self.lane(narrow, number), place, align=self.stored[1])

    def masked(self, verb: str, arguments: list[Any], mask: Any = None, rest: Any = None) -> Any:
        """Call llvm.masked.gather, scatter, load or store. mask: None: all lanes; rest: values of lanes left out."""
        lanes, (kind, size) = self.access.lanes, self.stored
        vector = ir.VectorType(kind, lanes)
        loads = verb in ("gather", "load")
        given = [*arguments, ir.Constant(WORD, size), _constant(BIT, 1, lanes) if mask is None else mask]
        if loads:
            given.append(ir.Constant(vector, ir.Undefined) if rest is None else rest)
        pointers = f"v{lanes}p0" if verb in ("gather", "scatter") else "p0"
        called = ir.FunctionType(vector if loads else ir.VoidType(), [value.type for value in given])
        name = f"llvm.masked.{verb}.v{lanes}{kind.intrinsic_name}.{pointers}"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, called, name), given)


def of_lanes(kind: Any, lanes: int) -> Any:
    """Return the LLVM type of one value of a type per lane."""
    return ir.VectorType(kind, lanes) if lanes > 1 else kind


def _constant(kind: Any, value: int, lanes: int) -> Any:
    return ir.Constant(of_lanes(kind, lanes), [value] * lanes if lanes > 1 else value)


def _at(lane: int) -> Any:
    return ir.Constant(WORD, lane)


def _load_cut(site: Site) -> Any:
    builder, (cut, opened, closed) = site.builder, _ways(site)
    if site.access.lanes == 1:
        return site.widened(builder.load(builder.select(cut, closed, opened)))
    found = builder.load(opened, align=site.stored[1])
    return site.widened(site.masked("load", [closed], cut, found))


def _store_cut(site: Site) -> None:
    builder, (cut, opened, closed) = site.builder, _ways(site)
    narrow = site.narrowed(6)
    if site.access.lanes == 1:
        builder.store(narrow, builder.select(cut, closed, opened))
        return
    site.masked("store", [narrow, opened], builder.not_(cut))
    site.masked("store", [narrow, closed], cut)


def _ways(site: Site) -> tuple[Any, Any, Any]:
    """Return which lanes are cut, and pointers to elements from an open link's start and from a cut one's."""
    lanes = site.access.lanes
    return site.flags(3, 4, 5), site.place(site.values[1], lanes), site.place(site.values[2], lanes)


def _chosen(site: Site) -> Any:
    lanes = site.access.lanes
    zero = ir.Constant(llvm_type(site.access.real, lanes), [0.0] * lanes if lanes > 1 else 0.0)
    return site.builder.select(site.flags(0, 1, 2), site.wide(site.values[3]), zero)
