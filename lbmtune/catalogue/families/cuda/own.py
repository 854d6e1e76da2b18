"""Kernels of users in CUDA: what their description says, with the launch that it gives."""

from collections.abc import Mapping
from dataclasses import dataclass

from lbmtune.catalogue.backend_records import Block, CudaConfig
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.own_kernel.config import BASES, OwnConfig
from lbmtune.catalogue.own_kernel.formulas import FormulaError, Value, whole
from lbmtune.catalogue.own_kernel.rules import OWN_RULES
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Lattice


@dataclass(frozen=True, kw_only=True)
class OwnCuda(OwnConfig, CudaConfig):
    """A configuration of a user's kernel in CUDA."""

    @property
    def block(self) -> Block:
        """Return the threads of a thread block along each axis, which depend on knobs alone."""
        return self._extents(self.kernel.geometry.block, self.values)

    def blocks(self, case: Case) -> Block:
        """Return the thread blocks of a launch along each axis."""
        return self._extents(self.kernel.geometry.grid, self.kernel.scope(self.values, case.domain))

    def block_cells(self, lattice: Lattice) -> Block:
        """Return the cells of a thread block: one a thread, as far as is known."""
        return self.block

    def shared_bytes(self, case: Case) -> int:
        """Return the dynamic shared memory of a thread block, in bytes."""
        return whole(self.kernel.geometry.shared_bytes, self.kernel.scope(self.values, case.domain))

    @staticmethod
    def _extents(formulas: tuple[str, str, str], scope: Mapping[str, Value]) -> Block:
        x, y, z = (whole(formula, scope, 1) for formula in formulas)
        return x, y, z


def launches(case: Case, config: OwnCuda, limits: Limits) -> str | None:
    """Require whole numbers of threads, blocks and bytes that the device has."""
    try:
        grid, shared = config.blocks(case), config.shared_bytes(case)
        _ = config.block
    except FormulaError as error:
        return f"a formula of [launch] {error}"
    if any(n > most for n, most in zip(grid, limits.grid, strict=True)):
        return f"grid {'x'.join(map(str, grid))} has more blocks along an axis than this device allows"
    if shared > limits.shared_bytes_per_block:
        return f"shared_bytes={shared}: this device allows {limits.shared_bytes_per_block} (use a smaller block)"
    return None


BASES["cuda"] = OwnCuda
RULES = (*OWN_RULES, launches, launch_rules.size)
