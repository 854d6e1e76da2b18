"""Resources of compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What the compiler gave a function that is launched.

    registers: per thread (0: not known, as on the CPU); spill_bytes: stores plus loads; local_bytes: per thread;
    shared_bytes: of a block, with what launches ask for (without, in records from before that was counted);
    overtaken: stores of a pass of its loop that overtake a load of the same word of local memory (None: nobody has
    looked).
    """

    registers: int = 0
    spill_bytes: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0
    overtaken: int | None = None


@dataclass(frozen=True, kw_only=True)
class Resources(Entry):
    """What the compiler gave a kernel: the largest of each figure, which follows from its entries where they are told.

    entries: by name; none in records from before they were told apart, where the largest is all that is known.
    Raises ValueError for a figure beside entries that is not the largest of theirs.
    """

    code_bytes: int = 0
    entries: dict[str, Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for figure in (one.name for one in fields(Entry) if self.entries):
            told = [getattr(entry, figure) for entry in self.entries.values()]
            largest = max((one for one in told if one is not None), default=None)
            if getattr(self, figure) not in (0, None, largest):
                raise ValueError(f"{figure} {getattr(self, figure)}, but {largest} is the largest of the entries")
            object.__setattr__(self, figure, largest)
