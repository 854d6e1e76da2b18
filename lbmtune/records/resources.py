"""Resources of compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Resources of an entry point, as compiled.

    registers: per thread (0: unknown, as on the CPU); spill_bytes: stores plus loads; local_bytes: per thread;
    shared_bytes: of a block, with what launches request (without it in early records);
    overtaken: write-after-read hazards on spilled registers: stores of a pass of its loop to a word of local memory
    whose load is in flight (None: not counted).
    """

    registers: int = 0
    spill_bytes: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0
    overtaken: int | None = None


@dataclass(frozen=True, kw_only=True)
class Resources(Entry):
    """Resources of a kernel, as compiled: the largest of each figure over its entries.

    entries: by name; empty in early records, which have the largest alone. Raises ValueError for a figure that is not
    the largest of the entries.
    """

    code_bytes: int = 0
    entries: dict[str, Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for figure in (one.name for one in fields(Entry) if self.entries):
            values = [getattr(entry, figure) for entry in self.entries.values()]
            largest = max((one for one in values if one is not None), default=None)
            if getattr(self, figure) not in (0, None, largest):
                raise ValueError(f"{figure} {getattr(self, figure)}, but {largest} is the largest of the entries")
            object.__setattr__(self, figure, largest)
