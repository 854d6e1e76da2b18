"""Configurations, spaces and studies of version 0.1: what they are called today, and back."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.catalogue.config import FAMILIES, KernelConfig, Scalar, flat_values, from_flat
from lbmtune.catalogue.problem.flows import box, porous
from lbmtune.errors import InputError
from lbmtune.records.legacy.configurations import (
    DEFAULTS,
    config_of,
    is_legacy,
    migrated,
    previous_key,
    previous_values,
)
from lbmtune.records.legacy.spaces import is_legacy_table, migrated_tables
from lbmtune.records.store import FAMILIES_SINCE, append_trial, read_study, write_header
from lbmtune.records.terms import FORMER, GRID_SYNC, MEANINGS
from lbmtune.records.whole_files import HEADER, TRIALS
from lbmtune.search.spaces.space import legal_set
from tests.catalogue.families.examples import DEVICE
from tests.records.test_store import HEADER_RECORD, TRIAL
from tests.support.paths import RECORDED

Flat = dict[str, Scalar]
CONFIGURATIONS = [
    (
        "cpu",
        "compute=fp64,first_touch=parallel,flags=memory,group=3,layout=bundle,loop=tile,pinning=cores,"
        "row_offset=0,scheme=ghost-cell,threads=2,tile_y=8,tile_z=1,vector_bits=0,wrap=select",
        "backend=cpu,compute=fp64,family=direct,first_touch=parallel,flags=memory,layout=bundle,"
        "parallel_loop=tile-8x1,pinning=cores,row_offset=0,scheme=ghost-cell,threads=2,vector_bits=0,"
        "wrap=select",
        "27ba1fc2b5c8",
    ),
    (
        "cpu",
        "loop=tile,pages=normal,row_padding=15,scheme=push,threads=2,tile_y=8,tile_z=3,vector_bits=0",
        "backend=cpu,family=direct,pages=normal,parallel_loop=tile-8x3,row_padding=15,scheme=push,threads=2,"
        "vector_bits=0",
        "8593f6039ffc",
    ),
    ("cpu", "scheme=aa,storage=fp16c", "backend=cpu,family=direct,scheme=aa,storage=fp16c", "5d813324f971"),
    (
        "cpu",
        "compute=fp64,loop=tile,prefetch_rows=1,representation=moments,row_offset=0,row_padding=15,steps=2,"
        "storage=fp64,threads=2,tile_x=64,tile_y=5,tile_z=3,vector_bits=256",
        "backend=cpu,compute=fp64,family=moments-wavefront,prefetch_rows=1,row_offset=0,row_padding=15,"
        "steps=2,storage=fp64,threads=2,tile=64x5x3,vector_bits=256",
        "7fa9d53e4418",
    ),
    (
        "cpu",
        "loop=tile,prefetch_rows=1,representation=moments,row_offset=0,steps=5,storage=bf16,threads=2,"
        "tile_x=16,tile_y=5,tile_z=1",
        "backend=cpu,family=moments-wavefront,prefetch_rows=1,row_offset=0,steps=5,storage=bf16,threads=2,tile=16x5x1",
        "f793a6ddd17b",
    ),
    (
        "cpu",
        "loop=tile,representation=moments,steps=5,threads=2,tile_x=64,tile_y=5,tile_z=3",
        "backend=cpu,family=moments-wavefront,steps=5,threads=2,tile=64x5x3",
        "d9961944e23c",
    ),
    (
        "cpu",
        "addressing=indirect,compute=fp64,gather=lanes,group=5,layout=bundle-aosoa,order=tile,pinning=cores,"
        "prefetch_index=64,scheme=swap,storage=fp64,vector_bits=256,width=16",
        "backend=cpu,compute=fp64,family=sparse,gather=lanes,group=5,layout=bundle-aosoa,order=tile,"
        "pinning=cores,prefetch_index=64,scheme=swap,storage=fp64,vector_bits=256,width=16",
        "f16fec5bedee",
    ),
    (
        "cpu",
        "addressing=indirect,compute=fp64,layout=aos,order=morton,scheme=esoteric-twist,storage=fp64,vector_bits=0",
        "backend=cpu,compute=fp64,family=sparse,layout=aos,order=morton,scheme=esoteric-twist,storage=fp64,"
        "vector_bits=0",
        "d82285a5caab",
    ),
    ("cpu", "addressing=indirect,scheme=aa", "backend=cpu,family=sparse,scheme=aa", "548e6881c48a"),
    (
        "cpu",
        "far_ends=between,loop=tile,prefetch_local=128,prefetch_propagated=128,prefetch_rows=1,reads=ahead,"
        "row_padding=15,scheme=aa,steps=8,stride=18876096,threads=2,tile_y=64,tile_z=1,vector_bits=256",
        "backend=cpu,collision_passes=pipelined,family=wavefront,prefetch_local=128,prefetch_propagated=128,"
        "prefetch_rows=1,row_padding=15,row_tail=peeled,steps=8,stride=18876096,threads=2,tile=64x1,"
        "vector_bits=256",
        "31851dd20f07",
    ),
    (
        "cpu",
        "far_ends=between,loop=tile,padding=1040,prefetch_local=128,reads=ahead,row_padding=15,scheme=aa,"
        "steps=8,threads=2,tile_y=64,tile_z=1,vector_bits=256",
        "backend=cpu,collision_passes=pipelined,family=wavefront,padding=1040,prefetch_local=128,"
        "row_padding=15,row_tail=peeled,steps=8,threads=2,tile=64x1,vector_bits=256",
        "513a8493df1c",
    ),
    (
        "cpu",
        "loop=tile,prefetch_propagated=32,reads=ahead,scheme=aa,steps=2,stride=200000,tile_y=8,tile_z=3",
        "backend=cpu,collision_passes=pipelined,family=wavefront,prefetch_propagated=32,steps=2,stride=200000,tile=8x3",
        "aa3fe9f88e26",
    ),
    (
        "cuda",
        "block=8x2x1,cells_per_thread=2,compute=fp64,index_bits=64,launch=graph,layout=tiled,"
        "layout_tile=16x1x3,load_hint=l2-only,march=5,max_registers=64,scheme=aa,storage=fp64,wrap=ghost",
        "backend=cuda,block=8x2x1,cells_per_thread=2,compute=fp64,family=column,index_bits=64,launch=graph,"
        "layout=tiled,layout_tile=16x1x3,load_hint=l2-only,register_limit=64-registers,scheme=aa,"
        "storage=fp64,wrap=ghost,z_cells=5",
        "5136bdb30dd4",
    ),
    (
        "cuda",
        "block=32x1x1,cells_per_thread=8,march=8,min_blocks=3,scheme=aa,storage=fp16s,wrap=ghost",
        "backend=cuda,block=32x1x1,cells_per_thread=8,family=column,register_limit=3-blocks,scheme=aa,"
        "storage=fp16s,wrap=ghost",
        "2850ac272af8",
    ),
    ("cuda", "march=8", "backend=cuda,family=column", "5238d0353842"),
    (
        "cuda",
        "block=4x4x1,block_order=z-curve,compute=fp64,group=5,index_bits=64,layout=bundle,"
        "macroscopics=every-step,max_registers=128,parity=pointers,scheme=esoteric-twist,storage=fp64,"
        "store_hint=no-allocate,wrap=ghost",
        "backend=cuda,block=4x4x1,block_order=z-curve,compute=fp64,family=direct,group=5,index_bits=64,"
        "layout=bundle,macroscopics=every-step,pointer_swap=1,register_limit=128-registers,"
        "scheme=esoteric-twist,storage=fp64,store_hint=no-allocate,wrap=ghost",
        "afa690a0a37f",
    ),
    (
        "cuda",
        "block=32x1x1,max_registers=64,padding=64,scheme=aa,storage=fp16s,wrap=ghost",
        "backend=cuda,block=32x1x1,family=direct,padding=64,register_limit=64-registers,scheme=aa,"
        "storage=fp16s,wrap=ghost",
        "ea39c346ef22",
    ),
    ("cuda", "", "backend=cuda,family=direct", "61e608ff14f4"),
    (
        "cuda",
        "block=16x1x3,compute=fp64,halo=faces,layout=tiled-cells,layout_tile=8x4x2,min_blocks=2,"
        "representation=moments,storage=fp64",
        "backend=cuda,compute=fp64,family=face-exchange,layout_tile=8x4x2,register_limit=2-blocks,"
        "storage=fp64,tile=16x1x3",
        "e4f3808b18c2",
    ),
    (
        "cuda",
        "block=8x8x8,fetch=shared,halo=faces,layout=tiled-cells,layout_tile=16x8x8,min_blocks=4,representation=moments",
        "backend=cuda,family=face-exchange,layout_tile=16x8x8,prefetch_to=shared,register_limit=4-blocks",
        "c25c43cde668",
    ),
    (
        "cuda",
        "block=16x1x3,flags=memory,halo=faces,launch=dependent,representation=moments,storage=bf16",
        "backend=cuda,family=face-exchange,flags=memory,launch=dependent,layout=soa,storage=bf16,tile=16x1x3",
        "becc2d495c07",
    ),
    (
        "cuda",
        "block=16x2x1,cells_per_thread=2,flags=memory,held=1,launch=resident,march=2,meeting=neighbours,"
        "min_blocks=2,representation=moments,rows=2,storage=bf16",
        "backend=cuda,block=16x2x1,cells_per_thread=2,family=persistent,flags=memory,grid_sync=neighbours,"
        "min_blocks=2,register_planes=1,representation=moments,rows=2,storage=bf16,tile_planes=2",
        "1ed63f1aea85",
    ),
    (
        "cuda",
        "block=16x16x1,cells_per_thread=5,launch=resident,layout=rows,march=4,meeting=neighbours,"
        "representation=moments",
        "backend=cuda,block=16x16x1,cells_per_thread=5,family=persistent,grid_sync=neighbours,layout=rows,"
        "representation=moments",
        "18323c3b6757",
    ),
    (
        "cuda",
        "block=8x2x1,launch=resident,storage=fp16c",
        "backend=cuda,block=8x2x1,family=persistent,storage=fp16c,tile_planes=1",
        "dc5dab9274f0",
    ),
    (
        "cuda",
        "addressing=indirect,block=64x1x1,compute=fp64,fetch=shared,group=5,index_bits=64,launch=dependent,"
        "layout=bundle-aosoa,load_hint=l2-only,march=5,parity=pointers,prefetch=3,scheme=esoteric-twist,"
        "storage=fp64,width=8",
        "backend=cuda,block=64x1x1,compute=fp64,family=sparse,group=5,index_bits=64,launch=dependent,"
        "layout=bundle-aosoa,load_hint=l2-only,pointer_swap=1,prefetch_sites=3,prefetch_to=shared,"
        "scheme=esoteric-twist,sites_per_thread=5,storage=fp64,width=8",
        "4794b5da1ce4",
    ),
    (
        "cuda",
        "addressing=indirect,block=32x1x1,cells_per_thread=4,max_registers=128,order=tile,padding=64,"
        "prefetch_index=65536,scheme=aa",
        "backend=cuda,block=32x1x1,cells_per_thread=4,family=sparse,order=tile,padding=64,"
        "prefetch_index=65536,register_limit=128-registers,scheme=aa",
        "e150a6ff4ec2",
    ),
    (
        "cuda",
        "addressing=indirect,block=32x1x1,launch=graph",
        "backend=cuda,block=32x1x1,family=sparse,launch=graph",
        "620a1584f208",
    ),
    (
        "cuda",
        "barrier=neighbours,beyond=1,block=32x8x1,cells_per_thread=2,compute=fp64,layout=rows,march=64,"
        "min_blocks=2,pack=2,prefetch=2,representation=moments,rows=2,steps=3,storage=fp64",
        "backend=cuda,cells_per_thread=2,compute=fp64,family=temporal-blocking,overread=1,pack=2,"
        "plane_fetch=cp_async,register_limit=2-blocks,representation=moments,rows=2,steps=3,storage=fp64,"
        "warp_sync=neighbours",
        "0cbed2514fed",
    ),
    (
        "cuda",
        "barrier=neighbours,beyond=1,block=32x12x1,layout=rows,march=64,pack=2,pending=shared,prefetch=1,"
        "representation=moments,steps=2",
        "backend=cuda,block=32x12x1,family=temporal-blocking,overread=1,pack=2,representation=moments,"
        "warp_sync=neighbours,z_buffer=shared",
        "a1edfb9050ec",
    ),
    (
        "cuda",
        "block=32x1x1,compute=fp64,representation=moments,storage=fp64",
        "backend=cuda,block=32x1x1,chunk_planes=1,compute=fp64,family=temporal-blocking,layout=soa,"
        "plane_fetch=none,representation=moments,steps=1,storage=fp64",
        "6f5b785c688a",
    ),
]
"""Of each family: backend, knobs of version 0.1 that were not at their defaults, the text of today, the key of 0.1."""


def values_of(backend: str, text: str) -> Flat:
    """Complete values of version 0.1."""
    given = dict(part.split("=") for part in text.split(",") if part)
    typed = {name: int(value) if isinstance(DEFAULTS[backend][name], int) else value for name, value in given.items()}
    return {**DEFAULTS[backend], **typed}


@pytest.mark.parametrize(("backend", "old", "text", "key"), CONFIGURATIONS, ids=[key for *_, key in CONFIGURATIONS])
class TestConfiguration:
    """What version 0.1 wrote of a configuration."""

    def test_means_the_record_of_its_family(self, backend: str, old: str, text: str, key: str) -> None:
        config = config_of({"backend": backend, **values_of(backend, old)})
        assert config.brief == text
        assert config == from_flat(migrated({"backend": backend, **flat_values(old)})), (
            "from what is not at its default, as text"
        )
        strings = {name: str(value) for name, value in values_of(backend, old).items()}
        assert config_of({"backend": backend, **strings}) == config

    def test_follows_from_the_record(self, backend: str, old: str, text: str, key: str) -> None:
        config = config_of({"backend": backend, **values_of(backend, old)})
        assert previous_values(config) == values_of(backend, old)
        assert previous_key(config) == key
        assert config.key != key

    def test_is_told_from_values_of_today(self, backend: str, old: str, text: str, key: str) -> None:
        config = config_of({"backend": backend, **values_of(backend, old)})
        assert is_legacy({"backend": backend, **values_of(backend, old)})
        assert not is_legacy(config.flat())
        assert config_of(config.flat()) == config


def test_every_family_is_among_the_configurations() -> None:
    found = {
        (backend, config_of({"backend": backend, **values_of(backend, old)}).family)
        for backend, old, _, _ in CONFIGURATIONS
    }
    assert found == {(backend, family) for backend, families in FAMILIES.items() for family in families}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"march": 4, "held": 1}, "held=1 is not supported for family column of cuda (family persistent has regis"),
        ({"addressing": "indirect", "wrap": "ghost"}, "wrap=ghost is not supported for family sparse of cuda"),
        ({"max_registers": 64, "min_blocks": 2}, "(use register_limit with one of them): launch bounds override"),
        (
            {"backend": "cpu", "steps": 2, "gather": "lanes"},
            "gather=lanes is not supported for family wavefront of cpu",
        ),
        ({"backend": "tpu"}, "unknown backend 'tpu'; use cuda or cpu."),
        ({"scheme": "aa", "steps": 2}, "scheme=aa is not supported for family temporal-blocking of cuda"),
        (
            {"halo": "faces", "representation": "moments", "march": 8},
            "march=8 is not supported for family face-exchange of cuda",
        ),
        (
            {"backend": "cpu", "addressing": "indirect", "steps": 4},
            "steps=4 is not supported for family sparse of cpu",
        ),
    ],
)
def test_a_knob_that_has_no_place_is_bad_input(values: Flat, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        migrated(values)
    assert sentence in str(raised.value)


CASES = {
    "porous": porous("d3q19", "bgk", (256, 64, 64), 1.3, "packing:fraction=0.52:radius=8:seed=1", (1e-6, 0.0, 0.0)),
    "box": box("d3q19", "regularised", (256, 256, 256)),
    "small": box("d3q19", "regularised", (32, 32, 32)),
}
TABLES = """
[porous-cuda]
scheme = ["pull", "aa", "esoteric-twist"]
storage = ["fp32"]
layout = ["soa", "aosoa"]
addressing = ["direct", "indirect"]
order = ["row", "tile"]
flags = ["compiled", "memory"]
boundary = ["branch", "predicated"]
neighbours = ["all", "chase"]
prefetch_index = [0, 65536]
width = [32, 64]
padding = [0, 64]
block = ["32x1x1", "64x1x1", "32x2x1"]
cells_per_thread = [1, 2]
max_registers = [0, 64]
min_blocks = [0, 2]
wrap = ["arithmetic"]

[porous-cpu]
scheme = ["pull", "aa", "esoteric-twist"]
storage = ["fp32"]
layout = ["soa", "aosoa"]
addressing = ["direct", "indirect"]
order = ["row", "tile"]
neighbours = ["all", "chase"]
gather = ["vector", "lanes"]
prefetch_index = [0, 64]
flags = ["compiled", "memory"]
width = [16, 32]
padding = [0, 48]
wrap = ["ghost", "select"]
threads = ["all"]
vector_bits = [0, 256, 512]
loop = ["z", "zy", "tile"]
tile_y = [8, 16]
tile_z = [4]
row_offset = [1, 16]
row_padding = [0, 15]
streaming_stores = [0, 1]

[populations]
representation = ["populations"]
scheme = ["pull", "push", "aa"]
storage = ["fp32"]
layout = ["soa"]
padding = [0, 64]
block = ["32x2x1", "64x1x1"]
cells_per_thread = [1, 2, 4]
max_registers = [0, 128, 168]
min_blocks = [0, 2, 3]
wrap = ["arithmetic"]

[columns]
scheme = ["pull", "swap"]
storage = ["fp32", "fp16s"]
layout = ["soa"]
march = [1, 4, 8]
prefetch = [0, 1, 3]
fetch = ["registers", "shared"]
block = ["32x2x1"]
cells_per_thread = [1, 2]
macroscopics = ["never"]
wrap = ["arithmetic", "ghost"]

[moments]
representation = ["moments"]
storage = ["fp32"]
layout = ["rows"]
pack = [1, 2, 4]
steps = [1, 2, 3]
rows = [1, 2, 5]
cells_per_thread = [1]
block = ["32x8x1", "32x16x1"]
march = [32, 43]
prefetch = [1, 2]
pending = ["registers", "shared"]
beyond = [0, 1]
chunks = ["even", "falling"]

[faces]
representation = ["moments"]
halo = ["faces"]
storage = ["fp32"]
layout = ["tiled-cells"]
layout_tile = ["8x8x8", "32x8x4"]
block = ["8x8x8", "16x8x8"]
min_blocks = [2, 3, 4]
fetch = ["registers", "shared"]

[steps]
representation = ["populations"]
scheme = ["push"]
storage = ["fp32"]
layout = ["rows"]
pack = [1, 2]
steps = [2, 3]
rows = [1, 2]
block = ["32x8x1", "32x16x1"]
march = [64]
prefetch = [0, 1, 3]
pending = ["registers", "shared"]

[resident]
launch = ["resident"]
representation = ["populations", "moments"]
layout = ["rows", "soa"]
block = ["32x4x1", "32x8x1"]
march = [2, 4]
held = [0, 1, 2]
meeting = ["all", "neighbours"]
min_blocks = [0, 2]

[both-steps]
representation = ["populations", "moments"]
scheme = ["pull", "push"]
steps = [1, 2]
layout = ["rows"]
block = ["32x8x1"]
march = [16, 32]
prefetch = [0, 1]

[rows]
scheme = ["pull", "aa"]
storage = ["fp32"]
layout = ["soa"]
padding = [0, 1040]
wrap = ["ghost"]
threads = ["all"]
vector_bits = [256, 512]
loop = ["z", "zy"]
row_offset = [1, 16]
row_padding = [0, 15]
streaming_stores = [0, 1]
reads = ["once", "ahead", "lean"]
prefetch_propagated = [0, 64]
prefetch_local = [0, 64]

[wavefront]
scheme = ["aa", "esoteric-pull"]
storage = ["fp32"]
layout = ["soa"]
padding = [0, 1040]
stride = [0, 18876096]
wrap = ["ghost"]
threads = ["all"]
vector_bits = [256]
loop = ["tile"]
tile_y = [8, 16]
tile_z = [1]
steps = [1, 2, 8]
reads = ["once", "ahead"]
far_ends = ["between"]
prefetch_rows = [0, 1]
row_offset = [16]
row_padding = [15]

[moments-wavefront]
representation = ["moments"]
storage = ["fp32"]
layout = ["soa", "rows"]
padding = [0, 1040]
threads = ["all"]
vector_bits = [256, 512]
loop = ["tile"]
tile_x = [256]
tile_y = [8, 16]
tile_z = [16]
steps = [1, 2]
prefetch_rows = [0, 1]
streaming_stores = [0, 1]
row_offset = [16]
"""
"""Spaces as studies of version 0.1 wrote them."""
SPACES: dict[str, tuple[str, str, int, tuple[str, ...]]] = {
    "porous-cuda": ("porous", "cuda", 1092, ("direct", "sparse")),
    "porous-cpu": ("porous", "cpu", 752, ("direct", "sparse")),
    "populations": ("box", "cuda", 180, ("direct",)),
    "columns": ("box", "cuda", 160, ("direct", "column")),
    "moments": ("box", "cuda", 1680, ("temporal-blocking",)),
    "faces": ("box", "cuda", 16, ("face-exchange",)),
    "steps": ("box", "cuda", 96, ("temporal-blocking",)),
    "resident": ("small", "cuda", 112, ("persistent",)),
    "both-steps": ("box", "cuda", 20, ("column", "temporal-blocking")),
    "rows": ("box", "cpu", 544, ("direct",)),
    "wavefront": ("box", "cpu", 120, ("direct", "wavefront")),
    "moments-wavefront": ("box", "cpu", 44, ("moments-wavefront",)),
}
"""Of each: case, backend, how many legal configurations it had there, and the families that they are of."""


@pytest.mark.parametrize("name", SPACES)
def test_a_space_is_split_by_family_and_keeps_its_configurations(name: str) -> None:
    case, backend, legal, families = SPACES[name]
    table = {knob: tuple(values) for knob, values in tomllib.loads(TABLES)[name].items()}
    assert is_legacy_table(table, backend)
    tables = migrated_tables(table, backend)
    assert tuple(one["family"] for one in tables) == tuple((family,) for family in families)
    assert not any(is_legacy_table(one, backend) for one in tables)
    space = legal_set(CASES[case], backend, tables, DEVICE)
    assert sum(not legal_since(config) for config in space.configs) == legal
    assert sum(space.sizes) == len(space.configs), "no configuration is in two of the spaces"


def legal_since(config: KernelConfig) -> bool:
    """Non-temporal stores were refused but for pull without lists."""
    streams = getattr(config, "streaming_stores", 0) and config.family in ("direct", "sparse")
    return bool(streams) and (config.family, config.scheme) != ("direct", "pull")


def test_knobs_of_today_are_refused_in_a_space_of_version_0_1() -> None:
    table = {"representation": ("moments",), "layout": ("rows",), "chunk_planes": (64,)}
    assert is_legacy_table(table, "cuda")
    with pytest.raises(InputError, match=r"^chunk_planes is a knob of today, .* without a family \(use family=NAME\)"):
        migrated_tables(table, "cuda")


def test_a_space_of_today_is_left_alone() -> None:
    for table in ({"scheme": ("aa",), "block": ("256x1x1",)}, {"family": ("column",), "z_cells": (4,)}):
        assert not is_legacy_table(table, "cuda")
    assert not is_legacy_table({"scheme": ("aa",), "parallel_loop": ("z",)}, "cpu")


# studies


OLD: Flat = {**DEFAULTS["cuda"], "backend": "cuda", "march": 4, "prefetch": 2, "scheme": "aa"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study as schema 3 wrote it: a table without families, and trials with the knobs of version 0.1."""
    axes: Mapping[str, Mapping[str, tuple[Scalar, ...]]] = {"cuda": {"scheme": ("aa", "pull"), "march": (1, 4)}}
    spec = replace(HEADER_RECORD.spec, axes=axes)
    write_header(tmp_path, replace(HEADER_RECORD, spec=spec, schema=FAMILIES_SINCE - 1))
    append_trial(tmp_path, replace(TRIAL, key="0123456789ab", config=OLD))
    return tmp_path


def test_a_study_of_an_earlier_schema_is_read_as_one_of_today(folder: Path) -> None:
    assert json.loads((folder / HEADER).read_text())["schema"] == FAMILIES_SINCE - 1
    study = read_study(folder)
    assert study.header.schema > FAMILIES_SINCE
    assert study.header.spec.axes == {
        "cuda": (
            {"family": ("direct",), "scheme": ("aa", "pull")},
            {"family": ("column",), "scheme": ("aa", "pull"), "z_cells": (4,)},
        )
    }
    (trial,) = study.trials
    config = from_flat({"backend": "cuda", "family": "column", "z_cells": 4, "prefetch_cells": 2, "scheme": "aa"})
    assert trial.config == config.flat()
    assert trial.key == config.key
    assert replace(trial, config=TRIAL.config, key=TRIAL.key) == TRIAL, "nothing else changes"


def test_a_study_that_was_read_and_written_is_one_of_today(folder: Path, tmp_path: Path) -> None:
    study = read_study(folder)
    again = tmp_path / "again"
    write_header(again, study.header)
    append_trial(again, study.trials[0])
    assert read_study(again) == study
    assert "march" not in (again / TRIALS).read_text()


def test_terms_of_early_records_have_the_names_of_today() -> None:
    study = read_study(RECORDED / "nvidia-h200" / "d3q19-small-96")
    names = {term.name for trial in study.ranked if trial.prediction for term in trial.prediction.terms}
    assert GRID_SYNC in names
    assert names <= MEANINGS.keys()
    assert set(FORMER.values()) <= MEANINGS.keys()
    assert not FORMER.keys() & MEANINGS.keys()
