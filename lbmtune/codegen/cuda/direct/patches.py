"""Words of cells at faces with patches as C text, computed from the coordinates of a cell instead of loaded."""

from __future__ import annotations

from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS
from lbmtune.catalogue.boundaries.completion import FACE_NAMES
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import layout, patched, walls
from lbmtune.catalogue.problem.faces import Patch
from lbmtune.catalogue.problem.patches import Disc, Rectangle, shape_of
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.lattice import negate

FUNCTIONS = {WORDS: "words_here", MOVING_WORDS: "moving_here"}
"""Device functions that compute the words of a table."""
_ENDS = ("x + v == 0", "x + v + 1 == nx", "y == 0", "y + 1 == ny", "z == 0", "z + 1 == nz")
_ALONG = {0: "yz", 1: "xz", 2: "xy"}
_HERE = {"x": "x + v", "y": "y", "z": "z"}


def functions(case: Case) -> str:
    """Return the device functions of the words, and those that they call."""
    owners = "\n".join(_owner(case, face) for face in range(6) if patched(case, face))
    return fill("direct/patches.cu", {"owners": owners, "here": _words(case), "moving": _moving(case)})


def _faces(case: Case) -> list[int]:
    return [face for face, kind in enumerate(case.faces) if kind != "periodic"]


def _owner(case: Case, face: int) -> str:
    takes = ", ".join(f"const int {axis}" for axis in _ALONG[face // 2])
    extents = ", ".join(f"const int n{axis}" for axis in _ALONG[face // 2])
    lines = [f"__device__ __forceinline__ int patch_{FACE_NAMES[face]}({takes}, {extents}) {{", "    int patch = 0;"]
    for number, patch in enumerate(case.patches, 1):
        if patch.side == face:
            lines.append(f"    if ({_inside(patch, _ALONG[face // 2])}) patch = {number};")
    return "\n".join([*lines, "    return patch;", "}"])


def _inside(patch: Patch, axes: str) -> str:
    """Return the C condition that a cell of the face lies in a shape."""
    shape = shape_of(patch.where)
    if isinstance(shape, Rectangle):
        return " && ".join(f"between({a}, n{a}, {low!r}, {high!r})" for a in axes for low, high in [shape.bounds(a)])
    assert isinstance(shape, Disc)
    places = ", ".join(f"{a}, n{a}, {getattr(shape, a)!r}" for a in axes)
    return f"in_disc({places}, {shape.radius!r})"


def _at_faces(case: Case) -> list[str]:
    """Return, for each face, the number of the patch of a cell at it: 0 for none, -1 for cells away from the face."""
    return [f"        const int {_at(face)} = {_ENDS[face]} ? {_number(case, face)} : -1;" for face in _faces(case)]


def _at(face: int) -> str:
    return f"at_{FACE_NAMES[face]}"


def _number(case: Case, face: int) -> str:
    if not patched(case, face):
        return "0"
    axes = _ALONG[face // 2]
    return f"patch_{FACE_NAMES[face]}({', '.join(_HERE[a] for a in axes)}, {', '.join(f'n{a}' for a in axes)})"


def _crossing(case: Case, face: int) -> str:
    """Return the bits of the links by which populations arrive through a face."""
    velocities = enumerate(case.stencil.velocities)
    return f"{sum(1 << i for i, c in velocities if face in dict(case.crossed(negate(c)))):#x}u"


def _words(case: Case) -> str:
    """Return the lines of a word: the links that faces cut, and above them conditions and the wall of the cell."""
    lines = [*_at_faces(case), *(f"        if ({_at(f)} >= 0) word |= {_crossing(case, f)};" for f in _faces(case))]
    fields = layout(case, everywhere=False)
    for condition, field in fields.conditions:
        told = f"{field.number}u << {field.shift}"
        lines.append(f"        if ({_at(condition.face)} == {condition.patch}) word |= {told};")
    if fields.walls:
        lines.append("        Word wall = 0;  // the last one that the cell lies at")
        for patch, field in fields.walls:
            lines += [
                f"        if ({_at(face)} == {patch}) wall = 1u << {field.shift};" for face in _of_wall(case, patch)
            ]
        lines.append("        word |= wall;")
    return "\n".join(lines)


def _moving(case: Case) -> str:
    moved = [(patch, face) for patch in walls(case) for face in _of_wall(case, patch)]
    lines = [f"        if ({_at(face)} == {patch}) word |= {_crossing(case, face)};" for patch, face in moved]
    return "\n".join([*_at_faces(case), *lines])


def _of_wall(case: Case, patch: int) -> list[int]:
    """Return the faces of which a moving wall is a part. patch: its number, 0 for whole faces."""
    if patch:
        return [face for face in _faces(case) if case.patches[patch - 1].side == face]
    return [face for face in _faces(case) if case.faces[face] == "moving"]
