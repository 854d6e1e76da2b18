"""Configurations as version 0.1 wrote them: the one table by which old files, keys and arguments stay readable.

Version 0.1 had one record per backend with all knobs; which family a configuration belonged to was inferred from them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, TypeVar

from lbmtune.catalogue.config import FAMILIES, KernelConfig, Scalar, families_with, from_flat, knobs_by_name
from lbmtune.catalogue.knobs import scalar
from lbmtune.errors import InputError

Flat = dict[str, Scalar]
_COMMON: Mapping[str, Scalar] = {
    "scheme": "pull",
    "layout": "soa",
    "width": 1,
    "padding": 0,
    "group": 1,
    "layout_tile": "1x1x1",
    "storage": "fp32",
    "compute": "fp32",
    "flags": "compiled",
    "addressing": "direct",
    "order": "row",
    "prefetch_index": 0,
    "parity": "kernels",
    "boundary": "branch",
    "neighbours": "all",
}
DEFAULTS: Mapping[str, Mapping[str, Scalar]] = {
    "cuda": {
        **_COMMON,
        "block": "256x1x1",
        "cells_per_thread": 1,
        "max_registers": 0,
        "min_blocks": 0,
        "wrap": "arithmetic",
        "march": 1,
        "prefetch": 0,
        "load_hint": "default",
        "store_hint": "default",
        "l2_prefetch": 0,
        "index_bits": 0,
        "block_order": "row",
        "macroscopics": "never",
        "launch": "call",
        "meeting": "all",
        "representation": "populations",
        "steps": 1,
        "rows": 1,
        "pack": 1,
        "barrier": "block",
        "pending": "registers",
        "beyond": 0,
        "chunks": "even",
        "fetch": "registers",
        "halo": "computed",
        "held": 0,
    },
    "cpu": {
        **_COMMON,
        "threads": 1,
        "vector_bits": 512,
        "loop": "z",
        "tile_y": 0,
        "tile_z": 0,
        "row_padding": 0,
        "row_offset": 16,
        "streaming_stores": 0,
        "wrap": "ghost",
        "prefetch_propagated": 0,
        "prefetch_local": 0,
        "reads": "once",
        "gather": "vector",
        "pinning": "none",
        "pages": "default",
        "first_touch": "serial",
        "steps": 1,
        "prefetch_rows": 0,
        "representation": "populations",
        "tile_x": 0,
        "stride": 0,
        "far_ends": "inside",
    },
}
"""Knobs of version 0.1 and their defaults."""


class Renamed(NamedTuple):
    """A knob's name now, and its values that have other names (none: as before)."""

    name: str
    values: Mapping[Scalar, Scalar] = {}


_SWAP: Mapping[Scalar, Scalar] = {"kernels": 0, "pointers": 1}
_LINKS: Mapping[Scalar, Scalar] = {"all": "all", "chase": "three_pointers"}
_FETCH: Mapping[Scalar, Scalar] = {0: "none", 1: "registers", 2: "cp_async", 3: "bulk"}
_PASSES: Mapping[Scalar, Scalar] = {"once": "one", "twice": "two", "ahead": "pipelined", "lean": "minimal"}
RENAMED: Mapping[str, tuple[Renamed, ...]] = {
    "march": tuple(map(Renamed, ("z_cells", "sites_per_thread", "chunk_planes", "tile_planes"))),
    "prefetch": (Renamed("prefetch_cells"), Renamed("prefetch_sites"), Renamed("plane_fetch", _FETCH)),
    "fetch": (Renamed("prefetch_to"),),
    "meeting": (Renamed("grid_sync"),),
    "held": (Renamed("register_planes"),),
    "barrier": (Renamed("warp_sync"),),
    "pending": (Renamed("z_buffer"),),
    "beyond": (Renamed("overread"),),
    "chunks": (Renamed("chunk_schedule", {"even": "uniform", "falling": "tapered"}),),
    "parity": (Renamed("pointer_swap", _SWAP),),
    "neighbours": (Renamed("links", _LINKS),),
    "reads": (Renamed("collision_passes", _PASSES),),
    "far_ends": (Renamed("row_tail", {"inside": "in_loop", "between": "peeled"}),),
}
"""What the knobs of version 0.1 are called, by family: the first of the names that a family has."""
_DECIDING = ("addressing", "representation", "launch", "halo", "steps", "march", "scheme")
"""Knobs of version 0.1 from which the family followed."""
_IMPLIED = frozenset({"addressing", "halo"})


def is_legacy(values: Mapping[str, Scalar]) -> bool:
    """Return whether flat values are those of version 0.1: they name no family, and a knob that is gone."""
    if "family" in values:
        return False
    backend = str(values.get("backend", "cuda"))
    now = {name for record in FAMILIES.get(backend, {}).values() for name in knobs_by_name(record)}
    old = DEFAULTS.get(backend, {}).keys()
    full = old <= values.keys()
    return full or any(name in old and name not in now for name in values) or _means_another(values, backend)


def _means_another(values: Mapping[str, Scalar], backend: str) -> bool:
    return _family({**DEFAULTS[backend], **values}, backend) != "direct" if backend in DEFAULTS else False


_MEANT: Mapping[str, tuple[tuple[str, Callable[[Mapping[str, Any]], bool]], ...]] = {
    "cuda": (
        ("persistent", lambda full: full["launch"] == "resident"),
        ("face-exchange", lambda full: full["halo"] == "faces"),
        ("temporal-blocking", lambda full: full["representation"] == "moments" or int(full["steps"]) > 1),
        ("sparse", lambda full: full["addressing"] != "direct"),
        ("column", lambda full: int(full["march"]) > 1),
    ),
    "cpu": (
        ("sparse", lambda full: full["addressing"] != "direct"),
        ("moments-wavefront", lambda full: full["representation"] == "moments"),
        ("wavefront", lambda full: int(full["steps"]) > 1),
    ),
}
"""The families that values of version 0.1 meant: the first whose condition holds, or else the direct one."""


def _family(full: Mapping[str, Scalar], backend: str) -> str:
    """Return the family that complete flat values of version 0.1 meant."""
    return next((name for name, holds in _MEANT[backend] if holds(full)), "direct")


def migrated(values: Mapping[str, Scalar]) -> Flat:
    """Return flat values of version 0.1 as this version writes them. Raises InputError for a knob without a place."""
    rest = dict(values)
    backend = str(rest.pop("backend", "cuda"))
    if backend not in DEFAULTS:
        raise InputError(f"unknown backend {backend!r}; use cuda or cpu.")
    usual = DEFAULTS[backend]
    full: Flat = {**usual, **{name: _typed(usual.get(name), value) for name, value in rest.items()}}
    name = _family(full, backend)
    found: Flat = {"backend": backend, "family": name}
    found |= _composed(full, name, backend)
    for old, value in full.items():
        if old in _HANDLED[backend, name]:
            continue
        found |= _translated(old, value, name, backend, is_usual=value == usual.get(old))
    _check_nothing_lost(found, {old: full[old] for old in _SELECTING if old in rest})
    return found


_SELECTING = ("scheme", "representation", "launch", "steps", "march", "loop")
"""Knobs by which version 0.1 told kernels apart; a family without one of them has one value of it."""


def _check_nothing_lost(found: Flat, given: Mapping[str, Scalar]) -> None:
    """Raise InputError if a family means another value of a knob that it does not have."""
    config = from_flat(found)
    meant = previous_values(config)
    for old, value in given.items():
        if value != meant[old]:
            raise InputError(
                f"{old}={value} is not supported for family {config.family} of {config.backend}, which these values of "
                f"version 0.1 stand for (there it is {meant[old]}); leave it out, or name another family."
            )


def _typed(usual: Scalar | None, value: Scalar) -> Scalar:
    try:
        return int(value) if isinstance(usual, int) and str(value).lstrip("-").isdecimal() else value
    except ValueError:
        return value


def _translated(old: str, value: Scalar, name: str, backend: str, *, is_usual: bool) -> Flat:
    """Return one knob by its name in a family; nothing if it does not act there and says nothing."""
    known = knobs_by_name(FAMILIES[backend][name])
    for renamed in RENAMED.get(old, (Renamed(old),)):
        if renamed.name in known:
            if old in _OF_LAYOUT and is_usual:
                return {}
            return {renamed.name: renamed.values.get(value, value)}
    if is_usual or old in _IMPLIED or old in _SELECTING:
        return {}
    names = ", ".join(sorted({renamed.name for renamed in RENAMED.get(old, (Renamed(old),))}))
    having = sorted(
        {family for one in RENAMED.get(old, (Renamed(old),)) for family in families_with(one.name, backend)}
    )
    who = f"family {having[0]} has" if len(having) == 1 else f"families {', '.join(having)} have"
    where = f" ({who} {names})" if having else ""
    raise InputError(f"{old}={value} is not supported for family {name} of {backend}{where}; leave it out.")


_OF_LAYOUT = frozenset({"width", "group", "layout_tile"})
"""Knobs of layouts that had a value for no effect."""


def _limit(full: Mapping[str, Scalar]) -> Flat:
    registers, blocks = int(full["max_registers"]), int(full["min_blocks"])
    if registers and blocks:
        raise InputError(
            f"max_registers={registers} with min_blocks={blocks} is not supported (use register_limit with one of "
            "them): launch bounds override the compiler's cap."
        )
    return {"register_limit": f"{registers}-registers" if registers else f"{blocks}-blocks" if blocks else "none"}


def _composed(full: Mapping[str, Scalar], name: str, backend: str) -> Flat:
    """Return the knobs that stand for several of version 0.1."""
    tiles = f"{full.get('tile_y')}x{full.get('tile_z')}"
    of_family: Mapping[tuple[str, str], Callable[[], Flat]] = {
        ("cuda", "persistent"): dict,
        ("cuda", "face-exchange"): lambda: {**_limit(full), "tile": full["block"]},
        ("cpu", "direct"): lambda: {"parallel_loop": f"tile-{tiles}" if full["loop"] == "tile" else full["loop"]},
        ("cpu", "sparse"): dict,
        ("cpu", "wavefront"): lambda: {"tile": tiles},
        ("cpu", "moments-wavefront"): lambda: {"tile": f"{full['tile_x']}x{tiles}"},
    }
    return of_family.get((backend, name), lambda: _limit(full))()


_TILES = frozenset({"loop", "tile_x", "tile_y", "tile_z"})
_HANDLED: Mapping[tuple[str, str], frozenset[str]] = {
    **{("cuda", name): frozenset({"max_registers", "min_blocks"}) for name in FAMILIES["cuda"]},
    ("cuda", "persistent"): frozenset({"max_registers", "launch"}),
    ("cuda", "face-exchange"): frozenset({"max_registers", "min_blocks", "block"}),
    **{("cpu", name): _TILES for name in FAMILIES["cpu"]},
}
"""Knobs of version 0.1 that `_composed` takes, or that a family means by itself."""


def config_of(values: Mapping[str, Scalar]) -> KernelConfig:
    """Return the configuration that flat values of this version or of version 0.1 stand for. Raises InputError."""
    return from_flat(migrated(values) if is_legacy(values) else values)


def previous_key(config: KernelConfig) -> str:
    """Return the key that version 0.1 gave to a configuration, which users may have written down."""
    values = previous_values(config)
    usual = DEFAULTS[config.backend]
    identity = {"backend": config.backend, **{name: v for name, v in values.items() if v != usual[name]}}
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def previous_values(config: KernelConfig) -> Flat:
    """Return the flat values of version 0.1, backend apart, of a configuration; `migrated` is the inverse."""
    now, backend = config.flat(), config.backend
    found = dict(DEFAULTS[backend])
    for old in found:
        for renamed in RENAMED.get(old, (Renamed(old),)):
            if renamed.name in now:
                before = {new: was for was, new in renamed.values.items()}
                found[old] = before.get(now[renamed.name], now[renamed.name])
                break
    return {**found, **_decomposed(config), **_IMPLICIT.get(config.family, {})}


_COMPOSED: Mapping[str, tuple[str, ...]] = {
    "cuda": ("max_registers", "min_blocks", "block", "scheme"),
    "cpu": ("loop", "tile_x", "tile_y", "tile_z"),
}


def _decomposed(config: KernelConfig) -> Flat:
    """Return the knobs of version 0.1 that one knob stands for today; the inverse of `_composed`."""
    found = {name: scalar(getattr(config, name)) for name in _COMPOSED[config.backend] if hasattr(config, name)}
    return {**found, "representation": config.kept.name}


_IMPLICIT: Mapping[str, Flat] = {
    "sparse": {"addressing": "indirect"},
    "persistent": {"launch": "resident"},
    "face-exchange": {"halo": "faces"},
}
"""Knobs of version 0.1 that a family means by itself."""


Table = Mapping[str, Sequence[Scalar]]
FAMILIES_SINCE = 4
"""Schema of the first studies whose configurations have families."""
T = TypeVar("T", bound=Any)


def current_trial(trial: T) -> T:
    """Return a trial of an earlier schema with its configuration and key of today. Raises InputError."""
    config = config_of(trial.config)
    current: T = replace(trial, config=config.flat(), key=config.key)
    return current


def current_header(header: T) -> T:
    """Return the header of a study of an earlier schema with its spaces as they are written today."""
    axes = {backend: _current_axes(found, backend) for backend, found in header.spec.axes.items()}
    current: T = replace(header, spec=replace(header.spec, axes=axes), schema=FAMILIES_SINCE)
    return current


def _current_axes(axes: Any, backend: str) -> Any:
    found = (axes,) if isinstance(axes, Mapping) else axes
    tables = tuple(
        one
        for table in found
        for one in (migrated_tables(table, backend) if is_legacy_table(table, backend) else (table,))
    )
    return tables[0] if len(tables) == 1 and isinstance(axes, Mapping) else tables


def is_legacy_table(table: Table, backend: str) -> bool:
    """Return whether a space is one of version 0.1: it names no family, and a knob or a value that is gone."""
    if "family" in table or backend not in DEFAULTS:
        return False
    usual = DEFAULTS[backend]
    now = {name for record in FAMILIES[backend].values() for name in knobs_by_name(record)}
    if any(name in usual and name not in now for name in table):
        return True
    return {name for name, _ in _by_family(table, backend)} != {"direct"}


def migrated_tables(table: Table, backend: str) -> tuple[dict[str, tuple[Scalar, ...]], ...]:
    """Return a space of version 0.1 as spaces of one family each. Raises InputError for a knob without a place."""
    return tuple(_of_family(name, chosen, backend) for name, chosen in _by_family(table, backend))


def _by_family(table: Table, backend: str) -> Iterator[tuple[str, dict[str, tuple[Scalar, ...]]]]:
    """Yield each family that a space of version 0.1 reaches, with the values that reach it."""
    usual = DEFAULTS[backend]
    deciding = [name for name in _DECIDING if name in usual]
    groups: dict[str, dict[str, dict[Scalar, None]]] = {}
    for values in product(*(table.get(name, (usual[name],)) for name in deciding)):
        point = {**usual, **dict(zip(deciding, values, strict=True))}
        name = _family(point, backend)
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
        new = next((one for one in RENAMED.get(old, (Renamed(old),)) if one.name in known), None)
        if new is None or old in _HANDLED[backend, name]:
            continue
        values = [new.values.get(value, value) for value in table.get(old, (usual[old],))]
        if old in _OF_LAYOUT:
            values = [value for value in values if value != usual[old]]
        allowed = known[new.name].allowed
        values = [value for value in values if value in allowed or not allowed]
        if values and (old in table or values != [known[new.name].default]):
            found[new.name] = dict.fromkeys(values)
    composed = [knob for knob in ("max_registers", "min_blocks", *_TILES, "block") if knob in table]
    for point in product(*(table[knob] for knob in composed)):
        full = {**usual, **dict(zip(composed, point, strict=True))}
        if int(full.get("max_registers", 0)) and int(full.get("min_blocks", 0)):
            continue  # launch bounds override the compiler's cap
        for knob, value in _composed(full, name, backend).items():
            if knob in known and _says(knob, composed):
                found.setdefault(knob, {})[value] = None
    return {knob: tuple(values) for knob, values in found.items()}


def _says(new: str, given: Iterable[str]) -> bool:
    """Return whether a space gives one of the knobs that a knob now stands for."""
    of = {"register_limit": {"max_registers", "min_blocks"}, "parallel_loop": _TILES, "tile": {*_TILES, "block"}}
    return bool(of[new] & {*given})
