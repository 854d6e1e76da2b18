"""The kernel of moments as Python text: rows that go through the steps of a launch one behind the other.

See `catalogue.pipeline` for the order of rows and the rings in which they wait, `codegen.cpu.moments` for what a cell
does. A row of a ring has what its cells send in one array after the other, with a margin at both ends; what arrives is
read from the rows next to it and, along x, one cell to the side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.layout import Extents
from lbmtune.catalogue.pipeline import MARGIN, across, along, kept_index, pitch, ring_rows, ring_values, width
from lbmtune.catalogue.storage import Domain, frame
from lbmtune.codegen.cpu.expressions import Constants
from lbmtune.codegen.cpu.filling import filled, indented
from lbmtune.codegen.cpu.loops import spread
from lbmtune.codegen.cpu.moments import Carried, Cell
from lbmtune.codegen.cpu.rows import lanes_of
from lbmtune.codegen.cpu.signatures import parameter_names, signature
from lbmtune.codegen.cpu.streams import plain
from lbmtune.codegen.moments import Row
from lbmtune.codegen.passes import passes
from lbmtune.codegen.trace import Traced

_LINE_BYTES = 64


def pipeline(case: Case, config: CpuConfig, constants: Constants) -> str:
    """All functions of a legal configuration."""
    rows = _Rows(case, config, Cell(case, constants))
    lattice, (one,) = case.stencil, passes(config, case.stencil)
    flat, lanes, ring = lattice.dimensions == 2, lanes_of(config), ring_values(lattice, config)
    _, reach = across(lattice, config)
    halo = 2 * config.steps
    names = ("z", "y") if flat else ("y", "z")
    return filled(
        "pipeline",
        entry=one.entry,
        arguments=", ".join(parameter_names(case, config, one.phase)),
        signature=signature(case, config, one.phase),
        lanes=str(lanes),
        **dict(zip(("across", "along"), names, strict=True)),
        **{f"tile_{axis}": str(getattr(config, f"tile_{axis}")) for axis in "xyz"},
        tile_along=str(along(lattice, config)),
        rows="1" if flat else f"min({config.tile_y}, ny - first_y) + {halo}",
        halo=str(halo),
        due="plane // 2" if flat else "row // 2, plane // 2",
        steps=str(config.steps),
        threads=str(config.threads),
        reach=str(reach),
        width=str(width(lattice, config)),
        margin=str(MARGIN),
        ring=str(ring),
        values=str(config.steps * ring + 2 * MARGIN),
        line=str(_LINE_BYTES // config.computed.bytes),
        bytes=str(config.computed.bytes),
        **{name: indented(lines, 1) for name, lines in rows.before().items()},
        **{name: indented(lines, 2) for name, lines in rows.bodies().items()},
        **spread(config),
    ).rstrip()


@dataclass(frozen=True)
class _Rows:
    """Lines before and inside of the loops along x."""

    case: Case
    config: CpuConfig
    cell: Cell

    @cached_property
    def _sent(self) -> dict[int, list[Carried]]:
        """What goes along each c_z, in the order in which it lies in a row."""
        return {c_z: [one for one in self.cell.carried if one.row[1] == c_z] for c_z in (-1, 0, 1)}

    def before(self) -> dict[str, list[str]]:
        """Lines ahead of each loop: what parameters make, and where rows begin."""
        parameters = self.cell.before(self.config.unit)
        last = f"before = {(self.config.steps - 1) * ring_values(self.case.stencil, self.config)}"
        return {
            "enter_before": [*parameters, *self._stored_row(), "after = 0", *self._written()],
            "relay_before": [*parameters, *self._read(), *self._written()],
            "leave_before": [*self._stored_row(), last, *self._read()],
        }

    def bodies(self) -> dict[str, list[str]]:
        """Lines inside of each loop, and what joins the ends of a row that is as long as the domain."""
        relaxed = [*self.cell.relax(), *self.cell.spread(), *self._leave()]
        arrived = [*self._arrive(), *self.cell.gather()]
        kept = list(zip(self.cell.moments, self._places(), strict=True))
        store = "stream" if self.config.streaming_stores else "store"
        return {
            "enter_body": [*(f"{name} = load(source, {at})" for name, at in kept), *relaxed],
            "relay_body": [*arrived, *relaxed],
            "leave_body": [*arrived, *(f"{store}(target, {at}, {name})" for name, at in kept)],
            "ends": list(self._ends()),
        }

    def _stored_row(self) -> list[str]:
        """Cells of a stored row."""
        stored = frame(self.case.stencil, self.config).extents(Domain(*(Traced(n, "//") for n in ("nx", "ny", "nz"))))
        return [f"pitch = {plain(stored.x)}"]

    def _places(self) -> list[str]:
        """Where the moments of a cell are kept."""
        extents = Extents(Traced("pitch", "//"), Traced("ny", "//"), Traced("nz", "//"), len(self.cell.moments))
        x, y, z = (Traced(name, "//") for name in ("at", "y", "z"))
        return [plain(kept_index(k, x, y, z, extents, self.config)) for k in range(extents.q)]

    def _read(self) -> list[str]:
        """The rows of what arrives in row n: that of (c_y, c_z) comes from c_y rows and c_z planes before."""
        rows = width(self.case.stencil, self.config)
        sources = {row: row[0] + rows * row[1] for row in self._all_rows()}
        return [f"{_name('from', row)} = before + {self._start(row, _minus('n', at))}" for row, at in sources.items()]

    def _written(self) -> list[str]:
        """The rows of what leaves it."""
        return [f"{_name('to', row)} = after + {self._start(row, 'n')}" for row in self._all_rows()]

    def _all_rows(self) -> list[Row]:
        return list(dict.fromkeys(one.row for one in self.cell.carried))

    def _start(self, row: Row, n: str) -> str:
        """The element of the first cell of row n in a ring, of what goes along a row's c_z."""
        lattice, c_z = self.case.stencil, row[1]
        sizes = {one: ring_rows(lattice, self.config, one) for one in self._sent}
        step = pitch(self.config)
        first = sum(sizes[one] * len(self._sent[one]) * step for one in self._sent if one < c_z)
        return f"{n} % {sizes[c_z]} * {len(self._sent[c_z]) * step} + {first + 2 * MARGIN}"

    def _array(self, one: Carried) -> int:
        """Where a value lies behind the start of its row."""
        return self._sent[one.row[1]].index(one) * pitch(self.config)

    def _arrive(self) -> list[str]:
        every = ((one, self._array(one) - one.along_x) for one in self.cell.carried)
        return [f"{one.name} = load(rings, {_name('from', one.row)} + {at} + x)" for one, at in every]

    def _leave(self) -> list[str]:
        every = ((one, self._array(one)) for one in self.cell.carried)
        return [f"store(rings, {_name('to', one.row)} + {at} + x, {one.name})" for one, at in every]

    def _ends(self) -> Iterator[str]:
        """What leaves one end arrives at the other."""
        for one in self.cell.carried:
            start = f"{_name('to', one.row)} + {self._array(one)}"
            there, back = (f"{start} - 1", f"{start} + nx - 1") if one.along_x > 0 else (f"{start} + nx", start)
            if one.along_x:
                yield f"store_one(rings, {there}, load_one(rings, {back}))"


def _minus(name: str, number: int) -> str:
    if not number:
        return name
    return f"({name} - {number})" if number > 0 else f"({name} + {-number})"


def _name(what: str, row: Row) -> str:
    """Of the start of a row: to_uh goes up along y and stays in its plane."""
    return f"{what}_{''.join('dhu'[1 + c] for c in row)}"
