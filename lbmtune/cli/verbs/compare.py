"""The verb `compare`: studies of other days, devices or tool chains beside the first."""

from typing import Annotated

import typer

from lbmtune.api.studies.comparing import comparisons
from lbmtune.api.studies.folders import RESULTS, study_folder
from lbmtune.cli.arguments.options import Json, Studies
from lbmtune.cli.format import output
from lbmtune.cli.format.studies import compared
from lbmtune.errors import ChangedSpeedError
from lbmtune.records.regression.facts import facts
from lbmtune.records.store import read_study


def compare(
    studies: Annotated[
        list[str],
        typer.Argument(metavar="STUDIES", help="study folders, or their names under --studies: first the earlier one"),
    ],
    folder: Studies = RESULTS,
    as_json: Json = False,
) -> None:
    """Compare studies of one case: days, devices, tool chains or precisions.

    The first is what the others are compared with. Exit code 4 if one of them is slower beyond the noise: its winner,
    the median of all kernels that both measured, or a kernel with finals in both.

    Examples:
        lbmtune compare before after
        lbmtune compare h100-box h200-box --json
    """
    folders = [study_folder(name, folder) for name in studies]
    records, names = [read_study(folder) for folder in folders], [str(folder) for folder in folders]
    found = comparisons(records, names)
    if as_json:
        output.emit_json("comparison", facts(names, found))
    else:
        for n, one in enumerate(found, 1):
            output.stdout().print(end="\n" * (n > 1))
            compared.print_comparison((names[0], records[0]), (names[n], records[n]), one)
    slower = [(name, one.regressions) for name, one in zip(names[1:], found, strict=True) if one.regressions]
    if slower:
        said = "; ".join(f"{name} is slower than {names[0]} by {', '.join(what)}" for name, what in slower)
        raise ChangedSpeedError(f"{said}, beyond the noise; measure again, or look for what differs.")
