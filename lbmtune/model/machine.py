"""A measured device: what the model knows of it. Plain TOML, with the units in the keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from lbmtune.records import Environment


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A measured machine description.

    copy: two arrays, one to the other; in_place: one array, read and written; stream: q arrays read and q
    written at once, by access width in bytes ('4', '8', '16'; on a CPU the vector width in bytes), at q = 19.
    All in bytes per second, reads and writes both counted; spread: relative spread of the samples.
    caches: level -> bytes.
    """

    name: str
    environment: Environment
    copy_bytes_per_s: float
    in_place_bytes_per_s: float
    stream_bytes_per_s: dict[str, float]
    streams: int = 19
    spread: dict[str, float] = field(default_factory=dict)
    caches_bytes: dict[str, int] = field(default_factory=dict)
    multiprocessors: int = 0
    measured: bool = True
    date: str = ""

    def best_stream_bytes_per_s(self) -> float:
        """The ceiling: the fastest measured q-stream copy or in-place update."""
        return max(*self.stream_bytes_per_s.values(), self.in_place_bytes_per_s)
