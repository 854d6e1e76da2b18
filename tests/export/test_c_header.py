"""Exported object code with its C header: a solver of each kind of CPU kernel, beside the oracle."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from lbmtune.backend.cpu.device import vector_bits
from lbmtune.catalogue.config import cpu, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, pipe
from lbmtune.errors import InputError
from lbmtune.export.c_header import Target, c_header
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import describe_failure
from scripts.random_domains import WRONG
from scripts.random_headers import outcomes_of
from tests.support.kernels.headers import BAD_ARGUMENT, BAD_DOMAIN, Exported, RefusedError, best_of, compared, pointer
from tests.support.kernels.objects import C_COMPILER, KINDS, MORE, STRICT, exported, linked

pytestmark = pytest.mark.skipif(C_COMPILER is None, reason="no C compiler (gcc or clang)")
COMPILERS = [one for one in ("gcc", "clang") if shutil.which(one)]
OF_C = {"calloc", "free", "memcpy", "memmove", "memset"}
"""Functions of the C library that a kernel may call."""
ROWS = cpu.Direct(threads=2, row_offset=1)


def small(kind: str) -> Case:
    case, config = {**KINDS, **MORE}[kind]
    return replace(case, domain=config.awkward_domain(case))


@pytest.mark.parametrize("kind", [*KINDS, *(pytest.param(kind, marks=pytest.mark.slow) for kind in MORE)])
def test_each_kind_agrees_with_the_oracle_or_refuses_a_domain(kind: str, tmp_path: Path) -> None:
    """After whole launches and left-over steps; populations, density and velocity. It calls no Python."""
    sample = {**KINDS, **MORE}[kind]
    exported(found := best_of(*sample), tmp_path)
    library = linked(tmp_path)
    at_once = (1, found.kernel.steps, 2 * len(found.kernel.period) * found.kernel.steps + 1)
    result = compared(library, found, small(kind), at_once)
    assert result.passed, describe_failure(result)
    assert not [one for one in outcomes_of(library, found, sample, 3) if one.verdict == WRONG]
    assert undefined(tmp_path / "made_kernel.o") <= {"made_kernel_loop", "made_kernel_shares", *OF_C}


def undefined(file: Path) -> set[str]:
    """The names that an object needs from elsewhere."""
    done = subprocess.run(
        ["nm", "--undefined-only", "--format=posix", file], capture_output=True, text=True, check=True
    )
    return {line.split()[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("target", ["x86-64-v3", pytest.param("x86-64-v4", marks=pytest.mark.slow)])
def test_code_for_a_named_processor_is_right_where_it_runs(target: str, tmp_path: Path) -> None:
    """Vectors of 512 bits are two of 256 there. Without OpenMP there is one thread."""
    case, config = box("d3q19", "bgk", (64, 16, 12), 1.3), replace(ROWS, scheme="pull", storage="fp16s")
    found = best_of(case, config)
    exported(found, tmp_path, target)
    assert target in (tmp_path / "made.h").read_text()
    library = linked(tmp_path, (*STRICT, "-Wno-unknown-pragmas"))
    if vector_bits() < (512 if target == "x86-64-v4" else 256):
        with pytest.raises(RefusedError, match=f"lacks instructions of {target}"):
            Exported(library, found, case)
        return
    result = compared(library, found, replace(case, domain=(32, 5, 3)), (1, 2))
    assert result.passed, describe_failure(result)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_compilers_take_the_header_without_a_warning(compiler: str, tmp_path: Path) -> None:
    """Implementations in C; declarations of two headers beside each other in C99 and C++."""
    for name, kind in (("first", "sites listed"), ("second", "in place, halves, flags in memory")):
        text = c_header(best_of(*KINDS[kind]), name, Target("host", ("avx2",)), f"{name}.h")
        (tmp_path / f"{name}.h").write_text(text)
        (tmp_path / f"{name}.c").write_text(f'#define {name.upper()}_IMPLEMENTATION\n#include "{name}.h"\n')
    (tmp_path / "both.c").write_text('#include "first.h"\n#include "second.h"\n')
    options = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-unknown-pragmas", "-fsyntax-only")
    for arguments in (("-std=c11", "first.c", "second.c"), ("-std=c99", "both.c"), ("-std=c++11", "-xc++", "both.c")):
        command = [compiler, *options, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]


def test_threads_of_the_caller_share_the_loops(tmp_path: Path) -> None:
    """As many shares as the caller says, each called once; populations are those of one share."""
    case, found = box("d3q19", "bgk", (32, 8, 6), 1.3), []
    exported(best := best_of(case, ROWS), tmp_path)
    library, counts = linked(tmp_path, (*STRICT, "-Wno-unknown-pragmas")), list[int]()
    share_of = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)

    @ctypes.CFUNCTYPE(None, share_of, ctypes.c_void_p, ctypes.c_int)
    def loop(share, work, shares):
        counts.append(shares)
        threads = [Thread(target=share, args=(work, number)) for number in range(shares)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    for given, threads in ((None, 1), (loop, 3)):
        solver = Exported(library, best, case, given)
        solver("set_threads", threads)
        solver.set_populations(oracle.random_state(case))
        solver("step", 2)
        found.append(solver.populations())
        solver.close()
    assert np.array_equal(*found)
    assert counts[:1] == [2], "the threads that the kernel was tuned for begin"
    assert counts[-4:] == [3] * 4, "the populations in, two steps, the populations out"


def test_what_a_kernel_does_not_support_is_refused_with_the_rule(tmp_path: Path) -> None:
    case = cavity("d3q19", "bgk", (64, 16, 12), 1.3)
    exported(found := best_of(case, ROWS), tmp_path)
    library = linked(tmp_path)
    with pytest.raises(RefusedError) as odd:
        Exported(library, found, replace(case, domain=(63, 16, 12)))
    assert odd.value.status == BAD_DOMAIN
    assert str(odd.value) == (
        "domain 63x16x12 is not supported by this kernel: nx=63 is not a multiple of 16 (16 lanes of fp32)"
    )
    assert library.made_check_domain(0, 16, 12, None) == BAD_DOMAIN
    assert library.made_check_domain(64, 16, 12, pointer(np.zeros(64 * 16 * 12, np.uint8))) == BAD_ARGUMENT
    solver = Exported(library, found, case)
    for call, said in (
        (("step", -1), "steps=-1 is negative"),
        (("set_threads", 0), "threads=0 is not positive"),
        (("set_force", 1e-3, 0, 0), "this kernel was made without a force"),
        (("set_relaxation_rate", 2.0), "relaxation_rate is not between 0 and 2"),
        (("set_wall_velocity", 0.6, 0, 0), "wall_velocity is no number or too large: use lattice units"),
        (("populations", None), "populations is NULL"),
    ):
        with pytest.raises(RefusedError) as refused:
            solver(*call)
        assert str(refused.value) == said
    solver.close()


def test_left_over_steps_without_a_kernel_are_refused(tmp_path: Path) -> None:
    """One of single steps that failed its verification is in no file."""
    case, config = KINDS["three steps of moments"]
    found = best_of(case, config)
    exported(found := replace(found, kernel=replace(found.kernel, single=None)), tmp_path)
    solver = Exported(linked(tmp_path), found, replace(case, domain=config.awkward_domain(case)))
    with pytest.raises(RefusedError, match="steps=4 is not a multiple of 3: there is no verified kernel for one step"):
        solver("step", 4)
    solver("step", 3)
    assert solver.steps_done == 3
    solver.close()


@pytest.mark.parametrize(
    ("case", "config", "said"),
    [
        (box("d3q19", "bgk", (64, 16, 12), 1.3), cuda.Direct(), "a kernel for target=cuda (use format=cuda"),
        (pipe("d3q19", "bgk", (64, 16, 12), 1.3), ROWS, "face x- (use periodic faces and walls"),
    ],
)
def test_a_kernel_that_no_object_can_hold_is_refused(case, config, said: str) -> None:
    with pytest.raises(InputError, match=r"format=c is not supported for") as caught:
        c_header(best_of(case, config), "made", Target("host", ()))
    assert said in str(caught.value)


def test_an_unknown_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown target 'x86-64-v5'; did you mean 'x86-64-v[34]'"):
        exported(best_of(*KINDS["sites listed"]), tmp_path, "x86-64-v5")
    assert not [*tmp_path.iterdir()]
