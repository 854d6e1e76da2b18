"""The exported CUDA header: a solver of each kind of kernel, run on the host shim beside the oracle."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbmtune.api import Study
from lbmtune.api.portfolios.numbers import chunks_of
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, pipe, porous
from lbmtune.catalogue.sparse.nodes import index_list
from lbmtune.catalogue.sparse.site_orders import ORDERS
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.export import best
from lbmtune.export.cuda_header import cuda_header
from lbmtune.export.solver_text import default_name
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import describe_failure
from lbmtune.model.machine.toml import read_machine
from lbmtune.runtime import Simulation
from lbmtune.runtime.solver import equilibrium
from scripts.random_domains import REFUSED, RIGHT, WRONG, chosen
from scripts.random_headers import exportable, outcomes
from tests.shim.device import COMPILER, RUNTIME, HostDevice, compile_on_host
from tests.support.kernels.headers import (
    BAD_ARGUMENT,
    BAD_DOMAIN,
    Exported,
    RefusedError,
    best_of,
    compared,
    compiled,
    pointer,
)
from tests.support.kernels.kernel_kinds import KINDS
from tests.support.paths import RECORDED as RECORDED_SETS
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
NVCC = shutil.which("nvcc")
H200 = RECORDED_SETS / "nvidia-h200" / "machine.toml"
RANDOM = 13
"""Kernels on four random domains each."""


def small(kind: str) -> Case:
    case, config = KINDS[kind]
    return replace(case, domain=config.awkward_domain(case))


@pytest.mark.parametrize("kind", KINDS)
def test_a_header_of_each_kind_agrees_with_the_oracle(kind: str) -> None:
    """After whole launches and left-over steps; populations, density and velocity."""
    found = best_of(*KINDS[kind])
    at_once = (1, found.kernel.steps, 2 * len(found.kernel.period) * found.kernel.steps + 1)
    result = compared(compiled(found), found, small(kind), at_once)
    assert result.passed, describe_failure(result)


@pytest.mark.parametrize(
    ("sample", "domain"),
    [
        (
            (
                replace(box("d3q19", "bgk", (64, 16, 12), 1.3), geometry="blocks:fraction=0.3"),
                cuda.Sparse(block=(8, 1, 1), boundary="implicit", scheme="esoteric-twist"),
            ),
            (4, 1, 64),
        ),
        ((cavity("d2q9", "bgk", (192, 64, 1), 1.3), cuda.Direct(block=(64, 1, 1), scheme="ghost-cell")), (192, 17, 1)),
    ],
    ids=["solid cells whose populations lie beside them", "ghost cells of blocks in two dimensions"],
)
def test_a_place_beside_a_cell_is_found(sample: tuple[Case, CudaConfig], domain: tuple[int, int, int]) -> None:
    found = best_of(*sample)
    result = compared(compiled(found), found, replace(sample[0], domain=domain), (1, 1, 2))
    assert result.passed, describe_failure(result)


def test_random_kernels_are_right_on_random_domains_or_refuse_them() -> None:
    samples = [one for one in chosen(("cuda",), 3) if exportable(one)][:RANDOM]
    found = [one for sample in samples for one in outcomes(sample, 3)]
    assert not [one for one in found if one.verdict == WRONG]
    assert {one.verdict for one in found} == {RIGHT, REFUSED}
    assert len(found) >= 50


def test_a_wrong_kernel_is_noticed(tmp_path: Path) -> None:
    """One whose relaxation is a little off."""
    found = best_of(*KINDS["one step"])
    text = found.kernel.source.replace("collide(f, v, omega)", "collide(f, v, omega * Real(1.001))")
    assert text != found.kernel.source
    wrong = replace(found, kernel=replace(found.kernel, source=text))
    result = compared(compiled(wrong, tmp_path), wrong, small("one step"), (1,))
    assert not result.passed


@pytest.mark.parametrize("kind", ["one step", "sites listed", "several steps of moments, which begin early"])
def test_it_starts_at_the_equilibrium_of_density_and_velocity(kind: str) -> None:
    found, case = best_of(*KINDS[kind]), small(kind)
    solver = Exported(compiled(found), found, case)
    draw = np.random.default_rng(1)
    density = 1 + 0.01 * draw.random(case.domain[::-1])
    velocity = 0.05 * draw.random((3, *case.domain[::-1]))
    solver.initialise(density, velocity)
    fluid = np.ones(density.shape, bool) if solver.solid is None else solver.solid == 0
    rho, u = solver.macroscopics()
    assert abs((rho - density)[fluid]).max() < 3e-7
    assert abs((u - velocity)[:, fluid]).max() < 3e-7
    half_force = np.reshape(case.force, (3, 1, 1, 1)) / 2
    expected = equilibrium(density, velocity - half_force / density, case.stencil, np)
    tolerance = 3e-7 if found.storage.moments else 1e-7
    assert abs(solver.populations() - expected)[:, fluid].max() < tolerance
    solver.initialise(None, None)
    rho, u = solver.macroscopics()
    assert abs(rho - 1).max() < 1e-7
    assert abs(u[:, fluid]).max() < 1e-7
    solver.close()


def test_rate_force_and_wall_velocity_change_between_steps() -> None:
    """As in a simulation whose case changes."""
    case = replace(cavity("d3q19", "trt", (33, 5, 4), 1.3), force=(1e-4, 0.0, -2e-4))
    program = render(case, cuda.Direct(block=(32, 1, 1)))
    found = best_of(case, program.config)  # type: ignore[arg-type]
    simulation = Simulation(program, compile_on_host(program), HostDevice())
    solver = Exported(compiled(found), found, case)
    simulation.initialise(oracle.random_state(case))
    solver.set_populations(oracle.random_state(case))
    before = solver.populations()
    for omega, force, velocity in ((1.3, case.force, case.wall_velocity), (0.9, (0.0, 3e-4, 0.0), (-0.02, 0.0, 0.03))):
        case = replace(case, relaxation_rate=omega, force=force, wall_velocity=velocity)
        simulation.change_case(case)
        solver("set_relaxation_rate", omega)
        solver("set_force", *force)
        solver("set_wall_velocity", *velocity)
        for steps in (0, 3):
            simulation.step(steps)
            solver("step", steps)
            assert abs(solver.populations() - simulation.populations()).max() < 1e-15
            assert abs(solver.macroscopics()[1] - simulation.macroscopic()[1]).max() < 1e-8
    assert abs(before - solver.populations()).max() > 1e-3
    assert solver.steps_done == 6
    solver.close()


def test_graphs_launch_what_single_launches_do() -> None:
    """Over many cycles of parity and buffers, from the middle of one, and again after a change of the rate."""
    case, found = box("d3q19", "bgk", (33, 5, 4), 1.3), []
    for launch in ("call", "graph"):
        config = cuda.Direct(block=(32, 1, 1), scheme="pull", launch=launch)
        best_found = best_of(replace(case, domain=(64, 16, 12)), config)
        solver = Exported(compiled(best_found), best_found, case)
        solver.set_populations(oracle.random_state(case))
        for steps, omega in ((1, 1.3), (300, 1.3), (7, 0.9), (130, 1.3)):
            solver("set_relaxation_rate", omega)
            solver("step", steps)
        assert solver.steps_done == 438
        found.append(solver.populations())
        solver.close()
    assert np.array_equal(*found)


@pytest.mark.parametrize(("schedule", "launch"), [("uniform", "dependent"), ("tapered", "call")])
def test_the_number_of_chunks_may_be_set_between_steps(schedule: str, launch: str) -> None:
    """Each number gives what the one by formula does, also where a graph had another one; others are refused."""
    case, config = KINDS["several steps of moments, which begin early"]
    changes: dict[str, Any] = {"chunk_schedule": schedule, "launch": launch}
    case, changed = replace(case, domain=(32, 9, 25)), replace(config, **changes)
    found = best_of(case, changed)
    chunks = chunks_of(case, changed, read_machine(H200), None)
    assert chunks
    found = replace(found, kernel=found.kernel.following(chunks))
    library, states = compiled(found), []
    library.made_set_chunks.argtypes = ctypes.c_void_p, ctypes.c_longlong
    several = [chunks.count(case.domain), 1, 2, 3]
    for numbers in (several[:1], several):
        solver = Exported(library, found, case)
        solver.set_populations(oracle.random_state(case))
        for _ in range(2):
            for n in numbers:
                solver("set_chunks", n)
                solver("step", 12 // len(numbers) * found.kernel.steps)
        states.append(solver.populations())
        for wrong in (0, -1, 1000, next(n for n in range(1, 25) if -(-25 // -(-25 // n)) != n)):
            reason = str(refused(solver, "set_chunks", wrong))
            assert "(use those of made_likely_chunks): it would leave a block without planes" in reason
        solver.close()
    assert np.array_equal(*states)


@pytest.mark.parametrize("storage", ["fp16s", "fp16c", "bf16"])
def test_codes_of_sixteen_bits_are_those_of_the_catalogue(storage: str) -> None:
    case, config = box("d3q19", "bgk", (64, 4, 3), 1.3), cuda.Direct(block=(64, 1, 1), storage=storage)
    found = best_of(case, config)
    solver = Exported(compiled(found), found, case)
    draw = np.random.default_rng(2)
    shape = (19, *case.domain[::-1])
    deviations = draw.uniform(-1.99, 1.99, shape) * 10.0 ** draw.integers(-12, 1, shape)
    deviations.reshape(-1)[:4] = 0.0, -0.0, 1.99, -1e-30
    weights = np.array([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
    solver.set_populations(weights + deviations)
    given = (weights + deviations) - weights  # as it is seen beside a weight
    expected = weights + config.stored.deviations(config.stored.stored(given, np), np)
    assert np.array_equal(solver.populations(), expected)
    solver.close()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("scheme", ["pull", "esoteric-twist"])
def test_the_index_list_is_that_of_the_catalogue(order: str, scheme: str) -> None:
    """Word for word, so that sites have the order that was measured."""
    case = porous("d3q19", "bgk", (40, 12, 11), 1.2, "blocks:fraction=0.3")
    config = cuda.Sparse(block=(64, 1, 1), order=order, scheme=scheme)
    found = best_of(case, config)
    probe = 'extern "C" void* made_links(made_solver* solver) { return solver->links.at; }'
    library = compiled(found, behind=probe)
    library.made_links.restype = ctypes.c_void_p
    solver = Exported(library, found, case)
    expected = index_list(case, config)
    words = (ctypes.c_uint32 * len(expected)).from_address(library.made_links(solver.handle))
    assert np.array_equal(np.array(words), expected)
    solver.close()


def refused(function: Any, *arguments: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        function(*arguments)
    return caught.value


def test_what_a_kernel_does_not_support_is_refused_with_the_rule() -> None:
    case, config = cavity("d3q19", "bgk", (64, 16, 12), 1.3), cuda.Direct(block=(32, 1, 1), cells_per_thread=2)
    found = best_of(case, config)
    library = compiled(found)
    odd = refused(Exported, library, found, replace(case, domain=(63, 16, 12)))
    assert odd.status == BAD_DOMAIN
    assert str(odd) == (
        "domain 63x16x12 is not supported by this kernel: nx=63 is not a multiple of 2 (cells_per_thread=2)"
    )
    assert library.made_check_domain(0, 16, 12, None) == BAD_DOMAIN
    assert library.made_check_domain(64, 16, 12, pointer(np.zeros(64 * 16 * 12, np.uint8))) == BAD_ARGUMENT
    assert library.made_message() == b"this kernel has no solid cells: export one of a study with a geometry"
    solver = Exported(library, found, case)
    assert str(refused(solver, "step", -1)) == "steps=-1 is negative"
    assert str(refused(solver, "set_force", 1e-3, 0, 0)) == "this kernel was made without a force"
    assert "not between 0 and 2" in str(refused(solver, "set_relaxation_rate", 2.0))
    assert "not between 0 and 2" in str(refused(solver, "set_relaxation_rate", float("nan")))
    assert "too large" in str(refused(solver, "set_wall_velocity", 0.6, 0, 0))
    solver.close()


def test_solid_cells_are_needed_where_the_kernel_has_them() -> None:
    found = best_of(*KINDS["sites listed"])
    library = compiled(found)
    assert library.made_check_domain(64, 16, 12, None) == BAD_ARGUMENT
    assert library.made_message() == b"solid is NULL: give one byte a cell, 0 for fluid"


def pulled(case: Case) -> tuple[Case, CudaConfig]:
    return case, cuda.Direct(block=(32, 1, 1))


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (pulled(pipe("d3q19", "bgk", (64, 16, 12), 1.3)), "face x- (use periodic faces and walls"),
        (
            pulled(
                replace(
                    box("d3q19", "bgk", (64, 16, 12), 1.3),
                    geometry="packing:fraction=0.3:radius=4",
                    walls="interpolated",
                )
            ),
            "interpolated walls",
        ),
    ],
)
def test_a_kernel_that_no_header_can_hold_is_refused(sample: tuple[Case, CudaConfig], said: str) -> None:
    found = best_of(*sample)
    with pytest.raises(InputError, match=r"format=cuda is not supported for") as caught:
        cuda_header(found, "made")
    assert said in str(caught.value)


def test_its_name_is_an_identifier() -> None:
    found = best_of(*KINDS["one step"])
    assert default_name(found) == f"made_up_{found.key[:6]}"
    assert default_name(replace(found, study="96^3 box")).startswith("lbm_96_3_box_")
    with pytest.raises(InputError, match="name=my-kernel is not supported"):
        cuda_header(found, "my-kernel")
    with pytest.raises(InputError, match=r"name=9lbm is not supported .*a letter first"):
        cuda_header(found, "9lbm")
    with pytest.raises(InputError, match=r"name=class is not supported .*it is a keyword"):
        cuda_header(found, "class")


def test_headers_stand_beside_each_other_and_c_reads_them(tmp_path: Path) -> None:
    """Two in one file, of which each kernel has an entry step_0; declarations alone in C99 and C++11."""
    for name, kind in (("first", "one step"), ("second", "several steps")):
        (tmp_path / f"{name}.h").write_text(cuda_header(best_of(*KINDS[kind]), name, f"{name}.h"))
    both = '#include "first.h"\n#include "second.h"\n'
    implemented = f"#define FIRST_IMPLEMENTATION\n#define SECOND_IMPLEMENTATION\n{both}"
    options = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    for language, standard, text in (("c", "c99", both), ("c++", "c++11", both), ("c++", "c++17", implemented)):
        if language == "c" and shutil.which("gcc") is None:
            continue
        source = tmp_path / "both.c"
        source.write_text(text)
        lenient = ["-I", RUNTIME, "-Wno-all", "-Wno-extra", "-Wno-pedantic"] if text == implemented else []
        compiler = "gcc" if language == "c" else COMPILER
        command = [compiler, f"-std={standard}", *options, *lenient, "-x", language, source]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.skipif(NVCC is None, reason="no CUDA compiler (nvcc)")
@pytest.mark.parametrize(
    "kind",
    ["moments on chip", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != "moments on chip")],
)
def test_nvcc_takes_it_without_a_warning(kind: str, tmp_path: Path) -> None:
    (tmp_path / "made.h").write_text(cuda_header(best_of(*KINDS[kind]), "made", "made.h"))
    (tmp_path / "made.cu").write_text('#define MADE_IMPLEMENTATION\n#include "made.h"\n')
    command = [NVCC, "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-c", "made.cu", "-o", "made.o"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[:2000] + done.stderr[:2000]


RECORDED = [path.parent for path in sorted((ROOT / "studies/recorded").glob("nvidia-*/*/study.json"))]


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_every_recorded_winner_of_a_gpu_has_a_header_with_its_code(folder: Path, tmp_path: Path) -> None:
    study = Study(folder)
    path = study.export_header(tmp_path / "made.h", name="made")
    code = code_of("cuda", best(study.record).kernel.source)
    assert without_linkage(code) in without_linkage(code_of("cuda", path.read_text()))


def without_linkage(code: str) -> str:
    return code.replace("__host__ __device__ constexpr", "constexpr").strip()


def test_a_hostile_name_of_a_device_stays_in_its_comment() -> None:
    """The name comes from a file, which may be anybody's."""
    found = best_of(*KINDS["one step"])
    hostile = "X*/\n#error INJECT\n//"
    changed = replace(found, lbmtune=hostile, environment=replace(found.environment, device=hostile))
    text = cuda_header(changed, "lbm", "lbm.h")
    assert "X/error INJECT//" in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("#error INJECT")]
    assert cuda_header(found, "lbm", "lbm.h").count("*/") == text.count("*/")
