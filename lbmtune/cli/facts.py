"""Verbs that only tell: devices, list, explain, render, predict."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lbmtune.cli.options import RESULTS, Config, Device, Json, Out, Sets, Study

if TYPE_CHECKING:
    from lbmtune.catalogue.case import Case
    from lbmtune.model.machine import Machine
    from lbmtune.records import Prediction
    from lbmtune.records.study import Table


def devices(
    as_json: Json = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="measure again, even if nothing has changed")] = False,
) -> None:
    """Every device that can be tuned here, with its measured bandwidths."""
    from lbmtune.backend.registry import available
    from lbmtune.cli import output
    from lbmtune.cli.devices import machine

    found = {name: machine(name, refresh=refresh) for name in available()}
    if as_json:
        output.emit_json(found)
        return
    for name, described in found.items():
        output.print_pairs(_machine_rows(name, described))
        output.stdout().print()


def _machine_rows(name: str, described: Machine) -> list[tuple[str, object]]:
    from lbmtune.units import format_bytes, format_rate

    environment = described.environment
    rows: list[tuple[str, object]] = [
        (f"device {name}", environment.device),
        ("identity", environment.device_id),
        ("architecture", environment.architecture),
        ("memory", format_bytes(environment.memory_bytes)),
        ("copy", format_rate(described.copy_bytes_per_s)),
        ("in place", format_rate(described.in_place_bytes_per_s)),
    ]
    rows += [
        (_copy_name(described.streams, access), format_rate(rate))
        for access, rate in described.stream_bytes_per_s.items()
    ]
    rows += [(f"cache {level}", format_bytes(size)) for level, size in described.caches_bytes.items()]
    if environment.backend == "cpu":
        rows += [("cores", environment.cores), ("vector width", f"{environment.vector_bits} bit")]
    else:
        clock = environment.max_sm_clock_hz
        rows += [("ECC", {True: "on", False: "off", None: "not known"}[environment.ecc])]
        rows += [("multiprocessors", described.multiprocessors), ("driver", environment.driver)]
        rows += [("highest clock", f"{clock / 1e6:.0f} MHz")] if clock else []
    return [*rows, ("measured", described.date)]


def _copy_name(streams: int, access: str) -> str:
    """In words: of '16', or of '64 streaming'."""
    width, _, kind = access.partition(" ")
    return f"{streams}-stream copy, {width} bytes at once" + (f", {kind} stores" if kind else "")


def list_catalogue(study: Study = "quick", sets: Sets = None, device: Device = None, as_json: Json = False) -> None:
    """The catalogue: schemes, layouts, lattices, collisions, storages, axes, and how many configurations are legal."""
    from lbmtune.cli import output
    from lbmtune.cli.configs import study_spec
    from lbmtune.cli.devices import bounds, chosen
    from lbmtune.records.study import tables
    from lbmtune.search.space import legal_set

    spec = study_spec(study, sets)
    where = chosen(device)
    backend = "cpu" if where == "cpu" else "cuda"
    here = bounds(where)
    space = legal_set(spec.case, backend, spec.axes[backend], here.limits)
    facts = {
        **_catalogue(),
        "flops_per_update": _flops(),
        "axes": _axes(backend, tables(spec.axes[backend])),
        "study": spec.name,
        "device": where,
        "limits_of_device": here.known,
        "legal_configurations": len(space.configs),
        "legal_of_each_space": space.sizes,
        "illegal_configurations": space.illegal,
    }
    if as_json:
        output.emit_json(facts)
    else:
        _print_catalogue(facts)


def _catalogue() -> dict[str, dict[str, str]]:
    from lbmtune.catalogue.case import COLLISIONS, FACES, FLOWS
    from lbmtune.catalogue.collisions import collision
    from lbmtune.catalogue.layouts import LAYOUTS
    from lbmtune.catalogue.precision import STORAGES
    from lbmtune.catalogue.schemes import SCHEMES
    from lbmtune.lattice import LATTICES

    return {
        "schemes": {name: scheme.title for name, scheme in SCHEMES.items()},
        "layouts": {name: _first_sentence(build.__module__) for name, build in LAYOUTS.items()},
        "lattices": {name: f"{v.dimensions} dimensions, {v.q} directions" for name, v in LATTICES.items()},
        "collisions": {name: collision(name).title for name in COLLISIONS},
        "storages": {name: storage.title for name, storage in STORAGES.items()},
        "flows": dict(FLOWS),
        "faces": {str(kind): title for kind, title in FACES.items()},
    }


def _flops() -> dict[str, dict[str, int]]:
    """Of each collision on each lattice that it is defined on, without force and walls."""
    from lbmtune.catalogue.case import COLLISIONS, collides
    from lbmtune.catalogue.operations import operator_flops
    from lbmtune.lattice import LATTICES

    return {c: {n: operator_flops(c, n) for n in LATTICES if collides(c, n)} for c in COLLISIONS}


def _first_sentence(module: str) -> str:
    """Of the text that describes a module."""
    text = " ".join((sys.modules[module].__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".")


def _axes(backend: str, searched: Sequence[Table]) -> dict[str, dict[str, Any]]:
    """values: of all spaces together; spaces: of each."""
    from lbmtune.catalogue.axes import AXES

    found = {axis: [tuple(table.get(axis.name, ())) for table in searched] for axis in AXES[backend]}
    return {
        axis.name: {
            "title": axis.title,
            "values": tuple(dict.fromkeys(value for values in each for value in values)),
            "spaces": each,
            "known": axis.names,
        }
        for axis, each in found.items()
    }


def _print_catalogue(facts: dict[str, Any]) -> None:
    from lbmtune.cli import output

    console = output.stdout()
    for kind in ("schemes", "layouts", "lattices", "collisions", "storages", "flows", "faces"):
        console.print(output.table(kind, ("name", "title"), facts[kind].items()), "")
    lattices = tuple(facts["lattices"])
    operations = ((c, *(counts.get(n, "-") for n in lattices)) for c, counts in facts["flops_per_update"].items())
    console.print(output.table("flop per update", ("collision", *(f"{n}>" for n in lattices)), operations), "")
    sizes = facts["legal_of_each_space"]
    names = [f"space {n}" for n in range(1, len(sizes) + 1)] if len(sizes) > 1 else [f"values in {facts['study']}"]
    axes = (
        (n, a["title"], *(", ".join(map(str, v)) or "default" for v in a["spaces"])) for n, a in facts["axes"].items()
    )
    console.print(output.table("axes", ("name", "title", *names), axes), "")
    each = f" ({' + '.join(map(str, sizes))} in its spaces)" if len(sizes) > 1 else ""
    console.print(f"{facts['legal_configurations']} legal configurations{each} on {_where(facts)}")
    console.print(output.table("illegal points", ("points>", "reason"), _reasons(facts["illegal_configurations"])))


def _where(facts: dict[str, Any]) -> str:
    device = str(facts["device"])
    name = device if device == "cpu" else f"GPU {device}"
    return name if facts["limits_of_device"] else f"{name} (not here; limits of any such device)"


def _reasons(illegal: dict[str, int]) -> Iterable[tuple[int, str]]:
    return ((count, f"such as: {reason}") for reason, count in illegal.items())


def explain(
    config: Config,
    study: Study = "quick",
    sets: Sets = None,
    device: Device = None,
    out: Out = RESULTS,
    as_json: Json = False,
) -> None:
    """Why a configuration is legal or not, what it moves and keeps, and the speed that follows."""
    from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
    from lbmtune.cli import devices as here
    from lbmtune.cli import output
    from lbmtune.cli.configs import resolve

    subject = resolve(config, study, sets, device, out)
    reason = subject.reason
    moved = bytes_per_update(subject.case, subject.config)
    described = here.machine(subject.device) if subject.limits_known and not reason else None
    prediction = here.predictor(subject.case, described)(subject.config) if described else None
    facts = {
        "config": subject.config.flat(),
        "key": subject.config.key,
        "legal": reason is None,
        "reason": reason or "",
        "limits_of_device": subject.limits_known,
        "bytes_per_update": moved,
        **arithmetic(subject.case, moved),
        "footprint_bytes": footprint_bytes(subject.case, subject.config),
        "prediction": prediction,
    }
    if as_json:
        output.emit_json(facts)
    else:
        output.print_pairs(_explained(facts))


def _explained(facts: dict[str, Any]) -> list[tuple[str, object]]:
    from lbmtune.units import format_bytes

    limits = "" if facts["limits_of_device"] else " by the limits of any such device"
    rows: list[tuple[str, object]] = [
        ("configuration", ", ".join(f"{k}={v}" for k, v in facts["config"].items())),
        ("key", facts["key"]),
        ("legal", f"yes{limits}" if facts["legal"] else f"no: {facts['reason']}"),
        ("bytes per update", facts["bytes_per_update"]),
        ("flop per update", arithmetic_text(facts)),
        ("footprint", format_bytes(facts["footprint_bytes"])),
    ]
    if facts["prediction"]:
        rows += prediction_rows(facts["prediction"])
    return rows


def arithmetic(case: Case, moved_bytes: float) -> dict[str, float]:
    """Operations of an update (`catalogue.operations`), and those for each byte that it moves."""
    from lbmtune.catalogue.operations import flops_per_update

    operations = flops_per_update(case)
    return {"flops_per_update": operations, "flops_per_byte": operations / moved_bytes}


def arithmetic_text(facts: Mapping[str, Any]) -> str:
    """The same in words."""
    return f"{facts['flops_per_update']} ({facts['flops_per_byte']:.2f} flop/B)"


def prediction_rows(prediction: Prediction) -> list[tuple[str, object]]:
    """Names and values of a Prediction."""
    return [
        ("expected", f"{prediction.mlups:,.0f} MLUPS"),
        ("expected limit", f"{prediction.limit} ({prediction.ceiling_source})"),
    ]


def render(
    config: Config,
    study: Study = "quick",
    sets: Sets = None,
    device: Device = None,
    out: Out = RESULTS,
    as_json: Json = False,
) -> None:
    """The source text of a kernel."""
    from lbmtune.cli import output
    from lbmtune.cli.configs import resolve
    from lbmtune.codegen.render import render as rendered

    subject = resolve(config, study, sets, device, out).legal()
    program = rendered(subject.case, subject.config)
    if as_json:
        output.emit_json(
            {
                "config": subject.config.flat(),
                "target": program.target,
                "options": program.options,
                "entries": program.entries,
                "digest": program.digest,
                "source": program.source,
            }
        )
    else:
        sys.stdout.write(program.source)


def predict(
    config: Config,
    study: Study = "quick",
    sets: Sets = None,
    device: Device = None,
    out: Out = RESULTS,
    as_json: Json = False,
) -> None:
    """The speed that the model expects on a device that is here."""
    from lbmtune.cli import devices as here
    from lbmtune.cli import output
    from lbmtune.cli.configs import resolve

    subject = resolve(config, study, sets, device, out)
    described = here.machine(subject.device)
    prediction = here.predictor(subject.case, described)(subject.legal().config)
    counted = arithmetic(subject.case, prediction.bytes_per_update)
    if as_json:
        named = {"config": subject.config.flat(), "key": subject.config.key}
        output.emit_json({**named, **counted, "prediction": prediction})
    else:
        moved = [("bytes per update", prediction.bytes_per_update), ("flop per update", arithmetic_text(counted))]
        output.print_pairs([*moved, *prediction_rows(prediction)])
