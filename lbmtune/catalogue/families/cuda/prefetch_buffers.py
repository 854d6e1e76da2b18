"""Shared memory that a launch asks for, and what of it a thread of a column, or of a list, lets wait (`fetch=shared`).

Each thread copies what it will take itself: of a column the populations of its cells, and where it has several of them,
those of the cell beyond an end of the row that a warp has of it; of a list the words of its sites.
"""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.boundaries.cell_flags import WORD_BYTES
from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import WARP
from lbmtune.catalogue.pointer_swap import phases_of
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.catalogue.sparse.index_list import listed_rows, used

LEAST_BYTES = 4
"""What an asynchronous copy moves at least. Source: PTX ISA, cp.async."""


def waiting_bytes(case: Case, config: CudaConfig, phase: Phase) -> int:
    """Shared memory of a block in a pass of a scheme; 0 where what is read ahead waits in registers."""
    if not config.copies_ahead:
        return 0
    of_block = _words_bytes(case, config, phase) if config.indirect else _cells_bytes(case, config)
    return config.prefetch * of_block


def most_waiting_bytes(case: Case, config: CudaConfig) -> int:
    """The most that any pass needs."""
    if not config.copies_ahead:
        return 0
    period = config.propagation.period
    every = (phase for parity in range(period) for phase in phases_of(config, case.stencil, parity))
    return max(waiting_bytes(case, config, phase) for phase in every)


def _words_bytes(case: Case, config: CudaConfig, phase: Phase) -> int:
    rows = listed_rows(case, config)
    needed = used(seen_by(case, config), config.propagation, phase)
    return WORD_BYTES * config.cells_per_thread * config.block[0] * len(rows.read_first(needed))


def _cells_bytes(case: Case, config: CudaConfig) -> int:
    threads, cells, element = prod(config.block), config.cells_per_thread, config.stored.bytes
    ends = threads // min(config.block[0], WARP) if cells > 1 else 0
    return case.stencil.q * (threads * cells * element + ends * max(LEAST_BYTES, element))
