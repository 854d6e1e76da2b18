"""Support module of generated CPU kernels of the sparse family: access to the nodes of an index list, lane by lane.

A word of the list holds the number of a node and, above it, flags; a word of a mask holds flags only
(`lbmtune.catalogue.sparse.index_list`). Node n lies at element (n // width) * group + n % width after the start of its
slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lbmtune.backend.cpu.simd import _DECODERS, _Bits, _narrowed, _pointer
from lbmtune.backend.cpu.vectors import BYTES, VECTORS, data_of, llvm_type, splat

_NODE_MASK = (1 << 30) - 1
_WORD, _WIDE, _BIT = ir.IntType(32), ir.IntType(64), ir.IntType(1)


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
    """Access for vectors (scalars for one lane) of the compute type.

    form: 'vector' for gather and scatter instructions if the CPU has them, 'lanes' for one access per lane;
    codes: format of 16-bit codes in memory, '' for IEEE halves.
    """
    access = _Access(getattr(types, compute), lanes, width, group, form == "vector" and lanes > 1, codes)
    return Nodes(
        _gather(access, cut=False),
        _gather(access, cut=True),
        _scatter(access, cut=False),
        _scatter(access, cut=True),
        _load_cut(access),
        _store_cut(access),
        _chosen(access),
    )


class _Access(NamedTuple):
    real: Any
    lanes: int
    width: int
    group: int
    vector: bool
    codes: str

    @property
    def value(self) -> Any:
        """The Numba type of the moved values."""
        return VECTORS[self.real, self.lanes] if self.lanes > 1 else self.real


class _Site(NamedTuple):
    """Context, builder, and types and values of the arguments of a call that is generated."""

    context: Any
    builder: Any
    kinds: Any
    values: Any
    access: _Access

    def words(self, links: int, start: int) -> Any:
        """Return the words of the lanes, from argument `links` at argument `start`."""
        place = self._place(links, self.values[start], _of(_WORD, self.access.lanes))
        return self.builder.load(place, align=4)

    def _place(self, array: int, index: Any, kind: Any) -> Any:
        data = data_of(self.context, self.builder, self.kinds[array], self.values[array])
        return self.builder.bitcast(self.builder.gep(data, [index]), kind.as_pointer())

    def flags(self, links: int, start: int, bit: int) -> Any:
        """Return whether a bit of each word is set; the bit is a constant argument."""
        builder, words = self.builder, self.words(links, start)
        shifted = builder.lshr(words, self._wide(builder.trunc(self.values[bit], _WORD)))
        return builder.trunc(shifted, _of(_BIT, self.access.lanes))

    def _wide(self, value: Any) -> Any:
        lanes = self.access.lanes
        return splat(self.builder, value, lanes) if lanes > 1 else value

    def elements(self, links: int, start: int) -> Any:
        """Return the offsets of the nodes from the start of their slot, in 64 bits."""
        builder, access = self.builder, self.access
        node = builder.and_(self.words(links, start), _constant(_WORD, _NODE_MASK, access.lanes))
        node = builder.zext(node, _of(_WIDE, access.lanes))
        if access.width == 1:
            return builder.mul(node, _constant(_WIDE, access.group, access.lanes)) if access.group > 1 else node
        width = _constant(_WIDE, access.width, access.lanes)
        groups = builder.mul(builder.udiv(node, width), _constant(_WIDE, access.group, access.lanes))
        return builder.add(groups, builder.urem(node, width))

    def starts(self, slot: int, cut: int, flags: Any) -> Any:
        """Return the start of the slot of each lane."""
        opened = self._wide(self.values[slot])
        return opened if flags is None else self.builder.select(flags, self._wide(self.values[cut]), opened)

    def places(self, elements: Any) -> list[Any]:
        """Return pointers to elements of the first argument, in the storage type."""
        builder, lanes = self.builder, self.access.lanes
        each = [builder.extract_element(elements, _at(k)) for k in range(lanes)] if lanes > 1 else [elements]
        return [_pointer(self.context, builder, self.kinds[0], self.values[0], index, 1) for index in each]

    def addresses(self, elements: Any) -> Any:
        """Return pointers to elements of the first argument, as a vector."""
        builder, lanes, element = self.builder, self.access.lanes, self.kinds[0].dtype
        data = data_of(self.context, builder, self.kinds[0], self.values[0])
        start = self._wide(builder.ptrtoint(data, _WIDE))
        offsets = builder.mul(elements, _constant(_WIDE, BYTES[element], lanes))
        kind = ir.VectorType(llvm_type(element, 1).as_pointer(), lanes)
        return builder.inttoptr(builder.add(start, offsets), kind)


def _of(kind: Any, lanes: int) -> Any:
    return ir.VectorType(kind, lanes) if lanes > 1 else kind


def _constant(kind: Any, value: int, lanes: int) -> Any:
    return ir.Constant(ir.VectorType(kind, lanes), [value] * lanes) if lanes > 1 else ir.Constant(kind, value)


def _at(lane: int) -> Any:
    return ir.Constant(_WORD, lane)


def _read(site: _Site, elements: Any) -> Any:
    """Return the elements as a vector of the compute type."""
    builder, access, element = site.builder, site.access, site.kinds[0].dtype
    if access.vector:
        found = _call(site, "gather", element, [site.addresses(elements)])
    else:
        each = [builder.load(place, align=BYTES[element]) for place in site.places(elements)]
        found = each[0] if access.lanes == 1 else ir.Constant(llvm_type(element, access.lanes), ir.Undefined)
        for lane, one in enumerate(each if access.lanes > 1 else ()):
            found = builder.insert_element(found, one, _at(lane))
    return _widened(site, found)


def _widened(site: _Site, found: Any) -> Any:
    if site.access.codes and site.kinds[0].dtype is types.uint16:
        found = _DECODERS[site.access.codes](_Bits(site.builder, site.access.lanes), found)
    wide = llvm_type(site.access.real, site.access.lanes)
    return found if found.type == wide else site.builder.fpext(found, wide)


def _write(site: _Site, elements: Any, value: Any) -> None:
    builder, access, element = site.builder, site.access, site.kinds[0].dtype
    narrow = _narrowed(builder, value, element, access.codes, access.lanes)
    if access.vector:
        _call(site, "scatter", element, [narrow, site.addresses(elements)])
        return
    for lane, place in enumerate(site.places(elements)):
        one = builder.extract_element(narrow, _at(lane)) if access.lanes > 1 else narrow
        builder.store(one, place, align=BYTES[element])


def _call(site: _Site, verb: str, element: Any, arguments: list[Any], mask: Any = None, rest: Any = None) -> Any:
    """Call llvm.masked.gather, scatter, load or store. mask: None: all lanes; rest: values of lanes left out."""
    lanes = site.access.lanes
    vector = llvm_type(element, lanes)
    loads = verb in ("gather", "load")
    mask = _constant(_BIT, 1, lanes) if mask is None else mask
    given = [*arguments, ir.Constant(_WORD, BYTES[element]), mask]
    if loads:
        given.append(ir.Constant(vector, ir.Undefined) if rest is None else rest)
    pointers = f"v{lanes}p0" if verb in ("gather", "scatter") else "p0"
    kind = ir.FunctionType(vector if loads else ir.VoidType(), [value.type for value in given])
    name = f"llvm.masked.{verb}.v{lanes}{vector.element.intrinsic_name}.{pointers}"
    return site.builder.call(cgutils.get_or_insert_function(site.builder.module, kind, name), given)


def _gather(access: _Access, *, cut: bool) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def gather(typing: Any, array: Any, slot: Any, links: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site = _Site(context, builder, sig.args, args, access)
            return _read(site, builder.add(site.elements(2, 3), site.starts(1, 1, None)))

        return access.value(array, types.int64, links, types.int64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def gather_cut(typing: Any, array: Any, slot: Any, other: Any, links: Any, at: Any, flags: Any, bit: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site = _Site(context, builder, sig.args, args, access)
            return _read(site, builder.add(site.elements(3, 4), site.starts(1, 2, site.flags(3, 5, 6))))

        integer = types.int64
        return access.value(array, integer, integer, links, integer, integer, integer), generate

    return gather_cut if cut else gather


def _scatter(access: _Access, *, cut: bool) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def scatter(typing: Any, array: Any, slot: Any, links: Any, at: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site = _Site(context, builder, sig.args, args, access)
            _write(site, builder.add(site.elements(2, 3), site.starts(1, 1, None)), args[4])
            return context.get_dummy_value()

        return types.void(array, types.int64, links, types.int64, access.value), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def scatter_cut(
        typing: Any, array: Any, slot: Any, other: Any, links: Any, at: Any, flags: Any, bit: Any, value: Any
    ) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site = _Site(context, builder, sig.args, args, access)
            _write(site, builder.add(site.elements(3, 4), site.starts(1, 2, site.flags(3, 5, 6))), args[7])
            return context.get_dummy_value()

        integer = types.int64
        return types.void(array, integer, integer, links, integer, integer, integer, access.value), generate

    return scatter_cut if cut else scatter


def _load_cut(access: _Access) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def load_cut(typing: Any, array: Any, at: Any, other: Any, links: Any, flags: Any, bit: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site = _Site(context, builder, sig.args, args, access)
            cut, (opened, closed) = site.flags(3, 4, 5), _both(site, 1, 2)
            if access.lanes == 1:
                return _widened(site, builder.load(builder.select(cut, closed, opened)))
            element = sig.args[0].dtype
            found = builder.load(opened, align=BYTES[element])
            return _widened(site, _call(site, "load", element, [closed], cut, found))

        integer = types.int64
        return access.value(array, integer, integer, links, integer, integer), generate

    return load_cut


def _store_cut(access: _Access) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def store_cut(typing: Any, array: Any, at: Any, other: Any, links: Any, flags: Any, bit: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site, element = _Site(context, builder, sig.args, args, access), sig.args[0].dtype
            cut, (opened, closed) = site.flags(3, 4, 5), _both(site, 1, 2)
            narrow = _narrowed(builder, args[6], element, access.codes, access.lanes)
            if access.lanes == 1:
                builder.store(narrow, builder.select(cut, closed, opened))
                return context.get_dummy_value()
            _call(site, "store", element, [narrow, opened], builder.not_(cut))
            _call(site, "store", element, [narrow, closed], cut)
            return context.get_dummy_value()

        integer = types.int64
        return types.void(array, integer, integer, links, integer, integer, access.value), generate

    return store_cut


def _both(site: _Site, first: int, second: int) -> tuple[Any, Any]:
    """Return pointers to the lanes' elements, each from one of two starts."""
    context, builder, kinds, values, access = site
    return (
        _pointer(context, builder, kinds[0], values[0], values[first], access.lanes),
        _pointer(context, builder, kinds[0], values[0], values[second], access.lanes),
    )


def _chosen(access: _Access) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def chosen(typing: Any, links: Any, flags: Any, bit: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site, lanes = _Site(context, builder, sig.args, args, access), access.lanes
            wide = llvm_type(access.real, lanes)
            zero = ir.Constant(wide, [0.0] * lanes if lanes > 1 else 0.0)
            return builder.select(site.flags(0, 1, 2), splat(builder, args[3], lanes) if lanes > 1 else args[3], zero)

        return access.value(links, types.int64, types.int64, access.real), generate

    return chosen
