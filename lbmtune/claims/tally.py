"""Counts of verdicts: claims of the documents, and questions of this tool, which no document claims."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from lbmtune.records.claims import Claims, Holding, Verdict


class Standing(StrEnum):
    """What became of a published claim. AS_PUBLISHED: it holds, within the printed range or without one."""

    AS_PUBLISHED = "as published"
    MORE = "more"
    LESS = "less"
    NOT_HERE = "not here"
    UNDECIDED = "undecided"
    NOT_ASKED = "cannot be asked"


_OF_HOLDING = {
    Holding.FAILS: Standing.NOT_HERE,
    Holding.UNDECIDED: Standing.UNDECIDED,
    Holding.UNTESTABLE: Standing.NOT_ASKED,
}


def standing(verdict: Verdict) -> Standing:
    """Return what became of a claim; of one that holds, how its quantity compares with the printed range."""
    return _OF_HOLDING.get(verdict.holding) or Standing(verdict.beside_published or Standing.AS_PUBLISHED)


def verdicts_of(claims: Claims, *, own: bool, document: str = "") -> tuple[Verdict, ...]:
    """Return the verdicts on published claims, or on own questions. document: its name, or '' for all."""
    mine = {(one.name, claim.name) for one in claims.documents for claim in one.claims if claim.own is own}
    found = (verdict for verdict in claims.verdicts if (verdict.document, verdict.claim) in mine)
    return tuple(verdict for verdict in found if document in ("", verdict.document))


def tally(verdicts: Sequence[Verdict]) -> dict[Standing, int]:
    """Return how many claims have each standing; 'undecided' only if there are any."""
    found = Counter(map(standing, verdicts))
    return {one: found[one] for one in Standing if found[one] or one is not Standing.UNDECIDED}


def of_claims(claims: Claims, document: str = "") -> str:
    """Return the counts of the published claims as text, of one document or of all; '' without any."""
    found = verdicts_of(claims, own=False, document=document)
    counted = ", ".join(f"{count} {one}" for one, count in tally(found).items())
    return f"of {len(found)} {'claim' if len(found) == 1 else 'claims'}: {counted}" if found else ""


def of_questions(claims: Claims, document: str = "") -> str:
    """Return the counts of the own questions as text, of one document or of all; '' without any."""
    found = Counter(verdict.holding for verdict in verdicts_of(claims, own=True, document=document))
    counted = ", ".join(f"{found[one]} {one}" for one in Holding if found[one])
    return f"own questions, {found.total()}: {counted}" if found else ""
