"""One step of a box, a cell or vector of cells per thread: seconds that an update takes of the whole device.

Terms are functions of case, configuration, compiled resources and calibration. They add up, because all of them use the
same memory; threads in flight then decide which share of its bandwidth is used. Parameters come from micro-benchmarks.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.model.gpu.families import Family
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms.array_of_structures import by_planes_s
from lbmtune.model.gpu.terms.concurrency import SHARES
from lbmtune.model.gpu.terms.copies import bandwidth, in_place, partial, runs
from lbmtune.model.gpu.terms.fixed_costs import first_and_last, launch, rings
from lbmtune.model.gpu.terms.solid_cells import solid_cells
from lbmtune.model.gpu.terms.spills import local_memory
from lbmtune.model.roofline import CALIBRATED, memory_term
from lbmtune.records import Term
from lbmtune.records import terms as names


class DirectInputs(Inputs):
    """A kernel of one cell or vector of cells per thread."""

    displaces = True
    displaced_byte_s = by_planes_s


Terms = Mapping[str, Callable[[Any], Term]]
FIXED: Terms = {names.LAUNCH: launch, names.ISSUE: first_and_last}
"""Terms that do not go through memory."""
_MOVED: Terms = {
    names.RUNS: runs,
    names.SECTORS: partial,
    names.SOLID: solid_cells,
    names.IN_PLACE: in_place,
    names.LOCAL: local_memory,
}


def terms(inputs: Inputs, without: Collection[str]) -> list[Term]:
    """Return the terms of a kernel of one step of a box."""
    return one_step_terms(inputs, without, _MOVED, {**FIXED, names.RINGS: rings})


def one_step_terms(inputs: Inputs, without: Collection[str], moved: Terms, fixed: Terms) -> list[Term]:
    """Return bytes and terms of what goes through memory, their excess at a share of the bandwidth, and the rest."""
    rate = bandwidth(inputs, by_runs=False)
    memory = memory_term(bytes_per_update(inputs.case, inputs.config), rate, CALIBRATED)
    found = [memory, *(term(inputs) for name, term in moved.items() if name not in without)]
    for name, of_bandwidth in SHARES.items():
        if name not in without:
            share, seconds = of_bandwidth(inputs), sum(one.seconds for one in found)
            found.append(Term(name, seconds / share - seconds, f"{share:.1%} of the bandwidth in use", CALIBRATED))
    return found + [term(inputs) for name, term in fixed.items() if name not in without]


MODEL = Family(DirectInputs, terms)
