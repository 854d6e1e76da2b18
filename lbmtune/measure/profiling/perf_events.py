"""Read perf events of the Linux kernel: cycles, instructions, and misses of the last-level cache.

Source: perf_event_open(2). They count the threads of this process in user space. Systems may not permit that
(/proc/sys/kernel/perf_event_paranoid), or have no counters, such as some virtual machines.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fcntl import ioctl
from pathlib import Path

LINE_BYTES = 64
MISSES = "misses of the last cache"
EVENTS = {"cycles": 0, "instructions": 1, MISSES: 3}
"""Generic hardware events: PERF_COUNT_HW_CPU_CYCLES, _INSTRUCTIONS, _CACHE_MISSES."""
_NUMBERS = {"x86_64": 298, "aarch64": 241}
"""Numbers of the system call, by architecture."""
_HARDWARE, _SIZE = 0, 128
_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 0, 1 << 5, 1 << 6
_ENABLE, _DISABLE = 0x2400, 0x2401
_ENABLED_AND_RUNNING = 3
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING: multiplexed counters are scaled by their ratio."""
_TASKS = Path("/proc/self/task")


class PerfError(Exception):
    """Counters cannot be read here; the message says why."""


def counted(run: Callable[[], None]) -> dict[str, float]:
    """Return the counts of all threads of this process during a run. Raises PerfError."""
    with ExitStack() as open_files:
        opened = {name: list(_opened(event, open_files)) for name, event in EVENTS.items()}
        every = [handle for handles in opened.values() for handle in handles]
        for handle in every:
            ioctl(handle, _ENABLE, 0)
        run()
        for handle in every:
            ioctl(handle, _DISABLE, 0)
        return {name: sum(map(_value, handles)) for name, handles in opened.items()}


def _opened(event: int, open_files: ExitStack) -> Iterator[int]:
    for task in sorted(_TASKS.iterdir()):
        handle = _open(event, int(task.name))
        open_files.callback(os.close, handle)
        yield handle


def _open(event: int, thread: int) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None or platform.system() != "Linux":
        raise PerfError(f"{platform.system()} on {platform.machine()} has no known perf events")
    flags = _DISABLED | _EXCLUDE_KERNEL | _EXCLUDE_HV
    packed = struct.pack("IIQQQQQ", _HARDWARE, _SIZE, event, 0, 0, _ENABLED_AND_RUNNING, flags)
    attribute = ctypes.create_string_buffer(packed, _SIZE)
    library = ctypes.CDLL(None, use_errno=True)
    handle = int(library.syscall(number, attribute, thread, -1, -1, 0))
    if handle < 0:
        raise PerfError(_why(ctypes.get_errno()))
    return handle


def _why(code: int) -> str:
    if code in (errno.EACCES, errno.EPERM):
        return "the system does not permit perf events (see /proc/sys/kernel/perf_event_paranoid)"
    if code in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "this processor, or the virtual machine around it, has no hardware counters"
    return f"perf events cannot be opened: {os.strerror(code)}"


def _value(handle: int) -> float:
    value, enabled, running = struct.unpack("QQQ", os.read(handle, 24))
    return value * enabled / running if running else 0.0
