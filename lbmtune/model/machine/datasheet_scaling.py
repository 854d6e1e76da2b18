"""Calibrations of GPUs whose bandwidths are known, measured or by a data sheet: the curves of a calibrated GPU, scaled.

How bandwidth falls with misaligned rows, short runs and few threads differs less between GPUs than bandwidth itself.
Rates of memory are scaled with bandwidths, rates on chip with multiprocessors times clock. Bytes after which L2 evicts
are scaled with its size, threads in flight with the bandwidth of each multiprocessor (Little's law). Latencies and
launches are kept.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from statistics import geometric_mean
from typing import Any

from lbmtune.model.machine.benchmark_names import SCALED_WORDS, Structures
from lbmtune.model.machine.curves import local_byte_s, times
from lbmtune.model.machine.description import Calibration, Machine

REFERENCE_BYTES_PER_S = 4.8e12
"""Memory bandwidth of the NVIDIA H200. Source: its data sheet."""
_L1_BYTES = {
    "sm_13": 16 << 10,
    "sm_35": 64 << 10,
    "sm_52": 144 << 10,
    "sm_60": 88 << 10,
    "sm_70": 128 << 10,
    "sm_80": 192 << 10,
    "sm_90": 256 << 10,
}
"""Of a multiprocessor, shared memory included. Source: CUDA C++ Programming Guide, compute capabilities."""


def with_scaled_calibration(machine: Machine, reference: Machine) -> Machine:
    """Return a machine with a data sheet and the scaled calibration of another; unchanged if either is missing."""
    sheet, found = machine.datasheet, reference.calibration
    if sheet is None or found is None:
        return machine
    memory = sheet.memory_bytes_per_s / REFERENCE_BYTES_PER_S
    return replace(
        machine,
        copy_bytes_per_s=reference.copy_bytes_per_s * memory,
        in_place_bytes_per_s=reference.in_place_bytes_per_s * memory,
        stream_bytes_per_s=times(reference.stream_bytes_per_s, memory),
        calibration=_scaled(found, machine, reference, memory, _on_chip(machine, sheet.clock_hz, reference)),
        calibrated_as=reference.name,
    )


def with_borrowed_calibration(machine: Machine, reference: Machine) -> Machine:
    """Return a machine of measured bandwidths with the scaled calibration of another; unchanged if that has none."""
    if reference.calibration is None:
        return machine
    chip = _on_chip(machine, machine.environment.max_sm_clock_hz, reference)
    calibration = _scaled(reference.calibration, machine, reference, bandwidth_ratio(machine, reference), chip)
    return replace(machine, calibration=calibration, calibrated_as=reference.name)


def bandwidth_ratio(machine: Machine, reference: Machine) -> float:
    """Return the measured bandwidths of a machine over those of another, in the mean of the access widths of both."""
    here, there = machine.stream_bytes_per_s, reference.stream_bytes_per_s
    return geometric_mean(here[width] / there[width] for width in here.keys() & there.keys())


def _on_chip(machine: Machine, clock_hz: float | None, reference: Machine) -> float:
    """Return multiprocessors times clock, over those of the reference; an unknown clock is that of the other."""
    other_hz = reference.environment.max_sm_clock_hz or clock_hz
    faster = clock_hz / other_hz if clock_hz and other_hz else 1.0
    return faster * machine.multiprocessors / reference.multiprocessors


def _scaled(found: Calibration, machine: Machine, reference: Machine, memory: float, chip: float) -> Calibration:
    rates = {one.name: getattr(found, one.name) for one in fields(found) if one.name.endswith("_bytes_per_s")}
    changed: dict[str, Any] = {name: times(rate, memory) for name, rate in rates.items()}
    local = found.local_bytes_per_s
    changed["local_bytes_per_s"] = {
        level: rate * (memory if level == "memory" else chip) for level, rate in local.items()
    }
    # only the bytes of a launch are scaled
    byte_s = 1 / found.runs_bytes_per_s["4"]
    small = {name: s + int(name.split()[1]) * byte_s * (1 / memory - 1) for name, s in found.small_s.items()}
    instructions = times(found.instructions_per_s, chip)
    l2_bytes = machine.caches_bytes.get("L2", 0) / reference.caches_bytes["L2"]
    in_flight = memory * reference.multiprocessors / machine.multiprocessors
    # what all threads in flight keep is held against the L2 cache
    kept = l2_bytes * reference.multiprocessors / machine.multiprocessors
    for name, factor in (("again", l2_bytes), ("pieces", l2_bytes), ("planes", l2_bytes), ("threads", in_flight)):
        table = f"{name}_bytes_per_s"
        changed[table] = _renamed(changed[table], SCALED_WORDS[table], factor)
    l1_bytes = _L1_BYTES.get(machine.environment.architecture, found.l1_bytes)
    scaled = replace(found, **changed, small_s=small, instructions_per_s=instructions, l1_bytes=l1_bytes)
    return replace(scaled, structures_bytes_per_s=_structures(replace(machine, calibration=scaled), kept))


def _structures(machine: Machine, kept: float) -> dict[str, float]:
    """Return copies of structures with local memory scaled by a factor, and its time accordingly.

    The additional time of everything else for local memory stays as measured on the reference.
    """
    assert machine.calibration is not None
    found = {}
    for name, rate in machine.calibration.structures_bytes_per_s.items():
        one = Structures.named(name)
        now, width = one._replace(local_bytes=round(one.local_bytes * kept)), one.element_bytes
        before_s, now_s = (
            each * local_byte_s(machine, width, one.threads * each, walking=True) / (one.elements * width)
            for each in (one.local_bytes, now.local_bytes)
        )
        found[now.name] = 1 / (1 / rate - before_s + now_s)
    return found


def _renamed(rates: Mapping[str, float], word: int, factor: float) -> dict[str, float]:
    """Return rates with one of the words of their names, a number, scaled by a factor."""

    def renamed(name: str) -> str:
        words = name.split()
        return " ".join((*words[:word], str(max(1, round(int(words[word]) * factor))), *words[word + 1 :]))

    return {renamed(name): rate for name, rate in rates.items()}
