"""Print recorded claims as Markdown: counts, those that do not hold with hardware counters, and all figures.

python -m scripts.recorded.claims_figures [studies/recorded/nvidia-h100/claims.json.gz]
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from pathlib import Path

from lbmtune.claims.figures import Figure, figures
from lbmtune.claims.store import decoded
from lbmtune.claims.tally import of_claims, of_questions
from lbmtune.records.claims import Claims, Document, Holding
from lbmtune.report.claims import Judged, sections
from scripts.paths import RECORDED

DEFAULT = RECORDED / "nvidia-h100" / "claims.json.gz"
_SHORT = ("variant", "domain", "MLUPS", "us", "registers", "spilled", "bytes", "model", "sectors", "L2 hits")
_SHORT += ("warps", "instructions", "issue", "memory", "wait for")
"""Short titles of `Evidence.texts` for a table in text."""


def failures(claims: Claims) -> Iterator[str]:
    """Yield lines on the claims that do not hold, document by document."""
    for section in sections(claims):
        wrong = [one for one in section.judged if one.verdict.holding is Holding.FAILS]
        if wrong:
            yield from ("", f"## {section.document.name}", "")
        for one in wrong:
            yield from _failure(one)


def counts(claims: Claims) -> Iterator[str]:
    """Yield lines with the counts of each document and of all, and each claim that cannot be asked with its reason."""
    every = (of_claims(claims), of_questions(claims))
    yield from ("", "| document | claims | own questions |", "|---|---|---|")
    for document in claims.documents:
        yield f"| {document.name} | {of_claims(claims, document.name)} | {of_questions(claims, document.name)} |"
    yield f"| all | {every[0]} | {every[1]} |"
    yield from ("", "## Claims that cannot be asked of this device", "")
    for section in sections(claims):
        without = [one for one in section.judged if not one.can_be_asked and not one.claim.own]
        yield from (f"- {section.document.name} *{one.claim.name}*: {one.verdict.reason}." for one in without)


def _failure(one: Judged) -> Iterator[str]:
    own = ", an own question" if one.claim.own else ""
    yield f"- *{one.claim.name}*{own}: {one.claim.sentence} Here {one.verdict.reason}."
    yield from (f"  - {reason}." for reason in one.reasons)
    if any(kernel.counters.found for kernel in one.evidence):
        short = [dict(zip(_SHORT, kernel.texts.values(), strict=True)) for kernel in one.evidence]
        yield from ("", *(f"  {line}" for line in _table(_SHORT, [tuple(row.values()) for row in short])), "")


def compared(claims: Claims, document: Document) -> Iterator[str]:
    """Yield a table of published and measured figures."""
    rows = [_figure(one) for one in figures(claims, document)]
    yield from ("", f"### {document.name}", "", *_table(("variant", "domain", "here", "published"), rows))


def _figure(one: Figure) -> tuple[str, ...]:
    return one.title, one.domain, one.measured_text or one.why_not, "; ".join(one.published_texts)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", nargs="?", type=Path, default=DEFAULT)
    path = parser.parse_args().record
    content = path.read_bytes()
    claims = decoded(gzip.decompress(content) if path.suffix == ".gz" else content, path)
    print("# Claims by what became of them", *counts(claims), sep="\n")
    print("", "# Claims that do not hold", *failures(claims), "", "## Published and measured, MLUPS", sep="\n")
    for document in claims.documents:
        print(*compared(claims, document), sep="\n")


if __name__ == "__main__":
    main()
