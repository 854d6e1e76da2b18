"""CPU kernels with planted faults. Workers import this file without the tests."""

from __future__ import annotations

from dataclasses import replace

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
}


def config(fault: str = "") -> CpuConfig:
    """Return a configuration whose padding names the fault."""
    number = [*FAULTS].index(fault) + 1 if fault else 0
    return cpu.Direct(vector_bits=0, wrap="select", row_offset=0, layout=SoA(padding=16 * number))


def planted(case: Case, config: KernelConfig) -> Program:
    """Render the kernel, with the fault that its padding names at the end of its loop."""
    program = render(case, config)
    assert isinstance(config.layout, SoA)
    if not config.layout.padding:
        return program
    fault = list(FAULTS.values())[config.layout.padding // 16 - 1]
    return replace(program, source=f"{program.source.rstrip()}\n    {fault}\n")
