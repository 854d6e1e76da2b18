"""Read hardware counters of a GPU with Nsight Compute (`ncu`) over a few launches of a kernel.

The profiler runs as a separate program on `measure.profiling.profiler_target`. If it is not installed, or counters need
administrator rights, the result says so instead.
"""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.measure.profiling.profiler_target import launches, write_request
from lbmtune.records.profile import Counter, Counters
from lbmtune.scratch import scratch

SECTOR_BYTES = 32
_LIMIT_S = 300.0
_STALLS = (
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
)
"""Reasons why a warp does not issue; `selected`: it issues."""
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
PER_UPDATE = {
    "DRAM bytes read": "dram__bytes_read.sum",
    "DRAM bytes written": "dram__bytes_write.sum",
    "DRAM sectors read": "dram__sectors_read.sum",
    "DRAM sectors written": "dram__sectors_write.sum",
    "L2 sectors read by L1": "lts__t_sectors_srcunit_tex_op_read.sum",
    "L2 sectors written by L1": "lts__t_sectors_srcunit_tex_op_write.sum",
    "L2 sectors read by anyone": "lts__t_sectors_op_read.sum",
    "L2 sectors written by anyone": "lts__t_sectors_op_write.sum",
    "L1 sectors loaded": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "L1 sectors stored": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "warp instructions": "smsp__inst_executed.sum",
}
"""Counters that are summed over launches and divided by the updated cells."""
SHARES = {
    "L2 hits": "lts__t_sector_hit_rate.pct",
    "L2 hits of reads": "lts__t_sector_op_read_hit_rate.pct",
    "L2 hits of writes": "lts__t_sector_op_write_hit_rate.pct",
    "L1 hits": "l1tex__t_sector_hit_rate.pct",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue slots used": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "DRAM throughput": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "L2 throughput": "lts__t_bytes.avg.pct_of_peak_sustained_elapsed",
}
"""Counters in per cent of the maximum, averaged over launches by their time."""
TIME, STEP_TIME = "gpu__time_duration.sum", "kernels of a step"
"""Nanoseconds of a launch; of all launches of a step, without gaps."""
METRICS = (*PER_UPDATE.values(), *SHARES.values(), *(_STALL.format(name) for name in _STALLS), TIME)

Runner = Callable[[Sequence[str], Mapping[str, str]], "subprocess.CompletedProcess[str]"]


def _run(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False)


def counted(program: Program, device: str, sources: str = "", run: Runner = _run) -> Counters:
    """Return the counters of one cycle of a kernel. sources: folder for its text (`profiler_target`)."""
    return counted_each([program], device, sources, run)[0]


def counted_each(
    programs: Sequence[Program], device: str, sources: str = "", run: Runner = _run, limit_s: float = _LIMIT_S
) -> list[Counters]:
    """Return the counters of one cycle of each kernel, by one start of the profiler.

    Kernels whose turn comes after `limit_s` seconds have none.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        return [Counters(source="no counters: ncu (Nsight Compute) is not on PATH")] * len(programs)
    with scratch() as folder:
        requests = [folder / f"request-{number}.json" for number in range(len(programs))]
        for request, program in zip(requests, programs, strict=True):
            write_request(request, program.case, program.config, device, sources)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            done = run(command(ncu, programs, requests, limit_s), environment)
        except (OSError, subprocess.TimeoutExpired) as error:
            why = f"no counters: {ncu} did not finish ({type(error).__name__})"
            return [Counters(source=why)] * len(programs)
    return list(read_each(done.stdout + done.stderr, programs))


def command(ncu: str, programs: Sequence[Program], requests: Sequence[Path], limit_s: float = _LIMIT_S) -> list[str]:
    """Return the command line of Nsight Compute for one cycle of each kernel, with clocks and caches unchanged."""
    entries = "|".join(dict.fromkeys(entry for program in programs for entry in program.entries))
    return [
        *(ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--cache-control", "none"),
        *("--profile-from-start", "off", "--kernel-name", f"regex:^({entries})$", "--metrics", ",".join(METRICS)),
        *(
            sys.executable,
            "-m",
            "lbmtune.measure.profiling.profiler_target",
            "--limit",
            f"{limit_s:g}",
            *map(str, requests),
        ),
    ]


def read(output: str, case: Case, config: KernelConfig) -> Counters:
    """Return the counters of one kernel from the output of ncu, or the reason why there are none."""
    return _of_rows(list(_rows(output)), output, case, config)


def read_each(output: str, programs: Sequence[Program]) -> Iterator[Counters]:
    """Yield the counters of several kernels, whose launches follow each other; an incomplete one ends them."""
    rows = list(_rows(output))
    for program in programs:
        mine, rows = rows[: launches(program)], rows[launches(program) :]
        whole = mine if len(mine) == launches(program) else []
        yield _of_rows(whole, output, program.case, program.config)


def _of_rows(rows: Sequence[Mapping[str, float]], output: str, case: Case, config: KernelConfig) -> Counters:
    if not rows:
        return Counters(source=f"no counters: {_why(output)}")
    return Counters(source="Nsight Compute", found=tuple(_counters(rows, case, config)))


def _why(output: str) -> str:
    if "ERR_NVGPUCTRPERM" in output:
        return (
            "the driver restricts them to administrators (ERR_NVGPUCTRPERM); "
            "see https://developer.nvidia.com/ERR_NVGPUCTRPERM"
        )
    errors = [line.removeprefix("==ERROR==").strip() for line in output.splitlines() if line.startswith("==ERROR==")]
    return f"ncu reported: {errors[0]}" if errors else "ncu found no launch of the kernel"


def _rows(output: str) -> Iterator[dict[str, float]]:
    lines = output.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return
    table = csv.DictReader(StringIO("\n".join(line for line in lines[start:] if line.startswith('"'))))
    next(table, None)  # units
    for row in table:
        yield {name: value for name in METRICS if (value := _number(row.get(name))) is not None}


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None


def _counters(rows: Sequence[Mapping[str, float]], case: Case, config: KernelConfig) -> Iterator[Counter]:
    exchanges = config.exchanges(case.stencil)
    steps = max(config.propagation.period, 2 if exchanges else 1) * config.fused_steps
    updates = steps * case.fluid_sites
    ideal = _ideal(case, config)
    for name, metric in PER_UPDATE.items():
        if all(metric in row for row in rows):
            total = sum(row[metric] for row in rows)
            yield Counter(name=name, value=total / updates, unit="per update", ideal=ideal.get(name))
    if all(TIME in row for row in rows):
        yield Counter(name=STEP_TIME, value=sum(row[TIME] for row in rows) / (1e3 * steps), unit="us")
    weights = [row.get(TIME, 1.0) for row in rows]
    for name, metric in [*SHARES.items(), *((f"stalled: {s.replace('_', ' ')}", _STALL.format(s)) for s in _STALLS)]:
        if all(metric in row for row in rows):
            mean = sum(w * row[metric] for w, row in zip(weights, rows, strict=True)) / sum(weights)
            unit = "%" if name in SHARES else "warps per issue"
            yield Counter(name=name, value=mean, unit=unit)


def _ideal(case: Case, config: KernelConfig) -> dict[str, float]:
    """Return the ideal counters: every value read and written once, by full sectors."""
    moved = traffic(case, config)
    written = moved.populations / 2 + moved.macroscopics
    sides = {"read": moved.total - written, "written": written}
    found = {f"DRAM bytes {verb}": side for verb, side in sides.items()}
    found |= {f"DRAM sectors {verb}": side / SECTOR_BYTES for verb, side in sides.items()}
    found |= {f"L2 sectors {verb} by L1": side / SECTOR_BYTES for verb, side in sides.items()}
    if not config.reads_halo:
        found |= {"L1 sectors loaded": sides["read"] / SECTOR_BYTES, "L1 sectors stored": written / SECTOR_BYTES}
    return found
