"""Kernels that update some planes of their domain: the first one and that behind the last are launch arguments.

Parts of a domain are computed so, edge by edge. The text is that of the whole domain with other limits along z, so that
every update has the same arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from lbmtune.codegen.program import FIRST_PLANE, LAST_PLANE, Launch, Program

_SIGNATURE = re.compile(r'(extern "C" __global__ void [^{]*?\bconst int nz\b)')
_PARAMETERS = f"const int {FIRST_PLANE}, const int {LAST_PLANE}"


class _Limit(NamedTuple):
    """Code with the limits of the domain along z, and the same one with those of the planes of a launch."""

    of_domain: str
    of_planes: str


_DIRECT = (
    _Limit("z = blockIdx.z * BLOCK_Z", f"z = {FIRST_PLANE} + blockIdx.z * BLOCK_Z"),
    _Limit("&& z < nz;", f"&& z < {LAST_PLANE};"),
)
_COLUMN = (
    _Limit("first = MARCH * (blockIdx.z", f"first = {FIRST_PLANE} + MARCH * (blockIdx.z"),
    _Limit("&& first < nz;", f"&& first < {LAST_PLANE};"),
    _Limit("first + MARCH < nz ? first + MARCH : nz;", f"first + MARCH < {LAST_PLANE} ? first + MARCH : {LAST_PLANE};"),
)
_TILES = (
    _Limit("depth = (nz + gridDim.z", f"depth = ({LAST_PLANE} - {FIRST_PLANE} + gridDim.z"),
    _Limit(
        "begin = blockIdx.z * depth, end = least(begin + depth, nz),",
        f"begin = {FIRST_PLANE} + blockIdx.z * depth, end = least(begin + depth, {LAST_PLANE}),",
    ),
)
_TAPERED = (
    _TILES[0],
    _Limit(
        "return least(depth * k * (2 * chunks - k) / chunks, nz);",
        f"return {FIRST_PLANE} + least(depth * k * (2 * chunks - k) / chunks, {LAST_PLANE} - {FIRST_PLANE});",
    ),
)
_LIMITS: Mapping[str, tuple[_Limit, ...]] = {
    "direct": _DIRECT,
    "column": _COLUMN,
    "temporal-blocking": _TILES,
    "temporal-blocking, tapered": _TAPERED,
}


def on_planes(program: Program) -> Program | None:
    """Return the program whose launches take planes; None if its loops are not over planes of a box.

    Without other values the planes are those of the whole domain.
    """
    launches = [launch for step in (*program.period, *program.with_macroscopics) for launch in step]
    config: Any = program.config
    tapered = ", tapered" if getattr(config, "chunk_schedule", "") == "tapered" else ""
    limits = _LIMITS.get(f"{config.family}{tapered}", ())
    if program.case.stencil.dimensions < 3 or not limits or any(one.over != "cells" for one in launches):
        return None
    entries = len(program.entries)
    source, found = _SIGNATURE.subn(rf"\1, {_PARAMETERS}", program.source)
    if found != entries or any(source.count(one.of_domain) != entries for one in limits):
        return None
    for one in limits:
        source = source.replace(*one)
    steps = (tuple(tuple(map(_taking, step)) for step in many) for many in (program.period, program.with_macroscopics))
    period, with_macroscopics = steps
    return replace(program, source=source, period=period, with_macroscopics=with_macroscopics)


def _taking(launch: Launch) -> Launch:
    at = launch.arguments.index("nz") + 1
    return replace(launch, arguments=(*launch.arguments[:at], FIRST_PLANE, LAST_PLANE, *launch.arguments[at:]))
