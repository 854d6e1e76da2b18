"""Entries that leave density and velocity besides advancing a step, after de Oliveira, Lugarini, Franco 2019."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.codegen.cuda.shared import access, physics
from lbmtune.codegen.cuda.shared import program as plain
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.passes import Pass, passes_of
from lbmtune.codegen.program import MACROSCOPICS, Launch, Program

_FILE = "cuda/macroscopics.cu"


def with_macroscopics(program: Program) -> Program:
    """The program with an entry for each parity that also writes rho and u of the state before its step.

    They come in four arrays of nx * ny * nz in the compute precision. For kernels whose threads update cells of a
    row: no marching threads.
    """
    case, config = program.case, program.config
    assert isinstance(config, CudaConfig)
    assert config.march == 1
    first = [passes_of(config, case.stencil, parity)[0] for parity in range(config.propagation.period)]
    entries = "\n".join(_entry(case, config, one) for one in {one.entry: one for one in first}.values())
    added = fill(_FILE, {"moments": moments_function(case), "entry": entries})
    storing = tuple(
        tuple(_storing(launch) if launch.entry == one.entry else launch for launch in launches)
        for launches, one in zip(program.period, first, strict=True)
    )
    return replace(program, source=f"{program.source}{added}\n", with_macroscopics=storing)


def moments_function(case: Case) -> str:
    """The device function that sums the moments of cell v; half the body force belongs to the momentum (Guo)."""
    velocities, forces = case.stencil.velocities, _forces(case)
    takes = "".join(f", const Real {force}" for force in forces)
    head = "__device__ __forceinline__ void moments("
    lines = [f"{head}const Real (&f)[Q][CELLS], const int v, Real (&m)[4][CELLS]{takes}) {{"]
    rho = " + ".join(f"f[{i}][v]" for i in range(case.stencil.q))
    lines += [f"    const Real rho = {rho} + unit;", "    m[0][v] = rho / unit;"]
    for n, axis in enumerate("xyz"):
        terms = "".join(f" {'+' if c[n] > 0 else '-'} f[{i}][v]" for i, c in enumerate(velocities) if c[n])
        half = f" + Real(0.5) * force_{axis}" if f"force_{axis}" in forces else ""
        lines.append(f"    m[{n + 1}][v] = (Real(0){terms}{half}) / rho;")
    return "\n".join([*lines, "}"])


def _forces(case: Case) -> tuple[str, ...]:
    """Components of the force that the collision, and so the entry, takes."""
    taken = physics.collision_scalars(case.collision, case.lattice, case.forced)
    return tuple(scalar for scalar in taken if scalar.startswith("force_"))


def _entry(case: Case, config: CudaConfig, one: Pass) -> str:
    taken = ", ".join(("f", "v", *physics.collision_scalars(case.collision, case.lattice, case.forced)))
    forces = "".join(f", {force}" for force in _forces(case))
    source, target = ("populations",) * 2 if one.phase.in_place else ("source", "target")
    signature = plain.signature(case, config, one)
    collide = f"        collide({taken});\n" if one.phase.collides else ""
    return fill(
        "cuda/one_step.cu",
        {
            "signature": signature.replace(one.entry, _name(one.entry)).replace(
                "const int nx", f"Real* __restrict__ {MACROSCOPICS}, const int nx", 1
            ),
            "lane": plain.LANE,
            "rows": access.rows(case, one.phase),
            "read": f"{access.reads(case, one.phase, source)}\n    Real m[4][CELLS];",
            "call": "\n".join(
                [*physics.complete(case, words_of(case, config)), f"        moments(f, v, m{forces});\n{collide}"]
            ),
            "write": f"{access.writes(case, one.phase, target)}\n    leave(m, {MACROSCOPICS}, x, y, z, nx, ny, nz);",
        },
        inside="entry",
    )


def _name(entry: str) -> str:
    return entry.replace("step", "store")


def _storing(launch: Launch) -> Launch:
    at = launch.arguments.index("nx")
    arguments = (*launch.arguments[:at], MACROSCOPICS, *launch.arguments[at:])
    return replace(launch, entry=_name(launch.entry), arguments=arguments)
