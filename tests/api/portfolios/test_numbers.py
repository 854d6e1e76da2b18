"""Numbers that the time of a kernel follows from, and chunks of planes that follow from the domain."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.api.portfolios.numbers import chunks_of, follows, numbers_of
from lbmtune.catalogue.families.cuda.chunks import end
from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.describe import describe_kernel
from lbmtune.codegen.render import render, render_single
from lbmtune.export.header_launches import chunks_text
from lbmtune.model.machine.toml import read_machine
from lbmtune.records.best_json.domain import evaluated
from lbmtune.records.best_json.law import CHUNKS, extents_of
from tests.shim.device import COMPILER
from tests.support.paths import RECORDED

H200 = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
DOMAINS = (64, 64, 64), (101, 97, 333), (512, 70, 130)
TILES = TemporalBlocking(
    representation="moments", block=(32, 12, 1), rows=2, steps=3, pack=4, chunk_planes=6, z_buffer="shared"
)


CAVITY = cavity("d3q19", "regularised", (64, 64, 64), 1.6)


@pytest.mark.parametrize("case", [box("d3q19", "regularised", (64, 64, 64)), CAVITY])
def test_chunks_are_a_matter_of_the_launch_alone(case) -> None:
    for change in ({}, {"plane_fetch": "cp_async", "overread": 1, "warp_sync": "neighbours"}):
        config = replace(TILES, **change)
        several = [render(case, replace(config, chunk_planes=planes)) for planes in (6, 17, 64)]
        assert follows(case, config)
        assert len({one.digest for one in several}) == 1
        assert len({render_single(one).digest for one in several}) == 1
        geometry = [[replace(launch, covers=()) for launch in one.period[0]] for one in several]
        assert geometry[0] == geometry[1] == geometry[2]
    assert not follows(case, replace(TILES, chunk_schedule="tapered"))
    assert not follows(case, Direct())


def test_as_many_chunks_as_end_first() -> None:
    case = box("d3q19", "regularised", (64, 64, 64))
    chunks = chunks_of(case, TILES, H200, None)
    for domain in DOMAINS:
        planes, nz = chunks.planes(domain), domain[2]
        x, y, _ = TILES.blocks(replace(case, domain=domain))

        def ends(count: int, nz: int = nz, columns: int = x * y) -> int:
            return -(-columns * count // H200.multiprocessors) * (-(-nz // count) + 6)

        best = min(map(ends, range(1, nz // 6 + 1)))
        assert ends(chunks.count(domain)) == best
        assert planes == -(-nz // chunks.count(domain))
        assert end(nz, planes, 6, x * y, H200.multiprocessors) <= best
    followed = describe_kernel(render(case, TILES)).following(chunks)
    assert followed.period[0][0].grid_formula[2] == CHUNKS
    assert not followed.domain.refusal({**extents_of((64, 64, 6)), "NX": 64, "NY": 64, "NZ": 6})


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_a_header_counts_chunks_as_the_file_does(tmp_path: Path) -> None:
    chunks = chunks_of(CAVITY, TILES, H200, None)
    source = tmp_path / "chunks.c"
    source.write_text(chunks_text(chunks, "lbm").replace("static inline ", ""))
    library = tmp_path / "chunks.so"
    compiler = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*compiler, source, "-o", library], check=True)
    counted = ctypes.CDLL(str(library)).lbm_chunks
    counted.argtypes, counted.restype = [ctypes.c_longlong] * 3, ctypes.c_longlong
    for domain in (*DOMAINS, (24, 24, 5), (65, 400, 77)):
        assert counted(*domain) == chunks.count(domain), domain


@pytest.mark.parametrize("config", [Direct(block=(64, 2, 1), cells_per_thread=2), TILES])
def test_numbers_are_those_of_the_launch(config) -> None:
    case = box("d3q19", "bgk" if config.family == "direct" else "regularised", (64, 64, 64))
    chunks = chunks_of(case, config, H200, None)
    formulas = numbers_of(case, config, H200, None, chunks)
    for domain in DOMAINS:
        count = chunks.count(domain) if chunks else 1
        there = replace(case, domain=domain)
        if chunks:
            config = replace(config, chunk_planes=chunks.planes(domain))
        (x, y, z), (nx, ny, nz) = config.blocks(there), domain
        found = [evaluated(one, {**extents_of(domain), CHUNKS: count}) for one in formulas]
        assert found[:2] == [1, there.sites]
        if chunks:
            waves, each = -(-x * y * z // H200.multiprocessors), config.chunk_planes + 6
            full = (ny - (y - 1) * -(-ny // y) + 3) % 2 == 0
            assert found[2:8] == [x * y * z * each, waves * each, each, waves, full * each, full * waves * each]
            assert found[8:] == [(nx % 8 > 0) * each, (nx % 8 > 0) * there.sites, ny * nz]
        else:
            assert found[6] == x * y * z * 256
            assert found[7] >= found[6]
