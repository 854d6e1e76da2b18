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
from lbmtune.model.issue import UTILISATION_ALONE, slots_of_doubles
from lbmtune.model.machine import Machine
from lbmtune.model.occupancy import SCHEDULERS

MEETING_S = 1.3e-6
"""Of a step: from what a block sends until the others have read it. Fitted to 32^3, 48^3 and 64^3 cells on one H200."""


class Step(NamedTuple):
    """slots: issued for an update; seconds: of a step; source: where the share of the issue slots comes from."""

    slots: float
    seconds: float
    source: str


def step(case: Case, config: CudaConfig, machine: Machine) -> Step | None:
    """Of a domain on a machine; None where that does not say how many multiprocessors it has, and how fast they are."""
    clock_hz = machine.environment.max_sm_clock_hz
    if not clock_hz or not machine.multiprocessors:
        return None
    cells = config.block[0] * config.block[1] * config.march
    busiest = -(-case.sites // (cells * machine.multiprocessors)) * cells
    needed, share = (
        _slots(case, config, machine.environment.architecture),
        machine.issue_utilisation or UTILISATION_ALONE,
    )
    lanes_per_s = SCHEDULERS * WARP * clock_hz * share
    source = "measured" if machine.issue_utilisation else "of a prototype"
    return Step(needed, MEETING_S + busiest * needed / lanes_per_s, f"{share:.0%} of the issue slots, a share {source}")


def _slots(case: Case, config: CudaConfig, architecture: str) -> float:
    each = slots_of_doubles(architecture) if config.compute == "fp64" else 1
    moved = case.stencil.q + face_values(case.stencil, config)
    converted = moved if config.stored.bytes < config.computed.bytes else 0
    return each * _collision(case.collision, case.lattice, case.forced) + 2 * (moved + converted)


@lru_cache(maxsize=64)
def _collision(operator: str, name: str, forced: bool) -> int:
    return arithmetic(collide_function(operator, name, forced), ("unit", *collision_scalars(operator, name, forced)))
