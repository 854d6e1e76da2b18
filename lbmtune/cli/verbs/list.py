"""The verb `list`: the catalogue, the knobs of a study, and what of them is legal on a device."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from lbmtune import api
from lbmtune.backend.registry import backend_of
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.cli import completion
from lbmtune.cli.arguments.configs import searched
from lbmtune.cli.arguments.options import Json, Options
from lbmtune.cli.format import output

_KINDS = (
    *("schemes", "layouts", "lattices", "collisions", "storages", "flows", "faces", "patches"),
    *("geometries", "walls"),
)


Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="this alone: a knob, a family, a scheme, ..., or schemes, knobs, families, ...",
        autocompletion=completion.knobs_and_families,
    ),
]


def list_catalogue(
    options: Annotated[Options, "study", "sets", "device", "machine", "geometry"],
    name: Name = None,
    as_json: Json = False,
) -> None:
    """List the catalogue, and count legal configurations.

    Families, schemes, layouts, lattices, collisions, storages, flows, geometries, walls, knobs with their values. Of
    a knob all that is known: its meaning in each family, its values, and why it has no others.

    Examples:
        lbmtune list --device cpu
        lbmtune list block --machine h200
        lbmtune list schemes
        lbmtune list --study box --machine h200
    """
    facts = api.listing(*searched(options))
    found = None if name is None else api.entries(facts, name)
    if as_json:
        output.emit_json("list", facts if found is None else {"entries": found})
    elif found is None:
        _print_listing(facts)
    else:
        for entry in found:
            _print_entry(entry, facts)


def _print_listing(facts: dict[str, Any]) -> None:
    console = output.stdout()
    for entry in api.entries(facts, "families"):
        _print_entry(entry, facts)
        console.print()
    for kind in _KINDS:
        console.print(output.table(kind, ("name", "title"), facts[kind].items()), "")
    if without := facts["schemes_without_kernels"]:
        console.print(output.table("schemes without kernels here", ("name", "reason"), without.items()), "")
    lattices = tuple(facts["lattices"])
    operations = ((c, *(counts.get(n, "-") for n in lattices)) for c, counts in facts["flops_per_update"].items())
    console.print(output.table("flop per update", ("collision", *(f"{n}>" for n in lattices)), operations), "")
    sizes = facts["legal_of_each_space"]
    families = facts["knobs"]["family"]["known"]
    by_space = "in each space of" if len(sizes) > 1 else "in"
    title = f"knobs, with the values {by_space} {facts['study']}, or the default in brackets"
    knobs = (row for name, knob in facts["knobs"].items() for row in knob_rows(name, knob, families))
    console.print(output.table(title, ("name", "title"), knobs), "")
    each = f" ({' + '.join(map(str, sizes))} in its spaces)" if len(sizes) > 1 else ""
    console.print(f"{facts['legal_configurations']} legal configurations{each} on {_where(facts)}")
    if facts["ranges"]:
        closed = ((one.family, one.knob, one.reason) for one in facts["ranges"])
        console.print(output.table("why knobs have no other values", ("family", "knob", "reason"), closed), "")
    reasons = ((count, f"such as: {reason}") for reason, count in facts["illegal_configurations"].items())
    console.print(output.table("illegal points", ("points>", "reason"), reasons))


def _print_entry(entry: dict[str, Any], facts: dict[str, Any]) -> None:
    match entry["kind"]:
        case "list":
            output.stdout().print(output.table(entry["name"], ("name", "title"), entry["entries"].items()))
        case "knob":
            output.print_pairs(_knob_pairs(entry, facts))
        case "family":
            output.print_pairs([("family", entry["name"]), ("meaning", entry["title"])])
            rows = ((name, title, _values(facts["knobs"][name])) for name, title in entry["knobs"].items())
            title = f"knobs, with the values in {facts['study']}, or the default in brackets"
            output.stdout().print("", output.table(title, ("knob", "meaning", "values"), rows))
        case kind:
            why_not = [("no kernels here", entry["without_kernels"])] if entry["without_kernels"] else []
            output.print_pairs([(kind, entry["name"]), ("meaning", entry["title"]), *why_not])


def _knob_pairs(knob: dict[str, Any], facts: dict[str, Any]) -> list[tuple[str, object]]:
    """Return names and values of all that is known of a knob."""
    unit = [("unit", knob["unit"])] if knob["unit"] else []
    meanings = [(f"in {family}", title) for family, title in knob["other_titles"].items()]
    by_device = f", of the device: {knob['by_device']}" if knob["by_device"] else ""
    allowed = ", ".join(map(str, knob["known"])) or "numbers, or extents"
    reasons = [(f"why in {family}", reason) for family, reason in knob["ranges"].items()]
    every = set(knob["families"]) >= set(facts["knobs"]["family"]["known"])
    return [
        ("knob", knob["name"]),
        ("meaning", knob["title"]),
        *meanings,
        *unit,
        ("families", "all" if every else ", ".join(knob["families"])),
        ("default", f"{knob['default']}{by_device}"),
        (f"in {facts['study']}", _values(knob)),
        ("allowed", allowed),
        *reasons,
        ("next", f"lbmtune vary {knob['name']} compares them"),
    ]


def _values(knob: dict[str, Any]) -> str:
    """Return the values of a knob in a study, or its default in brackets."""
    return ", ".join(map(str, knob["values"])) or f"({knob['default']})"


def knob_rows(name: str, knob: dict[str, Any], families: Sequence[str] = ()) -> Iterable[tuple[str, str]]:
    """Return a knob, then its values (of each space if they differ), all allowed ones, and the families that have it.

    families: of the backend; they are left out if all of them have the knob.
    """
    default = f"({knob['default']}{f', of the device: {how}' if (how := knob['by_device']) else ''})"
    spaces = [", ".join(map(str, values)) or default for values in knob["spaces"]]
    yield name, knob["title"]
    yield from ((f"  in {family}", title) for family, title in knob["other_titles"].items())
    if len(set(spaces)) == 1:
        yield "  values", spaces[0]
    else:
        yield from ((f"  space {number}", values) for number, values in enumerate(spaces, 1))
    if knob["known"]:
        yield "  allowed", ", ".join(map(str, knob["known"]))
    if knob["families"] and set(knob["families"]) < set(families):
        yield "  families", ", ".join(knob["families"])


def _where(facts: dict[str, Any]) -> str:
    if facts["machine"]:
        return str(facts["machine"])
    device = str(facts["device"])
    name = device if BACKENDS[backend_of(device)].shares_host else f"GPU {device}"
    return name if facts["limits_of_device"] else f"{name} (not here; limits that all GPUs share)"
