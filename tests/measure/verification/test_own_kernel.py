"""Users' kernels that are right pass, and those with a planted fault do not."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.protocol import CompileError
from lbmtune.catalogue.own_kernel.config import family_of
from lbmtune.catalogue.own_kernel.definition import Argument
from lbmtune.codegen.own_program import OwnProgram
from lbmtune.codegen.render import render
from lbmtune.files.kernelfile import load_kernel
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.state import WrongResultError, check_state, excite
from lbmtune.measure.verification import own_kernel as own_kernel  # which registers how these are verified
from lbmtune.measure.verification.aftermath import check_slabs
from lbmtune.measure.verification.verify import describe_failure, verify, verify_simulation
from lbmtune.records import Verification
from lbmtune.runtime.own_kernel import OwnSimulation, first_values
from tests.support.kernels.own_kernels import DESCRIPTION, NUMPY, TEXT, loaded, written

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler (cc)")
IN_NUMPY = DESCRIPTION.replace('entry = "plain"', 'python = "reference.py"\nentry = "mean"')
ITSELF = DESCRIPTION.replace('entry = "plain"', "")
STORE = "g[x] = 0.5f"
"""In the first function, which is verified; the other one is its reference."""


@pytest.fixture(scope="module")
def device() -> PooledDevice:
    return PooledDevice(open_cpu())


def program_of(folder: Path, text: str = TEXT, description: str = DESCRIPTION, **knobs: int) -> OwnProgram:
    kernel, case = loaded(folder, text, description)
    found = render(case, family_of(kernel).parse(knobs))
    assert isinstance(found, OwnProgram)
    return found


def verified(program: OwnProgram, device: PooledDevice) -> Verification:
    device.reset()
    found = verify(program, compile_cpu(program), device)
    device.check_guards(program.buffers())
    return found


@pytest.mark.parametrize("description", [DESCRIPTION, IN_NUMPY, ITSELF], ids=["entry", "numpy", "itself"])
def test_a_right_kernel_passes(tmp_path: Path, device: PooledDevice, description: str) -> None:
    program = program_of(tmp_path, description=description, TILE=8)
    found = verified(program, device)
    assert found.passed, found.where
    assert (found.domains, found.full_size) == (((36, 1, 1),), False)
    simulation = OwnSimulation(program, compile_cpu(program), device)
    assert verify_simulation(simulation).full_size
    excite(simulation)
    simulation.step(5)
    check_state(simulation)
    check_slabs(simulation, 5)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (STORE, "g[x] = 0.499f", "on domain 36x1x1 is off by 0.00"),
        (STORE, "if (x != 7) g[x] = 0.5f", "g[7] on domain 36x1x1"),
        (STORE, "g[x] = x == 7 ? 0.0f / 0.0f : 0.5f", "g[7] on domain 36x1x1 is not the number"),
        (STORE, "((float *)f)[3] = 9, g[x] = 0.5f", "f[3] on domain 36x1x1 is off by"),
        ("(x + 1) % nx", "(x + 1 < nx ? x + 1 : x)", "g[35] on domain 36x1x1"),
        ("*count += 1", "*count += 2", "count[0] on domain 36x1x1 is off by 1"),
        ("x < x0 + TILE && x < nx", "x < x0 + TILE - 1 && x < nx", "g[15] on domain"),
    ],
)
def test_a_wrong_kernel_fails(tmp_path: Path, device: PooledDevice, right: str, wrong: str, said: str) -> None:
    found = verified(program_of(tmp_path, TEXT.replace(right, wrong, 1), IN_NUMPY, TILE=8), device)
    assert not found.passed
    assert said in describe_failure(found)
    assert found.where.endswith(f"the bound is {found.bound:.3g}")


def test_stores_beside_a_buffer_are_found(tmp_path: Path, device: PooledDevice) -> None:
    text = TEXT.replace("*count += 1", "*count += 1; g[nx] = g[nx + 1] = 1", 1)
    with pytest.raises(WrongResultError, match="writes outside buffer"):
        verified(program_of(tmp_path, text), device)


def test_a_state_that_goes_wrong_later_is_found(tmp_path: Path, device: PooledDevice) -> None:
    """As of a counter that wraps: the launch after 40 others is wrong."""
    program = program_of(tmp_path, TEXT.replace(STORE, "g[x] = (*count > 40 ? 0.6f : 0.5f)", 1), IN_NUMPY, TILE=8)
    binary = compile_cpu(program)
    assert verify(program, binary, device).passed
    simulation = OwnSimulation(program, binary, device)
    excite(simulation)
    simulation.step(44)
    with pytest.raises(WrongResultError, match="the state goes wrong after 44 timed steps: g"):
        check_slabs(simulation, 44)
    simulation.buffers["f"][5] = np.inf
    with pytest.raises(WrongResultError, match="values in f that are not finite"):
        check_state(simulation)


@pytest.mark.parametrize(
    ("numpy", "said"),
    [
        (NUMPY.replace("def mean", "def other"), "the reference has no function 'mean'"),
        (NUMPY.replace("TILE", "tile"), "asks for 'tile', which is neither an argument"),
        (NUMPY.replace("count += 1", "count += absent"), "the reference failed: NameError"),
        ("import absent_module", "the reference failed: ModuleNotFoundError"),
    ],
)
def test_a_reference_that_fails_is_the_reason(tmp_path: Path, device: PooledDevice, numpy: str, said: str) -> None:
    kernel, case = load_kernel(written(tmp_path, description=IN_NUMPY, numpy=numpy))
    program = render(case, family_of(kernel).parse({}))
    with pytest.raises(WrongResultError, match=said):
        verify(program, compile_cpu(program), device)


class Arrays(ModuleType):
    """NumPy under another name, as the module of a device whose memory is not the host's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


@pytest.mark.parametrize(("stored", "passes"), [("0.5f", True), ("0.499f", False)])
def test_a_reference_may_take_the_arrays_of_the_device(
    tmp_path: Path, device: PooledDevice, monkeypatch: pytest.MonkeyPatch, stored: str, passes: bool
) -> None:
    there = Arrays("there")
    monkeypatch.setattr(OwnSimulation, "xp", there)
    numpy = (
        NUMPY.replace("TILE)", "xp)")
        .replace("np.roll", "xp.roll")
        .replace("    g[:]", "    assert xp is not np\n    g[:]")
    )
    kernel, case = load_kernel(written(tmp_path, TEXT.replace(STORE, f"g[x] = {stored}", 1), IN_NUMPY, numpy))
    program = render(case, family_of(kernel).parse({"TILE": 8}))
    assert isinstance(program, OwnProgram)
    simulation = OwnSimulation(program, compile_cpu(program), device)
    assert own_kernel.memory_of(simulation) is there
    assert verify_simulation(simulation).passed == passes


def test_first_values_of_a_device_fill_the_range_and_differ() -> None:
    one = Argument(name="f", type="float64", size="n", role="inout", random=(-2.0, 6.0))
    values, others = (first_values(one, 100_000, seed, Arrays("there")) for seed in (0, 1))
    assert (values.min(), values.max()) == pytest.approx((-2, 6), abs=1e-3)
    assert values.mean() == pytest.approx(2, abs=0.05)
    assert values.std() == pytest.approx(8 / 12**0.5, rel=0.01)
    assert len(np.unique(values)) > 99_990
    assert abs(np.corrcoef(values, others)[0, 1]) < 0.02
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.02


def test_what_does_not_compile_says_why(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="expected"):
        compile_cpu(program_of(tmp_path, TEXT.replace("int x0 = 0;", "int x0 = ", 1)))
    with pytest.raises(CompileError, match="no function 'mean' that is not static"):
        compile_cpu(program_of(tmp_path, TEXT.replace("void mean", "static void mean")))


def test_a_program_reaches_other_processes(tmp_path: Path) -> None:
    program = program_of(tmp_path, TILE=8)
    assert pickle.loads(pickle.dumps(program)) == program
    assert program.options == ("-O0", "-DTILE=8")


def test_extents_that_are_compiled_in_are_verified_at_full_size(tmp_path: Path, device: PooledDevice) -> None:
    text = TEXT.replace(", int nx", "").replace("nx", "NX")
    description = DESCRIPTION.replace('[[argument]]\nname = "nx"\ntype = "int32"\nvalue = "nx"', '[macros]\nNX = "nx"')
    found = verified(program_of(tmp_path, text, description, TILE=4), device)
    assert found.passed
    assert (found.domains, found.full_size) == (((64, 1, 1),), True)


IN_TURNS = """
void even(float *f, int nx) { for (int x = 0; x < nx; x++) f[x] += 1.0f; }
void odd(float *f, int nx) { for (int x = 0; x < nx; x++) f[x] *= 0.5f; }
"""
DESCRIBED_TURNS = """
entry = "even"
odd_entry = "odd"
domain = [64, 1]

[[argument]]
name = "f"
type = "float32"
size = "nx"
role = "inout"

[[argument]]
name = "nx"
type = "int32"
value = "nx"
"""
TURNS_IN_NUMPY = """
def step(f, odd):
    f[:] = f * 0.5 if odd else f + 1
"""
AGAINST_NUMPY = '[reference]\npython = "reference.py"\nentry = "step"\n'


def turns(folder: Path, text: str, description: str) -> OwnProgram:
    (folder / "turns.c").write_text(text)
    (folder / "turns.toml").write_text(description)
    (folder / "reference.py").write_text(TURNS_IN_NUMPY)
    kernel, case = load_kernel(folder / "turns.c")
    found = render(case, family_of(kernel).parse({}))
    assert isinstance(found, OwnProgram)
    return found


@pytest.mark.parametrize("reference", ["", AGAINST_NUMPY], ids=["itself", "numpy"])
def test_two_entries_take_turns(tmp_path: Path, device: PooledDevice, reference: str) -> None:
    program = turns(tmp_path, IN_TURNS, DESCRIBED_TURNS + reference)
    assert verified(program, device).passed
    simulation = OwnSimulation(program, compile_cpu(program), device)
    simulation.set({"f": np.full(64, 3, np.float32)})
    simulation.step(3)
    assert set(simulation.arrays()["f"]) == {3.0}  # ((3 + 1) / 2) + 1
    check_slabs(simulation, 3)


def test_the_wrong_one_of_two_entries_is_seen(tmp_path: Path, device: PooledDevice) -> None:
    found = verified(turns(tmp_path, IN_TURNS.replace("*= 0.5f", "*= 0.6f"), DESCRIBED_TURNS + AGAINST_NUMPY), device)
    assert not found.passed
    assert "after 2 launches" in found.where
