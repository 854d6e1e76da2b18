"""Seconds of pages in a browser, with a page and a browser that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.measurements import pages


@pytest.mark.parametrize(("whole_s", "code"), [(3.0, 0), (5.0, 1)])
def test_a_page_beyond_a_limit_is_named(
    whole_s: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "page.html"
    file.write_text("x" * 1_500_000)
    seconds = iter([(0.5, 1.0, 9.0), (0.1, 2.0, whole_s), (0.3, 3.0, 1.0)])
    monkeypatch.setattr(pages, "opened", lambda *_: next(seconds))
    monkeypatch.setattr(pages, "browser", lambda: None)
    monkeypatch.setattr(pages, "written", lambda *_: [("a page", file, 0.25, pages.USUAL)])
    assert pages.main(["--times", "3"]) == code
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split()[:7] == ["a", "page", "1.50", "0.25", "0.30", "2.00", f"{whole_s:.2f}"]
    assert line.endswith("beyond: ['whole_s']") == bool(code)
