"""What a step takes of a kernel that keeps populations on chip: all blocks meet, and issue instructions in between.

Instructions are counted as in `model.issue`: the collision on the printed text, and one for each value that is taken
out of shared memory, put back, sent and received. Addresses are not counted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.march import WARP
from lbmtune.catalogue.resident import face_values
from lbmtune.codegen.cuda.physics import collide_function, collision_scalars
from lbmtune.model.instructions import arithmetic
from lbmtune.model.issue import rates, slots_of_doubles
from lbmtune.model.machine import Machine

_WORD_BYTES = 4


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
    cells = config.block[0] * config.block[1] * config.march
    busiest = -(-case.sites // (cells * machine.multiprocessors)) * cells
    at_once = busiest * machine.multiprocessors / WARP
    needed, moved = _slots(case, config, machine.environment.architecture), 2 * _values(case, config)
    exchanged = moved * config.computed.bytes / _WORD_BYTES
    return Step(
        slots=needed,
        seconds=at_once * needed / found.issued,
        exchanges=exchanged,
        exchange_s=at_once * exchanged / found.exchanged,
        meeting_s=machine.calibration.meeting_s,
        source=found.source,
    )


def _values(case: Case, config: CudaConfig) -> float:
    """Taken out of shared memory, or received, for an update; as many are put back, or sent."""
    return case.stencil.q + face_values(case.stencil, config)


def _slots(case: Case, config: CudaConfig, architecture: str) -> float:
    each = slots_of_doubles(architecture) if config.compute == "fp64" else 1
    moved = _values(case, config)
    converted = moved if config.stored.bytes < config.computed.bytes else 0
    return each * collision_slots(case.collision, case.lattice, case.forced) + 2 * (moved + converted)


@lru_cache(maxsize=64)
def collision_slots(operator: str, name: str, forced: bool) -> int:
    """Instructions of a collision, as counted on the printed text."""
    return arithmetic(collide_function(operator, name, forced), ("unit", *collision_scalars(operator, name, forced)))
