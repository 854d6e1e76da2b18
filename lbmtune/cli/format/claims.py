"""Print published claims beside what was measured."""

from __future__ import annotations

from rich.table import Table

from lbmtune.claims.evidence import evidence, reasons
from lbmtune.claims.figures import figures
from lbmtune.cli.format.output import table
from lbmtune.records.claims import Claims, Document, Verdict


def verdict_table(found: Claims, document: Document) -> Table:
    """Return the verdicts on a document's claims as a table."""
    named = {claim.name: claim for claim in document.claims}
    mine = [verdict for verdict in found.verdicts if verdict.document == document.name]

    def why(verdict: Verdict) -> str:
        claim = named[verdict.claim]
        because = reasons(claim, evidence(found, document, claim), found.header.rates)
        return "; ".join((f"{verdict.reason}{' (disturbed)' if verdict.disturbed else ''}", *because))

    rows = ((str(verdict.holding), named[verdict.claim].sentence, why(verdict)) for verdict in mine)
    return table("claims", ("verdict", "claim", "why"), rows)


def variant_table(found: Claims, document: Document) -> Table:
    """Return published and measured speeds of a document's variants as a table."""
    columns = ("domain", "variant", "published (on)>", "MLUPS here>", "95 % interval>", "ratio>", "why not")
    rows = (
        (
            f.domain,
            f.title,
            "; ".join(f.published_texts),
            f.measured_text,
            f.interval_text,
            "; ".join(f.ratio_texts),
            f.why_not,
        )
        for f in figures(found, document)
    )
    return table(f"{document.name}: {document.title}", columns, rows)
