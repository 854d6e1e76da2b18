"""CUDA text of persistent kernels, which keep their state on chip over all steps of a launch."""

from lbmtune.catalogue.families.cuda.persistent import Persistent
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.persistent import moments, populations
from lbmtune.codegen.cuda.shared import entry
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.storage import functions, max_elements, stored_format, types
from lbmtune.codegen.program import BARRIER, STEPS, Launch, Program

_SYNC = "persistent/grid_barrier.cu"
_BUFFERS = {"f0": "Stored* source", "f1": "Stored* target", BARRIER: f"unsigned* {BARRIER}"}
"""Parameters of the buffers, by their launch arguments."""


def render(case: Case, config: Persistent) -> Program:
    """Return the program of a legal configuration: one launch for any number of time steps."""
    kept = moments if config.of_moments else populations
    buffers, words, integers = _BUFFERS | kept.BUFFERS, entry.first_tables(case, config), (STEPS, *entry.EXTENTS)
    scalars = kept.scalars(case, config)
    launch = Launch(
        "step_0",
        (*buffers, *words, *integers, *scalars),
        block=config.block,
        covers=config.block_cells(case.stencil),
        shared_bytes=config.shared_bytes(case),
        mode="cooperative",
    )
    taken = (*buffers.values(), *entry.parameters(words, integers, scalars))
    inner = {
        "signature": entry.head(config, "step_0", *taken),
        **kept.entry_regions(case, config),
        **variants(_SYNC, {}, inside=config.grid_sync),
    }
    regions = {
        "constants": "\n".join((types(case, config), *kept.constants(case, config))),
        "storage": stored_format(config, 1),
        "layout": functions(case, config),
        "barrier": fill(_SYNC, {"all": "", "neighbours": ""}),
        "entry": fill(kept.FILE, inner, inside="entry"),
        **kept.regions(case, config),
    }
    source = entry.source(kept.FILE, case, config, regions)
    return entry.program(case, config, source, ((launch,),), max_elements(case, config))
