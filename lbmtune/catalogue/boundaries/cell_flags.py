"""Cell flags: one word per cell that says which of its links are cut.

Bit i says that the link by which f_i arrives is cut (it goes from the cell along -c_i); the population that leaves
along c_i uses the link of the opposite direction. Bit 0 says that the cell is solid; then all bits of links are set.
Words of moving walls have the same bits for the links that a moving face cuts. The bits above those of links hold the
condition of a cell at a patch (`catalogue.problem.cell_types`).
"""

from dataclasses import replace
from types import ModuleType
from typing import Any

from lbmtune.catalogue.boundaries.cut_links import MOVING, OPEN, cut_kind, solid_in, whole
from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import layout
from lbmtune.catalogue.problem.faces import streamed
from lbmtune.catalogue.record import KernelConfig
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.lattice import negate

Array = Any
WORDS, MOVING_WORDS = "flags", "moving"
"""Names of the flag tables in launches."""
WORD_BYTES = 4
_ALIGNMENT_BYTES = 256
_REMEMBERED_BYTES = 1 << 29


def moving_links(case: Case) -> tuple[int, ...]:
    """Return the directions i whose population may arrive from a moving wall."""
    return tuple(i for i, c in enumerate(case.stencil.velocities) if case.may_move(negate(c)))


def reads_flags(case: Case, phase: Phase) -> bool:
    """Return whether a pass needs flags: to skip cells, redirect populations, add wall momentum or complete."""
    redirects = any(a.read != a.cut_read or a.write != a.cut_write for a in phase.accesses)
    completes = phase.collides and bool(layout(case, everywhere=False).conditions)
    return bool(case.geometry) or redirects or adds_momentum(case, phase) or completes


def adds_momentum(case: Case, phase: Phase) -> bool:
    """Return whether a pass adds the momentum of moving walls."""
    return case.moving and phase.wall_term != "none"


def by_words(case: Case, config: KernelConfig) -> bool:
    """Return whether a kernel of a box takes cut links from words: from memory, or computed if faces have patches."""
    return not config.indirect and (config.flags == "memory" or bool(case.patches))


def tables(case: Case, config: KernelConfig, phase: Phase) -> tuple[str, ...]:
    """Return the names of the flag tables that a pass reads."""
    if config.flags != "memory" or not reads_flags(case, phase):
        return ()
    return (WORDS, MOVING_WORDS) if adds_momentum(case, phase) and config.kept.reads_moving else (WORDS,)


def words(case: Case, table: str, xp: ModuleType) -> Array:
    """Return a flag table of a case as an array of `xp`: uint32, one word per cell, x fastest, length nx * ny * nz."""
    return _words(_bounds(case), table, xp)


def _bounds(case: Case) -> Case:
    """Return the case with default values for all that does not affect flags, so that cases share cached tables."""
    if case.patches:
        return replace(case, flow="box", collision="bgk", relaxation_rate=1.0, force=(0.0, 0.0, 0.0))
    walls = tuple(map(streamed, case.faces))
    return Case("box", case.lattice, "bgk", case.domain, 1.0, walls, case.wall_velocity, geometry=case.geometry)  # type: ignore[arg-type]


@remembered(_REMEMBERED_BYTES)
def _words(case: Case, table: str, xp: ModuleType) -> Array:
    made = aligned_words(case.sites, xp).reshape(case.domain[::-1])
    made[...] = 0
    for i, c in enumerate(case.stencil.velocities[1:], 1):
        kind = cut_kind(case, negate(c), None, xp)
        set_ = kind != OPEN if table == WORDS else kind == MOVING
        made |= set_.astype(xp.uint32) << xp.uint32(i)
    if case.geometry and table == WORDS:
        made |= solid_in(case, whole(case.domain), xp).astype(xp.uint32)
    if case.patches and table == WORDS:
        from lbmtune.catalogue.problem.patches import types  # here: names of tables need no arrays

        made |= types(case, everywhere=False, xp=xp)
    return made.reshape(-1)


def aligned_words(elements: int, xp: ModuleType) -> Array:
    """Return uninitialised memory of some words (uint32); on the host aligned to 256 bytes, as on a device."""
    import numpy as np  # here: names of tables need no numpy

    if xp is not np:
        return xp.empty(elements, xp.uint32)
    raw = np.empty(elements * WORD_BYTES + _ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT_BYTES
    return raw[start : start + elements * WORD_BYTES].view(np.uint32)
