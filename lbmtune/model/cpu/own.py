"""Kernels of users on a CPU: the roofline of the bytes and the operations of their description.

Source: Williams et al. 2009. The longer of both is the time; nothing is known of the text.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from lbmtune.model.cpu.inputs import CpuInputs, Family
from lbmtune.model.cpu.memory import memory
from lbmtune.model.machine.curves import closest
from lbmtune.model.machine.memory_walks import Kind
from lbmtune.model.roofline import CALIBRATED
from lbmtune.records import Term
from lbmtune.records.terms import ARITHMETIC


class OwnInputs(CpuInputs):
    """A user's kernel."""

    @property
    def kind(self) -> Kind:
        """Return the kind of walk through memory: in place, if a buffer is read and written."""
        own: Any = self.config
        return "in place" if any(one.role == "inout" for one in own.kernel.buffers) else "copy"

    @property
    def prefetched_in_cache(self) -> float:
        """Return 0: prefetches of an unknown text are unknown."""
        return 0.0


def arithmetic(inputs: OwnInputs) -> Term:
    """Return the time of the operations at the rate of multiplications with additions, in the widest registers."""
    own: Any = inputs.config
    operations = own.flop(inputs.case)
    width = closest(inputs.widths, inputs.config.lanes * own.computed.bytes)
    per_s = inputs.calibration.multiply_add_per_s[str(width)] * width / own.computed.bytes
    sentence = f"{operations:g} operations per update, {width // own.computed.bytes} at once"
    return Term(ARITHMETIC, operations / per_s / inputs.threads, sentence, CALIBRATED)


def terms(inputs: OwnInputs, without: Collection[str] = ()) -> list[Term]:
    """Return memory, and what operations take longer than that."""
    moved, computed = memory(inputs, without), arithmetic(inputs)
    return [moved, replace(computed, seconds=max(0.0, computed.seconds - moved.seconds))]


MODEL = Family(OwnInputs, terms, arithmetic)
