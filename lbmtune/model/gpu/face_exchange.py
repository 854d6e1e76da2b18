"""Tiles of moments that leave the populations that cross their faces in memory for the next step.

The blocks of a multiprocessor queue for memory and for what is computed (`model.gpu.terms.mva`), and each waits for its
loads, large ones in parts. Memory has runs and partial sectors of the moments, by layout, and of the lists of faces.
Warps issue as a whole, idle lanes included. Arithmetic is counted on the printed text. The copy of a face counts for
all lanes of a warp that has a cell at it; that and other instructions of a thread are from counters of an H200.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import product
from math import prod

from lbmtune.catalogue.families.cuda.face_exchange import FaceExchange, face_values, through
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.limits import SECTOR_BYTES, WARP
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moments
from lbmtune.lattice import lattice
from lbmtune.model.gpu.families import Family
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms.concurrency import rate_in_use
from lbmtune.model.gpu.terms.copies import bandwidth
from lbmtune.model.gpu.terms.fixed_costs import launch
from lbmtune.model.gpu.terms.instructions import precision_slots, rates
from lbmtune.model.gpu.terms.mva import shares
from lbmtune.model.gpu.terms.sectors import own_cells
from lbmtune.model.gpu.terms.spills import estimated_by_registers, local_memory
from lbmtune.model.instructions import arithmetic
from lbmtune.model.machine.description import WORD_BYTES
from lbmtune.model.roofline import memory_term
from lbmtune.records import Resources, Term
from lbmtune.records.terms import ISSUE, LATENCY, LAUNCH, LOCAL, RUNS, SECTORS

_BESIDES, _FACE, _COPIED = 289, 10, 40
"""Instructions of a thread that are not counted on the text, mostly addresses and predicates: of a step; of a face; of
a face whose populations are first copied to shared memory. From counters of four kernels of D3Q19 in single precision
(instructions of warps over their number, less what `slots` counts): `lbmtune profile` counts them again."""
_WAITS = {"registers": 2, "shared": 1}
"""Loads that a warp waits for one after the other: of its moments, and of faces unless those are copied to shared
memory meanwhile. Reasoned, not measured."""
_AT_ONCE = 512
"""Threads that go through a step together, of larger blocks: 1,024 threads hide as much as two blocks of half the size.
Seen in a comparison of fourteen kernels (`docs/guide/moments.md`), and in no micro-benchmark."""
_OF_TILE, _LESS_OF_TILE = 36, 24
"""Registers of a cell besides a value for each population: 18 to 35 of those that `compile_cuda` reports for compute
capability 9.0 (ten kernels: D2Q9, D3Q19, D3Q27, single and double precision, tiles of 256 and 512 cells); and how many
of them a compiler can do without."""
_TILE_RUNS = {"tiled": 0, "tiled-cells": 1}
"""Tiles of memory that one value has before another one begins; 0: all of them. Blocks are tiles, and go through whole
ones; other kernels go through rows of them."""


class FaceExchangeInputs(Inputs):
    """A kernel of tiles that exchange faces, with one cell per thread."""

    config: FaceExchange

    @cached_property
    def run_bytes(self) -> int:
        """Return the bytes of one moment that lie together before another one begins; 0: all of them."""
        memory = self.config.memory
        if memory.name in _TILE_RUNS:
            return _TILE_RUNS[memory.name] * prod(memory.tile) * self.config.stored.bytes
        return super().run_bytes

    @property
    def row_bytes(self) -> float:
        """Return the contiguous bytes of one moment; rows of tiles may lie together."""
        return own_cells(self.case, self.config).piece_bytes


def estimated(case: Case, config: FaceExchange) -> Resources:
    """Estimate the resources of a kernel that was not compiled."""
    wanted = _OF_TILE + config.computed.bytes // WORD_BYTES * case.stencil.q
    return estimated_by_registers(case, config, wanted, prod(config.tile), _LESS_OF_TILE)


def terms(inputs: FaceExchangeInputs, without: Collection[str]) -> list[Term]:
    """Return the terms of a calibrated machine."""
    together = max(1, inputs.blocks * inputs.block_threads // _at_once(inputs))
    moved = _moved(inputs, without)
    moved_s = sum(one.seconds for one in moved)
    computed = [one for one in _issue(inputs) if one.name not in without]
    waited = 0.0 if LATENCY in without else waits_s(inputs)
    found = shares([moved_s, *(one.seconds for one in computed)], waited, together)
    customers = f"{together} x {_at_once(inputs)} cells in flight"
    taken = [*(one.seconds / moved_s * found.stations[0] for one in moved), *found.stations[1:]]
    result = [
        replace(one, seconds=seconds, sentence=f"{one.sentence}, {one.seconds * 1e12:.3g} ps alone, {customers}")
        for one, seconds in zip([*moved, *computed], taken, strict=True)
    ]
    sentence = f"{_WAITS[inputs.config.prefetch_to]} loads one after the other, {customers}"
    result.append(Term(LATENCY, found.delay, sentence, "micro-benchmark `latency`"))
    if LOCAL not in without:
        result.append(local_memory(inputs))
    return result if LAUNCH in without else [*result, launch(inputs)]


def _moved(inputs: FaceExchangeInputs, without: Collection[str]) -> list[Term]:
    rate = rate_in_use(inputs, _bandwidth(inputs, by_runs=RUNS not in without), without)
    memory = memory_term(bytes_per_update(inputs.case, inputs.config), rate, "micro-benchmarks")
    return [memory] if SECTORS in without else [memory, partial(inputs)]


def _issue(inputs: FaceExchangeInputs) -> list[Term]:
    """Return the term of instructions; none if the issue rates of the machine are unknown."""
    case, config, machine = inputs.case, inputs.config, inputs.machine
    issued = rates(machine, inputs.threads // WARP, meeting=inputs.blocks == 1)
    if issued is None:
        return []
    needed = slots(case, config, precision_slots(config, machine))
    warps = inputs.launched_blocks * inputs.block_warps / case.fluid_sites
    sentence = f"{needed:.0f} issue slots of a warp for {1 / warps:.3g} updates"
    return [Term(ISSUE, needed * warps / issued.issued, sentence, issued.source)]


def _bandwidth(inputs: FaceExchangeInputs, *, by_runs: bool) -> float:
    """Return bytes per second: of moments, by the layout, and of what crosses faces, in lists of its own."""
    values, crossing = inputs.config.kept.values(inputs.case.stencil), face_values(inputs.case, inputs.config)
    laid_out, apart = bandwidth(inputs, by_runs=by_runs), bandwidth(inputs, by_runs=False)
    return (values + crossing) / (values / laid_out + crossing / apart)


def partial(inputs: FaceExchangeInputs) -> Term:
    """Return the time of sectors that a warp does not fill with moments, or a tile with what crosses a face.

    Whole sectors move between L1 and L2. Tiles side by side, which have the rest of them, run at the same time, so that
    memory moves them once.
    """
    alone = 0 < inputs.run_bytes < SECTOR_BYTES  # the copy of single elements has them already
    moments = 0.0 if alone else own_cells(inputs.case, inputs.config).unfilled_bytes
    unfilled = 2 * (moments + _unfilled_by_faces(inputs))
    seconds = unfilled / inputs.calibration.local_bytes_per_s["L2"]
    source = "counted on the layout; micro-benchmark `local`"
    return Term(SECTORS, seconds, f"{unfilled:.3g} bytes per update of sectors that are filled in part", source)


def _unfilled_by_faces(inputs: FaceExchangeInputs) -> float:
    """Return bytes per update, of the lists of the directions through either face."""
    config, stencil = inputs.config, inputs.case.stencil
    found = 0
    for axis, edge in enumerate(config.tile):
        list_bytes = prod(config.tile) // edge * config.stored.bytes
        found += 2 * len(through(stencil, axis)) * (-list_bytes % SECTOR_BYTES)
    return inputs.launched_blocks * found / inputs.case.fluid_sites


def _at_once(inputs: FaceExchangeInputs) -> int:
    return min(inputs.block_threads, _AT_ONCE)


def waits_s(inputs: FaceExchangeInputs) -> float:
    """Return the seconds of an update that threads which go together wait for loads, if nothing hides it."""
    parts = inputs.launched_blocks * inputs.block_threads / _at_once(inputs)
    waited = parts * _WAITS[inputs.config.prefetch_to] * inputs.calibration.latency_s
    return waited / inputs.machine.multiprocessors / inputs.case.fluid_sites


def slots(case: Case, config: FaceExchange, each: int) -> float:
    """Return the issue slots of a lane for an update. each: those of an arithmetic instruction."""
    computed = each * _arithmetic(case.lattice, case.forced, case.relaxes)
    values, links = config.kept.values(case.stencil), case.stencil.q - 1
    converted = 2 * values if config.stored.bytes < config.computed.bytes else 0
    faces = _faces(case.lattice, config.tile, _FACE + _COPIED * (config.prefetch_to == "shared"))
    return computed + 2 * (values + links) + converted + faces + _BESIDES


@lru_cache(maxsize=64)
def _arithmetic(name: str, forced: bool, relaxes: bool) -> int:
    """Count instructions of cells, which are relaxed and spread twice: within the tile, and for its faces."""
    stencil = lattice(name)
    known = ("unit", *moments.scalars(stencil, forced, relaxes))
    texts = moments.functions_at_once(stencil, forced, relaxes).split("__device__")[1:]
    relax, spread, sums, total = (arithmetic(text, known) for text in texts)
    return 2 * (relax + spread) + sums + total


@lru_cache(maxsize=256)
def _faces(name: str, tile: tuple[int, int, int], besides: int) -> float:
    """Count instructions of a lane for the faces that its warp has a cell at. besides: of a face, links excluded."""
    stencil, cells = lattice(name), [c[::-1] for c in product(*(range(n) for n in tile[::-1]))]
    warps = [cells[n : n + WARP] for n in range(0, len(cells), WARP)]
    found = 0
    for axis, warp, end in product(range(stencil.dimensions), warps, (0, 1)):
        if any(cell[axis] == end * (tile[axis] - 1) for cell in warp):
            found += besides + 2 * len(through(stencil, axis))
    return found / len(warps)


MODEL = Family(FaceExchangeInputs, terms, estimated)
