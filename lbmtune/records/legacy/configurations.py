"""Configurations as version 0.1 wrote them: the one table by which old files, keys and arguments stay readable.

Version 0.1 had one record per backend with all knobs; which family a configuration belonged to was inferred from them.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from lbmtune.catalogue.config import (
    DEFAULT_FAMILY,
    FAMILIES,
    KernelConfig,
    Scalar,
    backend_knobs,
    families_with,
    from_flat,
    knobs_by_name,
)
from lbmtune.catalogue.knobs import scalar
from lbmtune.errors import InputError

Flat = dict[str, Scalar]
_COMMON = (
    "scheme=pull,layout=soa,width=1,padding=0,group=1,layout_tile=1x1x1,storage=fp32,compute=fp32,flags=compiled,"
    "addressing=direct,order=row,prefetch_index=0,parity=kernels,boundary=branch,neighbours=all"
)
_OF_BACKEND = {
    "cuda": (
        "block=256x1x1,cells_per_thread=1,max_registers=0,min_blocks=0,wrap=arithmetic,march=1,prefetch=0,"
        "load_hint=default,store_hint=default,l2_prefetch=0,index_bits=0,block_order=row,macroscopics=never,"
        "launch=call,meeting=all,representation=populations,steps=1,rows=1,pack=1,barrier=block,pending=registers,"
        "beyond=0,chunks=even,fetch=registers,halo=computed,held=0"
    ),
    "cpu": (
        "threads=1,vector_bits=512,loop=z,tile_y=0,tile_z=0,row_padding=0,row_offset=16,streaming_stores=0,"
        "wrap=ghost,prefetch_propagated=0,prefetch_local=0,reads=once,gather=vector,pinning=none,pages=default,"
        "first_touch=serial,steps=1,prefetch_rows=0,representation=populations,tile_x=0,stride=0,far_ends=inside"
    ),
}


def _flat(text: str) -> Flat:
    pairs = (item.split("=") for item in text.split(","))
    return {name: int(value) if value.isdecimal() else value for name, value in pairs}


DEFAULTS: Mapping[str, Flat] = {backend: _flat(f"{_COMMON},{own}") for backend, own in _OF_BACKEND.items()}
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
"""Present names of the knobs of version 0.1, by family: the first of the names that a family has."""


def names_today(old: str) -> tuple[Renamed, ...]:
    """Return the names of today of a knob, which may be named as in version 0.1; its own if it has no other."""
    return RENAMED.get(old, (Renamed(old),))


def name_in(known: Collection[str], old: str) -> Renamed | None:
    """Return which of the known knobs of a family is meant by a name of today or of version 0.1, or None."""
    return next((one for one in names_today(old) if one.name in known), None)


_IMPLIED = frozenset({"addressing", "halo"})


def is_legacy(values: Mapping[str, Scalar]) -> bool:
    """Return whether flat values are those of version 0.1: they name no family, and a knob that is gone."""
    if "family" in values:
        return False
    backend = str(values.get("backend", "cuda"))
    usual = DEFAULTS.get(backend, {})
    if usual.keys() <= values.keys() or gone(backend) & values.keys():
        return True
    return family_meant({**usual, **values}, backend) != DEFAULT_FAMILY


def gone(backend: str) -> set[str]:
    """Return the knobs of version 0.1 that no family has."""
    return DEFAULTS[backend].keys() - backend_knobs(backend).keys()


_MEANT: Mapping[str, tuple[tuple[str, str, Scalar | None], ...]] = {
    "cuda": (
        ("persistent", "launch", "resident"),
        ("face-exchange", "halo", "faces"),
        ("temporal-blocking", "representation", "moments"),
        ("temporal-blocking", "steps", None),
        ("sparse", "addressing", None),
        ("column", "march", None),
    ),
    "cpu": (
        ("sparse", "addressing", None),
        ("moments-wavefront", "representation", "moments"),
        ("wavefront", "steps", None),
    ),
}
"""The families that values of version 0.1 meant, each with a knob and its value there (None: any but its default)."""


def family_meant(full: Mapping[str, Scalar], backend: str) -> str:
    """Return the family that complete flat values of version 0.1 meant: the first of the table, or the direct one."""
    usual = DEFAULTS[backend]
    for name, knob, value in _MEANT[backend]:
        if full[knob] == value or (value is None and str(full[knob]) != str(usual[knob])):
            return name
    return DEFAULT_FAMILY


def migrated(values: Mapping[str, Scalar]) -> Flat:
    """Return flat values of version 0.1 as this version writes them. Raises InputError for a knob without a place."""
    rest = dict(values)
    backend = str(rest.pop("backend", "cuda"))
    if backend not in DEFAULTS:
        raise InputError(f"unknown backend {backend!r}; use cuda or cpu.")
    usual = DEFAULTS[backend]
    full: Flat = {**usual, **{name: _typed(usual.get(name), value) for name, value in rest.items()}}
    name = family_meant(full, backend)
    found: Flat = {"backend": backend, "family": name}
    found |= composed(full, name, backend)
    for old, value in full.items():
        if old in HANDLED[backend, name]:
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
    return int(value) if isinstance(usual, int) and re.fullmatch(r"-?\d{1,18}", str(value)) else value


def _translated(old: str, value: Scalar, name: str, backend: str, *, is_usual: bool) -> Flat:
    """Return one knob by its name in a family; nothing if it does not act there and says nothing."""
    if now := name_in(knobs_by_name(FAMILIES[backend][name]), old):
        return {} if old in OF_LAYOUT and is_usual else {now.name: now.values.get(value, value)}
    if is_usual or old in _IMPLIED or old in _SELECTING:
        return {}
    names = sorted({one.name for one in names_today(old)})
    having = sorted({family for one in names for family in families_with(one, backend)})
    who = f"family {having[0]} has" if len(having) == 1 else f"families {', '.join(having)} have"
    where = f" ({who} {', '.join(names)})" if having else ""
    raise InputError(f"{old}={value} is not supported for family {name} of {backend}{where}; leave it out.")


OF_LAYOUT = frozenset({"width", "group", "layout_tile"})
"""Knobs of layouts that had a value for no effect."""


def _limit(full: Mapping[str, Scalar]) -> Flat:
    registers, blocks = (_whole(full, name) for name in ("max_registers", "min_blocks"))
    if registers and blocks:
        raise InputError(
            f"max_registers={registers} with min_blocks={blocks} is not supported (use register_limit with one of "
            "them): launch bounds override the compiler's cap."
        )
    return {"register_limit": f"{registers}-registers" if registers else f"{blocks}-blocks" if blocks else "none"}


def _whole(full: Mapping[str, Scalar], name: str) -> int:
    if not isinstance(value := full[name], int):
        raise InputError(f"{name}={value} is not a whole number; write for example {name}=2.")
    return value


_TILE = {
    "face-exchange": "{block}",
    "wavefront": "{tile_y}x{tile_z}",
    "moments-wavefront": "{tile_x}x{tile_y}x{tile_z}",
}
"""The tile of a family by knobs of version 0.1."""


def composed(full: Flat, name: str, backend: str) -> Flat:
    """Return the knobs that stand for several of version 0.1."""
    known = knobs_by_name(FAMILIES[backend][name])
    found = _limit(full) if "register_limit" in known else {}
    if name in _TILE:
        found["tile"] = _TILE[name].format_map(full)
    if "parallel_loop" in known:
        found["parallel_loop"] = "tile-{tile_y}x{tile_z}".format_map(full) if full["loop"] == "tile" else full["loop"]
    return found


TILES = frozenset({"loop", "tile_x", "tile_y", "tile_z"})
HANDLED: Mapping[tuple[str, str], frozenset[str]] = {
    **{("cuda", name): frozenset({"max_registers", "min_blocks"}) for name in FAMILIES["cuda"]},
    ("cuda", "persistent"): frozenset({"max_registers", "launch"}),
    ("cuda", "face-exchange"): frozenset({"max_registers", "min_blocks", "block"}),
    **{("cpu", name): TILES for name in FAMILIES["cpu"]},
}
"""Knobs of version 0.1 that `composed` takes, or that a family means by itself."""


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
        if one := name_in(now, old):
            before = {new: was for was, new in one.values.items()}
            found[old] = before.get(now[one.name], now[one.name])
    return {**found, **_decomposed(config), **_IMPLICIT.get(config.family, {})}


_COMPOSED: Mapping[str, tuple[str, ...]] = {
    "cuda": ("max_registers", "min_blocks", "block", "scheme"),
    "cpu": ("loop", "tile_x", "tile_y", "tile_z"),
}


def _decomposed(config: KernelConfig) -> Flat:
    """Return the knobs of version 0.1 that one knob stands for today; the inverse of `composed`."""
    found = {name: scalar(getattr(config, name)) for name in _COMPOSED[config.backend] if hasattr(config, name)}
    return {**found, "representation": config.kept.name}


_IMPLICIT: Mapping[str, Flat] = {
    "sparse": {"addressing": "indirect"},
    "persistent": {"launch": "resident"},
    "face-exchange": {"halo": "faces"},
}
"""Knobs of version 0.1 that a family means by itself."""
