"""Kernels of users on a GPU: the roofline of the bytes of their description, with threads in flight and spills.

Registers and shared memory are those of the compiled kernel: until it is compiled, few registers are assumed.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from lbmtune.catalogue.footprint import bytes_per_update, traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.families import Family
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms.concurrency import SHARES
from lbmtune.model.gpu.terms.copies import plain_bandwidth
from lbmtune.model.machine.curves import local_byte_s
from lbmtune.model.machine.description import Machine
from lbmtune.model.roofline import CALIBRATED, memory_term
from lbmtune.records import Entry, Resources, Term
from lbmtune.records.terms import LOCAL

_REGISTERS = 32
"""Registers of a thread that are assumed of a kernel that is not compiled."""


class OwnInputs(Inputs):
    """A user's kernel."""

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Return the resources of the entry, if it is compiled."""
        return tuple(self.resources.entries.values())

    @property
    def cells_per_thread(self) -> float:
        """Return the cells of a thread, as the grid covers the domain."""
        return self.case.sites / (self.launched_blocks * self.block_threads)


def terms(inputs: OwnInputs, without: Collection[str]) -> list[Term]:
    """Return memory, spills, and what they take longer with the threads in flight."""
    rate = plain_bandwidth(inputs)
    found = [memory_term(bytes_per_update(inputs.case, inputs.config), rate, CALIBRATED)]
    if LOCAL not in without:
        found.append(_spills(inputs))
    shares: Mapping[str, Any] = SHARES
    for name, of_bandwidth in shares.items():
        if name not in without:
            share, seconds = of_bandwidth(inputs), sum(one.seconds for one in found)
            found.append(Term(name, seconds / share - seconds, f"{share:.1%} of the bandwidth in use", CALIBRATED))
    return found


def _spills(inputs: OwnInputs) -> Term:
    spilled = max((one.spill_bytes for one in inputs.entries), default=0) / inputs.cells_per_thread
    local = inputs.threads * max((one.local_bytes for one in inputs.entries), default=0)
    seconds = spilled * local_byte_s(inputs.machine, inputs.access_bytes, local, walking=False) if spilled else 0.0
    return Term(LOCAL, seconds, f"{spilled:.3g} bytes of spilled registers per update", "compiled code")


def _estimated(_case: Case, config: Any) -> Resources:
    return Resources(registers=_REGISTERS, shared_bytes=config.shared_bytes(_case))


def _memory_bytes(case: Case, config: Any, _machine: Machine, _at_once: int = 0) -> float:
    return traffic(case, config).total


MODEL = Family(OwnInputs, terms, _estimated, _memory_bytes, streams=False)
