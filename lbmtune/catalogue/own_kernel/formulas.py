"""Formulas of a kernel's description: arithmetic of numbers and names, which can call nothing and read nothing else."""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import ceil, floor, isfinite
from typing import Any

Value = int | float | str
"""A number, a truth value, or a word in a comparison."""
_LONGEST = 500
"""Characters of a formula."""
_LARGEST = 1e30
"""Largest number that a formula may hold; it bounds the work of whole numbers."""

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Not: operator.not_}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "ceil": ceil,
    "floor": floor,
    "ceildiv": lambda a, b: -(-a // b),
}
"""The functions that a formula may call."""


class FormulaError(ValueError):
    """Raised for what is no formula, or has no value; the message ends a sentence that begins with the formula."""


def names_of(formula: str) -> frozenset[str]:
    """Return the names that a formula reads. Raises FormulaError."""
    return frozenset(node.id for node in ast.walk(_tree(formula)) if isinstance(node, ast.Name)) - FUNCTIONS.keys()


def evaluated(formula: str, values: Mapping[str, Value]) -> Any:
    """Return the value of a formula. Raises FormulaError."""
    try:
        found = _value(_tree(formula), values)
    except ZeroDivisionError:
        raise FormulaError("divides by zero") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise error if isinstance(error, FormulaError) else FormulaError("mixes words and numbers") from None
    return found


def real(formula: str, values: Mapping[str, Value]) -> float:
    """Return the value of a formula that is a number. Raises FormulaError."""
    found = evaluated(formula, values)
    if isinstance(found, str):
        raise FormulaError(f"is the word {found!r}, and has to be a number")
    return float(found)


def whole(formula: str, values: Mapping[str, Value], least: int = 0, most: int | None = None) -> int:
    """Return the value of a formula that is a whole number. most: None: any. Raises FormulaError."""
    found = evaluated(formula, values)
    if isinstance(found, (str, bool)) or found != int(found) or found < least or (most is not None and found > most):
        end = "up" if most is None else f"to {most}"
        raise FormulaError(f"is {found}, and has to be a whole number from {least} {end}")
    return int(found)


@lru_cache(maxsize=1024)
def _tree(formula: str) -> ast.expr:
    if len(formula) > _LONGEST:
        raise FormulaError(f"has more than {_LONGEST} characters")
    try:
        return ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError("is no formula of numbers, names and + - * / // %") from None


def _value(node: ast.expr, values: Mapping[str, Value]) -> Any:
    """Return the value of a part, of which each kind that may occur is named here."""
    match node:
        case ast.Constant(value=int() | float() | str() as constant):
            return _bounded(constant)
        case ast.Name(id=name):
            if name not in values:
                raise FormulaError(f"reads {name!r}, which is none of {', '.join(values)}")
            return values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(_BINARY[type(op)](_number(left, values), _number(right, values)))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand, values))
        case ast.BoolOp(op=op, values=parts):
            each = (bool(_value(part, values)) for part in parts)
            return all(each) if isinstance(op, ast.And) else any(each)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
            found = [_value(part, values) for part in (left, *others)]
            return all(_COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, found, found[1:], strict=False))
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, values) else other, values)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS and arguments:
            return FUNCTIONS[name](*(_number(one, values) for one in arguments))
    raise FormulaError(f"has {type(node).__name__}, which formulas do not have")


def _number(node: ast.expr, values: Mapping[str, Value]) -> Any:
    found: Any = _value(node, values)
    if isinstance(found, str):
        raise FormulaError(f"computes with the word {found!r}")
    return _bounded(found)


def _bounded(value: Any) -> Any:
    if not isinstance(value, str) and not (isfinite(value) and abs(value) <= _LARGEST):
        raise FormulaError("has a number that is too large")
    return value
