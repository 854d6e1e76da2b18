"""The [case] table of a study file: a flow problem in the words of the field."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Face, Patch, WallRule
from lbmtune.catalogue.problem.flows import FLOWS, Parameters
from lbmtune.errors import InputError, unknown
from lbmtune.lattice import LATTICES
from lbmtune.records import made_of

EXAMPLE_DOMAIN = "128x128x128"


@dataclass(frozen=True, kw_only=True)
class CaseFile:
    """A flow and its parameters, in lattice units.

    domain: cells, '256x256x256' or [256, 256, 256], two extents for a two-dimensional lattice.
    Exactly one of relaxation_rate (omega), viscosity and reynolds. The Reynolds number is built with: box, nx
    and velocity_scale; cavity, ny and the lid; channel, ny and the velocity on the axis; pipe, ny and the inlet's.
    lid: speed of the moving wall (cavity); force: body force density along x (channel) or along `axis` (porous);
    magic: Lambda of TRT.
    geometry: solid cells, as the name of a generator and its parameters: 'packing:fraction=0.5:radius=8:seed=1', or
    'file:path=sample.npy'; any flow may have them.
    faces: other kinds of faces than those of the flow at x-, x+, y-, y+, z-, z+ (`lbmtune list` names them);
    inlet_velocity, three components, and outlet_density belong to 'velocity' and 'pressure' faces.
    patches: parts of faces, and types of cells of a voxel file, with kinds and values of their own.
    walls: rule of solid cells, 'half-way' or 'interpolated' (`lbmtune list` names them).
    """

    flow: str
    lattice: str
    domain: str | tuple[int, ...]
    collision: str = "bgk"
    relaxation_rate: float | None = None
    viscosity: float | None = None
    reynolds: float | None = None
    lid: float = 0.1
    force: float = 1e-5
    magic: float = 3 / 16
    velocity_scale: float = 0.05
    geometry: str = ""
    axis: str = "x"
    faces: tuple[Face, ...] = ()
    inlet_velocity: tuple[float, ...] = ()
    outlet_density: float = 1.0
    patches: tuple[Patch, ...] = ()
    walls: WallRule = "half-way"


def case_of(file: CaseFile, folder: Path = Path()) -> Case:
    """Return the case of a [case] table. folder: where the path of a voxel file begins. Raises InputError."""
    if file.collision not in COLLISIONS:
        raise unknown("collision", file.collision, COLLISIONS)
    if file.flow not in FLOWS:
        raise unknown("flow", file.flow, FLOWS)
    if file.axis not in ("x", "y", "z"):
        raise unknown("axis", file.axis, ("x", "y", "z"))
    parameters = _parameters(file)
    case = FLOWS[file.flow].case(parameters, _relaxation_rate(file, parameters))
    case = replace(_with_faces(case, file), magic=file.magic, velocity_scale=file.velocity_scale)
    geometry = _identified(file.geometry, file.patches, folder)
    return _checked(replace(case, geometry=geometry, patches=file.patches, walls=file.walls))


def identified(case: Case) -> Case:
    """Return a case with the digest of its voxel file, if it has one; its cells are checked. Raises InputError."""
    return _checked(replace(case, geometry=_identified(case.geometry, case.patches, Path())))


def _checked(case: Case) -> Case:
    if case.patches or case.geometry:
        from lbmtune.catalogue.problem.patch_checks import check_cells  # here: arrays are not needed otherwise

        check_cells(case)
    return case


def _with_faces(case: Case, file: CaseFile) -> Case:
    faces, inlet = file.faces or case.faces, file.inlet_velocity or case.inlet_velocity
    if len(faces) != 6:
        raise InputError(f"faces {list(faces)} are {len(faces)}; six are needed, for x-, x+, y-, y+, z-, z+.")
    if len(inlet) != 3:
        raise InputError(f"inlet_velocity {list(inlet)} has {len(inlet)} components; give three.")
    velocity = (inlet[0], inlet[1], inlet[2])
    bounds = (faces[0], faces[1], faces[2], faces[3], faces[4], faces[5])
    return replace(case, faces=bounds, inlet_velocity=velocity, outlet_density=file.outlet_density)


def _identified(geometry: str, patches: tuple[Patch, ...], folder: Path) -> str:
    """Return a geometry with the digest of the voxel file that it names and the values that are fluid."""
    if not geometry.startswith("file"):
        return geometry
    from lbmtune.catalogue.problem.geometry import identified
    from lbmtune.catalogue.problem.patches import fluid_values

    return identified(geometry, folder, fluid_values(patches))


def _parameters(file: CaseFile) -> Parameters:
    inlet = file.inlet_velocity[0] if file.inlet_velocity else None
    return made_of(Parameters, file, domain=domain_of(file.domain, file.lattice), inlet=inlet)


def _cells(text: str | int) -> int:
    """Return a whole number. Raises ValueError for other forms of it, such as 1_0."""
    if isinstance(text, str) and not re.fullmatch(r"\s*-?[0-9]+\s*", text):
        raise ValueError(text)
    return int(text)


def domain_of(value: str | tuple[int, ...], lattice: str) -> tuple[int, int, int]:
    """Return the cells along x, y, z of the text of a domain, or of two or three numbers. Raises InputError."""
    try:
        cells = [_cells(part) for part in (value.split("x") if isinstance(value, str) else value)]
    except ValueError:
        cells = []
    if len(cells) == 2:
        if lattice in LATTICES and LATTICES[lattice].dimensions == 3:
            flat = f"{cells[0]}x{cells[1]}x1"
            raise InputError(
                f"domain {value!r} has two extents and {lattice} three dimensions; write {flat} if that is meant."
            )
        cells.append(1)
    if len(cells) != 3:
        raise InputError(f"domain {value!r} is not two or three cell counts; write for example {EXAMPLE_DOMAIN}.")
    return cells[0], cells[1], cells[2]


def _relaxation_rate(file: CaseFile, parameters: Parameters) -> float:
    given = {n: v for n in ("relaxation_rate", "viscosity", "reynolds") if (v := getattr(file, n)) is not None}
    if len(given) != 1:
        said = " and ".join(given) or "none"
        raise InputError(f"exactly one of relaxation_rate, viscosity and reynolds is needed, given: {said}.")
    if file.relaxation_rate is not None:
        return file.relaxation_rate
    viscosity = file.viscosity if file.viscosity is not None else _viscosity(file, parameters)
    if viscosity <= 0:
        raise InputError(f"viscosity {viscosity:g} is not positive; choose a positive value.")
    return 1.0 / (3.0 * viscosity + 0.5)


def _viscosity(file: CaseFile, parameters: Parameters) -> float:
    assert file.reynolds is not None
    if file.reynolds <= 0:
        raise InputError(f"reynolds {file.reynolds:g} is not positive; choose a positive value.")
    viscosity = FLOWS[file.flow].viscosity
    if isinstance(viscosity, str):
        raise InputError(f"reynolds: {viscosity}; give viscosity or relaxation_rate.")
    return viscosity(parameters, file.reynolds)
