"""What a conformance run chooses from: axes of a backend and of its cases, values to try, and the rules about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from lbmtune.catalogue.axes import AXES, DEPENDENCES, Dependence, completed, default

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.families.rules import RULES, Limits, Rule
from lbmtune.catalogue.problem.case import COLLISIONS, Case, box, cavity, channel, collides, pipe
from lbmtune.catalogue.problem.faces import Face, Faces, Patch
from lbmtune.lattice import LATTICES
from lbmtune.search.rule_cache import watched
from tests.support.directed import Conflict, Point

Sample = tuple[Case, KernelConfig]

FLOWS = ("box", "cavity", "channel", "grinder", "solids", "rocks", "opened", "slipping", "patched")
_CASE_AXES: Mapping[str, tuple[Any, ...]] = {
    "flow": FLOWS,
    "lattice": tuple(LATTICES),
    "collision": tuple(COLLISIONS),
}
VALUES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "cuda": {
        "width": (8, 16),
        "group": (3, 5),
        "layout_tile": ("8x2x1", "16x1x3", "8x4x2"),
        "block": ("8x2x1", "16x2x1", "32x1x1", "64x1x1", "4x4x1", "8x2x2", "16x1x3"),
        "padding": (0, 8),
        "max_registers": (0, 64, 128),
        "min_blocks": (0, 2),
        "march": (1, 3, 5),
        "prefetch": (0, 1, 2, 3),
        "l2_prefetch": (0, 64, 128, 256),
        "prefetch_index": (0, 96),
        "index_bits": (0, 64),
        "launch": ("call", "graph", "dependent"),
    },
    "cpu": {
        "width": (16, 32),
        "group": (3, 5),
        "layout_tile": ("16x2x1", "16x1x3", "32x4x2"),
        "padding": (0, 16),
        "threads": (1, 2),
        "tile_y": (4, 8),
        "tile_z": (1, 3),
        "row_offset": (1, 16),
        "row_padding": (0, 15),
        "prefetch_propagated": (0, 32),
        "prefetch_local": (0, 16),
        "prefetch_index": (0, 64),
        "steps": (1, 2, 3),
        "prefetch_rows": (0, 1),
        "stride": (0, 200_000),
        "far_ends": ("inside", "between"),
    },
}
"""Numbers to try where those that a study searches are too large for a small domain, or only one."""
LIMITS = Limits(
    cores=2,
    shared_bytes_per_block=99 << 10,
    shared_bytes_per_multiprocessor=100 << 10,
    multiprocessors=84,
    cooperative=True,
    dependent=True,
    asynchronous=True,
    bulk=True,
)
ROOMY = replace(LIMITS, shared_bytes_per_block=227 << 10, shared_bytes_per_multiprocessor=228 << 10)
"""With shared memory for kernels of tiles, as devices of compute capability 9.0 have it."""
_APART: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "cuda": {
        **{"representation": ("populations",), "steps": (1,), "rows": (1,), "pack": (1,)},
        **{"barrier": ("block",), "pending": ("registers",), "beyond": (0,), "chunks": ("even",)},
        "meeting": ("all",),
        "halo": ("computed",),
        "held": (0,),
    },
    "cpu": {"representation": ("populations",), "tile_x": (0,)},
}
"""Axes of kernels of moments, which have a part of their own: most choices of the others mean nothing there."""


@cache
def values_of(backend: str) -> Mapping[str, tuple[Any, ...]]:
    """Every axis of a backend and of the case with the values to try. Each must have two at least."""
    found: dict[str, tuple[Any, ...]] = dict(_CASE_AXES)
    for axis in AXES[backend]:
        if axis.name in _APART[backend]:
            continue
        found[axis.name] = VALUES[backend].get(axis.name) or axis.names or axis.values
    lonely = [name for name, values in found.items() if len(values) < 2]
    assert not lonely, f"give these axes of {backend} values to cover: {lonely}"
    return found


def sample_of(backend: str, point: Point) -> Sample:
    """Case and configuration of a point. Raises InputError."""
    axes = {name: value for name, value in point.items() if name not in _CASE_AXES}
    return case_of(point["flow"], point["lattice"], point["collision"]), from_flat(
        completed({"backend": backend, **axes}, LIMITS)
    )


@cache
def case_of(flow: str, lattice: str, collision: str) -> Case:
    """A case of that flow on a domain that is large enough for every block; verification takes its own."""
    size = (192, 64, 1 if lattice == "d2q9" else 64)
    if flow == "box":
        return box(lattice, collision, size, 1.3)
    if flow == "rocks":
        return replace(box(lattice, collision, size, 1.3), flow="rocks", geometry="blocks:fraction=0.3")
    if flow == "channel":
        return channel(lattice, collision, size, 1.3, force=1e-3)
    case = cavity(lattice, collision, size, 1.3)
    if flow == "cavity":
        return case
    z = ("periodic", "periodic") if lattice == "d2q9" else ("moving", "wall")
    velocity = (0.05, -0.03, 0.0 if lattice == "d2q9" else 0.02)
    if flow in ("opened", "slipping"):
        return local_faces(flow, lattice, collision, size)
    if flow == "patched":
        return patched(lattice, collision, size)
    mixed = replace(case, faces=("moving", "wall", "wall", "moving", *z), wall_velocity=velocity)
    if flow == "grinder":
        return replace(mixed, flow="grinder", force=(1e-3, -5e-4, 0.0))
    return replace(mixed, flow="solids", geometry="blocks:fraction=0.3")


def local_faces(flow: str, lattice: str, collision: str, size: tuple[int, int, int]) -> Case:
    """Faces of every kind, inlet and outlet across x ("opened") or across y."""
    flat = lattice == "d2q9"
    case = replace(pipe(lattice, collision, size, 1.3), flow=flow, outlet_density=1.02, force=(1e-3, -5e-4, 0.0))
    case = replace(case, inlet_velocity=(0.04, -0.03, 0.0 if flat else 0.02), wall_velocity=(0.03, 0.0, 0.0))
    if flow == "opened":
        z = ("periodic", "periodic") if flat else ("slip", "wall")
        return replace(case, faces=("velocity", "pressure", "moving", "slip", *z))
    across = ("pressure", "velocity")
    return replace(case, faces=("wall", "slip", *across, *(("periodic",) * 2 if flat else ("moving", "slip"))))


def patched(lattice: str, collision: str, size: tuple[int, int, int]) -> Case:
    """Inlets, an outlet, free slip and two moving walls as parts of faces, beside a moving face and a free slip one."""
    flat = lattice == "d2q9"
    case, w = local_faces("opened", lattice, collision, size), 0.0 if flat else 0.02
    patches = (
        Patch("velocity", "rectangle:y=0.25..0.75", "x-", (0.04, -0.03, w)),
        Patch("velocity", "rectangle:y=0.75..1", "x-", (0.02, 0.0, w)),
        Patch("pressure", "disc:radius=0.3", "x+", density=1.02),
        Patch("moving", "rectangle:x=0..0.5", "y+", (0.05, 0.0, w)),
        Patch("slip", "rectangle:x=0.2..0.7", "y-"),
    )
    z: tuple[Face, Face] = ("periodic", "periodic") if flat else ("slip", "wall")
    faces: Faces = ("wall", "moving", "moving", "wall", *z)
    return replace(case, flow="patched", faces=faces, patches=patches)


class Choices:
    """The rules about points of a backend: an axis acts only where the others let it, and no rule is broken.

    values: of each axis that varies, those of the case included; others stand at their defaults. besides: rules that
    are asked first. domain: every value of each axis, neutral ones included.
    """

    def __init__(
        self, backend: str, values: Mapping[str, tuple[Any, ...]], besides: Sequence[Rule] = (), limits: Limits = LIMITS
    ) -> None:
        self._backend, self._values, self._limits = backend, values, limits
        self._rules = (*besides, *RULES[backend])
        self._axes = tuple(axis.name for axis in AXES[backend] if axis.name in values)
        self._dependences = {name: _dependences(backend, name, values.keys()) for name in self._axes}
        quiet = {name: [value for value, _, _ in found] for name, found in self._dependences.items()}
        self.domain = {
            name: tuple(dict.fromkeys((*self._values[name], *quiet.get(name, ()))))
            for name in (*_CASE_AXES, *self._axes)
        }

    def completed(self, given: Point, wished: Point) -> Point:
        """The values given, and of those wished for the ones that act; neutral ones in place of the others."""
        point = {name: given.get(name, wished[name]) for name in _CASE_AXES}
        for name in self._axes:
            point[name] = given[name] if name in given else self._acting(name, wished[name], point)
        return point

    def _acting(self, name: str, wished: Any, point: Point) -> Any:
        """The value of an axis that is wished for, or the one that it takes because another keeps it from acting."""
        for quiet, dependence, _ in self._dependences[name]:
            if not dependence.holds(point):
                return quiet
        return wished

    def conflict(self, given: Point, point: Point) -> Conflict | None:
        """What is wrong with a point, by axes that are given and others that may be chosen: not those that follow."""
        found = self._out_of_place(given, point) or self._broken(point)
        if found is None:
            return None
        axes, reason = found
        for name in reversed(self._axes):
            if name in axes and name not in given:
                quiet, asked = self._silenced(name, point)
                axes = axes if quiet is None else (axes - {name}) | asked
        return Conflict(axes, {reason: axes} if reason else {})

    def _out_of_place(self, given: Point, point: Point) -> tuple[frozenset[str], str] | None:
        """An axis with another value than it takes beside the others, what decides on that, and a reason if any."""
        for name in self._axes:
            if name not in given:
                continue
            quiet, asked = self._silenced(name, point)
            if quiet is not None and quiet != point[name]:
                beside = " and ".join(f"{one} {point[one]}" for one in self.domain if one in asked)
                return asked | {name}, f"{name} {point[name]} with {beside}: {name} does not act there"
            if quiet is None and point[name] not in self._values[name]:
                return asked | {name}, ""  # the value of an axis that does not act, which was one to try
        return None

    def _broken(self, point: Point) -> tuple[frozenset[str], str] | None:
        """The axes that the first broken rule looks at, and what it says."""
        if not collides(point["collision"], point["lattice"]):
            reason = f"collision {point['collision']} with lattice {point['lattice']}: it has other moments"
            return frozenset(("collision", "lattice")), reason
        sample = sample_of(self._backend, point)
        for rule in self._rules:
            if reason := rule(*sample, self._limits):
                (case, of_case), (config, of_config) = map(watched, sample)
                rule(case, config, self._limits)
                axes = {axis for name in of_case for axis in _axes_behind(name)} | of_config.keys()
                return frozenset(axes & self.domain.keys()), reason
        return None

    def _silenced(self, name: str, point: Point) -> tuple[Any, frozenset[str]]:
        """The value that an axis takes because another keeps it from acting, or None; and the axes that were asked."""
        asked = frozenset[str]()
        for value, dependence, asked in self._dependences[name]:
            if not dependence.holds(point):
                return value, asked
        return None, asked


def _dependences(backend: str, name: str, varied: Collection[str]) -> list[tuple[Any, Dependence, frozenset[str]]]:
    """What an axis depends on, in the order asked: the value that each leads to, and all axes asked until then."""
    usual, asked, found = default(name, {"backend": backend}), set[str](), []
    for one in DEPENDENCES[backend].get(name, ()):
        asked |= {str(on) for on in (one.on, *(one.or_else or ())[:1]) if on in varied}
        found.append((usual if one.neutral is None else one.neutral, one, frozenset(asked)))
    return found


@cache
def _axes_behind(field: str) -> frozenset[str]:
    """Axes of the case that a field of it depends on: those with which alone it changes."""
    values: dict[tuple[str, ...], Any] = {
        (flow, lattice, collision): getattr(case_of(flow, lattice, collision), field)
        for flow, lattice, collision in product(*_CASE_AXES.values())
        if collides(collision, lattice)
    }
    found = set[str]()
    for (n, axis), (point, value) in product(enumerate(_CASE_AXES), values.items()):
        others = [values.get((*point[:n], other, *point[n + 1 :]), value) for other in _CASE_AXES[axis]]
        if any(other != value for other in others):
            found.add(axis)
    return frozenset(found)
