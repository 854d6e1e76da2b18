"""The CPU through Numba. Numba and LLVM are imported by what is called, not by importing this package."""

from __future__ import annotations

from lbmtune.backend.protocol import BackendPackage, Binary, Device
from lbmtune.codegen.program import Program


def compile_cpu(program: Program) -> Binary:
    """Compile into the cache folder, from where another process loads it. Raises CompileError."""
    from lbmtune.backend.cpu.modules import compile_program

    return compile_program(program)


def open_cpu() -> Device:
    """Return the processor of this machine as a device."""
    from lbmtune.backend.cpu.device import CpuDevice

    return CpuDevice()


def _reports_power(_: str) -> bool:
    from lbmtune.backend.cpu.device import packages_j

    return packages_j() is not None


BACKEND = BackendPackage(
    default_device="cpu",
    accepts=lambda spec: spec == "cpu",
    devices=lambda: ("cpu",),
    open_device=lambda _: open_cpu(),
    compiler=lambda _: compile_cpu,
    reassembled=lambda _environment, _program: iter(()),
    reports_power=_reports_power,
    link=lambda *_: "",
)
