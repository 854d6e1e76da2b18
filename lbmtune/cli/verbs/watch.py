"""The verb watch: follow a study that another process runs."""

from typing import Any

import lbmtune.cli.format as formats
from lbmtune import api
from lbmtune.api.studies.folders import RESULTS, study_folder
from lbmtune.cli.arguments.options import Folder, Json, Studies
from lbmtune.cli.format import output
from lbmtune.cli.format.studies.finished import ranking
from lbmtune.errors import NothingValidError
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.search.lock import is_worked_on


def watch(study: Folder, studies: Studies = RESULTS, as_json: Json = False) -> None:
    """Follow a study that runs in another terminal, until it ends; then print its best kernels.

    Its records are read, and nothing is written. With --json it prints the state of the study once, and ends.

    Examples:
        lbmtune watch lbmtune-studies/box-cpu
        lbmtune watch box-cpu --json
    """
    folder = study_folder(study, studies)
    if as_json:
        output.emit_json("watch", _facts(str(folder), read_study(folder), works=is_worked_on(folder)))
        return
    with formats.Progress(output.stderr()) as progress:
        record = api.follow(folder, progress)
    if not record.ranked:
        raise NothingValidError(api.nothing_valid(record))
    output.stdout().print(ranking(record), "")
    goes_on = "" if record.header.finished else f"; lbmtune study --output {folder} --resume goes on"
    stopped = record.header.stopped or "no process works on it"
    output.print_pairs([("study", folder), ("ended", f"{stopped}{goes_on}")])


def _facts(folder: str, record: StudyRecord, *, works: bool) -> dict[str, Any]:
    best = record.ranked[0] if record.ranked else None
    header = record.header
    return {
        "study": folder,
        "case": header.spec.case,
        "machine": header.environment.device,
        "running": works,
        "finished": header.finished,
        "stopped": header.stopped,
        "trials": len(record.trials),
        "legal_configurations": header.legal_configurations,
        "budget": header.spec.budget,
        "best": best and {"key": best.key, "config": best.config, "mlups": best.mlups, "final": best.final is not None},
    }
