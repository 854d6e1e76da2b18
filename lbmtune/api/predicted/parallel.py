"""Weak and strong scaling of a kernel over the devices of a host, by the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from lbmtune.api.machines.devices import limits_of
from lbmtune.api.machines.shipped import as_machine, machine_of
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.coupling import Coupling, Overlap, Transport
from lbmtune.decomposition.cuts import MOST_PARTS, Bisection, Cut, Grid, grids, parse_cut
from lbmtune.decomposition.parts import Decomposition, decomposed
from lbmtune.decomposition.rules import kernel_refusal, refusal
from lbmtune.errors import InputError, unknown
from lbmtune.model.exchange import OVERLAPS, Period, measured_over_predicted, period
from lbmtune.model.machine.description import Machine
from lbmtune.records import Resources
from lbmtune.records.spec import StudySpec

Kind = Literal["weak", "strong"]
Cells = tuple[int, int, int]
KINDS: tuple[Kind, ...] = get_args(Kind)
_TRANSPORTS: tuple[Transport, ...] = ("copy", "pack")
"""Transports that the model knows."""
SWITCH = "each device exchanges with all others at the bandwidth of a pair (a switch)"
ASSUMED = (
    SWITCH,
    "copies of an exchange follow each other, one for each run of elements; a kernel that packs sends all at once",
    "an exchange waits twice for another device, as long as `wait_s` of its links says",
    "edges of higher priority take no time beside the interior; long blocks are followed one by one",
    "devices are alike, and none is slowed down by the power of the others",
    "one process drives all devices: messages of NCCL between processes are not predicted",
)
"""Sentences that say what the prediction of several devices rests on."""


@dataclass(frozen=True, kw_only=True)
class ScalingPoint:
    """A number of devices with the cut, the transport and the overlap that the model expects to be fastest.

    domain: of all devices; mlups: of all; efficiency: over as many times the speed of one device, on the domain of the
    case.
    """

    kind: Kind
    devices: int
    cut: str
    domain: Cells
    mlups: float
    efficiency: float
    transport: Transport
    period: Period

    @property
    def shown_share(self) -> float:
        """Return the share of the exchange that no launch hides; 0 without an exchange."""
        return self.period.shown_s / self.period.exchange_s if self.period.exchange_s else 0.0

    def facts(self) -> dict[str, Any]:
        """Return plain data."""
        one = self.period
        return {
            **{name: getattr(self, name) for name in ("kind", "devices", "cut", "domain", "mlups", "efficiency")},
            "transport": self.transport,
            "overlap": one.overlap,
            "steps_between_exchanges": one.steps,
            "period_s": one.total_s,
            "own_cells_s": one.own_s,
            "edges_and_redundant_s": one.extra_s,
            "exchange_s": one.exchange_s,
            "exchange_shown_s": one.shown_s,
        }


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Predicted scaling of a kernel.

    alone: the speed of one device on the domain of the case: as it was measured if that was given, else modelled, by
    the model; links, source, assumed: as in `Links`, '' without links; left_out: kinds and numbers of devices that no
    cut serves, with the reason.
    """

    case: Case
    config: KernelConfig
    machine: str
    alone: float
    modelled: float
    links: str
    source: str
    assumed: str
    points: tuple[ScalingPoint, ...]
    left_out: dict[str, str]

    def facts(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "case": self.case,
            "config": self.config.flat(),
            "key": self.config.key,
            "machine": self.machine,
            "mlups_of_one_device": self.alone,
            "mlups_of_one_device_by_the_model": self.modelled,
            "links": self.links,
            "source": self.source,
            "assumed": self.assumed,
            "left_out": self.left_out,
            "scaling": [one.facts() for one in self.points],
        }


def scaling(
    case: Case,
    config: KernelConfig,
    machine: Machine | Path | str,
    devices: int,
    *,
    cut: str = "",
    overlap: str = "",
    kind: str = "",
    resources: Resources | None = None,
    alone_mlups: float | None = None,
) -> Scaling:
    """Predict the speed of a kernel on 1, 2, 4, ... devices of a host, up to a number.

    Weak: each device has the domain of the case; strong: all share it; with solid cells or a bisection strong alone.
    cut: as in `decompose`, for that number of devices beside one; overlap: 'none', 'edge-first' or 'edge-priority'; '':
    the fastest; kind: 'weak' or 'strong'; '': both; alone_mlups: how fast one device was measured to be on the domain
    of the case: launches take as much longer or less than they are predicted to.
    A number of devices without a legal cut is left out.

    Raises InputError if the kernel is not supported, or if nothing is known of the links of the machine.
    """
    machine = with_links(as_machine(machine))
    check_links(machine, devices)
    if not 1 <= devices <= MOST_PARTS:
        raise InputError(f"devices={devices} is not supported (use 1 to {MOST_PARTS:,}).")
    if overlap and overlap not in OVERLAPS:
        raise unknown("overlap", overlap, OVERLAPS)
    if reason := kernel_refusal(case, config):
        raise InputError(f"{reason}.")
    given = parse_cut(cut, devices) if cut else None
    overlaps = tuple(one for one in OVERLAPS if overlap in ("", one))
    model = _Model(case, config, machine, overlaps, resources, alone_mlups)
    counts = sorted({1, devices} | (set() if given else {1 << n for n in range(devices.bit_length())}))
    equal = not case.geometry and not isinstance(given, Bisection)
    if kind and kind not in KINDS:
        raise unknown("kind of scaling", kind, KINDS)
    if kind == "weak" and not equal:
        raise InputError("--weak is not supported here (use --strong): parts of this case or cut are not alike.")
    kinds = tuple(one for one in KINDS if kind in ("", one) and (equal or one == "strong"))
    tried = {(kind, count): model.point(kind, count, given) for kind in kinds for count in counts}
    points = tuple(one for one in tried.values() if isinstance(one, ScalingPoint))
    left_out = {f"{kind}, {count:,} devices": one for (kind, count), one in tried.items() if isinstance(one, str)}
    if not any(one.devices == devices for one in points):
        raise InputError(f"{tried[kinds[0], devices]}; give another number of devices.")
    links = machine.links
    return Scaling(
        case=case,
        config=config,
        machine=machine.name,
        alone=model.alone,
        modelled=model.modelled,
        links=links.name if links else "",
        source=links.source if links else "",
        assumed=links.assumed if links else "",
        points=points,
        left_out=left_out,
    )


def with_links(machine: Machine) -> Machine:
    """Return a machine with its links, or with those of the shipped description of the same device, if it has some."""
    shipped = None if machine.links else machine_of(machine.environment.device)
    if shipped is None or shipped.links is None:
        return machine
    return replace(machine, links=replace(shipped.links, assumed="links are those of another device of its name"))


def check_links(machine: Machine, devices: int) -> None:
    """Raise InputError if nothing is known of the links between the devices of a machine, and they are several."""
    if with_links(machine).links is None and devices > 1:
        raise InputError(
            f"devices={devices} is not supported for {machine.name} (use --machine h100 or h200, or add a "
            "table [links] to its file): nothing is known of its links."
        )


def first_on_parts(spec: StudySpec, machine: Machine, compiled: int) -> KernelConfig:
    """Return the first kernel of a study's ranking that runs on parts. compiled: as in `rank`. Raises InputError."""
    from lbmtune.api.predicted.ranking import rank  # here: a configuration needs no ranking

    ranked = rank(spec, machine, 1, compiled)
    kernels = [one.first.config for one in (*ranked.rows, *ranked.families)]
    reasons = [kernel_refusal(spec.case, config) for config in kernels]
    found = next((config for config, reason in zip(kernels, reasons, strict=True) if reason is None), None)
    if found is None:
        raise InputError(f"{reasons[0]}; give a configuration or a study with other families.")
    return found


@dataclass(frozen=True)
class _Model:
    case: Case
    config: KernelConfig
    machine: Machine
    overlaps: tuple[Overlap, ...]
    resources: Resources | None
    alone_mlups: float | None

    def point(self, kind: Kind, devices: int, given: Cut | None) -> ScalingPoint | str:
        """Return the fastest of the legal cuts, or the reason against the first one. given: of several devices."""
        reasons = list[str]()
        cuts = (given,) if given and devices > 1 else tuple(self._cuts(kind, devices))
        found = [one for cut in cuts for one in self._predicted(kind, devices, cut, reasons)]
        return max(found, key=lambda one: (one.mlups, -one.period.exchange_s)) if found else reasons[0]

    def _predicted(self, kind: Kind, devices: int, cut: Cut, reasons: list[str]) -> Iterator[ScalingPoint]:
        """Yield a cut with each transport and overlap, unless it is illegal; then the reason is added."""
        case = self._grown(cut) if kind == "weak" else self.case
        if reason := refusal(case, self.config, cut, limits_of(self.machine)):
            reasons.append(reason)
            return
        parts = decomposed(case, self.config, cut)
        for transport, overlap in product(_TRANSPORTS, self.overlaps):
            one = period(parts, self.machine, Coupling(transport, overlap), self.resources, self._own)
            mlups = case.fluid_sites * one.steps / one.total_s / 1e6
            yield ScalingPoint(
                kind=kind,
                devices=devices,
                cut=str(cut),
                domain=case.domain,
                mlups=mlups,
                efficiency=mlups / (devices * self.alone),
                transport=transport,
                period=one,
            )

    @property
    def alone(self) -> float:
        """Return the speed of one device on the domain of the case: as measured, if it was."""
        return self.alone_mlups or self.modelled

    @cached_property
    def modelled(self) -> float:
        """The speed of one device on the domain of the case, by the model."""
        one = period(self._one_part, self.machine, Coupling(overlap="none"), self.resources)
        return self.case.fluid_sites * one.steps / one.total_s / 1e6

    @cached_property
    def _own(self) -> float:
        """How much longer launches take than they are predicted to; 1 if one device was not measured."""
        if self.alone_mlups is None:
            return 1.0
        launch_s = self.case.fluid_sites * self.config.fused_steps / self.alone_mlups / 1e6
        return measured_over_predicted(self._one_part, self.machine, launch_s, self.resources)

    @cached_property
    def _one_part(self) -> Decomposition:
        return decomposed(self.case, self.config, Grid((1, 1, 1)))

    def _cuts(self, kind: Kind, devices: int) -> Iterator[Cut]:
        """Yield the cuts that are compared: none across x, whose faces would have to be gathered from all rows."""
        flat = self.case.stencil.dimensions == 2
        yield from (one for one in grids(devices) if one.along[0] == 1 and not (flat and one.along[2] > 1))
        if kind == "strong" and self.case.geometry and devices > 1:
            yield Bisection(devices)

    def _grown(self, cut: Cut) -> Case:
        """Return the case with its domain once for each part."""
        assert isinstance(cut, Grid)
        x, y, z = (cells * parts for cells, parts in zip(self.case.domain, cut.along, strict=True))
        return replace(self.case, domain=(x, y, z))
