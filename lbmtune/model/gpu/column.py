"""One step of a box whose threads update columns of cells along z."""

from functools import cached_property

from lbmtune.catalogue.families.cuda.column import Column
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.direct import terms
from lbmtune.model.gpu.families import Family
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms.array_of_structures import walked_s
from lbmtune.model.gpu.terms.spills import estimated as estimated_box
from lbmtune.records import Resources

_BATCHES = {False: (15, 4), True: (3, 12, 4)}
"""Loads of a column of vectors between two branches, without and with conversions; as compiled for sm_90."""


class ColumnInputs(Inputs):
    """A kernel of columns."""

    config: Column

    walking = True
    displaces = True
    displaced_byte_s = walked_s

    @cached_property
    def loads_at_once(self) -> float:
        """Return the share of its loads that a thread waits for together.

        Warps of a column of vectors may lack threads, so that shuffles branch; loads after a branch wait for those
        before it.
        """
        config = self.config
        if config.cells_per_thread == 1 or config.prefetch_cells:
            return 1.0
        batches = _BATCHES[config.stored.bytes < config.computed.bytes]
        return sum(n * n for n in batches) / sum(batches) ** 2


def estimated(case: Case, config: Column) -> Resources:
    """Estimate the resources of a kernel whose threads may hold the populations of the next cells in registers."""
    return estimated_box(case, config, 1 + (config.prefetch_cells if config.prefetch_to == "registers" else 0))


MODEL = Family(ColumnInputs, terms, estimated)
