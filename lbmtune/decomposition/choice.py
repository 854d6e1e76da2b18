"""The legal cuts of a domain into a number of parts, in the order in which they are expected to be fast."""

from __future__ import annotations

from collections.abc import Sequence

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.balance import loads
from lbmtune.decomposition.coupling import Coupling, coupling_refusal
from lbmtune.decomposition.cuts import MOST_PARTS, Bisection, Cut, grids
from lbmtune.decomposition.parts import Decomposition, decomposed
from lbmtune.decomposition.rules import kernel_refusal, refusal
from lbmtune.errors import InputError


def legal_cuts(case: Case, config: KernelConfig, parts: int | None, limits: Limits) -> list[Decomposition]:
    """Return the legal cuts into a number of parts, that with the least work of the busiest part first.

    Work: fluid cells without the halo, in proportion to the cells with it. limits: of each device. Raises InputError if
    no cut is legal.
    """
    if parts is None or not 1 <= parts <= MOST_PARTS:
        raise InputError(f"parts={parts} is not supported (use 1 to {MOST_PARTS:,}): their faces are listed.")
    several: tuple[Cut, ...] = (*grids(parts), Bisection(parts))
    if reason := kernel_refusal(case, config):
        raise InputError(f"{reason}.")
    reasons = {str(one): refusal(case, config, one, limits) for one in several}
    legal = [decomposed(case, config, one) for one in several if reasons[str(one)] is None]
    if not legal:
        first, *others = dict.fromkeys(reasons.values())
        raise InputError(f"{first}; give another number of parts." if others else f"{first}.")
    distinct = {one.parts: one for one in reversed(legal)}  # a bisection may be a grid
    return sorted(distinct.values(), key=_order)


def _order(found: Decomposition) -> tuple[float, int, int]:
    """Return the work of the busiest part, then how often x and y are cut: planes along z are contiguous."""
    shares = zip(found.parts, loads(found), strict=True)
    work = max(load * part.stored.cells / part.box.cells for part, load in shares)
    x, y = (len({part.box.low[axis] for part in found.parts}) for axis in (0, 1))
    return work, x, y


def first_legal(
    found: Decomposition, couplings: Sequence[Coupling], *, planes: bool, reached: bool, apart: bool = False
) -> tuple[Coupling | None, str]:
    """Return the first coupling that is legal, or None with the reason against the first one.

    planes, reached, apart: as in `coupling_refusal`.
    """
    reasons = [coupling_refusal(found, one, planes=planes, reached=reached, apart=apart) for one in couplings]
    legal = (one for one, reason in zip(couplings, reasons, strict=True) if reason is None)
    return next(legal, None), reasons[0] or ""
