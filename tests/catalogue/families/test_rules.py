"""Legality: every rule of every family has an illegal example with its sentence, and beside it a legal neighbour."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.config import (
    FAMILIES,
    KernelConfig,
    Knob,
    cpu,
    cuda,
    flat_values,
    from_flat,
    knobs,
    parse_config,
)
from lbmtune.catalogue.families import module_of
from lbmtune.catalogue.families.common_rules import FIRST, bundles, tiles_of_layout, value_of, value_rules
from lbmtune.catalogue.families.rules import Limits, broken, rules
from lbmtune.catalogue.family_knobs import layout_knobs
from lbmtune.catalogue.knobs import Acts, Scalar
from lbmtune.catalogue.layouts import SoA
from lbmtune.catalogue.problem.flows import box
from lbmtune.errors import InputError
from lbmtune.search.spaces.rule_cache import tracked
from tests.catalogue.families.examples import (
    CASE,
    DEVICE,
    MOMENTS,
    SMALL,
    Example,
    patched,
    slipping,
    solid,
    walled,
)

LIMITS = Limits(cores=16, memory_bytes=2**36)
"""What every device has."""
RECORDS = [record for families in FAMILIES.values() for record in families.values()]
KNOBS = [(record, one) for record in RECORDS for one in knobs(record)]
by_family = pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.backend}-{record.family}")
by_knob = pytest.mark.parametrize(
    ("record", "one"), KNOBS, ids=[f"{record.backend}-{record.family}-{one.name}" for record, one in KNOBS]
)


def parsed(record: type[KernelConfig], text: str) -> KernelConfig:
    return parse_config(f"family={record.family},{text}", record.backend)


def examples_of(record: type[KernelConfig]) -> tuple[Example, ...]:
    found: tuple[Example, ...] = module_of(f"tests.catalogue.families.examples.{record.backend}", record).EXAMPLES
    return found


@pytest.mark.parametrize(
    ("record", "example"),
    [(record, example) for record in RECORDS for example in examples_of(record)],
    ids=lambda value: f"{value.backend}-{value.family}" if isinstance(value, type) else str(value.illegal),
)
def test_rule_of_a_family(record: type[KernelConfig], example: Example) -> None:
    assert broken(example.legal_case or example.case, parsed(record, example.legal), DEVICE) is None
    assert broken(example.case, parsed(record, example.illegal), example.limits) == example.sentence


@by_family
def test_every_rule_speaks_in_an_example(record: type[KernelConfig]) -> None:
    """Those of single knobs have tests of their own below; that of unknown names raises."""
    own = [rule for rule in rules(record) if rule not in (*FIRST, *value_rules(record))]
    if not any("bundle" in name for name in record.layouts):
        own.remove(bundles)
    if not any("tiled" in name for name in record.layouts):
        own.remove(tiles_of_layout)
    found = [(example.case, parsed(record, example.illegal), example.limits) for example in examples_of(record)]
    spoke = {next(rule for rule in rules(record) if rule(*point)) for point in found}
    assert spoke >= {*own}


def with_value(record: type[KernelConfig], values: dict[str, Scalar]) -> KernelConfig:
    """The default configuration but for some values, with a layout that has these if they are of layouts."""
    for name in values.keys() & layout_knobs(record):
        owners = next(one for one in knobs(record) if one.name == name).acts[-1]
        values = {"layout": owners.values[0], **values}
    return from_flat({"backend": record.backend, "family": record.family, **values})


def rule_of(record: type[KernelConfig], one: Knob) -> Any:
    return dict(zip((known.name for known in knobs(record)), value_rules(record), strict=True))[one.name]


@by_knob
def test_each_knob_refuses_values_that_it_does_not_have(record: type[KernelConfig], one: Knob) -> None:
    """Names that are no value, numbers below the least, extents of zero. Three kinds have rules or errors instead."""
    if one.name in ("layout", "scheme", "order", "storage", "compute"):
        value = "strange" if one.name == "layout" else None
        if value:
            with pytest.raises(InputError, match=f"unknown {one.name} 'strange'"):
                with_value(record, {one.name: value})
            return
        strange = replace(with_value(record, {}), **{one.name: "strange"})
        with pytest.raises(InputError, match=f"unknown {one.name} 'strange'"):
            broken(CASE, strange, DEVICE)
        return
    if one.is_name and not one.allowed:
        strange = with_value(record, {one.name: "strange"})
        assert any(
            str(rule(CASE, strange, DEVICE)).startswith(f"{one.name}=strange is not supp") for rule in rules(record)
        )
        return
    wrong = "0x" * str(one.default).count("x") + "1" if one.is_extent else "strange" if one.is_name else one.least - 1
    if one.allowed and not one.is_name:
        wrong = max(value for value in one.allowed if isinstance(value, int)) + 1
    reason = str(rule_of(record, one)(CASE, with_value(record, {one.name: wrong}), DEVICE))
    how = "each extent is at least 1" if one.is_extent else one.use
    assert reason.startswith(f"{one.name}={wrong} is not supported")
    assert reason.endswith(f"({how})")


def wrong_for(condition: Acts, other: Knob) -> Scalar | None:
    """A value of another knob with which one does not act; None if it has none in this family."""
    known = (*other.allowed, *other.search, other.default)
    return next((value for value in known if (value in condition.values) == condition.unless), None)


@by_knob
def test_each_knob_has_its_neutral_value_where_another_keeps_it_from_acting(
    record: type[KernelConfig], one: Knob
) -> None:
    by_name = {known.name: known for known in knobs(record)}
    for condition in one.acts:
        if condition.on == "layout" and one.name in layout_knobs(record):
            continue  # the record of another layout lacks it
        wrong = wrong_for(condition, by_name[condition.on])
        if wrong is None:
            continue
        against = {condition.on: wrong}
        neutral = one.default if condition.neutral is None else condition.neutral
        assert one.neutral({**against}) == neutral
        others = [value for value in (*one.allowed, *one.search, one.default) if value != neutral] or [neutral + 1]  # type: ignore[operator]
        reason = rule_of(record, one)(CASE, with_value(record, {**against, one.name: others[0]}), DEVICE)
        assert reason == (
            f"{one.name}={others[0]} is not supported for {condition.on}={against[condition.on]} "
            f"(use {one.name}={neutral}): {condition.because}"
        )
        quiet = with_value(record, {**against, one.name: neutral})
        assert rule_of(record, one)(CASE, quiet, DEVICE) is None


def test_what_waits_is_held_against_the_registers_of_all_blocks_asked_for() -> None:
    """Doubles take two each: 4 steps x 3 rows x 19 x 2 = 456, at most 6 x 64; one step less is 342."""
    roomy = replace(LIMITS, shared_bytes_per_block=227 << 10, shared_bytes_per_multiprocessor=228 << 10)
    four = cuda.TemporalBlocking(block=(32, 6, 1), rows=3, storage="fp64", compute="fp64", steps=4)
    assert broken(CASE, four, roomy) is None
    shared = replace(roomy, shared_bytes_per_multiprocessor=2**20)
    bounded = replace(four, register_limit="5-blocks")
    assert "456 registers from plane to plane" in str(broken(CASE, bounded, shared))
    assert broken(CASE, replace(bounded, steps=3), shared) is None
    assert broken(CASE, replace(bounded, z_buffer="shared"), shared) is None


@pytest.mark.parametrize("pack", [2, 1])
def test_single_steps_that_are_left_over_fit_on_chip_too(pack: int) -> None:
    """Rows of tiles begin with a piece of bulk copies if their halo is 2 cells and pieces are, not if it is 1."""
    config = cuda.TemporalBlocking(
        representation="moments", block=(32, 12, 1), pack=pack, plane_fetch="bulk", steps=2 * (3 - pack)
    )
    several, single = config.shared_bytes(MOMENTS), config.single_step().shared_bytes(MOMENTS)
    most = max(several, single)
    enough = replace(DEVICE, shared_bytes_per_block=most)
    scarce = replace(enough, shared_bytes_per_block=most - 1)
    assert (single > several) == (pack == 2)
    assert broken(MOMENTS, config, enough) is None
    assert broken(MOMENTS, config, scarce) == (
        f"{most:,} bytes of shared memory; a block of this device has {most - 1:,}"
    )
    for fetch in ("none", "registers", "cp_async"):
        copied = replace(config, plane_fetch=fetch)
        own = replace(DEVICE, shared_bytes_per_block=copied.shared_bytes(MOMENTS))
        assert broken(MOMENTS, copied, own) is None, "only runs of bulk copies are longer"


def test_the_rule_about_shared_memory_looks_at_what_it_depends_on() -> None:
    """Not at fields that change no byte, so that its answers are kept for all their values."""
    config = cuda.TemporalBlocking(representation="moments", pack=2, plane_fetch="bulk")
    seen, looked_at = tracked(config)
    seen.shared_bytes(MOMENTS)
    of_bytes = {*looked_at}
    (on_chip,) = (rule for rule in rules(type(config)) if getattr(rule, "__name__", "") == "_on_chip")
    seen, looked_at = tracked(config)
    assert on_chip(MOMENTS, seen, DEVICE) is None
    assert {*looked_at} >= of_bytes
    assert {*looked_at}.isdisjoint({"launch", "register_limit", "chunk_planes", "chunk_schedule", "overread"})


def test_rules_about_moments_look_at_what_they_depend_on() -> None:
    """Otherwise no pair of knobs is proved illegal, and answers are not kept for other values."""
    case = box("d3q19", "bgk", (64, 64, 64))
    for record in (cuda.TemporalBlocking, cuda.FaceExchange):
        (of_moments,) = (rule for rule in rules(record) if getattr(rule, "__name__", "") == "moments")
        seen, looked_at = tracked(from_flat({**record().flat(), **MOMENTS_OF.get(record, {})}))
        assert "bgk" in str(of_moments(case, seen, DEVICE))
        assert {*looked_at} <= {"representation", "storage"}


MOMENTS_OF: dict[Any, dict[str, Scalar]] = {cuda.TemporalBlocking: {"representation": "moments"}}


@pytest.mark.parametrize(
    ("lattice", "domain", "block"),
    [("d3q19", (64, 6, 64), (32, 8, 1)), ("d3q19", (64, 3, 1), (32, 8, 1)), ("d2q9", (4096, 3, 1), (32, 4, 1))],
)
def test_tiles_may_end_beyond_the_domain(lattice: str, domain: Any, block: Any) -> None:
    """Rows of a block of tiles are not those of the domain: its halo lies beyond, and in two dimensions warps do."""
    case = box(lattice, "regularised", domain)
    config = cuda.TemporalBlocking(representation="moments", steps=1, block=block, chunk_planes=1)
    assert broken(case, config, LIMITS) is None
    assert "is larger than the domain" in str(broken(case, cuda.Direct(block=block), LIMITS))


def test_planes_where_links_are_cut_have_places_of_32_bits() -> None:
    config = cuda.TemporalBlocking(representation="moments", steps=1, chunk_planes=1)
    periodic = box("d3q19", "regularised", (2**14, 13_108, 4))
    limits = replace(LIMITS, memory_bytes=2**50)
    assert broken(periodic, config, limits) is None
    assert cuts(walled(periodic))
    assert not cuts(periodic)
    sentence = "2,147,614,720 elements of a plane with cut links; at most 2,147,483,647"
    assert broken(walled(periodic), config, limits) == sentence
    assert broken(replace(walled(periodic), domain=(2**14, 13_104, 4)), config, limits) is None


def test_vector_width_of_the_device() -> None:
    config = cpu.Direct()
    assert broken(CASE, config, LIMITS) is None
    assert broken(CASE, config, replace(LIMITS, vector_bits=128)) == (
        "vector_bits=512; this CPU has 128, and two registers make a vector"
    )
    assert broken(CASE, config, replace(LIMITS, vector_bits=256)) is None


@pytest.mark.parametrize("config", [cuda.Sparse(), cpu.Sparse(), cuda.Direct(), cpu.Direct()])
def test_a_list_of_sites_knows_the_faces_by_their_types(config: KernelConfig) -> None:
    assert broken(CASE, config, LIMITS) is None
    assert broken(slipping(CASE), config, LIMITS) is None


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (cuda.Direct(), None),
        (cuda.Direct(wrap="ghost"), "flags=compiled is not supported for wrap=ghost with periodic faces along z (use"),
        (cuda.Column(z_cells=2), "a moving patch is not supported for family column (use direct): whole faces only"),
        (cuda.Direct(boundary="predicated"), "boundary=predicated is not supported for flags=compiled (use boundary="),
        (
            cuda.Direct(macroscopics="every-step"),
            "macroscopics=every-step is not supported for flags=compiled (use never): kernels that read words",
        ),
        (
            cuda.Direct(block=(8, 8, 4), scheme="ghost-cell"),
            "a moving patch is not supported for scheme=ghost-cell: rings hold whole faces",
        ),
        (cpu.Direct(), "flags=compiled is not supported for a patch on face y+ (use memory)"),
        (cpu.Direct(flags="memory"), None),
        (cpu.Wavefront(), "flags=compiled is not supported for a patch on face y+ (use memory)"),
        (cpu.Wavefront(flags="memory"), None),
        (cpu.Sparse(), None),
        (cuda.Direct(flags="memory"), None),
        (cuda.Sparse(), None),
        (
            cuda.Direct(flags="memory", wrap="ghost"),
            "flags=memory is not supported for wrap=ghost with periodic faces along z (use arithmetic): the refresh of",
        ),
        (cuda.TemporalBlocking(flags="memory"), "a moving patch is not supported for family temporal-blocking (use"),
        (cuda.TemporalBlocking(), "a moving patch is not supported for family temporal-blocking (use direct)"),
        (cuda.Persistent(flags="memory"), "a moving patch is not supported for family persistent (use direct)"),
    ],
)
def test_parts_of_faces_are_known_by_words(config: KernelConfig, reason: str | None) -> None:
    found = broken(patched(CASE), config, LIMITS)
    assert (found or "").startswith(reason or "")
    assert bool(found) == bool(reason)


@pytest.mark.parametrize("flags", ["compiled", "memory"])
def test_ghost_rows_that_nothing_crosses_go_with_words(flags: str) -> None:
    closed = replace(patched(CASE), faces=(*patched(CASE).faces[:4], "wall", "wall"))
    assert broken(closed, cuda.Direct(flags=flags, wrap="ghost"), LIMITS) is None


def test_a_node_of_the_device_holds_the_arrays() -> None:
    """Two sockets of eight processors, and a node of memory alone, which any number of threads may use."""
    nodes = replace(LIMITS, cores=16, numa_nodes=(8, 8, 0))
    for config in (cpu.Direct(threads=8, pinning="node-1"), cpu.Sparse(threads=16, pinning="node-2")):
        assert broken(CASE, config, nodes) is None
        assert config.placed
        assert config.numa == config.pinning
    assert cpu.Direct(pinning="cores").numa == "any"


def test_huge_pages_of_the_device() -> None:
    config = cpu.Direct(pages="huge")
    assert broken(CASE, config, LIMITS) is None
    assert broken(CASE, config, replace(LIMITS, huge_pages=False)) == (
        "pages=huge is not supported here (use normal): this system gives no transparent huge pages of 2 MiB"
    )


def test_a_domain_too_large_is_told_the_largest_that_fits() -> None:
    """256^3 x 19 x 2 x 4 bytes = 2.375 GiB; 1 GiB holds two lattices of a cube of 191."""
    config, memory = cuda.Direct(), 2**30
    reason = broken(CASE, config, replace(LIMITS, memory_bytes=memory))
    assert reason == (
        "domain 256x256x256 needs 2.375 GiB in fp32 pull; the device has 1 GiB free, enough for 176x176x176"
    )
    for edge, fits in ((176, True), (192, False)):
        case = replace(CASE, domain=(edge, edge, edge))
        assert (broken(case, config, replace(LIMITS, memory_bytes=memory)) is None) is fits


def test_unknown_name_is_bad_input_and_no_illegal_point() -> None:
    with pytest.raises(InputError, match="unknown scheme 'aaa'; did you mean 'aa'"):
        broken(CASE, cuda.Direct(scheme="aaa"), LIMITS)


def test_solid_cells_have_flags_where_a_box_is_visited() -> None:
    """Lists leave them out."""
    for record in RECORDS:
        config, case = record(), solid(replace(SMALL, collision="regularised"))
        reason = str(broken(case, config, DEVICE))
        assert ("flags=compiled is not supported for geometry sphere" in reason) != (
            record.family in ("sparse", "column")
        ), record


BASES = {
    "cuda": (
        "",
        "layout=bundle,group=3",
        "layout=aosoa,width=32,scheme=aa",
        "family=column",
        "family=sparse",
        "scheme=ghost-cell,block=8x8x4",
        "family=persistent,layout=rows",
        "family=temporal-blocking",
        "family=face-exchange",
    ),
    "cpu": (
        "",
        "family=wavefront",
        "family=moments-wavefront",
        "layout=bundle-aosoa,group=3,width=32",
        "family=sparse",
        "scheme=swap-ordered",
    ),
}


@pytest.mark.parametrize(("backend", "base"), [(backend, base) for backend, bases in BASES.items() for base in bases])
def test_no_number_is_too_strange_for_a_reason(backend: str, base: str) -> None:
    """Every knob that counts something: what is below its least value is illegal, what is huge is judged, too."""
    known = parse_config(base, backend)
    for one in knobs(type(known)):
        if one.is_name or one.is_extent or value_of(known, one.name) is None:
            continue
        for value in (-(10**6), -1, 0, 10**6):
            config = from_flat({"backend": backend, **flat_values(base), one.name: value})
            reason = broken(CASE, config, LIMITS)
            assert reason is None or one.name in reason or value >= one.least, (one.name, value, reason)
            assert reason is not None or value >= one.least, (one.name, value)


def test_layouts_that_a_family_lacks_are_refused() -> None:
    config = replace(cuda.TemporalBlocking(), layout=parse_config("layout=tiled").layout)
    assert broken(CASE, config, DEVICE) == (
        "layout=tiled is not supported for family temporal-blocking (use soa or rows)"
    )
    assert broken(CASE, replace(config, layout=SoA()), DEVICE) is None
