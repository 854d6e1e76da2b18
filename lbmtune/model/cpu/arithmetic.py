"""The term of arithmetic on a CPU: operations on registers, counted on the printed text."""

from lbmtune.codegen.streams import STREAMS
from lbmtune.model.cpu.inputs import CpuInputs
from lbmtune.model.instructions import operations
from lbmtune.model.machine.curves import closest
from lbmtune.model.machine.description import CpuCalibration, Machine
from lbmtune.model.roofline import CALIBRATED
from lbmtune.records import Environment, Term
from lbmtune.records.terms import ARITHMETIC

ESTIMATED = "estimated by the clock, not measured"
_PORTS = 2
"""Operations that a core begins in a cycle."""
_PASS_BYTES = {"znver1": 16, "znver2": 32, "znver3": 32, "znver4": 32}
"""Bytes of a register that a core works on in a cycle, where it has registers of more.

Source: AMD, Software Optimization Guides for families 17h and 19h.
"""
_DIVIDE_CYCLES = {4: 3, 32: 5, 64: 10}
"""Cycles from one division in single precision to the next, by the bytes of a register.

Both of Intel processors from Skylake on. Source: Fog, Instruction tables.
"""
_TO_MOVE = 3
"""Instructions to take a lane from or to another group: the lane itself, its place, and the others' places."""
_TO_CONVERT = {"fp16": 2, "fp16s": 2, "bf16": 6, "fp16c": 13}
"""Instructions of a vector from or to 16 bits, the mean of both ways, as `backend.cpu.simd` prints them."""


def estimated_calibration(machine: Machine) -> CpuCalibration | None:
    """Return the rates of the cores of a machine by their clock, for arithmetic alone; None without a clock."""
    if not machine.core_clock_hz:
        return None
    return CpuCalibration(
        walks_bytes_per_s={},
        thread_walks_bytes_per_s={},
        cached_bytes_per_s={},
        multiply_add_per_s={
            str(width): _PORTS * machine.core_clock_hz / _passes(width, machine.environment) for width in _DIVIDE_CYCLES
        },
        divide_per_s={str(width): machine.core_clock_hz / cycles for width, cycles in _DIVIDE_CYCLES.items()},
        refill_s=0.0,
    )


def _passes(width: int, environment: Environment) -> float:
    """Return the operations that a core does for one on so many bytes: it splits those of more than it has."""
    bits = environment.vector_bits
    widest = min(_PASS_BYTES.get(environment.architecture, width), bits // 8 if bits else width)
    return max(1.0, width / widest)


def arithmetic(inputs: CpuInputs) -> Term:
    """Return the time of the operations of the collision and of moving lanes, at the rates of their width."""
    config, found = inputs.config, inputs.calibration
    lanes = config.lanes
    width = closest(inputs.widths, lanes * config.computed.bytes)
    counted = operations(inputs.text)
    each = counted.plain + _moves(inputs) * (lanes > 1) + _conversions(inputs)
    plain_s = _plain_s(inputs, str(width), each, counted.products)
    vector_s = (plain_s + counted.quotients / found.divide_per_s[str(width)]) * inputs.repeated
    repeated = f", {inputs.repeated:.2f} times" if inputs.repeated > 1 else ""
    divisions = f"{counted.quotients} division{'s' * (counted.quotients != 1)}"
    sentence = f"{each:.0f} operations and {divisions} per update{repeated}, {lanes} cells at once"
    return Term(ARITHMETIC, vector_s / lanes / inputs.threads, sentence, CALIBRATED)


def _plain_s(inputs: CpuInputs, width: str, each: float, with_product: int) -> float:
    """Return the seconds of operations on a core.

    Some cores, such as Zen, add in registers beside products. On more values than registers no operation is faster than
    was measured with that many: nearly half of the instructions then move values. Without a measurement, sums beside
    products gain nothing.
    """
    found = inputs.calibration
    alone, many = found.multiply_add_per_s[width], inputs.case.stencil.q >= STREAMS
    limits_s = [max(with_product, each - with_product) / alone, each / found.mixed_per_s.get(width, alone)]
    if many:
        limits_s.append(each / found.worked_per_s.get(width, alone))
    return max(limits_s)


def _moves(inputs: CpuInputs) -> float:
    """Return the instructions of a cell for lanes that come from or go to the adjacent group."""
    if inputs.config.memory.run <= 1:
        return 0.0
    places = [place for phase in inputs.phases for access in phase.accesses for place in (access.read, access.write)]
    return _TO_MOVE * sum(bool(place.offset[0]) for place in places) / len(inputs.phases)


def _conversions(inputs: CpuInputs) -> int:
    config = inputs.config
    narrow = config.stored.bytes < config.computed.bytes
    return 2 * inputs.case.stencil.q * _TO_CONVERT.get(config.storage, 2) if narrow else 0
