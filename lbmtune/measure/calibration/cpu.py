"""Calibrate the CPU model: what bounds kernels besides the bandwidth of copies."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.codegen.probes.walks import DIVIDE, MIXED, MULTIPLY_ADD, OPERATIONS, walks_digest
from lbmtune.measure.calibration.cpu_bench import CpuBench
from lbmtune.measure.processes.worker import Progress
from lbmtune.model.machine.description import CpuCalibration
from lbmtune.model.machine.memory_walks import SCALAR_BYTES, Walk, calibrated, crowds, fillings

_ROUNDS, _LIMIT_S = 5, 35.0
"""Rounds through all benchmarks, since disturbances last longer than a sample; seconds after which none begins."""
_QUICK_LIMIT_S = 14.0
"""Seconds after which the only round of a quick calibration leaves benchmarks out that the model can do without."""
_REFILL = ""
Benchmarks = dict[str, Callable[[], float]]
"""Benchmarks by the names of their figures."""


def calibrate_cpu(
    device: Device,
    compiler: Compiler,
    caches_bytes: Mapping[str, int],
    progress: Progress,
    *,
    quick: bool = False,
) -> CpuCalibration:
    """Run all micro-benchmarks, in about half a minute; quick: once, in about 15 s. Raises what the device raises."""
    bench = CpuBench(device, compiler, caches_bytes)
    groups = {**_in_memory(bench, device.limits.cores), **_in_caches(bench)}
    found = _once(groups, progress) if quick else _in_rounds(groups, progress)
    arithmetic = found["arithmetic"]
    rates = {entry: {str(width): arithmetic[f"{entry} {width}"] for width in bench.widths} for entry in OPERATIONS}
    refills = {name: max(0.0, seconds) for name, seconds in found["lines of one set"].items()}
    return CpuCalibration(
        walks_bytes_per_s=found["streams"],
        thread_walks_bytes_per_s=found["streams of one thread"],
        cached_bytes_per_s=found["streams within the L2 caches"],
        multiply_add_per_s=rates[MULTIPLY_ADD],
        divide_per_s=rates[DIVIDE],
        worked_per_s=found["arithmetic on many values"],
        refill_s=max(0.0, found["refill of a line"][_REFILL]),
        last_cached_bytes_per_s=found["streams within the last cache"],
        filled_bytes_per_s=found["streams that fill the last cache"],
        hidden=found["streams with arithmetic"],
        cached_hidden=found["streams within the L2 caches with arithmetic"],
        mixed_per_s=rates[MIXED],
        refills_s=refills,
        digest=walks_digest(),
    )


def _in_memory(bench: CpuBench, cores: int) -> dict[str, Benchmarks]:
    """Return benchmarks of streams in memory and of arithmetic, by group."""
    widths, walks = bench.widths, list(calibrated(bench.widths))
    plain = [one for one in walks if not (one.shifted or one.ahead or one.grouped)]
    arithmetic = {f"{entry} {width}": partial(bench.per_s, entry, width) for entry in OPERATIONS for width in widths}
    return {
        "streams": {one.name: partial(bench.bytes_per_s, one, cores) for one in walks},
        "streams of one thread": {one.name: partial(bench.bytes_per_s, one, 1) for one in plain},
        "arithmetic": {**arithmetic},
        "arithmetic on many values": {str(width): partial(bench.worked_per_s, width) for width in widths},
        "streams with arithmetic": {one.name: partial(bench.hidden, one) for one in bench.workable},
        "refill of a line": {_REFILL: bench.refill_s},
        "lines of one set": {one.name: partial(bench.together_s, one) for one in crowds(widths)},
    }


def _in_caches(bench: CpuBench) -> dict[str, Benchmarks]:
    """Return benchmarks of streams in caches, by group; none of the last cache if it is too small."""
    near, far = bench.cached_lengths()
    within = [Walk("in place", width) for width in bench.widths]
    vectors = [one for one in within if one.access_bytes > SCALAR_BYTES]
    beyond = [*within, *(one._replace(ahead=True) for one in vectors)] if far else []
    filled = [one for walked in beyond if walked.access_bytes > SCALAR_BYTES for one in fillings(walked)]
    workable = [one for one in bench.workable if not one.ahead]
    return {
        "streams within the L2 caches": {
            str(one.access_bytes): partial(bench.cached_bytes_per_s, one, near) for one in within
        },
        "streams within the last cache": {one.name: partial(bench.cached_bytes_per_s, one, far) for one in beyond},
        "streams that fill the last cache": {
            one.name: partial(bench.cached_bytes_per_s, one.walk, bench.filling(one.share)) for one in filled
        },
        "streams within the L2 caches with arithmetic": {
            one.name: partial(bench.cached_hidden, one, near) for one in workable
        },
    }


_DISPENSABLE = (
    "arithmetic on many values",
    "streams with arithmetic",
    "lines of one set",
    "streams within the last cache",
    "streams that fill the last cache",
    "streams within the L2 caches with arithmetic",
)
"""Groups that the model can do without."""


def _once(groups: Mapping[str, Benchmarks], progress: Progress) -> dict[str, dict[str, float]]:
    """Return the figures of one run of each benchmark; the last groups are empty if time is short."""
    begin, found = time.monotonic(), dict[str, dict[str, float]]()
    for group in sorted(groups, key=_DISPENSABLE.__contains__):
        late = group in _DISPENSABLE and time.monotonic() - begin > _QUICK_LIMIT_S
        progress(f"{group}: left out, {_QUICK_LIMIT_S:.0f} s are over" if late else group)
        found[group] = {} if late else {name: one() for name, one in groups[group].items()}
    return found


def _in_rounds(groups: Mapping[str, Benchmarks], progress: Progress) -> dict[str, dict[str, float]]:
    """Return the medians of benchmarks that are run round after round."""
    found: dict[str, dict[str, list[float]]] = {group: {name: [] for name in ones} for group, ones in groups.items()}
    end = time.monotonic() + _LIMIT_S
    for number in range(_ROUNDS):
        if number and time.monotonic() > end:
            progress(f"{number} of {_ROUNDS} rounds: {_LIMIT_S:.0f} s are over")
            break
        for group, ones in groups.items():
            progress(f"{group}, round {number + 1} of {_ROUNDS}")
            for name, one in ones.items():
                found[group][name].append(one())
    return {group: {name: median(all_of) for name, all_of in ones.items()} for group, ones in found.items()}
