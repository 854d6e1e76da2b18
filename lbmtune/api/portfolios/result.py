"""What a portfolio found: few kernels, the rule between them, the loss on each measured domain, and its best.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lbmtune.api.portfolios.contenders import Contenders, slower_than_default
from lbmtune.api.studies.folders import study_of_domain
from lbmtune.errors import NothingValidError
from lbmtune.export import best
from lbmtune.records import Trial, made_of
from lbmtune.records.best_json.document import Best, encode_best
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.best_json.portfolio import (
    CHECKED,
    SEARCHED,
    TAUGHT,
    Portfolio,
    PortfolioKernel,
    PortfolioRow,
    Rule,
    chosen_by,
)
from lbmtune.records.portfolio_store import MeasuredDomain, PortfolioAsked
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import write_atomically
from lbmtune.search.portfolio.cover import cover, robust
from lbmtune.search.portfolio.rule import learned

MOST_KERNELS = 6
TOLERANCE = 0.03
"""Share of the speed of the fastest kernel that the choice may lose on a domain."""
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
class Chosen:
    """Few kernels and their rule. keys: of the kernels, whose places the rule names; robust: key of the last resort."""

    contenders: Contenders
    keys: tuple[str, ...]
    rule: Rule
    robust: str

    def key(self, domain: Int3) -> str:
        """Return the kernel for a domain."""
        place = chosen_by(self.rule, domain, lambda n: self.contenders.takes(self.keys[n], domain))
        return self.robust if place is None else self.keys[place]

    def passes(self, measured: Sequence[MeasuredDomain]) -> bool:
        """Return whether the choice is good on all domains."""
        return all(is_good(one, self.key(one.domain)) for one in measured)


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


def chosen_of(contenders: Contenders, measured: Sequence[MeasuredDomain], foreseen: Sequence[Int3]) -> Chosen:
    """Return few kernels and their rule, by what was measured and by predictions for other domains.

    Raises NothingValidError if nothing was measured.
    """
    table = contenders.table(measured, foreseen).of_measured()
    if not table.measured.any():
        raise NothingValidError("no kernel was verified on any domain; see the studies of the domains.")
    everywhere = np.flatnonzero((table.speeds > 0).all(axis=0)).tolist() or [0]
    last = robust(table, everywhere)
    places = cover(table, MOST_KERNELS, TOLERANCE, first=(last,))
    rule = learned(table, places, TOLERANCE, places.index(last))
    used = [place for n, place in enumerate(places) if any(line.kernel == n for line in rule)]
    renamed = {n: used.index(place) for n, place in enumerate(places) if place in used}
    return Chosen(
        contenders,
        tuple(contenders.keys[place] for place in used),
        tuple(replace(line, kernel=renamed[line.kernel]) for line in rule),
        contenders.keys[last],
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
        rule=found.rule,
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
        result, alone = result_of(one, key), result_of(one, found.robust)
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


def _kernel(
    folder: Path,
    asked: PortfolioAsked,
    found: Chosen,
    measured: Sequence[MeasuredDomain],
    rows: Sequence[PortfolioRow],
    place: int,
) -> tuple[PortfolioKernel, Best]:
    """Return a kernel as the file holds it, and its own best.json on the domain where it is best beside the others."""
    key, own = found.keys[place], [row for row in rows if row.kernel == place]
    results = [(one, result) for one in measured if (result := result_of(one, key))]
    home, result = min(results, key=lambda one: (found.key(one[0].domain) != key, one[0].visit > 0, one[1].loss))
    whole = best(_record(folder, asked, home.domain, result.trial))
    kernel = made_of(
        PortfolioKernel,
        whole.expected,
        key=key,
        configuration=whole.configuration,
        domain=home.domain,
        kernel=whole.kernel,
        storage=whole.storage,
        verification=whole.verification,
        covers=len(own),
        worst_loss=max((row.loss for row in own), default=0.0),
    )
    return kernel, whole


def _record(folder: Path, asked: PortfolioAsked, domain: Int3, trial: Trial) -> StudyRecord:
    """Return a record of one trial, as if a study of its domain had found it alone."""
    place = domain if domain in asked.searched else asked.searched[-1]
    kept = read_study(study_of_domain(folder, place))
    spec = replace(kept.header.spec, case=replace(asked.spec.case, domain=domain))
    return replace(kept, header=replace(kept.header, spec=spec), trials=(trial,))
