"""Interference of other programs on the same host, which changes the rates of a machine from minute to minute."""

from dataclasses import replace
from typing import Any

from lbmtune.model.machine.curves import times
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.memory_walks import GLANCED, Filling, glance
from lbmtune.records import Conditions

_OF_MEMORY = ("walks_bytes_per_s", "thread_walks_bytes_per_s")
_OF_LAST_CACHE = ("last_cached_bytes_per_s", "filled_bytes_per_s")
_OF_WORK = ("cached_bytes_per_s", "multiply_add_per_s", "worked_per_s", "mixed_per_s", "divide_per_s")
"""Tables that scale with a rate."""


def under_conditions(machine: Machine, conditions: Conditions) -> Machine:
    """Return the description of a machine with its rates scaled to the conditions of a measurement.

    Conditions hold rates of walks that calibration measures as well: memory scales walks through memory, the last cache
    those within it, work what a core does by itself. Rates without a measurement stay, and so does a machine that is no
    calibrated CPU.
    """
    found = machine.cpu
    if found is None:
        return machine
    one = glance(machine.environment.vector_bits)
    memory = _ratio(conditions.memory_bytes_per_s, found.walks_bytes_per_s.get(one.name))
    work = _ratio(conditions.work_per_s, found.worked_per_s.get(str(one.access_bytes)))
    last = _ratio(conditions.last_cache_bytes_per_s, found.filled_bytes_per_s.get(Filling(one, GLANCED).name))
    factors = {
        **dict.fromkeys(_OF_MEMORY, memory),
        **dict.fromkeys(_OF_LAST_CACHE, last),
        **dict.fromkeys(_OF_WORK, work),
        "refills_s": 1 / work,
    }
    changed: dict[str, Any] = {name: times(getattr(found, name), factor) for name, factor in factors.items()}
    return replace(
        machine,
        copy_bytes_per_s=memory * machine.copy_bytes_per_s,
        in_place_bytes_per_s=memory * machine.in_place_bytes_per_s,
        stream_bytes_per_s=times(machine.stream_bytes_per_s, memory),
        thread_bytes_per_s=machine.thread_bytes_per_s and memory * machine.thread_bytes_per_s,
        cpu=replace(found, **changed, refill_s=found.refill_s / work),
    )


def _ratio(now: float | None, described: float | None) -> float:
    return now / described if now and described else 1.0
