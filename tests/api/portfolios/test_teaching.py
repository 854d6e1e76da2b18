"""The domain that teaches next, and proofs that are not repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbmtune.api.portfolios.proofs import Proofs, text_of
from lbmtune.api.portfolios.teaching import expected_loss
from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.catalogue.problem.flows import box
from lbmtune.records import Costs, Trial
from lbmtune.records.portfolio_store import MeasuredDomain
from lbmtune.records.trial import Outcome
from tests.support.studies.fake_study import verification

CASE, KERNEL = box("d3q19", "bgk", (64, 64, 64)), Direct()


def test_the_expected_loss_is_that_of_many_draws() -> None:
    speeds, doubts = np.array([100.0, 98.0, 0.0]), np.array([0.01, 0.03, 0.5])
    other = np.random.default_rng(1).normal(np.log(98 / 100), np.hypot(0.01, 0.03), 200_000)
    assert expected_loss(speeds, doubts) == pytest.approx(np.maximum(other, 0).mean(), rel=0.02)
    assert expected_loss(speeds, doubts) > expected_loss(speeds, doubts / 2)
    assert expected_loss(speeds, doubts) > expected_loss(np.array([100.0, 90.0, 0.0]), doubts)
    assert expected_loss(speeds[[0, 2]], doubts[:2]) == 0, "a kernel that is illegal wins nothing"
    assert expected_loss(np.array([100.0, 100.0]), np.zeros(2)) == 0


def trial(domain: tuple[int, int, int], digest: str, seconds: float = 0.5, *, full: bool = True) -> Trial:
    proof = replace(verification(), domains=(domain,), full_size=full)
    return Trial(
        number=0,
        key=KERNEL.key,
        config=KERNEL.flat(),
        outcome=Outcome.OK,
        verification=proof,
        costs=Costs(verify_s=seconds),
        source_digest=digest,
    )


def measured(domain: tuple[int, int, int], *trials: Trial) -> MeasuredDomain:
    return MeasuredDomain(domain=domain, visit=1, default=KERNEL.key, trials=trials)


def test_a_kernel_that_was_proved_elsewhere_is_known_but_not_at_full_size() -> None:
    there, here = (96, 64, 80), replace(CASE, domain=(128, 70, 66))
    proofs = Proofs()
    assert proofs.known(here, KERNEL) is None
    proofs.note(measured(there, trial(there, text_of(here, KERNEL), full=False)))
    assert proofs.known(here, KERNEL) is None, "nobody proved it at full size"
    proofs.note(measured(there, trial(there, text_of(here, KERNEL))))
    known = proofs.known(here, KERNEL)
    assert known is not None
    assert (known.full_size, known.domains) == (False, (there,))
    assert proofs.known(here, replace(KERNEL, block=(32, 1, 1))) is None, "another text"
    assert proofs.known_of(here, [replace(KERNEL, block=(32, 1, 1)), KERNEL]) == {1: known}


def test_a_proof_of_a_study_holds_on_its_own_domain_alone() -> None:
    proofs, here = Proofs(), (64, 64, 64)
    proofs.of_study(here, [trial(here, "any")])
    known = proofs.known(CASE, KERNEL)
    assert known is not None
    assert known.full_size
    assert proofs.known(replace(CASE, domain=(65, 64, 64)), KERNEL) is None


def test_the_seconds_of_proofs_leave_those_out_that_were_known() -> None:
    proofs, domain = Proofs(), (64, 64, 64)
    assert proofs.seconds(domain) == 0
    proofs.note(measured(domain, trial(domain, "a", 0.6), trial(domain, "b", 0.4), trial(domain, "c", 0.0)))
    assert proofs.seconds(domain) == pytest.approx(0.5)
