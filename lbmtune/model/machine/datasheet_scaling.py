"""A GPU of which nobody has measured more than its maker says: the curves of one that was calibrated, scaled to it.

How bandwidth falls with misaligned rows, short runs and few threads differs less between GPUs than bandwidth itself.
What goes through memory is scaled with the bandwidths of the data sheets, what stays on chip with multiprocessors times
clock. Bytes after which the L2 cache has lost something are scaled with its size, threads that memory needs in flight
with its bandwidth for each multiprocessor (Little's law). Latencies and launches are taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from lbmtune.model.machine.caches import local_byte_s
from lbmtune.model.machine.description import Calibration, Datasheet, Machine

LENDER_BYTES_PER_S = 4.8e12
"""Memory bandwidth of the NVIDIA H200. Source: its data sheet."""
_L1_BYTES = {"sm_35": 64 << 10, "sm_70": 128 << 10, "sm_80": 192 << 10, "sm_90": 256 << 10}
"""Of a multiprocessor, shared memory included. Source: CUDA C++ Programming Guide, compute capabilities."""


def borrowed(machine: Machine, lender: Machine) -> Machine:
    """A machine known by its data sheet with the calibration of another one; machines without either as they are."""
    sheet, found = machine.datasheet, lender.calibration
    if sheet is None or found is None:
        return machine
    memory = sheet.memory_bytes_per_s / LENDER_BYTES_PER_S
    return replace(
        machine,
        copy_bytes_per_s=lender.copy_bytes_per_s * memory,
        in_place_bytes_per_s=lender.in_place_bytes_per_s * memory,
        stream_bytes_per_s=_times(lender.stream_bytes_per_s, memory),
        calibration=_scaled(found, machine, lender, memory, _on_chip(machine, sheet, lender)),
        calibrated_as=lender.name,
    )


def _on_chip(machine: Machine, sheet: Datasheet, lender: Machine) -> float:
    """Multiprocessors times clock, against those of the lender."""
    clock_hz = lender.environment.max_sm_clock_hz or sheet.clock_hz
    return machine.multiprocessors * sheet.clock_hz / (lender.multiprocessors * clock_hz)


def _scaled(found: Calibration, machine: Machine, lender: Machine, memory: float, chip: float) -> Calibration:
    rates = {one.name: getattr(found, one.name) for one in fields(found) if one.name.endswith("_bytes_per_s")}
    changed: dict[str, Any] = {name: _times(rate, memory) for name, rate in rates.items()}
    local = found.local_bytes_per_s
    changed["local_bytes_per_s"] = {
        level: rate * (memory if level == "memory" else chip) for level, rate in local.items()
    }
    # of a launch, all but its bytes takes what it took
    byte_s = 1 / found.runs_bytes_per_s["4"]
    small = {name: s + int(name.split()[1]) * byte_s * (1 / memory - 1) for name, s in found.small_s.items()}
    instructions = _times(found.instructions_per_s, chip)
    l2_bytes = machine.caches_bytes.get("L2", 0) / lender.caches_bytes["L2"]
    in_flight = memory * lender.multiprocessors / machine.multiprocessors
    # what all threads in flight keep is held against the L2 cache
    kept = l2_bytes * lender.multiprocessors / machine.multiprocessors
    for name, word, factor in (
        *(("again", 0, l2_bytes), ("pieces", 0, l2_bytes), ("planes", 0, l2_bytes)),
        ("threads", 2, in_flight),
    ):
        changed[f"{name}_bytes_per_s"] = _named_anew(changed[f"{name}_bytes_per_s"], word, factor)
    l1_bytes = _L1_BYTES.get(machine.environment.architecture, found.l1_bytes)
    scaled = replace(found, **changed, small_s=small, instructions_per_s=instructions, l1_bytes=l1_bytes)
    return replace(scaled, structures_bytes_per_s=_structures(replace(machine, calibration=scaled), kept))


def _structures(machine: Machine, kept: float) -> dict[str, float]:
    """Copies of structures whose threads keep so many times as many words, which take as much longer or less.

    What all else takes longer for them is as it was measured with the words of the lender.
    """
    assert machine.calibration is not None
    found = {}
    for name, rate in machine.calibration.structures_bytes_per_s.items():
        words = name.split()
        element_bytes, elements, threads, local_bytes = (int(words[at]) for at in (0, 2, 4, 6))
        fewer_bytes = round(local_bytes * kept)
        before_s, now_s = (
            local * local_byte_s(machine, element_bytes, threads * local, walking=True) / (elements * element_bytes)
            for local in (local_bytes, fewer_bytes)
        )
        found[" ".join((*words[:6], str(fewer_bytes), *words[7:]))] = 1 / (1 / rate - before_s + now_s)
    return found


def _named_anew(rates: Mapping[str, float], word: int, factor: float) -> dict[str, float]:
    """The same rates, with one of the words of their names, a number, so many times as large."""

    def renamed(name: str) -> str:
        words = name.split()
        return " ".join((*words[:word], str(max(1, round(int(words[word]) * factor))), *words[word + 1 :]))

    return {renamed(name): rate for name, rate in rates.items()}


def _times(rates: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: rate * factor for name, rate in rates.items()}
