"""The balance of a cut: how evenly it shares out the fluid cells of a domain."""

from collections.abc import Sequence

from lbmtune.decomposition.parts import Decomposition


def loads(found: Decomposition) -> tuple[int, ...]:
    """Return the fluid cells of each part, without its halo."""
    case = found.case
    if not case.geometry:
        return tuple(part.box.cells for part in found.parts)
    from lbmtune.catalogue.problem.geometry import solid  # here: a box needs no arrays

    voxels = solid(case)
    each = (tuple(slice(one.start, one.stop) for one in reversed(part.box.window)) for part in found.parts)
    return tuple(int((~voxels[cells]).sum()) for cells in each)


def imbalance(shares: Sequence[int]) -> float:
    """Return the largest share over the mean one: 1 if all are equal."""
    return max(shares) * len(shares) / sum(shares)
