"""Counts of verdicts: published claims by what became of them, own questions by their verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lbmtune.claims.tally import Standing, can_be_asked, of_claims, of_questions, standing, tally, verdicts_of
from lbmtune.files.claimsfile import load_documents
from lbmtune.records.claims import Claim, Claims, Holding, Verdict
from tests.claims.test_claims import TEXT, document, run


@pytest.mark.parametrize(
    ("holding", "beside", "expected"),
    [
        (Holding.HOLDS, "", Standing.AS_PUBLISHED),
        (Holding.HOLDS, "as published", Standing.AS_PUBLISHED),
        (Holding.HOLDS, "more", Standing.MORE),
        (Holding.HOLDS, "less", Standing.LESS),
        (Holding.FAILS, "less", Standing.NOT_HERE),
        (Holding.UNDECIDED, "more", Standing.UNDECIDED),
        (Holding.UNTESTABLE, "", Standing.NOT_MEASURED),
    ],
)
def test_what_became_of_a_claim(holding: Holding, beside: str, expected: Standing) -> None:
    verdict = Verdict(document="d", claim="c", holding=holding, reason="", beside_published=beside)
    assert standing(verdict) is expected
    assert tally([standing(verdict)])[expected] == 1
    never = Verdict(document="d", claim="c", holding=Holding.UNTESTABLE, reason="")
    assert standing(never, can_be_asked=False) is Standing.NOT_ASKED


def test_what_can_be_asked_has_variants_and_domains_for_the_device_and_no_reason_against_it() -> None:
    one = document()
    faster = one.claims[0]
    assert can_be_asked(one, faster, "cuda")
    assert not can_be_asked(one, faster, "cpu"), "no variant is for processors"
    assert not can_be_asked(one, replace(faster, untestable={"cuda": "no such switch"}), "cuda")
    assert not can_be_asked(one, replace(faster, of=()), "cuda")
    without = replace(one, series=(replace(one.series[0], cases={}),))
    assert not can_be_asked(without, faster, "cuda"), "no domain is for it"
    assert not can_be_asked(document(TEXT.replace('cuda = "scheme=pull', 'cpu = "scheme=pull')), faster, "cuda")


def test_own_questions_are_marked_in_the_file_and_counted_by_themselves(tmp_path: Path) -> None:
    marked = document(TEXT.replace("[claims.unheard-of]", "[claims.unheard-of]\nown = true"))
    assert [claim.own for claim in marked.claims] == [False, True]
    claims = run(tmp_path, marked)
    assert isinstance(claims, Claims)
    assert of_claims(claims) == "of 1 claim: 1 as published, 0 more, 0 less, 0 not here, 0 cannot be asked"
    assert of_questions(claims) == "own questions, 1: 1 not testable here"
    twice = replace(
        claims, verdicts=tuple(replace(one, holding=Holding.FAILS, claim="unheard-of") for one in claims.verdicts)
    )
    assert of_questions(twice) == "own questions, 2: 2 do not hold"
    assert (of_claims(claims, "another"), of_questions(claims, "another")) == ("", "")
    both = [verdicts_of(claims, own=own, document="made-up") for own in (False, True)]
    assert [[verdict.claim for verdict in found] for found in both] == [["faster"], ["unheard-of"]]


def test_what_an_earlier_version_stored_has_no_marks() -> None:
    kept = msgspec.to_builtins(Claim(name="c", sentence="s"))
    del kept["own"]
    assert msgspec.convert(kept, Claim) == Claim(name="c", sentence="s")


def test_questions_of_kernels_that_no_document_has_are_own() -> None:
    claims = [claim for one in load_documents(()) for claim in one.claims]
    assert any(claim.own for claim in claims)
    assert all(claim.own for claim in claims if claim.name.endswith(("-direct", "-on-chip")))
