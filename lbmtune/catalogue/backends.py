"""Traits of the backends; other modules query traits, not names."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Backend:
    """Traits of the devices and compilers of one kind.

    name: in configurations, records and study files; title: for display; device_kind: its devices, with an article.
    device_names: what --device takes; suffix: of the file of a kernel; header: export format of a solver's header.
    thread_blocks: a launch has thread blocks in a grid, otherwise threads that share a loop.
    shares_host: kernels share processor time, caches and bandwidth with programs of the host.
    write_allocates: an ordinary store first loads the cache line that it writes to.
    reports_resources: the compiler reports registers and spills.
    power_capped: continuous load lowers the clocks, so compared samples need pauses between them.
    slot_pointers: kernels take the start of a slot as a pointer, otherwise as the number of an element.
    overlaps_memory: arithmetic of other threads hides memory accesses, so that the longer of both is the time.
    """

    name: str
    title: str
    device_kind: str
    device_names: str
    suffix: str
    header: str
    thread_blocks: bool = False
    shares_host: bool = False
    write_allocates: bool = False
    reports_resources: bool = False
    power_capped: bool = False
    slot_pointers: bool = False
    overlaps_memory: bool = False


_CUDA = Backend(
    "cuda",
    "CUDA",
    "an NVIDIA GPU",
    "the index of a GPU",
    ".cu",
    "cuda",
    thread_blocks=True,
    reports_resources=True,
    power_capped=True,
    slot_pointers=True,
    overlaps_memory=True,
)
_CPU = Backend("cpu", "CPU", "a CPU", "cpu", ".c", "c", shares_host=True, write_allocates=True)
BACKENDS: Mapping[str, Backend] = {backend.name: backend for backend in (_CUDA, _CPU)}
