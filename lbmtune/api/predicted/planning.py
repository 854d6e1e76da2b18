"""Plan memory: the largest domain of each kind of kernel, and the devices that a given domain needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from lbmtune.api.configs import fitted
from lbmtune.api.machines.devices import bounds
from lbmtune.api.machines.shipped import as_machine
from lbmtune.api.predicted.estimates import predictor
from lbmtune.backend.registry import backend_of, default_device
from lbmtune.catalogue.config import DEFAULT_FAMILY, FAMILIES, KernelConfig, Scalar, completed, from_flat, knobs_by_name
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.cuts import grids
from lbmtune.errors import InputError
from lbmtune.files.ranges import DEVICES
from lbmtune.files.studyfile import as_spec
from lbmtune.model.machine.description import Machine
from lbmtune.records.spec import Axes, StudySpec, tables

STEP = 16
"""Cells in which the extents of a largest domain grow, as in the reasons of `lbmtune explain`."""
MOST_DEVICES = int(DEVICES.high)
_ENDLESS = 2**63
_NEAR = 256
_RINGED = ("32x32x1", "16x8x8", "8x8x8")
"""Blocks of up to 1024 cells with small rings of ghost cells, in two dimensions and in three."""
_CUBE = (1, 1, 1)

Cells = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class PlannedKernel:
    """Record what memory holds with one kind of kernel, its other knobs at their defaults.

    None: no such domain, or unknown.
    bytes_per_cell: on the case's domain, solid cells counted; cube, shaped: the largest cube (square in two dimensions)
    and the largest domain in the proportions of the case; devices: the fewest that hold the case's domain, and parts:
    how many along each axis; mlups: of one device by the model, on the case's domain or its share of it.
    """

    config: KernelConfig
    bytes_per_cell: float
    cube: Cells | None
    shaped: Cells | None
    devices: int | None
    parts: Cells | None
    mlups: float | None

    def facts(self) -> dict[str, Any]:
        """Return plain data."""
        config = self.config
        return {
            "family": config.family,
            "scheme": config.scheme,
            "values": config.kept.name,
            "storage": config.storage,
            "config": config.flat(),
            "bytes_per_cell": self.bytes_per_cell,
            "largest_cube": self.cube,
            "largest_in_proportion": self.shaped,
            "devices_needed": self.devices,
            "parts": self.parts,
            "mlups_per_device": self.mlups,
        }


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """The kinds of kernels that a case has, those that hold the most cells first.

    memory_bytes: of each of `devices` devices; illegal: kinds that the case does not have, with the reason.
    """

    study: str
    case: Case
    memory_bytes: int
    devices: int
    machine: str | None
    kernels: tuple[PlannedKernel, ...]
    illegal: dict[str, str]

    def facts(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "kernels": [one.facts() for one in self.kernels]}


def plan(
    spec: StudySpec | Case | Path | str,
    memory_bytes: int | None = None,
    devices: int = 1,
    *,
    machine: Machine | Path | str | None = None,
    device: str | None = None,
) -> MemoryPlan:
    """Return the largest domain of each kind of kernel in a memory, and the devices that the case's domain needs.

    spec: a study, a case, a study file or the name of a shipped study, which also says in what formats values are
    stored; memory_bytes: of one device, by default that of `machine` or of the device that is here; devices: that share
    a domain, each with a part and the layers of cells around it that it reads; machine: as in `predict`, and speeds are
    predicted; device: 'cpu' or the index of a GPU, a GPU by default.
    Raises InputError if the memory is unknown, or if nothing is legal.

        >>> found = plan(Case("box", "d3q19", "bgk", (512, 512, 512), 1.6), 16 << 30)
        >>> [(one.cube, one.devices) for one in found.kernels if one.config.scheme == "aa"][0]
        ((592, 592, 592), 1)
    """
    spec, known = as_spec(spec), None if machine is None else as_machine(machine)
    where = default_device(known.environment.backend if known else "cuda") if device is None else device
    here = bounds(where, known)
    memory = memory_bytes or here.limits.memory_bytes
    if memory >= _ENDLESS:
        raise InputError(f"the memory of device {where} is unknown; give it with --memory 80GiB, or name a --machine.")
    if not 1 <= devices <= MOST_DEVICES:
        raise InputError(f"devices={devices} is not supported (use 1 to {MOST_DEVICES:,}).")
    capacity = Capacity(spec.case, replace(here.limits, memory_bytes=memory))
    legal: list[KernelConfig] = []
    illegal: dict[str, str] = {}
    for name, configs in _kinds(spec.case, backend_of(where), spec.axes.get(backend_of(where), {}), here.limits):
        reasons = [capacity.reason(one) for one in configs]
        fitting = [one for one, reason in zip(configs, reasons, strict=True) if reason is None]
        if fitting:
            legal.append(min(fitting, key=lambda one: capacity.bytes_of(one, capacity.near)))
        else:
            illegal[name] = str(reasons[-1 if spec.case.geometry else 0])
    if not legal:
        raise InputError(f"no kind of kernel is legal for this case: {next(iter(illegal.values()))}; change the case.")
    found = [_planned(capacity, config, devices, known) for config in legal]
    found.sort(key=lambda one: (-prod(one.cube or (0,)), one.config.family != DEFAULT_FAMILY))
    return MemoryPlan(
        study=spec.name,
        case=spec.case,
        memory_bytes=memory,
        devices=devices,
        machine=known.name if known else None,
        kernels=tuple(found),
        illegal=illegal,
    )


def _kinds(case: Case, backend: str, axes: Axes, limits: Limits) -> Iterator[tuple[str, list[KernelConfig]]]:
    """Yield each kind of kernel by name, with the configurations that stand for it."""
    storages = tuple(dict.fromkeys(one for table in tables(axes) for one in table.get("storage", ()))) or ("fp32",)
    for family, record in FAMILIES[backend].items():
        known = knobs_by_name(record)
        # a family may leave the values of a knob open
        varied: dict[str, Sequence[Scalar]] = {
            name: known[name].allowed or (known[name].default,)
            for name in ("scheme", "representation")
            if name in known
        }
        for values in product(*varied.values(), storages):
            point = dict(zip((*varied, "storage"), values, strict=True))
            yield (
                " ".join((family, *map(str, values))),
                _forms(case, {"backend": backend, "family": family, **point}, limits),
            )


def _forms(case: Case, point: Mapping[str, Scalar], limits: Limits) -> list[KernelConfig]:
    """Return a configuration without and with flags, and where blocks have rings of ghost cells by blocks."""
    usual = from_flat(point)
    known = knobs_by_name(type(usual))
    varied: dict[str, Sequence[Scalar]] = {"flags": known["flags"].allowed} if "flags" in known else {}
    if usual.propagation.phase(case.stencil, 0).blockwise and "block" in known:
        varied["block"] = _RINGED
    each = ({**point, **dict(zip(varied, values, strict=True))} for values in product(*varied.values()))
    return [fitted(case, completed(values, limits), limits) for values in each]


def _planned(capacity: Capacity, config: KernelConfig, devices: int, machine: Machine | None) -> PlannedKernel:
    case = capacity.case
    count, parts = capacity.needed(config)
    return PlannedKernel(
        config=config,
        bytes_per_cell=capacity.bytes_of(config, case.domain) / case.sites,
        cube=capacity.largest(config, _CUBE, devices),
        shaped=capacity.largest(config, case.domain, devices),
        devices=count,
        parts=parts,
        mlups=capacity.speed(config, parts, machine) if machine and parts else None,
    )


@dataclass(frozen=True)
class Capacity:
    """Memory against a case on any domain. limits: those of one device, whose memory is the one that is planned for."""

    case: Case
    limits: Limits

    @property
    def near(self) -> Cells:
        """Return a domain of up to 256 cells along each axis, on which kinds of kernels are compared."""
        if self.case.geometry:
            return self.case.domain
        x, y, z = (min(cells, _NEAR) for cells in self.case.domain)
        return x, y, z

    def reason(self, config: KernelConfig) -> str | None:
        """Return why a kernel is illegal for the case whatever its memory and number of cells, or None."""
        return broken(replace(self.case, domain=self.near), config, replace(self.limits, memory_bytes=_ENDLESS))

    def bytes_of(self, config: KernelConfig, domain: Cells) -> int:
        """Return the bytes of all buffers on a domain; where solid cells count, scaled with its cells.

        Those of another domain would have to be made to be counted.
        """
        if self.case.geometry and (config.indirect or self.case.patches or self.case.interpolates):
            return -(-footprint_bytes(self.case, config) * prod(domain) // self.case.sites)
        return footprint_bytes(replace(self.case, domain=domain), config)

    def fits(self, config: KernelConfig, domain: Cells, parts: Cells) -> bool:
        """Return whether each part of a domain fits in the memory of a device, with the cells around it."""
        return self.bytes_of(config, with_halo(domain, parts, config.fused_steps)) <= self.limits.memory_bytes

    def split(self, config: KernelConfig, domain: Cells, devices: int) -> Cells | None:
        """Return into how many parts along each axis so many devices cut a domain, with the fewest cells around them.

        None if no cut fits.
        """
        cuts = (grid.along for grid in grids(devices) if all(n <= d for n, d in zip(grid.along, domain, strict=True)))
        by_halo = sorted(cuts, key=lambda parts: prod(with_halo(domain, parts, config.fused_steps)))
        return next((parts for parts in by_halo if self.fits(config, domain, parts)), None)

    def needed(self, config: KernelConfig) -> tuple[int | None, Cells | None]:
        """Return the fewest devices that hold the case's domain, and the parts along each axis; None if too many."""
        domain = self.case.domain
        least = -(-self.bytes_of(config, domain) // self.limits.memory_bytes)
        for devices in range(least, min(2 * least + STEP, MOST_DEVICES) + 1):
            parts = self.split(config, domain, devices)
            if parts and self.form(config, share(domain, parts)):
                return devices, parts
        return None, None

    def largest(self, config: KernelConfig, proportions: Cells, devices: int) -> Cells | None:
        """Return the largest legal domain in some proportions that so many devices hold, in steps of 16 cells."""

        def held(size: int) -> Cells | None:
            return self.split(config, self.scaled(proportions, size), devices)

        most = _last(lambda size: held(size) is not None)
        for size in range(most, 0, -1):
            domain, parts = self.scaled(proportions, size), held(size)
            if parts and self.form(config, share(domain, parts)):
                return domain
        return None

    def form(self, config: KernelConfig, domain: Cells) -> KernelConfig | None:
        """Return the kernel as it is legal on a domain, if need be with another block; None if it is not.

        The solid cells of a case stand for those of all domains.
        """
        if self.case.geometry:
            return config
        try:
            case = replace(self.case, domain=domain)
        except InputError:  # faces that complete populations lie in one cell
            return None
        values = config.flat()
        if not config.propagation.phase(case.stencil, 0).blockwise:
            values.pop("block", None)
        found = (one for one in (config, fitted(case, values, self.limits)) if not broken(case, one, self.limits))
        return next(found, None)

    def scaled(self, proportions: Cells, size: int) -> Cells:
        """Return the domain in some proportions whose longest extent has so many steps; flat in two dimensions."""
        longest = max(proportions)
        x, y, z = (max(1, size * one // longest) * STEP for one in proportions)
        return x, y, 1 if self.case.stencil.dimensions == 2 else z

    def speed(self, config: KernelConfig, parts: Cells, machine: Machine) -> float:
        """Return the MLUPS of one device on its part of the case's domain, without exchange."""
        domain = share(self.case.domain, parts)
        case = self.case if self.case.geometry else replace(self.case, domain=domain)
        return predictor(case, machine)(self.form(config, domain) or config).mlups


def _last(holds: Callable[[int], bool]) -> int:
    """Return the last number of which something holds that holds up to a number, or 0."""
    high = 1
    while holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def share(domain: Cells, parts: Cells) -> Cells:
    """Return the cells of the largest part of a domain."""
    x, y, z = (-(-cells // n) for cells, n in zip(domain, parts, strict=True))
    return x, y, z


def with_halo(domain: Cells, parts: Cells, layers: int) -> Cells:
    """Return the cells of the largest part, and those of its neighbours that a launch of some time steps reads."""
    x, y, z = (cells + 2 * layers * (n > 1) for cells, n in zip(share(domain, parts), parts, strict=True))
    return x, y, z
