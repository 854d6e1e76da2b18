"""Counts of verdicts: claims of the documents, and questions of this tool, which no document claims."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from lbmtune.records.claims import Claim, Claims, Document, Holding, Verdict


class Standing(StrEnum):
    """Name what became of a published claim (MEANINGS)."""

    AS_PUBLISHED = "as published"
    MORE = "more"
    LESS = "less"
    NOT_HERE = "not here"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"
    NOT_ASKED = "cannot be asked"


MEANINGS = {
    Standing.AS_PUBLISHED: "it holds, within the printed range or without one",
    Standing.MORE: "it holds, and its effect is larger than printed",
    Standing.LESS: "it holds, and its effect is smaller than printed",
    Standing.NOT_HERE: "it was measured on this device and does not hold",
    Standing.UNDECIDED: "it was measured, and the interval covers the bound",
    Standing.NOT_MEASURED: "this device could answer it, but what it compares failed, is not legal here or was not run",
    Standing.NOT_ASKED: "no measurement on this kind of device can answer it; its row gives the reason",
}
"""The meaning of each standing of a claim."""
_OF_HOLDING = {Holding.FAILS: Standing.NOT_HERE, Holding.UNDECIDED: Standing.UNDECIDED}
_SEVERAL = {Holding.HOLDS: "hold", Holding.FAILS: "do not hold"}
_IF_ANY = (Standing.UNDECIDED, Standing.NOT_MEASURED)


def standing(verdict: Verdict, *, can_be_asked: bool = True) -> Standing:
    """Return what became of a claim; of one that holds, how its quantity compares with the printed range."""
    if verdict.holding is Holding.UNTESTABLE:
        return Standing.NOT_MEASURED if can_be_asked else Standing.NOT_ASKED
    return _OF_HOLDING.get(verdict.holding) or Standing(verdict.beside_published or Standing.AS_PUBLISHED)


def can_be_asked(document: Document, claim: Claim, backend: str) -> bool:
    """Return whether a document has what a claim compares for a backend, and no reason against it."""
    variants = {variant.name: variant for variant in document.variants}
    domains = {series.name for series in document.series if series.cases.get(backend)}

    def is_there(name: str) -> bool:
        variant, _, series = name.partition("@")
        one = variants[variant]
        return backend in one.configs and (series or one.series[0]) in domains

    sides = [side for side in (claim.of, claim.over) if side]
    return bool(claim.of) and backend not in claim.untestable and all(any(map(is_there, side)) for side in sides)


def verdicts_of(claims: Claims, *, own: bool, document: str = "") -> tuple[Verdict, ...]:
    """Return the verdicts on published claims, or on own questions. document: its name, or '' for all."""
    mine = {(one.name, claim.name) for one in claims.documents for claim in one.claims if claim.own is own}
    found = (verdict for verdict in claims.verdicts if (verdict.document, verdict.claim) in mine)
    return tuple(verdict for verdict in found if document in ("", verdict.document))


def standings(claims: Claims, document: str = "") -> dict[tuple[str, str], Standing]:
    """Return what became of each published claim by its document and name; of one document or of all."""
    backend = claims.header.backend
    asked = {
        (one.name, claim.name): can_be_asked(one, claim, backend) for one in claims.documents for claim in one.claims
    }
    return {
        (verdict.document, verdict.claim): standing(verdict, can_be_asked=asked[verdict.document, verdict.claim])
        for verdict in verdicts_of(claims, own=False, document=document)
    }


def tally(found: Iterable[Standing]) -> dict[Standing, int]:
    """Return how many claims have each standing; undecided and not measured only if there are any."""
    counted = Counter(found)
    return {one: counted[one] for one in Standing if counted[one] or one not in _IF_ANY}


def of_claims(claims: Claims, document: str = "") -> str:
    """Return the counts of the published claims as text, of one document or of all; '' without any."""
    found = standings(claims, document)
    counted = ", ".join(f"{count} {one}" for one, count in tally(found.values()).items())
    return f"of {len(found)} {'claim' if len(found) == 1 else 'claims'}: {counted}" if found else ""


def of_questions(claims: Claims, document: str = "") -> str:
    """Return the counts of the own questions as text, of one document or of all; '' without any."""
    found = Counter(verdict.holding for verdict in verdicts_of(claims, own=True, document=document))
    counted = ", ".join(
        f"{found[one]} {_SEVERAL.get(one, one) if found[one] > 1 else one}" for one in Holding if found[one]
    )
    return f"own questions, {found.total()}: {counted}" if found else ""
