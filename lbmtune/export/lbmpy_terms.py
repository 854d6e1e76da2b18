"""The terms of lbmpy for the parts of a kernel, and the parts that lbmpy does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.family_knobs import defaults
from lbmtune.catalogue.knobs import own_knobs
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import omega_minus
from lbmtune.printable import plain

PATTERNS = {
    "pull": "pull",
    "push": "push",
    "aa": "aa",
    "esoteric-twist": "esotwist",
    "esoteric-pull": "esopull",
}
"""Streaming patterns by the scheme that they are."""
_IN_PLACE = "esopull"
"""The pattern that stands for another scheme in place."""
LAYOUTS = {"soa": "fzyx", "aos": "zyxf"}
"""Layouts by ours."""
_NEAR_LAYOUT = "fzyx"
DTYPES = {"fp32": "float32", "fp64": "float64"}
"""Types of numbers by the format of storage or of arithmetic."""
_KNOWN = {"backend", "family", "scheme", "layout", "storage", "compute", "threads"}
_OF_CUDA, _OF_CPU = {"block"}, {"vector_bits", "streaming_stores"}
"""Knobs that have a counterpart, or of which `_lacks` speaks; those of a backend."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """A kernel in the terms of lbmpy.

    method: further arguments of LBMConfig, names of lbmpy as text; lacks: what has no counterpart, each in words;
    simd: bits of a vector, 0: as a compiler makes them; block: threads along x, y and z on a GPU.
    """

    stencil: str
    method: dict[str, Any]
    pattern: str
    layout: str
    stored: str
    computed: str
    on_gpu: bool
    block: tuple[int, int, int]
    threads: int
    simd: int
    streaming: bool
    lacks: tuple[str, ...]


def terms(case: Case, config: KernelConfig) -> Terms:
    """Return a kernel in the terms of lbmpy."""
    flat, on_gpu = config.flat(), not BACKENDS[config.backend].shares_host
    layout = LAYOUTS.get(str(flat.get("layout")), _NEAR_LAYOUT)
    vectorised = not on_gpu and layout == _NEAR_LAYOUT
    block = str(flat.get("block", "128x1x1")) if on_gpu else "128x1x1"
    x, y, z = (int(one) for one in block.split("x"))
    return Terms(
        stencil=case.lattice.upper(),
        method=method(case),
        pattern=PATTERNS.get(config.scheme, _IN_PLACE if config.propagation.in_place else "pull"),
        layout=layout,
        stored=DTYPES.get(config.storage, DTYPES["fp32"]),
        computed=DTYPES[config.compute],
        on_gpu=on_gpu,
        block=(x, y, z),
        threads=int(threads) if isinstance(threads := flat.get("threads"), int) else 0,
        simd=min(int(flat.get("vector_bits", 0)), 512) if vectorised else 0,
        streaming=bool(flat.get("streaming_stores", 0)),
        lacks=tuple(_lacks(case, config)),
    )


def method(case: Case) -> dict[str, Any]:
    """Return the arguments of LBMConfig that make a collision operator, with names of lbmpy as text."""
    omega = case.relaxation_rate
    found: dict[str, Any] = {"method": f"Method.{_METHODS[case.collision]}", "compressible": True}
    if case.collision == "trt":
        found["relaxation_rates"] = (omega, omega_minus(case))
    elif case.collision == "regularised":  # shear, bulk, and all orders above
        found["relaxation_rates"] = (omega, omega, *(1.0,) * _HIGHER_ORDERS)
    else:
        found["relaxation_rate"] = omega
    if case.collision in _OF_SECOND_ORDER:
        found["continuous_equilibrium"] = False
    if case.collision == "cumulant":
        found["galilean_correction"] = True
    if case.forced and case.stencil.dimensions == 3:
        found |= {"force": case.force, "force_model": "ForceModel.GUO"}
    return found


_METHODS: Mapping[str, str] = {
    "bgk": "SRT",
    "trt": "TRT",
    "regularised": "MRT",
    "mrt": "CENTRAL_MOMENT",
    "cumulant": "CUMULANT",
}
_HIGHER_ORDERS = 4
"""Orders of moments above the second that lattices have at most."""
_OF_SECOND_ORDER = ("bgk", "trt", "regularised")
"""Collisions whose equilibrium is the polynomial of second order, on all lattices."""
_SHIFTED_FORCE = ("mrt", "cumulant")
"""Collisions whose force lbmpy adds otherwise at second order."""


def _lacks(case: Case, config: KernelConfig) -> Iterator[str]:
    """Yield what has no counterpart."""
    yield from _of_case(case)
    if config.family != "direct":
        yield f"family={config.family} ({config.title}): one step per launch, all cells of the box"
    if config.of_moments:
        yield "representation=moments: cells keep populations"
    if config.scheme not in PATTERNS:
        yield f"scheme={config.scheme}"
    if config.layout.name not in LAYOUTS:
        yield f"layout={config.layout.name}: arrays of structures (zyxf) and structures of arrays (fzyx) alone"
    if config.storage not in DTYPES:
        yield f"storage={config.storage}: populations are stored in single precision"
    known = _KNOWN | (_OF_CPU if BACKENDS[config.backend].shares_host else _OF_CUDA)
    told = known | {"representation", *_layout_knobs(config)}
    usual = defaults(type(config))
    for name, value in config.flat().items():
        if name not in told and usual.get(name) != value:
            yield f"{name}={value}"


def _layout_knobs(config: KernelConfig) -> set[str]:
    """Return the knobs of a layout that is told of already."""
    return set() if config.layout.name in LAYOUTS else {one.name for one in own_knobs(type(config.layout))}


def _of_case(case: Case) -> Iterator[str]:
    if any(face != "periodic" for face in case.faces) or case.patches:
        yield "faces and patches: add LatticeBoltzmannBoundaryHandling with NoSlip, UBB or others of lbmpy.boundaries"
    if case.geometry:
        yield f"geometry={plain(case.geometry)}: mark its cells with NoSlip in LatticeBoltzmannBoundaryHandling"
    if case.forced and case.stencil.dimensions == 2:
        yield "the body force: lbmpy 2.0 makes no such kernel in two dimensions"
    elif case.forced and case.collision in _SHIFTED_FORCE:
        yield f"the body force of collision={case.collision}: Guo's, which differs at second order"


def in_python(value: object) -> str:
    """Return the value of an argument of LBMConfig as Python has it."""
    return value if isinstance(value, str) else repr(value)


def as_data(found: Terms) -> dict[str, Any]:
    """Return the terms as data: what LBMConfig, LBMOptimisation, CreateKernelConfig and arrays are given."""
    kernel: dict[str, Any] = {"target": "CUDA" if found.on_gpu else "CPU", "default_dtype": found.computed}
    if found.on_gpu:
        kernel["gpu"] = {"default_block_size": found.block}
    else:
        vectors = {"lanes_bits": found.simd, "use_nontemporal_stores": found.streaming}
        kernel["cpu"] = {"openmp": {"num_threads": found.threads}, "vectorize": vectors}
    return {
        "LBMConfig": {"stencil": f"Stencil.{found.stencil}", **found.method, "streaming_pattern": found.pattern},
        "LBMOptimisation": {"field_layout": found.layout},
        "CreateKernelConfig": kernel,
        "field": {"layout": found.layout, "dtype": found.stored, "ghost_layers": 1},
        "no_counterpart": found.lacks,
    }
