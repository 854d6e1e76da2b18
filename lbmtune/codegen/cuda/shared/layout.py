"""The index functions of a layout as C text."""

from __future__ import annotations

from collections.abc import Mapping

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import index_fits
from lbmtune.catalogue.layouts.layout import Extents, arrays
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage import Domain, frame
from lbmtune.codegen.trace import Traced

_HEAD = "__device__ __forceinline__"


def functions(case: Case, config: CudaConfig) -> str:
    """Storage extents of a domain, the index along each axis and the start of a component."""
    memory = config.memory
    stored = frame(case.stencil, config).extents(Domain(Traced("nx"), Traced("ny"), Traced("nz")))
    n = Extents(Traced("n.x"), Traced("n.y"), Traced("n.z"), stored.q)
    parts = {
        "Index along_x(const Index x": memory.along_x(Traced("x"), n),
        "Index along_y(const Index y": memory.along_y(Traced("y"), n),
        "Index along_z(const Index z": memory.along_z(Traced("z"), n),
        "Offset component(const Offset q": memory.component(Traced("q"), n),
    }
    if config.indirect:
        del parts["Index along_y(const Index y"], parts["Index along_z(const Index z"]
        return "\n".join(_bodies(parts))
    head = f"{_HEAD} Extents storage_extents(const Index nx, const Index ny, const Index nz) {{"
    return "\n".join([head, f"    return {{{stored.x}, {stored.y}, {stored.z}}};", "}", *_bodies(parts)])


def _bodies(parts: Mapping[str, object]) -> list[str]:
    return [f"{_HEAD} {name}, const Extents& n) {{ return {value}; }}" for name, value in parts.items()]


def index_type(case: Case, config: CudaConfig) -> str:
    """Type that holds the index of any cell within one component: 32 bits unless more are needed or asked for."""
    narrow = config.index_bits == 0 and index_fits(case, config, 32)
    return "unsigned int" if narrow else "unsigned long long"


def max_elements(case: Case, config: CudaConfig) -> int | None:
    """Longest buffer that the text made for the case may be used with; None where its indices do not run out.

    A 32-bit index holds the cells of one array: all of a buffer where cells lie q apart, one array of q where
    each component has its own, one of fewer where some share one.
    """
    if index_type(case, config) != "unsigned int":
        return None
    return 2**32 * arrays(config.memory, case.stencil.q)
