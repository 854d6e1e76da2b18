"""A fixed part of the conformance run, and what its list must hold."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, islice, product
from math import prod, sqrt
from typing import Any

import pytest

from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.config import KernelConfig, cpu, cuda, defaults, knobs
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.family_knobs import layout_knobs
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.problem.case import collides
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.codegen.describe import describe_kernel, describe_storage
from lbmtune.codegen.render import render, render_single
from lbmtune.lattice import LATTICES
from scripts import conformance
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import LIMITS, PAIRED, ROOMY, Sample, sample_of, values_of
from tests.support.conformance.covering import (
    TILES,
    Covering,
    Missing,
    Values,
    everything,
    of_tiles,
    paired,
    pairs_among,
    pairwise,
    point_of,
    schemes_layouts_lattices,
)
from tests.support.thinning import drawn, facts

ALL_PAIRED = [record for records in PAIRED.values() for record in records]
by_family = pytest.mark.parametrize("record", ALL_PAIRED, ids=lambda record: f"{record.backend}-{record.family}")


@cache
def covering(backend: str) -> Covering:
    """All of the list; it takes a while to make."""
    return everything(backend)


def kernels(backend: str = "cuda") -> tuple[Sample, ...]:
    return covering(backend).samples


@cache
def for_every_day(backend: str) -> list[Sample]:
    """A part of the list in which each choice stands at each of its values, on small lattices where it can."""
    samples = kernels(backend)
    costs = [_START + _length(sample) for sample in samples]
    return [
        samples[n] for n in sorted(drawn([facts(_said(sample)) for sample in samples], len(samples), costs, covers=6))
    ]


def _said(sample: Sample) -> dict[str, Any]:
    """All choices of a sample: tiles by extents or as thread blocks; cells and sites in turn as the same."""
    same = {"prefetch_cells": "prefetch", "prefetch_sites": "prefetch", "z_cells": "turns", "sites_per_thread": "turns"}
    point = {same.get(name, name): value for name, value in point_of(sample).items()}
    if sample[1].backend == "cuda":
        return {"block" if name == "tile" else name: value for name, value in point.items()}
    kind, _, tile = str(point.get("parallel_loop", "")).rpartition("-")
    if kind:
        point |= {"parallel_loop": kind, "tile": tile}
    extents = str(point.pop("tile", "")).split("x")
    return {**point, **{f"tile_{len(extents)}_{n}": extent for n, extent in enumerate(extents) if extent}}


_START = 150
"""What every kernel costs, in the unit of `_length`: a compiler starts for it, and the oracle runs."""


def _length(sample: Sample) -> float:
    """What the text of a kernel grows with: pairs of directions, and less so cells that a thread has at once."""
    case, config = sample
    cells: Any = CELLS_AT_ONCE.get((config.backend, config.family), lambda _: 1)
    return case.stencil.q**2 * sqrt(cells(config))


CELLS_AT_ONCE: dict[tuple[str, str], Callable[[Any], int]] = {
    ("cuda", "temporal-blocking"): lambda config: config.steps * config.rows * config.cells_per_thread,
    ("cuda", "persistent"): lambda config: config.rows * config.cells_per_thread,
}


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_a_part_on_the_host_shim() -> None:
    _all_right(conformance.on_shim, for_every_day("cuda"))


def test_a_part_on_the_processor() -> None:
    _all_right(conformance.on_cpu, for_every_day("cpu"))


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_the_part_has_every_value_of_every_choice(backend: str) -> None:
    part = {fact for sample in for_every_day(backend) for fact in _said(sample).items()}
    assert part == {fact for sample in kernels(backend) for fact in _said(sample).items()}
    assert len(for_every_day(backend)) <= 30


def _has_any(pair: Values, cores: set[frozenset[tuple[str, Any]]]) -> bool:
    """Whether a pair holds one of those values, or both that a core has."""
    one, other = pair
    return not cores.isdisjoint((frozenset(), frozenset((one,)), frozenset((other,)), frozenset(pair)))


def _all_right(check: Callable[[Sample], str | None], samples: Sequence[Sample]) -> None:
    wrong = {f"{case} {config.brief}": check((case, config)) for case, config in samples}
    assert not {sample: verdict for sample, verdict in wrong.items() if verdict}


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_no_scheme_layout_addressing_or_lattice_is_forgotten(backend: str) -> None:
    """Each of their combinations is in the list, or there is a reason against it that is no accident of a draw."""
    records = [record for record in PAIRED[backend] if record.family in ("direct", "sparse")]
    combined = list(schemes_layouts_lattices(backend))
    names = ("scheme", "layout", "lattice")
    assert len(combined) == sum(prod(len(values_of(record)[name]) for name in names) for record in records)
    against = {found.reason for found in combined if isinstance(found, Missing)}
    assert all(reason.startswith(("scheme=", "layout=tiled")) for reason in against), against


def test_the_list_is_legal_and_has_every_scheme_layout_and_operator() -> None:
    assert all(broken(case, config, ROOMY) is None for case, config in kernels())
    assert len({(case, config) for case, config in kernels()}) == len(kernels())
    assert {config.scheme for _, config in kernels()} == {*SCHEMES} - {"swap-ordered"}
    assert {config.memory.name for _, config in kernels()} == set(LAYOUTS)
    assert {case.collision for case, _ in kernels()} == set(COLLISIONS)


@by_family
def test_every_pair_of_a_family_is_in_a_sample_or_illegal(record: type[KernelConfig]) -> None:
    found, left = pairwise(record), pairs_among(values_of(record))
    of_family = [sample for sample in kernels(record.backend) if isinstance(sample[1], record)]
    assert {*found.samples} <= {*of_family}
    covered = left & {pair for sample in of_family for pair in combinations(sorted(point_of(sample).items()), 2)}
    assert len(covered) == found.pairs
    assert all(missing.proved for missing in found.missing)
    illegal = {frozenset(missing.values) for missing in found.missing}
    assert {pair for pair in left if _has_any(pair, illegal)} == left - covered


@pytest.mark.parametrize("dimensions", TILES)
def test_every_pair_of_kernels_of_tiles_is_in_a_sample_or_illegal(dimensions: int) -> None:
    found, left = of_tiles(dimensions), pairs_among(paired(TILES[dimensions]))
    covered = left & {pair for one in found.samples for pair in combinations(sorted(point_of(one).items()), 2)}
    illegal = {frozenset(missing.values) for missing in found.missing}
    assert {*found.samples} <= {*kernels()}
    assert all(missing.proved for missing in found.missing)
    assert {pair for pair in left if _has_any(pair, illegal)} == left - covered


@pytest.mark.parametrize("lattice", LATTICES)
def test_kernels_of_several_steps_have_every_collision(lattice: str) -> None:
    samples = of_tiles(LATTICES[lattice].dimensions).samples
    found = {case.collision for case, config in samples if case.lattice == lattice and not config.of_moments}
    assert found == {name for name in COLLISIONS if collides(name, lattice)}


@pytest.mark.parametrize(
    ("record", "pair"),
    [
        (cuda.Direct, {"boundary": "implicit", "storage": "bf16"}),
        (cuda.Direct, {"boundary": "implicit", "launch": "graph"}),
        (cuda.Direct, {"boundary": "implicit", "collision": "cumulant"}),
        (cuda.Direct, {"boundary": "implicit", "layout": "bundle-aosoa"}),
        (cuda.Direct, {"boundary": "implicit", "layout": "tiled-cells"}),
        (cuda.Column, {"prefetch_cells": 3, "storage": "fp16c"}),
        (cuda.Column, {"prefetch_to": "shared", "wrap": "ghost"}),
        (cuda.Sparse, {"boundary": "implicit", "storage": "bf16"}),
        (cuda.Sparse, {"links": "three_pointers", "layout": "aos"}),
        (cuda.Sparse, {"links": "three_pointers", "prefetch_sites": 3}),
        (cuda.Sparse, {"links": "six_pointers", "layout": "aos"}),
        (cuda.Sparse, {"links": "six_pointers", "prefetch_sites": 3}),
        (cpu.Wavefront, {"steps": 3, "layout": "bundle"}),
        (cpu.Wavefront, {"steps": 3, "flow": "solids"}),
        (cpu.Wavefront, {"prefetch_rows": 1, "flow": "cavity"}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_pair_that_few_draws_have_is_in_a_sample(record: type[KernelConfig], pair: dict[str, Any]) -> None:
    found = (sample for sample in kernels(record.backend) if isinstance(sample[1], record))
    assert any(pair.items() <= point_of(sample).items() for sample in found)


@by_family
def test_no_other_search_finds_a_pair_that_is_illegal(record: type[KernelConfig]) -> None:
    """One that goes through the choices that enable others, and draws those; it finds pairs that are legal."""
    draw = random.Random(7)
    illegal = {frozenset(missing.values) for missing in pairwise(record).missing}
    told: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for pair in draw.sample(sorted(pairs_among(values_of(record)), key=repr), 300):
        told[not _has_any(pair, illegal)].append(dict(pair))
    assert not [pair for pair in told[False][:12] if _drawn_legal(record, pair, draw)]
    assert sum(_drawn_legal(record, pair, draw) for pair in told[True][:40]) >= 38


def _drawn_legal(record: type[KernelConfig], pair: dict[str, Any], draw: random.Random) -> bool:
    """Whether a point with a pair is legal, of two drawn for each of the choices that enable others."""
    values = values_of(record)
    names = [name for name in ("scheme", "flags", "flow") if name in values]
    names += ["layout"] * (len(values["scheme"]) < 6)
    enabling = [dict(zip(names, chosen, strict=True)) for chosen in product(*(values[name] for name in names))]
    enabling *= 2
    draw.shuffle(enabling)
    points = chain.from_iterable(_drawn(record, {**chosen, **pair}, draw) for chosen in enabling)
    return any(broken(*sample_of(record, point), LIMITS) is None for point in points)


def _drawn(record: type[KernelConfig], fixed: dict[str, Any], draw: random.Random) -> Iterator[dict[str, Any]]:
    """A point with some values given; none where one of those knobs does not act, or the case is none."""
    usual, point = defaults(record), dict[str, Any]()
    acting = {one.name: one for one in knobs(record)}
    for name, values in values_of(record).items():
        quiet = acting[name].neutral(point) if name in acting else None
        plain = usual[name] if usual.get(name) in values and draw.random() < 0.6 else draw.choice(values)
        point[name] = fixed.get(name, plain if quiet is None else quiet)
        if quiet is not None and (point[name] != quiet or (name in fixed and name in layout_knobs(record))):
            return
    if collides(point["collision"], point["lattice"]):
        yield point


def test_a_wrong_kernel_is_reported() -> None:
    sample = sample_of(
        cuda.Direct, {"flow": "box", "lattice": "d2q9", "collision": "bgk", "scheme": "pull", "block": "8x2x1"}
    )
    assert conformance._checked(sample, lambda _: _wrong(sample), HostDevice()).startswith("wrong: ")


def _wrong(sample: Sample) -> Binary:
    program = render(*sample)
    return compile_on_host(replace(program, source=program.source.replace("lane.before)", "lane.after)")))


def test_kernels_of_several_steps_and_of_one_keep_a_state_in_the_same_way() -> None:
    """Places, formulas, buffers, arguments and the reach of indices, and no more shared memory; with bulk copies no
    more than the device has, since those of one step may begin within a piece where those of several do not.
    """
    checked = 0
    for case, config in islice(chain.from_iterable(of_tiles(n).samples for n in (3, 2)), 0, None, 8):
        program = render(case, config)
        single = render_single(program)
        assert (single is None) == (config.fused_steps == 1)
        if single is None:
            continue
        one, several = describe_kernel(single), describe_kernel(program)
        assert isinstance(config, cuda.TemporalBlocking)
        assert isinstance(single.config, cuda.TemporalBlocking)
        assert describe_storage(single) == describe_storage(program)
        assert (one.buffers, one.arguments) == (several.buffers, several.arguments)
        assert one.max_elements == several.max_elements
        assert [g.arguments for g in one.period[0]] == [g.arguments for g in several.period[0]]
        several_bytes = config.shared_bytes(case)
        allowed = ROOMY.shared_bytes_per_block if config.plane_fetch == "bulk" else several_bytes
        assert single.config.shared_bytes(case) <= allowed
        checked += 1
    assert checked > 10
