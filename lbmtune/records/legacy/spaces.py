"""Spaces of studies as version 0.1 wrote them: one may reach several families, and is one space for each today."""

from collections.abc import Iterator
from itertools import product

from lbmtune.catalogue.config import DEFAULT_FAMILY, FAMILIES, Scalar, knobs_by_name
from lbmtune.errors import InputError
from lbmtune.records.legacy.configurations import (
    DEFAULTS,
    HANDLED,
    OF_LAYOUT,
    TILES,
    composed,
    family_meant,
    gone,
    name_in,
)
from lbmtune.records.spec import Table

_DECIDING = ("addressing", "representation", "launch", "halo", "steps", "march", "scheme")
"""Knobs of version 0.1 from which the family followed."""
_PARTS = {"register_limit": {"max_registers", "min_blocks"}, "parallel_loop": TILES, "tile": {*TILES, "block"}}
"""Knobs of version 0.1 that one of today stands for."""


def is_legacy_table(table: Table, backend: str) -> bool:
    """Return whether a space is one of version 0.1: it names no family, and a knob or a value that is gone."""
    if "family" in table or backend not in DEFAULTS:
        return False
    return bool(gone(backend) & table.keys()) or {name for name, _ in _by_family(table, backend)} != {DEFAULT_FAMILY}


def current_tables(table: Table, backend: str) -> tuple[Table, ...]:
    """Return a space by the knobs of today: one of version 0.1 as spaces of one family each. Raises InputError."""
    return migrated_tables(table, backend) if is_legacy_table(table, backend) else (table,)


def migrated_tables(table: Table, backend: str) -> tuple[dict[str, tuple[Scalar, ...]], ...]:
    """Return a space of version 0.1 as spaces of one family each. Raises InputError for a knob without a place."""
    for name in table:
        if name not in DEFAULTS[backend]:
            raise InputError(
                f"{name} is a knob of today, which is not supported in a space without a family (use family=NAME): "
                "it is read as one of version 0.1."
            )
    return tuple(_of_family(name, chosen, backend) for name, chosen in _by_family(table, backend))


def _by_family(table: Table, backend: str) -> Iterator[tuple[str, dict[str, tuple[Scalar, ...]]]]:
    """Yield each family that a space of version 0.1 reaches, with the values that reach it."""
    usual = DEFAULTS[backend]
    deciding = [name for name in _DECIDING if name in usual]
    groups: dict[str, dict[str, dict[Scalar, None]]] = {}
    for values in product(*(table.get(name, (usual[name],)) for name in deciding)):
        point = {**usual, **dict(zip(deciding, values, strict=True))}
        name = family_meant(point, backend)
        if name == "temporal-blocking" and point["scheme"] != (
            "pull" if point["representation"] == "moments" else "push"
        ):
            continue
        for knob, value in zip(deciding, values, strict=True):
            groups.setdefault(name, {}).setdefault(knob, {})[value] = None
    for name, found in groups.items():
        reached = {knob: tuple(values) for knob, values in found.items() if knob in table}
        yield name, {**{knob: tuple(values) for knob, values in table.items()}, **reached}


def _of_family(name: str, table: Table, backend: str) -> dict[str, tuple[Scalar, ...]]:
    """Return the part of a space that belongs to a family; knobs that do not act there are left out."""
    known, usual = knobs_by_name(FAMILIES[backend][name]), DEFAULTS[backend]
    found: dict[str, dict[Scalar, None]] = {"family": {name: None}}
    for old in [*table, *(other for other in usual if other not in table)]:
        new = name_in(known, old)
        if new is None or old in HANDLED[backend, name]:
            continue
        values = [new.values.get(value, value) for value in table.get(old, (usual[old],))]
        if old in OF_LAYOUT:
            values = [value for value in values if value != usual[old]]
        allowed = known[new.name].allowed
        values = [value for value in values if value in allowed or not allowed]
        if values and (old in table or values != [known[new.name].default]):
            found[new.name] = dict.fromkeys(values)
    parts = [knob for knob in ("max_registers", "min_blocks", *TILES, "block") if knob in table]
    for point in product(*(table[knob] for knob in parts)):
        full = {**usual, **dict(zip(parts, point, strict=True))}
        if int(full.get("max_registers", 0)) and int(full.get("min_blocks", 0)):
            continue  # launch bounds override the compiler's cap
        for knob, value in composed(full, name, backend).items():
            if not _PARTS[knob].isdisjoint(parts):
                found.setdefault(knob, {})[value] = None
    return {knob: tuple(values) for knob, values in found.items()}
