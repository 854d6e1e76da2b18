"""Traits of the backends; other modules query traits, not names."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Backend:
    """Traits of the devices and compilers of one kind.

    name: in configurations, records and study files; title: for display; device_kind: its devices, with an article.
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
    shares_host: bool = False
    write_allocates: bool = False
    reports_resources: bool = False
    power_capped: bool = False
    slot_pointers: bool = False
    overlaps_memory: bool = False


_CUDA = Backend(
    "cuda", "CUDA", "an NVIDIA GPU", reports_resources=True, power_capped=True, slot_pointers=True, overlaps_memory=True
)
_CPU = Backend("cpu", "CPU", "a CPU", shares_host=True, write_allocates=True)
BACKENDS: Mapping[str, Backend] = {backend.name: backend for backend in (_CUDA, _CPU)}
