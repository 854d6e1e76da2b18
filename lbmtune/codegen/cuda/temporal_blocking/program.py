"""The CUDA program of a kernel whose blocks march over tiles, of one time step or several per launch."""

from __future__ import annotations

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import (
    before_tile,
    ends,
    planes_together,
    sector_cells,
    shared_bytes,
    tile,
)
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage import Domain, frame, stored_extents
from lbmtune.codegen.cuda.shared import flags
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.cuda.shared.program import bounds, compiler_options, real, stored_format
from lbmtune.codegen.cuda.temporal_blocking import bulk_copies as march_bulk
from lbmtune.codegen.cuda.temporal_blocking import links as march_links
from lbmtune.codegen.cuda.temporal_blocking import moments, populations
from lbmtune.codegen.cuda.temporal_blocking import walls as march_walls
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.trace import Traced

_FILE, _FLAT = "cuda/march.cu", march_walls.FLAT
_EXTENTS = ("nx", "ny", "nz")
_HEAD = "__device__ __forceinline__"
_EVEN = "const int begin = blockIdx.z * depth, end = least(begin + depth, nz), planes"
_FALLING = """const int chunks = gridDim.z;
    const auto bottom = [&](const int k) { return least(depth * k * (2 * chunks - k) / chunks, nz); };
    const int begin = bottom(blockIdx.z), end = bottom(blockIdx.z + 1), planes"""
"""Which planes a block has: as many as others, or fewer than those before it."""
_BY_L1 = """        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place + k),"""
_PAST_L1 = (
    """        // what is on its way through L1 has to fit in there, and walls leave little of it to the cache
        if (ONCE == 16) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place + k),
                         "l"(static_cast<const char*>(from) + k)
                         : "memory");
            continue;
        }
"""
    + _BY_L1
)
"""How a plane gets into shared memory. Past L1 goes what has 16 bytes alone."""


def render_march(case: Case, config: CudaConfig) -> Program:
    """The program of a legal configuration: one launch for `steps` time steps."""
    launch = Launch(
        "step_0",
        ("f0", "f1", *flags.of_first_step(case, config), *_EXTENTS, *_scalars(case, config)),
        block=config.block,
        covers=config.block_cells(case.stencil),
        ends=(ends(case, config), 0, 0),
        shared_bytes=shared_bytes(case, config),
    )
    return Program(
        "cuda", case, config, _source(case, config), compiler_options(config), ((launch,),), steps=config.steps
    )


def _source(case: Case, config: CudaConfig) -> str:
    regions = {
        "title": f"// {case.lattice} {case.collision}, {case.flow}\n// {config.brief}\n",
        "constants": _constants(case, config),
        "storage": stored_format(config),
        "layout": _layout(case, config),
        "stage": _stage(case, config),
        "walls": march_walls.functions(case, config) if cuts(case) else "",
        "apart": _apart(case, config),
        "entry": _entry(case, config),
    }
    text = fill(_FILE, regions) + "\n"
    if config.in_bulk:
        text = march_bulk.without_copies_of_lanes(text)
    if not cuts(case) or case.stencil.dimensions == 2:
        return text
    assert _BY_L1 in text
    return text.replace(_BY_L1, _PAST_L1)


def _apart(case: Case, config: CudaConfig) -> str:
    """Warps that wait for one another, and planes that they wait for."""
    neighbours = [fill("cuda/march_neighbours.cu", {})] if config.barrier == "neighbours" else []
    return "\n".join((*neighbours, *([march_bulk.functions(case, config)] if config.in_bulk else [])))


def _stage(case: Case, config: CudaConfig) -> str:
    if config.of_moments:
        return moments.functions(case.stencil, case.forced, _split(case), case.relaxes)
    return populations.functions(case)


def _entry(case: Case, config: CudaConfig) -> str:
    flat = case.stencil.dimensions == 2
    file, none = (_FLAT, march_walls.NONE_FLAT) if flat else (_FILE, march_walls.NONE)
    taken = ", ".join(("m[v]" if flat else "m[r][v]", *_relaxation(case, config)))
    regions = {"signature": _signature(case, config), "relax": f"relax({taken});"}
    if flat and (complete := populations.completed(case, "m[v]", ("first_x + v", "here_y", "0"))):
        regions["relax"] = f"if (cuts) {complete}\n{regions['relax']}"
    regions |= {} if flat else {**_meeting(case, config), **_ahead(case, config)}
    if not flat:
        regions["stages"] = march_walls.stages(file, regions)
    walls = march_walls.parts(case, config, file, regions) if cuts(case) else none
    entry = fill(file, {**regions, **walls}, inside="entry")
    if cuts(case) and not flat:
        entry = march_walls.with_little_room(entry)
    if config.in_bulk:
        entry = march_bulk.entry(entry, case, config)
    return entry if config.chunks == "even" else _falling(entry)


def _ahead(case: Case, config: CudaConfig) -> dict[str, str]:
    """When the next plane is asked for: early where its values are many, after an exchange where they are few."""
    late = config.of_moments or cuts(case)
    return {
        "early": "" if late else fill(_FILE, {}, inside="early"),
        "ahead": fill(_FILE, {}, inside="ahead") if late else "",
    }


def _falling(entry: str) -> str:
    """An entry whose blocks take fewer and fewer planes, in the order in which they begin."""
    assert _EVEN in entry
    return entry.replace(_EVEN, _FALLING)


def _meeting(case: Case, config: CudaConfig) -> dict[str, str]:
    """How warps wait for what others send."""
    if config.barrier == "block" and cuts(case):
        return {"flags": "", "meet": "            meet_block();"}
    if config.barrier == "block":
        return {"flags": "", "meet": fill(_FILE, {}, inside="meet")}
    met = "            meet_neighbours(flags, lane, warp, plane, t);"
    return {"flags": fill(_FILE, {}, inside="flags"), "meet": met}


def _split(case: Case) -> bool:
    """Whether sums of what returns along z, and with its square, wait in registers, each of its own."""
    return cuts(case) and case.stencil.dimensions == 2


def _relaxation(case: Case, config: CudaConfig) -> tuple[str, ...]:
    """Launch arguments that relaxation uses."""
    if config.of_moments:
        return moments.scalars(case.stencil, case.forced, case.relaxes)
    return populations.scalars(case)


def _scalars(case: Case, config: CudaConfig) -> tuple[str, ...]:
    """Launch arguments that relaxation and walls use."""
    faces = () if config.of_moments else populations.face_scalars(case)
    return tuple(dict.fromkeys((*_relaxation(case, config), *march_links.scalars(case), *faces)))


def _constants(case: Case, config: CudaConfig) -> str:
    _, warps, _ = config.block
    return "\n".join(
        (
            f"typedef {real(config.compute)} Real;",
            f"typedef {'unsigned int' if _narrow(case, config) else 'unsigned long long'} Index;",
            f"constexpr int STEPS = {config.steps};",
            f"constexpr int CELLS = {config.cells_per_thread}, ROWS = {config.rows}, WARPS = {warps};",
            f"constexpr int PACK = {config.pack};",
            f"constexpr int SECTOR = {sector_cells(config)};",
            f"constexpr int PREFETCH = {2 if config.planes_on_chip else config.prefetch};",
            f"constexpr Real unit = {config.unit:.0f};",
            f"constexpr int TOGETHER = {planes_together(case, config)};",
            f"constexpr bool BEYOND = {'true' if config.beyond else 'false'};",
            f"constexpr bool SHELVED = {'true' if config.pending == 'shared' else 'false'};",
            f"constexpr bool WALLED_X = {'false' if case.faces[0] == 'periodic' else 'true'};",
            f"constexpr int WIDTH = {tile(case.stencil, config)[0]}, BEFORE = {before_tile(case, config)};",
            _lengths(case, config),
        )
    )


def _lengths(case: Case, config: CudaConfig) -> str:
    return moments.constants(case.stencil, _split(case)) if config.of_moments else populations.constants(case)


def max_elements(case: Case, config: CudaConfig) -> int | None:
    """Longest buffer that the text made for the case may be used with; None where its indices do not run out."""
    return 2**32 if _narrow(case, config) else None


def _narrow(case: Case, config: CudaConfig) -> bool:
    """Whether 32 bits hold the index of every element."""
    return int(config.memory.length(stored_extents(case, config))) < 2**32


def _layout(case: Case, config: CudaConfig) -> str:
    extents = frame(case.stencil, config).extents(Domain(Traced("nx"), Traced("ny"), Traced("nz")))
    n = extents._replace(x=Traced("n.x"), y=Traced("n.y"), z=Traced("n.z"))
    return "\n".join(
        (
            f"{_HEAD} Extents storage_extents(const Index nx, const Index ny, const Index nz) {{",
            f"    return {{{extents.x}, {extents.y}, {extents.z}}};",
            "}",
            *(
                f"{_HEAD} Index {head}, const Extents& n) {{ return {value}; }}"
                for head, value in {
                    "along_y(const Index y": config.memory.along_y(Traced("y"), n),
                    "along_z(const Index z": config.memory.along_z(Traced("z"), n),
                    "component(const Index first": config.memory.component(Traced("first"), n),
                }.items()
            ),
        )
    )


def _signature(case: Case, config: CudaConfig) -> str:
    scalars = flags.parameters(flags.of_first_step(case, config)) + [f"const int {n}" for n in _EXTENTS]
    scalars += [f"const Real {n}" for n in _scalars(case, config)]
    buffers = "const Stored* __restrict__ source, Stored* __restrict__ target"
    return f'extern "C" __global__ void {bounds(config)}step_0(\n    {buffers}, {", ".join(scalars)})'
