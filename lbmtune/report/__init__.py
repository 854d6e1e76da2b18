"""A study as one HTML file that works offline. Plotly and Jinja are imported when a report is written."""

from __future__ import annotations

from pathlib import Path

from lbmtune.records.store import write_atomically
from lbmtune.records.study import StudyRecord

__all__ = ["write_report"]


def write_report(study: StudyRecord, path: Path, winner_source: str = "") -> None:
    """Writes the report. winner_source: the kernel text of the winner; printed anew where it is left out.

    Raises InputError where the path cannot be written.
    """
    from lbmtune.report.build import page

    write_atomically(path, page(study, winner_source).encode())
