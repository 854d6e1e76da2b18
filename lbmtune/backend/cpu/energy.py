"""Energy that the packages of a processor have drawn, from the counters that Linux shows (RAPL)."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path("/sys/class/powercap")
_turns: dict[Path, tuple[int, int]] = {}
"""Of each counter: what it said last, and how many microjoules the turns before that make."""


def packages_j() -> float | None:
    """Joules of all packages since some moment; None where there is no counter or it is for the system's owner alone.

    Source: Linux, Documentation/power/powercap: zones intel-rapl:N, which AMD processors have under that name, too.
    """
    found = [_continued(zone) for zone in sorted(_FOLDER.glob("intel-rapl:*")) if zone.name.count(":") == 1]
    known = [value for value in found if value is not None]
    return sum(known) * 1e-6 if known and len(known) == len(found) else None


def _continued(zone: Path) -> int | None:
    """Microjoules of a zone, over the turns of its counter as long as somebody looks at it once in each."""
    try:
        now = int((zone / "energy_uj").read_text())
        turn = int((zone / "max_energy_range_uj").read_text()) + 1
    except (OSError, ValueError):
        return None
    last, before = _turns.get(zone, (now, 0))
    before += turn if now < last else 0
    _turns[zone] = (now, before)
    return before + now
