"""Numbers that the time of a kernel follows from, and chunks of planes that follow from the domain."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from heapq import heapreplace
from itertools import combinations
from math import inf
from pathlib import Path

import pytest

from lbmtune.api.portfolios.contenders import even_chunks
from lbmtune.api.portfolios.numbers import chunks_of, follows, numbers_of
from lbmtune.catalogue.families.cuda.chunks import end
from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.describe import describe_kernel
from lbmtune.codegen.render import render, render_single
from lbmtune.export.header_launches import chunks_text
from lbmtune.model.gpu.temporal_blocking.inputs import passed_planes
from lbmtune.model.machine.toml import read_machine
from lbmtune.records.best_json.domain import evaluated
from lbmtune.records.best_json.law import CHUNKS, LIKELY, extents_of
from tests.shim.device import COMPILER
from tests.support.paths import RECORDED

H200 = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
DOMAINS = (64, 64, 64), (101, 97, 333), (512, 70, 130)
TILES = TemporalBlocking(
    representation="moments", block=(32, 12, 1), rows=2, steps=3, pack=4, chunk_planes=6, z_buffer="shared"
)
TAPERED = {"chunk_schedule": "tapered"}


CAVITY = cavity("d3q19", "regularised", (64, 64, 64), 1.6)


@pytest.mark.parametrize("case", [box("d3q19", "regularised", (64, 64, 64)), CAVITY])
def test_chunks_are_a_matter_of_the_launch_alone(case) -> None:
    for change in ({}, {"plane_fetch": "cp_async", "overread": 1, "warp_sync": "neighbours"}, TAPERED):
        config = replace(TILES, **change)
        several = [render(case, replace(config, chunk_planes=planes)) for planes in (6, 17, 64)]
        assert follows(case, config)
        assert len({one.digest for one in several}) == 1
        assert len({render_single(one).digest for one in several}) == 1
        geometry = [[replace(launch, covers=()) for launch in one.period[0]] for one in several]
        assert geometry[0] == geometry[1] == geometry[2]
    assert not follows(case, Direct())


def test_as_many_chunks_as_end_first() -> None:
    case = box("d3q19", "regularised", (64, 64, 64))
    chunks = chunks_of(case, TILES, H200, None)
    for domain in DOMAINS:
        nz = domain[2]
        planes = -(-nz // chunks.count(domain))
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


def test_a_tapered_kernel_has_one_with_even_chunks_beside_it() -> None:
    assert even_chunks(replace(TILES, **TAPERED)) == TILES
    assert even_chunks(TILES) is TILES
    assert even_chunks(Direct()) == Direct()


def simulated_end(lengths: Sequence[int], columns: int, places: int) -> int:
    """Return when the last block ends, in planes, if each takes the place that is free first."""
    free = [0] * places
    for planes in lengths:
        for _ in range(columns):
            heapreplace(free, free[0] + planes)
    return max(free)


def test_tapered_chunks_end_nearly_first_and_none_is_empty() -> None:
    config = replace(TILES, **TAPERED)
    chunks = chunks_of(CAVITY, config, H200, None)
    for domain in (*DOMAINS, (79, 81, 73), (80, 167, 270), (512, 512, 512)):
        x, y, _ = config.blocks(replace(CAVITY, domain=domain))
        there = replace(CAVITY, domain=domain)

        def ends(planes: int, there: Case = there, columns: int = x * y) -> float:
            lengths = passed_planes(there, replace(config, chunk_planes=planes))
            return simulated_end(lengths, columns, H200.multiprocessors) if min(lengths) > 6 else inf

        count = chunks.count(domain)
        planes = -(-domain[2] // count)
        chosen = replace(config, chunk_planes=planes)
        assert chosen.blocks(there)[2] == count
        assert ends(planes) <= 1.1 * min(map(ends, range(6, domain[2] + 1)))


@pytest.mark.parametrize("change", [{}, TAPERED])
def test_likely_chunks_end_nearly_first_are_apart_and_stand_for_whole_planes(change) -> None:
    config = replace(TILES, **change)
    chunks = chunks_of(CAVITY, config, H200, None)
    several = 0
    for domain in (*DOMAINS, (79, 81, 73), (80, 167, 270), (512, 512, 512)):
        found = chunks.likely(domain)
        assert found[0] == chunks.count(domain)
        assert len(found) <= LIKELY
        ends = [evaluated(chunks.end, {**extents_of(domain), CHUNKS: n}) for n in found]
        assert max(ends) <= 1.125 * ends[0]
        assert all(8 * abs(n - m) >= min(n, m) for n, m in combinations(found, 2))
        for n in found:
            there = replace(CAVITY, domain=domain)
            assert replace(config, chunk_planes=-(-domain[2] // n)).blocks(there)[2] == n
        several += len(found) > 1
    assert several > 2


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("change", [{}, TAPERED])
def test_a_header_counts_chunks_as_the_file_does(change, tmp_path: Path) -> None:
    chunks = chunks_of(CAVITY, replace(TILES, **change), H200, None)
    source = tmp_path / "chunks.c"
    source.write_text(chunks_text(chunks, "lbm").replace("static inline ", ""))
    library = tmp_path / "chunks.so"
    compiler = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*compiler, source, "-o", library], check=True)
    counted = ctypes.CDLL(str(library)).lbm_chunks
    likely, numbers, several = ctypes.CDLL(str(library)).lbm_likely_chunks, (ctypes.c_longlong * LIKELY)(), 0
    counted.argtypes, counted.restype = [ctypes.c_longlong] * 3, ctypes.c_longlong
    for domain in (*DOMAINS, (24, 24, 5), (65, 400, 77), (79, 81, 73), (80, 167, 270), (512, 512, 512)):
        assert counted(*domain) == chunks.count(domain), domain
        count = likely(*map(ctypes.c_longlong, domain), numbers)
        assert tuple(numbers[:count]) == chunks.likely(domain), domain
        several += count > 1
    assert several > 2


@pytest.mark.parametrize("config", [Direct(block=(64, 2, 1), cells_per_thread=2), TILES, replace(TILES, **TAPERED)])
def test_numbers_are_those_of_the_launch(config) -> None:
    case = box("d3q19", "bgk" if config.family == "direct" else "regularised", (64, 64, 64))
    chunks = chunks_of(case, config, H200, None)
    formulas = numbers_of(case, config, H200, None, chunks)
    for domain in DOMAINS:
        count = chunks.count(domain) if chunks else 1
        there = replace(case, domain=domain)
        if chunks:
            config = replace(config, chunk_planes=-(-domain[2] // chunks.count(domain)))
        (x, y, z), (nx, ny, nz) = config.blocks(there), domain
        found = [evaluated(one, {**extents_of(domain), CHUNKS: count}) for one in formulas]
        full = (ny - (y - 1) * -(-ny // y) + 3) % 2 == 0
        assert found[:2] == [1, there.sites]
        if config.family == "temporal-blocking" and config.chunk_schedule == "tapered":
            first = passed_planes(there, config)[0]
            twice_end = max(2 * x * y * (nz + 6 * z) // H200.multiprocessors + -(-nz // z) // z + 6, 2 * first)
            missing, waves = max(H200.multiprocessors - x * y, 0), -(-x * y * z // H200.multiprocessors)
            assert found[2:6] == [twice_end, first, missing * first, waves]
            assert found[6:8] == [full * first, full * twice_end]
        elif chunks:
            waves, each = -(-x * y * z // H200.multiprocessors), config.chunk_planes + 6
            assert found[2:8] == [x * y * z * each, waves * each, each, waves, full * each, full * waves * each]
            apart = [(nx % 4 > 0) * there.sites, (nx % 8 > 0) * there.sites]
            assert found[8:] == [(nx % 8 > 0) * each, *apart, ny * nz]
        else:
            assert found[5:8] == [(nx % n > 0) * there.sites for n in (4, 8, 32)]
            assert found[8] == x * y * z * 256
            assert found[9] >= found[8]
