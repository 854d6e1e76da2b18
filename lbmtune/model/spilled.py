"""Terms of spilled registers, and how many there are likely to be where nobody has compiled a kernel."""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.indirect import listed_rows
from lbmtune.catalogue.march import planes_together
from lbmtune.catalogue.on_chip import asked_bytes
from lbmtune.catalogue.rules.limits import registers_allowed
from lbmtune.model.subject import LOCAL, WORD_BYTES, Subject, between, stays_at_home, walking_name
from lbmtune.records import Resources, Term

_ADDRESSES = {1: 60, 2: 32}
"""Registers beside what a thread keeps of its cells, by the number of lattices; as compiled for sm_90."""
_OF_POINTER = 3
"""Registers that a word of a list and the address that it leads to take."""
_WITHIN = 1.2
"""How near the estimate of registers is: what lies within is not taken for spilled."""
_TIMES_SPILLED = 3
"""How often what is spilled is stored or loaded; from the same."""


def local_memory(subject: Subject) -> Term:
    """What registers that were spilled take: to and from L1, or L2, or memory, where the threads in flight need more.

    Source: CUDA C++ Programming Guide, local memory; rates `Calibration.local_bytes_per_s`.
    """
    moved = spilled_bytes(subject)
    return Term(
        name=LOCAL,
        seconds=_local_s(subject, moved) if moved else 0.0,
        sentence=f"{moved:.3g} bytes of spilled registers per update",
        source="compiled code; micro-benchmark `local`",
    )


def _local_s(subject: Subject, moved: float) -> float:
    """As long as a copy with that access width takes longer whose threads keep as much of a multiprocessor in it.

    Stores go through L1 to L2, so that there is no step where L1 is full. Words of a list are kept from the first load
    to the last store; meanwhile all that the threads in flight update goes by the same caches.
    """
    config = subject.config
    updated = subject.threads * config.cells_per_thread if config.indirect else 0
    passing = updated * traffic(subject.case, config).populations
    return moved * between(_of_local_bytes(subject), subject.threads * subject.resources.local_bytes + passing)


def _of_local_bytes(subject: Subject) -> list[tuple[int, float]]:
    """Bytes of a multiprocessor in local memory, and what one that is written or read takes longer than none."""
    access, walking = str(subject.access_bytes), bool(walking_name(subject.config))
    taken = {}
    for name, rate in subject.calibration.spilled_bytes_per_s.items():
        words = name.split()
        if words[0] == access and (words[-1] == "walking") == walking:
            taken[int(words[2]), int(words[4])] = 2 * subject.machine.streams * int(access) / rate
    none = next(seconds for (_, local), seconds in taken.items() if not local)
    return [
        (threads * local, max(0.0, seconds - none) / (2 * local))
        for (threads, local), seconds in sorted(taken.items())
        if local
    ]


def spilled_bytes(subject: Subject) -> float:
    """Bytes per update that go to local memory and come back.

    What is known is the largest of all entries. Where the parities have entries of their own, the one that stays in
    its cells has no addresses of neighbours to keep.
    """
    config = subject.config
    if config.marches:
        cells = config.cells_per_thread * config.rows * config.steps * planes_together(subject.case, config)
        return subject.resources.spill_bytes / cells
    spilled = subject.resources.spill_bytes / config.cells_per_thread
    return (spilled + spilled * _of_other_entry(subject)) / 2 if stays_at_home(subject) else spilled


def _of_other_entry(subject: Subject) -> float:
    """Share of what the entry spills that reaches for neighbours, of the one that does not."""
    config, local = subject.config, subject.resources.local_bytes
    pointers = len(listed_rows(subject.case, config).pointers) if config.indirect else 0
    kept = _OF_POINTER * pointers * config.cells_per_thread if config.indirect else _ADDRESSES[1] - _ADDRESSES[2]
    return max(0.0, 1 - WORD_BYTES * kept / local) if local else 0.0


def estimated(case: Case, config: CudaConfig) -> Resources:
    """What a kernel is likely to use, where nobody has compiled it."""
    if config.marches:
        from lbmtune.model.issue import registers  # here: it prints kernels, which needs SymPy

        wanted = registers(case, config)
    else:
        # with a list, few words are read ahead, and no populations; and what is copied takes none
        further = 0 if config.indirect or config.copies_ahead else config.prefetch
        words, sets = config.computed.bytes // 4, 1 + further
        wanted = _ADDRESSES[config.copies] + words * sets * config.cells_per_thread * case.stencil.q
    allowed = config.max_registers or registers_allowed(prod(config.block) * max(1, config.min_blocks))
    spilled = 4 * max(0, round(wanted / _WITHIN) - allowed)
    return Resources(
        registers=min(wanted, allowed),
        spill_bytes=_TIMES_SPILLED * spilled,
        local_bytes=spilled,
        shared_bytes=asked_bytes(case, config),
    )
