"""Terms that do not go through memory: fixed costs of a launch, first and last instructions, rings of ghost cells."""

from math import prod

from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.layouts.layout import arrays
from lbmtune.catalogue.limits import WARP
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms.array_of_structures import has_parts, ring_s
from lbmtune.model.gpu.terms.instructions import collision_slots, precision_slots, rates
from lbmtune.model.machine.curves import by_number, interpolated
from lbmtune.model.machine.description import WORD_BYTES
from lbmtune.records import Term
from lbmtune.records.terms import ISSUE, LAUNCH, RINGS

_RING_THREADS, _RING_SLOTS, _OF_ARRAYS = 128, 23, 33
"""Threads that refresh the ring of a block, and instructions for each population that a cell of it may hold: if
populations lie at distances that are known when the text is printed, and if each has an array of its own.

From the entry `refresh_read_0` of D3Q19 in a disassembly for compute capability 9.0 (`nvdisasm`, all but NOP) over 18.
They are 21 to 28 in `aos`, `aosoa`, `bundle`, `bundle-aosoa` and `tiled-cells` and 32 to 36 in `soa` and `tiled`, with
16, 32 and 64 bits, by blocks of 32x2x4, 16x4x1, 64x4x1 and of one row.
"""


def launch(inputs: Inputs) -> Term:
    """Return what a launch takes beyond its bytes."""
    case, config = inputs.case, inputs.config
    moved = traffic(case, config).total * case.fluid_sites * config.fused_steps
    more = launch_s(inputs, moved)
    seconds = more / (case.fluid_sites * config.fused_steps)
    return Term(LAUNCH, seconds, f"{more * 1e6:.2g} us per launch", "micro-benchmark `small`")


def launch_s(inputs: Inputs, moved: float) -> float:
    """Return the seconds of start and tail of a launch that moves some bytes, less the gain if L2 holds them.

    Source: copies of several sizes, launch after launch, by the same way of launching (`Calibration.small_s`). Beyond
    the largest of them it is constant.
    """
    curve = launch_curve(inputs)
    least, most = curve[0][0], curve[-1][0]
    rate = inputs.calibration.runs_bytes_per_s[str(WORD_BYTES)]
    return interpolated(curve, max(moved, least)) - min(moved, most) / rate


def launch_curve(inputs: Inputs) -> list[tuple[int, float]]:
    """Return the seconds of a launch of a copy by its bytes, sorted, for the way of launching of a kernel."""
    measured = inputs.calibration.small_s
    by_bytes = by_number(tuple(measured), f"{inputs.config.launch} ")
    return sorted((size, measured[name]) for size, name in by_bytes.items())


def first_and_last(inputs: Inputs) -> Term:
    """Return the instructions of a kernel of one step that memory does not hide: those of one wave of blocks.

    Counted are the collision on the printed text, a load, a store and their addresses for each value, conversions,
    weights that are taken and added where populations are stored as they are, and the loads of starts from shared
    memory, one for each access.
    """
    case, config, machine = inputs.case, inputs.config, inputs.machine
    found = rates(machine, inputs.threads // WARP, meeting=False)
    each = precision_slots(config, machine)
    values = 2 * case.stencil.q
    converted = values if config.stored.bytes < config.computed.bytes else 0
    each_access = 3 if config.addresses == "shared" else 2
    moved = converted + each_access * values / config.cells_per_thread
    weights = 0 if config.stored.shifted else values
    slots = each * (collision_slots(case.collision, case.lattice, case.forced) + weights) + moved
    at_once = machine.multiprocessors * inputs.blocks
    warps = inputs.block_warps / inputs.block_threads
    turns = max(1.0, inputs.launched_blocks / at_once)
    seconds = slots * warps / found.issued / turns if found else 0.0
    sentence = f"{slots:.0f} issue slots per update; the last of {turns:.3g} waves is not hidden"
    return Term(ISSUE, seconds, sentence, "counted on the text; micro-benchmark `instructions`")


def rings(inputs: Inputs) -> Term:
    """Return the instructions of the kernel that refreshes the rings of ghost cells around blocks.

    Its threads visit all cells of a block with its ring, and nearly every warp has a cell of the ring. Those of arrays
    of structures overlap with what that kernel moves.
    """
    case, config = inputs.case, inputs.config
    cut = [cells for cells in config.frame(case.stencil).blocks or () if cells]
    found = rates(inputs.machine, inputs.threads // WARP, meeting=False) if cut else None
    turns = -(-prod(cells + 2 for cells in cut) // _RING_THREADS)
    each = _OF_ARRAYS if arrays(config.memory, case.stencil.q) == case.stencil.q else _RING_SLOTS
    slots = turns * _RING_THREADS / prod(cut) * each * (case.stencil.q - 1) if cut else 0.0
    hidden_s = ring_s(inputs) if has_parts(inputs) else 0.0
    seconds = max(0.0, slots / WARP / found.issued - hidden_s) if found else 0.0
    sentence = f"{slots:.0f} issue slots per update to refresh ghost cells around blocks"
    return Term(RINGS, seconds, sentence, "as compiled; micro-benchmark `instructions`")
