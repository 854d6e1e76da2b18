"""The processor as a device, if it cannot be one, and its cache of kernels, if that is damaged."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from lbmtune import quotas
from lbmtune.backend.cpu import compile_cpu
from lbmtune.backend.cpu.compilation import modules
from lbmtune.backend.cpu.placement import threads
from lbmtune.backend.protocol import OutOfMemoryError
from lbmtune.backend.registry import open_device
from lbmtune.catalogue.config import cpu
from lbmtune.catalogue.families.common_rules import fits_in_memory
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.render import render
from lbmtune.errors import DeviceUnavailableError
from lbmtune.measure.verification.verify import verify


def test_without_the_compiler_of_numba_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_device("cpu").limits.cores
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    with pytest.raises(
        DeviceUnavailableError, match=r"^the CPU needs Numba's compiler, which NUMBA_DISABLE_JIT turns off"
    ):
        open_device("cpu")


def test_a_threading_layer_that_is_not_there_is_told_before_a_kernel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "THREADING_LAYER", "tbb")
    monkeypatch.setitem(sys.modules, "numba.np.ufunc.tbbpool", None)
    with pytest.raises(
        DeviceUnavailableError, match=r"^NUMBA_THREADING_LAYER=tbb cannot be used here \(.*\); unset it"
    ):
        open_device("cpu")
    for usable in ("workqueue", "default", "threadsafe"):
        monkeypatch.setattr(numba.config, "THREADING_LAYER", usable)
        assert open_device("cpu").limits.cores


def test_a_kernel_needs_no_program_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No C compiler in particular: LLVM comes with Numba."""

    def refuses(*_: Any, **__: Any) -> Any:
        raise AssertionError("a program was started")

    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(subprocess, "Popen", refuses)
    program = render(box("d2q9", "bgk", (16, 12, 1)), cpu.Direct(vector_bits=0, threads=1))
    assert verify(program, compile_cpu(program), open_device("cpu"), 1).passed


def test_functions_of_this_package_are_compiled_where_nothing_can_be_cached() -> None:
    """As installed where the user cannot write, and without a home: Numba finds no folder for a text without a file."""
    names: dict[str, Any] = {}
    exec(compile("def twice(n):\n    return 2 * n\n", "<text>", "exec"), names)
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(names["twice"])
    assert modules.cached_njit()(names["twice"])(21) == 42


def test_memory_and_processors_are_those_of_the_control_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "memory", lambda: quotas.Memory(2 << 30, 700 << 20, True))
    opened, case = open_device("cpu"), box("d3q19", "bgk", (256, 256, 160))
    assert (opened.limits.memory_bytes, opened.environment.memory_bytes) == (350 << 20, 2 << 30)
    reason = fits_in_memory(case, cpu.Direct(scheme="aa"), opened.limits)
    assert reason
    assert "the device has 350 MiB free within the memory limit of this process, enough for" in reason
    with pytest.raises(OutOfMemoryError, match="within the memory limit of this process"):
        opened.empty(800 << 20, "uint8")
    monkeypatch.setattr(quotas, "memory", lambda: quotas.Memory(300 << 20, 200 << 20, True))
    assert open_device("cpu").limits.memory_bytes == 100 << 20
    monkeypatch.setattr(quotas, "memory", lambda: quotas.Memory(8 << 30, 700 << 20, False))
    assert open_device("cpu").limits.memory_bytes == 700 << 20


TEXT = """
import numba
@numba.njit("int64(int64)", cache=True)
def twice(n):
    return 2 * n
"""


@pytest.mark.parametrize("suffix", ["nbi", "nbc", "pyc"])
@pytest.mark.parametrize(
    "damaged", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: bytes(len(b))], ids=["empty", "cut", "zeros"]
)
def test_a_damaged_cache_heals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffix: str, damaged: Callable[[bytes], bytes]
) -> None:
    """As after a power cut."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    kept = tmp_path / "text.py"
    assert modules.import_text(kept, TEXT).twice(4) == 8
    (file,) = (tmp_path / "__pycache__").glob(f"*.{suffix}")
    whole = file.read_bytes()
    file.write_bytes(damaged(whole))
    assert modules.import_text(kept, TEXT).twice(4) == 8
    (healed,) = (tmp_path / "__pycache__").glob(f"*.{suffix}")
    assert len(healed.read_bytes()) == pytest.approx(len(whole), rel=0.01)


def test_machine_code_is_there_whatever_others_do_to_the_cache(tmp_path: Path) -> None:
    """As if another process wrote the text or healed the cache between the import and this."""

    def code(*, others: bool) -> bytes:
        twice = modules.import_text(tmp_path / "text.py", TEXT).twice
        twice.declared = "int64(int64)"
        for file in (tmp_path / "__pycache__").glob("*.nb?") if others else ():
            file.unlink()
        return modules.machine_code(twice)

    compiled, read = code(others=False), code(others=False)
    anew = [code(others=True), code(others=True)]
    assert compiled == read
    assert all(each.startswith(b"\x7fELF") for each in (compiled, *anew))
    assert {len(each) for each in anew} == {len(compiled)}  # they differ in the number in their symbols


def test_an_error_that_is_not_of_the_cache_is_raised(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            modules.import_text(tmp_path / "text.py", "1 / 0")


def test_functions_of_the_package_heal_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    for cut in (False, True):
        function = numba.njit(cache=True)(threads._thread_numbers.py_func)
        for file in tmp_path.rglob("*.nb?"):
            file.write_bytes(file.read_bytes()[: -20 if cut else None])
        numbers = np.zeros(1, np.int32)
        modules.call_cached(function, numbers)
        assert numbers[0]
