"""Pages from records alone: a study, claims, a profile, errors of the model. Plotly and Jinja are imported lazily."""

from __future__ import annotations

from pathlib import Path

from lbmtune.records.best import Kernel
from lbmtune.records.store import write_atomically
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.steps import CellsRead

__all__ = ["write_report"]


def write_report(
    study: StudyRecord, path: Path, kernel: Kernel | None = None, cells_read: CellsRead | None = None
) -> None:
    """Write a study as one HTML file that works offline.

    kernel: the winner's as this version prints it; cells_read: cells that a launch reads per cell that it updates.
    Raises InputError if the path cannot be written.
    """
    from lbmtune.report.study.page import page

    write_atomically(path, page(study, kernel, cells_read).encode())
