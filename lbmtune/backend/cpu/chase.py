"""Support module of generated CPU kernels of the sparse family with pointer chasing: nodes are values of the kernel.

A list has a row of one word per node for one step forward along each axis; a neighbour at a corner is the next of a
neighbour (Geier, Schoenherr 2017).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from lbmtune.backend.cpu.lists import _BIT, _WIDE, _WORD, _Access, _at, _constant, _of, _read, _Site, _write
from lbmtune.backend.cpu.vectors import data_of, splat

_WORD_BYTES = 4


class NodeVector(types.Type):  # type: ignore[misc]
    """The Numba type of the numbers of several nodes; the type of one is uint32."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"NodeVector({lanes})")


@register_model(NodeVector)
class _NodeVectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: NodeVector) -> None:
        super().__init__(manager, kind, _of(_WORD, kind.lanes))


class Chase(NamedTuple):
    """Access functions. `row` is the start of a row of the list.

    led_by(links, at): the nodes that the words from `at` on lead to; led_on(links, row, nodes): those that lead on
    from there. gather_at(array, slot, nodes), scatter_at(array, slot, nodes, value): elements of nodes in a slot that
    starts at an element. gather_at_cut(array, slot, cut, nodes, links, flags, bit), scatter_at_cut likewise: of the
    slot that starts at `cut` if the bit of the words from `flags` on is set.
    """

    led_by: Any
    led_on: Any
    gather_at: Any
    gather_at_cut: Any
    scatter_at: Any
    scatter_at_cut: Any


def nodes(compute: str, lanes: int, width: int, group: int, form: str, codes: str = "") -> Chase:
    """Return the access functions, for the arguments of `lists.nodes`."""
    access = _Access(getattr(types, compute), lanes, width, group, form == "vector" and lanes > 1, codes)
    found = NodeVector(lanes) if lanes > 1 else types.uint32
    return Chase(
        _led_by(access, found),
        _led_on(access, found),
        _gather_at(access, cut=False),
        _gather_at(access, cut=True),
        _scatter_at(access, cut=False),
        _scatter_at(access, cut=True),
    )


class _Led(_Site):
    """A call whose nodes are an argument itself."""

    def words(self, links: int, start: int) -> Any:
        return self.values[links]


def _led_by(access: _Access, found: Any) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def led_by(typing: Any, links: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return _Site(context, builder, sig.args, args, access).words(0, 1)

        return found(links, types.int64), generate

    return led_by


def _led_on(access: _Access, found: Any) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def led_on(typing: Any, links: Any, row: Any, nodes: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site = _Site(context, builder, sig.args, args, access)
            at = builder.zext(args[2], _of(_WIDE, access.lanes))
            at = builder.add(at, splat(builder, args[1], access.lanes) if access.lanes > 1 else args[1])
            return _words_at(site, at)

        return found(links, types.int64, nodes), generate

    return led_on


def _words_at(site: _Site, at: Any) -> Any:
    """Return the words at some indices of the first argument."""
    builder, lanes = site.builder, site.access.lanes
    data = data_of(site.context, builder, site.kinds[0], site.values[0])
    if site.access.vector:
        return _gathered_words(builder, data, at, lanes)
    each = [builder.extract_element(at, _at(k)) for k in range(lanes)] if lanes > 1 else [at]
    words = [builder.load(builder.gep(data, [one]), align=_WORD_BYTES) for one in each]
    if lanes == 1:
        return words[0]
    found = ir.Constant(_of(_WORD, lanes), ir.Undefined)
    for lane, word in enumerate(words):
        found = builder.insert_element(found, word, _at(lane))
    return found


def _gathered_words(builder: Any, data: Any, at: Any, lanes: int) -> Any:
    """Return the words at some indices of the first argument, by one gather instruction."""
    offsets = builder.mul(at, _constant(_WIDE, _WORD_BYTES, lanes))
    start = splat(builder, builder.ptrtoint(data, _WIDE), lanes)
    places = builder.inttoptr(builder.add(start, offsets), ir.VectorType(_WORD.as_pointer(), lanes))
    words = _of(_WORD, lanes)
    given = [places, ir.Constant(_WORD, _WORD_BYTES), _constant(_BIT, 1, lanes), ir.Constant(words, ir.Undefined)]
    kind = ir.FunctionType(words, [value.type for value in given])
    name = f"llvm.masked.gather.v{lanes}i32.v{lanes}p0"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)


def _gather_at(access: _Access, *, cut: bool) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def gather_at(typing: Any, array: Any, slot: Any, nodes: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site = _Led(context, builder, sig.args, args, access)
            return _read(site, builder.add(site.elements(2, 2), site.starts(1, 1, None)))

        return access.value(array, types.int64, nodes), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def gather_at_cut(
        typing: Any, array: Any, slot: Any, other: Any, nodes: Any, links: Any, flags: Any, bit: Any
    ) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site, flagged = (kind(context, builder, sig.args, args, access) for kind in (_Led, _Site))
            return _read(site, builder.add(site.elements(3, 3), site.starts(1, 2, flagged.flags(4, 5, 6))))

        integer = types.int64
        return access.value(array, integer, integer, nodes, links, integer, integer), generate

    return gather_at_cut if cut else gather_at


def _scatter_at(access: _Access, *, cut: bool) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def scatter_at(typing: Any, array: Any, slot: Any, nodes: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site = _Led(context, builder, sig.args, args, access)
            _write(site, builder.add(site.elements(2, 2), site.starts(1, 1, None)), args[3])
            return context.get_dummy_value()

        return types.void(array, types.int64, nodes, access.value), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def scatter_at_cut(
        typing: Any, array: Any, slot: Any, other: Any, nodes: Any, links: Any, flags: Any, bit: Any, value: Any
    ) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site, flagged = (kind(context, builder, sig.args, args, access) for kind in (_Led, _Site))
            _write(site, builder.add(site.elements(3, 3), site.starts(1, 2, flagged.flags(4, 5, 6))), args[7])
            return context.get_dummy_value()

        integer = types.int64
        return types.void(array, integer, integer, nodes, links, integer, integer, access.value), generate

    return scatter_at_cut if cut else scatter_at
