"""Generated CPU functions as LLVM code: they do what the same text does in Python, or are refused."""

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import numba
import numpy as np
import pytest

from lbmtune.backend.cpu.compilation.modules import import_text
from lbmtune.backend.protocol import CompileError

_HEAD = """
import numpy as np
from lbmtune.backend.cpu import simd
one = simd.memory("float64", 1)
load, store = one.load, one.store
c1, single = np.float64(1), np.float32(1)
"""


def _compiled(tmp_path: Path, body: str, arguments: str = "a, b", *, parallel: bool = False, rows: str = "") -> Any:
    """An entry that takes an array and integers."""
    kinds = ", ".join(["float64[::1]", *["int64"] * len(arguments.split(","))])
    entry = f'@simd.kernel("void({kinds})", parallel={parallel})\ndef entry(found, {arguments}):\n'
    text = _HEAD + dedent(rows) + entry + indent(dedent(body), "    ")
    return import_text(tmp_path / "translated.py", text).entry


def _mark(array: np.ndarray, at: int, value: float) -> None:
    array[at] = value


def _interpreted(body: str, found: np.ndarray, **given: int) -> None:
    exec(dedent(body), {"store": _mark, "load": lambda array, at: array[at], "c1": 1.0, "found": found, **given})


_INTEGERS = """
for n in range(9):
    k = 100 * n + 50
    v = a // b if n == 0 else a % b if n == 1 else a // 8 if n == 2 else a % 8 if n == 3 else 0
    v = v + (a // -3 if n == 4 else a % -3 if n == 5 else 0)
    if n > 5:
        v = min(a, b, 3) if n == 6 else max(a, -b) if n == 7 else -a * b % 7
    store(found, k + v, c1)
"""


def test_integers_as_in_python(tmp_path: Path) -> None:
    entry = _compiled(tmp_path, _INTEGERS)
    for a in (-17, -8, -1, 0, 1, 7, 8, 16, 23):
        for b in (-5, -1, 1, 3, 8):
            found, expected = np.zeros(900), np.zeros(900)
            entry(found, a, b)
            _interpreted(_INTEGERS, expected, a=a, b=b)
            np.testing.assert_array_equal(found, expected, err_msg=f"{a}, {b}")


_NAMES = """
low, high = (0, a) if a <= b else (-b, b + 2)
total = c1
odd = 0
for x in range(low, high, max(1, min(a, 2))):
    inner = x
    if x == 5 or x == 4:
        continue
    for y in range(x):
        if y % 7 == 2:
            inner = inner - 1
        if y % 4 == 3:
            continue
        if y % 3 == 1 or not y % 5:
            total = total + c1
            inner = inner + y
        else:
            total = total * c1 - c1 / (c1 + c1)
    odd |= inner
    if inner > 4 and x < 9:
        last = total
        store(found, x + 60, last - -c1)
store(found, 40 + odd, total)
"""


@pytest.mark.parametrize(("a", "b"), [(0, 3), (4, 9), (20, 11), (6, 6)])
def test_names_through_loops_and_branches(a: int, b: int, tmp_path: Path) -> None:
    found, expected = np.zeros(200), np.zeros(200)
    _compiled(tmp_path, _NAMES)(found, a, b)
    _interpreted(_NAMES, expected, a=a, b=b)
    np.testing.assert_array_equal(found, expected)
    assert found.any()


def test_what_is_not_chosen_is_not_worked_out(tmp_path: Path) -> None:
    found = np.zeros(2)
    _compiled(tmp_path, "store(found, 1, load(found, a) if b else c1)")(found, 1 << 40, 0)
    assert found[1] == 1.0


_TURNS = """
for k in simd.prange(a):
    own = np.zeros(b, np.float64)
    turn(found, own, np.int64(k), b)
"""
_TURN = """
@simd.row
def turn(found, own, k, b):
    for x in range(b):
        store(own, x, load(own, x) + c1)
    store(found, k, load(found, k) + load(own, b - 1))


"""


@pytest.mark.parametrize("parallel", [False, True])
def test_each_turn_once_with_memory_of_its_own(parallel: bool, tmp_path: Path) -> None:
    entry = _compiled(tmp_path, _TURNS, parallel=parallel, rows=_TURN)
    for threads in range(1, min(3, numba.config.NUMBA_NUM_THREADS) + 1):
        numba.set_num_threads(threads)
        for turns in (0, 1, 2, 5, 64):
            found = np.zeros(64)
            entry(found, turns, 16)
            np.testing.assert_array_equal(found, np.arange(64) < turns)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("while a: pass", "is not translated"),
        ("store(found, c, c1)", "'c' stands for nothing"),
        ("store(found, a, c1 + a)", "'c1 + a' is not translated"),
        ("store(found, a, c1 + single)", "'c1 + single' is not translated"),
        ("store(found, a, single)", "passes float32 for float64"),
        ("store(found, a, 1.0)", "is no number of a known type"),
        ("store(found, a / b, c1)", "'a / b' is not translated"),
        ("store(found, c1 if a else b, c1)", "is of two types"),
        ("for x in range(a, 0, -1): store(found, x, c1)", "goes backwards"),
        ("for x in found: store(found, a, x)", "is not translated"),
        ("print(a)", "is not translated"),
        ("if 0 < a < b: store(found, a, c1)", "is not translated"),
        ("x = y = a", "is not translated"),
        (
            "for x in range(a):\n        if x:\n            if b: continue\n        store(found, x, c1)",
            "is not translated",
        ),
        ("if c1: store(found, a, c1)", "is neither true nor false"),
    ],
)
def test_other_forms_are_refused(line: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as error:
        _compiled(tmp_path, line)
    assert said in str(error.value)
