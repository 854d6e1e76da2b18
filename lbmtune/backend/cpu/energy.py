"""Energy drawn by the packages of a processor, from the RAPL counters of Linux."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path("/sys/class/powercap")
_last: dict[Path, tuple[int, int]] = {}
"""Last value of each counter, and the microjoules of its overflows before."""


def packages_j() -> float | None:
    """Return the joules of all packages since a fixed moment; None without a counter that this process may read.

    Source: Linux, Documentation/power/powercap: zones intel-rapl:N, also of AMD processors.
    """
    zones = [_continued(zone) for zone in sorted(_FOLDER.glob("intel-rapl:*")) if zone.name.count(":") == 1]
    readable = [value for value in zones if value is not None]
    return sum(readable) * 1e-6 if readable and len(readable) == len(zones) else None


def _continued(zone: Path) -> int | None:
    """Return the microjoules of a zone across overflows, if it is read at least once between two of them."""
    try:
        now = int((zone / "energy_uj").read_text())
        overflow = int((zone / "max_energy_range_uj").read_text()) + 1
    except (OSError, ValueError):
        return None
    last, before = _last.get(zone, (now, 0))
    before += overflow if now < last else 0
    _last[zone] = (now, before)
    return before + now
