"""Entries that also store density and velocity of the state before the step (de Oliveira et al. 2019)."""

from dataclasses import replace
from typing import Any

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.codegen.cuda.shared import access, box, physics
from lbmtune.codegen.cuda.shared.ablation import WHOLE, Parts, reading, writing
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.cuda.shared.expressions import function, reals
from lbmtune.codegen.passes import Pass, passes_of
from lbmtune.codegen.program import MACROSCOPICS, Launch, Program


def with_macroscopics(program: Program, parts: Parts = WHOLE, *, planes: bool = False) -> Program:
    """Return the program with an entry for each parity that also writes rho and u of the state before its step.

    They are four arrays of nx * ny * nz in the compute precision. The program is one of the direct family.
    """
    case = program.case
    config: Any = program.config
    first = [passes_of(config, case.stencil, parity)[0] for parity in range(config.propagation.period)]
    entries = "\n".join(_entry(case, config, one, parts, planes) for one in {one.entry: one for one in first}.values())
    added = fill("direct/macroscopics.cu", {"moments": moments_function(case), "entry": entries})
    launches = tuple(
        tuple(_storing(launch) if launch.entry == one.entry else launch for launch in step)
        for step, one in zip(program.period, first, strict=True)
    )
    return replace(program, source=f"{program.source}{added}\n", with_macroscopics=launches)


def moments_function(case: Case) -> str:
    """Return the device function of the moments of cell v; half the body force belongs to the momentum (Guo)."""
    velocities, forces = case.stencil.velocities, _forces(case)
    rho = " + ".join(f"f[{i}][v]" for i in range(case.stencil.q))
    lines = [f"const Real rho = {rho} + unit;", "m[0][v] = rho / unit;"]
    for n, axis in enumerate("xyz"):
        terms = "".join(f" {'+' if c[n] > 0 else '-'} f[{i}][v]" for i, c in enumerate(velocities) if c[n])
        half = f" + Real(0.5) * force_{axis}" if f"force_{axis}" in forces else ""
        lines.append(f"m[{n + 1}][v] = (Real(0){terms}{half}) / rho;")
    takes = ("const Real (&f)[Q][CELLS]", "const int v", "Real (&m)[4][CELLS]", *reals(forces))
    return function(f"moments({', '.join(takes)})", lines)


def _forces(case: Case) -> tuple[str, ...]:
    """Return the components of the force that the collision, and so the entry, takes."""
    taken = physics.collision_scalars(case.collision, case.lattice, case.forced)
    return tuple(scalar for scalar in taken if scalar.startswith("force_"))


def _entry(case: Case, config: CudaConfig, one: Pass, parts: Parts, planes: bool) -> str:
    forces = "".join(f", {force}" for force in _forces(case))
    regions = box.entry_regions(case, config, one, planes=planes)
    collide = f"        {box.collide_call(case)}\n" if one.phase.collides else ""
    completed = physics.complete(case, words_of(case, config))
    buffer = f"Real* __restrict__ {MACROSCOPICS}"
    write = f"{regions['write']}\n    leave(m, {MACROSCOPICS}, x, y, z, nx, ny, nz);"
    regions |= {
        "signature": box.signature(case, config, one, _name(one.entry), buffer, planes=planes),
        "rows": access.rows(case, one.phase),
        "read": f"{reading(parts, regions['read'], 'x + z')}\n    Real m[4][CELLS];",
        "call": box.shifted(config, [*completed, f"        moments(f, v, m{forces});\n{collide}"]),
        "write": writing(parts, write),
    }
    return fill("direct/one_step.cu", regions, inside="entry")


def _name(entry: str) -> str:
    return f"store_{entry.removeprefix('step_')}"


def _storing(launch: Launch) -> Launch:
    at = launch.arguments.index("nx")
    arguments = (*launch.arguments[:at], MACROSCOPICS, *launch.arguments[at:])
    return replace(launch, entry=_name(launch.entry), arguments=arguments)
