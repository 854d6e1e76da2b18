"""Limits below those of the host: control groups of a container or a batch job, and ulimit."""

import resource
from pathlib import Path
from typing import NamedTuple

_MOUNTED = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


class Memory(NamedTuple):
    """Bytes that this process may use, and those that are left now. limited: to less than the host has."""

    total: int
    available: int
    limited: bool


class _Names(NamedTuple):
    """Files of a control group: limit of memory, its usage, and the name in memory.stat of what can be reclaimed."""

    limit: str
    usage: str
    reclaimable: str


_MEMORY = {
    1: _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: _Names("memory.max", "memory.current", "inactive_file"),
}
_KILLS = {1: "memory.oom_control", 2: "memory.events"}


def memory() -> Memory:
    """Return the memory of this process: the least of what the host, the control groups and ulimit -v leave."""
    import psutil  # here: what asks for processors alone starts without it

    host = psutil.virtual_memory()
    total, available = int(host.total), int(host.available)
    version, groups = _groups("memory")
    names = _MEMORY[version]
    for group in groups:
        if (limit := _number(group / names.limit)) is not None and limit < host.total:
            used = (_number(group / names.usage) or 0) - _entry(group / "memory.stat", names.reclaimable)
            total, available = min(total, limit), min(available, limit - used)
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space != resource.RLIM_INFINITY:
        total, available = min(total, space), min(available, space - psutil.Process().memory_info().vms)
    return Memory(total, max(0, available), total < host.total)


def cores() -> int | None:
    """Return the processors that control groups allow to be busy at once, at least one; None: they do not limit it."""
    version, groups = _groups("cpu")
    read = _quota if version == 2 else _quota_of_1
    allowed = [found for group in groups if (found := read(group)) is not None]
    return max(1, int(min(allowed))) if allowed else None


def oom_kills() -> int:
    """Return how often the system has killed a process of the control group for want of memory."""
    version, groups = _groups("memory")
    return _entry(groups[0] / _KILLS[version], "oom_kill") if groups else 0


def _groups(controller: str) -> tuple[int, list[Path]]:
    """Return the version of a controller's hierarchy, and the folders of this process's group and those above it."""
    version, own = 2, ""
    for line in _lines(_OWN):
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            version, own = 1, path
            break
        if not controllers:
            own = path
    root = _MOUNTED / controller if version == 1 else _MOUNTED
    folder = root / own.strip("/")
    # a container sees its own group at the root, and may not see the path to it
    return version, [group for group in (folder, *folder.parents) if group.is_relative_to(root) and group.is_dir()]


def _quota(group: Path) -> float | None:
    words = " ".join(_lines(group / "cpu.max")).split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0] != "max" else None


def _quota_of_1(group: Path) -> float | None:
    quota, period = (_number(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return quota / period if quota and period and quota > 0 else None


def _number(path: Path) -> int | None:
    """Return the number in a file; None for 'max', or if there is no such file."""
    text = "".join(_lines(path))
    return int(text) if text.lstrip("-").isdecimal() else None


def _entry(path: Path, name: str) -> int:
    """Return the number behind a name in a file; 0 if it is not there."""
    found = (line.split() for line in _lines(path))
    return next((int(words[1]) for words in found if len(words) == 2 and words[0] == name), 0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
