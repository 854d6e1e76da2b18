"""Fails if a recorded set is stale: if codegen now prints another source for one of its configurations.

Usage: check_recorded.py [FOLDER]; looks below studies/recorded by default, and is content with finding nothing.
Also checks that the best.json beside a set names a configuration and a source that the set holds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lbmtune.catalogue.config import from_flat
from lbmtune.codegen.render import render
from lbmtune.records.store import HEADER, read_study
from lbmtune.records.study import StudyRecord

DEFAULT = Path(__file__).resolve().parent.parent / "studies" / "recorded"


def stale_trials(study: StudyRecord) -> list[str]:
    """A line for each measured trial whose source is no longer what codegen prints."""
    case = study.header.spec.case
    found = []
    for trial in study.ranked:
        digest = render(case, from_flat(trial.config)).digest
        if digest != trial.source_digest:
            found.append(f"trial {trial.number} ({trial.key}): recorded {trial.source_digest[:12]}, now {digest[:12]}")
    return found


def stale_best(study: StudyRecord, folder: Path) -> list[str]:
    """A line if best.json is missing, or names a source that no trial of the set has."""
    path = folder / "best.json"
    if not path.is_file():
        return ["best.json is missing"]
    digests = {trial.source_digest for trial in study.ranked}
    text = json.dumps(json.loads(path.read_text(encoding="utf-8")))
    return [] if any(digest in text for digest in digests) else ["best.json holds no source digest of the set"]


def main(arguments: list[str]) -> int:
    """Checks every set below a folder; returns the exit code."""
    root = Path(arguments[0]) if arguments else DEFAULT
    folders = sorted(header.parent for header in root.rglob(HEADER))
    failures = 0
    for folder in folders:
        study = read_study(folder)
        lines = [*stale_trials(study), *stale_best(study, folder)]
        failures += bool(lines)
        print(f"{folder}: {len(study.ranked)} measured trials, {'STALE' if lines else 'up to date'}")
        print(*(f"    {line}" for line in lines), sep="\n", end="\n" if lines else "")
    print(f"{len(folders)} recorded sets, {failures} stale")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
