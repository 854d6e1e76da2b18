"""The update of a cell of moments as Python text: gather, relax, spread."""

from dataclasses import dataclass
from functools import cached_property

from lbmtune.catalogue.collisions.operator import Parameters
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.moments.basis import orders, upright
from lbmtune.catalogue.moments.collision import coefficient, coefficients, moment
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.shared.collision import invariant_lines
from lbmtune.codegen.cpu.shared.expressions import Constants, Hoisted, assigned, hoist
from lbmtune.codegen.moment_stages import Row, Stage, Sums, Syntax

_ARRAYS = {0: "still", 1: "right", -1: "left"}


@dataclass(frozen=True)
class Carried:
    """A value that a cell sends: its name, the row that receives it, and its direction along x."""

    name: str
    row: Row
    along_x: int


@dataclass(frozen=True)
class Cell:
    """Lines of a cell. constants: receives the numbers that are printed."""

    case: Case
    constants: Constants

    @cached_property
    def stage(self) -> Stage:
        """Return the stage of the upright lattice."""
        # array elements are variables
        syntax = Syntax(self.constants.name, element="{}_{}".format, named="{} = {}".format, assigned="{} = {}".format)
        return Stage(Sums(upright(self.case.stencil)), syntax)

    @property
    def carried(self) -> tuple[Carried, ...]:
        """Return the values that a cell sends, one per direction."""
        sums, write = self.stage.sums, self.stage.syntax
        movers = [(k, row) for k, row in enumerate(sums.movers)]
        return (
            *(Carried(write.element("still", k), row, 0) for k, row in enumerate(sums.rows)),
            *(Carried(write.element(_ARRAYS[way], k), row, way) for k, row in movers for way in (1, -1)),
        )

    @property
    def moments(self) -> tuple[str, ...]:
        """Return the names of the moments of a cell, which later hold the coefficients of the polynomial."""
        return tuple(self.stage.moment(n) for n in orders(self.stage.lattice))

    def gather(self) -> list[str]:
        """Return the lines that sum the arriving values up to moments."""
        return [*self.stage.sum_up(), *self.stage.total(added=(0, 1, -1))]

    @cached_property
    def _steps(self) -> Hoisted:
        parameters = [Parameters.omega, Parameters.unit, *Parameters.force]
        return hoist(coefficients(self.case.stencil, self.case.forced, self.case.relaxes), parameters)

    def before(self, config: CpuConfig) -> list[str]:
        """Return the invariants of a row."""
        return invariant_lines(self._steps, config, self.constants)

    def relax(self) -> list[str]:
        """Return the lines from moments to the coefficients of the polynomial (the collision)."""
        powers = orders(self.case.stencil)
        return [
            *(f"{moment(n)} = {at}" for n, at in zip(powers, self.moments, strict=True)),
            *assigned(self._steps.body, self.constants),
            *(f"{at} = {coefficient(n)}" for n, at in zip(powers, self.moments, strict=True)),
        ]


def cell_text(case: Case) -> str:
    """Return what a cell of moments does in a step, one line per assignment."""
    cell = Cell(case, Constants())
    return "\n".join([*cell.gather(), *cell.relax(), *cell.stage.spread()])
