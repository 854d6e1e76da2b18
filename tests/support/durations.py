"""Processor seconds of the tests, and which of their samples are for every day."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from tests.support.paths import ROOT

DURATIONS = ROOT / "tests" / "durations.json"
"""Seconds of each test, over all samples that are not slow, and of what it starts; written by `make test-durations`.

They are nearly the same on a machine that does other things, too.
"""
LONG_S = 0.7
"""Seconds of the samples of a test for every day, at most; the others are for landings."""
_LEAST_S = 0.05
"""Tests that take less have no entry, but for the longest of each file."""
_OTHERS_S = 0.01
"""Seconds of a sample of a test without an entry in a file where others have one."""


def read() -> dict[str, float]:
    """Return the seconds by the test."""
    found: dict[str, float] = json.loads(DURATIONS.read_text())
    return found


def write(took: Mapping[str, float]) -> None:
    """Write the seconds of all tests, the longest first."""
    longest = sorted(took.items(), key=lambda item: (-round(item[1], 1), item[0]))
    files, kept = set[str](), dict[str, float]()
    for name, seconds in longest:
        if seconds >= _LEAST_S or file_of(name) not in files:
            kept[name] = round(seconds, 1)
        files.add(file_of(name))
    DURATIONS.write_text(f"{json.dumps(kept, indent=1)}\n")


def test_of(nodeid: str) -> str:
    """Return the name of the test of which an item is a sample."""
    return nodeid.partition("[")[0]


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


def for_every_day(seconds: float, samples: int) -> int:
    """Return how many samples of a test are for every day."""
    return samples if seconds <= LONG_S else int(samples * LONG_S / seconds)


def each(nodeids: Sequence[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each sample; infinite in a new file, which may be long. seconds: by the test."""
    known, samples = {*map(file_of, seconds)}, Counter(map(test_of, nodeids))

    def of(name: str) -> float:
        test = test_of(name)
        if test in seconds:
            return seconds[test] / samples[test]
        return _OTHERS_S if file_of(name) in known else inf

    return {name: of(name) for name in nodeids}
