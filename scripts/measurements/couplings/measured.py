"""Prove and time the couplings of a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from numpy import finfo

from lbmtune.decomposition.coupling import Coupling, parse_coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.decomposition.transfers import sent_bytes
from lbmtune.errors import InputError
from lbmtune.measure.parts.proof import agreement
from lbmtune.measure.parts.race import Race, race
from lbmtune.model.exchange import measured_over_predicted, period
from lbmtune.model.machine.description import Machine
from lbmtune.model.messages import known_transport
from lbmtune.runtime.parts.coupled import CoupledSimulation
from scripts.measurements.couplings.groups import Group
from scripts.measurements.couplings.laboratory import Laboratory, Repeated

ROUNDING = 64
"""Units in the last place by which sums may differ that are added up in another order: walls between blocks have it
so."""


def predictions(group: Group, machine: Machine, launch_s: float | None = None) -> dict[str, Any]:
    """Return what the model says before anything is measured: seconds of one device and of each coupling.

    launch_s: what a launch took on one device of the kind in an earlier run, which all launches then follow.
    """
    if machine.links is None:
        return {}
    kernel = group.kernel
    one_part = decomposed(group.of_one, kernel, parse_cut("1x1x1"))
    own = 1.0 if launch_s is None else measured_over_predicted(one_part, machine, launch_s)
    alone = period(one_part, machine, Coupling(overlap="none"), own=own)
    found = decomposed(group.whole, kernel, parse_cut(group.cut), group.launches * kernel.fused_steps)
    cells = found.case.fluid_sites
    couplings = {}
    for text in group.couplings:
        coupling = parse_coupling(text)
        if known_transport(machine.links, coupling.transport):
            one = period(found, machine, coupling, own=own)
            share = cells / group.of_one.fluid_sites / group.devices
            couplings[str(coupling)] = {
                "mlups": cells * found.steps / one.total_s / 1e6,
                "efficiency": share * group.launches * alone.total_s / one.total_s,
                "exchange_s": one.exchange_s,
            }
    return {"machine": machine.name, "own": own, "alone_s": alone.total_s, "couplings": couplings}


def measured(group: Group, laboratory: Laboratory, repeats: int, sample_s: float) -> dict[str, Any]:
    """Prove and time the couplings of a group."""
    couplings = [parse_coupling(text) for text in group.couplings]
    proof = proved(group, laboratory, couplings[0])
    laboratory.free()
    laboratory.say("   proved", proof)
    parts = laboratory.parts(group, group.whole, couplings[0])
    found, different = parts.decomposition, compared(parts, couplings, laboratory)
    laboratory.free()
    bound = ROUNDING * float(finfo(group.kernel.computed.dtype).eps)
    right = [one for one, (_, worst) in different.items() if worst <= bound]
    laboratory.say("   compared", len(different), "equal", sum(not count for count, _ in different.values()))
    alone = laboratory.alone(group, group.of_one)  # now: states that are compared need its memory
    times = race(alone, parts, right, repeats=repeats, sample_s=sample_s)
    sent = parts.messages_before(parts.parts[0].parity)
    return {
        "name": group.name,
        "kind": "weak" if group.weak else "strong",
        "flow": group.case.flow,
        "lattice": group.case.lattice,
        "collision": group.case.collision,
        "geometry": group.case.geometry,
        "domain": list(group.case.domain),
        "alone_domain": list(group.of_one.domain),
        "devices": group.devices,
        "cut": group.cut,
        "steps": found.steps,
        "depth": found.depth,
        "config": found.config.flat(),
        "sent_bytes": max(sent_bytes(found).values()),
        "runs": [len(one.runs) for one in sent],
        "cells": [alone.case.fluid_sites, found.case.fluid_sites],
        "proof": proof,
        "unequal": {
            str(one): {"elements": count, "worst": worst} for one, (count, worst) in different.items() if count
        },
        "bound": bound,
        "alone_s": list(times.alone),
        "couplings": list(rows(times, laboratory)),
    }


def compared(
    parts: CoupledSimulation, couplings: Sequence[Coupling], laboratory: Laboratory
) -> dict[Coupling, tuple[int, float]]:
    """Return how far the state that each legal coupling leaves lies from that of the first one."""
    if len(couplings) == 1:
        return {couplings[0]: (0, 0.0)}
    repeated, different = Repeated(parts), dict[Coupling, tuple[int, float]]()
    for one in couplings:
        try:
            different[one] = repeated.different(one)
        except InputError as error:
            laboratory.say("   refused", one, error)
    return different


def proved(group: Group, laboratory: Laboratory, coupling: Coupling) -> dict[str, Any]:
    """Compare parts with one device on a small domain, with poison in the halo before each exchange."""
    small = group.proof
    alone, parts = laboratory.alone(group, small), laboratory.parts(group, small, coupling, poisons=True)
    found = agreement(alone, parts, 2)
    if not found.passed:
        raise ValueError(f"parts have another state than one device: {found}")
    return {"domain": list(small.domain), "different": found.different, "worst": found.worst}


def rows(times: Race, laboratory: Laboratory) -> Iterator[dict[str, Any]]:
    """Yield the row of each coupling that was timed."""
    for one in times.coupled:
        if one.refused:
            laboratory.say("   refused", one.coupling, one.refused)
            continue
        share = times.efficiency(one)
        laboratory.say(
            f"   {str(one.coupling) or 'default':55s} {times.mlups(one):9,.0f} MLUPS {share.median:.4f} "
            f"({share.low:.4f}..{share.high:.4f}) all {1e6 * one.median_s:7.1f} launches {1e6 * one.launches_s:7.1f} "
            f"exchange {1e6 * one.exchange_s:6.1f} us"
        )
        yield {
            **vars(one.coupling),
            "mlups": times.mlups(one),
            "period_s": list(one.samples),
            "launches_s": one.launches_s,
            "exchange_s": one.exchange_s,
        }
