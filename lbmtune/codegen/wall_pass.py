"""Walls of second order: an entry that follows each step of any kernel of populations (`boundaries.second_order`)."""

from dataclasses import replace

from lbmtune.catalogue.backend_records import CpuConfig
from lbmtune.catalogue.boundaries.second_order import has_walls
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.passes import BUFFERS
from lbmtune.codegen.program import Launch, Program

ENTRY = "walls"
SHARE, LINKS = "wall_share", "wall_links"
_THREADS = 256


def tables_of(parity: int) -> tuple[str, str]:
    """Return the names of the tables of a state of a parity: elements of each link, and of its other population."""
    return f"wall_at_{parity}", f"wall_from_{parity}"


def without_walls(case: Case, config: KernelConfig) -> str | None:
    """Return why there is no such pass for a case and a configuration, or None."""
    what = "walls of second order are not supported for"
    if not has_walls(case):
        problem = f"geometry {case.geometry}" if case.geometry else f"flow {case.flow}"
        return f"{what} {problem} (use geometry packing or sphere, without walls at faces)"
    if config.of_moments or config.fused_steps > 1 or config.place_source == "fixed":
        return f"{what} family {config.family} (use sparse): the pass follows each step of populations"
    if config.implicit:
        return f"{what} boundary=implicit (use branch): skipped cells send populations back a step later"
    if config.stored.bytes < 4:
        return f"{what} storage={config.storage} (use fp32 or fp64)"
    return None


def with_walls(program: Program) -> Program:
    """Return the program whose steps are followed by the pass."""
    config, parities = program.config, len(program.period)
    buffer = BUFFERS[1 if config.exchanges(program.case.stencil) else 0]
    launches = [
        Launch(ENTRY, (buffer, *tables_of(p), SHARE, LINKS), (_THREADS, 1, 1), (_THREADS, 1, 1))
        for p in range(config.propagation.period)
    ]
    period = tuple((*step, launches[(p + 1) % parities % len(launches)]) for p, step in enumerate(program.period))
    return replace(program, source=f"{program.source}\n{_text(config)}\n", period=period)


def _text(config: KernelConfig) -> str:
    if not isinstance(config, CpuConfig):
        from lbmtune.codegen.cuda.shared.assemble import fill  # here, as below: workers start without it

        return fill("passes/walls.cu", {})
    from lbmtune.codegen.cpu.shared.module import parallel_loop
    from lbmtune.codegen.skeleton import filled

    stored, computed = (f"{one.dtype}[::1]" for one in (config.stored, config.computed))
    signature = ", ".join((stored, "uint32[::1]", "uint32[::1]", computed, "int64"))
    return "\n\n" + filled(
        "shared/wall_pass", compute=config.computed.dtype, signature=signature, **parallel_loop(config)
    )
