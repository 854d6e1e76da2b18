"""A measured device: what the model knows of it. Plain TOML, with the units in the keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from lbmtune.records import Conditions, Environment

ACCESS_BYTES = 16
"""The most that a thread of a GPU loads or stores at once."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A measured machine description.

    copy: two arrays, one to the other; in_place: one array, read and written; stream: q arrays read and q
    written at once, by access width in bytes ('4', '8', '16'; on a CPU the vector width in bytes, and '64 streaming'
    with non-temporal stores), at q = 19; thread: in place, by one thread of a CPU.
    All in bytes per second, reads and writes both counted, and on a CPU the line that an ordinary store fetches
    first; spread: half-width of the interval of the median, relative, by the same names.
    multiprocessors: of a GPU; issue_utilisation: share of their issue slots that the instructions counted by
    `model.issue` fill, None where nobody has measured it.
    caches: level -> bytes. conditions: clocks, power and temperature after the measurement.
    streams_digest: names the text of the kernels that it was measured with; date: ISO 8601, UTC.
    """

    name: str
    environment: Environment
    copy_bytes_per_s: float
    in_place_bytes_per_s: float
    stream_bytes_per_s: dict[str, float]
    streams: int = 19
    spread: dict[str, float] = field(default_factory=dict)
    caches_bytes: dict[str, int] = field(default_factory=dict)
    thread_bytes_per_s: float | None = None
    multiprocessors: int = 0
    issue_utilisation: float | None = None
    conditions: Conditions = field(default_factory=Conditions)
    measured: bool = True
    streams_digest: str = ""
    date: str = ""
