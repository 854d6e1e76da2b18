"""One step of a box or of sites on a CPU: memory, arithmetic, and lines that L1 loses.

As in the ECM model (Treibig and Hager 2010) a kernel takes the time of its arithmetic in registers and of its loads and
stores from L1 to memory. The latter is measured as a walk (`model.machine.memory_walks`): streams that are read and
written with the same width, in the same place or in another one, starting in lines as rows of the kernel do. A core
looks ahead for some tens of nanoseconds, in which caches answer and memory does not, so memory adds to all else.
Parameters come from micro-benchmarks alone.
"""

from collections.abc import Collection
from dataclasses import replace

from lbmtune.model.cpu.arithmetic import arithmetic
from lbmtune.model.cpu.inputs import CpuInputs, Family
from lbmtune.model.cpu.l1_refills import l1_refills
from lbmtune.model.cpu.memory import hidden_share, memory
from lbmtune.records import Term
from lbmtune.records.terms import ARITHMETIC, REFILLS


def terms(inputs: CpuInputs, without: Collection[str] = ()) -> list[Term]:
    """Return memory, the arithmetic that memory does not hide, and lines that L1 loses."""
    moved, computed = memory(inputs, without), arithmetic(inputs)
    found = [moved]
    if ARITHMETIC not in without:
        steps = inputs.config.fused_steps
        hidden = hidden_share(inputs, without) * min(moved.seconds, computed.seconds / steps)
        found.append(replace(computed, seconds=computed.seconds - hidden))
    if REFILLS not in without:
        found.append(l1_refills(inputs))
    return found


MODEL = Family(CpuInputs, terms)
