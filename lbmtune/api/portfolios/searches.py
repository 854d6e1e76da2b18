"""Run the studies of a portfolio, one for each domain that is searched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lbmtune.api.machines.devices import LOG
from lbmtune.api.studies.earlier import teaches
from lbmtune.api.studies.folders import study_of_domain
from lbmtune.api.studies.run import study
from lbmtune.model.machine.description import Machine
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.portfolio_store import PortfolioAsked
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import holds_study, read_study
from lbmtune.search.clock import Clock
from lbmtune.search.interfaces import Observer
from lbmtune.search.portfolio.plan import planned

_LEAST_SEARCHES = 2
"""Studies that are run even if the start of each takes the time of several."""


def name_of(domain: Int3) -> str:
    """Return the name of the folder of a domain."""
    return "x".join(map(str, domain))


def search_domains(
    asked: PortfolioAsked, device: str, folder: Path, *, clock: Clock, observer: Observer, machine: Machine
) -> list[str]:
    """Run the studies that have not ended yet, the largest domain first; each learns from those before it.

    folder: of the portfolio. Returns what was left out for lack of time, in words.
    """
    plan, (*others, largest) = planned(clock.limit_s), asked.searched
    domains, limit_s = (largest, *others), plan.searches * plan.search_s
    for number, domain in enumerate(domains, 1):
        place = study_of_domain(folder, domain)
        begun = holds_study(place)
        if begun and read_study(place).header.finished:
            continue
        if number > _LEAST_SEARCHES and 0 < limit_s < clock.spent_s:
            return [f"studies of {len(domains) - number + 1} of {len(domains)} domains"]
        left_s = (len(domains) * plan.search_s - clock.spent_s) / (len(domains) - number + 1)
        spec = _spec_on(asked.spec, domain, max(left_s, 0.5 * plan.search_s))
        LOG.info("domain %d of %d: %s", number, len(domains), name_of(domain))
        earlier = [study_of_domain(folder, one) for one in domains if one != domain]
        study(
            spec,
            device,
            place,
            resume=begun,
            sources=None if begun else [one for one in earlier if teaches(one)],
            observer=observer,
            machine=machine,
        )
    return []


def _spec_on(spec: StudySpec, domain: Int3, seconds: float) -> StudySpec:
    """Return the study of a domain: without runs of seconds, which say nothing of other domains."""
    return replace(
        spec,
        name=f"{spec.name}-{name_of(domain)}",
        case=replace(spec.case, domain=domain),
        budget=replace(spec.budget, seconds=seconds),
        protocol=replace(spec.protocol, sustained_top=0, profiled=0),
    )
