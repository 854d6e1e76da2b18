"""Fails if a recorded set is stale: if codegen now prints another source for one of its configurations.

Looks below studies/recorded by default; finding no set at all is a failure too, unless --allow-none is given.
Also checks that the best.json beside a set can be read and holds a kernel of the set.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lbmtune.catalogue.config import from_flat
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.records.best import read_best
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
    """A line if best.json is missing or damaged, or holds a kernel that no trial of the set has."""
    try:
        kernel = read_best(folder / "best.json").kernel
    except InputError as error:
        return [str(error)]
    known = any(trial.source_digest == kernel.source_digest for trial in study.ranked)
    return [] if known else [f"best.json holds a kernel that is none of the set ({kernel.source_digest[:12]})"]


def main(arguments: list[str]) -> int:
    """Checks every set below a folder; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--allow-none", action="store_true", help="be content with finding no set")
    given = parser.parse_args(arguments)
    folders = sorted(header.parent for header in given.folder.rglob(HEADER))
    failures = 0
    for folder in folders:
        study = read_study(folder)
        lines = [*stale_trials(study), *stale_best(study, folder)]
        failures += bool(lines)
        measured = f"{len(study.ranked)} measured trials of {len({t.binary_digest for t in study.ranked})} binaries"
        print(f"{folder}: {measured}, {'STALE' if lines else 'up to date'}")
        print(*(f"    {line}" for line in lines), sep="\n", end="\n" if lines else "")
    print(f"{len(folders)} recorded sets, {failures} stale")
    return 1 if failures or not (folders or given.allow_none) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
