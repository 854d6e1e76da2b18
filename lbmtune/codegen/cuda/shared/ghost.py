"""Refresh of the ghost layer: which components are copied between a ghost cell and its image."""

from __future__ import annotations

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase, Place
from lbmtune.codegen.cuda.shared import entry
from lbmtune.codegen.cuda.shared.access import pointer_parameters, slot
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.lattice import Vector, negate

_AT_FACE = ("x == 0", "x == nx - 1", "y == 0", "y == ny - 1", "z == 0", "z == nz - 1")
_GHOST = "cell_index(ghost.x, ghost.y, ghost.z, n)"
_IMAGE = "cell_index(ghost.x, image(ghost.y, ny), image(ghost.z, nz), n)"

Crossing = tuple[Place, Vector]
"""A place in another row, and the velocity of the link to which it belongs."""


def reads_over(case: Case, phase: Phase) -> tuple[Crossing, ...]:
    """Return the places that a phase may read from ghost cells, with the links by which they arrive.

    Ghost cells lie in other rows; those of blocks also lie at the ends of a row.
    """
    velocities, first = case.stencil.velocities, 0 if phase.blockwise else 1
    return tuple((a.read, negate(velocities[a.direction])) for a in phase.accesses if any(a.read.offset[first:]))


def writes_over(case: Case, phase: Phase) -> tuple[Crossing, ...]:
    """Return the places in other rows that a phase writes, with the links by which they leave."""
    velocities = case.stencil.velocities
    return tuple((a.write, velocities[a.direction]) for a in phase.accesses if any(a.write.offset[1:]))


def refresh(
    case: Case, phase: Phase, name: str, crossings: tuple[Crossing, ...], *, to_ghost: bool, dependent: bool
) -> str:
    """Return the text of one refresh kernel of a pass."""
    pointers = "".join(f",\n    {line}" for line in pointer_parameters(phase))
    taken = f"Stored* populations{pointers}, {', '.join(entry.parameters((), entry.EXTENTS, ()))}"
    origin, target = (_IMAGE, _GHOST) if to_ghost else (_GHOST, _IMAGE)
    return fill(
        "shared/ghost.cu",
        {
            "signature": entry.head("__launch_bounds__(SHELL_THREADS) ", name, taken, dependent=dependent),
            "places": f"    const Index from = {origin};\n    const Index to = {target};",
            "load": "\n".join(_load(case, *crossing) for crossing in crossings),
            "store": "\n".join(_store(place) for place, _ in crossings),
        },
        inside="entry",
    )


def refresh_rings(case: Case, name: str, crossings: tuple[Crossing, ...], *, dependent: bool) -> str:
    """Return the text of the kernel that refreshes the rings of all blocks."""
    taken = ", ".join(("Stored* populations", *entry.parameters((), entry.EXTENTS, ())))
    return fill(
        "shared/ring.cu",
        {
            "signature": entry.head("__launch_bounds__(RING_THREADS) ", name, taken, dependent=dependent),
            "load": "\n".join(_load(case, *crossing) for crossing in crossings),
            "store": "\n".join(_store(place) for place, _ in crossings),
        },
        inside="entry",
    )


def _load(case: Case, place: Place, velocity: Vector) -> str:
    cut = " || ".join(_AT_FACE[face] for face, _ in case.crossed(velocity)) or "false"
    (x, y, z), name = place.offset, place.slot
    return (
        f"    const bool used_{name} = used({x}, {y}, {z}, [&](int x, int y, int z) {{ return {cut}; }});\n"
        f"    const Stored value_{name} = used_{name} ? {_element(place, 'from')} : Stored(0);"
    )


def _store(place: Place) -> str:
    return f"    if (used_{place.slot}) {_element(place, 'to')} = value_{place.slot};"


def _element(place: Place, at: str) -> str:
    if place.pointer:
        return f"{slot(place, '')}[{at}]"
    return f"populations[component({place.slot}, n) + {at}]"
