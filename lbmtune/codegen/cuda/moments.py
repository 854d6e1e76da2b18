"""The bodies of a stage of the moment march as C text: relax, spread, sum up rows, gather. See kernels/cuda/march.cu.

Everything follows from the lattice. Populations are sorted into rows, (c_y, c_z) of a direction. Along x a row has
a population that stays and perhaps two that move. What a row brings is three sums over c_x at most, with the powers
0, 1 and 2 of c_x; rows with c_y != 0 are handed on along y, rows with c_z != 0 along z, and with the same powers of
c_y and c_z the sums become the moments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from lbmtune.catalogue.moment_collision import coefficient, coefficients, moment, step
from lbmtune.catalogue.moments import Order, orders, rows, unit_weight, upright
from lbmtune.codegen.cuda.expressions import text
from lbmtune.codegen.cuda.physics import SCALARS
from lbmtune.lattice import Lattice

Row = tuple[int, int]
"""(c_y, c_z)."""
Sum = tuple[Row, int]
"""A sum over the c_x of a row, and the power of c_x in it."""
Part = tuple[int, int]
"""Powers of c_x and c_y in a sum over the rows of one c_z."""
_PARTS: tuple[Part, ...] = ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1))


@dataclass(frozen=True)
class Sums:
    """Which sums a lattice has, and where each stands in the arrays of the kernel.

    `weights` of a row: that of the population that stays, in units of those that move along x; `factor`: what all
    sums of a row still have to be multiplied by. split: whether moments with c_z and with c_z^2 wait in sums of their
    own.
    """

    lattice: Lattice
    split: bool = False

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return rows(self.lattice)

    @cached_property
    def movers(self) -> tuple[Row, ...]:
        """Rows with populations that move along x."""
        return tuple(row for row in self.rows if unit_weight(self.lattice, (1, *row)))

    def powers(self, row: Row) -> range:
        return range(3 if row in self.movers else 1)

    def factor(self, row: Row) -> int:
        return unit_weight(self.lattice, (1, *row)) or unit_weight(self.lattice, (0, *row))

    def staying(self, row: Row) -> int:
        """Weight of the population that stays beside those that move."""
        return unit_weight(self.lattice, (0, *row)) // self.factor(row)

    def along_y(self, c_y: int) -> tuple[Sum, ...]:
        """The sums of the rows that go along y, or stay there."""
        return tuple((row, power) for row in self.rows if row[0] == c_y for power in self.powers(row))

    @cached_property
    def parts(self) -> Mapping[int, tuple[Part, ...]]:
        """For each c_z, the parts that are not always zero."""
        return {c_z: tuple(part for part in _PARTS if self._has(c_z, part)) for c_z in (-1, 0, 1)}

    def _has(self, c_z: int, part: Part) -> bool:
        x, y = part
        return any(row[1] == c_z and x in self.powers(row) and (row[0] or not y) for row in self.rows)

    @cached_property
    def upward(self) -> tuple[Order, ...]:
        """Moments with c_z that a sum of parts of c_z = 1 waits for."""
        single = tuple((*part, 1) for part in self.parts[1] if sum(part) < 2)
        return (*single, (0, 0, 2)) if self.split else single

    def waiting(self, n: Order) -> int:
        """Where what a moment has so far waits for the plane above."""
        x, y, z = n
        if not z:
            return self.parts[0].index((x, y))
        return len(self.parts[0]) + self.upward.index(n if n in self.upward else (x, y, 1))


def functions(lattice: Lattice, forced: bool, split: bool = False) -> str:
    """The device functions of a stage."""
    turned = upright(lattice)
    sums = Sums(turned, split)
    return "\n".join((_relax(lattice, forced), _spread(turned, sums), _sum_up(sums), _gather(turned, sums)))


def constants(lattice: Lattice, split: bool = False) -> str:
    """Lengths of the arrays; those of sums that go along y are of one element at least."""
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


def scalars(lattice: Lattice, forced: bool) -> tuple[str, ...]:
    """Launch arguments that the relaxation uses."""
    used = {str(symbol) for one in coefficients(lattice, forced) for symbol in one.value.free_symbols}
    return tuple(name for name in SCALARS if name in used)


def _relax(lattice: Lattice, forced: bool) -> str:
    takes = "".join(f", const Real {name}" for name in scalars(lattice, forced))
    return function(
        f"relax(Real (&m)[MOMENTS]{takes})",
        [
            *(f"const Real {moment(n)} = m[{k}];" for k, n in enumerate(orders(lattice))),
            *(f"const Real {one.name} = {text(one.value)};" for one in coefficients(lattice, forced)),
            *(f"m[{k}] = {coefficient(n)};" for k, n in enumerate(orders(lattice))),
        ],
    )


def _spread(lattice: Lattice, sums: Sums) -> str:
    """From coefficients to the values of the polynomial in each row: at c_x = 0, 1 and -1."""
    number = {n: f"m[{k}]" for k, n in enumerate(orders(lattice))}
    lines = [*_in_rows(lattice, sums, number), *_along_rows(lattice, sums, number)]
    return function(
        "spread(const Real (&m)[MOMENTS], Real (&still)[LINES], Real (&right)[MOVERS], Real (&left)[MOVERS])", lines
    )


def _in_rows(lattice: Lattice, sums: Sums, number: Mapping[Order, str]) -> Iterator[str]:
    """P(0, c_y, c_z): from the middle to the faces, from those to the edges."""
    at = {row: f"still[{n}]" for n, row in enumerate(sums.rows)}
    yield f"{at[0, 0]} = {number[0, 0, 0]};"
    for axis, name in ((0, "y"), (1, "z")):
        unit, twice = _order(axis + 1, 1), _order(axis + 1, 2)
        if unit in number and _row(axis, 1) in at:
            yield f"const Real even_{name} = {number[0, 0, 0]} + {_half(lattice)} * {number[twice]};"
            yield from _ways(lattice, at[_row(axis, 1)], at[_row(axis, -1)], f"even_{name}", number[unit])
    if (1, 1) not in at:
        return
    for sign, name, operator in ((1, "high", "+"), (-1, "low", "-")):
        yield f"const Real even_{name} = {at[sign, 0]} + {_half(lattice)} * {number[0, 0, 2]};"
        yield f"const Real odd_{name} = {number[0, 0, 1]} {operator} {number[0, 1, 1]};"
        yield from _ways(lattice, at[sign, 1], at[sign, -1], f"even_{name}", f"odd_{name}")


def _along_rows(lattice: Lattice, sums: Sums, number: Mapping[Order, str]) -> Iterator[str]:
    """P(1, c_y, c_z) and p(-1, c_y, c_z)."""
    for n, row in enumerate(sums.movers):
        odd = number[1, 0, 0]
        for axis, mixed in enumerate(((1, 1, 0), (1, 0, 1))):
            if row[axis]:
                odd += f" {'+' if row[axis] > 0 else '-'} {number[mixed]}"
        yield f"const Real even{n} = still[{sums.rows.index(row)}] + {_half(lattice)} * {number[2, 0, 0]};"
        yield f"const Real odd{n} = {odd};"
        yield from _ways(lattice, f"right[{n}]", f"left[{n}]", f"even{n}", f"odd{n}")


def _ways(lattice: Lattice, there: str, back: str, even: str, odd: str) -> Iterator[str]:
    """What goes one way and the other."""
    yield f"{there} = {even} + {text(step(lattice))} * {odd};"
    yield f"{back} = {even} - {text(step(lattice))} * {odd};"


def _half(lattice: Lattice) -> str:
    return text(step(lattice) / 2)


def _sum_up(sums: Sums) -> str:
    lines = []
    for n, row in enumerate(sums.rows):
        weight = sums.staying(row)
        still = f"still[{n}]" if weight == 1 else f"{weight} * still[{n}]"
        place = [_place(sums, (row, power)) for power in sums.powers(row)]
        if row not in sums.movers:
            lines.append(f"{place[0]} = {still};")
            continue
        k = sums.movers.index(row)
        lines.append(f"{place[2]} = right[{k}] + left[{k}];")
        lines.append(f"{place[1]} = right[{k}] - left[{k}];")
        lines.append(f"{place[0]} = {still} + {place[2]};")
    return function(
        "sum_up(\n    const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS], "
        "Real (&up)[ACROSS],\n    Real (&down)[ACROSS], Real (&level)[LEVEL])",
        lines,
    )


def _place(sums: Sums, one: Sum) -> str:
    """Where a sum of a row stands."""
    c_y = one[0][0]
    name = {1: "up", -1: "down", 0: "level"}[c_y]
    return f"{name}[{sums.along_y(c_y).index(one)}]"


def _gather(lattice: Lattice, sums: Sums) -> str:
    """Finishes the plane before with what comes down from this one, and begins this one."""
    lines = [line for c_z in (-1, 0, 1) for line in _plane(sums, c_z)]
    lines += _finish(lattice, sums)
    lines += _begin(sums)
    return function(
        "gather(\n    const Real (&up)[ACROSS], const Real (&down)[ACROSS], const Real (&level)[LEVEL], "
        "Real (&current)[CURRENT],\n    Real (&pending)[PENDING], Real (&m)[MOMENTS])",
        lines,
    )


_PLANE = {-1: "falls", 0: "stays", 1: "rises"}


def _name(c_z: int, part: Part) -> str:
    return f"{_PLANE[c_z]}_{part[0]}{part[1]}"


def _plane(sums: Sums, c_z: int) -> Iterator[str]:
    """The parts of one c_z, over its three rows."""
    sideways = (1, c_z) in sums.rows
    outer = sums.factor((1, c_z)) if sideways else 1
    inner = sums.factor((0, c_z)) // outer
    for power in range(3):
        arrives = [_place(sums, ((c_y, c_z), power)) for c_y in (1, -1) if sideways and power in sums.powers((1, c_z))]
        stays = _place(sums, ((0, c_z), power)) if power in sums.powers((0, c_z)) else ""
        both = f"both_{_PLANE[c_z]}_{power}"
        if arrives:
            yield f"const Real {both} = {arrives[0]} + {arrives[1]};"
            if power < 2:
                yield _part(c_z, (power, 1), outer, f"({arrives[0]} - {arrives[1]})")
            if power == 0:
                yield _part(c_z, (0, 2), outer, both)
        level = stays and (stays if inner == 1 else f"{inner} * {stays}")
        terms = [term for term in (level, both if arrives else "") if term]
        if terms:
            yield _part(c_z, (power, 0), outer, f"({' + '.join(terms)})" if len(terms) > 1 else terms[0])


def _part(c_z: int, part: Part, factor: int, value: str) -> str:
    return f"const Real {_name(c_z, part)} = {value if factor == 1 else f'{factor} * {value}'};"


def _finish(lattice: Lattice, sums: Sums) -> Iterator[str]:
    for k, n in enumerate(orders(lattice)):
        part, before = n[:2], f"current[{sums.waiting(n)}]"
        falls = _name(-1, part) if part in sums.parts[-1] else ""
        if n[2] == 0:
            yield f"m[{k}] = {' + '.join(filter(None, (before, falls)))};"
        else:
            assert falls, "a lattice that goes up goes down"
            sign = "-" if n[2] == 1 else "+"
            yield f"m[{k}] = {before} {sign} {falls};"


def _begin(sums: Sums) -> Iterator[str]:
    waiting = {part: f"pending[{k}]" for k, part in enumerate(sums.parts[1])}
    for k, part in enumerate(sums.parts[0]):
        yield f"current[{k}] = {' + '.join(filter(None, (_name(0, part), waiting.get(part, ''))))};"
    for n in sums.upward:
        yield f"current[{sums.waiting(n)}] = {waiting[n[:2]]};"
    for part, place in waiting.items():
        yield f"{place} = {_name(1, part)};"


def _order(axis: int, exponent: int) -> Order:
    return (0, exponent if axis == 1 else 0, exponent if axis == 2 else 0)


def _row(axis: int, value: int) -> Row:
    return (value, 0) if axis == 0 else (0, value)


def function(head: str, lines: Iterable[str], returns: str = "void") -> str:
    """A device function."""
    return "\n".join((f"__device__ __forceinline__ {returns} {head} {{", *(f"    {line}" for line in lines), "}"))
