"""The exchange between parts: knobs of a decomposition besides its cut, their rules, and planes of its launches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast, get_args

from lbmtune.catalogue.backend_records import CudaConfig
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.knobs import Acts, converted, knob, own_knobs
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.parts import Decomposition, Part
from lbmtune.errors import InputError, unknown

Transport = Literal["copy", "pack", "host", "nccl"]
Overlap = Literal["none", "edge-first", "edge-priority"]
Launching = Literal["call", "graph"]
_ALONG_Z = ("direct", "column", "temporal-blocking")
"""Families whose loops are over planes of a box."""
_UP_Z = ("temporal-blocking",)
"""Families of which a launch says how many planes a block goes through."""


@dataclass(frozen=True)
class Coupling:
    """The knobs of the exchange between the parts of a cut."""

    transport: Transport = knob(
        "copy",
        "way of what crosses a face: copies between devices, a kernel that stores into the memory of the other device, "
        "copies to the host and back, or messages of NCCL between processes",
        allowed=get_args(Transport),
        search=("copy", "pack"),
    )
    overlap: Overlap = knob(
        "edge-priority",
        "order of launches: one of all planes before the exchange, edges before the interior and the exchange, or all "
        "at once with the edges in a queue of higher priority",
        allowed=get_args(Overlap),
        search=get_args(Overlap),
    )
    edge_planes: int = knob(
        0,
        "planes of an edge; 0: those of a thread block, a quarter of the part at most, and as many as the halo has "
        "layers at least",
        unit="planes",
        search=(0, 8, 32, 64, 128),
        acts=(Acts(on="overlap", values=("none",), unless=True, because="one launch updates all planes"),),
    )
    launching: Launching = knob(
        "graph",
        "launches and copies one by one, or as a graph of all devices",
        allowed=get_args(Launching),
        search=get_args(Launching),
    )
    block_planes: int = knob(
        0,
        "planes that a thread block goes through at most, of families whose blocks go up along z; 0: those of the "
        "kernel, and no more than an edge has",
        unit="planes",
        search=(0, 16, 32, 64),
    )

    def __str__(self) -> str:
        """Return the values that are not the default, as 'transport=pack,overlap=none'."""
        given = ((one, getattr(self, one.name)) for one in own_knobs(Coupling))
        return ",".join(f"{one.name}={value}" for one, value in given if value != one.default)


def parse_coupling(text: str) -> Coupling:
    """Return the coupling of a text such as 'transport=pack,overlap=none'. Raises InputError."""
    known, given = {one.name: one for one in own_knobs(Coupling)}, dict[str, Any]()
    for pair in filter(None, map(str.strip, text.split(","))):
        name, _, value = pair.partition("=")
        if name not in known:
            raise unknown("knob of a decomposition", name, known)
        one, given[name] = known[name], converted(known[name], value)
        if (one.allowed and given[name] not in one.allowed) or (not one.allowed and given[name] < one.least):
            raise InputError(f"{name}={value} is not supported for a decomposition ({one.use}).")
    return replace(Coupling(), **given)


def takes_planes(case: Case, config: KernelConfig) -> bool:
    """Return whether there is a kernel of a configuration that updates some planes (`render_on_planes`)."""
    if BACKENDS[config.backend].shares_host or config.family not in _ALONG_Z or case.stencil.dimensions < 3:
        return False
    if config.family == "temporal-blocking":
        return True
    from lbmtune.catalogue.boundaries.cell_flags import by_words  # here: others need no arrays

    refreshed = getattr(config, "wrap", "") == "ghost" and not by_words(case, config)
    return not refreshed and not config.propagation.phase(case.stencil, 0).blockwise


class Bands(NamedTuple):
    """The planes of the launches of a part, in its storage: those of its edges, and the ones between them."""

    edges: tuple[range, ...]
    inner: range


def bands(found: Decomposition, part: Part, coupling: Coupling) -> Bands:
    """Return the planes of the launches of a part along z; without overlap there are no edges."""
    first = part.low[2]
    last = first + part.box.extents[2]
    if coupling.overlap == "none":
        return Bands((), range(first, last))
    edge = edge_planes(found, part, coupling)
    low, high = (edge if layers else 0 for layers in (part.low[2], part.high[2]))
    edges = (range(first, first + low), range(last - high, last))
    return Bands(tuple(filter(None, edges)), range(first + low, last - high))


def stage_planes(found: Decomposition, part: Part, later: int) -> range:
    """Return the planes of a launch of a part that computes what so many later launches before the exchange read."""
    first, more = part.low[2], later * found.config.fused_steps
    low, high = (more if layers else 0 for layers in (part.low[2], part.high[2]))
    return range(first - low, first + part.box.extents[2] + high)


def edge_planes(found: Decomposition, part: Part, coupling: Coupling) -> int:
    """Return the planes of an edge of a part."""
    return coupling.edge_planes or block_planes(found, part, coupling)


def block_planes(found: Decomposition, part: Part, coupling: Coupling) -> int:
    """Return the planes that a thread block goes through at most.

    Blocks that go up along z compute planes before and after their own ones redundantly. With edges as thick as a block
    there are as many blocks as without edges. Blocks of the interior are no longer than those of edges: the last ones
    to start would run alone, and those of edges wait for them.
    """
    shared, config = BACKENDS[found.config.backend].shares_host, cast("CudaConfig", found.config)
    block = coupling.block_planes or (1 if shared else config.block_cells(found.case.stencil)[2])
    if coupling.overlap == "none" or coupling.edge_planes:
        return block
    return max(found.depth, min(block, part.box.extents[2] // 4))


def sets_block_planes(config: KernelConfig) -> bool:
    """Return whether launches of a configuration say how many planes a block goes through."""
    return config.family in _UP_Z


def coupling_refusal(
    found: Decomposition, coupling: Coupling, *, planes: bool, reached: bool, apart: bool = False
) -> str | None:
    """Return why parts cannot exchange so, or None.

    planes: whether there is a kernel that updates some planes; reached: whether each device reaches the memory of those
    that it sends to; apart: whether each part has a process of its own.
    """
    what = f"overlap={coupling.overlap} is not supported"
    if reason := _transport_refusal(found, coupling.transport, reached=reached, apart=apart):
        return f"transport={coupling.transport} is not supported {reason}"
    if coupling.block_planes and not (planes and sets_block_planes(found.config)):
        return (
            f"block_planes={coupling.block_planes} is not supported for family={found.config.family} (use 0): its "
            "blocks have the planes that the kernel gives them"
        )
    if coupling.overlap == "none":
        if coupling.edge_planes:
            return f"edge_planes={coupling.edge_planes} is not supported for overlap=none (use 0): it has no edges"
        return None
    if not planes:
        return f"{what} for family={found.config.family} (use none): its kernel has no launches on some planes"
    if any(part.low[axis] or part.high[axis] for part in found.parts for axis in (0, 1)):
        return f"{what} for cut={found.cut} (use none, or slabs along z): edges are planes across z"
    return _too_thin(found, coupling)


def _transport_refusal(found: Decomposition, transport: Transport, *, reached: bool, apart: bool) -> str | None:
    if apart:
        return None if transport == "nccl" else "between processes (use nccl): none has the memory of the others"
    if transport == "nccl":
        return "for parts of one process (use copy or pack): NCCL sends from process to process"
    if transport != "host" and not reached:
        return "on these devices (use host): they have no access to the memory of each other"
    if transport == "pack" and BACKENDS[found.config.backend].shares_host:
        return "for backend=cpu (use copy): all parts lie in one memory"
    return None


def _too_thin(found: Decomposition, coupling: Coupling) -> str | None:
    for part in found.parts:
        edge = edge_planes(found, part, coupling)
        if edge < found.depth:
            return (
                f"edge_planes={edge} is not supported for a halo of {found.depth} layers (use 0, or {found.depth} or "
                "more): all that is sent comes from edges"
            )
        if len(bands(found, part, coupling).inner) < 1:
            return (
                f"edge_planes={edge} is not supported for cut={found.cut} (use fewer planes, or parts): part "
                f"{part.number} has {part.box.extents[2]} planes, which leaves none between its edges"
            )
    return None
