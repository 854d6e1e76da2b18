"""Proofs of the kernels of a portfolio: each at full size where it is measured first, and later where it is asked for.

After turns a kernel is compared with the oracle on slabs across each axis anyway (`measure.verification.aftermath`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render
from lbmtune.records import Trial, Verification
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.portfolio_store import MeasuredDomain
from lbmtune.search.portfolio.plan import Spent, proof_s


def text_of(case: Case, config: KernelConfig) -> str:
    """Return the digest of the text of a kernel on a domain, which most texts do not depend on."""
    return render(case, config).digest


@dataclass
class Proofs:
    """Keep what was proved. searched: by domain and key of a configuration, in studies."""

    searched: dict[tuple[Int3, str], Verification] = field(default_factory=dict)
    _by_text: dict[str, Verification] = field(default_factory=dict)
    _texts: dict[tuple[Int3, str], str] = field(default_factory=dict)
    _spent: list[Spent] = field(default_factory=list)

    def of_study(self, domain: Int3, trials: Sequence[Trial]) -> None:
        """Take note of the proofs of a study, which hold for the same launches of the same domain."""
        self.searched |= {(domain, one.key): one.verification for one in trials if one.proven and one.verification}

    def note(self, found: MeasuredDomain) -> None:
        """Take note of kernels that were measured on a domain, and of the seconds of their proofs."""
        proved = [trial for trial in found.trials if trial.proven]
        by_text = {one.source_digest: one.verification for one in proved if one.verification}
        self._by_text |= {text: one for text, one in by_text.items() if text}
        if spent := [trial.costs.verify_s for trial in proved if trial.costs.verify_s]:
            self._spent.append(Spent(prod(found.domain), len(spent), sum(spent)))

    def known(self, case: Case, config: KernelConfig) -> Verification | None:
        """Return the proof of a kernel; of another domain, it is none at full size. None if there is none."""
        found = self.searched.get((case.domain, config.key))
        elsewhere = None if found else self._by_text.get(self._text(case, config))
        return replace(elsewhere, full_size=False) if elsewhere else found

    def known_of(self, case: Case, configs: Sequence[KernelConfig]) -> Mapping[int, Verification]:
        """Return the known proofs by position."""
        found = ((n, self.known(case, config)) for n, config in enumerate(configs))
        return {n: one for n, one in found if one}

    def seconds(self, domain: Int3) -> float:
        """Return the seconds of proving a kernel on a domain, as on those that were measured; 0 if there are none."""
        return proof_s(self._spent, prod(domain))

    def _text(self, case: Case, config: KernelConfig) -> str:
        if (case.domain, config.key) not in self._texts:
            self._texts[case.domain, config.key] = text_of(case, config)
        return self._texts[case.domain, config.key]
