"""What spilled registers take, and how many there are likely to be where nobody has compiled a kernel.

Of kernels of one step a term (`local_memory`); of marches what the loop moves, from where, and how long loads of it
wait, which `model.gpu.temporal_blocking` puts together.
"""

from __future__ import annotations

from math import exp, prod
from typing import NamedTuple

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.boundaries.cell_flags import by_words
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.persistent import shared_bytes as shared_on_chip
from lbmtune.catalogue.families.cuda.temporal_blocking import SECTOR_BYTES, planes_together
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.limits import registers_allowed
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.sparse.index_list import listed_rows
from lbmtune.model.gpu.inputs import LOCAL, WORD_BYTES, Subject, stays_at_home, walking_name
from lbmtune.model.gpu.l2_refetch import kept
from lbmtune.model.gpu.local_memory import local_byte_s
from lbmtune.model.gpu.solid_cells import holes_s_of_a_sector, lanes
from lbmtune.records import Resources, Term

_ADDRESSES = {1: 60, 2: 32}
"""Registers beside what a thread keeps of its cells, by the number of lattices; as compiled for sm_90."""
_OF_TILE, _LESS_OF_TILE = 36, 24
"""The same of a cell of a tile, beside a value for each population: 18 to 35 of those that `compile_cuda` tells for
compute capability 9.0 (ten kernels: D2Q9, D3Q19, D3Q27, single and double precision, tiles of 256 and 512 cells). And
how many less will do.
"""
_OF_POINTER = 3
"""Registers that a word of a list and the address that it leads to take."""
_WITHIN = 1.2
"""How near the estimate of registers is: what lies within is not taken for spilled."""
_TIMES_SPILLED = 3
"""How often what is spilled is stored or loaded; from the same."""
_IN_LOOP = {1: 0.70, 2: 0.59}
"""Share of spilled bytes that the loop of a march stores and loads, by the planes that a pass of it takes; medians of
94 loops that were compiled for compute capability 9.0."""
_IN_A_TEXT = 0.22
"""The same where links can be cut: there are four texts, and a warp goes through one; of 43 such loops."""
_LOADED, _TOGETHER = 0.54, 5
"""Share of these that are loaded, and how many loads stand together before one of them is needed; from the same."""
_ON_CHIP, _OF_A_PLANE, _MOST_PLANES, _ON_CHIP_HOLDING, _HELD = 2.8, 1.0, 3, 5.2, 0.85
"""Registers that a kernel of moments on chip needs for each moment of each cell that a thread has in a plane, and for
each plane of the tile, up to three; where registers keep planes, and for each of these.

From 65 that spill, compiled for compute capability 9.0: half of them within 5 %, nine tenths within 12 %."""
_TIMES_ON_CHIP = {False: 5, True: 8}
"""How often what is spilled is stored or loaded there; where registers keep planes, all passes are written out."""
_ROUNDS = 100
"""In which the share of them that L1 has is counted with what takes their places."""


_WITHOUT_LINKS, _PASSED = 0.38, 0.85
"""Of kernels that look up cut links in words: what the entry of a parity spills that does not ask for them, over the
other one (median of 16 pairs compiled for compute capability 9.0); and share of what a text with branches for cut
links stores and loads that a warp goes through (mean of the shortest and the longest way through it, median of 14)."""


def local_memory(subject: Subject) -> Term:
    """What registers that were spilled take: to and from L1, or L2, or memory, where the threads in flight need more.

    Source: CUDA C++ Programming Guide, local memory; rates `Calibration.local_bytes_per_s`.
    """
    found = passes_spill(subject)
    return Term(
        name=LOCAL,
        seconds=sum(_pass_s(subject, one) for one in found),
        sentence=f"{sum(one.moved for one in found):.3g} bytes of spilled registers per update",
        source="compiled code; micro-benchmarks `spilled`, `holes`",
    )


class Spilled(NamedTuple):
    """By a pass. moved: bytes per update that go to local memory and come back; local_bytes: of a thread."""

    moved: float
    local_bytes: int


def passes_spill(subject: Subject) -> list[Spilled]:
    """What the passes of a step spill, of all parities: as compiled, where the entries are told apart.

    Otherwise what is known is the largest of them: of the pass that collides, and less by the one that moves.
    """
    config = subject.config
    if subject.entries:
        share = _passed(subject) / (config.cells_per_thread * config.propagation.period)
        return [Spilled(share * entry.spill_bytes, entry.local_bytes) for entry in subject.entries]
    collides = Spilled(spilled_bytes(subject), subject.resources.local_bytes)
    local = local_bytes_of_moves(subject)
    return [collides, Spilled(min(collides.moved, 2 * local / config.cells_per_thread), local)]  # stored and loaded


def _pass_s(subject: Subject, spilled: Spilled) -> float:
    """Seconds per update; where solid cells leave warps in part, by whole sectors and what completes them."""
    moved, local_bytes = spilled
    if not moved:
        return 0.0
    if not subject.case.geometry or subject.config.indirect:
        return _local_s(subject, moved, local_bytes)
    found = lanes(subject.case, subject.config)
    stored = found.sectors * moved * subject.config.cells_per_thread / (2 * WORD_BYTES)
    lost = 1 - kept(subject.machine, subject.threads * local_bytes * subject.machine.multiprocessors)
    completed_s = stored * lost * holes_s_of_a_sector(subject, "apart", found.partial / found.sectors)
    return _local_s(subject, 2 * SECTOR_BYTES * stored, local_bytes) + completed_s


def local_bytes_of_moves(subject: Subject) -> int:
    """Local memory of a thread in the pass of a step that moves populations and does not collide; 0 where none does.

    What is known is the largest of all entries, and both passes spill. This one would like a register for each element
    that it moves, also of 16 bits, and addresses. From one array to another it can store each as soon as it is loaded,
    but for columns.
    """
    config = subject.config
    words = max(1, config.stored.bytes // WORD_BYTES) * config.cells_per_thread
    wanted = [
        _ADDRESSES[config.copies] + words * len(phase.accesses)
        for phase in config.propagation.passes(subject.case.stencil, 0)
        if not phase.collides and (phase.in_place or config.march > 1)
    ]
    spilled = WORD_BYTES * max(0, max(wanted, default=0) - _allowed(config))
    return min(subject.resources.local_bytes, spilled)


def _local_s(subject: Subject, moved: float, local_bytes: int) -> float:
    """As long as a copy takes longer whose threads keep as much of a multiprocessor in it.

    Words of a list are kept from the first load to the last store; meanwhile all that the threads in flight update goes
    by the same caches.
    """
    config = subject.config
    updated = subject.threads * config.cells_per_thread if config.indirect else 0
    passing = updated * traffic(subject.case, config).populations
    kept_bytes, walking = subject.threads * local_bytes + passing, bool(walking_name(config))
    return moved * local_byte_s(subject.machine, subject.access_bytes, kept_bytes, walking=walking)


def spilled_bytes(subject: Subject) -> float:
    """Bytes per update that go to local memory and come back.

    What is known is the largest of all entries. Where the parities have entries of their own, the one that stays in
    its cells has no addresses of neighbours to keep.
    """
    config = subject.config
    if config.marches:
        cells = config.cells_per_thread * config.rows * config.steps * planes_together(subject.case, config)
        return subject.resources.spill_bytes / cells
    spilled = _passed(subject) * subject.resources.spill_bytes / config.cells_per_thread
    if by_words(subject.case, config):
        redirects = [_redirects(subject, parity) for parity in range(config.propagation.period)]
        return spilled * sum(1.0 if one else _WITHOUT_LINKS for one in redirects) / len(redirects)
    return (spilled + spilled * _of_other_entry(subject)) / 2 if stays_at_home(subject) else spilled


def _passed(subject: Subject) -> float:
    """Share of what a text stores and loads that a warp goes through."""
    return _PASSED if subject.config.boundary == "branch" and by_words(subject.case, subject.config) else 1.0


def _redirects(subject: Subject, parity: int) -> bool:
    """Whether a step takes, or leaves, populations elsewhere where a link is cut."""
    passes = subject.config.propagation.passes(subject.case.stencil, parity)
    return any(a.read != a.cut_read or a.write != a.cut_write for phase in passes for a in phase.accesses)


def _of_other_entry(subject: Subject) -> float:
    """Share of what the entry spills that reaches for neighbours, of the one that does not."""
    config, local = subject.config, subject.resources.local_bytes
    pointers = len(listed_rows(subject.case, config).pointers) if config.indirect else 0
    kept = _OF_POINTER * pointers * config.cells_per_thread if config.indirect else _ADDRESSES[1] - _ADDRESSES[2]
    return max(0.0, 1 - WORD_BYTES * kept / local) if local else 0.0


def loop_bytes(subject: Subject) -> float:
    """Bytes per update that the loop of a march stores and loads of what is spilled."""
    return _in_loop(subject) * spilled_bytes(subject)


def _in_loop(subject: Subject) -> float:
    """Of what is spilled, what a plane stores and loads; the rest lies before the loop and behind it."""
    if cuts(subject.case) and subject.case.stencil.dimensions == 3:
        return _IN_A_TEXT
    return _IN_LOOP[planes_together(subject.case, subject.config)]


def loop_answers_s(subject: Subject) -> float:
    """What a warp of a march waits in a plane for spilled registers, where L2 or memory answers.

    Loads that stand together wait together, as long as one load takes.
    """
    config, found = subject.config, subject.calibration
    words = _LOADED * _in_loop(subject) * subject.resources.spill_bytes / config.computed.bytes
    places = words / planes_together(subject.case, config) / _TOGETHER
    share = _kept_in_l2(subject)
    return places * (share * found.l2_latency_s + (1 - share) * found.latency_s)


def found_in_l1(subject: Subject) -> float:
    """Share of the words that the loop of a march loads which L1 has beside the shared memory.

    A word waits for about a plane. Lines come in meanwhile for the plane that is read, and for words that are stored
    anew after L1 had lost them; each takes the place of any other, so that one is left with exp(-those over all).
    """
    config, lines_bytes = subject.config, subject.cache_bytes
    local_bytes = subject.threads * subject.resources.local_bytes
    cells = subject.threads * config.cells_per_thread * config.rows
    plane_bytes = cells * config.kept.values(subject.case.stencil) * config.stored.bytes
    return left_in_l1(lines_bytes, local_bytes, plane_bytes)


def left_in_l1(lines_bytes: float, local_bytes: float, passing_bytes: float = 0.0) -> float:
    """Share of so many bytes that L1 still has when they are wanted again, if others pass by meanwhile."""
    if not local_bytes:
        return 1.0
    found = 0.0
    for _ in range(_ROUNDS if lines_bytes else 0):
        found = exp(-(passing_bytes + (1 - found) * local_bytes) / lines_bytes)
    return found


def loop_byte_s(subject: Subject) -> float:
    """Seconds of the device for a byte of what the loop of a march stores and loads."""
    rates = subject.calibration.local_bytes_per_s
    near, share = found_in_l1(subject), _kept_in_l2(subject)
    return near / rates["L1"] + (1 - near) * (share / rates["L2"] + (1 - share) / rates["memory"])


def _kept_in_l2(subject: Subject) -> float:
    """Share of what the loop stores that L2 still has when it is loaded: all threads have stored as much meanwhile.

    What else goes by does not drive it out, by counters: of 15 MB all stay, of 24 MB three quarters, of 27 MB half.
    """
    stored = _in_loop(subject) * subject.resources.local_bytes
    return kept(subject.machine, stored * subject.threads * subject.machine.multiprocessors)


def estimated(case: Case, config: CudaConfig) -> Resources:
    """What a kernel is likely to use, where nobody has compiled it."""
    less = 0
    if config.marches:
        from lbmtune.model.gpu.instruction_issue import registers  # here: it prints kernels, which needs SymPy

        wanted = registers(case, config)
    elif config.by_faces:
        wanted, less = _OF_TILE + config.computed.bytes // WORD_BYTES * case.stencil.q, _LESS_OF_TILE
    elif config.resident:
        return _estimated_on_chip(case, config)
    else:
        # with a list, few words are read ahead, and no populations; and what is copied takes none
        further = 0 if config.indirect or config.copies_ahead else config.prefetch
        words, sets = config.computed.bytes // 4, 1 + further
        wanted = _ADDRESSES[config.copies] + words * sets * config.cells_per_thread * case.stencil.q
    allowed = _allowed(config)
    spilled = 4 * max(0, round((wanted - less) / _WITHIN) - allowed)
    return Resources(
        registers=min(wanted, allowed),
        spill_bytes=_TIMES_SPILLED * spilled,
        local_bytes=spilled,
        shared_bytes=config.shared_bytes(case),
    )


def _estimated_on_chip(case: Case, config: CudaConfig) -> Resources:
    """Of populations no spills are foreseen."""
    allowed, wanted = _allowed(config), 0
    if config.of_moments:
        each = _ON_CHIP + _OF_A_PLANE * min(config.march, _MOST_PLANES)
        if config.held:
            each = _ON_CHIP_HOLDING + _HELD * config.held
        words = config.kept.values(case.stencil) * config.computed.bytes // WORD_BYTES
        wanted = round(each * words * config.cells_per_thread * config.rows)
    spilled = WORD_BYTES * max(0, wanted - allowed)
    return Resources(
        registers=min(wanted, allowed),
        spill_bytes=_TIMES_ON_CHIP[config.held > 0] * spilled,
        local_bytes=spilled,
        shared_bytes=shared_on_chip(case.stencil, config),
    )


def _allowed(config: CudaConfig) -> int:
    """Registers that a thread can have."""
    return config.max_registers or registers_allowed(prod(config.block) * max(1, config.min_blocks))
