"""The CPU through Numba. Numba and LLVM are imported by what is called, not by importing this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lbmtune.backend.protocol import BackendPackage, Binary, Device
from lbmtune.codegen.program import Program


def compile_cpu(program: Program) -> Binary:
    """Compile into the cache folder, from where another process loads it. Raises CompileError."""
    if program.in_c:
        from lbmtune.backend.cpu.compilation.c_code import compile_c

        return compile_c(program)
    from lbmtune.backend.cpu.compilation.modules import compile_program

    return compile_program(program)


def open_cpu() -> Device:
    """Return the processor of this machine as a device."""
    from lbmtune.backend.cpu.device import CpuDevice

    return CpuDevice()


def processor(target: str) -> tuple[str, Sequence[str]]:
    """Return the processor of a target by LLVM's name, and features that code for it needs. Raises InputError."""
    from lbmtune.backend.cpu.object_code import processor as found

    return found(target)


def object_code(kernels: Sequence[tuple[Program, Mapping[str, str]]], calls: Mapping[str, str], target: str) -> bytes:
    """Return an object with the entries of programs as functions of C (`lbmtune.backend.cpu.object_code`)."""
    from lbmtune.backend.cpu.object_code import object_code as compiled

    return compiled(kernels, calls, target)


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
