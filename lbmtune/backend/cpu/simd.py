"""Support module of generated CPU kernels: explicit SIMD vectors, their memory access, the decorators.

`memory(compute, lanes)` gives loads and stores between arrays of a storage type and vectors of `vectors` (plain
scalars for one lane). Arrays of uint16 hold IEEE halves, or the codes of another 16-bit format. Indices are not
checked and do not wrap around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
from llvmlite import binding, ir
from numba import prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from lbmtune.backend.cpu.translate import Translated, called
from lbmtune.backend.cpu.vectors import BYTES, LANE, VECTORS, data_of, llvm_type

__all__ = ["fence", "kernel", "memory", "prange", "prefetch", "row"]

_SMALLEST_REGISTER = 128
"""Return the bits of the vector registers that the compiler uses for a value."""


class Memory(NamedTuple):
    """Access functions for a number of lanes.

    load(array, i), store(array, i, value): elements i, i + 1, ...; stream: a non-temporal store, i a multiple
    of the lanes. load_before(array, i, edge): element `edge`, then i, i + 1, ...; load_after: i + 1, ..., then
    `edge`; the stores likewise. Those serve a vector that is shifted by one cell across the border of a group.
    """

    load: Any
    store: Any
    stream: Any
    load_before: Any
    load_after: Any
    store_before: Any
    store_after: Any


def memory(compute: str, lanes: int, codes: str = "") -> Memory:
    """Return loads to and stores from vectors (scalars for one lane) of the compute type.

    codes: format of arrays of uint16: '' for IEEE halves, 'fp16c' or 'bf16' (see `lbmtune.catalogue.precision`).
    """
    real = getattr(types, compute)
    value = Value(VECTORS[real, lanes] if lanes > 1 else real, codes)
    return Memory(
        load=_load(value, lanes),
        store=_store(value, lanes, streaming=False),
        stream=_store(value, lanes, streaming=True),
        load_before=_load_shifted(value, lanes, -1),
        load_after=_load_shifted(value, lanes, 1),
        store_before=_store_shifted(value, lanes, -1),
        store_after=_store_shifted(value, lanes, 1),
    )


class Value(NamedTuple):
    """The values of an access: their Numba type, and the format of 16-bit codes in memory."""

    type: Any
    codes: str

    @property
    def one(self) -> Value:
        """Return the values of a single lane."""
        return Value(getattr(self.type, "element", self.type), self.codes)


def _load(value: Value, lanes: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def load(typing: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return _read(context, builder, sig.args[0], args[0], args[1], value, lanes)

        return value.type(array, types.int64), generate

    return load


def _store(value: Value, lanes: int, *, streaming: bool) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def store(typing: Any, array: Any, index: Any, stored: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            size = BYTES[sig.args[0].dtype]
            target = _pointer(context, builder, sig.args[0], args[0], args[1], lanes)
            narrow = _narrowed(builder, args[2], sig.args[0].dtype, value.codes, lanes)
            instruction = builder.store(narrow, target, align=size * lanes if streaming else size)
            if streaming:
                hint = builder.module.add_metadata([ir.Constant(LANE, 1)])
                instruction.set_metadata("nontemporal", hint)
            return context.get_dummy_value()

        return types.void(array, types.int64, value.type), generate

    return store


def _load_shifted(value: Value, lanes: int, shift: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def load_shifted(typing: Any, array: Any, index: Any, edge: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            here = _read(context, builder, sig.args[0], args[0], args[1], value, lanes)
            single = _read(context, builder, sig.args[0], args[0], args[2], value.one, 1)
            moved = _rotated(builder, here, lanes, shift)
            return builder.insert_element(moved, single, ir.Constant(LANE, 0 if shift < 0 else lanes - 1))

        return value.type(array, types.int64, types.int64), generate

    return load_shifted


def _store_shifted(value: Value, lanes: int, shift: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def store_shifted(typing: Any, array: Any, index: Any, edge: Any, stored: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            array_type, (data, here, outer, wide) = sig.args[0], args
            element, last = array_type.dtype, lanes - 1
            narrow = _narrowed(builder, wide, element, value.codes, lanes)
            single = builder.extract_element(narrow, ir.Constant(LANE, 0 if shift < 0 else last))
            builder.store(single, _pointer(context, builder, array_type, data, outer, 1), align=BYTES[element])
            target = _pointer(context, builder, array_type, data, here, lanes)
            # the lane beyond the shifted vector belongs to another one, so it must not be written
            kept = [int(lane != (last if shift < 0 else 0)) for lane in range(lanes)]
            _masked_store(builder, _rotated(builder, narrow, lanes, -shift), target, kept, BYTES[element])
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64, value.type), generate

    return store_shifted


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: int) -> Any:
    data = data_of(context, builder, array_type, array)
    return builder.bitcast(builder.gep(data, [index]), llvm_type(array_type.dtype, lanes).as_pointer())


def _read(context: Any, builder: Any, array_type: Any, array: Any, index: Any, value: Value, lanes: int) -> Any:
    source = _pointer(context, builder, array_type, array, index, lanes)
    loaded = builder.load(source, align=BYTES[array_type.dtype])
    wide = llvm_type(value.one.type, lanes)
    if value.codes and array_type.dtype is types.uint16:
        loaded = _DECODERS[value.codes](_Bits(builder, lanes), loaded)
    return loaded if loaded.type == wide else builder.fpext(loaded, wide)


def _narrowed(builder: Any, value: Any, element: Any, codes: str, lanes: int) -> Any:
    narrow = llvm_type(element, lanes)
    if value.type == narrow:
        return value
    if element is types.uint16 and value.type == llvm_type(types.float64, lanes):
        # through single precision: hardware has no conversion from double to half
        value = builder.fptrunc(value, llvm_type(types.float32, lanes))
    if codes and element is types.uint16:
        return _ENCODERS[codes](_Bits(builder, lanes), value)
    return _in_register(builder, builder.fptrunc(value, narrow), lanes)


def _in_register(builder: Any, halves: Any, lanes: int) -> Any:
    """Store halves, on Zen after a separate conversion: the fused instruction takes twice as long there.

    Four halves, beside four doubles, fill no register, and the compiler would abort.
    """
    if lanes * 16 < _SMALLEST_REGISTER or not isinstance(halves.type.element, ir.HalfType) or not _is_zen():
        return halves
    integers = ir.VectorType(ir.IntType(16), lanes)
    kind = ir.FunctionType(integers, [integers])
    kept = builder.asm(kind, "", "=v,0", [builder.bitcast(halves, integers)], side_effect=False)
    return builder.bitcast(kept, halves.type)


def _is_zen() -> bool:
    return bool(binding.get_host_cpu_name().startswith("znver"))


class _Bits:
    """Integer operations on the bits of floats or vectors of floats; codes have the type of halves (see `_llvm`)."""

    def __init__(self, builder: Any, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes

    def of(self, value: Any) -> Any:
        """Return the bits of floats."""
        return self.builder.bitcast(value, self._integers(32))

    def floats(self, bits: Any) -> Any:
        """Return the floats of bits."""
        return self.builder.bitcast(bits, llvm_type(types.float32, self.lanes))

    def codes(self, value: Any) -> Any:
        """Return codes, widened to 32 bits."""
        return self.builder.zext(self.builder.bitcast(value, self._integers(16)), self._integers(32))

    def as_codes(self, bits: Any) -> Any:
        """Return the lower 16 bits as codes."""
        return self.builder.bitcast(self.builder.trunc(bits, self._integers(16)), llvm_type(types.uint16, self.lanes))

    def all(self, number: int) -> Any:
        """Return an integer in every lane."""
        return ir.Constant(self._integers(32), [number] * self.lanes if self.lanes > 1 else number)

    def do(self, name: str, bits: Any, number: int) -> Any:
        """Return an instruction with one integer for every lane."""
        return getattr(self.builder, name)(bits, self.all(number))

    def below(self, bits: Any, number: int) -> Any:
        """Return whether bits are smaller than a limit, unsigned."""
        return self.builder.icmp_unsigned("<", bits, self.all(number))

    def rounded(self, bits: Any, dropped: int) -> Any:
        """Return the bits rounded to fewer, to nearest, ties to even."""
        last = self.do("and_", self.do("lshr", bits, dropped), 1)
        return self.do("lshr", self.builder.add(self.do("add", bits, (1 << dropped - 1) - 1), last), dropped)

    def added(self, bits: Any, number: float) -> Any:
        """Return the bits of the IEEE sum of floats and a number, without fast-math flags."""
        other = ir.Constant(llvm_type(types.float32, self.lanes), [number] * self.lanes if self.lanes > 1 else number)
        return self.of(self.builder.fadd(self.floats(bits), other))

    def _integers(self, width: int) -> Any:
        return ir.VectorType(ir.IntType(width), self.lanes) if self.lanes > 1 else ir.IntType(width)


def _decode_bf16(bits: _Bits, value: Any) -> Any:
    return bits.floats(bits.do("shl", bits.codes(value), 16))


def _encode_bf16(bits: _Bits, value: Any) -> Any:
    every = bits.of(value)
    number = bits.below(bits.do("and_", every, 0x7FFFFFFF), 0x7F800001)
    return bits.as_codes(bits.builder.select(number, bits.rounded(every, 16), bits.all(0x7FFF)))


def _decode_fp16c(bits: _Bits, value: Any) -> Any:
    """Convert as in kernels/cuda: fp16c."""
    build, code = bits.builder, bits.codes(value)
    rest, sign = bits.do("shl", bits.do("and_", code, 0x7FFF), 12), bits.do("shl", bits.do("and_", code, 0x8000), 16)
    raised = bits.added(bits.do("add", rest, 0x38800000), -(2.0**-14))
    magnitude = build.select(bits.below(rest, 0x00800000), raised, bits.do("add", rest, 0x38000000))
    return bits.floats(build.or_(magnitude, sign))


def _encode_fp16c(bits: _Bits, value: Any) -> Any:
    """Convert as in kernels/cuda: fp16c."""
    build, every = bits.builder, bits.of(value)
    rest = bits.do("and_", every, 0x7FFFFFFF)
    normal = bits.rounded(bits.do("sub", rest, 0x38000000), 12)
    bounded = build.select(bits.below(normal, 0x7FFF), normal, bits.all(0x7FFF))
    subnormal = bits.do("sub", bits.added(rest, 0.25), 0x3E800000)
    code = build.select(bits.below(rest, 0x38800000), subnormal, bounded)
    return bits.as_codes(build.or_(code, bits.do("and_", bits.do("lshr", every, 16), 0x8000)))


_DECODERS = {"bf16": _decode_bf16, "fp16c": _decode_fp16c}
_ENCODERS = {"bf16": _encode_bf16, "fp16c": _encode_fp16c}


def _rotated(builder: Any, vector: Any, lanes: int, by: int) -> Any:
    """Return a vector whose lane k is lane k + by, cyclically."""
    order = [(lane + by) % lanes for lane in range(lanes)]
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(LANE, lanes), order))


def _masked_store(builder: Any, vector: Any, target: Any, kept: list[int], align: int) -> None:
    mask = ir.VectorType(ir.IntType(1), len(kept))
    name = f"llvm.masked.store.v{len(kept)}{vector.type.element.intrinsic_name}.p0"
    kind = ir.FunctionType(ir.VoidType(), [vector.type, target.type, LANE, mask])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(function, [vector, target, ir.Constant(LANE, align), ir.Constant(mask, kept)])


@intrinsic  # type: ignore[untyped-decorator]
def fence(typing: Any) -> Any:
    """Make non-temporal stores visible to other threads."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse.sfence"), [])
        return context.get_dummy_value()

    return types.void(), generate


_FOR_READING, _INTO_ALL_LEVELS, _DATA = 0, 3, 1
"""Arguments of LLVM's prefetch: access, locality, cache."""


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of an element; the index may lie outside the array, because a prefetch never faults."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = builder.gep(data_of(context, builder, sig.args[0], args[0]), [args[1]])
        kind = ir.FunctionType(ir.VoidType(), [place.type, LANE, LANE, LANE])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, *(ir.Constant(LANE, n) for n in (_FOR_READING, _INTO_ALL_LEVELS, _DATA))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def row(function: Callable[..., None]) -> Any:
    """Mark a function that is compiled with the kernels that call it."""
    return Translated(function)


def kernel(declared: str, *, parallel: bool) -> Callable[[Callable[..., None]], Any]:
    """Compile an entry of a signature at once, or load it from Numba's cache beside the generated file."""

    def compiled(function: Callable[..., None]) -> Any:
        if parallel:
            # Numba creates its threads and the functions by which compiled code reaches them
            numba.get_num_threads()
        entry = numba.njit(declared, cache=True, nogil=True)(called(Translated(function, parallel=parallel)))
        entry.declared = declared
        return entry

    return compiled
