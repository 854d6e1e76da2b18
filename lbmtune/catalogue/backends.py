"""Traits of the backends; other modules query traits, not names."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
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
    shares_host: bool
    write_allocates: bool
    reports_resources: bool
    power_capped: bool
    slot_pointers: bool
    overlaps_memory: bool


BACKENDS: Mapping[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend(
            name="cuda",
            title="CUDA",
            device_kind="an NVIDIA GPU",
            shares_host=False,
            write_allocates=False,
            reports_resources=True,
            power_capped=True,
            slot_pointers=True,
            overlaps_memory=True,
        ),
        Backend(
            name="cpu",
            title="CPU",
            device_kind="a CPU",
            shares_host=True,
            write_allocates=True,
            reports_resources=False,
            power_capped=False,
            slot_pointers=False,
            overlaps_memory=False,
        ),
    )
}
