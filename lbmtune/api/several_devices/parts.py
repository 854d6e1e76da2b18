"""One kernel on several devices of this machine: proof against one device, and times beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

from lbmtune.api.configs import Config, legal_config
from lbmtune.api.predicted.decompositions import decompose
from lbmtune.api.predicted.parallel import with_links
from lbmtune.api.several_devices.outcomes import Proof, Raced
from lbmtune.backend.cuda.nccl import joined
from lbmtune.backend.protocol import (
    Binary,
    Compiler,
    DeviceFaultError,
    OutOfMemoryError,
    PeerDevice,
    TooManyResourcesError,
)
from lbmtune.backend.ranks import Rank
from lbmtune.backend.registry import backend_of, compiler_for, open_device
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render, render_on_planes
from lbmtune.decomposition.coupling import Coupling, Transport, coupling_refusal, parse_coupling
from lbmtune.decomposition.cuts import Cut, Grid, parse_cut
from lbmtune.decomposition.parts import Decomposition, decomposed
from lbmtune.decomposition.rules import refusal
from lbmtune.decomposition.transfers import sent_bytes
from lbmtune.errors import InputError, NothingValidError
from lbmtune.measure.parts.proof import Agreement, agreement
from lbmtune.measure.parts.race import race
from lbmtune.model.exchange import OVERLAPS, Period, period
from lbmtune.model.machine.description import Machine
from lbmtune.model.messages import known_transport
from lbmtune.runtime.parts.coupled import CoupledSimulation
from lbmtune.runtime.parts.ranks import RankedSimulation
from lbmtune.runtime.simulation import Simulation
from lbmtune.search.lock import device_locks

_MOST_PLANES = 512
"""Planes along an axis beyond the least ones within which a small domain is looked for."""


def prove_parts(
    case: Case,
    config: Config,
    devices: Sequence[str],
    cut: str = "",
    coupling: str | None = None,
    *,
    depth: int | None = None,
    rank: Rank | None = None,
) -> Proof:
    """Compare the state of parts with that of one device, on a small domain from a random state.

    devices: one for each part, the same one several times for several parts; cut: as in `decompose`; coupling:
    'transport=pack,overlap=none'; None: each legal one; depth: layers of the halo, None: as few as serve; rank: of this
    process, if each part has one: then all of them call this, and devices are that of this process for each part.
    Halos are poisoned before each exchange. Raises InputError, NothingValidError if a device fails,
    DeviceUnavailableError.
    """
    with opened_devices(devices) as opened, failures():
        one = _legal(case, config, opened[0], devices[0])
        couplings = _couplings(coupling, rank)
        chosen, small = small_case(case, one, cut, opened, max(each.edge_planes for each in couplings), depth)
        pair = Pair(small, small, one, chosen, opened, depth=depth, rank=rank)
        found, refused = dict[Coupling, Agreement](), dict[Coupling, str]()
        for each in couplings:
            try:
                found[each] = agreement(*pair.made(each, poisons=True))
            except InputError as error:
                refused[each] = str(error)
        if not found:
            raise InputError(next(iter(refused.values())))
        return Proof(cut=str(chosen), domain=small.domain, found=found, refused=refused)


def race_parts(
    case: Case,
    config: Config,
    devices: Sequence[str],
    cut: str = "",
    coupling: str | None = None,
    *,
    weak: bool = False,
    machine: Machine | None = None,
    repeats: int = 5,
    depth: int | None = None,
    rank: Rank | None = None,
) -> Raced:
    """Time parts on several devices beside one device, in turns.

    weak: each device has the domain of the case; otherwise all share it. machine: for the prediction. devices, cut,
    coupling, depth, rank, errors: as in `prove_parts`, which proves what is timed here.
    """
    with opened_devices(devices) as opened, failures():
        one = _legal(case, config, opened[0], devices[0])
        chosen = _cut(case, one, cut, opened)
        whole = grown(case, chosen) if weak else case
        check_cut(whole, one, chosen, opened[0].limits, depth)
        pair = Pair(case, whole, one, chosen, opened, depth=depth, rank=rank)
        couplings = _couplings(coupling, rank)
        legal = [each for each in couplings if not pair.refused(each)]
        if not legal:
            raise InputError(f"{pair.refused(couplings[0])}.")
        alone, parts = pair.made(legal[0], poisons=False)
        times = race(alone, parts, legal, repeats=repeats)
        return Raced(
            alone=case,
            case=whole,
            cut=str(chosen),
            devices=tuple(devices),
            sent_bytes=max(sent_bytes(pair.found).values()),
            times=times,
            predicted=predicted_periods(pair.found, machine, legal),
        )


class Pair:
    """One device and the parts on all of them, for any coupling.

    rank: of this process, if each part has one.
    """

    def __init__(
        self,
        alone: Case,
        whole: Case,
        config: KernelConfig,
        cut: Cut,
        devices: Sequence[PeerDevice],
        *,
        planes: bool = True,
        compiler: Compiler | None = None,
        depth: int | None = None,
        rank: Rank | None = None,
    ) -> None:
        """Compile both. planes: whether a kernel that takes planes leaves out the halo, if there is one.

        compiler: None: that of the devices (`remembering`); depth: layers of the halo, None: as few as serve.
        """
        self._rank, self._group = rank, joined(rank) if rank else None
        self._devices, self._alone = devices, render(alone, config)
        program = render(whole, config)
        self._program = (render_on_planes(program) if planes else None) or program
        self._planes = self._program is not program
        self.found = decomposed(whole, config, cut, depth)
        self._compiler: Compiler = compiler or compiler_for(devices[0].environment)
        self._binaries = [self._compiler(one) for one in (self._alone, self._program)]

    def refused(self, coupling: Coupling) -> str | None:
        """Return why the parts cannot exchange so, or None."""
        pairs = ((face.source, face.target) for face in self.found.faces)
        owners = [self._devices[part.device] for part in self.found.parts]
        reached = all(owners[source].reaches(owners[target]) for source, target in pairs)
        apart = self._rank is not None
        return coupling_refusal(self.found, coupling, planes=self._planes, reached=reached, apart=apart)

    def made(self, coupling: Coupling, *, poisons: bool) -> tuple[Simulation, CoupledSimulation]:
        """Return both at a poisoned state. Raises InputError."""
        first, second = self._binaries
        with self._devices[0].current():
            alone = Simulation(self._alone, first, self._devices[0])
        program, found, compiler = self._program, self.found, self._compiler
        if self._rank is None or self._group is None:
            return alone, CoupledSimulation(program, second, self._devices, found, coupling, compiler, poisons=poisons)
        device, number, group = self._devices[0], self._rank.number, self._group
        return alone, RankedSimulation(
            program, second, device, found, number, group, coupling, compiler, poisons=poisons
        )


def remembering(devices: Sequence[PeerDevice]) -> Compiler:
    """Return a compiler for devices of one kind that makes each text once: pairs of a kernel share it."""
    compiler, known = compiler_for(devices[0].environment), dict[str, Binary]()

    def compiled(program: Program) -> Binary:
        if program.digest not in known:
            known[program.digest] = compiler(program)
        return known[program.digest]

    return compiled


@contextmanager
def opened_devices(devices: Sequence[str]) -> Iterator[list[Any]]:
    """Open and lock devices, each once. Raises InputError if one is in use."""
    opened = same_kind(devices)
    with device_locks({id(one): one.environment for one in opened}.values()):
        yield opened


def same_kind(devices: Sequence[str]) -> list[Any]:
    """Return opened devices, each opened once. Raises InputError if they are not of one kind."""
    if len({backend_of(name) for name in devices}) > 1:
        raise InputError(f"devices={','.join(devices)} is not supported (use GPUs alone): they take different kernels.")
    known: dict[str, Any] = {name: open_device(name) for name in dict.fromkeys(devices)}
    kinds = {device.environment.device for device in known.values()}
    if len(kinds) > 1:
        raise InputError(
            f"devices={','.join(devices)} is not supported (use devices of one kind): "
            f"{' and '.join(sorted(kinds))} take different times for equal parts."
        )
    return [known[name] for name in devices]


@contextmanager
def failures() -> Iterator[None]:
    """Turn what a device raises into NothingValidError, with what to do."""
    try:
        yield
    except (OutOfMemoryError, TooManyResourcesError) as error:
        raise NothingValidError(f"the parts do not fit: {error}; choose a smaller domain.") from error
    except DeviceFaultError as error:
        raise NothingValidError(f"a device failed: {error}; nothing that ran since is proved.") from error


def _legal(case: Case, config: Config, device: PeerDevice, name: str) -> KernelConfig:
    with device.current():
        return legal_config(config, case, device.limits, backend_of(name))


def _couplings(text: str | None, rank: Rank | None) -> list[Coupling]:
    if text is not None:
        return [parse_coupling(text)]
    ways: list[Transport] = ["copy", "pack", "host"] if rank is None else ["nccl"]
    return [Coupling(transport, overlap) for transport, overlap in product(ways, OVERLAPS)]


def _cut(case: Case, config: KernelConfig, cut: str, devices: Sequence[PeerDevice]) -> Cut:
    if cut:
        return parse_cut(cut, len(devices))
    return decompose(case, config, "", len(devices), limits=devices[0].limits).decomposition.cut


def check_cut(case: Case, config: KernelConfig, cut: Cut, limits: Limits, depth: int | None = None) -> None:
    """Raise InputError if a kernel cannot run on the parts of a cut. limits: of each device."""
    if reason := refusal(case, config, cut, limits, depth):
        raise InputError(f"{reason}.")


def grown(case: Case, cut: Cut) -> Case:
    """Return the case with its domain once for each part. Raises InputError."""
    if not isinstance(cut, Grid) or case.geometry:
        raise InputError(f"cut={cut} is not supported for equal domains (leave --weak out): its parts are not alike.")
    x, y, z = (cells * parts for cells, parts in zip(case.domain, cut.along, strict=True))
    return replace(case, domain=(x, y, z))


def small_case(
    case: Case,
    config: KernelConfig,
    cut: str,
    devices: Sequence[PeerDevice],
    edge: int = 0,
    depth: int | None = None,
) -> tuple[Cut, Case]:
    """Return the cut, and the case on a small domain whose parts are legal. Raises InputError if there is none.

    edge: planes of an edge, between which a plane is left; 0: they follow from the part; depth: layers of the halo.
    """
    chosen = _cut(case, config, cut, devices)
    along = chosen.along if isinstance(chosen, Grid) else (1, 1, chosen.parts)
    least = config.awkward_domain(case)
    axis, thick = max(range(3), key=lambda axis: (along[axis], axis)), 2 * max(config.fused_steps, edge, depth or 0) + 1
    x, y, z = (n if parts == 1 else max(n, thick) * parts for n, parts in zip(least, along, strict=True))
    for more in range(_MOST_PLANES):
        domain = [n + (more if axis == a else 0) for a, n in enumerate((x, y, z))]
        small = replace(case, domain=(domain[0], domain[1], domain[2]))
        if not refusal(small, config, chosen, devices[0].limits, depth):
            return chosen, small
    reason = refusal(case, config, chosen, devices[0].limits, depth)
    raise InputError(f"{reason or f'no domain up to {extents(small.domain)} has parts that can be compared'}.")


def predicted_periods(
    found: Decomposition, machine: Machine | None, couplings: Sequence[Coupling]
) -> dict[Coupling, Period]:
    """Return what the model predicts for couplings whose transports were measured; nothing if it knows no links."""
    known = with_links(machine) if machine else None
    if known is None or known.links is None:
        return {}
    return {one: period(found, known, one) for one in couplings if known_transport(known.links, one.transport)}
