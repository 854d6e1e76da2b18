"""Options that several verbs share."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from lbmtune.api.folders import RESULTS
from lbmtune.cli.arguments.numbers import whole
from lbmtune.files.ranges import PARTS

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
    typer.Option(
        "--set", metavar="KEY=VALUE", help="override a field of the study file: storage=fp64, case.domain=128x128x128"
    ),
]
Study = Annotated[
    str | None,
    typer.Option(
        "--study",
        metavar="STUDY",
        help="study file, shipped study or study folder that gives the case (default: quick)",
    ),
]
Machine = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME|FILE",
        help="a device that need not be here: h200, h100, a100, v100, k20, or a file that describes it",
    ),
]
Geometry = Annotated[
    Path | None,
    typer.Option(
        "--geometry",
        metavar="FILE",
        help="where the voxel file of a best.json or a study folder lies, if it was moved",
    ),
]
Parts = Annotated[
    int | None,
    typer.Option(
        "--parts", metavar="N", help="cut the domain into parts for as many devices", parser=whole("--parts", PARTS, 8)
    ),
]
CutText = Annotated[
    str,
    typer.Option(
        "--cut", metavar="CUT", help="z:2 for slabs, 2x1x4 for boxes, bisection:8 for equal numbers of fluid cells"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print the facts as JSON on standard output, and nothing else")]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="folder that holds the study folders")]
Config = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG",
        help="best.json, the key of a trial or (with --study) of a ranking, or scheme=aa,block=256x1x1,...",
    ),
]
Folder = Annotated[str, typer.Argument(metavar="STUDY", help="a study folder, or its name under --out")]


@dataclass(frozen=True)
class Options:
    """The options that say for which case, knobs and device a verb works. A verb names those that it takes."""

    study: Study = None
    sets: Sets = None
    device: Device = None
    machine: Machine = None
    out: Out = RESULTS
    geometry: Geometry = None


OnDevice = Annotated[Options, "study", "sets", "device", "out", "geometry"]
OnMachine = Annotated[Options, "study", "sets", "device", "machine", "out", "geometry"]


def with_single_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb as Typer takes it: its parameter `options`, if any, is taken apart into the options it names."""
    hints = {name: hint for name, hint in get_type_hints(verb, include_extras=True).items() if name != "return"}
    shared = getattr(hints.get("options"), "__metadata__", ())
    single = signature(Options, eval_str=True).parameters
    own = {name: one.replace(annotation=hints[name]) for name, one in signature(verb).parameters.items()}

    def call(**values: Any) -> None:
        if shared:
            values["options"] = Options(**{name: values.pop(name) for name in shared})
        verb(**values)

    lists = ([single[n] for n in shared] if name == "options" else [one] for name, one in own.items())
    parameters = [one.replace(kind=one.KEYWORD_ONLY) for several in lists for one in several]
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # which Typer reads
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call
