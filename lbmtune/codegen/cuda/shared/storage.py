"""The stored values of a kernel as C text: types, conversion, cache hints and the index functions of a layout."""

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cache_hints import load_instruction, store_instruction
from lbmtune.catalogue.footprint import index_fits
from lbmtune.catalogue.layouts.layout import Extents, arrays
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage_frame import Domain
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.trace import Traced

_HEAD = "__device__ __forceinline__"
_REAL = {"fp32": "float", "fp64": "double"}
_STORED = {"float32": "float", "float64": "double"}


def types(case: Case, config: CudaConfig) -> str:
    """Return the definitions of the types of the compute precision and of indices."""
    return f"typedef {real(config.compute)} Real;\ntypedef {index_type(case, config)} Index;"


def real(precision: str) -> str:
    """Return the C type of a precision of the language ("fp32" or "fp64")."""
    return _REAL[precision]


def has_hints(config: CudaConfig) -> bool:
    """Return whether loads or stores of a one-step kernel carry cache hints."""
    return (config.load_hint, config.store_hint, config.l2_prefetch) != ("default", "default", 0)


def hinted_format(config: CudaConfig) -> str:
    """Return the storage format of a one-step kernel, whose loads and stores may carry cache hints."""
    if not has_hints(config):
        return stored_format(config, config.cells_per_thread)
    in_place = config.propagation.in_place
    hints = (
        f'#define LOAD "{load_instruction(config.load_hint, config.l2_prefetch, constant=not in_place)}"',
        f'#define STORE "{store_instruction(config.store_hint)}"',
        f"#define IN_PLACE {int(in_place)}",
    )
    plain = stored_format(config, config.cells_per_thread)
    return "\n".join(("namespace plain {", plain, "}", fill("shared/cache_hints.cu", {"hints": "\n".join(hints)})))


def stored_format(config: CudaConfig, cells: int) -> str:
    """Return the type of stored values, and how vectors of `cells` of them are widened and narrowed."""
    pairs = f"typedef {_vector('uint', max(cells // 2, 1))} Vector;"
    if config.storage == "fp16s":
        return fill("shared/storage_half.cu", {"vector": pairs})
    if config.stored.codes:
        conversion = fill(f"shared/{config.storage}.cu", {})
        return fill("shared/storage_codes.cu", {"vector": pairs, "conversion": conversion})
    stored = _STORED[config.stored.dtype]
    types = f"typedef {stored} Stored;\ntypedef {_vector(stored, cells)} Vector;"
    return fill("shared/storage_plain.cu", {"stored": types})


def _vector(element: str, length: int) -> str:
    return f"{element}{length}" if length > 1 else {"uint": "unsigned int"}.get(element, element)


def async_copies(*, past_l1: bool = False) -> str:
    """Return the functions of asynchronous copies to shared memory; past_l1: copies of 16 bytes bypass L1."""
    name = "shared/async_copies.cu"
    return fill(name, {"variants": "", **(variants(name, {}) if past_l1 else {})})


def copy_groups() -> str:
    """Return the functions of asynchronous copies that are waited for by group."""
    return fill("shared/copy_groups.cu", {"copies": async_copies()})


def functions(case: Case, config: CudaConfig, axes: str = "xyz", component: tuple[str, str] = ("Offset", "q")) -> str:
    """Return the functions of a box: its extents in storage, indices along some axes and the start of a component.

    component: type and name of the parameter that is its number.
    """
    stored = config.frame(case.stencil).extents(Domain(Traced("nx"), Traced("ny"), Traced("nz")))
    head = f"{_HEAD} Extents storage_extents(const Index nx, const Index ny, const Index nz) {{"
    extents = f"    return {{{stored.x}, {stored.y}, {stored.z}}};"
    return "\n".join([head, extents, "}", *_indices(config, stored.q, axes, component)])


def component_functions(case: Case, config: CudaConfig) -> str:
    """Return the functions of listed nodes: the index of a node within a component, and a component's start."""
    return "\n".join(_indices(config, config.frame(case.stencil).q, "x", ("Offset", "q")))


def _indices(config: CudaConfig, q: int, axes: str, component: tuple[str, str]) -> list[str]:
    memory, n, (kind, number) = config.memory, Extents(Traced("n.x"), Traced("n.y"), Traced("n.z"), q), component
    along = {"x": memory.along_x, "y": memory.along_y, "z": memory.along_z}
    parts = {f"Index along_{a}(const Index {a}": along[a](Traced(a), n) for a in axes}
    parts[f"{kind} component(const {kind} {number}"] = memory.component(Traced(number), n)
    return [f"{_HEAD} {name}, const Extents& n) {{ return {value}; }}" for name, value in parts.items()]


def index_type(case: Case, config: CudaConfig) -> str:
    """Return the type of the index of a cell within a component: 32 bits unless more are needed or configured."""
    return integer(config.index_bits == 0 and index_fits(case, config, 32))


def integer(narrow: bool) -> str:
    """Return the type of indices that 32 bits hold (narrow), or do not."""
    return "unsigned int" if narrow else "unsigned long long"


def max_elements(case: Case, config: CudaConfig) -> int | None:
    """Return the elements of the longest buffer that the text for a case may be used with; None: no limit (64 bits).

    A 32-bit index counts the cells of one array. That is a whole buffer if cells lie q apart, one of q arrays if each
    component has its own, one of fewer if components share arrays.
    """
    if index_type(case, config) != "unsigned int":
        return None
    return 2**32 * arrays(config.memory, case.stencil.q)
