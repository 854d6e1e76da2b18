"""Values that families make: the fastest kernels that are known have them, and each range has its reason."""

import heapq
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.catalogue.config import FAMILIES, KernelConfig, Scalar, completed, flat_values, from_flat, knobs
from lbmtune.catalogue.families.cuda.chunks import end, tapered_lengths, uniform_lengths
from lbmtune.catalogue.families.cuda.tile_ranges import _blocks_at_once
from lbmtune.catalogue.families.ranges import Range, made_knobs
from lbmtune.catalogue.families.rules import Limits, broken, cuda_limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.files.studyfile import base_study, load_study
from lbmtune.records import Environment
from lbmtune.records.spec import ALL_FAMILIES, StudySpec, tables
from lbmtune.records.store import read_study
from lbmtune.search.spaces.axes import Asked, Product, product_of
from lbmtune.search.spaces.space import _EVERY, Space, legal_set
from tests.support.paths import ROOT

H200 = cuda_limits("sm_90", 132, 141 << 30)
CPU = Limits(cores=2, physical_cores=2)
LIMITS = {"cuda": H200, "cpu": CPU}
RECORDED = sorted(path.parent for path in (ROOT / "studies" / "recorded").rglob("study.json"))
FASTEST = tomllib.loads((ROOT / "scripts" / "measurements" / "fastest.toml").read_text())["group"]
RECORDS = [record for families in FAMILIES.values() for record in families.values()]


@cache
def made(case: Case, backend: str, restricted: tuple[tuple[str, str], ...], limits: Limits) -> Space:
    return legal_set(case, backend, {name: (value,) for name, value in restricted}, limits, [ALL_FAMILIES])


@cache
def product(case: Case, record: type[KernelConfig], restricted: tuple[tuple[str, str], ...], limits: Limits) -> Product:
    asked = Asked(case, record.backend, limits, [ALL_FAMILIES])
    return product_of(asked, record, {name: (value,) for name, value in restricted})


def is_made(found: Product, case: Case, config: KernelConfig, limits: Limits) -> bool:
    """Return whether a space has a legal kernel: a way to it goes through values that are made for each knob."""
    *_, (_, allowed, point) = found._steps(config.flat())
    reached = bool(allowed) and from_flat(completed(point, limits)) == config
    return reached and not broken(case, config, limits)


def holds(case: Case, config: KernelConfig, limits: Limits) -> bool:
    """Return whether a made space has a kernel, or one with chunks of planes that end no later."""
    restricted = (("family", config.family), ("storage", config.storage))
    if not case.geometry and getattr(config, "flags", "") == "memory":
        restricted += (("flags", "memory"),)
    found = product(case, type(config), restricted, limits)
    assert found.size <= _EVERY, "all of its points are looked at"
    better = with_better_chunks(case, config, limits)
    return is_made(found, case, config, limits) or any(is_made(found, case, one, limits) for one in better)


def with_better_chunks(case: Case, config: KernelConfig, limits: Limits) -> Iterator[KernelConfig]:
    if config.family == "temporal-blocking":
        planes = case.domain[1 if case.stencil.dimensions == 2 else 2]
        last = ends(case, config, limits)
        others = (replace(config, chunk_planes=n) for n in range(1, planes + 1))
        yield from (one for one in others if ends(case, one, limits) <= last)


def ends(case: Case, config: KernelConfig, limits: Limits) -> float:
    """Simulate when the last block ends."""
    flat = case.stencil.dimensions == 2
    planes, (x, y, _) = case.domain[1 if flat else 2], config.blocks(case)
    places = limits.multiprocessors * _blocks_at_once(case, config, limits)
    found = chunks(planes, config.chunk_planes, config.chunk_schedule)
    return simulated(found, 2 * config.steps, x if flat else x * y, places)


def chunks(planes: int, length: int, schedule: str = "uniform") -> list[int]:
    """Return the planes of each chunk, as kernels/cuda/temporal_blocking/entry_3d.cu has them."""
    count = -(-planes // length)
    taper = schedule == "tapered"
    starts = [length * n * (2 * count - n) // count if taper else length * n for n in range(count + 1)]
    whole = [min(planes, start) for start in starts]
    return [after - before for before, after in pairwise(whole) if after > before]


def simulated(planes: list[int], again: int, columns: int, places: int) -> int:
    free = [0] * places
    for one in planes:
        for _ in range(columns):
            heapq.heapreplace(free, free[0] + one + again)
    return max(free)


def limits_of(environment: Environment) -> Limits:
    if environment.backend == "cuda":
        return H200
    return Limits(cores=environment.cores, vector_bits=environment.vector_bits, memory_bytes=environment.memory_bytes)


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_recorded_winners_are_made(folder):
    """A made space has the winner, or a kernel whose finals the study itself could not tell from the winner's."""
    record = read_study(folder)
    best = [record.ranked[0], *(trial for trial in record.ranked[1:] if trial.number in record.tied)]
    case, limits = record.header.spec.case, limits_of(record.header.environment)
    assert any(holds(case, from_flat(trial.config), limits) for trial in best)


@pytest.mark.parametrize(
    ("group", "kernel"),
    [(group, kernel) for group in FASTEST for kernel in group["kernels"]],
    ids=lambda one: one if isinstance(one, str) else one["set"][0],
)
def test_the_fastest_known_kernels_are_made(group: Mapping[str, list[str]], kernel: str):
    case = load_study(str(group["study"]), group["set"]).case
    assert holds(case, from_flat(completed({"backend": "cuda", **flat_values(kernel)}, H200)), H200)


def test_chunks_written_by_hand_come_out():
    """Two waves of 86 planes fill 132 multiprocessors, where 88 columns go up through 256."""
    assert {43, 86} <= set(uniform_lengths(256, 2, 88, 132))
    assert {32, 64, 86} <= set(uniform_lengths(256, 3, 160, 132))
    assert {96, 192} <= set(uniform_lengths(384, 3, 195, 132))
    assert 43 in uniform_lengths(128, 3, 40, 132)
    assert {37, 43, 64} <= set(tapered_lengths(256, 3, 100, 132))


@settings(deadline=None)
@given(
    planes=st.integers(1, 90),
    length=st.integers(1, 90),
    again=st.integers(2, 8),
    columns=st.integers(1, 50),
    places=st.integers(1, 40),
)
def test_the_end_of_the_last_block_is_that_of_a_simulation(planes, length, again, columns, places):
    length = min(length, planes)
    assert end(planes, length, again, columns, places) == simulated(chunks(planes, length), again, columns, places)


def test_chunks_of_another_domain_end_sooner_than_those_of_256_planes():
    ours = min(end(500, n, 4, 150, 132) for n in uniform_lengths(500, 2, 150, 132))
    assert ours < min(end(500, n, 4, 150, 132) for n in (32, 64, 86, 192))


CASES = [
    [],
    ["case.domain=300x200x500", "case.collision=trt"],
    ["case.domain=384x384x384", "storage=fp16s"],
    ["case.lattice=d2q9", "case.domain=1024x512"],
    ["case.flow=cavity"],
    ["case.flow=pipe"],
    ["case.geometry=sphere", "case.domain=64x64x64"],
    ["case.domain=7x5x3"],
    ["case.domain=64x64x64", "storage=fp64"],
]


def assert_ways_lead_to(spec: StudySpec, every: set[KernelConfig], some: Iterable[KernelConfig], limits: Limits):
    """A kernel is in a space if a way leads to it, and only then: what `is_made` says is what all points say."""
    found: dict[type[KernelConfig], Product] = {}
    for config in some:
        record = type(config)
        if record not in found:
            (table,) = tables(spec.axes[record.backend])
            found[record] = product_of(Asked(spec.case, record.backend, limits, spec.families), record, table)
        assert is_made(found[record], spec.case, config, limits)
        for name in sorted({"chunk_planes", "tile", "row_offset"} & {one.name for one in fields(config)}):
            value = getattr(config, name)
            other = replace(config, **{name: value + 1 if isinstance(value, int) else (*value[:-1], 2 * value[-1])})
            assert is_made(found[record], spec.case, other, limits) == (other in every)


@pytest.mark.parametrize("backend", FAMILIES)
@pytest.mark.parametrize("overrides", CASES, ids=lambda one: " ".join(one) or "box")
def test_made_spaces_are_legal_distinct_and_of_bounded_size(overrides, backend):
    spec = base_study(overrides)
    space = legal_set(spec.case, backend, spec.axes[backend], LIMITS[backend], spec.families)
    assert 0 < len(space.configs) <= 60_000
    assert len(set(space.configs)) == len(space.configs) == sum(space.sizes)
    some = space.configs[:: max(1, len(space.configs) // 200)]
    assert not any(broken(spec.case, config, LIMITS[backend]) for config in some)
    assert_ways_lead_to(spec, set(space.configs), some, LIMITS[backend])
    assert sum(space.illegal.values()) < 2.5 * len(space.configs)
    assert all(one.reason and one.family in FAMILIES[backend] for one in space.ranges)
    assert all(len(set(one.values)) == len(one.values) for one in space.ranges)


@settings(deadline=None, max_examples=20)
@given(domain=st.tuples(*[st.integers(1, 80)] * 3), backend=st.sampled_from(sorted(FAMILIES)))
def test_any_domain_has_a_made_space(domain, backend):
    case = box("d3q19", "regularised", domain)
    for name in ("direct", "temporal-blocking") if backend == "cuda" else ("direct", "wavefront"):
        asked = Asked(case, backend, LIMITS[backend], [name])
        points = list(product_of(asked, FAMILIES[backend][name], {}).points())
        assert points
        assert len({tuple(point.items()) for point in points}) == len(points)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.backend}-{record.family}")
def test_ranges_depend_on_the_knobs_that_they_name(record: type[KernelConfig]):
    """A range is made once for all points that agree in these."""
    names = {one.name for one in knobs(record)}
    case = box("d3q19", "regularised", (48, 32, 32))
    if record.indirect:
        case = replace(case, geometry="sphere")
    configs = made(case, record.backend, (("family", record.family),), LIMITS[record.backend]).configs
    some = configs[:: max(1, len(configs) // 300)]
    for name, how in made_knobs(record).items():
        assert name in names
        assert name not in how.after
        assert {*how.after} <= names | {"wrap"}
        found: dict[tuple[Scalar | None, ...], Range] = {}
        for config in some:
            flat = config.flat()
            closed = how.make(case, config, LIMITS[record.backend])
            assert found.setdefault(tuple(map(flat.get, how.after)), closed) == closed, name


def test_without_solid_cells_no_sites_are_listed():
    space = made(box("d3q19", "bgk", (64, 64, 64)), "cuda", (), H200)
    assert not any(config.family == "sparse" for config in space.configs)
    assert any(one.family == "sparse" and not one.values and "no cell is solid" in one.reason for one in space.ranges)
