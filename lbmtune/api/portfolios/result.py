"""Choose the few kernels of a portfolio and their rule, find the loss on each measured domain, write best.json."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lbmtune.api.portfolios.contenders import Contenders, slower_than_default
from lbmtune.api.portfolios.laws import Laws
from lbmtune.api.studies.folders import study_of_domain
from lbmtune.errors import NothingValidError
from lbmtune.export import best
from lbmtune.records import Trial, made_of
from lbmtune.records.best_json.document import Best, encode_best
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.best_json.law import CHUNKS, Corrections, Law, extents_of, picoseconds
from lbmtune.records.best_json.portfolio import (
    CHECKED,
    SEARCHED,
    TAUGHT,
    Portfolio,
    PortfolioKernel,
    PortfolioRow,
    Rule,
    RuleLine,
    chosen_by,
)
from lbmtune.records.portfolio_store import MeasuredDomain, PortfolioAsked
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import write_atomically
from lbmtune.search.portfolio.cover import cover, robust

MOST_KERNELS = 6
TOLERANCE = 0.03
"""Share of the speed of the fastest kernel that the choice may lose on a domain."""
_CLOSE = 0.01
"""Loss up to which a kernel counts as near the fastest when the few are chosen: laws err by as much again."""
BEST = "best.json"


class Result(NamedTuple):
    """A kernel on a domain: its trial there, the fastest one, the default one, and the share of speed that it loses."""

    trial: Trial
    fastest: Trial
    default: Trial
    loss: float

    @property
    def good(self) -> bool:
        """Return whether it loses no more than it may, and is not slower than the default kernel."""
        return self.loss <= TOLERANCE


@dataclass(frozen=True)
class Unseen:
    """A domain that teaches nothing, with the choice of the rule, and with one that is measured there.

    row: of the rule; measured: the kernel that is the fastest by one sample of each candidate, with its loss;
    timed: number of these candidates.
    """

    row: PortfolioRow
    measured: Result
    measured_behind_default: bool
    timed: int


@dataclass(frozen=True)
class Chosen:
    """Few kernels and their rule. keys: of the kernels; lines: of the rule, which name places in `keys`.

    laws, corrections, doubts: of the time of each; robust: key of the last resort.
    """

    contenders: Contenders
    keys: tuple[str, ...]
    lines: Rule
    laws: tuple[Law, ...]
    corrections: tuple[Corrections, ...]
    doubts: tuple[float | None, ...]
    robust: str

    def key(self, domain: Int3) -> str:
        """Return the kernel for a domain: as `Portfolio.chosen`, or the robust one."""
        place = chosen_by(self.lines, domain, lambda n: self.contenders.takes(self.keys[n], domain))
        if place is not None:
            return self.keys[place]
        lawful = [n for n, key in enumerate(self.keys) if self.laws[n] and self.contenders.takes(key, domain)]
        return self.keys[min(lawful, key=lambda n: self._picoseconds(n, domain))] if lawful else self.robust

    def _picoseconds(self, place: int, domain: Int3) -> float:
        numbers = {**extents_of(domain), CHUNKS: self.contenders.count(self.keys[place], domain)}
        return picoseconds(self.laws[place], self.corrections[place], numbers)

    def there(self, domain: Int3) -> str:
        """Return the key that the kernel for a domain has there."""
        return self.contenders.named(self.key(domain), domain)

    def passes(self, measured: Sequence[MeasuredDomain]) -> bool:
        """Return whether the choice is good on all domains."""
        return all(is_good(one, self.there(one.domain)) for one in measured)


def is_good(found: MeasuredDomain, key: str) -> bool:
    """Return whether a kernel loses no more on a domain than it may, and is not slower than the default one at 95 %."""
    result = result_of(found, key)
    return result is not None and result.good and not slower_than_default(found, result.trial)


def result_of(found: MeasuredDomain, key: str) -> Result | None:
    """Return what a kernel reached on a domain; None if it, or the default one, was not measured there."""
    known = {trial.key: trial for trial in found.trials if trial.mlups}
    if key not in known or found.default not in known:
        return None
    fastest = max(known.values(), key=lambda one: one.mlups or 0.0)
    loss = 1.0 - (known[key].mlups or 0.0) / (fastest.mlups or 1.0)
    return Result(known[key], fastest, known[found.default], loss)


def measured_choice(found: MeasuredDomain, keys: Collection[str]) -> Result | None:
    """Return what a solver takes that times some kernels on its domain, by one sample of each, and what it loses.

    None if none of them, or not the default, was measured there.
    """
    known = [one for one in found.trials if one.key in keys and one.final]
    first = {one.key: one.final.samples_s[0] for one in known if one.final}
    return result_of(found, min(first, key=first.__getitem__)) if first else None


def pooled(laws: Laws, measured: Sequence[MeasuredDomain], most: int) -> list[str]:
    """Return the kernels, at most so many, that are near the fastest by measurements and laws."""
    table = laws.table(measured)
    return [laws.contenders.keys[place] for place in cover(table, most, _CLOSE)]


def chosen_of(laws: Laws, measured: Sequence[MeasuredDomain], listed: Sequence[Int3] = ()) -> Chosen:
    """Return few kernels and their rule, by what was measured and by laws for other domains.

    listed: domains that were asked for by name: each that was measured has a line of the rule.
    Raises NothingValidError if nothing was measured.
    """
    table, keys = laws.table(measured).of_measured(), laws.contenders.keys
    if not table.measured.any():
        raise NothingValidError("no kernel was verified on any domain; see the studies of the domains.")
    everywhere = np.flatnonzero((table.speeds > 0).all(axis=0)).tolist() or [0]
    places = cover(table, MOST_KERNELS, _CLOSE, anchors=everywhere)
    last = robust(table, [place for place in places if place in everywhere])
    rows = {one.domain: row for row, one in enumerate(measured) if one.domain in listed}
    lines = tuple(
        RuleLine(kernel=int(np.argmax(table.speeds[row, places] * table.measured[row, places])), least=one, most=one)
        for one, row in rows.items()
    )
    chosen = tuple(keys[place] for place in places)
    return Chosen(
        laws.contenders,
        chosen,
        lines,
        tuple(laws.law(key, measured) for key in chosen),
        tuple(laws.corrections(key, measured) for key in chosen),
        tuple(laws.doubt(key, measured) for key in chosen),
        keys[last],
    )


def write_portfolio(
    folder: Path,
    asked: PortfolioAsked,
    found: Chosen,
    measured: Sequence[MeasuredDomain],
    checked_visit: int | None,
    left_out: Sequence[str],
) -> Best:
    """Write best.json of a portfolio and return its content. checked_visit: the check of this rule, None: none."""
    rows = tuple(rows_of(found, _latest(measured), checked_visit))
    kernels = tuple(_kernel(folder, asked, found, measured, rows, place) for place in range(len(found.keys)))
    robust_place = found.keys.index(found.robust)
    checked = [row for row in rows if row.part == CHECKED]
    portfolio = Portfolio(
        domains=asked.domains,
        tolerance=TOLERANCE,
        seed=asked.spec.seed,
        kernels=tuple(kernel for kernel, _ in kernels),
        rule=found.lines,
        robust=robust_place,
        robust_loss=max((row.robust_loss for row in rows if row.robust_loss is not None), default=0.0),
        worst_loss=max((row.loss for row in checked), default=None),
        checked=len(checked),
        behind_default=sum(row.behind_default for row in checked),
        rows=rows,
        left_out=tuple(left_out),
    )
    whole = replace(kernels[robust_place][1], study=asked.spec.name, portfolio=portfolio)
    write_atomically(folder / BEST, encode_best(whole))
    return whole


def _latest(measured: Sequence[MeasuredDomain]) -> list[MeasuredDomain]:
    found = {one.domain: one for one in measured}
    return sorted(found.values(), key=lambda one: (one.domain[0] * one.domain[1] * one.domain[2], one.domain))


def rows_of(found: Chosen, measured: Sequence[MeasuredDomain], checked_visit: int | None) -> Iterator[PortfolioRow]:
    """Yield what the choice reaches on each domain. checked_visit: the check of this rule; None: there is none."""
    for one in measured:
        key = found.key(one.domain)
        result, alone = (result_of(one, found.contenders.named(name, one.domain)) for name in (key, found.robust))
        if result is None:
            continue
        yield PortfolioRow(
            domain=one.domain,
            part=SEARCHED if one.visit == 0 else CHECKED if one.visit == checked_visit else TAUGHT,
            kernel=found.keys.index(key),
            mlups=result.trial.mlups or 0.0,
            default_mlups=result.default.mlups or 0.0,
            fastest=result.fastest.key,
            fastest_mlups=result.fastest.mlups or 0.0,
            loss=result.loss,
            behind_default=slower_than_default(one, result.trial),
            robust_loss=alone.loss if alone else None,
        )


def unseen_of(found: Chosen, one: MeasuredDomain, keys: Collection[str]) -> Iterator[Unseen]:
    """Yield a domain with both choices, if both were measured there. keys: of the candidates of the measured one."""
    measured = measured_choice(one, keys)
    for row in rows_of(found, [one], one.visit):
        if measured:
            yield Unseen(row, measured, slower_than_default(one, measured.trial), len(keys))


def _kernel(
    folder: Path,
    asked: PortfolioAsked,
    found: Chosen,
    measured: Sequence[MeasuredDomain],
    rows: Sequence[PortfolioRow],
    place: int,
) -> tuple[PortfolioKernel, Best]:
    """Return a kernel as the file holds it, and its own best.json on a domain where it was proved.

    Of these it is the one where it is best beside the others.
    """
    key, own = found.keys[place], [row for row in rows if row.kernel == place]
    there = ((one, found.contenders.named(key, one.domain)) for one in measured)
    results = [(one, result) for one, name in there if (result := result_of(one, name))]
    home, result = min(
        results,
        key=lambda one: (not one[1].trial.proven, found.key(one[0].domain) != key, one[0].visit > 0, one[1].loss),
    )
    whole = best(_record(folder, asked, home.domain, result.trial))
    chunks = found.contenders.chunks.get(key)
    kernel = made_of(
        PortfolioKernel,
        whole.expected,
        key=whole.key,
        configuration=whole.configuration,
        domain=home.domain,
        kernel=whole.kernel.following(chunks) if chunks else whole.kernel,
        storage=whole.storage,
        verification=whole.verification,
        covers=len(own),
        worst_loss=max((row.loss for row in own), default=0.0),
        law=found.laws[place],
        corrections=found.corrections[place],
        doubt=found.doubts[place],
    )
    return kernel, whole


def _record(folder: Path, asked: PortfolioAsked, domain: Int3, trial: Trial) -> StudyRecord:
    """Return a record of one trial, as if a study of its domain had found it alone."""
    place = domain if domain in asked.searched else asked.searched[-1]
    kept = read_study(study_of_domain(folder, place))
    spec = replace(kept.header.spec, case=replace(asked.spec.case, domain=domain))
    return replace(kept, header=replace(kept.header, spec=spec), trials=(trial,))
