"""Parts of the small domains on which verification takes the kernels of a family through their edges."""

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import Cells


def rounded(case: Case, unit: int, x: int, ny: int, nz: int) -> Cells:
    """Return extents with x cells of blocks and a unit more, in whole units."""
    return distinct(case, -(-(x + unit) // unit) * unit, ny, nz)


def distinct(case: Case, nx: int, ny: int, nz: int) -> Cells:
    """Return extents of which those along y and z differ; one plane in two dimensions."""
    return nx, ny, 1 if is_flat(case) else nz + 2 * (ny == nz)


def odd(extent: int) -> int:
    """Return an odd number of rows or planes that is larger than an extent."""
    return 2 * (extent // 2) + 3


def one_more(along_z: int) -> int:
    """Return whole blocks and a plane; three planes or more, so that neighbours differ."""
    return along_z + 1 if along_z > 2 else 2 * along_z + 1


def is_flat(case: Case) -> bool:
    """Return whether a case has two dimensions."""
    return case.stencil.dimensions == 2
