"""The index functions of a layout as C text."""

from __future__ import annotations

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.layout import Extents
from lbmtune.catalogue.storage import Domain, frame
from lbmtune.codegen.trace import Traced

_HEAD = "__device__ __forceinline__"


def functions(case: Case, config: CudaConfig) -> str:
    """Storage extents of a domain, the index along each axis and the start of a component."""
    memory, q = config.memory, case.stencil.q
    stored = frame(case.stencil, config).extents(Domain(Traced("nx"), Traced("ny"), Traced("nz")))
    n = Extents(Traced("n.x"), Traced("n.y"), Traced("n.z"), q)
    return "\n".join(
        (
            f"{_HEAD} Extents storage_extents(const Index nx, const Index ny, const Index nz) {{",
            f"    return {{{stored.x}, {stored.y}, {stored.z}}};",
            "}",
            f"{_HEAD} Index along_x(const Index x, const Extents& n) {{ return {memory.along_x(Traced('x'), n)}; }}",
            f"{_HEAD} Index along_y(const Index y, const Extents& n) {{ return {memory.along_y(Traced('y'), n)}; }}",
            f"{_HEAD} Index along_z(const Index z, const Extents& n) {{ return {memory.along_z(Traced('z'), n)}; }}",
            f"{_HEAD} Offset component(const Offset q, const Extents& n) {{ return {memory.component(Traced('q'), n)}; }}",
        )
    )


def index_type(case: Case, config: CudaConfig) -> str:
    """Type that holds the index of any cell within one component: 32 bits unless the domain needs more."""
    extents = frame(case.stencil, config).extents(Domain(*case.domain))
    memory = config.memory
    largest = max(
        memory.along_x(extents.x, extents) + memory.along_y(extents.y, extents) + memory.along_z(extents.z, extents),
        memory.component(1, extents),
    )
    return "unsigned int" if largest < 2**32 else "unsigned long long"
