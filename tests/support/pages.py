"""Pages of studies as the command line makes them: with the winner's kernel and its halos."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from lbmtune.export import printed_kernel
from lbmtune.model.predict import cells_read
from lbmtune.records.study import StudyRecord
from lbmtune.report.study import page as study_page


def page(study: StudyRecord) -> str:
    """Return the HTML text."""
    return study_page.page(study, beyond(study))


def write_report(study: StudyRecord, path: Path) -> None:
    """Write the page."""
    study_page.write_report(study, path, beyond(study))


def beyond(study: StudyRecord) -> study_page.Beyond:
    """Return what the command line adds to the records."""
    return study_page.Beyond(printed_kernel(study), cells_read=partial(cells_read, study.header.spec.case))
