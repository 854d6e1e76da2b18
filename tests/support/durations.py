"""Processor seconds of the tests, and which of their samples are for every day."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf

from tests.support.paths import ROOT

DURATIONS = ROOT / "tests" / "durations.json"
"""Seconds of each test, over all samples that are not slow, and of what it starts; written by `make test-durations`.

They are nearly the same on a machine that does other things, too.
"""
LONG_S = 0.7
"""Seconds of the samples of a test for every day, at most; the others are for landings."""
_LEAST_S = 0.05
"""Tests that take less have no entry."""
_OTHERS_S = 0.01
"""Seconds of a test without an entry in a file where others have one."""


def read() -> dict[str, float]:
    """Seconds by the test."""
    found: dict[str, float] = json.loads(DURATIONS.read_text())
    return found


def write(took: Mapping[str, float]) -> None:
    """Write the seconds of all tests, the longest first."""
    longest = sorted(took.items(), key=lambda item: (-round(item[1], 1), item[0]))
    kept = {name: round(seconds, 1) for name, seconds in longest if seconds >= _LEAST_S}
    DURATIONS.write_text(f"{json.dumps(kept, indent=1)}\n")


def test_of(nodeid: str) -> str:
    """Name of the test of which an item is a sample."""
    return nodeid.partition("[")[0]


def for_every_day(seconds: float, samples: int) -> int:
    """How many samples of a test are for every day."""
    return samples if seconds <= LONG_S else int(samples * LONG_S / seconds)


def seconds_of_files(nodeids: Iterable[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds of test files; of a new one, which may be long, they are infinite. seconds: by the test."""
    known = {name.partition("::")[0] for name in seconds}
    found: dict[str, float] = defaultdict(float)
    for name in dict.fromkeys(map(test_of, nodeids)):  # in order, for sums that do not differ between processes
        file = name.partition("::")[0]
        found[file] += seconds.get(name, _OTHERS_S) if file in known else inf
    return found
