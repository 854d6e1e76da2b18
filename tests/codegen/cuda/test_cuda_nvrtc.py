"""The CUDA text compiled for real architectures, without a GPU."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lbmtune.backend.cuda import nvrtc
from lbmtune.backend.protocol import Binary, CompileError
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.cache_hints import L2_PREFETCHES, LOAD_HINTS, STORE_HINTS
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.codegen.skeleton import kernels_folder
from lbmtune.errors import DeviceUnavailableError
from lbmtune.records import Entry, Resources
from tests.support.kernels import compiled
from tests.support.kernels.compiled import ptx
from tests.support.kernels.cuda_samples import Sample, config, flows, legal, needs_nvrtc, one_of_each_kind, sampled
from tests.support.thinning import drawn, facts, pairs

FLOWS = {"sm_80": "box", "sm_90": "cavity"}
"""Architectures, and which flow is compiled for each: without walls and with them."""


pytestmark = needs_nvrtc

Job = tuple[Case, CudaConfig, str]
KEPT, FIGURES = "cuda_nvrtc.txt", ", ".join(compiled.Kept._fields)
KINDS = {architecture: tuple(one_of_each_kind(flow)) for architecture, flow in FLOWS.items()}


def _kind(sample: Sample) -> dict[str, object]:
    case, one = sample
    axes = (one.scheme, one.memory.name, case.lattice, one.storage, one.cells_per_thread)
    return dict(zip(("scheme", "layout", "lattice", "storage", "cells"), axes, strict=True))


def _numbers_of_every_day() -> dict[str, set[int]]:
    """Which kinds are compiled every day with walls, all pairs of values of all axes; the others are without them.

    What is dear to compile is not dearer without walls than it must be.
    """
    said = [facts(_kind(sample)) for sample in KINDS["sm_80"]]
    costs = [case.stencil.q * one.cells_per_thread for case, one in KINDS["sm_80"]]
    walled = drawn([pairs(one) for one in said], len(said), costs)
    plain = set(range(len(said))) - walled
    missing = frozenset().union(*said) - frozenset().union(*(said[n] for n in plain))
    return {"sm_80": plain | {min(n for n in walled if fact in said[n]) for fact in missing}, "sm_90": walled}


NUMBERS = _numbers_of_every_day()


def _jobs(every_day: bool) -> Iterator[Job]:
    for architecture, samples in KINDS.items():
        for number, (case, one) in enumerate(samples):
            if every_day == (number in NUMBERS[architecture]):
                yield case, one, architecture


Group = tuple[str, str, str, str]


def _grouped(every_day: bool) -> dict[Group, list[Job]]:
    """By architecture, scheme, layout and lattice. Jobs of a group need not follow each other."""
    groups: dict[Group, list[Job]] = {}
    for job in _jobs(every_day):
        case, one, architecture = job
        groups.setdefault((architecture, one.scheme, one.memory.name, case.lattice), []).append(job)
    return groups


EVERY_DAY, OTHERS = _grouped(True), _grouped(False)


def _resources(sample: Sample, architecture: str) -> Resources:
    return nvrtc.compile_cuda(render(*sample), architecture).resources


def test_every_kind_is_compiled_every_day_and_each_architecture_meets_all_values() -> None:
    assert [list(map(_kind, samples)) for samples in KINDS.values()] == [list(map(_kind, KINDS["sm_80"]))] * 2
    every, jobs = list(map(_kind, KINDS["sm_80"])), [job for group in EVERY_DAY.values() for job in group]
    assert {str(_kind((case, one))) for case, one, _ in jobs} == set(map(str, every))
    assert len(every) <= len(jobs) <= len(every) + 5
    for architecture in FLOWS:
        met = frozenset().union(*(facts(_kind((case, one))) for case, one, name in jobs if name == architecture))
        assert met == frozenset().union(*map(facts, every))
    walled = frozenset().union(*(pairs(facts(_kind((case, one)))) for case, one, name in jobs if name == "sm_90"))
    assert walled == frozenset().union(*(pairs(facts(kind)) for kind in every))


def test_no_kind_is_lost() -> None:
    """Every day or in make test-slow each is compiled for both architectures."""
    jobs = [job for groups in (EVERY_DAY, OTHERS) for group in groups.values() for job in group]
    assert len(jobs) == len(set(jobs)) == sum(map(len, KINDS.values()))


@pytest.mark.parametrize(("architecture", "scheme", "layout", "lattice"), EVERY_DAY)
def test_compiles_without_spilling(architecture: str, scheme: str, layout: str, lattice: str) -> None:
    for job in EVERY_DAY[architecture, scheme, layout, lattice]:
        _judge(job, compiled.resources(KEPT, render(*job[:2]), architecture, name=_named(job)))


def test_the_golden_file_is_of_these_texts() -> None:
    """Set LBMTUNE_REWRITE_GOLDEN=1 to have all of them compiled and written; before that, they are compiled here."""
    jobs = [job for group in EVERY_DAY.values() for job in group]
    present = {f"{job[2]} {_named(job)}": render(*job[:2]).digest for job in jobs}
    kept = {name: line.digest for name, line in compiled.kept(KEPT).items()}
    assert kept == {name: digest[: len(kept.get(name, ""))] for name, digest in present.items()}


@pytest.mark.parametrize(
    ("kept", "version", "is_compiled"),
    [
        ((41, 0, 0, 0, 9536), "NVRTC 13.5", False),
        ((41, 0, 0, 0, 9536), "NVRTC 13.4", True),
        (None, "NVRTC 13.5", True),
    ],
)
def test_what_is_kept_of_a_text_is_of_that_text_and_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: tuple[int, ...] | None, version: str, is_compiled: bool
) -> None:
    program = _with_digit("1")
    made = _compiler(monkeypatch, tmp_path)
    line = "" if kept is None else f"sm_90 one: {program.digest[:16]} {' '.join(map(str, kept))}\n"
    (tmp_path / KEPT).write_text(f"{version}: {FIGURES}\n{line}sm_90 two: 0 1 2 3 4 5\n")
    found = compiled.resources(KEPT, program, name="one")
    assert (found.registers, bool(made)) == ((77, True) if is_compiled else (41, False))
    assert compiled.resources(KEPT, program, name="two").registers == 77


def test_one_text_in_sixteen_has_to_come_out_as_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _compiler(monkeypatch, tmp_path)
    for last, right in (("0", True), ("0", False), ("1", False)):
        program, registers = _with_digit(last), 77 if right else 76
        line = f"sm_90 one: {program.digest[:16]} {registers} 0 0 0 9\n"
        (tmp_path / KEPT).write_text(f"NVRTC 13.5: {FIGURES}\n{line}")
        compiled.kept.cache_clear()
        if last == "0" and not right:
            with pytest.raises(AssertionError, match=r"registers=76.* and now .*registers=77"):
                compiled.resources(KEPT, program, name="one")
        else:
            assert compiled.resources(KEPT, program, name="one").registers == registers
    with pytest.raises(AssertionError, match=r"registers=76.* and now .*registers=77"):
        compiled.resources(KEPT, program, name="one", again=True)
    monkeypatch.setenv(compiled.REWRITE, "1")
    compiled.resources(KEPT, program, name="one")
    assert (tmp_path / KEPT).read_text().endswith(f"one: {program.digest[:16]} 77 0 0 0 9\n")


def _with_digit(last: str) -> Program:
    """A program whose digest has that digit where one is looked at."""
    texts = (render(BOX, config(block=(16 * (n + 1), 1, 1))) for n in range(64))
    return next(program for program in texts if program.digest[15] == last)


def _compiler(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """Stands for version 13.5, and notes for what architecture it compiled."""
    made = list[str]()

    def compile_cuda(_: Program, architecture: str) -> Binary:
        made.append(architecture)
        return Binary(b"123456789", "digest", Resources(registers=77, spill_bytes=0, code_bytes=9))

    monkeypatch.setattr(nvrtc, "compile_cuda", compile_cuda)
    monkeypatch.setattr(nvrtc, "version", lambda: (13, 5))
    monkeypatch.setattr(compiled, "FOLDER", folder)
    monkeypatch.delenv(compiled.REWRITE, raising=False)
    for name in ("kept", "version", "_version"):
        monkeypatch.setattr(compiled, name, cache(getattr(compiled, name).__wrapped__))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "scheme", "layout", "lattice"), EVERY_DAY)
def test_what_the_golden_file_holds_comes_out_again(architecture: str, scheme: str, layout: str, lattice: str) -> None:
    for job in EVERY_DAY[architecture, scheme, layout, lattice]:
        _judge(job, compiled.resources(KEPT, render(*job[:2]), architecture, name=_named(job), again=True))


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "scheme", "layout", "lattice"), OTHERS)
def test_compiles_without_spilling_for_the_other_architecture(
    architecture: str, scheme: str, layout: str, lattice: str
) -> None:
    for job in OTHERS[architecture, scheme, layout, lattice]:
        _judge(job, _resources(job[:2], architecture))


def _named(job: Job) -> str:
    return " ".join(map(str, _kind(job[:2]).values()))


def _judge(job: Job, found: Resources) -> None:
    assert 0 < found.registers <= 255
    assert found.code_bytes > 1000
    # the assembler may park a few values that are needed late, rather than lose a block per multiprocessor
    assert found.spill_bytes <= 64 or _too_large_for_registers(job), (job, found)


def _too_large_for_registers(job: Job) -> bool:
    """Whether the populations of a thread, and as many addresses and temporaries, exceed its 255 registers."""
    case, one, _ = job
    return case.stencil.q * one.cells_per_thread * one.computed.bytes >= 4 * 100


BOX = box("d3q19", "bgk", (256, 256, 256))


def _pull(**axes: object) -> Resources:
    one = config(**{"block": (64, 2, 1), "cells_per_thread": 4, **axes})
    assert legal(BOX, one)
    return _resources((BOX, one), "sm_90")


def test_a_register_cap_acts() -> None:
    free, capped = _pull(), _pull(register_limit="64-registers")
    assert free.registers > 64
    assert free.spill_bytes == 0
    assert capped.registers <= 64
    assert capped.spill_bytes > 0
    assert capped.local_bytes > 0


@pytest.mark.parametrize(
    ("axes", "fewer"),
    [({}, 12), ({"scheme": "esoteric-twist"}, 24), ({"scheme": "aa", "storage": "fp64"}, 32), ({"z_cells": 8}, 8)],
    ids=lambda value: ",".join(map(str, value.values())) if isinstance(value, dict) else str(value),
)
def test_addresses_in_shared_memory_take_no_registers(axes: dict[str, object], fewer: int) -> None:
    """As the base addresses of Tran, Lee and Hong (2017), whose changes of the source take 70 registers to 40."""
    plain, shared = (_pull(cells_per_thread=1, **axes, addresses=where) for where in ("computed", "shared"))
    assert plain.spill_bytes == shared.spill_bytes == 0
    assert shared.registers <= plain.registers - fewer


@pytest.mark.parametrize("scheme", ["pull", "aa"])
def test_reading_ahead_takes_a_second_set_of_registers(scheme: str) -> None:
    in_turn, ahead = (
        _pull(scheme=scheme, cells_per_thread=1, block=(64, 1, 1), z_cells=4, prefetch_cells=n) for n in (0, 1)
    )
    assert in_turn.spill_bytes == ahead.spill_bytes == 0
    assert ahead.registers >= in_turn.registers + BOX.stencil.q // 2


@pytest.mark.parametrize("scheme", ["pull", "esoteric-twist"])
def test_reading_further_ahead_takes_a_set_of_registers_for_each_cell(scheme: str) -> None:
    axes: dict[str, object] = {"scheme": scheme, "cells_per_thread": 1, "block": (64, 1, 1), "z_cells": 8}
    found = [_pull(**axes, prefetch_cells=n) for n in (1, 2, 3)]
    assert all(one.spill_bytes == one.local_bytes == 0 for one in found), "sets take turns without an index in memory"
    one, two, three = (resources.registers for resources in found)
    assert two >= one + BOX.stencil.q // 2
    assert three >= two + BOX.stencil.q // 2


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_every_cache_hint_makes_other_code(architecture: str) -> None:
    """In place; past coherence, an architecture may make the same code of two of them."""
    hints: list[dict[str, object]] = [{}]
    hints += [{"load_hint": name} for name in LOAD_HINTS if name != "default"]
    hints += [{"store_hint": name} for name in STORE_HINTS if name != "default"]
    hints += [{"l2_prefetch": size} for size in L2_PREFETCHES if size]
    configs = [config(scheme="aa", block=(64, 1, 1), **axes) for axes in hints]
    assert all(legal(BOX, one) for one in configs)
    assert len({nvrtc.compile_cuda(render(BOX, one), architecture).digest for one in configs}) == len(hints)


@pytest.mark.parametrize(
    ("scheme", "hint", "load", "store"),
    [
        ("pull", "streaming", "ld.global.cs.nc.L2::128B.v4.u32", "st.global.cs.v4.u32"),
        ("pull", "no-allocate", "ld.global.nc.L1::no_allocate.L2::128B.v4.u32", "st.global.L1::no_allocate.v4.u32"),
        ("aa", "no-allocate", "ld.global.L1::no_allocate.L2::128B.v4.u32", "st.global.L1::no_allocate.v4.u32"),
        ("aa", "l2-only", "ld.global.cg.L2::128B.v4.u32", "st.global.cg.v4.u32"),
    ],
)
def test_each_population_is_loaded_and_stored_with_the_hints(scheme: str, hint: str, load: str, store: str) -> None:
    one = config(scheme=scheme, block=(32, 2, 1), cells_per_thread=4, load_hint=hint, store_hint=hint, l2_prefetch=128)
    text = ptx(render(BOX, one), "compute_90")
    assert text.count(load) == BOX.stencil.q * one.propagation.period
    assert text.count(store) >= BOX.stencil.q
    assert not re.findall(r"(ld\.global(\.nc)?\.|st\.global(\.wb)?\.)(v4\.)?f32", text)


def test_blocks_per_multiprocessor_act() -> None:
    assert _pull(register_limit="8-blocks").registers <= 65536 // (8 * 128) < _pull().registers


@pytest.mark.parametrize(
    ("storage", "cells", "load", "store"),
    [
        ("fp64", 2, "ld.global.nc.v2.f64", "st.global.wb.v2.f64"),
        ("fp32", 2, "ld.global.nc.v2.f32", "st.global.wb.v2.f32"),
        ("fp32", 4, "ld.global.nc.v4.f32", "st.global.wb.v4.f32"),
        ("fp16s", 2, "ld.global.nc.u32", "st.global.wb.u32"),
        ("fp16s", 4, "ld.global.nc.v2.u32", "st.global.wb.v2.u32"),
        ("fp16s", 8, "ld.global.nc.v4.u32", "st.global.wb.v4.u32"),
        ("fp16c", 8, "ld.global.nc.v4.u32", "st.global.wb.v4.u32"),
        ("bf16", 8, "ld.global.nc.v4.u32", "st.global.wb.v4.u32"),
    ],
)
def test_each_population_is_one_vector_load_and_store(storage: str, cells: int, load: str, store: str) -> None:
    text = ptx(render(BOX, config(block=(32, 2, 1), storage=storage, cells_per_thread=cells)), "compute_90")
    assert text.count(load) == BOX.stencil.q
    assert text.count(store) == BOX.stencil.q
    shuffled = sum(1 for c in BOX.stencil.velocities if c[0])
    assert len(re.findall(r"shfl\.sync", text)) == shuffled * (2 if storage == "fp64" else 1)


def test_bf16_is_converted_in_pairs_by_the_hardware_that_can() -> None:
    program = render(BOX, config(block=(32, 2, 1), storage="bf16", cells_per_thread=8))
    pairs = BOX.stencil.q * 4
    assert ptx(program, "compute_80").count("cvt.rn.bf16x2.f32") == pairs
    assert "cvt.rn.bf16" not in ptx(program, "compute_75")


def test_stores_without_vectors_are_ordinary() -> None:
    text = ptx(render(BOX, config(block=(64, 1, 1))), "compute_90")
    assert text.count("ld.global.nc.f32") == text.count("st.global.f32") == BOX.stencil.q
    assert "shfl" not in text


def test_the_skeleton_compiles_as_it_stands() -> None:
    folder = kernels_folder() / "cuda" / "shared"
    text = (folder / "box.cu").read_text() + "constexpr bool GHOST_Z = true;\n" + (folder / "ghost.cu").read_text()
    options = ("--std=c++17", "--device-as-default-execution-space", f"--include-path={folder}")
    binary = nvrtc.compile_text(text, (*options, "--gpu-architecture=sm_80"))
    assert binary.resources.registers > 0


def test_the_same_text_is_assembled_with_fewer_optimisations() -> None:
    """Each way is another binary; without any the code is the longest."""
    program = render(BOX, config(scheme="aa"))
    found = [("", nvrtc.compile_cuda(program, "sm_90")), *nvrtc.reassembled(program, "sm_90")]
    assert [level for level, _ in found] == ["", "-O1", "-O0"]
    assert len({binary.digest for _, binary in found}) == 3
    plain, _, least = (binary.resources.code_bytes for _, binary in found)
    assert least > plain


def test_a_compile_error_points_into_the_skeleton() -> None:
    program = render(BOX, cuda.Direct())
    broken = replace(program, source=program.source.replace("if (!inside) return;", "if (!inside) return oops;"))
    line = 1 + (kernels_folder() / "cuda/direct/one_step.cu").read_text().splitlines().index("    if (!inside) return;")
    with pytest.raises(CompileError, match=rf"kernels/cuda/direct/one_step.cu\({line}\): error.*oops"):
        nvrtc.compile_cuda(broken)


def test_binaries_are_reproducible_and_travel() -> None:
    program = render(*next(one_of_each_kind("cavity")))
    first, second = nvrtc.compile_cuda(program), nvrtc.compile_cuda(program)
    assert first.digest == second.digest
    copy = pickle.loads(pickle.dumps(first))
    assert isinstance(copy, Binary)
    assert copy == first
    assert first.image.startswith(b"\x7fELF")


def test_an_unknown_architecture_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="gpu-architecture"):
        nvrtc.compile_cuda(render(BOX, cuda.Direct()), "sm_12345")


def test_without_nvrtc_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_NAMES", ())
    nvrtc.nvrtc.cache_clear()
    with pytest.raises(DeviceUnavailableError, match="pip install nvidia-cuda-nvrtc"):
        nvrtc.nvrtc()


def test_a_result_from_the_drivers_cache_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log says nothing about registers."""
    honest, seen = nvrtc.product_of, []

    def caching(source: str, options: tuple[str, ...], *others: Any) -> tuple[str, bytes]:
        seen.append(options)
        log, image = honest(source, options, *others)
        return (log if "--no-cache" in options else ""), image

    monkeypatch.setattr(nvrtc, "product_of", caching)
    assert nvrtc.compile_cuda(render(BOX, cuda.Direct())).resources.registers > 0
    assert len(seen) == 2


def test_a_log_with_spills_is_read() -> None:
    """Of each entry, functions that it calls included."""
    log = (
        "ptxas info    : 37 bytes gmem\n"
        "ptxas info    : Compiling entry function 'step_1' for 'sm_90'\n"
        "ptxas info    : Function properties for step_1\n"
        "    8 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
        "ptxas info    : Function properties for called\n"
        "    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem, 400 bytes cmem[0]\n"
        "ptxas info    : Compiling entry function 'step_0' for 'sm_90'\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 48 registers\n"
    )
    found = nvrtc.resources(log, b"abc")
    assert found.entries == {
        "step_1": Entry(registers=40, spill_bytes=32, local_bytes=16, shared_bytes=256),
        "step_0": Entry(registers=48),
    }
    assert replace(found, entries={}) == Resources(
        registers=48, spill_bytes=32, local_bytes=16, shared_bytes=256, code_bytes=3
    )


def test_each_entry_has_what_its_own_launches_ask_for() -> None:
    program = render(BOX, cuda.Direct(scheme="swap"))
    (first, *others), *_ = program.period
    found = nvrtc.compile_cuda(replace(program, period=((replace(first, shared_bytes=512), *others),))).resources
    assert {name: entry.shared_bytes for name, entry in found.entries.items()} == {"step_0": 512, "move_0": 0}
    assert found.shared_bytes == 512
    assert found.registers == max(entry.registers for entry in found.entries.values()) > 0


def test_flows_of_all_kinds_are_compiled_somewhere() -> None:
    assert set(flows("d3q19", "bgk")) == {case.flow for case, _ in sampled(60, seed=9)}


@pytest.mark.parametrize(("version", "times"), [((13, 0), 2), ((12, 9), 2), ((12, 8), 1)])
def test_only_a_version_that_caches_is_asked_not_to(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int], times: int
) -> None:
    """What comes out of the cache has no log; older versions refuse the option."""
    asked: list[tuple[str, ...]] = []

    def compiled(_: str, options: tuple[str, ...], *others: str) -> tuple[str, bytes]:
        asked.append(options)
        log = "Compiling entry function 'step_0' for 'sm_90'\nptxas info: Used 40 registers"
        return log if "--no-cache" in options else "", b"image"

    monkeypatch.setattr(nvrtc, "product_of", compiled)
    monkeypatch.setattr(nvrtc, "version", lambda: version)
    found = nvrtc.compile_text("", ("--gpu-architecture=sm_90",))
    assert len(asked) == times
    assert found.resources.registers == (40 if times == 2 else 0)
    assert "--no-cache" not in asked[0]
