"""Walls of second order: an entry that follows each step of any kernel of populations (`boundaries.second_order`)."""

from dataclasses import replace
from typing import Any

from lbmtune.catalogue.backend_records import CpuConfig
from lbmtune.codegen.passes import BUFFERS
from lbmtune.codegen.program import LIST, WALL_LINKS, WALL_PLACES, WALL_SHARE, Launch, Program

ENTRY = "walls"
MAX_ELEMENTS = 1 << 32
"""Elements of a copy of the lattice that a word of the tables reaches."""
_THREADS = (256, 1, 1)


def with_walls(program: Program) -> Program:
    """Return the program whose steps are followed by the pass, for the case with interpolated walls."""
    config, parities = program.config, len(program.period)
    buffer = BUFFERS[1 if config.exchanges(program.case.stencil) else 0]
    launches = [
        Launch(ENTRY, (buffer, *WALL_PLACES[p], WALL_SHARE, WALL_LINKS), _THREADS, _THREADS, over="wall_links")
        for p in range(config.propagation.period)
    ]
    period = tuple((*step, launches[(p + 1) % parities % len(launches)]) for p, step in enumerate(program.period))
    return replace(
        program,
        case=replace(program.case, walls="interpolated"),
        source=f"{program.source}\n{_text(config)}\n",
        period=period,
        max_elements=min(program.max_elements or MAX_ELEMENTS, MAX_ELEMENTS),
    )


def _text(config: Any) -> str:
    if not isinstance(config, CpuConfig):
        from lbmtune.codegen.cuda.shared.assemble import fill  # here, as below: workers start without it
        from lbmtune.codegen.cuda.shared.storage import has_hints

        names = "".join(f"using ::{name};\n" for name in ("narrow", "Stored", "widen"))
        form = "namespace format = plain;" if has_hints(config) else f"namespace format {{\n{names}}}"
        return fill("passes/walls.cu", {"format": form})
    from lbmtune.codegen.cpu.shared.module import codes, parallel_loop, signature
    from lbmtune.codegen.skeleton import filled

    compute = config.computed.dtype
    types = f"{signature(config, ('field', LIST, LIST))}, {compute}[::1], int64"
    loop = parallel_loop(config)
    return "\n\n" + filled("passes/walls", compute=compute, codes=codes(config), signature=types, **loop)
