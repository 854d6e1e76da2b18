"""The CPU through Numba. Numba and LLVM are imported by what is called, not by importing this package."""

from __future__ import annotations

from lbmtune.backend.protocol import Binary, Device
from lbmtune.codegen.program import Program


def compile_cpu(program: Program) -> Binary:
    """Compiles into the cache folder; another process loads it from there. Raises CompileError."""
    from lbmtune.backend.cpu.modules import compile_program

    return compile_program(program)


def open_cpu() -> Device:
    """The processor of this machine."""
    from lbmtune.backend.cpu.device import CpuDevice

    return CpuDevice()
