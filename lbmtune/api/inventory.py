"""List the catalogue, the knobs of a study, and how many of its configurations are legal on a device."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from typing import Any

from lbmtune.api.machines import devices
from lbmtune.backend.registry import backend_of
from lbmtune.catalogue.collisions import COLLISIONS, collision
from lbmtune.catalogue.config import (
    DEFAULT_FAMILY,
    FAMILIES,
    Scalar,
    backend_knobs,
    completed,
    families_with,
    family,
    from_flat,
)
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.family_knobs import knobs_by_name
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.operation_counts import operator_flops
from lbmtune.catalogue.precision import STORAGES, UNSHIFTED
from lbmtune.catalogue.problem.case import Case, collides
from lbmtune.catalogue.problem.faces import FACES, WALL_RULES
from lbmtune.catalogue.problem.flows import FLOWS
from lbmtune.catalogue.problem.geometries import GENERATORS
from lbmtune.catalogue.problem.patches import SHAPES
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.errors import unknown
from lbmtune.lattice import LATTICES
from lbmtune.model.machine.description import Machine
from lbmtune.records.spec import StudySpec, Table, tables
from lbmtune.search.spaces.bounds import legal_of
from lbmtune.search.spaces.space import Space


def listing(spec: StudySpec, device: str, machine: Machine | None = None) -> dict[str, Any]:
    """Return the catalogue, the knobs of a study with their values, and the counts of legal and illegal points.

    device: 'cpu' or the index of a GPU; machine: whose limits hold instead of those of the device.
    """
    backend, here = backend_of(device), devices.bounds(device, machine)
    space = legal_of(spec, backend, here.limits)
    return {
        **catalogue(),
        "schemes_without_kernels": dict(_without_kernels(spec.case, backend, here.limits)),
        "flops_per_update": _flops(),
        "knobs": _knobs(backend, _searched(space) or tables(spec.axes[backend]), here.limits),
        "study": spec.name,
        "device": device,
        "limits_of_device": here.known,
        "machine": machine.name if machine else None,
        "legal_configurations": len(space.configs),
        "legal_of_each_space": space.sizes,
        "illegal_configurations": space.illegal,
        "ranges": space.ranges,
    }


_KINDS = {
    "schemes": "scheme",
    "layouts": "layout",
    "lattices": "lattice",
    "collisions": "collision",
    "storages": "storage",
    "flows": "flow",
    "faces": "face",
    "patches": "patch",
    "geometries": "geometry",
    "walls": "wall rule",
}
"""Kinds of the catalogue, and what one of a kind is called."""


def entries(facts: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return what a listing says of a name: a kind such as 'schemes', a knob, a family, or one of a kind.

    A name may be several of them, as `storage` is a knob and `link` a layout and a value. Raises InputError.
    """
    backend = backend_of(facts["device"])
    found = [_kind_entry(kind, facts) for kind in (name,) if kind in ("knobs", "families", *_KINDS)]
    if name in facts["knobs"]:
        ranges = {one.family: one.reason for one in facts["ranges"] if one.knob == name}
        found.append({"kind": "knob", "name": name, **facts["knobs"][name], "ranges": ranges})
    if name in FAMILIES[backend]:
        found.append(_family_entry(name, facts))
    found += [
        {"kind": kind, "name": name, "title": facts[kinds][name], "without_kernels": _why_not(kind, name, facts)}
        for kinds, kind in _KINDS.items()
        if name in facts[kinds]
    ]
    if not found:
        known = {"knobs", "families", *_KINDS, *facts["knobs"], *FAMILIES[backend]}
        raise unknown("name", name, known.union(*(facts[kinds] for kinds in _KINDS)))
    return found


def _kind_entry(kind: str, facts: dict[str, Any]) -> dict[str, Any]:
    if kind == "knobs":
        named = {name: knob["title"] for name, knob in facts["knobs"].items()}
    elif kind == "families":
        named = {name: _first_line(one) for name, one in FAMILIES[backend_of(facts["device"])].items()}
    else:
        named = facts[kind]
    return {"kind": "list", "name": kind, "entries": named}


def _family_entry(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Return a family with those of its knobs that it shares with few others first."""
    record = FAMILIES[backend_of(facts["device"])][name]
    shared = {one: len(facts["knobs"][one]["families"]) for one in knobs_by_name(record) if one in facts["knobs"]}
    own = sorted(shared, key=lambda one: shared[one])
    titles = {one: knobs_by_name(record)[one].meaning for one in own}
    return {"kind": "family", "name": name, "title": _first_line(record), "knobs": titles}


def _why_not(kind: str, name: str, facts: dict[str, Any]) -> str:
    return str(facts["schemes_without_kernels"].get(name, "")) if kind == "scheme" else ""


def _without_kernels(case: Case, backend: str, limits: Limits) -> Iterator[tuple[str, str]]:
    """Yield the schemes that a backend has no kernels for, whatever the other knobs are, with the reason."""
    for name in SCHEMES:
        reason = broken(case, from_flat(completed({"backend": backend, "scheme": name}, limits)), limits) or ""
        if reason.startswith(f"scheme={name} is not supported on "):
            yield name, reason


def _searched(space: Space) -> tuple[Table, ...]:
    """Return the values that were made for each family that has points; none if the study gives all values."""
    empty = {one.family for one in space.ranges if not one.values}
    found: dict[str, dict[str, tuple[Scalar, ...]]] = {}
    for one in (one for one in space.ranges if one.family not in empty):
        table = found.setdefault(one.family, {"family": (one.family,)})
        table[one.knob] = (*table.get(one.knob, ()), *one.values)
    return tuple(found.values())


def catalogue() -> dict[str, dict[str, str]]:
    """Return names and titles of schemes, layouts, lattices, collisions, storages, flows, geometries and walls."""
    return {
        "schemes": {name: scheme.title for name, scheme in SCHEMES.items()},
        "layouts": {name: _first_sentence(build.__module__) for name, build in LAYOUTS.items()},
        "lattices": {name: f"{v.dimensions} dimensions, {v.q} directions" for name, v in LATTICES.items()},
        "collisions": {name: collision(name).title for name in COLLISIONS},
        "storages": {name: storage.title for name, storage in {**STORAGES, **UNSHIFTED}.items()},
        "flows": {name: flow.title for name, flow in FLOWS.items()},
        "faces": {str(kind): title for kind, title in FACES.items()},
        "patches": {name: f"{_first_line(kind)} ({_parameters(kind)})" for name, kind in SHAPES.items()},
        "geometries": {
            name: f"{_first_sentence(kind.__module__)} ({_parameters(kind)})" for name, kind in GENERATORS.items()
        },
        "walls": {str(rule): title for rule, title in WALL_RULES.items()},
    }


def _first_line(kind: Any) -> str:
    return str((kind.__doc__ or "").splitlines()[0].rstrip("."))


def _parameters(kind: Any) -> str:
    """Return the parameters of a generator or a shape with their defaults, as a study file writes them."""
    return ":".join(f"{f.name}={_default(f.default)}" for f in fields(kind) if f.name != "digest")


def _default(value: object) -> str:
    """Return the default of a parameter; dots if there is none."""
    return "..." if value is MISSING else f"{value:g}" if isinstance(value, float) else str(value)


def _flops() -> dict[str, dict[str, int]]:
    """Return operations per update of each collision on each lattice, without force and walls."""
    return {c: {n: operator_flops(c, n) for n in LATTICES if collides(c, n)} for c in COLLISIONS}


def _first_sentence(module: str) -> str:
    text = " ".join((sys.modules[module].__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".")


def _other_titles(name: str, title: str, backend: str) -> dict[str, str]:
    """Return what a knob means in the families of a backend where its title is another."""
    meanings = {one: knobs_by_name(FAMILIES[backend][one])[name].meaning for one in families_with(name, backend)}
    return {family: meaning for family, meaning in meanings.items() if meaning != title}


def _knobs(backend: str, searched: Sequence[Table], limits: Limits) -> dict[str, dict[str, Any]]:
    """Return each knob: title, values of all spaces, of each space (none: the default), default, and known names.

    by_device: what of the device the default is; empty for a fixed one.
    """
    filled, by_device = completed({"backend": backend}, limits), family(backend, DEFAULT_FAMILY).by_device
    found = {knob: [tuple(table.get(knob.name, ())) for table in searched] for knob in backend_knobs(backend).values()}
    return {
        knob.name: {
            "title": knob.meaning,
            "other_titles": _other_titles(knob.name, knob.meaning, backend),
            "unit": knob.unit,
            "families": families_with(knob.name, backend),
            "values": tuple(dict.fromkeys(value for values in each for value in values)),
            "spaces": each,
            "default": filled.get(knob.name, knob.default),
            "by_device": by_device.get(knob.name, ""),
            "known": knob.allowed,
        }
        for knob, each in found.items()
    }
