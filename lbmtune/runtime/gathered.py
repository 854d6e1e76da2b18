"""Parts on several devices as one flow: what `Solver` asks of a simulation, with arrays of the whole domain."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from lbmtune.backend.cuda.nccl import joined
from lbmtune.backend.protocol import Binary, Compiler, PeerDevice
from lbmtune.backend.ranks import Rank
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import FIRST_PLANE, Program
from lbmtune.codegen.render import render_on_planes
from lbmtune.decomposition.choice import first_legal, legal_cuts
from lbmtune.decomposition.coupling import Coupling, parse_coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.decomposition.rules import refusal
from lbmtune.errors import InputError
from lbmtune.runtime.parts.coupled import CoupledSimulation
from lbmtune.runtime.parts.ranks import RankedSimulation

if TYPE_CHECKING:
    from lbmtune.records.best_json.document import Best

Array = Any


class Gathered(CoupledSimulation):
    """Parts whose fields are gathered on the host: all arrays are those of NumPy, of the whole domain.

    They are NaN in parts of other processes.
    """

    @property
    def xp(self) -> ModuleType:
        """Return NumPy: fields are of the whole domain, which no device has."""
        return np

    @property
    def case(self) -> Case:
        """Return the case of the whole domain."""
        return self.decomposition.case

    @property
    def program(self) -> Program:
        """Return the program of the parts."""
        return self.parts[0].program

    @property
    def steps_done(self) -> int:
        """Return the time steps since the state was set."""
        return self.parts[0].steps_done

    @property
    def steps_at_once(self) -> int:
        """Return the time steps from one exchange to the next: those of a step are multiples of it."""
        return self.decomposition.steps

    @property
    def place_text(self) -> str:
        """Return the devices and the cut in words."""
        named, found = self.devices[0].environment.device, self.decomposition
        return f"{self.device_count} x {named}, {len(found.parts)} parts, cut={found.cut}"

    def macroscopic(self) -> tuple[Array, Array]:
        """Return density (nz, ny, nx) and velocity (3, nz, ny, nx), float64, of the whole domain."""
        shape = self.case.domain[::-1]
        rho, velocity = np.full(shape, np.nan), np.full((3, *shape), np.nan)
        self.synchronize()
        for part, one in self._each():
            mine = tuple(slice(of.start, of.stop) for of in reversed(part.box.window))
            own = tuple(slice(of.start, of.stop) for of in reversed(part.local(part.box).window))
            for whole, found in zip((rho, velocity), one.macroscopic(), strict=True):
                cells = found[..., own[0], own[1], own[2]]
                whole[..., mine[0], mine[1], mine[2]] = cells if one.xp is np else one.xp.asnumpy(cells)
        return rho, velocity


class RankedFlow(RankedSimulation, Gathered):
    """The part of this process as a flow."""


def on_planes(program: Program) -> Program:
    """Return the program whose launches take planes, if there is one, else the same."""
    return render_on_planes(program) or program


def gathered(
    best: Best,
    case: Case,
    program: Program,
    binary: Binary,
    devices: Sequence[PeerDevice],
    compiler: Compiler,
    *,
    cut: str,
    coupling: str | None,
    rank: Rank | None = None,
) -> Gathered:
    """Return the parts of a case on devices, cut and coupled as asked, or as a file says. Raises InputError.

    devices: of each part; compiler: of kernels that pack; cut, coupling: as in `load`; rank: of this process, if each
    part has one.
    """
    config, recorded, limits = program.config, best.parts, devices[0].limits
    fits = recorded is not None and recorded.devices == len(devices)
    if cut or (recorded and fits):
        chosen = parse_cut(cut or (recorded.cut if recorded else ""), len(devices))
        depth = recorded.halo_layers if recorded and not cut else None
        if reason := refusal(case, config, chosen, limits, depth):
            raise InputError(f"{reason}.")
        found = decomposed(case, config, chosen, depth)
    else:
        found = legal_cuts(case, config, len(devices), limits)[0]
    owners, apart = [devices[part.device] for part in found.parts], rank is not None
    reached = all(owners[face.source].reaches(owners[face.target]) for face in found.faces)
    usual = [parse_coupling(coupling)] if coupling is not None else [*_USUAL]
    if recorded and coupling is None:
        usual.insert(0, recorded.coupling)
    legal, reason = first_legal(found, usual, planes=FIRST_PLANE in program.arguments, reached=reached, apart=apart)
    if legal is None:
        raise InputError(f"{reason}.")
    if rank is not None:
        return RankedFlow(program, binary, devices[0], found, rank.number, joined(rank), legal, compiler)
    return Gathered(program, binary, devices, found, legal, compiler)


_USUAL = (
    Coupling("pack"),
    Coupling("pack", "none"),
    Coupling("copy", "none"),
    Coupling("host"),
    Coupling("host", "none"),
    Coupling("nccl"),
    Coupling("nccl", "none"),
)
"""Couplings in the order in which they are tried: a kernel that packs serves every layout."""
