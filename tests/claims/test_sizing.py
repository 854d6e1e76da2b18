"""Domains of experiments on main memory, and threads that share a domain."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.api.machines.devices import limits_of
from lbmtune.catalogue.config import CpuConfig, cpu
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, porous
from lbmtune.claims.figures import figures
from lbmtune.claims.plan import Here, Plan, plans
from lbmtune.claims.sizing import beyond_cache, domain_texts
from lbmtune.cli.verbs.reproduce import show
from lbmtune.codegen.render import render
from lbmtune.errors import NothingValidError
from lbmtune.files.claimsfile import load_documents, parse_document
from lbmtune.model.machine.toml import read_machine
from lbmtune.records.claims import Claims, ClaimsHeader, Document, Group, MainMemory
from lbmtune.records.idle_threads import idle_threads
from lbmtune.records.remarks import TIMES_CACHE
from lbmtune.report.claims import claims_page
from scripts.check_recorded import stale_claims
from scripts.paths import RECORDED
from scripts.recorded.rejudge import host_of, rejudged
from tests.support.refusals import refused
from tests.support.studies.fake_study import LIMITS, environment

MIB = 1 << 20
MANY = Here(
    backend="cpu",
    limits=replace(LIMITS, cores=64, memory_bytes=1 << 40),
    physical_cores=32,
    budget_bytes=1 << 30,
    last_cache_bytes=300 * MIB,
    memory_bytes=128 << 30,
)
TEXT = """
name = "made-up"
title = "Made up"
source = "nobody"

[series.box]
title = "box"
case = { flow = "box", lattice = "d3q19", collision = "bgk", relaxation_rate = 1.6 }
cpu = ["96x96x96"]
main_memory = { at_most = "256x256x256", printed = "128^3" }

[variants.fast]
title = "one lattice"
series = "box"
cpu = "scheme=aa,storage=fp64"

[variants.slow]
title = "two lattices"
series = "box"
cpu = "scheme=pull,storage=fp64"

[claims.faster]
sentence = "One lattice is faster."
of = "fast"
over = "slow"
at_least = 1.0
"""


def document(text: str = TEXT) -> Document:
    return parse_document(text, "made-up.toml")


def plan_on(here: Here, text: str = TEXT) -> Plan:
    (found,) = plans(document(text), here)
    return found


def smallest(plan: Plan) -> int:
    return min(footprint_bytes(plan.case, entry.config) for entry in plan.runnable if entry.config)


def test_the_domain_grows_until_the_smallest_kernel_takes_four_caches() -> None:
    found = plan_on(MANY)
    assert found.case.domain == (224, 224, 224)
    assert smallest(found) >= TIMES_CACHE * MANY.last_cache_bytes
    one_smaller = replace(found, case=replace(found.case, domain=(192, 192, 192)))
    assert smallest(one_smaller) < TIMES_CACHE * MANY.last_cache_bytes


def test_a_small_cache_leaves_the_domain_of_the_file() -> None:
    for cache_bytes in (32 * MIB, 0):
        assert plan_on(replace(MANY, last_cache_bytes=cache_bytes)).case.domain == (96, 96, 96)


def test_the_domain_ends_at_the_largest_that_is_measured() -> None:
    assert plan_on(replace(MANY, last_cache_bytes=1 << 40)).case.domain == (256, 256, 256)


def test_the_domain_ends_at_the_last_that_memory_holds() -> None:
    """Two lattices of 128^3 take 0.7 GiB, of 160^3 1.3 GiB."""
    assert plan_on(replace(MANY, memory_bytes=4 << 30)).case.domain == (128, 128, 128)


def test_edges_grow_in_proportion_and_in_whole_vectors() -> None:
    plane = box("d2q9", "bgk", (2048, 1024, 1))
    grown = beyond_cache(plane, MainMemory((8192, 4096, 1), ""), lambda on: [on.sites * 72], 300 * MIB, 1 << 40)
    nx, ny, nz = grown.domain
    assert (nx, nz) == (2 * ny, 1)
    assert ny % 32 == 0
    oblong = beyond_cache(
        box("d3q19", "bgk", (64, 128, 100)), MainMemory((512,) * 3, ""), lambda on: [on.sites * 4], 50 * MIB, 1 << 40
    )
    assert [n % 32 for n in oblong.domain] == [0, 0, 0]


def test_a_gpu_keeps_its_domains() -> None:
    both = TEXT.replace("cpu =", 'cuda = ["64x64x64"]\ncpu =', 1)
    assert plan_on(replace(MANY, backend="cuda"), both).case.domain == (64, 64, 64)


@pytest.mark.parametrize(
    ("wrong", "right", "complaint"),
    [
        ('"64x64x64"', '"256x256x256"', "at_most: 64x64x64 is smaller than 96x96x96, from which the domain grows"),
        ('"wide"', '"256x256x256"', "series.box.main_memory.at_most: domain 'wide' is not"),
        ('["96x96x96", "128x128x128"]', '["96x96x96"]', "main_memory: 2 domains of processors; give one"),
        ("upto", "at_most", "series.box.main_memory.upto: unknown key; choose one of at_most, printed"),
        ("{ }", '{ at_most = "256x256x256", printed = "128^3" }', "series.box.main_memory.at_most: is missing"),
    ],
)
def test_errors_of_the_table_name_line_and_key(wrong: str, right: str, complaint: str) -> None:
    assert complaint in refused(document, TEXT, right, wrong)


def measured_on(here: Here, text: str = TEXT) -> Claims:
    """Claims whose groups have footprints and no speeds."""
    one = document(text)
    plan = plan_on(here, text)
    rows = tuple(replace(plan.row(entry), reason="it was not timed") for entry in plan.entries)
    header = ClaimsHeader(
        backend="cpu",
        environment=environment("cpu"),
        copy_bytes_per_s=1e11,
        budget_bytes=1 << 30,
        documents=(one.name,),
        date="2000-01-01T00:00:00+00:00",
        version="0",
        last_cache_bytes=here.last_cache_bytes,
    )
    group = Group(document=one.name, series="box", case=plan.case, rows=rows)
    return Claims(header=header, documents=(one,), groups=(group,))


def test_the_page_tells_what_is_printed_what_was_measured_and_why() -> None:
    def told(here: Here) -> str:
        claims = measured_on(here)
        (text,) = domain_texts(claims, claims.documents[0])
        return text

    assert told(MANY).startswith("box: 224x224x224 (printed: 128^3); the smallest kernel takes 1.7")
    assert told(MANY).endswith("GiB, 5.84 last-level caches of 300 MiB.")
    assert told(replace(MANY, last_cache_bytes=1 << 40)).endswith(
        " of 4 that are asked for: a larger one takes too much time."
    )
    assert told(replace(MANY, memory_bytes=4 << 30)).endswith(
        " of 4 that are asked for: a larger one does not fit in memory."
    )
    claims = measured_on(replace(MANY, last_cache_bytes=0))
    assert list(domain_texts(claims, claims.documents[0])) == [], "nothing follows from an unknown cache"


def test_the_page_and_the_command_show_the_domains(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    claims = measured_on(MANY)
    (text,) = domain_texts(claims, claims.documents[0])
    page = claims_page(claims)
    assert f"<li>{text}</li>" in page
    assert "last-level cache" in page
    assert 'class="domains"' not in claims_page(measured_on(replace(MANY, last_cache_bytes=0)))
    with pytest.raises(NothingValidError):
        show(claims, tmp_path, as_json=False)
    assert "box: 224x224x224 (printed: 128^3)" in capsys.readouterr().out


def test_a_record_on_another_domain_than_the_cache_asks_for_is_stale() -> None:
    claims = measured_on(MANY)
    (group,) = claims.groups
    shipped = {one.name: one for one in claims.documents}

    def lacking(recorded: Claims) -> list[str]:
        return [line for line in stale_claims(recorded, shipped) if "not in the record" in line]

    here = replace(claims.header, environment=replace(claims.header.environment, cores=64, memory_bytes=128 << 30))
    recorded = replace(claims, header=here)
    assert lacking(recorded) == []
    smaller = replace(group, case=replace(group.case, domain=(96, 96, 96)))
    found = lacking(replace(recorded, groups=(smaller,)))
    assert found[0] == "made-up.fast (box, 224x224x224): this is not in the record"
    (kept,) = rejudged(recorded, host_of(recorded)).groups
    assert kept.case == group.case
    assert rejudged(replace(recorded, groups=(smaller,)), host_of(recorded)).groups == ()


def test_experiments_of_a_gpu_are_larger_than_its_cache() -> None:
    """All but those that are small on purpose: of Oliveira those in caches, of Robertsen those of few sites."""
    machine = read_machine(RECORDED / "nvidia-h100" / "machine.toml")
    l2_bytes = machine.caches_bytes["L2"]
    here = Here(backend="cuda", limits=limits_of(machine), physical_cores=1, budget_bytes=1 << 30)
    of = [plan for one in load_documents(()) for plan in plans(one, here)]
    last = {(plan.document, plan.series.name): plan for plan in of}
    held = {series for (_, series), plan in last.items() if smallest(plan) < 2 * l2_bytes}
    assert held == {"small", "cached", "box-64", "box-32", "sandstone-128", "sandstone-64"}


# threads


def shared_by_text(case: Case, config: CpuConfig) -> int:
    """Return the iterations of the parallel loop of the first kernel, from its text."""
    text = render(case, config).source
    found = re.search(r"for \w+ in simd\.prange\((.*)\):", text)
    assert found
    nx, ny, nz = case.domain
    names = {"nx": nx, "ny": ny, "nz": nz, "sites": case.fluid_sites, "across": -(-ny // max(1, config.tile_y))}
    return int(eval(found[1], {}, names))


@pytest.mark.parametrize(
    "config",
    [
        cpu.Direct(threads=8),
        cpu.Direct(threads=8, parallel_loop="zy"),
        cpu.Direct(threads=8, parallel_loop="tile-8x4"),
        cpu.Direct(threads=8, parallel_loop="tile-5x3"),
        cpu.Sparse(threads=8),
    ],
    ids=lambda config: f"{config.family}-{config.loop}",
)
def test_what_threads_share_is_what_the_kernel_divides(config: CpuConfig) -> None:
    for domain in ((32, 24, 20), (16, 9, 5)):
        case = (
            porous("d3q19", "bgk", domain, 1.2, "blocks:fraction=0.3")
            if config.family == "sparse"
            else box("d3q19", "bgk", domain)
        )
        assert config.shares(case) == shared_by_text(case, config)


def test_of_other_families_tiles_and_slabs_are_counted() -> None:
    case = box("d3q19", "bgk", (64, 64, 64))
    assert cpu.Direct(scheme="ghost-cell", parallel_loop="tile-8x4").shares(case) == 8 * 16
    assert cpu.Direct(scheme="swap-ordered").shares(case) == 64
    assert cpu.Direct(scheme="swap-ordered").shares(box("d2q9", "bgk", (64, 48, 1))) == 48
    wavefront = cpu.Wavefront(steps=4, threads=32)
    assert wavefront.busy_threads(case) == wavefront.shares(case) < 32
    assert cpu.MomentsWavefront(tile=(32, 16, 16)).shares(case) == 2 * 4


@pytest.mark.parametrize("cores", [2, 16, 64])
def test_shipped_claims_give_each_thread_work(cores: int) -> None:
    """The fastest of a plane on all cores beside one on a single core would be no claim of the document."""
    for cache_bytes in (32 * MIB, 300 * MIB):
        here = replace(MANY, limits=replace(MANY.limits, cores=cores), last_cache_bytes=cache_bytes)
        found = [
            f"{plan.document}.{entry.variant.name}@{plan.series.name}: {remark}"
            for one in load_documents(())
            for plan in plans(one, here)
            for entry in plan.runnable
            if entry.config and (remark := idle_threads(plan.case, entry.config))
        ]
        assert not [one for one in found if cores <= 16], found
        # 64 threads share the 46 tiles of LBM-Ghost, which are blocks of the scheme, and the 32 planes of a small box
        assert {one.split(":")[0] for one in found} <= {"valero2017.ghost@plane", "oliveira2019.resident@small"}


def test_the_table_of_a_document_tells_threads_without_work() -> None:
    flat = TEXT.replace("d3q19", "d2q9").replace("96x96x96", "64x64").replace("256x256x256", "64x64")
    claims = measured_on(MANY, flat.replace("scheme=aa", "scheme=aa,parallel_loop=zy"))
    remarks = {one.title: one.remark for one in figures(claims, claims.documents[0])}
    assert remarks["one lattice"] == ""
    assert remarks["two lattices"].startswith("1 of 64 threads has work")
