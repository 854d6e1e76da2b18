"""Bounce-back in the moments wavefront, as Python text.

A cell reads what arrives along c_i from its own place, which the cell at -c_i has filled. If that link is cut, only
this cell uses the place: what the cell itself sent along -c_i, plus the momentum of a moving face, is copied there
before the row takes its step. So the loops over vectors of cells are those of a periodic box. A face cuts links of
whole rows, or of one cell per row. For solid cells words are read, and only vectors with cut links are changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sympy import Integer

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts, returning
from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.collisions.operator import wall_gain, weight
from lbmtune.catalogue.families.cpu.moments_wavefront import MomentsWavefront
from lbmtune.catalogue.moments.basis import upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.moments_wavefront.cell import Carried
from lbmtune.codegen.cpu.moments_wavefront.rows import Rows, row_place
from lbmtune.codegen.cpu.shared.expressions import Constants, text
from lbmtune.codegen.cpu.shared.module import parameter_names
from lbmtune.codegen.passes import passes
from lbmtune.codegen.skeleton import block, filled, indented

_DEPTH = 6
"""Python blocks around the steps of a row."""


def parts(rows: Rows, constants: Constants) -> dict[str, str]:
    """Return the fields of the skeleton that differ if links may be cut."""
    case, config = rows.case, rows.config
    if not cuts(case):
        return dict.fromkeys(("walls", "kept", "located", "place", "emptied"), "")
    walls, (one,) = Walls(rows, constants), passes(config, case.stencil)
    arguments = ", ".join(parameter_names(case, config, one.phase))
    empty = {"before": indented(rows.stored_row(), 1), "empty": indented(walls.empty(), 3)} if case.geometry else {}
    return {
        "walls": f"{filled('moments_wavefront/solid', arguments=arguments, **empty).rstrip()}\n\n\n" if empty else "",
        "kept": _after(rows.kept(walls.sent), 1),
        "located": ", first_x, y, z",
        "place": ", first_x, y, z",
        "emptied": _after([f"emptied({arguments}, cells, first_x, y, z)"] if empty else [], _DEPTH),
    }


def returned(rows: Rows, constants: Constants, *, last: bool) -> list[str]:
    """Return the lines before a row's loop that copy what cut links return. last: the row has no halo."""
    if not cuts(rows.case):
        return []
    walls = Walls(rows, constants)
    return [*(["low, high = 0, cells"] if last else []), *walls.before(), *walls.lines()]


def names(case: Case, config: MomentsWavefront) -> list[str]:
    """Return lines that name the functions of the support module `walls`, which reads the words of solid cells."""
    if not case.geometry:
        return []
    access = f'by_words = walls.cells("{config.computed.dtype}", {config.lanes})'
    return [access, "some_cut, back = by_words.some_cut, by_words.back"]


def _after(lines: list[str], depth: int) -> str:
    return f"\n{indented(lines, depth)}" if lines else ""


@dataclass(frozen=True)
class Walls:
    """Lines that copy what cut links return to the places that a cell reads."""

    rows: Rows
    constants: Constants

    @property
    def _case(self) -> Case:
        return self.rows.case

    @cached_property
    def _carried(self) -> dict[tuple[int, int, int], Carried]:
        """Values that a cell sends, by velocity of the upright lattice."""
        return {(one.along_x, *one.row): one for one in self.rows.cell.carried}

    def _of(self, i: int) -> Carried:
        return self._carried[upright(self._case.stencil).velocities[i]]

    def _back(self, i: int) -> Carried:
        """Return what the cell itself sends along -c_i."""
        return self._of(self._case.stencil.opposite[i])

    @cached_property
    def sent(self) -> list[Carried]:
        """Return the values that cut links may return."""
        return [self._back(i) for i in returning(self._case)]

    def before(self) -> list[str]:
        """Return the starts of the rows that cells sent themselves, and the gains of moving faces."""
        gains = [
            f"gain{i} = {text(wall_gain(self._case.stencil, i) / weight(self._case.stencil, i), self.constants)}"
            for i in moving_links(self._case)
        ]
        return [*self.rows.own(self.sent), *gains]

    def lines(self) -> Iterator[str]:
        """Yield the copies at solid cells by words, then those at faces; at an edge a moving face takes precedence."""
        if self._case.geometry:
            yield from self._by_words()
        for kind in ("moving",) if self._case.geometry else ("wall", "moving"):
            for face, kind_here in enumerate(self._case.faces):
                if kind_here == kind:
                    yield from self._at_face(face, moving=kind == "moving")

    def _at_face(self, face: int, *, moving: bool) -> list[str]:
        axis, high = divmod(face, 2)
        velocities = self._case.stencil.velocities
        links = [i for i in returning(self._case) if velocities[i][axis] == (-1 if high else 1)]
        if axis == 0:
            place = "nx - 1 - first_x" if high else "-first_x"
            copies = self._put(links, f"({place})", "_one", moving=moving)
            return block(f"if {place} < high:" if high else f"if {place} >= low:", copies)
        loop = block(f"for x in range(low, high, {self.rows.config.lanes}):", self._put(links, "x", "", moving=moving))
        name = "yz"[axis - 1]
        return block(f"if {name} == {f'n{name} - 1' if high else '0'}:", loop)

    def _by_words(self) -> list[str]:
        """Return the copies by the bits of words, without images beyond a wall: their places belong to other cells."""
        lanes, walled = (
            self.rows.config.lanes,
            {name for axis, name in enumerate("xyz") if self._case.walled_across(axis)},
        )
        inside = " and ".join(f"{name} >= 0 and {name} < n{name}" for name in "yz" if name in walled)
        cells = "max(low, -first_x), min(high, nx - first_x)" if "x" in walled else "low, high"
        ends = ((i, *self._ends(i, "x")) for i in returning(self._case))
        chosen = [f"store(rings, {at}, back(rings, {at}, {own}, flags, at, {i}))" for i, at, own in ends]
        loop = [
            "at = first_x + x",
            "at = words + (at + nx if at < 0 else at - nx if at >= nx else at)",
            *block("if some_cut(flags, at):", chosen),
        ]
        lines = ["words = (z % nz * ny + y % ny) * nx", *block(f"for x in range({cells}, {lanes}):", loop)]
        return block(f"if {inside}:", lines) if inside else lines

    def _ends(self, i: int, x: str) -> tuple[str, str]:
        """Return the place that a cell reads, and that of what it sent itself along -c_i."""
        there, back = self._of(i), self._back(i)
        place = f"{row_place('from', there.row)} + {self.rows.array(there) - there.along_x} + {x}"
        return place, f"{row_place('own', back.row)} + {self.rows.array(back)} + {x}"

    def _put(self, links: Sequence[int], x: str, one: str, *, moving: bool) -> Iterator[str]:
        for i in links:
            place, own = self._ends(i, x)
            yield f"store{one}(rings, {place}, load{one}(rings, {own}){f' + gain{i}' if moving else ''})"

    def empty(self) -> list[str]:
        """Return the stores of zeros to the moments of a cell."""
        zero = self.constants.name(Integer(0))
        return [f"store_one(target, {at}, {zero})" for at in self.rows.places("y", "z")]
