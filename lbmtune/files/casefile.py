"""The [case] table of a study file: a flow problem in the words of the field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lbmtune.catalogue.problem.case import (
    COLLISIONS,
    FLOWS,
    PIPE_INLET,
    Case,
    box,
    cavity,
    channel,
    half_channel,
    pipe,
    porous,
)
from lbmtune.catalogue.problem.faces import Face, Patch, Real3
from lbmtune.errors import InputError, unknown
from lbmtune.lattice import LATTICES

Domain = tuple[int, int, int]
EXAMPLE_DOMAIN = "128x128x128"
_LARGEST_EXTENT = 2**31 - 1  # extents are arguments of kernels, of 32 bits


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


@dataclass(frozen=True)
class _Flow:
    """How a file gives a flow: its case, and the kinematic viscosity that follows from the Reynolds number."""

    case: Callable[[CaseFile, Domain, float], Case]
    viscosity: Callable[[CaseFile, Domain], float]


def _without_reynolds(reason: str) -> Callable[[CaseFile, Domain], float]:
    def viscosity(file: CaseFile, domain: Domain) -> float:  # noqa: ARG001
        raise InputError(f"reynolds: {reason}; give viscosity or relaxation_rate.")

    return viscosity


def _channel_viscosity(file: CaseFile, domain: Domain) -> float:
    """Return nu of Re = u H / nu, where the velocity on the axis is u = F H^2 / (8 nu)."""
    return float((abs(file.force) * domain[1] ** 3 / (8 * _reynolds(file))) ** 0.5)


def _pipe_viscosity(file: CaseFile, domain: Domain) -> float:
    """Return nu of Re = u H / nu with the mean velocity u of the inlet."""
    return domain[1] * abs(file.inlet_velocity[0] if file.inlet_velocity else PIPE_INLET) / _reynolds(file)


def _reynolds(file: CaseFile) -> float:
    assert file.reynolds is not None
    return file.reynolds


_FLOWS: Mapping[str, _Flow] = {
    "box": _Flow(
        lambda file, domain, omega: box(file.lattice, file.collision, domain, omega),
        lambda file, domain: domain[0] * file.velocity_scale / _reynolds(file),
    ),
    "cavity": _Flow(
        lambda file, domain, omega: cavity(file.lattice, file.collision, domain, omega, file.lid),
        lambda file, domain: domain[1] * file.lid / _reynolds(file),
    ),
    "channel": _Flow(
        lambda file, domain, omega: channel(file.lattice, file.collision, domain, omega, file.force),
        _channel_viscosity,
    ),
    "pipe": _Flow(lambda file, domain, omega: pipe(file.lattice, file.collision, domain, omega), _pipe_viscosity),
    "half-channel": _Flow(
        lambda file, domain, omega: half_channel(file.lattice, file.collision, domain, omega, file.force),
        _without_reynolds("that of half a channel is not built here"),
    ),
    "porous": _Flow(
        lambda file, domain, omega: porous(
            file.lattice, file.collision, domain, omega, file.geometry, _along(file.axis, file.force)
        ),
        _without_reynolds("a porous sample has no length to build it with"),
    ),
}


def case_of(file: CaseFile) -> Case:
    """Return the case of a [case] table. Raises InputError."""
    if file.collision not in COLLISIONS:
        raise unknown("collision", file.collision, COLLISIONS)
    domain = _domain(file.domain, file.lattice)
    if file.flow not in _FLOWS:
        raise unknown("flow", file.flow, FLOWS)
    case = _FLOWS[file.flow].case(file, domain, _relaxation_rate(file, domain))
    case = replace(_with_faces(case, file), magic=file.magic, velocity_scale=file.velocity_scale)
    case = replace(case, geometry=_identified(file.geometry, file.patches), patches=file.patches)
    if file.patches or file.geometry.startswith("file"):
        from lbmtune.catalogue.problem.patches import check_cells  # here: arrays are not needed otherwise

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


def _identified(geometry: str, patches: tuple[Patch, ...]) -> str:
    """The text with the digest of the voxel file that it names, and which of its values are fluid."""
    if not geometry.startswith("file"):
        return geometry
    from lbmtune.catalogue.problem.geometries.voxelfile import with_digest
    from lbmtune.catalogue.problem.patches import fluid_values

    values = "+".join(map(str, fluid_values(patches)))
    return with_digest(f"{geometry}:fluid={values}" if values and ":fluid=" not in geometry else geometry)


def _along(axis: str, force: float) -> Real3:
    if axis not in ("x", "y", "z"):
        raise unknown("axis", axis, ("x", "y", "z"))
    x, y, z = (force * (axis == name) for name in "xyz")
    return x, y, z


def _domain(value: str | tuple[int, ...], lattice: str) -> Domain:
    try:
        cells = [int(part) for part in (value.split("x") if isinstance(value, str) else value)]
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
    if max(cells) > _LARGEST_EXTENT:
        raise InputError(f"domain {value!r} has an extent above {_LARGEST_EXTENT}; give smaller ones.")
    return cells[0], cells[1], cells[2]


def _relaxation_rate(file: CaseFile, domain: Domain) -> float:
    given = {n: v for n in ("relaxation_rate", "viscosity", "reynolds") if (v := getattr(file, n)) is not None}
    if len(given) != 1:
        said = " and ".join(given) or "none"
        raise InputError(f"exactly one of relaxation_rate, viscosity and reynolds is needed, given: {said}.")
    if file.relaxation_rate is not None:
        return file.relaxation_rate
    if file.reynolds is not None and file.reynolds <= 0:
        raise InputError(f"reynolds {file.reynolds:g} is not positive; choose a positive value.")
    viscosity = file.viscosity if file.viscosity is not None else _FLOWS[file.flow].viscosity(file, domain)
    if viscosity <= 0:
        raise InputError(f"viscosity {viscosity:g} is not positive; choose a positive value.")
    return 1.0 / (3.0 * viscosity + 0.5)
