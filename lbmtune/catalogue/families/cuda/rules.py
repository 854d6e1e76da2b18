"""Rules of CUDA kernels."""

from __future__ import annotations

from collections.abc import Callable

from lbmtune.catalogue.boundaries.cell_flags import by_words
from lbmtune.catalogue.cache_hints import L2_PREFETCHES, LOAD_HINTS, STORE_HINTS
from lbmtune.catalogue.config import CUDA_BOUNDARIES, FETCHES, LAUNCHES, MEETINGS, CudaConfig
from lbmtune.catalogue.families import common_rules as common
from lbmtune.catalogue.families.cuda import block_rules as blocks
from lbmtune.catalogue.families.cuda import face_exchange_rules as tile_faces
from lbmtune.catalogue.families.cuda import persistent_rules as resident
from lbmtune.catalogue.families.cuda.prefetch_buffers import LEAST_BYTES, most_waiting_bytes
from lbmtune.catalogue.families.cuda.temporal_blocking_rules import why_no_fusion, why_no_march
from lbmtune.catalogue.footprint import index_fits, largest_index
from lbmtune.catalogue.limits import MOST_REGISTERS, Limits, extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import shared_slot

MOST_AHEAD = 3
"""Cells that a thread reads before their turn, at most."""
_REGISTER_BYTES = 4


def _representation(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.resident:
        return resident.why_not(case, config, limits)
    if config.halo != "computed":
        return tile_faces.why_not(case, config, limits)
    if config.marches:
        return why_no_march(case, config, limits.shared_bytes_per_block)
    return why_no_fusion(config)


def _vectors(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    cells = config.cells_per_thread
    if config.resident:
        return None  # cells of a thread on chip are no vector
    if cells not in (1, 2, 4, 8):
        return f"cells_per_thread {cells}: 1, 2, 4 and 8 exist"
    width = cells * config.stored.bytes
    if width > 16:
        return f"cells_per_thread {cells} x {config.stored.bytes} bytes = {width}; one access moves at most 16 bytes"
    if not config.indirect and case.domain[0] % cells:
        return f"domain {extents(case.domain)}: nx = {case.domain[0]} is not divisible by cells_per_thread {cells}"
    run = config.memory.run
    if cells > 1 and run and run % cells:
        return (
            f"cells_per_thread {cells} with layout {config.layout}: its runs of {run} cells are no multiple of {cells}"
        )
    if config.layout == "soa" and config.padding % cells:
        return f"padding {config.padding} is no multiple of cells_per_thread {cells}"
    return None


def _wrap(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.wrap not in ("arithmetic", "ghost"):
        return f"wrap {config.wrap!r}: arithmetic and ghost exist on CUDA"
    if config.indirect:
        return None
    if config.layout == "aosoa" and config.wrap == "arithmetic" and case.domain[0] % config.width:
        return (
            f"domain {extents(case.domain)}: nx = {case.domain[0]} is not divisible by the AoSoA width {config.width}"
        )
    return None


def _prefetch(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    ahead, march = config.prefetch, config.march
    if not ahead or config.marches:
        return None
    if ahead > MOST_AHEAD:
        return f"prefetch {ahead}: at most {MOST_AHEAD} cells are read ahead"
    if march == 1:
        return f"prefetch {ahead} with march 1: a thread has no next cell to read"
    if ahead >= march:
        return f"prefetch {ahead} with march {march}: a thread has {march - 1} cells after its first"
    if config.indirect:
        return None  # words of a list are few, and nobody writes them
    return _sets_of_registers(case, config) or _read_by_others(case, config)


def _fetch(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Copies to shared memory that are under way while the thread goes on."""
    if config.fetch not in FETCHES:
        return f"fetch {config.fetch!r}: {' and '.join(FETCHES)} exist"
    if not config.copies_ahead or config.by_faces:
        return None
    if not config.prefetch:
        return f"fetch {config.fetch} with prefetch 0: nothing is read ahead"
    return _copied_at_once(config) or _waits_on_chip(case, config, limits)


def _asynchronous(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    name, value = ("prefetch", config.prefetch) if config.marches else ("fetch", config.fetch)
    copies = config.planes_on_chip if config.marches else config.copies_ahead
    if copies and not limits.asynchronous:
        return f"{name} {value}: this device has no copies to shared memory that are under way on their own"
    if config.in_bulk and not limits.bulk:
        return f"prefetch {config.prefetch}: this device has no bulk copies to shared memory"
    return None


def _copied_at_once(config: CudaConfig) -> str | None:
    """Why an asynchronous copy cannot move what a thread reads; words of a list it always can."""
    if config.indirect:
        return None
    moved = config.cells_per_thread * config.stored.bytes
    if moved < LEAST_BYTES:
        return (
            f"fetch {config.fetch} with {config.cells_per_thread} cells per thread of {config.storage}: "
            f"{moved} bytes at once; an asynchronous copy moves 4, 8 or 16"
        )
    if (config.load_hint, config.l2_prefetch) != ("default", 0):
        return (
            f"fetch {config.fetch} with load_hint {config.load_hint} and l2_prefetch {config.l2_prefetch}: "
            "populations are copied, and a copy has no such hints"
        )
    return None


def _waits_on_chip(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    needed = most_waiting_bytes(case, config)
    if needed <= limits.shared_bytes_per_block:
        return None
    return (
        f"fetch {config.fetch} with prefetch {config.prefetch} and block {extents(config.block)}: {needed:,} bytes of "
        f"shared memory; a block of this device has {limits.shared_bytes_per_block:,}"
    )


def _sets_of_registers(case: Case, config: CudaConfig) -> str | None:
    """Why a thread cannot hold the cells that it has read and those that it reads."""
    sets = config.prefetch + 1
    needed = sets * config.cells_per_thread * case.stencil.q * (config.computed.bytes // _REGISTER_BYTES)
    if sets == 2 or needed <= MOST_REGISTERS or config.copies_ahead:
        return None  # two sets may be spilled in part; what is copied takes no registers
    return (
        f"prefetch {config.prefetch} with {config.cells_per_thread} cells per thread: {sets} sets of {case.stencil.q} "
        f"populations in {config.compute} take {needed} registers; a thread has {MOST_REGISTERS}"
    )


def _read_by_others(case: Case, config: CudaConfig) -> str | None:
    """Why what is read ahead may be written by another thread."""
    scheme = config.propagation
    passes = [one for parity in range(scheme.period) for one in scheme.passes(case.stencil, parity)]
    for shared in filter(None, map(shared_slot, passes)):
        slot, one, other = shared
        return (
            f"prefetch {config.prefetch} with scheme {config.scheme}: slot {slot} is touched at {one.offset} and at "
            f"{other.offset}, so another thread may write what is read ahead"
        )
    return None


def _cache_hints(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    for name, hint, known in (
        ("load_hint", config.load_hint, LOAD_HINTS),
        ("store_hint", config.store_hint, STORE_HINTS),
    ):
        if hint not in known:
            return f"{name} {hint!r}: {', '.join(known)} exist"
    if config.l2_prefetch not in L2_PREFETCHES:
        return f"l2_prefetch {config.l2_prefetch}: {', '.join(map(str, L2_PREFETCHES))} exist"
    return None


def _flags(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.boundary not in CUDA_BOUNDARIES:
        return f"boundary {config.boundary!r}: branch, predicated and implicit exist"
    if config.indirect and config.boundary == "predicated":
        return f"boundary predicated with {config.addressing} addressing: flags stand in the list"
    if config.implicit and (reason := common.implicit(case, config)):
        return reason
    if config.indirect:
        return None
    if config.flags == "compiled" and config.boundary != "branch":
        return f"boundary {config.boundary} with flags compiled: it acts on flags"
    if not by_words(case, config):
        return None
    if config.boundary == "predicated" and config.cells_per_thread > 1:
        return f"boundary predicated with {config.cells_per_thread} cells per thread: a vector has one place"
    if config.wrap == "ghost":
        return f"flags {config.flags} with wrap ghost: the refresh of ghost rows knows the faces alone"
    if config.march > 1 and not (config.marches or config.resident):
        return f"flags {config.flags} with march {config.march}: columns of cells know whole faces alone"
    return None


def _index_bits(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.index_bits not in (0, 64):
        return f"index_bits {config.index_bits}: 0 (32 where that is enough) and 64 exist"
    if config.index_bits and not index_fits(case, config, 32):
        return f"index_bits 64: {largest_index(case, config):,} elements of one component need as many anyway"
    return None


def _launch(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.launch not in LAUNCHES:
        return f"launch {config.launch!r}: {', '.join(LAUNCHES)} exist"
    if config.meeting not in MEETINGS:
        return f"meeting {config.meeting!r}: {', '.join(MEETINGS)} exist"
    if config.meeting != "all" and not config.resident:
        return f"meeting {config.meeting} with launch {config.launch}: only blocks that stay on chip meet"
    if config.held and not config.moments_on_chip:
        return f"held {config.held} with launch {config.launch}: only moments that stay on chip are kept in registers"
    if config.launch == "dependent" and not limits.dependent:
        return "launch dependent: this device begins no launch before the one before it has ended"
    return None


def _macroscopics(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.macroscopics == "never":
        return None
    if config.macroscopics != "every-step":
        return f"macroscopics {config.macroscopics!r}: never and every-step exist"
    if config.march > 1:
        return f"macroscopics every-step with march {config.march}: threads that go up a column write none"
    if by_words(case, config):
        return f"macroscopics every-step with flags {config.flags}: kernels that know cells by words write none"
    return None


def _in_order(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if not config.propagation.phase(case.stencil, 0).ordered:
        return None
    return f"scheme {config.scheme}: a cell swaps with those updated before it, and blocks of a GPU run in no order"


# in this order: a rule may take for granted what those before it demand
RULES: tuple[Callable[[Case, CudaConfig, Limits], str | None], ...] = (
    *common.FIRST,
    _representation,
    blocks.rings,
    _in_order,
    *common.LAYOUTS,
    blocks.size,
    _vectors,
    blocks.shape,
    blocks.covers_row,
    blocks.registers,
    _wrap,
    _flags,
    blocks.march,
    _prefetch,
    _fetch,
    _asynchronous,
    blocks.shared,
    blocks.waiting,
    common.neighbours,
    _cache_hints,
    _index_bits,
    blocks.order,
    _macroscopics,
    _launch,
    blocks.grid,
    *common.LAST,
)
