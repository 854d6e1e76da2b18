"""The terms of tiles of moments that leave at their faces what crosses them (`halo=faces`).

The blocks of a multiprocessor queue for memory and for what is computed, as planes of a march do (`model.gpu.mva`), and
each waits for its loads, large ones in parts. Memory has runs and partial sectors of the moments, by the layout, and of
the lists of faces. Warps issue as a whole, lanes without a thread included. Arithmetic is counted on the printed text.
What the copy of a face takes, for all lanes of a warp where one of them has such a cell, and what a thread does
besides, are from counters of an H200.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.face_exchange import face_values, through
from lbmtune.catalogue.families.cuda.temporal_blocking import SECTOR_BYTES
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.limits import WARP
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moments
from lbmtune.lattice import lattice
from lbmtune.model.gpu.copy_terms import bandwidth
from lbmtune.model.gpu.direct import SHARES
from lbmtune.model.gpu.fixed_costs import launch
from lbmtune.model.gpu.inputs import ISSUE, LATENCY, LAUNCH, LOCAL, RUNS, SECTORS, Subject, launched_blocks
from lbmtune.model.gpu.instruction_issue import rates, slots_of_doubles
from lbmtune.model.gpu.mva import shares
from lbmtune.model.gpu.occupancy import warps_of
from lbmtune.model.gpu.sectors import own_cells
from lbmtune.model.gpu.spills import local_memory
from lbmtune.model.gpu.temporal_blocking import memory_term
from lbmtune.model.instructions import arithmetic
from lbmtune.records import Term

_BESIDES, _FACE, _COPIED = 289, 10, 40
"""Instructions of a thread besides those that are counted, addresses and predicates for the most part: of a step; of a
face; and more of one whose populations are copied to shared memory first. From counters of four kernels of D3Q19 in
single precision (instructions of warps over their number, less what `slots` counts otherwise): `lbmtune profile` counts
them again."""
_WAITS = {"registers": 2, "shared": 1}
"""Loads that a warp waits for one after the other: of its moments, and of faces, unless those are copied to shared
memory meanwhile. Reasoned, not measured."""
_AT_ONCE = 512
"""Threads that go through a step together, of larger blocks: those of 1,024 hide as much as two of half the size. Seen
in a race of fourteen kernels (`docs/guide/moments.md`), and in no micro-benchmark."""


def terms(subject: Subject, without: Collection[str]) -> list[Term]:
    """Of a calibrated machine."""
    case, config, machine = subject.case, subject.config, subject.machine
    together = max(1, subject.blocks * prod(config.block) // _at_once(config))
    rate = _bandwidth(subject, by_runs=RUNS not in without)
    for name, share in SHARES.items():
        if name not in without:
            rate *= share(subject)
    memory = memory_term(bytes_per_update(case, config), rate, "micro-benchmarks")
    moved = [memory] if SECTORS in without else [memory, partial(subject)]
    moved_s = sum(one.seconds for one in moved)
    computed: list[Term] = []
    issued = rates(machine, subject.threads // WARP, meeting=subject.blocks == 1)
    needed = slots(case, config, machine.environment.architecture)
    if issued and ISSUE not in without:
        warps = launched_blocks(subject) * warps_of(config) / case.fluid_sites
        sentence = f"{needed:.0f} slots of a warp for {1 / warps:.3g} updates"
        seconds = needed * warps / issued.issued
        computed.append(Term(name=ISSUE, seconds=seconds, sentence=sentence, source=issued.source))
    waited = 0.0 if LATENCY in without else waits_s(subject)
    found = shares([moved_s, *(one.seconds for one in computed)], waited, together)
    told = f"{together} x {_at_once(config)} cells on their way"
    taken = [*(one.seconds / moved_s * found.stations[0] for one in moved), *found.stations[1:]]
    result = [
        replace(one, seconds=seconds, sentence=f"{one.sentence}, {one.seconds * 1e12:.3g} ps, {told}")
        for one, seconds in zip([*moved, *computed], taken, strict=True)
    ]
    sentence = f"{_WAITS[config.fetch]} loads one after the other, {told}"
    result.append(Term(name=LATENCY, seconds=found.delay, sentence=sentence, source="micro-benchmark `latency`"))
    if LOCAL not in without:
        result.append(local_memory(subject))
    return result if LAUNCH in without else [*result, launch(subject)]


def _bandwidth(subject: Subject, *, by_runs: bool) -> float:
    """Bytes per second: of moments, which lie as the layout has them, and of what crosses, in lists of its own."""
    values, crossing = subject.config.kept.values(subject.case.stencil), face_values(subject.case, subject.config)
    laid_out, apart = bandwidth(subject, by_runs=by_runs), bandwidth(subject, by_runs=False)
    return (values + crossing) / (values / laid_out + crossing / apart)


def partial(subject: Subject) -> Term:
    """What sectors take that a warp does not fill with moments, or a tile with what crosses one of its faces.

    Between L1 and L2 whole sectors are moved. Tiles side by side, which have the rest of them, are at work at the same
    time, so that memory moves them once.
    """
    case, config = subject.case, subject.config
    alone = 0 < subject.run_bytes < SECTOR_BYTES  # the copy of single elements has them already
    moments = 0.0 if alone else own_cells(case, config).unfilled_bytes
    unfilled = 2 * (moments + _unfilled_by_faces(subject))
    return Term(
        name=SECTORS,
        seconds=unfilled / subject.calibration.local_bytes_per_s["L2"],
        sentence=f"{unfilled:.3g} bytes per update of sectors that are filled in part",
        source="counted on the layout; micro-benchmark `local`",
    )


def _unfilled_by_faces(subject: Subject) -> float:
    """Bytes per update, of the lists of the directions through either face."""
    config, stencil = subject.config, subject.case.stencil
    found = 0
    for axis, edge in enumerate(config.block):
        list_bytes = prod(config.block) // edge * config.stored.bytes
        found += 2 * len(through(stencil, axis)) * (-list_bytes % SECTOR_BYTES)
    return launched_blocks(subject) * found / subject.case.fluid_sites


def _at_once(config: CudaConfig) -> int:
    return min(prod(config.block), _AT_ONCE)


def waits_s(subject: Subject) -> float:
    """Seconds of an update that threads which go together wait for loads, if nothing hides it."""
    config, machine = subject.config, subject.machine
    parts = launched_blocks(subject) * prod(config.block) / _at_once(config)
    waited = parts * _WAITS[config.fetch] * subject.calibration.latency_s
    return waited / machine.multiprocessors / subject.case.fluid_sites


def slots(case: Case, config: CudaConfig, architecture: str) -> float:
    """Issue slots of a lane for an update."""
    each = slots_of_doubles(architecture) if config.compute == "fp64" else 1
    computed = each * _arithmetic(case.lattice, case.forced, case.relaxes)
    values, links = config.kept.values(case.stencil), case.stencil.q - 1
    converted = 2 * values if config.stored.bytes < config.computed.bytes else 0
    faces = _faces(case.lattice, config.block, _FACE + _COPIED * config.copies_ahead)
    return computed + 2 * (values + links) + converted + faces + _BESIDES


@lru_cache(maxsize=64)
def _arithmetic(name: str, forced: bool, relaxes: bool) -> int:
    """Cells are relaxed and spread twice: within the tile, and for its faces."""
    stencil = lattice(name)
    known = ("unit", *moments.scalars(stencil, forced, relaxes))
    texts = moments.functions_at_once(stencil, forced, relaxes).split("__device__")[1:]
    relax, spread, sums, total = (arithmetic(text, known) for text in texts)
    return 2 * (relax + spread) + sums + total


@lru_cache(maxsize=256)
def _faces(name: str, block: tuple[int, int, int], besides: int) -> float:
    """Of a lane, over the faces that its warp has a cell at: links are read and left. besides: of a face."""
    stencil, cells = lattice(name), [c[::-1] for c in product(*(range(n) for n in block[::-1]))]
    warps = [cells[n : n + WARP] for n in range(0, len(cells), WARP)]
    found = 0
    for axis, warp, end in product(range(stencil.dimensions), warps, (0, 1)):
        if any(cell[axis] == end * (block[axis] - 1) for cell in warp):
            found += besides + 2 * len(through(stencil, axis))
    return found / len(warps)
