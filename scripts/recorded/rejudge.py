"""Judge recorded claims again by today's documents and rules; nothing is measured.

    python -m scripts.recorded.rejudge [claims.json.gz ...]       default: all below studies/recorded

Measured rows and counters stay. A document that is shipped takes the place of the recorded one. Variants that it has
now and that were not measured stay without a speed; `scripts.check_recorded` lists them.
"""

from __future__ import annotations

import argparse
import gzip
from dataclasses import replace
from pathlib import Path

import msgspec

from lbmtune.claims.judge import verdicts
from lbmtune.claims.store import RESULTS, decoded
from lbmtune.claims.tally import of_claims, of_questions
from lbmtune.files.claimsfile import load_documents
from lbmtune.records.claims import Claims
from scripts.paths import RECORDED


def rejudged(claims: Claims) -> Claims:
    """Return recorded claims with the documents of today and the verdicts on them."""
    shipped = {document.name: document for document in load_documents(())}
    documents = tuple(shipped.get(document.name, document) for document in claims.documents)
    header = claims.header
    found = [verdict for one in documents for verdict in verdicts(one, claims.groups, header.backend, header.rates)]
    return replace(claims, documents=documents, verdicts=tuple(found))


def main() -> None:
    """Rewrite the records; print the counts of each, and each verdict that has changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="*", type=Path)
    for path in parser.parse_args().records or sorted(RECORDED.rglob(f"{RESULTS}.gz")):
        before = decoded(gzip.decompress(path.read_bytes()), path)
        now = rejudged(before)
        was = {(one.document, one.claim): one.holding for one in before.verdicts}
        for one in now.verdicts:
            if was.get((one.document, one.claim)) is not one.holding:
                print(f"{one.document}.{one.claim}: {was.get((one.document, one.claim), 'new')} -> {one.holding}")
        path.write_bytes(gzip.compress(msgspec.json.encode(now), mtime=0))
        print(path, of_claims(now), of_questions(now), sep="\n")


if __name__ == "__main__":
    main()
