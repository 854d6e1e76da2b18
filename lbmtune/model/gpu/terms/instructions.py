"""Issue rates of a GPU, and instructions of what several families compute, counted on the printed text."""

from functools import lru_cache
from typing import NamedTuple

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.limits import SCHEDULERS
from lbmtune.catalogue.moments.basis import upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moments
from lbmtune.codegen.cuda.shared.physics import collide_function, collision_scalars
from lbmtune.codegen.moment_stages import Sums
from lbmtune.model.instructions import arithmetic
from lbmtune.model.machine.curves import by_number
from lbmtune.model.machine.description import Machine
from lbmtune.records import Term
from lbmtune.records.terms import EXCHANGE, ISSUE

_MULTIPLY_ADD, _INDEPENDENT = "multiply-add, ", 8
"""The instruction that was measured, and how many independent ones each warp has."""
_SLOTS_OF_DOUBLES = {"sm_35": 3, "sm_37": 3, **dict.fromkeys(("sm_60", "sm_70", "sm_80", "sm_90", "sm_100"), 2)}
_FEW_DOUBLES = 64
"""Units for single over those for double precision, by architecture; the others have 1/32 or fewer of them.

Source: CUDA C++ Programming Guide, throughput of arithmetic instructions.
"""


class Rates(NamedTuple):
    """Instructions of warps per second of the whole device: all of them, and those that exchange words."""

    issued: float
    exchanged: float
    source: str


def rates(machine: Machine, warps: int, *, meeting: bool) -> Rates | None:
    """Return the rates with a number of warps per multiprocessor; None if the description of the machine lacks them.

    meeting: the warps synchronise. Source: `Calibration.instructions_per_s`, with eight independent instructions per
    warp, as the populations and sums of a cell are independent. Without a measurement: all slots, and a quarter of them
    for exchanges (CUDA C++ Programming Guide, throughput of instructions).
    """
    clock_hz = machine.environment.max_sm_clock_hz
    if not clock_hz or not machine.multiprocessors:
        return None
    measured = machine.calibration.instructions_per_s if machine.calibration else {}
    if not measured:
        slots_per_s = machine.multiprocessors * SCHEDULERS * clock_hz
        return Rates(slots_per_s, slots_per_s / SCHEDULERS, "all issue slots, not measured")
    kind = f" warps of {_INDEPENDENT}" + (", meeting" if meeting else "")
    known = by_number(tuple(measured), _MULTIPLY_ADD, kind)
    nearest = min(known, key=lambda count: abs(count - warps))
    # fewer warps leave some of the schedulers idle
    issued = measured[known[nearest]] * min(1.0, warps / nearest)
    return Rates(issued, min(measured["shuffle"], measured["shared memory"]), "micro-benchmark `instructions`")


def precision_slots(config: CudaConfig, machine: Machine) -> int:
    """Return the issue slots of an arithmetic instruction in the precision of a kernel.

    Cards of one architecture differ in their units for double precision, which a data sheet tells by its rates.
    """
    if config.compute != "fp64":
        return 1
    if sheet := machine.datasheet:
        return max(1, round(sheet.fp32_flops_per_s / sheet.fp64_flops_per_s))
    return _SLOTS_OF_DOUBLES.get(machine.environment.architecture.rstrip("af"), _FEW_DOUBLES)


@lru_cache(maxsize=64)
def collision_slots(operator: str, name: str, forced: bool) -> int:
    """Return the instructions of a collision."""
    return arithmetic(collide_function(operator, name, forced), ("unit", *collision_scalars(operator, name, forced)))


class Issue(NamedTuple):
    """Issue slots of an update, waste included, and exchanges of words between lanes and through shared memory.

    source: of the rates; useful: share of the computed cells that are no halo.
    """

    slots: float
    seconds: float
    exchanges: float
    exchange_s: float
    source: str
    useful: float = 1.0

    def terms(self, where: str, included: str = "") -> list[Term]:
        """Return the terms of instructions and exchanges. where: words are exchanged; included: besides the update."""
        slots, words = f"{self.slots:.0f} issue slots", f"{self.exchanges:.0f} words {where}"
        return [
            Term(ISSUE, self.seconds, f"{slots} per update{included}", self.source),
            Term(EXCHANGE, self.exchange_s, f"{words} per update{included}", self.source),
        ]


class Stage(NamedTuple):
    """Instructions of relaxing, spreading, summing up and gathering a cell.

    movers: populations that go right, as many go left; sums: values that a row passes up, and as many down.
    """

    arithmetic: int
    movers: int
    sums: int


@lru_cache(maxsize=64)
def moments_stage(case: Case) -> Stage:
    """Return the stage of a cell of moments."""
    stencil, forced, relaxes = case.stencil, case.forced, case.relaxes
    text, arguments = moments.functions(stencil, forced, relaxes=relaxes), moments.scalars(stencil, forced, relaxes)
    sums = Sums(upright(stencil))
    return Stage(arithmetic(text, ("unit", *arguments)), len(sums.movers), len(sums.along_y(1)))
