"""The progress of a study as a page that reloads itself, for a browser beside the terminal."""

import io
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from lbmtune.cli.format.studies.progress import Progress
from lbmtune.records import Trial
from lbmtune.records.header import StudyHeader
from lbmtune.records.whole_files import write_atomically

LIVE = "live.html"
_PAUSE_S, _RELOAD_S = 2.0, 3
"""Seconds between two pages, which take hundredths of one, and until a browser loads the next one."""
_WIDTH = 160
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>lbmtune study</title>
<meta http-equiv="refresh" content="{after}"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
</head><body><pre>{code}</pre></body></html>
"""


class LiveProgress(Progress):
    """Progress that is also written to a page in the folder of the study; at its end that leads to the report."""

    def __init__(self, console: Console, folder: Path) -> None:
        super().__init__(console)
        self._page = folder / LIVE
        self._written_s, self._head = 0.0, ""

    def started(self, header: StudyHeader, done: Sequence[Trial]) -> None:
        """Write the first page."""
        super().started(header, done)
        self._head = f"{header.spec.name} on {header.environment.device}"
        self._write("")

    def finished(self, trial: Trial) -> None:
        """Write a page, unless one was written just now."""
        super().finished(trial)
        if time.monotonic() - self._written_s > _PAUSE_S:
            self._write("")

    def _say(self, text: str, expected_s: float | None = None) -> None:
        super()._say(text, expected_s)
        if self._head:
            self._write(text)

    def lead_to(self, report: Path) -> None:
        """Replace the page by one that opens the report."""
        self._put(f"0; url={report.name}", f"{self._head}: done")

    def _write(self, phase: str) -> None:
        console = Console(file=io.StringIO(), record=True, width=_WIDTH, markup=False, highlight=False)
        console.print(self._head, "", *([self.display()] if self.tried else []), phase)
        self._put(f"{_RELOAD_S}", console.export_html(code_format="{code}", inline_styles=True))
        self._written_s = time.monotonic()

    def _put(self, after: str, code: str) -> None:
        write_atomically(self._page, _PAGE.format(after=after, code=code).encode())
