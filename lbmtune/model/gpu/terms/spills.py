"""Spilled registers of kernels of one step: what they cost, and an estimate for kernels that were not compiled."""

from math import exp, prod
from typing import NamedTuple

from lbmtune.catalogue.boundaries.cell_flags import by_words
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.limits import SECTOR_BYTES, registers_allowed
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.inputs import Inputs, address_registers, has_local_steps
from lbmtune.model.gpu.terms.solid_cells import holes_s_of_a_sector, lanes
from lbmtune.model.machine.curves import local_byte_s, retained_in_l2
from lbmtune.model.machine.description import WORD_BYTES
from lbmtune.records import Resources, Term
from lbmtune.records.terms import LOCAL

_WITHIN = 1.2
"""Accuracy of the estimate of registers: what exceeds the limit by less is not taken for spilled."""
_TIMES_SPILLED = 3
"""How often a spilled word is stored or loaded; as compiled for sm_90."""
_WITHOUT_LINKS, _PASSED = 0.38, 0.85
"""Of kernels that look up cut links in words: spills of the entry of a parity without such links, over the other one
(median of 16 pairs compiled for compute capability 9.0); share of the spill code that a warp executes of a text with
branches for cut links (mean of the shortest and the longest path, median of 14)."""
_ROUNDS = 100
"""Iterations of the fixed point of `left_in_l1`."""


def local_memory(inputs: Inputs) -> Term:
    """Return the time of spilled registers: to and from L1, L2 or memory, by what the threads in flight need.

    Source: CUDA C++ Programming Guide, local memory; rates `Calibration.local_bytes_per_s`.
    """
    found = spilled_passes(inputs)
    seconds = sum(_pass_s(inputs, one) for one in found)
    sentence = f"{sum(one.moved for one in found):.3g} bytes of spilled registers per update"
    return Term(LOCAL, seconds, sentence, "compiled code; micro-benchmarks `spilled`, `holes`")


class Spilled(NamedTuple):
    """Spills of a pass. moved: bytes per update to and from local memory; local_bytes: of a thread."""

    moved: float
    local_bytes: int


def spilled_passes(inputs: Inputs) -> list[Spilled]:
    """Return the spills of the passes of a step of all parities, as compiled if the record has them by entry.

    Otherwise the record has the largest of them: that of the pass that collides; the pass that moves has fewer.
    """
    config = inputs.config
    if inputs.entries:
        share = _executed(inputs) / (config.cells_per_thread * config.propagation.period)
        return [Spilled(share * entry.spill_bytes, entry.local_bytes) for entry in inputs.entries]
    collides = Spilled(spilled_bytes(inputs), inputs.resources.local_bytes)
    local = local_bytes_of_moves(inputs)
    moved_twice = 2 * local / config.cells_per_thread  # stored and loaded
    return [collides, Spilled(min(collides.moved, moved_twice), local)]


def _pass_s(inputs: Inputs, spilled: Spilled) -> float:
    """Return seconds per update; if solid cells leave lanes idle, by whole sectors and what completes them."""
    moved, local_bytes = spilled
    if not moved:
        return 0.0
    if not inputs.skips_solid_cells:
        return _local_s(inputs, moved, local_bytes)
    found = lanes(inputs.case, inputs.config)
    stored = found.sectors * moved * inputs.config.cells_per_thread / (2 * WORD_BYTES)
    lost = 1 - retained_in_l2(inputs.machine, inputs.threads * local_bytes * inputs.machine.multiprocessors)
    completed_s = stored * lost * holes_s_of_a_sector(inputs, "apart", found.partial / found.sectors)
    return _local_s(inputs, 2 * SECTOR_BYTES * stored, local_bytes) + completed_s


def local_bytes_of_moves(inputs: Inputs) -> int:
    """Return the local memory of a thread in the pass of a step that moves populations and does not collide, or 0.

    The record has the largest of all entries, and both passes spill. This pass needs a register for each element that
    it moves, also of 16 bits, and addresses. From one array to another each element is stored as soon as it is loaded,
    unless a thread walks.
    """
    config = inputs.config
    words = max(1, config.stored.bytes // WORD_BYTES) * inputs.config.cells_per_thread
    passes = config.propagation.passes(inputs.case.stencil, 0)
    moving = [len(one.accesses) for one in passes if not one.collides and (one.in_place or inputs.walking)]
    wanted = address_registers(config) + words * max(moving) if moving else 0
    spilled = WORD_BYTES * max(0, wanted - allowed_registers(config, inputs.block_threads))
    return min(inputs.resources.local_bytes, spilled)


def _local_s(inputs: Inputs, moved: float, local_bytes: int) -> float:
    """Return the additional seconds of a copy whose threads keep as much local memory of a multiprocessor.

    Words of a list live from the first load to the last store; meanwhile all that the threads in flight update passes
    through the same caches.
    """
    kept_bytes = inputs.threads * local_bytes + inputs.passing_bytes
    return moved * local_byte_s(inputs.machine, inputs.access_bytes, kept_bytes, walking=inputs.walking)


def spilled_bytes(inputs: Inputs) -> float:
    """Return the bytes per update to and from local memory, by the largest of all entries.

    If the parities have entries of their own, the one that stays in its cells keeps no addresses of neighbours.
    """
    spilled = _executed(inputs) * inputs.resources.spill_bytes / inputs.config.cells_per_thread
    if by_words(inputs.case, inputs.config):
        scheme, stencil = inputs.config.propagation, inputs.case.stencil
        by_parity = [[a for one in scheme.passes(stencil, n) for a in one.accesses] for n in range(scheme.period)]
        redirects = [any(a.read != a.cut_read or a.write != a.cut_write for a in accesses) for accesses in by_parity]
        return spilled * sum(1.0 if one else _WITHOUT_LINKS for one in redirects) / len(redirects)
    if not has_local_steps(inputs):
        return spilled
    local = inputs.resources.local_bytes
    of_other_entry = max(0.0, 1 - WORD_BYTES * inputs.neighbour_registers / local) if local else 0.0
    return (spilled + spilled * of_other_entry) / 2


def _executed(inputs: Inputs) -> float:
    """Return the share of the spill code of a text that a warp executes."""
    return _PASSED if by_words(inputs.case, inputs.config) and inputs.config.boundary == "branch" else 1.0


def left_in_l1(lines_bytes: float, local_bytes: float, passing_bytes: float = 0.0) -> float:
    """Return the share of local memory that L1 still has at its next use, if other bytes pass through meanwhile.

    Each line that comes in replaces any other, so that exp(-lines in / all lines) of them survive.
    """
    if not local_bytes:
        return 1.0
    found = 0.0
    for _ in range(_ROUNDS if lines_bytes else 0):
        found = exp(-(passing_bytes + (1 - found) * local_bytes) / lines_bytes)
    return found


def estimated(case: Case, config: CudaConfig, sets: int = 1) -> Resources:
    """Estimate the resources of one step of a box or of sites. sets: cells whose values are in registers."""
    words = config.computed.bytes // WORD_BYTES * sets
    wanted = address_registers(config) + words * config.cells_per_thread * case.stencil.q
    return estimated_by_registers(case, config, wanted, prod(config.block))


def estimated_by_registers(
    case: Case,
    config: CudaConfig,
    wanted: int,
    block_threads: int,
    less: int = 0,
    within: float = _WITHIN,
    times: int = _TIMES_SPILLED,
) -> Resources:
    """Estimate resources by the registers that a thread would use.

    less: registers that a compiler can do without; within: accuracy of the estimate; times: that a spilled word is
    stored or loaded.
    """
    allowed = allowed_registers(config, block_threads)
    spilled = WORD_BYTES * max(0, round((wanted - less) / within) - allowed)
    return Resources(
        registers=min(wanted, allowed),
        spill_bytes=times * spilled,
        local_bytes=spilled,
        shared_bytes=config.shared_bytes(case),
    )


def allowed_registers(config: CudaConfig, block_threads: int) -> int:
    """Return the registers that a thread can have."""
    return config.max_registers or registers_allowed(block_threads * max(1, config.min_blocks))
