"""Find what of this machine keeps studies from being right, fast or repeatable, and what to do about each.

Nothing is measured or changed. Files of the system are read below a root.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from lbmtune import quotas
from lbmtune.backend.cuda.nvrtc import version as nvrtc_version
from lbmtune.backend.registry import available, open_device
from lbmtune.cores import usable_cores
from lbmtune.errors import DeviceUnavailableError, InputError, LbmtuneError
from lbmtune.measure.calibration.machines import machine_path
from lbmtune.measure.profiling.perf_events import PerfError, counted
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Environment
from lbmtune.records.store import CACHE_VARIABLE, cache_folder, make_cache
from lbmtune.units import format_bytes

_ROOT = Path("/")
_CPU, _FIRST_GPU = "cpu", "0"
_BUSY = 0.1
"""Load per processor from which on other programs disturb what is measured."""
_LEAST_BYTES = 1 << 30
"""Free bytes that the binaries and logs of a study may need in the folder for temporary files."""


class State(StrEnum):
    """The weight of a finding: none, less speed or precision, or something that cannot be used."""

    OK = "ok"
    NOTE = "note"
    FAULT = "fault"


class Finding(NamedTuple):
    """One thing that was looked at. found: in words; todo: what to do, '' if nothing is."""

    what: str
    state: State
    found: str
    todo: str = ""


def examined(root: Path = _ROOT) -> list[Finding]:
    """Return what was found of devices, compilers, counters, clocks, memory and folders."""
    devices = {name: _opened(name) for name in dict.fromkeys((_CPU, _FIRST_GPU, *available()))}
    here = {name: one for name, one in devices.items() if isinstance(one, Environment)}
    return [
        *(_device(name, one) for name, one in devices.items()),
        *(_description(name, one) for name, one in here.items()),
        _nvrtc(),
        *([_gpu_counters(root)] if here.keys() - {_CPU} else []),
        _cpu_counters(),
        _governor(root),
        _huge_pages(root),
        _processors(),
        _memory(),
        _load(root),
        _cache(),
        _temporary_files(),
    ]


def _opened(name: str) -> Environment | LbmtuneError:
    try:
        return open_device(name).environment
    except (DeviceUnavailableError, InputError) as error:
        return error


def _device(name: str, found: Environment | LbmtuneError) -> Finding:
    what = f"device {name}"
    if isinstance(found, Environment):
        driver = f", driver {found.driver}" if name != _CPU else ""
        return Finding(what, State.OK, f"{found.device}, {format_bytes(found.memory_bytes)}{driver}")
    why, _, todo = str(found).rstrip(".").partition("; ")
    return Finding(what, State.FAULT if name == _CPU else State.NOTE, why, todo)


def _description(name: str, environment: Environment) -> Finding:
    what, path = f"description of {name}", machine_path(environment)
    calibrate = f"lbmtune devices --device {name} --calibrate"
    try:
        machine = read_machine(path)
    except InputError:
        return Finding(what, State.NOTE, "not measured yet", f"a study measures it first; or: {calibrate}")
    if not machine.calibrated:
        return Finding(what, State.NOTE, f"of {machine.date}, not calibrated", calibrate)
    quick = ", quickly calibrated" if machine.quick else ", calibrated"
    return Finding(what, State.OK, f"of {machine.date}{quick}")


def _nvrtc() -> Finding:
    what = "CUDA compiler"
    try:
        major, minor = nvrtc_version()
    except DeviceUnavailableError as error:
        why, _, todo = str(error).partition("; ")
        return Finding(what, State.NOTE, why, todo)
    return Finding(what, State.OK, f"NVRTC {major}.{minor}")


def _gpu_counters(root: Path) -> Finding:
    what = "GPU counters"
    if shutil.which("ncu") is None:
        return Finding(what, State.NOTE, "ncu (Nsight Compute) is not on PATH", "install it, for lbmtune profile")
    if "RmProfilingAdminOnly: 1" in _text(root, "proc/driver/nvidia/params") and os.geteuid():
        todo = "set NVreg_RestrictProfilingToAdminUsers=0 for the module nvidia"
        return Finding(what, State.NOTE, "the driver permits them to administrators alone", todo)
    return Finding(what, State.OK, "permitted")


def _cpu_counters() -> Finding:
    what = "CPU counters"
    try:
        counted(lambda: None)
    except PerfError as error:
        todo = "sysctl kernel.perf_event_paranoid=2" if "permit" in str(error) else ""
        return Finding(what, State.NOTE, str(error), todo)
    return Finding(what, State.OK, "permitted")


def _governor(root: Path) -> Finding:
    what, found = "CPU governor", _text(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if not found:
        return Finding(what, State.OK, "not shown by the system")
    if found == "performance":
        return Finding(what, State.OK, found)
    return Finding(
        what, State.NOTE, f"{found}: clocks change while it is measured", "cpupower frequency-set -g performance"
    )


def _huge_pages(root: Path) -> Finding:
    what, found = "huge pages", _text(root, "sys/kernel/mm/transparent_hugepage/enabled")
    if found and "[never]" not in found:
        return Finding(what, State.OK, found.partition("[")[2].partition("]")[0])
    todo = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    return Finding(what, State.NOTE, "none: more misses of the TLB on a CPU, and pages=huge is refused", todo)


def _processors() -> Finding:
    usable, every = usable_cores(), os.cpu_count() or 1
    if usable == every:
        return Finding("processors", State.OK, f"{every}")
    limit = "a quota of the control group" if quotas.cores() == usable else "the affinity of this process"
    todo = "ask for more, or give the quota whole cores (cpusets): samples wait when it is used up"
    return Finding("processors", State.NOTE, f"{usable} of {every}, by {limit}", todo if "quota" in limit else "")


def _memory() -> Finding:
    found = quotas.memory()
    left = f"{format_bytes(found.available)} of {format_bytes(found.total)} free"
    return Finding("memory", State.OK, f"{left}{', limited for this process' if found.limited else ''}")


def _load(root: Path) -> Finding:
    words = _text(root, "proc/loadavg").split()
    each = float(words[0]) / (os.cpu_count() or 1) if words else 0.0
    if each <= _BUSY:
        return Finding("load", State.OK, f"{each:.0%} of each processor in the last minute")
    todo = "end other programs: speeds of a busy machine are marked as disturbed"
    return Finding("load", State.NOTE, f"{each:.0%} of each processor in the last minute", todo)


def _cache() -> Finding:
    what, folder = "kernel cache", cache_folder("")
    try:
        make_cache(writable=True)
    except InputError as error:
        why, _, todo = str(error).rstrip(".").partition("; ")
        return Finding(what, State.FAULT, why, todo)
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    todo = f"may be deleted at any time; {CACHE_VARIABLE} names another folder"
    return Finding(what, State.OK, f"{format_bytes(size)} in {folder}", todo)


def _temporary_files() -> Finding:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    state, todo = (State.OK, "") if free >= _LEAST_BYTES else (State.NOTE, "set TMPDIR to a folder with more room")
    return Finding("temporary files", state, f"{format_bytes(free)} free in {folder}", todo)


def _text(root: Path, name: str) -> str:
    """Return a file of the system; '' if there is none."""
    try:
        return (root / name).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
