"""Options that several verbs share."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from lbmtune.api.studies.folders import RESULTS
from lbmtune.cli import completion
from lbmtune.cli.arguments.numbers import time_s, whole
from lbmtune.cli.arguments.places import folder_of_studies
from lbmtune.cli.completion import Complete
from lbmtune.errors import InputError
from lbmtune.files.ranges import PARTS, Range

LOG = logging.getLogger("lbmtune")


def option(
    flag: str,
    metavar: str,
    said: str,
    parser: Callable[[str], Any] | None = None,
    complete: Complete | None = None,
) -> Any:
    """Return an option that takes a value. said: its help; complete: its values in a shell."""
    return typer.Option(flag, metavar=metavar, help=said, parser=parser, autocompletion=complete)


def count(flag: str, metavar: str, said: str, allowed: Range, example: int) -> Any:
    """Return an option that takes a whole number. said: its help; example: for the sentence that refuses another."""
    return option(flag, metavar, said, whole(flag, allowed, example))


def written(metavar: str, said: str) -> Any:
    """Return the option for what a verb writes: --output, or -o. said: its help."""
    return typer.Option("--output", "-o", metavar=metavar, help=said, parser=_path)


def _path(text: str | Path) -> Path:
    if text == "":  # as of a variable of a shell that is not set, and a path of the working directory
        raise InputError("--output is empty; name a file or a folder.")
    return Path(text)


def duration(flag: str, said: str) -> Any:
    """Return an option that takes a time such as '90s'. said: its help."""
    return option(flag, "TIME", said, time_s(flag))


Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        metavar="DEVICE",
        help="cpu, or the index of a GPU (default: what the knobs need, else GPU 0 if there is one, else cpu)",
    ),
]
Sets = Annotated[
    list[str] | None,
    option(
        "--set",
        "KEY=VALUE",
        "override a field of the study file: storage=fp64, case.domain=128x128x128",
        complete=completion.settings,
    ),
]
Study = Annotated[
    str | None,
    option(
        "--study",
        "STUDY",
        "study file, shipped study or study folder that gives the case (default: quick)",
        complete=completion.studies,
    ),
]
Machine = Annotated[
    str | None,
    option(
        "--machine",
        "NAME|FILE",
        "a device that need not be here: h200, h100, a100, v100, k20, or a file that describes it",
        complete=completion.machines,
    ),
]
Geometry = Annotated[
    Path | None,
    option("--geometry", "FILE", "where the voxel file of a best.json or a study folder lies, if it was moved"),
]
Parts = Annotated[int | None, count("--parts", "N", "cut the domain into parts for N devices", PARTS, 8)]
CutText = Annotated[
    str, option("--cut", "CUT", "z:2 for slabs, 2x1x4 for boxes, bisection:8 for equal numbers of fluid cells")
]
OnGpus = Annotated[str | None, option("--devices", "LIST", "cut the domain over several GPUs of one kind: 0,1 or all")]
InRanks = Annotated[
    bool,
    typer.Option("--ranks", help="each process that torchrun, mpirun or srun started has a part of the domain"),
]
PartsOfOne = Annotated[
    int | None,
    count("--parts", "N", "cut the domain into N parts on one device", PARTS, 2),
]
CouplingText = Annotated[
    str | None,
    option(
        "--coupling",
        "KNOBS",
        "how parts exchange: transport=copy|pack|host|nccl,overlap=none|edge-first|edge-priority,edge_planes=64,"
        "launching=graph|call (default: all transports and overlaps)",
    ),
]
HaloLayers = Annotated[
    int | None,
    count(
        "--halo",
        "LAYERS",
        "halo layers of a part, a multiple of the steps of a launch (default: fewest)",
        PARTS,
        6,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print the facts as JSON on standard output, and nothing else")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="print results, warnings and errors alone: no progress, no remarks")
]
Studies = Annotated[Path, option("--studies", "FOLDER", "folder that holds the study folders", folder_of_studies)]
Config = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG",
        help="best.json, the key of a trial or (with --study) of a ranking, or scheme=aa,block=256x1x1,...",
        autocompletion=completion.configs,
    ),
]
Folder = Annotated[str, typer.Argument(metavar="STUDY", help="a study folder, or its name under --studies")]


@dataclass(frozen=True)
class Options:
    """The options that say for which case, knobs and device a verb works. A verb names those that it takes."""

    study: Study = None
    sets: Sets = None
    device: Device = None
    machine: Machine = None
    studies: Studies = RESULTS
    geometry: Geometry = None


@dataclass(frozen=True)
class InParts:
    """The options of a domain that is cut into parts, on several devices, on one, or in several processes."""

    devices: OnGpus = None
    parts: PartsOfOne = None
    cut: CutText = ""
    coupling: CouplingText = None
    halo: HaloLayers = None
    ranks: InRanks = False


_GROUPS = (Options, InParts)
OnDevice = Annotated[Options, "study", "sets", "device", "studies", "geometry"]
OnMachine = Annotated[Options, "study", "sets", "device", "machine", "studies", "geometry"]


def with_single_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb as Typer takes it: a parameter that groups options is taken apart into those that it names.

    Each verb has --quiet besides.
    """
    hints = {name: hint for name, hint in get_type_hints(verb, include_extras=True).items() if name != "return"}
    own = {name: one.replace(annotation=hints[name]) for name, one in signature(verb).parameters.items()}
    groups = {name: (kind, _of_group(hint)) for name, hint in hints.items() if (kind := _kind(hint)) in _GROUPS}

    def call(**values: Any) -> None:
        if values.pop("quiet"):
            LOG.setLevel(logging.WARNING)
        for group, (kind, options) in groups.items():
            values[group] = kind(**{one.name: values.pop(one.name) for one in options})
        verb(**values)

    lists = (groups[name][1] if name in groups else [one] for name, one in own.items())
    named = [one.replace(kind=one.KEYWORD_ONLY) for several in lists for one in several]
    parameters = [*named, Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)]
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # which Typer reads
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def _kind(hint: Any) -> Any:
    """Return the class of an annotation, with or without metadata."""
    return getattr(hint, "__origin__", hint)


def _of_group(hint: Any) -> list[Parameter]:
    """Return the options of a group that an annotation names; all of them if it names none."""
    known = signature(_kind(hint), eval_str=True).parameters
    return [known[name] for name in getattr(hint, "__metadata__", known)]
