"""Choices of a conformance run: knobs of a family and of its cases, values to try, and the rules about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.config import FAMILIES, KernelConfig, Knob, completed, cpu, cuda, from_flat, knobs
from lbmtune.catalogue.families.rules import Limits, Rule, rules
from lbmtune.catalogue.family_knobs import layout_knobs
from lbmtune.catalogue.knobs import Acts
from lbmtune.catalogue.problem.case import Case, collides
from lbmtune.catalogue.problem.faces import Face, Faces, Patch
from lbmtune.catalogue.problem.flows import box, cavity, channel, pipe
from lbmtune.lattice import LATTICES
from lbmtune.search.spaces.rule_cache import tracked
from tests.support.conformance.directed import Conflict, Point

Sample = tuple[Case, KernelConfig]

FLOWS = ("box", "cavity", "channel", "grinder", "solids", "rocks", "opened", "slipping", "patched", "beads")
WALLED_OR_PERIODIC = tuple(name for name in FLOWS if name not in ("opened", "slipping", "patched", "beads"))
"""Flows whose faces are periodic or walls, and whose solid cells are half-way walls."""
_CASE_KNOBS: Mapping[str, tuple[Any, ...]] = {
    "flow": FLOWS,
    "lattice": tuple(LATTICES),
    "collision": tuple(COLLISIONS),
}
_SMALL: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "cuda": {
        "width": (8, 16),
        "group": (3, 5),
        "layout_tile": ("8x2x1", "16x1x3", "8x4x2"),
        "block": ("8x2x1", "16x2x1", "32x1x1", "64x1x1", "4x4x1", "8x2x2", "16x1x3"),
        "padding": (0, 8),
        "register_limit": ("none", "64-registers", "128-registers", "2-blocks"),
        "z_cells": (3, 5),
        "sites_per_thread": (1, 3, 5),
        "prefetch_index": (0, 96),
    },
    "cpu": {
        "width": (16, 32),
        "group": (3, 5),
        "layout_tile": ("16x2x1", "16x1x3", "32x4x2"),
        "padding": (0, 16),
        "threads": (1, 2),
        "pinning": ("none", "cores", "node-0"),
        "parallel_loop": ("z", "zy", "tile-4x1", "tile-8x3", "tile-4x3", "tile-8x1"),
        "tile": ("4x1", "8x3", "4x3", "8x1"),
        "row_offset": (1, 16),
        "row_padding": (0, 15),
        "prefetch_propagated": (0, 32),
        "prefetch_local": (0, 16),
        "prefetch_index": (0, 64),
        "steps": (2, 3),
        "stride": (0, 200_000),
    },
}
"""Numbers to try where those that a study searches are too large for a small domain, or only one."""
_SMALL_OF: Mapping[type[KernelConfig], Mapping[str, tuple[Any, ...]]] = {
    cuda.Column: {"block": ("8x2x1", "16x2x1", "32x1x1", "64x1x1", "4x4x1")},
    cuda.Sparse: {"block": ("8x1x1", "32x1x1", "64x1x1")},
}
"""The same for one family."""
_FITTED = (cuda.TemporalBlocking, cuda.Persistent, cuda.FaceExchange, cpu.MomentsWavefront)
"""Families whose domain follows from the configuration: `parts` has their samples."""
PAIRED: Mapping[str, tuple[type[KernelConfig], ...]] = {
    backend: tuple(record for record in families.values() if record not in _FITTED)
    for backend, families in FAMILIES.items()
}
"""All other families: they have a covering array of all knobs."""
LIMITS = Limits(
    cores=2,
    numa_nodes=(2, 2),
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


@cache
def values_of(record: type[KernelConfig]) -> Mapping[str, tuple[Any, ...]]:
    """Every knob of a family and of the case with the values to try. Each must have two at least."""
    small = {**_SMALL[record.backend], **_SMALL_OF.get(record, {})}
    found = {**_CASE_KNOBS, **{one.name: small.get(one.name) or _usual_values(one) for one in knobs(record)}}
    lonely = [name for name, values in found.items() if len(values) < 2]
    assert not lonely, f"give these knobs of {record.backend} {record.family} values to cover: {lonely}"
    return found


def _usual_values(one: Knob) -> tuple[Any, ...]:
    return one.allowed or one.search


def sample_of(record: type[KernelConfig], point: Point) -> Sample:
    """Case and configuration of a point. Raises InputError."""
    chosen = {name: value for name, value in point.items() if name not in _CASE_KNOBS and value is not None}
    flat = completed({"backend": record.backend, "family": record.family, **chosen}, LIMITS)
    return case_of(point["flow"], point["lattice"], point["collision"]), from_flat(flat)


@cache
def case_of(flow: str, lattice: str, collision: str) -> Case:
    """A case of that flow on a domain that is large enough for every block; verification takes its own."""
    size = (192, 64, 1 if lattice == "d2q9" else 64)
    if flow == "box":
        return box(lattice, collision, size, 1.3)
    if flow == "rocks":
        return replace(box(lattice, collision, size, 1.3), flow="rocks", geometry="blocks:fraction=0.3")
    if flow == "beads":
        packed = replace(box(lattice, collision, size, 1.3), flow=flow, geometry="packing:fraction=0.3:radius=4")
        return replace(packed, walls="interpolated", force=(1e-3, -5e-4, 0.0))
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


class _Condition(NamedTuple):
    """One of those under which a knob acts. quiet: its value otherwise; asked: the knobs looked at until then."""

    quiet: Any
    acts: Acts
    asked: frozenset[str]


_ACTS = object()
"""Stands for the quiet value of a knob that acts."""


class _Remembering:
    """A rule that is called once for the values of all knobs that it looks at, if it has few answers.

    What it looks at follows from the values of what it has looked at so far. So a point with the values of another one
    in all that was looked at there has the same answer.
    """

    def __init__(self, rule: Rule, limits: Limits) -> None:
        self._rule, self._limits = rule, limits
        self._calls = self._misses = 0
        self._known: dict[frozenset[str], tuple[Callable[[Point], Any], dict[Any, str | None]]] = {}

    def answer(self, point: Point, sample: Sample) -> tuple[str | None, frozenset[str]]:
        """What the rule says of a point, and if it is against it, the knobs that the rule looks at."""
        self._calls += 1
        for looked_at, (values_of_those, answers) in self._known.items():
            reason = answers.get(values_of_those(point), _UNKNOWN)
            if reason is not _UNKNOWN:
                return reason, looked_at
        reason = self._rule(*sample, self._limits)
        self._misses += 1
        if not reason and self._misses > max(_MOST_ANSWERS, self._calls // 2):
            return None, frozenset()
        looked_at = frozenset(_looked_at(self._rule, sample, self._limits) & point.keys())
        if looked_at not in self._known:
            self._known[looked_at] = _values(sorted(looked_at)), {}
        of_those, answers = self._known[looked_at]
        answers[of_those(point)] = reason
        return reason, looked_at


_UNKNOWN: Any = object()
_MOST_ANSWERS = 500
"""Answers of a rule after which it is remembered only if most calls find theirs among them."""


def _values(names: Sequence[str]) -> Callable[[Point], Any]:
    return itemgetter(*names) if names else lambda _: ()


class Choices:
    """The rules about points of a family: a knob acts only where the others let it, and no rule is broken.

    values: of each knob that varies, those of the case included; others stand at their defaults. besides: rules that
    are asked first. domain: every value of each knob, neutral ones included; a parameter of another layout is None.
    """

    def __init__(
        self,
        record: type[KernelConfig],
        values: Mapping[str, tuple[Any, ...]],
        besides: Sequence[Rule] = (),
        limits: Limits = LIMITS,
    ) -> None:
        self._record, self._values, self._limits = record, values, limits
        self._rules = [_Remembering(rule, limits) for rule in (*besides, *rules(record))]
        varied = [one for one in knobs(record) if one.name in values]
        self._knobs = tuple(one.name for one in varied)
        self._conditions = {one.name: _conditions(record, one, values.keys()) for one in varied}
        quiet = {name: [condition.quiet for condition in found] for name, found in self._conditions.items()}
        self.domain = {
            name: tuple(dict.fromkeys((*self._values[name], *quiet.get(name, ()))))
            for name in (*_CASE_KNOBS, *self._knobs)
        }

    def completed(self, given: Point, wished: Point) -> Point:
        """The values given, and of those wished for the ones that act; neutral ones in place of the others."""
        point = {name: given.get(name, wished[name]) for name in _CASE_KNOBS}
        for name, conditions in self._conditions.items():
            if name in given:
                point[name] = given[name]
            else:
                point[name] = self._acting(name, wished[name], point) if conditions else wished[name]
        return point

    def _acting(self, name: str, wished: Any, point: Point) -> Any:
        """The value of a knob that is wished for, or the one that it takes because another keeps it from acting."""
        quiet, _ = self._silenced(name, point)
        return wished if quiet is _ACTS else quiet

    def conflict(self, given: Point, point: Point) -> Conflict | None:
        """What is wrong with a point, by knobs that are given and others that may be chosen: not those that follow."""
        found = self._out_of_place(given, point) or self._broken(point)
        if found is None:
            return None
        axes, reason = found
        for name in reversed(self._knobs):
            if name in axes and name not in given:
                quiet, asked = self._silenced(name, point)
                axes = axes if quiet is _ACTS else (axes - {name}) | asked
        return Conflict(axes, {reason: axes} if reason else {})

    def _out_of_place(self, given: Point, point: Point) -> tuple[frozenset[str], str] | None:
        """A knob with another value than it takes beside the others, what decides on that, and a reason if any."""
        for name in self._knobs:
            if name not in given:
                continue
            quiet, asked = self._silenced(name, point)
            if quiet is not _ACTS and quiet != point[name]:
                beside = " and ".join(f"{one}={point[one]}" for one in self.domain if one in asked)
                return asked | {name}, f"{name}={point[name]} with {beside}: {name} does not act there"
            if quiet is _ACTS and point[name] not in self._values[name]:
                return asked | {name}, ""  # the value of a knob that does not act, which was one to try
        return None

    def _broken(self, point: Point) -> tuple[frozenset[str], str] | None:
        """The knobs that the first broken rule looks at, and what it says."""
        if not collides(point["collision"], point["lattice"]):
            reason = f"collision={point['collision']} with lattice={point['lattice']}: it has other moments"
            return frozenset(("collision", "lattice")), reason
        sample = sample_of(self._record, point)
        for rule in self._rules:
            reason, looked_at = rule.answer(point, sample)
            if reason:
                return looked_at, reason
        return None

    def _silenced(self, name: str, point: Point) -> tuple[Any, frozenset[str]]:
        """The value that a knob takes because another keeps it from acting, or _ACTS; and the knobs looked at."""
        asked = frozenset[str]()
        for quiet, acts, asked in self._conditions[name]:
            if not acts.holds(point):
                return quiet, asked
        return _ACTS, asked


def _conditions(record: type[KernelConfig], one: Knob, varied: Collection[str]) -> tuple[_Condition, ...]:
    """What a knob depends on, in the order asked; for one of a layout, first whether that is chosen."""
    own = one.name in layout_knobs(record)
    asked, found = frozenset[str](), list[_Condition]()
    for acts in sorted(one.acts, key=lambda acts: not (own and acts.on == "layout")):
        asked |= frozenset({acts.on} & set(varied))
        usual = one.default if acts.neutral is None else acts.neutral
        found.append(_Condition(None if own and acts.on == "layout" else usual, acts, asked))
    return tuple(found)


def _looked_at(rule: Rule, sample: Sample, limits: Limits) -> frozenset[str]:
    """Knobs of the case, the configuration and its layout that a rule reads."""
    (case, of_case), (config, of_config) = map(tracked, sample)
    vars(config)["layout"], of_layout = tracked(sample[1].layout)
    rule(case, config, limits)
    of_cases = {knob for name in of_case for knob in _knobs_behind(name)}
    return frozenset({*of_cases, *of_config, *of_layout})


@cache
def _knobs_behind(field: str) -> frozenset[str]:
    """Knobs of the case that a field of it depends on: those with which alone it changes."""
    values: dict[tuple[str, ...], Any] = {
        (flow, lattice, collision): getattr(case_of(flow, lattice, collision), field)
        for flow, lattice, collision in product(*_CASE_KNOBS.values())
        if collides(collision, lattice)
    }
    found = set[str]()
    for (n, axis), (point, value) in product(enumerate(_CASE_KNOBS), values.items()):
        others = [values.get((*point[:n], other, *point[n + 1 :]), value) for other in _CASE_KNOBS[axis]]
        if any(other != value for other in others):
            found.add(axis)
    return frozenset(found)
