"""Passes of shared memory that fetches of planes take, from made-up times; the kernels compile."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.codegen.program import Launch, Program
from lbmtune.records import Resources
from scripts.measurements.plane_fetch import __main__ as plane_fetch
from scripts.measurements.plane_fetch.__main__ import FETCHES, PASSES, Row, fetch_passes, program, shapes, summary

PASS_S, LOOP_S, TAKEN = 1e-9, 7e-9, {"none": 0.0, "registers": 1.0, "stored": 2.0, "cp_async": 3.0, "past_l1": 2.5}


def taken_s(fetch: str, words: int, reads: int) -> float:
    """Return the made-up seconds of a plane."""
    return LOOP_S + words * PASS_S * (reads + TAKEN[fetch])


def test_a_fetch_takes_the_passes_that_its_planes_take_longer_over_a_read() -> None:
    rows = [Row(one, {reads: taken_s(one.fetch, one.words, reads) for reads in PASSES}) for one in shapes()]
    found = fetch_passes(rows)
    assert len(found) == len([one for one in shapes() if one.fetch != "none"])
    for shape, each in found.items():
        assert [*each.values()] == pytest.approx([TAKEN[shape.fetch]] * len(PASSES))
    assert summary(rows)["cp_async, 16 bytes"] == pytest.approx(3)
    assert "past_l1, 4 bytes" not in summary(rows)


def test_kernels_keep_their_words_in_registers_and_fill_a_multiprocessor() -> None:
    for shape in shapes():
        (entry,) = compile_cuda(program(shape)).resources.entries.values()
        assert entry.spill_bytes == 0, shape
        assert entry.registers * plane_fetch.BLOCKS * plane_fetch.THREADS <= 1 << 16
        assert entry.shared_bytes * plane_fetch.BLOCKS <= 200 << 10


class MadeUp:
    """A GPU whose launches take made-up times. wrong: the fetch whose words it reads amiss."""

    xp, limits, environment = np, SimpleNamespace(multiprocessors=2), SimpleNamespace(device="made up")

    def __init__(self, wrong: str = "") -> None:
        self._wrong, self._taken_s = wrong, 0.0

    def empty(self, elements: int, dtype: str) -> Any:
        return np.zeros(elements, dtype)

    def load(self, text: Program, _: Any) -> Any:
        macros = dict(option[2:].split("=") for option in text.options if option.startswith("-D"))
        fetch, words = FETCHES[int(macros["FETCH"])], int(macros["COUNT"]) * int(macros["ACCESS"]) // 4

        def launch(_: Launch, grid: Sequence[int], arguments: Sequence[Any]) -> None:
            source, sums, ring, planes, reads = arguments
            assert (grid[0], ring * words * plane_fetch.THREADS) == (2 * plane_fetch.BLOCKS, source.size)
            sums[...] = 1 + (fetch == self._wrong)
            self._taken_s = int(planes) * taken_s(fetch, words, int(reads))

        return SimpleNamespace(launch=launch)

    def time_s(self, run: Callable[[], None]) -> float:
        run()
        return self._taken_s


def compiler(_: Program) -> Any:
    return SimpleNamespace(image=b"", resources=Resources())


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring of whole planes of all shapes."""
    monkeypatch.setattr(plane_fetch, "RING_BYTES", 4 * 24 * plane_fetch.THREADS)


@pytest.mark.usefixtures("ring")
def test_the_script_writes_what_it_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plane_fetch, "open_device", lambda _: MadeUp())
    monkeypatch.setattr(plane_fetch, "compiler_for", lambda _: compiler)
    assert plane_fetch.main([str(tmp_path / "out.json")]) == 0
    assert "cp_async, 4 bytes: 3.00 passes per word" in capsys.readouterr().out
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["passes"]["stored, 16 bytes"] == pytest.approx(2)
    assert len(document["rows"]) == len([*shapes()])


@pytest.mark.usefixtures("ring")
def test_copies_that_bring_other_words_are_refused() -> None:
    with pytest.raises(RuntimeError, match="did not move"):
        plane_fetch.measure(MadeUp("past_l1"), compiler)  # type: ignore[arg-type]
