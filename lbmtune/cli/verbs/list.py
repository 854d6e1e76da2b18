"""The verb `list`: the catalogue, the axes of a study, and what of them is legal on a device."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from lbmtune.cli.arguments.options import Device, Json, Machine, Sets, Study

if TYPE_CHECKING:
    from lbmtune.catalogue.families.rules import Limits
    from lbmtune.records.study import Table


def list_catalogue(
    study: Study = None, sets: Sets = None, device: Device = None, machine: Machine = None, as_json: Json = False
) -> None:
    """The catalogue, and how many configurations are legal.

    Schemes, layouts, lattices, collisions, storages, flows, geometries and the axes with their values.
    """
    from lbmtune.cli.arguments.configs import study_spec
    from lbmtune.cli.arguments.devices import bounds, chosen, place
    from lbmtune.cli.arguments.machines import elsewhere
    from lbmtune.cli.files.studyfile import check_acts
    from lbmtune.cli.format import output
    from lbmtune.records.study import tables
    from lbmtune.search.space import legal_set

    spec = study_spec(study, sets)
    there = elsewhere(machine, device)
    where = chosen(device, machine=there)
    backend = "cpu" if where == "cpu" else "cuda"
    check_acts(sets or (), backend, place(where, there))
    here = bounds(where, there)
    space = legal_set(spec.case, backend, spec.axes[backend], here.limits)
    facts = {
        **catalogue(),
        "flops_per_update": _flops(),
        "axes": _axes(backend, tables(spec.axes[backend]), here.limits),
        "study": spec.name,
        "device": where,
        "limits_of_device": here.known,
        "machine": there.name if there else None,
        "legal_configurations": len(space.configs),
        "legal_of_each_space": space.sizes,
        "illegal_configurations": space.illegal,
    }
    if as_json:
        output.emit_json(facts)
    else:
        _print_catalogue(facts)


def catalogue() -> dict[str, dict[str, str]]:
    """What there is to choose from: names and titles of each kind."""
    from lbmtune.catalogue.collisions import collision
    from lbmtune.catalogue.layouts import LAYOUTS
    from lbmtune.catalogue.precision import STORAGES
    from lbmtune.catalogue.problem.case import COLLISIONS, FLOWS
    from lbmtune.catalogue.problem.faces import FACES
    from lbmtune.catalogue.problem.geometries import GENERATORS
    from lbmtune.catalogue.problem.patches import SHAPES
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
        "patches": {name: _patch(kind) for name, kind in SHAPES.items()},
        "geometries": {name: _geometry(kind) for name, kind in GENERATORS.items()},
    }


def _geometry(kind: Any) -> str:
    """What a generator makes, and its parameters with their defaults, as a study file writes them."""
    return f"{_first_sentence(kind.__module__)} ({_parameters(kind)})"


def _patch(kind: Any) -> str:
    """Which cells of a face a shape holds, and its parameters."""
    said = (kind.__doc__ or "").splitlines()[0].rstrip(".")
    return f"{said} ({_parameters(kind)})"


def _parameters(kind: Any) -> str:
    return ":".join(f"{f.name}={_usual(f.default)}" for f in fields(kind) if f.name != "digest")


def _usual(value: object) -> str:
    """The default of a parameter; dots where there is none."""
    return "..." if value is MISSING else f"{value:g}" if isinstance(value, float) else str(value)


def _flops() -> dict[str, dict[str, int]]:
    """Of each collision on each lattice that it is defined on, without force and walls."""
    from lbmtune.catalogue.operation_counts import operator_flops
    from lbmtune.catalogue.problem.case import COLLISIONS, collides
    from lbmtune.lattice import LATTICES

    return {c: {n: operator_flops(c, n) for n in LATTICES if collides(c, n)} for c in COLLISIONS}


def _first_sentence(module: str) -> str:
    """Of the text that describes a module."""
    text = " ".join((sys.modules[module].__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".")


def _axes(backend: str, searched: Sequence[Table], limits: Limits) -> dict[str, dict[str, Any]]:
    """values: of all spaces together; spaces: of each, none where the axis keeps its default; known: all names."""
    from lbmtune.catalogue.config import backend_knobs, completed, families_with

    filled = completed({"backend": backend}, limits)
    found = {axis: [tuple(table.get(axis.name, ())) for table in searched] for axis in backend_knobs(backend).values()}
    return {
        axis.name: {
            "title": axis.meaning,
            "unit": axis.unit,
            "families": families_with(axis.name, backend),
            "values": tuple(dict.fromkeys(value for values in each for value in values)),
            "spaces": each,
            "default": filled.get(axis.name, axis.default),
            "known": axis.allowed,
        }
        for axis, each in found.items()
    }


def _print_catalogue(facts: dict[str, Any]) -> None:
    from lbmtune.cli.format import output

    console = output.stdout()
    for kind in ("schemes", "layouts", "lattices", "collisions", "storages", "flows", "faces", "patches", "geometries"):
        console.print(output.table(kind, ("name", "title"), facts[kind].items()), "")
    lattices = tuple(facts["lattices"])
    operations = ((c, *(counts.get(n, "-") for n in lattices)) for c, counts in facts["flops_per_update"].items())
    console.print(output.table("flop per update", ("collision", *(f"{n}>" for n in lattices)), operations), "")
    sizes = facts["legal_of_each_space"]
    title = f"axes, with the values in {facts['study']}, or the default in brackets"
    axes = (row for name, axis in facts["axes"].items() for row in axis_rows(name, axis))
    console.print(output.table(title, ("name", "title"), axes), "")
    each = f" ({' + '.join(map(str, sizes))} in its spaces)" if len(sizes) > 1 else ""
    console.print(f"{facts['legal_configurations']} legal configurations{each} on {_where(facts)}")
    console.print(output.table("illegal points", ("points>", "reason"), _reasons(facts["illegal_configurations"])))


def axis_rows(name: str, axis: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """An axis, then its values below: of each space where these differ, and all that have names."""
    spaces = [", ".join(map(str, values)) or f"({axis['default']})" for values in axis["spaces"]]
    yield name, axis["title"]
    if len(set(spaces)) == 1:
        yield "  values", spaces[0]
    else:
        yield from ((f"  space {number}", values) for number, values in enumerate(spaces, 1))
    if axis["known"]:
        yield "  all names", ", ".join(map(str, axis["known"]))


def _where(facts: dict[str, Any]) -> str:
    if facts["machine"]:
        return str(facts["machine"])
    device = str(facts["device"])
    name = device if device == "cpu" else f"GPU {device}"
    return name if facts["limits_of_device"] else f"{name} (not here; limits of any such device)"


def _reasons(illegal: dict[str, int]) -> Iterable[tuple[int, str]]:
    return ((count, f"such as: {reason}") for reason, count in illegal.items())
