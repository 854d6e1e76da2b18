"""Run a portfolio: studies of some domains, their kernels on each other's domains, and checks on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path

import numpy as np

from lbmtune.api.machines import measured_machines
from lbmtune.api.machines.devices import LOG
from lbmtune.api.portfolios.contenders import Contenders, even_chunks, takes
from lbmtune.api.portfolios.laws import Laws
from lbmtune.api.portfolios.proofs import Proofs
from lbmtune.api.portfolios.result import TOLERANCE, Chosen, Unseen, chosen_of, pooled, unseen_of, write_portfolio
from lbmtune.api.portfolios.sampling import TEACH, Sampling
from lbmtune.api.portfolios.searches import name_of, search_domains
from lbmtune.api.portfolios.teaching import most_doubtful
from lbmtune.api.studies.folders import study_of_domain
from lbmtune.api.studies.results import Study
from lbmtune.backend.registry import open_device
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.measure.workers.worker_pool import WorkerPool
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import predict
from lbmtune.records import Trial
from lbmtune.records.best_json.document import Best
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.best_json.portfolio import Portfolio
from lbmtune.records.portfolio_store import (
    MeasuredDomain,
    PortfolioAsked,
    append_domain,
    read_domains,
)
from lbmtune.records.store import holds_study
from lbmtune.search.clock import Clock
from lbmtune.search.interfaces import Observer
from lbmtune.search.lock import device_locks
from lbmtune.search.portfolio.plan import planned

_OF_EACH, _NEAR = 6, 0.9
"""Kernels of each study that are contenders, and the share of its best speed from which on they are."""
_LOOKED_AT = 100
"""Kernels of a study among which one is looked for that another domain takes."""
_ON_EACH, _FEWEST, _RIVALS = 8, 3, 2
"""Contenders that are measured on a domain: at most, if time is short, and those that no portfolio has yet."""
_POOL = 10
"""Contenders that are measured on all domains that teach."""
_CHECKS = 4
"""Checks at most: after one that fails the rule is made anew."""
_RACE_S = 20.0
"""Seconds of the turns on a domain without a limit of time; they end earlier if all is told."""
_SAMPLE = 0.5
"""Length of a sample, in those of a study: of these, the median of three is told to 0.2 % on one H200."""
_LEAST_RACE_S, _EACH_S = 0.15, 0.3
"""Seconds of the turns of a kernel at least, and of turns and preparation together."""
_UNSEEN = 1000
"""Number of the check whose domains teach nothing."""
_LAST_DOMAIN = 1.2
"""Time that must be left for a domain with few kernels, in multiples of what it should take."""
_NEARLY = 0.8
"""Share of the speed of the fastest kernel, by laws, below which the last resort is not measured beside the default."""


@dataclass
class Run:
    """A portfolio in its folder. machine: the description of the device."""

    asked: PortfolioAsked
    device: str
    machine: Machine
    folder: Path
    clock: Clock
    observer: Observer
    left_out: list[str] = field(default_factory=list)
    _searched: tuple[Int3, ...] = ()
    _own: dict[Int3, list[str]] = field(default_factory=dict)

    def search(self) -> None:
        """Run the studies that have not ended yet, the largest domain first; each learns from those before it."""
        self.left_out += search_domains(
            self.asked, self.device, self.folder, clock=self.clock, observer=self.observer, machine=self.machine
        )

    def measure(self) -> Best:
        """Measure kernels on each other's domains, choose, check, and write what was found."""
        with self._on_device():
            self._beside()
            self._teach()
            found, visit = self._checks()
        asked = replace(self.asked, searched=self._searched)
        return write_portfolio(self.folder, asked, found, self._measured, visit, self.left_out)

    def unseen(self, best: Best, found: Portfolio, count: int, seed: int) -> tuple[Unseen, ...]:
        """Measure the choice of a rule on domains that were not measured before, and keep nothing of it.

        All candidates of a choice that is measured are measured beside it. best: with that portfolio. Fewer than
        `count` domains if the time is over.
        """
        rows = list[Unseen]()
        with self._on_device():
            put = self._contenders.put
            keys = tuple(put(from_flat(one.configuration), None, one.kernel.chunks) for one in found.kernels)
            laws, corrections, doubts = zip(
                *((one.law, one.corrections, one.doubt) for one in found.kernels), strict=True
            )
            frozen = Chosen(self._contenders, keys, found.rule, laws, corrections, doubts, keys[found.robust])
            domains = self._sampling.unseen(count, seed, [one.domain for one in self._measured])
            for number, domain in enumerate(domains):
                if self.clock.left_s <= 0:
                    LOG.warning("time is over: %d of %d domains were not measured", len(domains) - number, len(domains))
                    break
                seconds = self._share(self.clock.limit_s, len(domains) - number)
                tried = [best.of_portfolio(one.place, domain, one.chunks).config for one in found.candidates(domain)]
                rivals = self._rivals(frozen, domain, seconds - len(tried) * _EACH_S)
                there = self._on(domain, _UNSEEN, rivals, seconds, tried, proved=frozen.key(domain), keep=False)
                rows.extend(unseen_of(frozen, there, [one.key for one in tried]))
        return tuple(rows)

    @contextmanager
    def _on_device(self) -> Iterator[None]:
        """Lock the device and start its workers, with the contenders that are known by now."""
        spec = self.asked.spec
        brief = replace(spec.protocol, final_sample_s=_SAMPLE * spec.protocol.final_sample_s)
        with WorkerPool(partial(open_device, self.device), brief) as self._pool:
            evaluator = Evaluator(spec.case, self.device, spec.protocol, pool=self._pool)
            with device_locks(evaluator.environments):
                last = from_flat(self.asked.last_resort)
                machine = measured_machines.borrowing(self.machine)
                self._contenders = Contenders(spec, machine, evaluator.limits, {last.key: last})
                self._sampling, self._proofs = Sampling(self.asked, self._fits), Proofs()
                self._laws = Laws(self._contenders, self._sampling.foreseen(), self._sampling.imagined())
                self._studies()
                yield

    def _studies(self) -> None:
        """Take the fastest kernels of each study as contenders, and its fastest one that each other domain takes."""
        self._measured = read_domains(self.folder)
        self._searched = tuple(one for one in self.asked.searched if holds_study(study_of_domain(self.folder, one)))
        for domain in self._searched:
            ranked = Study(study_of_domain(self.folder, domain)).ranked
            self._own[domain] = self._contenders.add(self._nearest(ranked))
            self._contenders.add(list(self._first_legal(ranked)))
            for trial in self._nearest(ranked):
                self._contenders.put(even_chunks(trial.kernel_config), trial.resources)
            self._proofs.of_study(domain, ranked)
        for one in self._measured:
            self._note(one)

    def _note(self, found: MeasuredDomain) -> None:
        self._contenders.add([trial for trial in found.trials if trial.mlups])
        self._proofs.note(found)

    def _nearest(self, ranked: Sequence[Trial]) -> list[Trial]:
        """Return the fastest trial of each of the fastest kernels of a study, one of those that are alike."""
        near = (one for one in ranked if (one.mlups or 0.0) >= _NEAR * (ranked[0].mlups or 0.0))
        found: dict[str, Trial] = {}
        for one in near:
            found.setdefault(self._contenders.shape(one.kernel_config), one)
        return [*found.values()][:_OF_EACH]

    def _first_legal(self, ranked: Sequence[Trial]) -> Iterator[Trial]:
        spec, limits = self.asked.spec, self._contenders.limits
        configs = [(trial, trial.kernel_config) for trial in ranked[:_LOOKED_AT]]
        for domain in self._laws.others:
            yield from islice((trial for trial, config in configs if takes(spec, config, limits, domain)), 1)

    def _beside(self) -> None:
        """Measure the contenders on each searched domain: those that are expected near the fastest."""
        plan = planned(self.clock.limit_s)
        todo = [one for one in self._searched if not self._done(one, 0)]
        for number, domain in enumerate(todo):
            if number and self._is_over(domain):
                self.left_out.append(f"kernels on {len(todo) - number} of {len(todo)} domains that were searched")
                return
            self._contenders.default(domain)
            seconds = self._share(plan.beside_s, len(todo) - number)
            keys = [*dict.fromkeys([*self._own[domain], *self._likely(domain, _ON_EACH)])]
            self._on(domain, 0, self._fitting(domain, keys, seconds, _ON_EACH), seconds)

    def _teach(self) -> None:
        """Measure contenders on domains all over the range, then where laws leave most doubt about the fastest."""
        plan, pool = planned(self.clock.limit_s), pooled(self._laws, self._measured, _POOL)
        domains = [one for one in self._sampling.teaching() if not self._done(one, TEACH)]
        for number, domain in enumerate(domains):
            if self.clock.spent_s > plan.taught_s or self._is_over(domain):
                self.left_out.append(f"measurements on {len(domains) - number} domains that teach")
                break
            legal = [key for key in pool if self._contenders.takes(key, domain)]
            keys = [*dict.fromkeys([*legal, *self._likely(domain, _POOL)])]
            fitting = self._fitting(domain, keys, self._share(plan.taught_s, len(domains) - number), _POOL)
            self._on(domain, TEACH, fitting, self._cost_s(domain, fitting))
        while candidates := self._sampling.doubtful(self._laws.imagined, self._measured):
            found = chosen_of(self._laws, self._measured)
            domain = most_doubtful(self._laws, self._measured, candidates, found.keys)
            if self.clock.spent_s > plan.doubtful_s or self._is_over(domain):
                return
            keys = self._rivals(found, domain, inf)
            self._on(domain, TEACH, keys, self._cost_s(domain, keys))

    def _cost_s(self, domain: Int3, keys: Sequence[str]) -> float:
        """Return the least seconds of kernels on a domain; 0 if nothing was measured yet."""
        case, at = replace(self.asked.spec.case, domain=domain), self._contenders.at
        proof_s = self._proofs.seconds(domain)
        each = (_EACH_S + (0.0 if self._proofs.known(case, at(key, domain)) else proof_s) for key in keys)
        return sum(each) if self._measured else 0.0

    def _is_over(self, domain: Int3) -> bool:
        """Return whether no time is left for a domain."""
        keys = (*self._always(domain), *self._likely(domain, _FEWEST))
        return self.clock.left_s < _LAST_DOMAIN * self._cost_s(domain, keys)

    def _fitting(self, domain: Int3, keys: Sequence[str], seconds: float, most: int) -> list[str]:
        """Return the first kernels that fit into seconds beside those of each domain; a few anyway. most: of them."""
        left_s, found = seconds - self._cost_s(domain, self._always(domain)), list[str]()
        for key in keys[:most]:
            left_s -= self._cost_s(domain, [key])
            if left_s < 0 and len(found) >= _FEWEST:
                break
            found.append(key)
        return found

    def _always(self, domain: Int3) -> tuple[str, ...]:
        """Return the default kernel of a domain, and the last resort unless it is known to be far from the fastest."""
        usual, last = self._contenders.default(domain), self._contenders.keys[0]
        speeds = self._laws.speeds([domain], self._measured)[0]
        far = any(one.visit == TEACH for one in self._measured) and speeds[0] < _NEARLY * speeds.max()
        return (usual,) if far else (*dict.fromkeys((last, usual)),)

    def _likely(self, domain: Int3, count: int) -> list[str]:
        """Return the contenders that may be the fastest on a domain: by their laws, and by how far these may err."""
        speeds = self._laws.hopes(domain, self._measured)
        return [self._contenders.keys[n] for n in np.argsort(-speeds, kind="stable")[:count] if speeds[n] > 0]

    def _rivals(self, found: Chosen, domain: Int3, seconds: float) -> list[str]:
        """Return the choice for a domain, the robust kernel, and others that may be faster, as there is time for."""
        likely = self._likely(domain, _ON_EACH)
        others = [*likely[:_RIVALS], *(key for key in likely if key in found.keys), *likely]
        keys = [*dict.fromkeys([found.key(domain), found.robust, *others])]
        return self._fitting(domain, keys, seconds, _ON_EACH)

    def _share(self, until_s: float, domains: int) -> float:
        """Return the seconds of a domain of so many that are left to measure."""
        return inf if until_s == inf else max(until_s - self.clock.spent_s, 0.0) / max(domains, 1)

    def _done(self, domain: Int3, visit: int) -> bool:
        return any(one.domain == domain and one.visit == visit for one in self._measured)

    def _on(
        self,
        domain: Int3,
        visit: int,
        keys: Sequence[str],
        seconds: float,
        tried: Sequence[KernelConfig] = (),
        *,
        proved: str = "",
        keep: bool = True,
    ) -> MeasuredDomain:
        """Measure kernels on a domain, the default and, if it may be fast, the last resort among them.

        tried: launches that are measured besides, perhaps with other numbers of chunks; proved: kernel that is proved
        there even if it was elsewhere; keep: also on disk.
        """
        spec, contenders = self.asked.spec, self._contenders
        usual, case = contenders.default(domain), replace(spec.case, domain=domain)
        names = [one for one in dict.fromkeys((*self._always(domain), *keys)) if contenders.takes(one, domain)]
        known = [contenders.at(name, domain) for name in names]
        there = {one.key for one in known}
        others = [one for one in tried if one.key not in there and takes(spec, one, contenders.limits, domain)]
        configs = [*known, *others]
        self.observer.phase(f"{len(configs)} kernels on {name_of(domain)}", None)
        proofs = {
            n: one
            for n, one in self._proofs.known_of(case, configs).items()
            if one.full_size or n >= len(names) or names[n] != proved
        }
        cost_s = self._cost_s(domain, names) + len(others) * _EACH_S
        left_s = seconds - cost_s + len(configs) * _LEAST_RACE_S
        race_s = _RACE_S if seconds == inf else max(_LEAST_RACE_S * len(configs), min(left_s, 0.4 * seconds))
        expected = partial(predict, case, machine=contenders.machine)
        with Evaluator(case, self.device, spec.protocol, expected, pool=self._pool) as evaluator:
            trials = evaluator.finals(configs, proofs=proofs, race_s=race_s)
        default = contenders.named(usual, domain)
        found = MeasuredDomain(domain=domain, visit=visit, default=default, trials=tuple(trials))
        if keep:
            append_domain(self.folder, found)
        self._measured.append(found)
        self._note(found)
        return found

    def _fits(self, domain: Int3) -> bool:
        return self._contenders.takes(self._contenders.keys[0], domain)

    def _choose(self, before: int) -> Chosen:
        """Return kernels and rule by what was measured before a visit."""
        known = [one for one in self._measured if one.visit < before]
        return chosen_of(self._laws, known, self._sampling.space.listed)

    def _checks(self) -> tuple[Chosen, int | None]:
        """Check the choice on domains that were not searched; make it anew after a check that fails.

        Returns the choice, and the number of the check that it passed; None if it was made anew after the last.
        """
        for visit in range(TEACH + 1, TEACH + 1 + _CHECKS):
            found = self._choose(visit)
            ended = self._check(found, visit)
            measured = [one for one in self._measured if one.visit == visit]
            if found.passes(measured):
                return found, visit
            if not ended:
                break
            LOG.info("check: not all domains are within %.0f %%; the rule is made anew", 100 * TOLERANCE)
        self.left_out.append("a check of the last rule, which was made after the check before it")
        return self._choose(visit + 1), None

    def _check(self, found: Chosen, visit: int) -> bool:
        """Measure the choice on the domains of a check beside what may be faster. Returns whether time was enough."""
        domains = self._sampling.of_check(visit, self._measured)
        for number, domain in enumerate(domains):
            if self._done(domain, visit):
                continue
            if self._is_over(domain):
                self.left_out.append(f"check: {len(domains) - number} of {len(domains)} domains")
                return False
            seconds = self._share(self.clock.limit_s, len(domains) - number)
            self._on(domain, visit, self._rivals(found, domain, seconds), seconds, proved=found.key(domain))
        return True
