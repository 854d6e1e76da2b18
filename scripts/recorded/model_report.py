"""Accuracy of the model on recorded sets: predict every verified configuration with its compiled resources.

    python -m scripts.recorded.model_report [FOLDER] [--out build/model-report.html] [--no-ablation] [--every N]
        [--estimated] [--described] [--docs docs/lab/model-accuracy.md]

Prints errors |predicted / measured - 1| of all verified trials, also those dismissed after a first look: by set, by
scheme and by tenth of MLUPS. Spearman's rank correlation follows, the best of the model's first ten against the best of
the set, the bounds on these figures, and their change without each term of the model, by every N-th kernel (6) of sets
of more than a hundred; then published speeds beside the model (scripts.recorded.against_published). The page shows the
same, without those, and every configuration.
The rates of a processor of a shared host are those beside the samples of each kernel, if measured; with --described
those of its file. --docs writes the tables of whole sets into a document, between the lines that mark them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lbmtune.catalogue.config import from_flat
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import TERMS, predict
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import HEADER
from scripts.paths import RECORDED, ROOT
from scripts.recorded import against_published
from scripts.recorded.host_interference import under_conditions
from scripts.recorded.model_page import (
    Judged,
    by_card,
    by_set,
    judgement,
    printed,
    with_ablation,
    write_page,
    write_tables,
)

_FEW = 100
"""Kernels of a set up to which the table of terms takes all."""


def judged(
    name: str,
    study: StudyRecord,
    machine: Machine,
    without: frozenset[str] = frozenset(),
    compiled: bool = True,
    every: int = 1,
    described: bool = False,
) -> list[Judged]:
    """Return every N-th verified trial with its prediction, or all of a small set.

    compiled: use compiled registers and spills, instead of estimates; described: use the machine of the file, instead
    of its rates beside the samples.
    """
    case = study.header.spec.case
    found = []
    verified = [one for one in study.trials if one.mlups is not None]
    for trial in verified[:: every if len(verified) > _FEW else 1]:
        config = from_flat(trial.config)
        then = machine if described else under_conditions(machine, trial.best_measurement.conditions)
        expected = predict(case, config, then, trial.resources if compiled else None, without)
        found.append(
            Judged(
                set=name,
                scheme=config.scheme,
                many=config.fused_steps > 1,
                key=trial.key,
                label=config.brief,
                measured=trial.mlups,
                predicted=expected.mlups,
                limit=expected.limit,
                backend=config.backend,
                sites=case.sites,
                dismissed=trial.best_measurement.dismissed,
            )
        )
    return found


def main(arguments: list[str]) -> int:
    """Judge every set below a folder; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "model-report.html")
    parser.add_argument("--no-ablation", action="store_true", help="leave out the table of terms")
    parser.add_argument("--every", type=int, default=6, help="kernels of each set that the table of terms takes one of")
    parser.add_argument(
        "--described", action="store_true", help="use machines as described, not as they were beside the samples"
    )
    parser.add_argument(
        "--docs", type=Path, help="document whose tables are replaced; that of terms only without --no-ablation"
    )
    parser.add_argument("--estimated", action="store_true", help="estimate registers and spills")
    given = parser.parse_args(arguments)
    if given.every < 1:
        parser.error(f"--every {given.every} is not supported (use 1 or more)")
    folders = sorted(header.parent for header in given.folder.rglob(HEADER))
    if not folders:
        print(f"no recorded set below {given.folder}")
        return 1
    sets = [
        (f"{folder.parent.name}/{folder.name}", read_study(folder), read_machine(folder.parent / "machine.toml"))
        for folder in folders
    ]
    known = {"compiled": not given.estimated, "described": given.described}
    table = [one for each in sets for one in judged(*each, **known)]
    print(printed(table))
    print(judgement(table))
    left_out = {}

    def thinned(without: frozenset[str] = frozenset()) -> list[Judged]:
        return [
            one for each in sets for one in judged(*each, without, not given.estimated, given.every, given.described)
        ]

    tables = {"sets": by_card(table)}
    if not given.no_ablation:
        for term in TERMS:
            left_out[term] = by_set(thinned(frozenset({term})))
        whole = by_set(thinned())
        print(with_ablation(whole, left_out))
        tables["terms"] = with_ablation(whole, left_out, parts=False)
    if given.docs:
        write_tables(given.docs, tables)
    write_page(given.out, table)
    print(f"page  {given.out}")
    print(against_published.text_of(list(against_published.rows())), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
