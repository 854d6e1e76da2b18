"""CPU kernels with planted faults. Workers import this file without the tests."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.backend.cpu.device import CpuDevice
from lbmtune.catalogue.config import CpuConfig, KernelConfig, cpu
from lbmtune.catalogue.layouts import SoA
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render

CASE = box("d2q9", "bgk", (64, 48, 1))
FAULTS = {
    "segfault": f"store(source, {1 << 44}, load(source, 0))",
    "endless": f"for again in range({1 << 62}):\n        store(target, again % 2, load(target, 0) / load(source, 0))",
    "nan": "zero = load(source, 0) - load(source, 0)\n    store(target, nx + 5, zero / zero)",
    "refused": "target[0] = 'text'",
    "wrong at full size": "if ny == 48:\n        store(target, nx + 5, load(target, nx + 5) + load(target, nx + 5))",
    "behind": "store(target, END, load(source, 0))",
    "before": "store(target, -5, load(source, 0))",
    "far behind": "store(target, END + 262144, load(source, 0))",
    "behind at full size": "if ny == 48:\n        store(target, END, load(source, 0))",
    "read behind that is not taken": f"if nx < 0:\n        store(target, 0, load(source, {1 << 44}))",
}
"""What is appended to a step. END: elements of a buffer."""
_FORK = "if not os.fork(): time.sleep(9), os._exit(0)"
WRAPPED = {
    "row missing at full size": "inner(source, target, *rest)\n    if rest[1] == 48: target[row] = kept",
    "empty": "pass",
    "worn": "calls += 1\n    inner(source, target, rest[0], rest[1] if calls <= 12 else rest[1] // 6, *rest[2:])",
    "row worn": "calls += 1\n    inner(source, target, *rest)\n    if calls > 12: target[row] = kept",
    "deaf": "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    while True: time.sleep(1)",
    "exit": "raise SystemExit(0)",
    "end of file": "raise EOFError",
    "talkative": "inner(source, target, *rest)\n    if not calls: print('x' * (20 << 20))\n    calls += 1",
    "forks": f"inner(source, target, *rest)\n    calls += 1\n    if calls > 1: return calls\n    {_FORK}",
    "forks and dies": f"{_FORK}\n    os._exit(7)",
}
"""What runs in place of a step, in Python. inner: the step; calls: a count; row, kept: of the target, before it."""
_WRAPPER = """

import os, signal, time

_inner = step_0


class _Wrapped:
    overloads, _cache, declared = _inner.overloads, _inner._cache, _inner.declared
    calls = 0

    def __call__(self, source, target, *rest):
        row = slice(17 * rest[0], 18 * rest[0])
        self.calls = _run(_inner, self.calls, row, target[row].copy(), source, target, *rest)


def _run(inner, calls, row, kept, source, target, *rest):
    {}
    return calls


step_0 = _Wrapped()
"""


def config(fault: str = "") -> CpuConfig:
    """Return a configuration whose padding names the fault."""
    number = [*FAULTS, *WRAPPED].index(fault) + 1 if fault else 0
    return cpu.Direct(vector_bits=0, wrap="select", row_offset=0, layout=SoA(padding=16 * number))


class Alone(CpuDevice):
    """A processor that nothing else is taken to use, so that no monitor of other programs is made."""

    shared = False


def planted(case: Case, config: KernelConfig) -> Program:
    """Render the kernel, with the fault that its padding names at the end of its loop or around it."""
    program = render(case, config)
    assert isinstance(config.layout, SoA)
    if not config.layout.padding:
        return program
    name = [*FAULTS, *WRAPPED][config.layout.padding // 16 - 1]
    if name in WRAPPED:
        return replace(program, source=program.source + _WRAPPER.format(WRAPPED[name]))
    elements = f"(9 * (nx * ny * nz + {config.layout.padding}))"
    return replace(program, source=f"{program.source.rstrip()}\n    {FAULTS[name].replace('END', elements)}\n")
