"""Options of the verb study."""

from pathlib import Path
from typing import Annotated

import typer

from lbmtune.cli.arguments.options import count, duration, option, written
from lbmtune.cli.completion import families, of_case, one_of, studies
from lbmtune.files.ranges import SEED, TRIALS
from lbmtune.files.studyfile import STRATEGIES
from lbmtune.records.spec import OBJECTIVES

StudyFile = Annotated[
    str | None,
    typer.Argument(
        metavar="STUDY",
        help="study file, or a shipped study (default: quick; box with a case option)",
        autocompletion=studies,
    ),
]
KernelFile = Annotated[
    Path | None,
    option(
        "--kernel",
        "FILE",
        "a kernel of your own (.c or .cu, or its .toml), compiled and run; or lbmpy: kernels of lbmpy",
    ),
]
SideBySide = Annotated[
    str | None, option("--devices", "LIST", "several GPUs of one kind that measure side by side: 0,1 or all")
]
CutOverParts = Annotated[
    str | None,
    option("--cut", "CUT", "with --devices or --parts: one domain cut over them: auto, z:2, 2x1x4 or bisection:8"),
]
Weak = Annotated[bool, typer.Option("--weak", help="with --cut: weak scaling, the case's domain on each device")]
Trials = Annotated[int | None, count("--trials", "N", "end after N trials", TRIALS, 100)]
WholeTime = Annotated[
    float | None, duration("--time", "time of the whole, from the start to the last file: 90s, 5m, 1h")
]
SearchTime = Annotated[float | None, duration("--search-time", "limit of the trials alone")]
Objective = Annotated[
    str | None,
    option("--objective", "NAMES", f"{', '.join(OBJECTIVES)}, or several for a Pareto set: mlups,footprint"),
]
MaxFootprint = Annotated[str | None, option("--max-footprint", "SIZE", "largest memory of all buffers: 20GiB")]
MaxError = Annotated[
    str | None,
    option("--max-error", "E", "largest relative error of the velocity of a vortex after 1000 steps: 1e-4"),
]
MaxPower = Annotated[
    str | None, option("--max-power", "WATTS", "largest mean power of a sustained run of the winner: 350")
]
TargetShare = Annotated[
    str | None,
    option(
        "--target",
        "SHARE",
        "end at a share of the best predicted speed, 0.97, or of the ceiling, ceiling:0.97",
    ),
]
Strategy = Annotated[
    str | None,
    option(
        "--strategy",
        "NAME",
        f"rule by which the next trial is chosen: {', '.join(STRATEGIES)} (default: auto)",
        complete=one_of(STRATEGIES),
    ),
]
Domain = Annotated[str | None, option("--domain", "CELLS", "cells of the case, for example 300x200x500")]
Domains = Annotated[
    str | None,
    option("--domains", "RANGE", "a few kernels for all domains of a range, 64:512, or a list, 64,96x96x48,256"),
]
Lattice = Annotated[str | None, option("--lattice", "NAME", "lattice of the case", complete=of_case("lattice"))]
Collision = Annotated[str | None, option("--collision", "NAME", "collision of the case", complete=of_case("collision"))]
Flow = Annotated[str | None, option("--flow", "NAME", "flow of the case", complete=of_case("flow"))]
FamilyNames = Annotated[
    str | None,
    option(
        "--families",
        "NAMES",
        "all kernel families, or some: the values of their knobs are made for case and device",
        complete=families,
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="go on with the study in the output folder")]
OutputFolder = Annotated[Path | None, written("FOLDER", "folder to write (default: one under lbmtune-studies)")]
Seed = Annotated[int | None, count("--seed", "N", "seed of the search", SEED, 2)]
OptunaStorage = Annotated[
    str | None, option("--storage", "URL", "where Optuna keeps its trials (default: a journal in the study folder)")
]
Scratch = Annotated[
    Path | None, option("--scratch", "FOLDER", "where a study with output writes its file (default: TMPDIR)")
]
Refresh = Annotated[bool, typer.Option("--refresh", help="measure the device's bandwidths again first")]
NoCalibration = Annotated[
    bool, typer.Option("--no-calibration", help="search an unknown device without calibrating it first")
]
Earlier = Annotated[
    list[str] | None,
    option("--from", "STUDY", "earlier study to learn from, may be repeated; or none (default: similar ones)"),
]
Live = Annotated[
    bool,
    typer.Option("--live", help="also write live.html, a page that reloads itself while the study runs"),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="say what would be searched, in what time and where; run nothing")
]
