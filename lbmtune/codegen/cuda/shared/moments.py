"""Stages of the moment representation as C text: relax, spread, sum up rows, gather.

They follow from the lattice (`lbmtune.codegen.moment_stages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from sympy import Integer, Rational

from lbmtune.catalogue.moments.basis import orders, upright
from lbmtune.catalogue.moments.collision import coefficient, coefficients, moment
from lbmtune.codegen.cuda.shared.expressions import text
from lbmtune.codegen.cuda.shared.physics import SCALARS
from lbmtune.codegen.moment_stages import Stage, Sums, part_name
from lbmtune.lattice import Lattice

SPREAD = "spread(const Real (&m)[MOMENTS], Real (&still)[LINES], Real (&right)[MOVERS], Real (&left)[MOVERS])"
SUM_UP = (
    "sum_up(\n    const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS], "
    "Real (&up)[ACROSS],\n    Real (&down)[ACROSS], Real (&level)[LEVEL])"
)
GATHER = (
    "gather(\n    const Real (&up)[ACROSS], const Real (&down)[ACROSS], const Real (&level)[LEVEL], "
    "Real (&current)[CURRENT],\n    Real (&pending)[PENDING], Real (&m)[MOMENTS])"
)
"""Signatures of the functions of a stage, of moments and of populations."""


class InC:
    """Print stages as C; whole numbers stay as they are."""

    def number(self, value: Rational) -> str:
        return str(value) if isinstance(value, Integer) else text(value)

    def element(self, array: str, k: int) -> str:
        return f"{array}[{k}]"

    def named(self, name: str, value: str) -> str:
        return f"const Real {name} = {value};"

    def assigned(self, element: str, value: str) -> str:
        return f"{element} = {value};"


@lru_cache(maxsize=64)
def functions(lattice: Lattice, forced: bool, split: bool = False, relaxes: bool = True) -> str:
    """Return the device functions of a stage."""
    stage = Stage(Sums(upright(lattice), split), InC())
    return "\n".join(
        (
            _relax(lattice, forced, relaxes),
            *_sums(stage),
            _gather(stage),
        )
    )


@lru_cache(maxsize=64)
def functions_at_once(lattice: Lattice, forced: bool, relaxes: bool) -> str:
    """Return the device functions of a step whose cells have all arriving sums at once, without buffers along z."""
    stage = Stage(Sums(upright(lattice)), InC())
    total = function(
        "total(\n    const Real (&up)[ACROSS], const Real (&down)[ACROSS], const Real (&level)[LEVEL], "
        "Real (&m)[MOMENTS])",
        stage.total(),
    )
    return "\n".join((_relax(lattice, forced, relaxes), *_sums(stage), total))


@lru_cache(maxsize=64)
def constants(lattice: Lattice, split: bool = False) -> str:
    """Return the lengths of arrays as C constants; sums that move along y have one element at least."""
    sums = Sums(upright(lattice), split)
    lengths = {
        "MOMENTS": len(orders(lattice)),
        "LINES": len(sums.rows),
        "MOVERS": len(sums.movers),
        "ACROSS": max(1, len(sums.along_y(1))),
        "LEVEL": len(sums.along_y(0)),
        "CURRENT": len(sums.parts[0]) + len(sums.upward),
        "PENDING": len(sums.parts[1]),
    }
    return "\n".join(f"constexpr int {name} = {length};" for name, length in lengths.items())


@lru_cache(maxsize=64)
def scalars(lattice: Lattice, forced: bool, relaxes: bool = True) -> tuple[str, ...]:
    """Return the launch arguments of the relaxation."""
    used = {str(symbol) for one in coefficients(lattice, forced, relaxes) for symbol in one.value.free_symbols}
    return tuple(name for name in SCALARS if name in used)


def _relax(lattice: Lattice, forced: bool, relaxes: bool) -> str:
    takes = "".join(f", const Real {name}" for name in scalars(lattice, forced, relaxes))
    return function(
        f"relax(Real (&m)[MOMENTS]{takes})",
        [
            *(f"const Real {moment(n)} = m[{k}];" for k, n in enumerate(orders(lattice))),
            *(f"const Real {one.name} = {text(one.value)};" for one in coefficients(lattice, forced, relaxes)),
            *(f"m[{k}] = {coefficient(n)};" for k, n in enumerate(orders(lattice))),
        ],
    )


def _sums(stage: Stage) -> Iterator[str]:
    """Yield the functions from moments to their polynomial in each row (c_x = 0, 1, -1), and on to sums over rows."""
    yield function(SPREAD, stage.spread())
    yield function(SUM_UP, stage.sum_up())


def _gather(stage: Stage) -> str:
    """Return the function that completes the plane below with what moves down, and starts this plane."""
    lines = [line for c_z in (-1, 0, 1) for line in stage.plane(c_z)]
    return function(GATHER, [*lines, *_finish(stage), *_begin(stage.sums)])


def _finish(stage: Stage) -> Iterator[str]:
    sums = stage.sums
    for n in orders(stage.lattice):
        part, before = n[:2], f"current[{sums.waiting(n)}]"
        falls = part_name(-1, part) if part in sums.parts[-1] else ""
        if n[2] == 0:
            yield f"{stage.moment(n)} = {' + '.join(filter(None, (before, falls)))};"
        else:
            assert falls, "a lattice that goes up goes down"
            sign = "-" if n[2] == 1 else "+"
            yield f"{stage.moment(n)} = {before} {sign} {falls};"


def _begin(sums: Sums) -> Iterator[str]:
    waiting = {part: f"pending[{k}]" for k, part in enumerate(sums.parts[1])}
    for k, part in enumerate(sums.parts[0]):
        yield f"current[{k}] = {' + '.join(filter(None, (part_name(0, part), waiting.get(part, ''))))};"
    for n in sums.upward:
        yield f"current[{sums.waiting(n)}] = {waiting[n[:2]]};"
    for part, place in waiting.items():
        yield f"{place} = {part_name(1, part)};"


def function(head: str, lines: Iterable[str], returns: str = "void") -> str:
    """Return a device function."""
    return "\n".join((f"__device__ __forceinline__ {returns} {head} {{", *(f"    {line}" for line in lines), "}"))
