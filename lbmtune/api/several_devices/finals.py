"""The finals of a study on several devices: the best kernels on the parts of each cut, with each way to exchange.

A unit is a kernel on a cut. Of each unit the transports and overlaps that are legal are proved and timed in turns with
one device; then one knob after the other of the fastest is changed: thickness of an edge, form of launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from lbmtune.api.machines.devices import LOG
from lbmtune.api.several_devices.parts import (
    Pair,
    check_cut,
    failures,
    grown,
    opened_devices,
    predicted_periods,
    remembering,
    small_case,
)
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.knobs import own_knobs
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.choice import legal_cuts
from lbmtune.decomposition.coupling import Coupling, sets_block_planes
from lbmtune.decomposition.cuts import Cut, grids, parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.decomposition.rules import kernel_refusal, refusal
from lbmtune.errors import InputError, NothingValidError
from lbmtune.measure.parts.proof import Agreement, agreement
from lbmtune.measure.parts.race import Coupled, Race, race
from lbmtune.model.exchange import OVERLAPS
from lbmtune.model.machine.description import Machine
from lbmtune.records import Outcome, Trial
from lbmtune.records.parts import AUTO, Compared, PartsAsked, PartsTrial, ranked_parts
from lbmtune.records.store import append_line, drop_torn_line, read_study
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import PARTS
from lbmtune.search.clock import Clock
from lbmtune.search.interfaces import Observer
from lbmtune.search.spaces.space import Space

_KERNELS, _CUTS, _REPEATS, _SAMPLE_S = 3, 2, 5, 0.06
"""Kernels of a study, cuts of each, turns of a race, and least seconds of a sample."""
_SHARE, _MOST_S = 0.35, 90.0
"""Share of the time of a study that its finals on several devices get, and most seconds."""
_KNOBS = {one.name: one for one in own_knobs(Coupling)}
_WAYS = [Coupling(transport, overlap) for transport, overlap in product(_KNOBS["transport"].search, OVERLAPS)]  # type: ignore[arg-type]
"""Couplings that are tried first."""


@dataclass(frozen=True)
class _Unit:
    """A kernel on a cut. machine: whose links the model takes."""

    trial: Trial
    config: KernelConfig
    cut: Cut
    case: Case
    machine: Machine

    @property
    def expected_s(self) -> float:
        """Return the least seconds of a step by the model, infinite if it tells none."""
        found = decomposed(self.case, self.config, self.cut)
        return min(
            (one.total_s / one.steps for one in predicted_periods(found, self.machine, _WAYS).values()), default=inf
        )


def time_for_parts(seconds: float) -> float:
    """Return the seconds that finals on several devices get of those of a study; 0 without a limit."""
    return min(_SHARE * seconds, _MOST_S)


def suited(space: Space, case: Case) -> Space:
    """Return the configurations that run on parts of a domain; the others count as illegal. Raises InputError."""
    reasons = {config: kernel_refusal(case, config) for config in space.configs}
    lost = dict[str, int]()
    for reason in filter(None, reasons.values()):
        lost[reason] = lost.get(reason, 0) + 1
    configs = tuple(config for config, reason in reasons.items() if reason is None)
    if not configs:
        raise InputError(f"{next(iter(lost))}; no kernel of this study runs on several parts.")
    return replace(space, configs=configs, illegal={**space.illegal, **lost})


def check_parts(case: Case, asked: PartsAsked) -> None:
    """Check before anything is measured what depends on no kernel. Raises InputError."""
    if len(asked.devices) < 2:
        raise InputError(f"cut={asked.cut} is not supported for one part (use --parts 2 or more, or --devices 0,1).")
    if asked.cut != AUTO:
        cut = parse_cut(asked.cut, len(asked.devices))
        if asked.weak:
            grown(case, cut)
    elif asked.weak and case.geometry:
        raise InputError("--weak is not supported for a case with solid cells (leave it out): parts are not alike.")


def hold_finals_on_parts(folder: Path, machine: Machine, clock: Clock, observer: Observer) -> tuple[str, ...]:
    """Prove and time the best kernels of a study on parts, and append the results; return what was left out.

    At least one kernel on one cut is tried, whatever time is left; those that were tried before are not tried again.
    Raises InputError if no kernel has a legal cut, NothingValidError if a device fails.
    """
    record = read_study(folder)
    asked = record.header.parts
    assert asked
    drop_torn_line(folder / PARTS)
    done = {(one.key, one.cut) for one in record.on_parts}
    with opened_devices(asked.devices) as devices, failures():
        units = _units(record, asked, devices[0].limits, machine)
        left = [one for one in units if (one.trial.key, str(one.cut)) not in done]
        longest, tried = 0.0, len(units) - len(left)
        for n, unit in enumerate(left):
            if tried and clock.left_s < longest:
                return (f"{len(left) - n} of {len(units)} kernels and cuts on several devices",)
            begun_s = clock.spent_s
            observer.phase(f"parts: {unit.trial.key}, cut={unit.cut}", longest)
            for one in _tried(unit, record.header.spec.case, asked, devices, clock):
                append_line(folder / PARTS, one)
            longest, tried = max(longest, clock.spent_s - begun_s), tried + 1
    return ()


def _units(record: StudyRecord, asked: PartsAsked, limits: Limits, machine: Machine) -> list[_Unit]:
    """Return the kernels and cuts that are tried: of each kernel its best cut first, then by what the model expects."""
    case, found, reasons = record.header.spec.case, list[_Unit](), list[str]()
    proven = [trial for trial in record.ranked if trial.proven] or list(record.ranked)
    kernels = 0
    for trial in proven:
        config = trial.kernel_config
        try:
            cuts = _cuts(case, config, asked, limits)
        except InputError as error:
            reasons.append(str(error))
            continue
        for cut in cuts:
            whole = grown(case, cut) if asked.weak else case
            found.append(_Unit(trial, config, cut, whole, machine))
        kernels += 1
        if kernels == _KERNELS:
            break
    if not found:
        raise InputError(reasons[0] if reasons else "no kernel was verified, so none can run on several devices.")
    return sorted(found, key=lambda one: one.expected_s)  # without links of the machine the order stays


def _cuts(case: Case, config: KernelConfig, asked: PartsAsked, limits: Limits) -> list[Cut]:
    """Return the cuts of a kernel that are tried. Raises InputError if none is legal."""
    count = len(asked.devices)
    if asked.cut == AUTO and not asked.weak:
        return [one.cut for one in legal_cuts(case, config, count, limits)][:_CUTS]
    if asked.cut == AUTO:
        alike = sorted(grids(count), key=lambda one: one.along)  # planes along z are contiguous
        reasons = {one: refusal(grown(case, one), config, one, limits) for one in alike}
        legal: list[Cut] = [one for one, reason in reasons.items() if reason is None]
        if not legal:
            raise InputError(f"{reasons[alike[0]]}.")
        return legal[:_CUTS]
    cut = parse_cut(asked.cut, count)
    check_cut(grown(case, cut) if asked.weak else case, config, cut, limits)
    return [cut]


def _tried(unit: _Unit, case: Case, asked: PartsAsked, devices: Sequence[Any], clock: Clock) -> Iterator[PartsTrial]:
    """Yield the trials of a unit: transports and overlaps, then other knobs of the fastest, while there is time."""
    compiler = remembering(devices)
    timing = Pair(case if asked.weak else unit.case, unit.case, unit.config, unit.cut, devices, compiler=compiler)
    seen = dict[Coupling, PartsTrial]()
    for couplings in _stages(timing, seen):
        new = [one for one in couplings if one not in seen]
        edge = max((one.edge_planes for one in new if not timing.refused(one)), default=0)
        chosen, small = small_case(case, unit.config, str(unit.cut), devices, edge)
        proving = Pair(small, small, unit.config, chosen, devices, compiler=compiler)
        seen.update(zip(new, _raced(unit, asked, proving, timing, new, small), strict=True))
        if clock.left_s <= 0:
            break
    yield from seen.values()


def _stages(timing: Pair, seen: dict[Coupling, PartsTrial]) -> Iterator[list[Coupling]]:
    """Yield couplings to be tried together. seen: the results so far."""
    first = list(_WAYS)
    if all(timing.refused(one) for one in first):
        first += [Coupling("host", overlap) for overlap in OVERLAPS]
    yield first
    knobs = ("edge_planes", "block_planes", "launching")
    for name in knobs if sets_block_planes(timing.found.config) else knobs[::2]:
        best = ranked_parts(tuple(seen.values()))[:1]
        if best and not (name == "edge_planes" and best[0].coupling.overlap == "none"):
            changes: list[dict[str, Any]] = [{name: value} for value in _KNOBS[name].search]
            yield [replace(best[0].coupling, **change) for change in changes]


def _raced(
    unit: _Unit, asked: PartsAsked, proving: Pair, timing: Pair, couplings: Sequence[Coupling], small: Case
) -> list[PartsTrial]:
    """Prove couplings, and time those that are right in turns with one device."""
    found = {one: _proved(unit, asked, proving, timing, one, small) for one in couplings}
    right = [coupling for coupling, one in found.items() if one.outcome is Outcome.OK]
    if not right:
        return list(found.values())
    try:
        times = race(*timing.made(right[0], poisons=False), right, repeats=_REPEATS, sample_s=_SAMPLE_S)
    except InputError as error:  # of all: messages are longer than those of the proof
        illegal = {one: replace(found[one], outcome=Outcome.ILLEGAL, reason=str(error)) for one in right}
        return list((found | illegal).values())
    timed = {one.coupling: _timed(found[one.coupling], unit, times, one) for one in times.coupled}
    return list((found | timed).values())


def _proved(unit: _Unit, asked: PartsAsked, proving: Pair, timing: Pair, coupling: Coupling, small: Case) -> PartsTrial:
    trial = PartsTrial(
        number=unit.trial.number,
        key=unit.trial.key,
        config=unit.trial.config,
        devices=asked.devices,
        cut=str(unit.cut),
        domain=unit.case.domain,
        coupling=coupling,
        outcome=Outcome.OK,
        halo_layers=timing.found.depth,
        steps=timing.found.steps,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    try:
        if reason := timing.refused(coupling):
            raise InputError(reason)
        found = agreement(*proving.made(coupling, poisons=True))
    except InputError as error:
        return replace(trial, outcome=Outcome.ILLEGAL, reason=str(error))
    if not found.passed:
        apart = f"{found.worst:.2g} apart from one device after {found.steps} steps, allowed {found.bound:.2g}"
        return replace(trial, outcome=Outcome.WRONG_RESULT, reason=apart)
    return replace(trial, compared=_compared(found, small))


def _compared(found: Agreement, small: Case) -> Compared:
    return Compared(
        domain=small.domain,
        steps=found.steps,
        different=found.different,
        worst=found.worst,
        bound=found.bound,
    )


def _timed(trial: PartsTrial, unit: _Unit, times: Race, one: Coupled) -> PartsTrial:
    if one.refused:
        return replace(trial, outcome=Outcome.ILLEGAL, reason=one.refused)
    expected = predicted_periods(decomposed(unit.case, unit.config, unit.cut), unit.machine, [one.coupling])
    period = expected.get(one.coupling)
    return replace(
        trial,
        sites=times.cells,
        alone_sites=times.alone_cells,
        alone_s=times.alone,
        period_s=one.samples,
        launches_s=one.launches_s,
        exchange_s=max(0.0, one.exchange_s),
        predicted_s=None if period is None else period.total_s,
        predicted_exchange_s=None if period is None else period.exchange_s,
    )


def say_what_failed(error: NothingValidError) -> str:
    """Log why finals on several devices ended, and return it as what was left out."""
    LOG.warning("finals on several devices: %s", error)
    return f"finals on several devices: {error}"
