"""Launch arguments of boundaries; this module does not need SymPy. Names of patch n end with _n."""

from collections.abc import Iterable

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions, suffix, walls

INLET = ("inlet_x", "inlet_y", "inlet_z")
EXCESS = "excess"
"""Density deviation of 'pressure' faces from one, in storage units."""
WALL = ("wall_x", "wall_y", "wall_z")


def boundary_scalars(case: Case) -> tuple[str, ...]:
    """Return the names of the arguments, besides the force, of cells that complete arriving populations."""
    names: list[str] = []
    for kind, values in (("velocity", INLET[: case.stencil.dimensions]), ("pressure", (EXCESS,))):
        ends = dict.fromkeys(c.values for c in conditions(case) if c.kind == kind)
        names += [f"{name}{end}" for end in ends for name in values]
    return tuple(names)


def wall_scalars(case: Case) -> tuple[str, ...]:
    """Return the names of the arguments for the velocities of moving walls."""
    return tuple(f"{name}{suffix(number)}" for number in walls(case) for name in WALL)


def boundary_values(case: Case, unit: float) -> dict[str, float]:
    """Return the values of all arguments by name. unit: the density one as stored.

    Velocities of faces are in lattice units; walls have momenta and faces density deviations, in storage units.
    """
    of_case = zip(WALL, (u * unit for u in case.wall_velocity), strict=True)
    values = {**dict(zip(INLET, case.inlet_velocity, strict=True)), EXCESS: (case.outlet_density - 1) * unit}
    values |= of_case
    for number, patch in enumerate(case.patches, 1):
        end = suffix(number)
        values |= {f"{name}{end}": u for name, u in zip(INLET, patch.velocity, strict=True)}
        values |= {f"{name}{end}": u * unit for name, u in zip(WALL, patch.velocity, strict=True)}
        values[f"{EXCESS}{end}"] = (patch.density - 1) * unit
    return values


def in_order(used: Iterable[str], scalars: tuple[str, ...]) -> tuple[str, ...]:
    """Return the used names in the order of `scalars`, then those of the patches, one patch after the other."""
    places = {name: n for n, name in enumerate(scalars)}

    def place(name: str) -> tuple[int, int]:
        stem, _, number = name.rpartition("_")
        return (0, places[name]) if name in places else (int(number), places[stem])

    return tuple(sorted(used, key=place))
