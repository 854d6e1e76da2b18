"""The bodies of a stage of a kernel of moments as text: spread, sum up rows, gather; backends provide the syntax.

Everything follows from the lattice. Populations are sorted into rows, (c_y, c_z) of a direction. Along x a row has a
population at rest and perhaps two that move. A row contributes up to three sums over c_x, with the powers 0, 1 and 2
of c_x. Rows with c_y != 0 are passed on along y, rows with c_z != 0 along z, and with the same powers of c_y and c_z
the sums become the moments.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sympy import Integer, Rational

from lbmtune.catalogue.moments.basis import Order, orders, rows, unit_weight
from lbmtune.catalogue.moments.collision import step
from lbmtune.lattice import Lattice, Vector

Row = tuple[int, int]
"""(c_y, c_z)."""
Sum = tuple[Row, int]
"""A sum over the c_x of a row, and the power of c_x in it."""
Part = tuple[int, int]
"""Powers of c_x and c_y in a sum over the rows of one c_z."""
_PARTS: tuple[Part, ...] = ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1))


@dataclass(frozen=True)
class Syntax:
    """The syntax of a language.

    number: of a constant; element: of an array element, or the variable that stands for it; named: of a line that
    defines a variable; assigned: of a line that assigns to an element.
    """

    number: Callable[[Rational], str]
    element: Callable[[str, int], str]
    named: Callable[[str, str], str]
    assigned: Callable[[str, str], str]


@dataclass(frozen=True)
class Sums:
    """The sums of a lattice, and their places in the arrays of the kernel.

    split: whether moments with c_z and with c_z^2 are kept in separate sums until the next plane.
    """

    lattice: Lattice
    split: bool = False

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Return the rows of all directions."""
        return rows(self.lattice)

    @cached_property
    def movers(self) -> tuple[Row, ...]:
        """Return the rows with populations that move along x."""
        return tuple(row for row in self.rows if unit_weight(self.lattice, (1, *row)))

    def powers(self, row: Row) -> range:
        """Return the powers of c_x in the sums of a row."""
        return range(3 if row in self.movers else 1)

    def factor(self, row: Row) -> int:
        """Return the factor of the sums of a row: the weight of populations that move along x, in smallest weights."""
        return unit_weight(self.lattice, (1, *row)) or unit_weight(self.lattice, (0, *row))

    def staying(self, row: Row) -> int:
        """Return the weight of the population at rest along x, in units of those that move."""
        return unit_weight(self.lattice, (0, *row)) // self.factor(row)

    def along_y(self, c_y: int) -> tuple[Sum, ...]:
        """Return the sums of the rows with a given c_y."""
        return tuple((row, power) for row in self.rows if row[0] == c_y for power in self.powers(row))

    @cached_property
    def parts(self) -> Mapping[int, tuple[Part, ...]]:
        """Return the parts of each c_z that are not identically zero."""
        return {c_z: tuple(part for part in _PARTS if self._has(c_z, part)) for c_z in (-1, 0, 1)}

    def _has(self, c_z: int, part: Part) -> bool:
        x, y = part
        return any(row[1] == c_z and x in self.powers(row) and (row[0] or not y) for row in self.rows)

    @cached_property
    def upward(self) -> tuple[Order, ...]:
        """Return the moments with c_z to which parts with c_z = 1 contribute."""
        single = tuple((*part, 1) for part in self.parts[1] if sum(part) < 2)
        return (*single, (0, 0, 2)) if self.split else single

    def moving(self, c: Vector) -> tuple[str, int]:
        """Return the array of the values that move along x as a direction does, and the place of its row."""
        array, among = {0: ("still", self.rows), 1: ("right", self.movers), -1: ("left", self.movers)}[c[0]]
        return array, among.index(c[1:])

    def waiting(self, n: Order) -> int:
        """Return the place of the partial sum of a moment until the next plane."""
        x, y, z = n
        if not z:
            return self.parts[0].index((x, y))
        return len(self.parts[0]) + self.upward.index(n if n in self.upward else (x, y, 1))


@dataclass(frozen=True)
class Stage:
    """Lines of a stage. sums: of the upright lattice (`catalogue.moments.basis.upright`).

    Coefficients of the polynomial and moments are elements of m; the polynomial's values at c_x = 0, 1 and -1 in each
    row are those of still, right and left; sums of rows those of up, down and level, by c_y.
    """

    sums: Sums
    syntax: Syntax

    @property
    def lattice(self) -> Lattice:
        """Return the upright lattice."""
        return self.sums.lattice

    def moment(self, n: Order) -> str:
        """Return the element of a moment, which later holds a coefficient."""
        return self._at("m", orders(self.lattice).index(n))

    def spread(self) -> Iterator[str]:
        """Yield the lines from coefficients to the values of the polynomial in each row."""
        yield from self._in_rows()
        yield from self._along_rows()

    def _in_rows(self) -> Iterator[str]:
        """Yield the lines of p(0, c_y, c_z): from the centre to the faces, and from those to the edges."""
        write, half, powers = self.syntax, self._half, orders(self.lattice)
        at = {row: self._at("still", n) for n, row in enumerate(self.sums.rows)}
        base = self.moment((0, 0, 0))
        yield write.assigned(at[0, 0], base)
        for axis, name in ((0, "y"), (1, "z")):
            unit, twice = _order(axis + 1, 1), _order(axis + 1, 2)
            if unit in powers and _row(axis, 1) in at:
                yield write.named(f"even_{name}", f"{base} + {half} * {self.moment(twice)}")
                yield from self._ways(at[_row(axis, 1)], at[_row(axis, -1)], f"even_{name}", self.moment(unit))
        if (1, 1) not in at:
            return
        for sign, name, operator in ((1, "high", "+"), (-1, "low", "-")):
            yield write.named(f"even_{name}", f"{at[sign, 0]} + {half} * {self.moment((0, 0, 2))}")
            yield write.named(f"odd_{name}", f"{self.moment((0, 0, 1))} {operator} {self.moment((0, 1, 1))}")
            yield from self._ways(at[sign, 1], at[sign, -1], f"even_{name}", f"odd_{name}")

    def _along_rows(self) -> Iterator[str]:
        """Yield the lines of p(1, c_y, c_z) and p(-1, c_y, c_z)."""
        for n, row in enumerate(self.sums.movers):
            odd = self.moment((1, 0, 0))
            for axis, mixed in enumerate(((1, 1, 0), (1, 0, 1))):
                if row[axis]:
                    odd += f" {'+' if row[axis] > 0 else '-'} {self.moment(mixed)}"
            still = self._at("still", self.sums.rows.index(row))
            yield self.syntax.named(f"even{n}", f"{still} + {self._half} * {self.moment((2, 0, 0))}")
            yield self.syntax.named(f"odd{n}", odd)
            yield from self._ways(self._at("right", n), self._at("left", n), f"even{n}", f"odd{n}")

    def _ways(self, there: str, back: str, even: str, odd: str) -> Iterator[str]:
        """Yield the values of opposite directions from their even and odd parts."""
        share = self.syntax.number(step(self.lattice))
        yield self.syntax.assigned(there, f"{even} + {share} * {odd}")
        yield self.syntax.assigned(back, f"{even} - {share} * {odd}")

    @property
    def _half(self) -> str:
        return self.syntax.number(step(self.lattice) / 2)

    def sum_up(self) -> Iterator[str]:
        """Yield the sums of each row over c_x."""
        sums, write = self.sums, self.syntax
        for n, row in enumerate(sums.rows):
            still = self._times(sums.staying(row), self._at("still", n))
            place = [self.place((row, power)) for power in sums.powers(row)]
            if row not in sums.movers:
                yield write.assigned(place[0], still)
                continue
            k = sums.movers.index(row)
            right, left = self._at("right", k), self._at("left", k)
            yield write.assigned(place[2], f"{right} + {left}")
            yield write.assigned(place[1], f"{right} - {left}")
            yield write.assigned(place[0], f"{still} + {place[2]}")

    def place(self, one: Sum) -> str:
        """Return the element of a sum of a row."""
        c_y = one[0][0]
        return self._at({1: "up", -1: "down", 0: "level"}[c_y], self.sums.along_y(c_y).index(one))

    def plane(self, c_z: int) -> Iterator[str]:
        """Yield the parts of one c_z, over its three rows."""
        sums = self.sums
        sideways = (1, c_z) in sums.rows
        outer = sums.factor((1, c_z)) if sideways else 1
        inner = sums.factor((0, c_z)) // outer
        for power in range(3):
            arrives_y = sideways and power in sums.powers((1, c_z))
            arrives = [self.place(((c_y, c_z), power)) for c_y in (1, -1) if arrives_y]
            stays = self.place(((0, c_z), power)) if power in sums.powers((0, c_z)) else ""
            both = f"both_{_PLANE[c_z]}_{power}"
            if arrives:
                yield self.syntax.named(both, f"{arrives[0]} + {arrives[1]}")
                if power < 2:
                    yield self._part(c_z, (power, 1), outer, f"({arrives[0]} - {arrives[1]})")
                if power == 0:
                    yield self._part(c_z, (0, 2), outer, both)
            level = stays and self._times(inner, stays)
            terms = [term for term in (level, both if arrives else "") if term]
            if terms:
                yield self._part(c_z, (power, 0), outer, f"({' + '.join(terms)})" if len(terms) > 1 else terms[0])

    def planes(self) -> list[str]:
        """Return the parts of all c_z."""
        return [line for c_z in (-1, 0, 1) for line in self.plane(c_z)]

    def total(self, added: tuple[int, ...] = (1, -1, 0)) -> Iterator[str]:
        """Yield the moments of a cell that receives the rows of all c_z at once. added: these, in the order of sums."""
        yield from self.planes()
        for n in orders(self.lattice):
            signs = {part_name(c_z, n[:2]): c_z ** n[2] for c_z in added if n[:2] in self.sums.parts[c_z]}
            (first, *others) = (name for name, sign in signs.items() if sign)
            rest = (f" {'-' if signs[name] < 0 else '+'} {name}" for name in others)
            yield self.syntax.assigned(self.moment(n), first + "".join(rest))

    def _part(self, c_z: int, part: Part, factor: int, value: str) -> str:
        return self.syntax.named(part_name(c_z, part), self._times(factor, value))

    def _times(self, factor: int, value: str) -> str:
        return times(factor, value, self.syntax.number)

    def _at(self, array: str, k: int) -> str:
        return self.syntax.element(array, k)


_PLANE = {-1: "falls", 0: "stays", 1: "rises"}


def times(factor: int, value: str, number: Callable[[Rational], str] = str) -> str:
    """Return a multiple of a value. number: prints a constant."""
    return value if factor == 1 else f"{number(Integer(factor))} * {value}"


def part_name(c_z: int, part: Part) -> str:
    """Return the name of a part of one c_z."""
    return f"{_PLANE[c_z]}_{part[0]}{part[1]}"


def _order(axis: int, exponent: int) -> Order:
    return (0, exponent if axis == 1 else 0, exponent if axis == 2 else 0)


def _row(axis: int, value: int) -> Row:
    return (value, 0) if axis == 0 else (0, value)
