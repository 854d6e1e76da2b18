"""The script that times a process for each GPU: what it starts, and its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lbmtune.cli import main
from scripts.measurements import ranks
from scripts.measurements.ranks import KERNELS, of_ranks, rows


def test_the_first_rank_is_heard_and_a_failing_one_is_named() -> None:
    told = of_ranks(("-c", "import os; print(os.environ['RANK'], os.environ['WORLD_SIZE'])"), 2)
    assert told == "0 2\n"
    with pytest.raises(RuntimeError, match=r"rank 0: ; rank 1: no GPU"):
        of_ranks(("-c", "import os, sys; sys.exit('no GPU' if os.environ['LOCAL_RANK'] == '1' else 0)"), 2)


def test_rows_have_speeds_or_the_reason() -> None:
    timed = {"mlups": 38000.4, "efficiency": 0.9876, "launches_s": 8.8e-4, "exchange_s": 2.1e-5}
    named = {"overlap": "none", "launching": "graph"}
    found = list(rows("pull", {"couplings": [{**named, **timed}, {**named, "refused": "no planes."}]}))
    assert found == [
        "| pull | overlap=none,launching=graph | 38,000 | 0.988 | 880.0 | 21.0 |",
        "| pull | overlap=none,launching=graph | no planes. |",
    ]


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_run_on_slabs(kernel: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", *KERNELS[kernel], "--cut", "z:2"])
    assert not ended.value.code, capsys.readouterr().err


def test_one_kernel_is_timed_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = list[Sequence[str]]()

    def told(words: Sequence[str], count: int) -> str:
        started.append(words)
        return '{"couplings": []}'

    monkeypatch.setattr(ranks, "of_ranks", told)
    monkeypatch.setattr("sys.argv", ["ranks", str(tmp_path / "out.json"), "--kernel", "moments fp32"])
    assert ranks.main() == 0
    assert [KERNELS["moments fp32"][0] in words for words in started] == [True, True]
