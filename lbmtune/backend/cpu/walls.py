"""Support module of generated CPU kernels of moments with solid cells: bounce-back of a vector of cells.

A cell's word has a bit for each of its cut links, and bit 0 if it is solid
(`lbmtune.catalogue.boundaries.cell_flags`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from lbmtune.backend.cpu.vectors import BYTES, VECTORS, data_of, llvm_type, splat

_WORD, _BIT, _WORD_BYTES = ir.IntType(32), ir.IntType(1), 4


class Cells(NamedTuple):
    """Functions for a number of lanes.

    some_cut(words, at): whether any of the words at, at + 1, ... is not zero. back(array, at, own, words, first, bit):
    elements at, at + 1, ...; those from `own` on if the bit is set in the word, from `first` on, of a fluid cell.
    """

    some_cut: Any
    back: Any


def cells(compute: str, lanes: int) -> Cells:
    """Return the functions for vectors (scalars for one lane) of the compute type, which is that of the array."""
    return Cells(_some_cut(lanes), _back(getattr(types, compute), lanes))


def _some_cut(lanes: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def some_cut(typing: Any, words: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            found = _words(context, builder, sig.args[0], args[0], args[1], lanes)
            together = ir.IntType(8 * _WORD_BYTES * lanes)
            return builder.icmp_unsigned("!=", builder.bitcast(found, together), ir.Constant(together, 0))

        return types.boolean(words, types.int64), generate

    return some_cut


def _back(real: Any, lanes: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def back(typing: Any, array: Any, at: Any, own: Any, words: Any, first: Any, bit: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            found = _words(context, builder, sig.args[3], args[3], args[4], lanes)
            number = builder.trunc(args[5], _WORD)
            shift = _splat(builder, number, lanes)
            cut = builder.and_(builder.lshr(found, shift), builder.not_(found))
            straight, returned = (_load(context, builder, sig.args[0], args[0], place, lanes) for place in args[1:3])
            return builder.select(builder.trunc(cut, _of(_BIT, lanes)), returned, straight)

        value = VECTORS[real, lanes] if lanes > 1 else real
        return value(array, types.int64, types.int64, words, types.int64, types.int64), generate

    return back


def _words(context: Any, builder: Any, kind: Any, words: Any, at: Any, lanes: int) -> Any:
    place = builder.gep(data_of(context, builder, kind, words), [at])
    return builder.load(builder.bitcast(place, _of(_WORD, lanes).as_pointer()), align=_WORD_BYTES)


def _load(context: Any, builder: Any, kind: Any, array: Any, at: Any, lanes: int) -> Any:
    place = builder.gep(data_of(context, builder, kind, array), [at])
    return builder.load(builder.bitcast(place, llvm_type(kind.dtype, lanes).as_pointer()), align=BYTES[kind.dtype])


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    return splat(builder, value, lanes) if lanes > 1 else value


def _of(kind: Any, lanes: int) -> Any:
    return ir.VectorType(kind, lanes) if lanes > 1 else kind
