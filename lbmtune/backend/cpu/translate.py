"""A translator of functions of generated CPU kernels to LLVM code, several times as fast as Numba's own compiler.

Numba infers types by trying every known overload of every operator until nothing changes, and compiles the body of a
parallel loop four times. Generated text needs none of that: its names are 64-bit integers, truth values, numbers of
the compute type, vectors of them and arrays, and each has its type when it is first assigned. Other forms raise an
error. Numba's intrinsics do the rest (`simd`, `lists`, `lanes`), and its threads run parallel loops.

Names become SSA values: at joins of branches and at loop heads each assigned name gets a phi. Integers wrap, // and %
round down, ranges go up, indices are not checked, both sides of `and` and `or` are evaluated.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial, reduce
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import UnsupportedError
from numba.extending import intrinsic

from lbmtune.backend.cpu.vectors import FLAGS, Vector, arithmetic, data_of, llvm_type, splat

_INT, _BIT, _BYTE = ir.IntType(64), ir.IntType(1), ir.IntType(8).as_pointer()
_REALS = (types.float32, types.float64)
_OPERATORS = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
    ast.Div: ("", "fdiv"),
    ast.BitAnd: ("and_", ""),
    ast.BitOr: ("or_", ""),
    ast.RShift: ("ashr", ""),
}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_MAY_FAULT = (ast.Call, ast.Subscript, ast.FloorDiv, ast.Mod)
"""Operations that must not be evaluated unless they are selected."""


class Value(NamedTuple):
    """A Numba type and an LLVM value."""

    type: Any
    llvm: Any


class Translated:
    """A function of generated text, translated into the module of its caller.

    parallel: whether prange spreads its iterations over Numba's threads.
    """

    def __init__(self, function: Callable[..., None], *, parallel: bool = False) -> None:
        assert isinstance(function, FunctionType)
        self.function, self.parallel = function, parallel

    def into(self, site: Site, given: Sequence[Value]) -> Any:
        """Return the LLVM function for arguments of some types, and the arguments of its call."""
        kinds = [value.type for value in given]
        name = f"{self.function.__name__}({', '.join(map(str, kinds))})"
        passed = [site.passed(value) for value in given]
        found = site.module.globals.get(name)
        return found or self._translated(site, name, kinds, passed), passed

    def _translated(self, site: Site, name: str, kinds: Sequence[Any], passed: Sequence[Any]) -> Any:
        made = ir.Function(site.module, ir.FunctionType(ir.VoidType(), [value.type for value in passed]), name)
        made.linkage = "internal"
        # inlining would keep what a row computes before its loop in registers from one row to the next
        made.attributes.add("noinline")
        definition = _definition(self.function)
        builder = ir.IRBuilder(made.append_basic_block("entry"))
        inside = site._replace(builder=builder)
        names = (argument.arg for argument in definition.args.args)
        given = (inside.received(kind, value) for kind, value in zip(kinds, made.args, strict=True))
        body = _Body(inside, self, dict(zip(names, given, strict=True)))
        body.block(definition.body)
        builder.ret_void()
        return made


def called(translated: Translated) -> Callable[..., None]:
    """Return a Python function of the same name and arguments that only calls this one, for Numba to compile."""
    function = translated.function
    arguments = ", ".join(inspect.signature(function).parameters)
    text = f"def {function.__name__}({arguments}):\n    translated({arguments})\n"
    names: dict[str, Any] = {"translated": _callable(translated), "__name__": function.__module__}
    exec(compile(text, function.__code__.co_filename, "exec"), names)
    found: Callable[..., None] = names[function.__name__]
    return found


def _callable(translated: Translated) -> Any:

    def declared(typing: Any, *kinds: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            site = Site(context, typing, builder)
            values = [Value(kind, value) for kind, value in zip(sig.args, args, strict=True)]
            builder.call(*translated.into(site, values))
            return context.get_dummy_value()

        return types.void(*kinds), generate

    parameters = inspect.signature(translated.function).parameters.values()
    first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    declared.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    return intrinsic(declared)


class Site(NamedTuple):
    """The target of generated code: Numba's contexts of the target and of types, LLVM's builder."""

    context: Any
    typing: Any
    builder: Any

    @property
    def module(self) -> Any:
        """Return the module of the builder."""
        return self.builder.module

    def passed(self, value: Value) -> Any:
        """Return the argument that stands for a value in a call: for an array, the pointer to its first element."""
        if isinstance(value.type, types.Array):
            return data_of(self.context, self.builder, value.type, value.llvm)
        return value.llvm

    def received(self, kind: Any, passed: Any) -> Value:
        """Return the value of an argument; of an array only its elements are known."""
        return self.array(kind, passed) if isinstance(kind, types.Array) else Value(kind, passed)

    def array(self, kind: Any, data: Any) -> Value:
        """Return an array of which only the first element is known."""
        model = self.context.data_model_manager[kind]
        blank = ir.Constant(model.get_value_type(), ir.Undefined)
        return Value(kind, self.builder.insert_value(blank, data, model.get_field_position("data")))


@lru_cache(maxsize=4)
def _definitions(text: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def _definition(function: FunctionType) -> ast.FunctionDef:
    return _definitions(Path(function.__code__.co_filename).read_text(encoding="utf-8"))[function.__name__]


class _Body:
    """A translator of statements. names: values of the local names at this point."""

    def __init__(self, site: Site, owner: Translated, names: dict[str, Value]) -> None:
        self.site, self.builder, self.owner, self.names = site, site.builder, owner, names
        self.allocated: list[Any] = []

    # statements

    def block(self, statements: Iterable[ast.stmt]) -> None:
        """Translate statements in order."""
        forms = {
            ast.Assign: self._assign,
            ast.AugAssign: self._augment,
            ast.Expr: self._expression,
            ast.If: self._if,
            ast.For: self._for,
        }
        for statement in statements:
            self._form(forms, statement)(statement)

    def _turn(self, statements: Sequence[ast.stmt]) -> None:
        """Translate the body of a loop; `if ...: continue` skips what follows."""
        for n, one in enumerate(statements):
            if isinstance(one, ast.If) and not one.orelse and [type(each) for each in one.body] == [ast.Continue]:
                self._branches(self._truth(one.test), lambda: None, partial(self._turn, statements[n + 1 :]))
                return
            self.block([one])

    def _form(self, forms: Any, node: ast.AST) -> Any:
        return forms.get(type(node)) or self._refuse(node)

    def _refuse(self, node: ast.AST, reason: str = "is not translated") -> NoReturn:
        raise UnsupportedError(f"{self.owner.function.__name__}: {ast.unparse(node)!r} {reason}")

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1:
            self._refuse(node)
        self._name(node.targets[0], self.value(node.value), node)

    def _name(self, target: ast.expr, value: Any, node: ast.AST) -> None:
        if isinstance(target, ast.Tuple):
            for one, part in zip(target.elts, value, strict=True):
                self._name(one, part, node)
        elif isinstance(target, ast.Name) and isinstance(value, Value):
            self.names[target.id] = value
        else:
            self._refuse(node)

    def _augment(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self._refuse(node)
        self._name(node.target, self._operation(node, node.op, self.value(node.target), self.value(node.value)), node)

    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._call(node.value)

    def _if(self, node: ast.If) -> None:
        self._branches(self._truth(node.test), lambda: self.block(node.body), lambda: self.block(node.orelse))

    def _branches(self, test: Any, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any, Any, Any]:
        """Join two branches: their values and last blocks; names that both define remain."""
        function, before = self.builder.function, self.names
        ways = [function.append_basic_block() for _ in range(2)]
        end = function.append_basic_block()
        self.builder.cbranch(test, *ways)
        found, names, last = [], [], []
        for way, make in zip(ways, (first, second), strict=True):
            self.builder.position_at_end(way)
            self.names = dict(before)
            found.append(make())
            names.append(self.names)
            last.append(self.builder.block)
            self.builder.branch(end)
        self.builder.position_at_end(end)
        both = [name for name in names[0] if name in names[1]]
        self.names = {name: self._met(names[0][name], names[1][name], *last) for name in both}
        return found[0], found[1], last[0], last[1]

    def _met(self, one: Value, other: Value, from_one: Any, from_other: Any) -> Value:
        if one.llvm is other.llvm:
            return one
        assert one.type == other.type, (one, other)
        phi = self.builder.phi(one.llvm.type)
        phi.add_incoming(one.llvm, from_one)
        phi.add_incoming(other.llvm, from_other)
        return Value(one.type, phi)

    def _for(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name) or not isinstance(node.iter, ast.Call):
            self._refuse(node.iter)
        called, bounds = self._global(node.iter.func), [self._integer(one) for one in node.iter.args]
        if called is numba.prange and self.owner.parallel:
            self._spread(node, bounds[0])
        elif called in (range, numba.prange):
            start, stop, step = (_whole(0), *bounds, _whole(1)) if len(bounds) == 1 else (*bounds, _whole(1))[:3]
            if isinstance(step, ir.Constant) and step.constant < 1:
                self._refuse(node.iter, "goes backwards")
            self._loop(node, start, stop, step)
        else:
            self._refuse(node.iter)

    def _loop(self, node: ast.For, start: Any, stop: Any, step: Any) -> None:
        function, before, entry = self.builder.function, self.names, self.builder.block
        head, body, end = (function.append_basic_block() for _ in range(3))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        at = self.builder.phi(_INT)
        carried = {
            name: Value(before[name].type, self.builder.phi(before[name].llvm.type))
            for name in _assigned(node.body)
            if name in before
        }
        self.builder.cbranch(self.builder.icmp_signed("<", at, stop), body, end)
        self.builder.position_at_end(body)
        assert isinstance(node.target, ast.Name)
        self.names = {**before, **carried, node.target.id: Value(types.int64, at)}
        with self._freeing():
            self._turn(node.body)
        after, last = self.builder.add(at, step, flags=("nsw",)), self.builder.block
        self.builder.branch(head)
        for phi, first, next_ in (
            (at, start, after),
            *((value.llvm, before[name].llvm, self.names[name].llvm) for name, value in carried.items()),
        ):
            phi.add_incoming(first, entry)
            phi.add_incoming(next_, last)
        self.builder.position_at_end(end)
        self.names = {**before, **carried}
        self.names.pop(node.target.id, None)

    @contextmanager
    def _freeing(self) -> Iterator[None]:
        """Release at the end what was allocated on the stack in between."""
        outer, self.allocated = self.allocated, []
        yield
        for memory in self.allocated:
            self._external("free", ir.VoidType(), [memory])
        self.allocated = outer

    # parallel loops

    def _spread(self, node: ast.For, count: Any) -> None:
        """Translate a loop into one equal share of iterations per thread, in order within a share."""
        used = sorted(_used(node.body) & self.names.keys())
        passed = [count, threads := self._external("get_num_threads", _INT, [])]
        passed += [self.site.passed(self.names[name]) for name in used]
        kept = ir.LiteralStructType([value.type for value in passed])
        memory = cgutils.alloca_once(self.builder, kept)
        for n, value in enumerate(passed):
            self.builder.store(value, cgutils.gep_inbounds(self.builder, memory, 0, n))
        worker = self._worker(node, memory.type, {name: self.names[name].type for name in used})
        # a pointer that starts at zero and advances by one is the number of the share
        share, shares, moves = (cgutils.alloca_once(self.builder, kind) for kind in (_BYTE, _INT, _INT))
        self.builder.store(ir.Constant(_BYTE, None), share)
        self.builder.store(threads, shares)
        self.builder.store(_whole(1), moves)
        pointers = (self.builder.bitcast(one, _BYTE) for one in (worker, share, shares, moves, memory))
        self._external("numba_parallel_for", ir.VoidType(), [*pointers, _whole(0), _whole(1), threads])

    def _worker(self, node: ast.For, kept: Any, known: dict[str, Any]) -> Any:
        """Return the function that a thread runs (numba/np/ufunc/workqueue.c): first share, number of shares, names."""
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT.as_pointer(), _INT.as_pointer(), _BYTE])
        number = len(self.site.module.functions)
        made = ir.Function(self.site.module, kind, f"{self.builder.function.name}.{number}")
        made.linkage = "internal"
        share, shares, _, memory = made.args
        builder = ir.IRBuilder(made.append_basic_block("entry"))
        site = self.site._replace(builder=builder)
        memory = builder.bitcast(memory, kept)
        passed = [builder.load(cgutils.gep_inbounds(builder, memory, 0, n)) for n in range(2 + len(known))]
        named = zip(known.items(), passed[2:], strict=True)
        names = {name: site.received(kind, value) for (name, kind), value in named}
        inside = _Body(site, self.owner, names)
        first = builder.ptrtoint(builder.load(share), _INT)
        last = builder.add(first, builder.load(shares))
        start, stop = (builder.sdiv(builder.mul(one, passed[0]), passed[1]) for one in (first, last))
        inside._loop(node, start, stop, _whole(1))
        builder.ret_void()
        return made

    # expressions

    def value(self, node: ast.expr) -> Any:
        """Translate an expression to a value or a tuple of values."""
        forms = {
            ast.Constant: self._constant,
            ast.Name: self._named,
            ast.Attribute: self._constant_of,
            ast.BinOp: lambda n: self._operation(n, n.op, self.value(n.left), self.value(n.right)),
            ast.UnaryOp: self._unary,
            ast.Compare: self._compare,
            ast.BoolOp: self._logical,
            ast.IfExp: self._chosen,
            ast.Call: self._call,
            ast.Subscript: self._element,
            ast.Tuple: lambda n: tuple(map(self.value, n.elts)),
        }
        return self._form(forms, node)(node)

    def _integer(self, node: ast.expr) -> Any:
        found = self.value(node)
        return found.llvm if found.type is types.int64 else self._refuse(node, "is no integer")

    def _truth(self, node: ast.expr) -> Any:
        found = self.value(node)
        if found.type is types.int64:
            return self.builder.icmp_signed("!=", found.llvm, _whole(0))
        return found.llvm if found.type is types.boolean else self._refuse(node, "is neither true nor false")

    def _constant(self, node: ast.Constant) -> Value:
        return self._fixed(node, node.value)

    def _named(self, node: ast.Name) -> Value:
        return self.names.get(node.id) or self._constant_of(node)

    def _constant_of(self, node: ast.expr) -> Value:
        return self._fixed(node, self._global(node))

    def _fixed(self, node: ast.expr, value: Any) -> Value:
        """Return the value of a number of Python or NumPy."""
        if type(value) is int:
            return Value(types.int64, _whole(value))
        if not isinstance(value, np.floating):
            self._refuse(node, "is no number of a known type")
        real = getattr(types, value.dtype.name)
        return Value(real, ir.Constant(llvm_type(real, 1), float(value)))

    def _global(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            return getattr(self._global(node.value), node.attr)
        if not isinstance(node, ast.Name):
            self._refuse(node)
        names = self.owner.function.__globals__
        found = names.get(node.id, vars(builtins).get(node.id))
        return self._refuse(node, "stands for nothing") if found is None else found

    def _operation(self, node: ast.AST, operator: ast.operator, left: Value, right: Value) -> Value:
        if left.type == right.type == types.int64 and isinstance(operator, (ast.FloorDiv, ast.Mod)):
            whole = isinstance(operator, ast.FloorDiv)
            return Value(types.int64, self._rounded_down(left.llvm, right.llvm, whole=whole))
        instruction, of_reals = _OPERATORS.get(type(operator), ("", ""))
        if left.type == right.type and left.type in (types.int64, types.boolean) and instruction:
            return Value(left.type, getattr(self.builder, instruction)(left.llvm, right.llvm))
        kind = left.type if isinstance(left.type, Vector) else right.type
        both = [self._as(kind, value) for value in (left, right)]
        if not of_reals or None in both:
            self._refuse(node)
        return Value(kind, arithmetic(self.builder, of_reals, *both))

    def _as(self, kind: Any, value: Value) -> Any:
        """Return a value in a type: a number as a vector if needed; None if it has another type."""
        if isinstance(kind, Vector) and value.type == kind.element:
            return splat(self.builder, value.llvm, kind.lanes)
        return value.llvm if value.type == kind and (isinstance(kind, Vector) or kind in _REALS) else None

    def _rounded_down(self, a: Any, b: Any, *, whole: bool) -> Any:
        builder, zero = self.builder, _whole(0)
        if isinstance(b, ir.Constant) and b.constant > 0 and not b.constant & (b.constant - 1):
            bits = b.constant.bit_length() - 1
            return builder.ashr(a, _whole(bits)) if whole else builder.and_(a, _whole(b.constant - 1))
        rest = builder.srem(a, b)
        below = builder.and_(
            builder.icmp_signed("!=", rest, zero), builder.icmp_signed("<", builder.xor(rest, b), zero)
        )
        if whole:
            return builder.sub(builder.sdiv(a, b), builder.zext(below, _INT))
        return builder.add(rest, builder.select(below, b, zero))

    def _unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(types.boolean, self.builder.not_(self._truth(node.operand)))
        found = self.value(node.operand)
        if not isinstance(node.op, ast.USub) or found.type is types.boolean:
            self._refuse(node)
        if found.type is types.int64:
            negative = _whole(-found.llvm.constant) if isinstance(found.llvm, ir.Constant) else None
            return Value(types.int64, negative or self.builder.neg(found.llvm))
        return Value(found.type, self.builder.fneg(found.llvm, flags=FLAGS))

    def _compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            self._refuse(node)
        operator, right = node.ops[0], node.comparators[0]
        return Value(
            types.boolean,
            self.builder.icmp_signed(
                self._form(_COMPARISONS, operator), self._integer(node.left), self._integer(right)
            ),
        )

    def _logical(self, node: ast.BoolOp) -> Value:
        join = self.builder.or_ if isinstance(node.op, ast.Or) else self.builder.and_
        return Value(types.boolean, reduce(join, map(self._truth, node.values)))

    def _chosen(self, node: ast.IfExp) -> Any:
        test = self._truth(node.test)
        if any(isinstance(one, _MAY_FAULT) for way in (node.body, node.orelse) for one in ast.walk(way)):
            ways = self._branches(test, lambda: self.value(node.body), lambda: self.value(node.orelse))
            return self._met(*ways)
        return self._selected(node, test, self.value(node.body), self.value(node.orelse))

    def _selected(self, node: ast.IfExp, test: Any, one: Any, other: Any) -> Any:
        if isinstance(one, Value):
            if one.type != other.type:
                self._refuse(node, "is of two types")
            return Value(one.type, self.builder.select(test, one.llvm, other.llvm))
        return tuple(self._selected(node, test, *ways) for ways in zip(one, other, strict=True))

    def _element(self, node: ast.Subscript) -> Value:
        array, data = self._start(node)
        if isinstance(node.slice, ast.Slice):
            return self.site.array(array.type, data)
        if not isinstance(array.type.dtype, types.Integer):
            self._refuse(node, "is no element of words")
        return Value(types.int64, self.builder.zext(self.builder.load(data), _INT))

    def _start(self, node: ast.Subscript) -> tuple[Value, Any]:
        """Return an array and the pointer to one of its elements, or to the first of a slice."""
        array, at = self.value(node.value), node.slice
        if isinstance(at, ast.Slice):
            at = at.lower if at.lower and not (at.upper or at.step) else self._refuse(node)
        return array, self.builder.gep(self.site.passed(array), [self._integer(at)])

    # calls

    def _call(self, node: ast.Call) -> Any:
        function = self._global(node.func)
        if function is np.zeros:
            return self._zeros(node)
        values = [self.value(argument) for argument in node.args]
        if function in (min, max):
            return reduce(lambda a, b: self._extreme(function, a, b), values)
        if function is np.int64:
            return values[0]
        if isinstance(function, Translated):
            return self.builder.call(*function.into(self.site, values))
        if not hasattr(function, "_defn"):
            self._refuse(node)
        return self._intrinsic(node, function, values)

    def _extreme(self, function: Any, a: Value, b: Value) -> Value:
        assert a.type == b.type == types.int64
        chosen = self.builder.icmp_signed("<" if function is min else ">", a.llvm, b.llvm)
        return Value(types.int64, self.builder.select(chosen, a.llvm, b.llvm))

    def _intrinsic(self, node: ast.Call, function: Any, values: Sequence[Value]) -> Any:
        signature, generate = function._defn(self.site.typing, *(value.type for value in values))
        for kind, value in zip(signature.args, values, strict=True):
            if kind != value.type:
                self._refuse(node, f"passes {value.type} for {kind}")
        arguments = [value.llvm for value in values]
        return Value(signature.return_type, generate(self.site.context, self.builder, signature, arguments))

    def _zeros(self, node: ast.Call) -> Value:
        """Allocate memory until the end of this iteration."""
        count, kind = self._integer(node.args[0]), np.dtype(self._global(node.args[1]))
        memory = self._external("calloc", _BYTE, [count, _whole(kind.itemsize)])
        self.allocated.append(memory)
        real = getattr(types, kind.name)
        return self.site.array(types.Array(real, 1, "C"), self.builder.bitcast(memory, llvm_type(real, 1).as_pointer()))

    def _external(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        kind = ir.FunctionType(result, [value.type for value in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.site.module, kind, name), arguments)


def _whole(number: int) -> Any:
    return ir.Constant(_INT, number)


def _names(statements: Iterable[ast.stmt], context: type[ast.expr_context]) -> set[str]:
    nodes = (node for statement in statements for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def _assigned(statements: Iterable[ast.stmt]) -> list[str]:
    return sorted(_names(statements, ast.Store))


def _used(statements: Iterable[ast.stmt]) -> set[str]:
    return _names(statements, ast.Load) | _names(statements, ast.Store)
