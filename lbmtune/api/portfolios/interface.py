"""Search few kernels for many domains, and check what they reach on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path

from lbmtune import __version__
from lbmtune.api.machines.devices import bounds, chosen
from lbmtune.api.portfolios.contenders import last_resort, takes
from lbmtune.api.portfolios.result import BEST, Unseen
from lbmtune.api.portfolios.run import Run
from lbmtune.api.studies.folders import check_begun, new_folder
from lbmtune.api.studies.run import described
from lbmtune.backend.registry import backend_of, open_device
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.files.studyfile import as_spec
from lbmtune.records.best_json.document import Best, read_best
from lbmtune.records.portfolio_store import ASKED, PortfolioAsked, holds_portfolio, read_asked, write_asked
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import holds_study
from lbmtune.search.clock import Clock, now
from lbmtune.search.interfaces import Observer
from lbmtune.search.lock import folder_lock
from lbmtune.search.portfolio.domains import parse_domains, searched
from lbmtune.search.portfolio.plan import planned
from lbmtune.search.study import check_same_spec


def portfolio(
    spec: StudySpec | Case | Path | str,
    domains: str,
    device: str | None = None,
    folder: Path | str | None = None,
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    refresh: bool = False,
    calibrate: bool = True,
    observer: Observer | None = None,
    begun_s: float | None = None,
) -> tuple[Path, Best]:
    """Search few kernels that are fast on all domains of a range, and return the folder and the content of best.json.

    spec, device, folder, overrides, resume, refresh, calibrate, observer, begun_s: as of `study`; the time of the
    budget is that of the whole. domains: '64:512', or a list such as '64,96x96x48,256', in place of the domain of the
    case.
    Raises InputError, DeviceUnavailableError, and NothingValidError if no kernel was verified on any domain.
    """
    begun_s = now() if begun_s is None else begun_s
    wanted, where = as_spec(spec, overrides), chosen(device)
    _check(wanted)
    parse_domains(domains, wanted.case.stencil.dimensions)  # before there is a folder
    place = Path(folder) if folder else new_folder(f"{wanted.name}-portfolio", where, resume=resume, holds=ASKED)
    check_begun(place, "a portfolio", exists=holds_portfolio(place), resume=resume)
    if not resume and holds_study(place):
        raise InputError(f"{place} already holds a study; choose another --output.")
    clock = Clock(begun_s, wanted.budget.seconds or inf)
    with folder_lock(place):
        asked = _asked(wanted, domains, where, place, clock, resume=resume)
        machine = described(where, refresh=refresh, resume=resume, calibrate=calibrate)
        run = Run(asked, where, machine, place, clock, observer or Observer())
        run.search()
        return place, run.measure()


def unseen(
    folder: Path | str, device: str | None = None, count: int = 40, *, seed: int = 0, seconds: float = inf
) -> tuple[Unseen, ...]:
    """Measure what a portfolio chooses on domains that it has not seen, and return them with the losses there.

    Losses are of the choice of the rule, and of one that is measured on each domain.

    folder: of the portfolio, whose files stay as they are; seed: of the domains; seconds: of the whole, after
    which no other domain is begun.
    Raises InputError, DeviceUnavailableError.
    """
    place, where = Path(folder), chosen(device)
    best = read_best(place / BEST)
    found = best.portfolio
    if found is None:
        raise InputError(f"{place / BEST} holds no portfolio; give the folder of lbmtune study --domains.")
    asked, machine = read_asked(place), described(where, refresh=False, resume=True, calibrate=False)
    with folder_lock(place):
        run = Run(asked, where, machine, place, Clock(now(), seconds), Observer())
        return run.unseen(best, found, count, seed)


def _check(spec: StudySpec) -> None:
    """Refuse studies whose result depends on more than the domain. Raises InputError."""
    if spec.case.geometry or spec.case.patches:
        what = f"geometry={spec.case.geometry.partition(':')[0]}" if spec.case.geometry else "patches"
        raise InputError(
            f"--domains is not supported for {what} (use a case of a box): on another domain it is another flow."
        )
    if spec.objectives != ("mlups",):
        raise InputError(
            f"--domains is not supported for objective={','.join(spec.objectives)} (use mlups): kernels are chosen by "
            "their speed on each domain."
        )


def _asked(spec: StudySpec, text: str, device: str, folder: Path, clock: Clock, *, resume: bool) -> PortfolioAsked:
    """Return what is asked, which is written, or what a portfolio that goes on was asked. Raises InputError."""
    environment, backend = open_device(device).environment, backend_of(device)
    if resume:
        kept = read_asked(folder)
        if kept.domains != text:
            raise InputError(f"{folder} holds a portfolio with --domains {kept.domains}; resume it with these.")
        for name, was, here in kept.environment.differences(environment):
            raise InputError(f"{folder} was begun with {name} {was!r} and this is {here!r}; resume it there.")
        check_same_spec(kept.spec, spec, folder)
        return replace(kept, spec=replace(kept.spec, budget=spec.budget))
    space, limits = parse_domains(text, spec.case.stencil.dimensions), bounds(device).limits
    last = last_resort(spec, space.least, space.most, limits, backend)
    found = searched(space, planned(clock.limit_s).searches, spec.seed, partial(takes, spec, last, limits))
    asked = PortfolioAsked(
        spec=spec,
        domains=text,
        searched=found,
        last_resort=last.flat(),
        backend=backend,
        environment=environment,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
    )
    write_asked(folder, asked)
    return asked
