"""The index functions of a layout as C text."""

from __future__ import annotations

from collections.abc import Mapping

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import index_fits
from lbmtune.catalogue.layouts.layout import Extents, arrays
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage_frame import Domain
from lbmtune.codegen.trace import Traced

_HEAD = "__device__ __forceinline__"


def functions(case: Case, config: CudaConfig) -> str:
    """Return the functions of a box: its extents in storage, indices along the axes and the start of a component."""
    stored = _stored(case, config)
    head = f"{_HEAD} Extents storage_extents(const Index nx, const Index ny, const Index nz) {{"
    parts = _parts(config, stored.q)
    return "\n".join([head, f"    return {{{stored.x}, {stored.y}, {stored.z}}};", "}", *_bodies(parts)])


def component_functions(case: Case, config: CudaConfig) -> str:
    """Return the functions of listed nodes: the index of a node within a component, and a component's start."""
    parts = _parts(config, _stored(case, config).q)
    return "\n".join(
        _bodies({head: value for head, value in parts.items() if "along_y" not in head and "along_z" not in head})
    )


def _stored(case: Case, config: CudaConfig) -> Extents:
    return config.frame(case.stencil).extents(Domain(Traced("nx"), Traced("ny"), Traced("nz")))


def _parts(config: CudaConfig, q: int) -> dict[str, object]:
    memory, n = config.memory, Extents(Traced("n.x"), Traced("n.y"), Traced("n.z"), q)
    return {
        "Index along_x(const Index x": memory.along_x(Traced("x"), n),
        "Index along_y(const Index y": memory.along_y(Traced("y"), n),
        "Index along_z(const Index z": memory.along_z(Traced("z"), n),
        "Offset component(const Offset q": memory.component(Traced("q"), n),
    }


def _bodies(parts: Mapping[str, object]) -> list[str]:
    return [f"{_HEAD} {name}, const Extents& n) {{ return {value}; }}" for name, value in parts.items()]


def index_type(case: Case, config: CudaConfig) -> str:
    """Return the type of the index of a cell within a component: 32 bits unless more are needed or configured."""
    narrow = config.index_bits == 0 and index_fits(case, config, 32)
    return "unsigned int" if narrow else "unsigned long long"


def max_elements(case: Case, config: CudaConfig) -> int | None:
    """Return the elements of the longest buffer that the text for a case may be used with; None: no limit (64 bits).

    A 32-bit index counts the cells of one array. That is a whole buffer if cells lie q apart, one of q arrays if each
    component has its own, one of fewer if components share arrays.
    """
    if index_type(case, config) != "unsigned int":
        return None
    return 2**32 * arrays(config.memory, case.stencil.q)
