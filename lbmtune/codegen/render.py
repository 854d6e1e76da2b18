"""The one entry to code generation."""

from __future__ import annotations

from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig, one_step
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program


def render(case: Case, config: KernelConfig) -> Program:
    """The program of a legal configuration. Deterministic: equal arguments give equal text in every process."""
    if isinstance(config, CudaConfig):
        program = _render_cuda(case, config)
        if config.launch != "dependent":
            return program
        from lbmtune.codegen.cuda.shared.programmatic_launch import dependent

        return dependent(program)
    assert isinstance(config, CpuConfig)
    from lbmtune.codegen.cpu import render_cpu

    return render_cpu(case, config)


def render_single(program: Program) -> Program | None:
    """One time step on the state of a program whose launches do several and no fewer; None for any other."""
    if program.steps == 1 or program.any_steps:
        return None
    return render(program.case, one_step(program.config))


def _render_cuda(case: Case, config: CudaConfig) -> Program:
    from lbmtune.codegen.cuda import render_cuda, render_indirect

    if config.resident and config.of_moments:
        from lbmtune.codegen.cuda.persistent.moments import render_resident_moments

        return render_resident_moments(case, config)
    if config.resident:
        from lbmtune.codegen.cuda.persistent.populations import render_resident

        return render_resident(case, config)
    if config.by_faces:
        from lbmtune.codegen.cuda.face_exchange.program import render_tile_faces

        return render_tile_faces(case, config)
    if config.marches:
        from lbmtune.codegen.cuda.temporal_blocking.program import render_march

        return render_march(case, config)
    return render_indirect(case, config) if config.indirect else render_cuda(case, config)
