"""Shared memory for what threads copy ahead by cp.async: populations of a column, or words of an index list.

Each thread copies what it will take itself: of a column the populations of its cells, and, if it has several, those of
the cell beyond an end of the row that a warp has of it; of a list the words of its sites.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from lbmtune.catalogue.boundaries.cell_flags import WORD_BYTES
from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.limits import WARP
from lbmtune.catalogue.pointer_swap import phases_of
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.catalogue.sparse.index_list import listed_rows, used

if TYPE_CHECKING:
    from lbmtune.catalogue.families.cuda.column import Column
    from lbmtune.catalogue.families.cuda.sparse import Sparse

LEAST_BYTES = 4
"""What an asynchronous copy moves at least. Source: PTX ISA, cp.async."""


def column_buffer_bytes(case: Case, config: Column) -> int:
    """Return the bytes of a thread block for the cells that its threads copy ahead; 0 if they wait in registers."""
    if config.prefetch_to != "shared":
        return 0
    threads, cells, element = prod(config.block), config.cells_per_thread, config.stored.bytes
    ends = threads // min(config.block[0], WARP) if cells > 1 else 0
    of_block = case.stencil.q * (threads * cells * element + ends * max(LEAST_BYTES, element))
    return config.prefetch_cells * of_block


def pass_list_buffer_bytes(case: Case, config: Sparse, phase: Phase) -> int:
    """Return the bytes of a thread block, in a pass of the scheme, for words of the list that are copied ahead."""
    if config.prefetch_to != "shared":
        return 0
    needed = used(seen_by(case, config), config.propagation, phase)
    words = len(listed_rows(case, config).read_first(needed))
    return config.prefetch_sites * WORD_BYTES * config.cells_per_thread * config.block[0] * words


def list_buffer_bytes(case: Case, config: Sparse) -> int:
    """Return the most bytes that any pass needs for words of the list that are copied ahead."""
    period = config.propagation.period
    phases = (phase for parity in range(period) for phase in phases_of(config, case.stencil, parity))
    return max(pass_list_buffer_bytes(case, config, phase) for phase in phases)


def waiting_bytes(case: Case, config: Any, phase: Phase) -> int:
    """Return the bytes of a thread block, in a pass of the scheme, for what is copied ahead."""
    if config.family == "sparse":
        return pass_list_buffer_bytes(case, config, phase)
    return int(config.shared_bytes(case))
