"""Cut, exchange and overlap of a kernel on several devices, as a best.json carries them."""

from __future__ import annotations

from statistics import median
from typing import cast

from lbmtune.catalogue.backend_records import CudaConfig
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.coupling import takes_planes
from lbmtune.decomposition.cuts import Grid, parse_cut
from lbmtune.decomposition.parts import crossed
from lbmtune.records.best_json.document import OnParts, SentLink
from lbmtune.records.parts import PartsAsked, PartsTrial


def on_parts(case: Case, one: PartsTrial, asked: PartsAsked) -> OnParts:
    """Return what a best.json says of the fastest of the finals on several devices. one: a timed one of a case."""
    config, cut, share = from_flat(one.config), parse_cut(one.cut, len(one.devices)), one.efficiency
    along = cut.along if isinstance(cut, Grid) else None
    least, most = edge_limits(case, config, one)
    assert one.mlups is not None
    assert one.alone_mlups is not None
    assert one.compared is not None
    return OnParts(
        devices=len(one.devices),
        cut=one.cut,
        along=along,
        first_cell=along and (_first("nx", along[0]), _first("ny", along[1]), _first("nz", along[2])),
        halo_layers=one.halo_layers,
        steps_between_exchanges=one.steps,
        crosses=crossed(config),
        sent=tuple(sent_links(case, config)),
        coupling=one.coupling,
        edge_least=least,
        edge_most=most,
        takes_planes=takes_planes(case, config),
        domain=one.domain,
        weak=asked.weak,
        mlups=one.mlups,
        alone_mlups=one.alone_mlups,
        efficiency=share.median,
        efficiency_low=share.low,
        efficiency_high=share.high,
        period_s=median(one.period_s),
        launches_s=one.launches_s,
        exchange_s=one.exchange_s,
        worst=one.compared.worst,
        bound=one.compared.bound,
    )


def _first(extent: str, parts: int) -> str:
    return f"p * {extent} / {parts}" if parts > 1 else "0"


def sent_links(case: Case, config: KernelConfig) -> list[tuple[SentLink, ...]]:
    """Return where the populations lie that cross faces, after a step of each parity; none if whole cells cross."""
    if crossed(config) == "cells":
        return []
    stencil, scheme = case.stencil, config.propagation
    return [
        tuple(
            SentLink(direction=one.direction, slot=one.write.slot, offset=one.write.offset)
            for one in scheme.phase(stencil, parity).accesses
            if any(stencil.velocities[one.direction])
        )
        for parity in range(scheme.period)
    ]


def edge_limits(case: Case, config: KernelConfig, one: PartsTrial) -> tuple[int, int]:
    """Return the least and the most planes of an edge; between them it is a quarter of its part."""
    coupling = one.coupling
    if coupling.overlap == "none" or coupling.edge_planes:
        return coupling.edge_planes, coupling.edge_planes
    shared = BACKENDS[config.backend].shares_host
    block = coupling.block_planes or (1 if shared else cast("CudaConfig", config).block_cells(case.stencil)[2])
    return one.halo_layers, max(one.halo_layers, block)
