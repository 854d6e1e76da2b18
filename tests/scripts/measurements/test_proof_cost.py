"""The clock around the checks that follow a measurement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.measurements import proof_cost
from scripts.measurements.proof_cost import Cost, costs

BLOCK = """
import numpy
from lbmtune.measure.timing.guard_bands import GUARD_BYTES, GuardedBlock

GuardedBlock(numpy.zeros(3 * GUARD_BYTES, "uint8")).add(0, GUARD_BYTES, 8)
"""
ALL = """
import importlib
from scripts.measurements.proof_cost import CHECKED, put_clock

assert [put_clock(importlib.import_module(module), check) for module, checks in CHECKED.items() for check in checks]
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a script in the place of a study."""
    real, path = subprocess.run, tmp_path / "block.py"
    path.write_text(BLOCK)

    def run(command: list[str], **options: object) -> object:
        assert command[1:] == ["-m", "lbmtune", "study", "box"]
        return real([sys.executable, str(path)], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", run)


@pytest.mark.usefixtures("script")
def test_checks_of_other_processes_are_timed(tmp_path: Path) -> None:
    whole_s, (cost,) = proof_cost.study(["box"], tmp_path)
    assert (cost.name, cost.calls) == ("GuardedBlock.add", 1)
    assert 0 < cost.seconds < whole_s


@pytest.mark.usefixtures("script")
def test_a_share_above_the_bar_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_cost, "MOST", 0.0)
    assert proof_cost.main(["box"]) == 1
    assert capsys.readouterr().out.startswith("GuardedBlock.add                  1 calls")
    monkeypatch.setattr(proof_cost, "MOST", 1.0)
    assert proof_cost.main(["box"]) == 0


def test_nothing_timed_is_no_success(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_cost, "study", lambda *_: (1.0, []))
    assert proof_cost.main(["box"]) == 1
    assert "no check was timed" in capsys.readouterr().err


def test_calls_are_added_up() -> None:
    assert costs(['["one", 0.5]', '["two", 2]', '["one", 0.25]']) == [Cost("one", 2, 0.75), Cost("two", 1, 2)]


def test_every_check_is_there() -> None:
    subprocess.run([sys.executable, "-c", ALL], check=True)
