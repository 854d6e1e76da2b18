"""The kernel families: each has its own knobs and no others, said once where its record declares them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from lbmtune.catalogue.config import (
    ALL_PROCESSORS,
    DEFAULT_FAMILY,
    FAMILIES,
    PHYSICAL_CORES,
    CpuConfig,
    CudaConfig,
    KernelConfig,
    Knob,
    Scalar,
    backend_knobs,
    completed,
    cpu,
    cuda,
    defaults,
    families_with,
    from_flat,
    knobs,
    knobs_by_name,
    parse_config,
)
from lbmtune.catalogue.families.groups import BLOCKWISE, ORDERED, SWAPPING
from lbmtune.catalogue.families.rules import Limits, broken, rules
from lbmtune.catalogue.family_knobs import layout_knobs
from lbmtune.catalogue.knobs import own_knobs, scalar
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.problem.flows import box
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.errors import InputError
from lbmtune.files.studyfile import parse_study
from lbmtune.lattice import LATTICES
from tests.support.conformance.choices import ROOMY

RECORDS: list[Any] = [record for families in FAMILIES.values() for record in families.values()]
KNOBS = [(record, one) for record in RECORDS for one in knobs(record)]
MOST_KNOBS = 20
"""Of a family; its layout counts as one."""
STRANGE = [
    (record, name)
    for record in RECORDS
    for name in backend_knobs(record.backend)
    if name not in knobs_by_name(record) and name != "family"
]
by_family = pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.backend}-{record.family}")
by_knob = pytest.mark.parametrize(
    ("record", "one"), KNOBS, ids=[f"{record.backend}-{record.family}-{one.name}" for record, one in KNOBS]
)
of_another_family = pytest.mark.parametrize(
    ("record", "name"), STRANGE, ids=[f"{record.backend}-{record.family}-{name}" for record, name in STRANGE]
)
DEVICE = Limits(cores=7, vector_bits=256)


def test_there_are_six_families_of_gpus_and_four_of_cpus() -> None:
    assert {*FAMILIES["cuda"]} == {
        "direct",
        "column",
        "sparse",
        "temporal-blocking",
        "persistent",
        "face-exchange",
    }
    assert {*FAMILIES["cpu"]} == {"direct", "sparse", "wavefront", "moments-wavefront"}
    assert all(FAMILIES[record.backend][record.family] is record for record in RECORDS)
    assert DEFAULT_FAMILY in FAMILIES["cuda"].keys() & FAMILIES["cpu"].keys()
    for backend in FAMILIES:
        chosen = backend_knobs(backend)["family"]
        assert (chosen.default, chosen.search) == (DEFAULT_FAMILY, (DEFAULT_FAMILY,))
        assert {*chosen.allowed} == {*FAMILIES[backend]}


@by_family
def test_a_family_has_few_knobs(record: type[KernelConfig]) -> None:
    own = {one.name for one in knobs(record)} - layout_knobs(record)
    assert "layout" in own
    assert len(own) <= MOST_KNOBS
    assert own == {f.name for f in fields(record)}, "each field is a knob"


@by_family
def test_a_family_says_what_it_is(record: type[KernelConfig]) -> None:
    assert record.title
    assert record.__doc__
    assert issubclass(record, CudaConfig if record.backend == "cuda" else CpuConfig)
    assert rules(record)
    assert {*record.layouts} <= {*LAYOUTS}
    assert record.by_device.keys() == ({"threads", "vector_bits"} if record.backend == "cpu" else set())


@by_family
def test_defaults_are_legal(record: Any) -> None:
    """For a case that the family is for: persistent kernels hold small domains."""
    edge = 32 if record.family == "persistent" else 256
    case = box("d3q19", "regularised", (edge, edge, edge))
    device = replace(ROOMY, multiprocessors=132, cooperative=True)
    assert broken(case, record(), device) is None


@by_knob
def test_a_knob_has_a_meaning_and_values(record: type[KernelConfig], one: Knob) -> None:
    assert one.meaning
    assert not one.meaning.endswith(".")
    assert one.search
    assert len({*one.search}) == len(one.search)
    assert {type(value) for value in (*one.search, *one.allowed)} - {type(one.default)} <= {str}
    if one.allowed:
        assert {one.default, *one.search} <= {*one.allowed}
    elif isinstance(one.default, int):
        assert one.default >= one.least
        assert all(value >= one.least for value in one.search if isinstance(value, int))
    assert one.use.startswith("use ")
    assert one.is_name + one.is_extent + isinstance(one.default, int) == 1
    assert not (one.is_name and one.unit), "names have no unit"


@by_knob
def test_conditions_of_a_knob_are_about_knobs_of_its_family(record: type[KernelConfig], one: Knob) -> None:
    before = [other.name for other in knobs(record)]
    for condition in one.acts:
        other = knobs_by_name(record)[condition.on]
        assert before.index(other.name) < before.index(one.name), "what decides comes first"
        assert condition.because
        assert condition.values
        if other.allowed:
            assert {*condition.values} <= {*other.allowed}
        assert condition.neutral is None or not one.allowed or condition.neutral in one.allowed


@by_family
def test_defaults_of_fields_are_those_of_the_knobs(record: Any) -> None:
    usual, config = defaults(record), record()
    for f in fields(record):
        assert scalar(getattr(config, f.name)) == usual[f.name]
    assert from_flat({"backend": record.backend, "family": record.family}).family == record.family
    if record is not cuda.FaceExchange:  # its tiles of the layout are those of its thread blocks
        assert config.identity == {"backend": record.backend, "family": record.family}


@by_family
def test_a_record_is_frozen_and_takes_keywords_alone(record: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        record().storage = "fp64"
    with pytest.raises(TypeError):
        record("fp64")
    assert hash(record()) == hash(record())
    assert replace(record(), storage="fp16s") != record()


@of_another_family
def test_a_knob_of_another_family_does_not_exist(record: Any, name: str) -> None:
    """In Python, as text, in flat values and in a study file; the last three tell the families that have it."""
    having = families_with(name, record.backend)
    assert having
    assert record.family not in having
    value = backend_knobs(record.backend)[name].default
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        record(**{name: value})
    told = rf"^{name} is not a knob of family {record.family} \(famil(y|ies) {', '.join(having)} of {record.backend} ha"
    with pytest.raises(InputError, match=told):
        parse_config(f"family={record.family},{name}={value}", record.backend)
    with pytest.raises(InputError, match=told):
        from_flat({"backend": record.backend, "family": record.family, name: value})
    with pytest.raises(InputError) as raised:
        parse_study(study_with(record, name, value), "study.toml")
    assert f"axes.{record.backend}.{name}: is not a knob of family {record.family}" in str(raised.value)
    assert f"(use family {' or '.join(having)})" in str(raised.value)


def study_with(record: type[KernelConfig], name: str, value: Scalar) -> str:
    written = f'"{value}"' if isinstance(value, str) else value
    return f"""
name = "study"
objective = "mlups"
seed = 1

[case]
flow = "box"
lattice = "d3q19"
collision = "bgk"
domain = "64x64x64"
relaxation_rate = 1.6

[budget]
time = "1m"

[axes.{record.backend}]
family = ["{record.family}"]
{name} = [{written}]
"""


@by_knob
def test_a_knob_of_a_family_is_one_of_a_study_file(record: type[KernelConfig], one: Knob) -> None:
    space: Any = parse_study(study_with(record, one.name, one.default), "study.toml").axes[record.backend]
    assert space == {"family": (record.family,), one.name: (one.default,)}


@by_knob
def test_each_value_of_a_knob_round_trips(record: type[KernelConfig], one: Knob) -> None:
    for value in {*one.search, *one.allowed, one.default} - {ALL_PROCESSORS}:
        owner = {"layout": one.acts[-1].values[0]} if one.name in layout_knobs(record) else {}
        config = from_flat({"backend": record.backend, "family": record.family, **owner, one.name: value})
        flat = config.flat()
        assert type(config) is record
        assert flat[one.name] == value
        assert from_flat(flat) == config
        assert parse_config(str(config)) == config
        assert parse_config(config.brief) == config
        assert flat["family"] == record.family


@by_family
def test_parameters_of_layouts_are_those_of_the_layouts_that_a_family_has(record: type[KernelConfig]) -> None:
    own = {one.name for name in record.layouts for one in own_knobs(LAYOUTS[name])} - record.without
    assert layout_knobs(record) == own
    for name in record.layouts:
        flat = from_flat({"backend": record.backend, "family": record.family, "layout": name}).flat()
        have = {one.name for one in own_knobs(LAYOUTS[name])} - record.without
        assert flat.keys() & own == have


def test_shared_knobs_of_a_backend_mean_the_same() -> None:
    """Their defaults and values may differ, their types and units not."""
    for families in FAMILIES.values():
        first: dict[str, Knob] = {}
        for record in families.values():
            for one in knobs(record):
                other = first.setdefault(one.name, one)
                assert (one.is_name, one.unit == "") == (other.is_name, other.unit == "")


# what a device and other knobs fill in


@by_family
def test_what_a_device_fills_in(record: type[KernelConfig]) -> None:
    full = completed({"backend": record.backend, "family": record.family}, DEVICE)
    config = from_flat(full)
    assert type(config) is record
    assert config.compute == "fp32"
    if isinstance(config, CpuConfig):
        assert (config.threads, config.vector_bits) == (7, 256)
    else:
        assert "threads" not in full


@by_family
def test_what_is_given_is_not_filled_in(record: type[KernelConfig]) -> None:
    given: dict[str, Scalar] = {"backend": record.backend, "family": record.family, "storage": "fp64"}
    assert completed(given, DEVICE)["compute"] == "fp64"
    assert completed({**given, "compute": "fp32"}, DEVICE)["compute"] == "fp32"
    if record.backend == "cpu":
        assert completed({**given, "threads": ALL_PROCESSORS}, DEVICE)["threads"] == 7
        assert completed({**given, "threads": PHYSICAL_CORES}, DEVICE)["threads"] == 7, "as far as is known"
        nodes = replace(DEVICE, cores=12, physical_cores=6, numa_nodes=(8, 4, 0))
        for pinning, every, cores in (("cores", 12, 6), ("node-0", 8, 4), ("node-1", 4, 2), ("node-2", 12, 6)):
            assert completed({**given, "threads": ALL_PROCESSORS, "pinning": pinning}, nodes)["threads"] == every
            assert completed({**given, "threads": PHYSICAL_CORES, "pinning": pinning}, nodes)["threads"] == cores
        halves = replace(DEVICE, physical_cores=4)
        assert completed({**given, "threads": PHYSICAL_CORES}, halves)["threads"] == 4
        full = completed({**given, "threads": 3, "vector_bits": 512}, DEVICE)
        assert (full["threads"], full["vector_bits"]) == (3, 512)


def test_values_that_follow_from_other_knobs() -> None:
    assert completed({}, DEVICE) == {"backend": "cuda", "family": "direct", "compute": "fp32"}
    select = completed({"backend": "cpu", "wrap": "select"}, DEVICE)
    assert (select["vector_bits"], select["row_offset"]) == (0, 0), "rows start at 0, and vectors need ghost columns"
    ghost = completed({"backend": "cpu", "wrap": "ghost"}, DEVICE)
    assert "row_offset" not in ghost
    for name in SCHEMES:
        full = completed({"backend": "cpu", "scheme": name}, DEVICE)
        assert full.get("parallel_loop") == ("tile-8x4" if name in BLOCKWISE else None)
    assert completed({"backend": "cpu", "scheme": "ghost-cell", "parallel_loop": "tile-3x2"}, DEVICE)[
        "parallel_loop"
    ] == ("tile-3x2")
    with pytest.raises(InputError, match="unknown family of cpu 'column'"):
        completed({"backend": "cpu", "family": "column"}, DEVICE)


def test_groups_of_schemes_are_the_same_for_every_lattice() -> None:
    """They are found with one of them."""
    for lattice in LATTICES.values():
        first = {name: one.phase(lattice, 0) for name, one in SCHEMES.items()}
        assert {name for name, phase in first.items() if phase.blockwise} == {*BLOCKWISE}
        assert {name for name, phase in first.items() if phase.ordered} == {*ORDERED}
    assert {*SWAPPING} == {"esoteric-twist", "esoteric-pull"}


# knobs that stand for several figures


@pytest.mark.parametrize(
    ("limit", "registers", "blocks"), [("none", 0, 0), ("96-registers", 96, 0), ("3-blocks", 0, 3), ("3-warps", 0, 0)]
)
def test_a_register_limit_is_of_registers_or_of_blocks(limit: str, registers: int, blocks: int) -> None:
    for record in RECORDS:
        if "register_limit" in knobs_by_name(record):
            config = record(register_limit=limit)
            assert (config.max_registers, config.min_blocks) == (registers, blocks)
    assert cuda.Persistent(min_blocks=2).min_blocks == 2
    assert cuda.Persistent().max_registers == 0


@pytest.mark.parametrize(
    ("config", "loop", "tile"),
    [
        (cpu.Direct(), "z", (0, 0)),
        (cpu.Direct(parallel_loop="zy"), "zy", (0, 0)),
        (cpu.Direct(parallel_loop="tile-8x4"), "tile", (8, 4)),
        (cpu.Wavefront(tile=(32, 2)), "tile", (32, 2)),
        (cpu.MomentsWavefront(tile=(64, 8, 4)), "tile", (8, 4)),
        (cpu.Sparse(), "z", (0, 0)),
    ],
)
def test_tiles_of_rows(config: CpuConfig, loop: str, tile: tuple[int, int]) -> None:
    assert config.loop == loop
    assert (config.tile_y, config.tile_z) == tile


def test_tiles_of_moments_end_along_rows_too() -> None:
    assert cpu.MomentsWavefront(tile=(64, 8, 4)).tile_x == 64


def test_single_steps_work_on_the_same_state() -> None:
    """The kernel of one step per launch, for steps that are left over."""
    lattice = LATTICES["d3q19"]
    for record in RECORDS:
        config = record()
        single = config.single_step()
        assert single.fused_steps == 1
        assert single.frame(lattice) == config.frame(lattice)
        assert single.memory == config.memory
        assert config.fused_steps > 1 or single == config
    assert type(cpu.Wavefront().single_step()) is cpu.Direct
    assert cpu.Wavefront(tile=(8, 2)).single_step().parallel_loop == "tile-8x2"
    assert cuda.TemporalBlocking(launch="graph").single_step() == cuda.TemporalBlocking(steps=1)
