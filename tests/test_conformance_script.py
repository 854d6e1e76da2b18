"""The script that checks every pair of choices: what one kernel does to its process is no other kernel's fault."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import conformance

DEADLY = (3, 4)


def judged(sample: int) -> str | None:
    if sample in DEADLY:
        os._exit(1)
    return "wrong" if sample == 6 else None


def test_a_kernel_that_ends_its_process_is_wrong_and_the_others_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "on_cpu", judged)
    found = list(conformance.in_parallel(range(8), "cpu", 2))
    dead = "ends its process"
    assert found == [None, None, None, dead, dead, None, "wrong", None]
