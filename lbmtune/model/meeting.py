"""What a step takes of a kernel that keeps populations on chip: all blocks meet, and issue instructions in between.

Instructions are counted as in `model.issue`: the collision on the printed text, and one for each value that is taken
out of shared memory, put back, sent and received; of moments the stage of a march, and pieces of 16 bytes. Addresses
are not counted.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.march import WARP, block_cells
from lbmtune.catalogue.resident import face_values, planes_together
from lbmtune.codegen.cuda.physics import collide_function, collision_scalars
from lbmtune.model.instructions import arithmetic
from lbmtune.model.issue import rates, slots_of_doubles, stage_of
from lbmtune.model.machine import ACCESS_BYTES, Machine

_WORD_BYTES, _ADDED = 4, 2
"""_ADDED: additions for a value from another tile, as in D3Q19, of which 12 take 5 sums."""


class Step(NamedTuple):
    """slots: issued for an update; exchanges: words that go to and from shared memory. Times are those of a step.

    meeting_s: from what a block sends until the others have read it, as measured; source: of the other rates.
    """

    slots: float
    seconds: float
    exchanges: float
    exchange_s: float
    meeting_s: float
    source: str


def step(case: Case, config: CudaConfig, machine: Machine) -> Step | None:
    """Of a domain on a machine; None where nobody has measured how long blocks take to meet."""
    blocks = max(1, config.min_blocks)
    found = rates(machine, blocks * config.block[0] * config.block[1] // WARP, meeting=True)
    if found is None or machine.calibration is None:
        return None
    tile = block_cells(case.stencil, config)
    tiles = prod(-(-n // of) for n, of in zip(case.domain, tile, strict=True))
    busiest = -(-tiles // machine.multiprocessors) * prod(tile)
    at_once = busiest * machine.multiprocessors / WARP
    architecture = machine.environment.architecture
    if config.of_moments:
        needed, exchanged = _slots_of_moments(case, config, architecture), _words_of_moments(case, config)
    else:
        needed = _slots(case, config, architecture)
        exchanged = 2 * _values(case, config) * config.computed.bytes / _WORD_BYTES
    return Step(
        slots=needed,
        seconds=at_once * needed / found.issued,
        exchanges=exchanged,
        exchange_s=at_once * exchanged / found.exchanged,
        meeting_s=machine.calibration.meeting_s,
        source=found.source,
    )


def spilling_cells(config: CudaConfig) -> int:
    """Cells of a thread whose work spills once: its column of populations; of moments those of a pass."""
    if not config.of_moments:
        return config.march
    return planes_together(config) * config.rows * config.cells_per_thread


def _values(case: Case, config: CudaConfig) -> float:
    """Taken out of shared memory, or received, for an update; as many are put back, or sent."""
    return case.stencil.q + face_values(case.stencil, config)


def _slots(case: Case, config: CudaConfig, architecture: str) -> float:
    each = slots_of_doubles(architecture) if config.compute == "fp64" else 1
    moved = _values(case, config)
    converted = moved if config.stored.bytes < config.computed.bytes else 0
    return each * collision_slots(case.collision, case.lattice, case.forced) + 2 * (moved + converted)


def _slots_of_moments(case: Case, config: CudaConfig, architecture: str) -> float:
    """A stage of a march, and what is sent and received through faces."""
    each = slots_of_doubles(architecture) if config.compute == "fp64" else 1
    found, words = stage_of(case, config), config.computed.bytes // _WORD_BYTES
    values = config.kept.values(case.stencil)
    pieces = 2 * _in_shared_memory(config) * -(-values * config.stored.bytes // ACCESS_BYTES)
    converted = 2 * values if config.stored.bytes < config.computed.bytes else 0
    handed = 4 * -(-found.sums * config.computed.bytes // ACCESS_BYTES) / config.rows
    across = 2 * words * found.movers / config.cells_per_thread
    through_faces = (2 + each * _ADDED) * face_values(case.stencil, config)
    return each * found.arithmetic + pieces + converted + handed + across + through_faces


def _words_of_moments(case: Case, config: CudaConfig) -> float:
    """To and from shared memory, and to other lanes."""
    found, words = stage_of(case, config), config.computed.bytes // _WORD_BYTES
    kept = config.kept.values(case.stencil) * config.stored.bytes / _WORD_BYTES
    along = 4 * words * found.sums / config.rows if case.stencil.dimensions == 3 else 0
    return 2 * _in_shared_memory(config) * kept + along + 2 * words * found.movers / config.cells_per_thread


def _in_shared_memory(config: CudaConfig) -> float:
    """Share of the planes."""
    return 1 - config.held / config.march


@lru_cache(maxsize=64)
def collision_slots(operator: str, name: str, forced: bool) -> int:
    """Instructions of a collision, as counted on the printed text."""
    return arithmetic(collide_function(operator, name, forced), ("unit", *collision_scalars(operator, name, forced)))
