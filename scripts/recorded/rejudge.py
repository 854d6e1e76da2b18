"""Judge recorded claims again by today's documents and rules; nothing is measured.

    python -m scripts.recorded.rejudge [claims.json.gz ...] [--pages reports]     default: all below studies/recorded

A document that is shipped takes the place of the recorded one. Measured rows and counters stay if it still has the same
variant in the same experiment: same case, configuration and side task. Others are dropped, because they would answer
another question. What was not measured so stays without a verdict; `scripts.check_recorded` lists it. Dated records
(claims-DATE.json.gz) keep their documents and rows. A page is made again where the folder of pages has one.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from lbmtune.api.machines.devices import host_limits, limits_of
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.limits import Limits
from lbmtune.claims.judge import verdicts
from lbmtune.claims.plan import Here, Plan, plans, question
from lbmtune.claims.store import PAGE, RESULTS, decoded
from lbmtune.claims.tally import of_claims, of_questions
from lbmtune.files.claimsfile import load_documents
from lbmtune.model.machine.toml import read_machine
from lbmtune.records.claims import Claims, Group
from lbmtune.report.claims import write_claims_page
from scripts.paths import RECORDED, ROOT

RECORDS = "claims*.json.gz"


def rejudged(claims: Claims, here: Here) -> Claims:
    """Return recorded claims with the documents of today, the rows that they still ask for, and the verdicts."""
    shipped = {document.name: document for document in load_documents((), claims.header.devices)}
    documents = tuple(shipped.get(document.name, document) for document in claims.documents)
    groups = tuple(asked(claims.groups, (plan for one in documents for plan in plans(one, here))))
    return judged(replace(claims, documents=documents, groups=groups))


def judged(claims: Claims) -> Claims:
    """Return recorded claims with the verdicts on the documents that they hold."""
    header = claims.header
    found = (verdicts(one, claims.groups, header.backend, header.rates) for one in claims.documents)
    return replace(claims, verdicts=tuple(verdict for some in found for verdict in some))


def asked(groups: Sequence[Group], planned: Iterable[Plan]) -> Iterator[Group]:
    """Yield the groups that are planned, with the rows that are planned."""
    recorded = {(group.document, group.series, group.case): group for group in groups}
    for plan in planned:
        group = recorded.get((plan.document, plan.series.name, plan.case))
        if group is not None:
            wanted = [question(plan.row(entry)) for entry in plan.entries]
            rows = tuple(row for row in group.rows if question(row) in wanted)
            yield replace(group, rows=rows)


def here_of(claims: Claims, folder: Path) -> Here:
    """Return the device of recorded claims. folder: theirs, with the machine file of a GPU."""
    if BACKENDS[claims.header.backend].shares_host:
        return host_of(claims)
    return _here(claims, limits_of(read_machine(folder / "machine.toml")))


def host_of(claims: Claims) -> Here:
    """Return the processor of recorded claims."""
    return _here(claims, host_limits(claims.header.environment))


def _here(claims: Claims, limits: Limits) -> Here:
    header = claims.header
    return Here(
        backend=header.backend,
        limits=limits,
        physical_cores=limits.cores,
        budget_bytes=header.budget_bytes,
        last_cache_bytes=header.last_cache_bytes,
        memory_bytes=header.environment.memory_bytes,
        devices=header.devices,
    )


def main() -> None:
    """Rewrite the records; print the counts of each, and each verdict that has changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="*", type=Path)
    parser.add_argument("--pages", type=Path, default=ROOT / "reports", help="default: reports")
    given = parser.parse_args()
    for path in given.records or sorted(RECORDED.rglob(RECORDS)):
        before = decoded(gzip.decompress(path.read_bytes()), path)
        is_dated = path.name != f"{RESULTS}.gz"
        now = judged(before) if is_dated else rejudged(before, here_of(before, path.parent))
        was = {(one.document, one.claim): one.holding for one in before.verdicts}
        for one in now.verdicts:
            if was.get((one.document, one.claim)) is not one.holding:
                print(f"{one.document}.{one.claim}: {was.get((one.document, one.claim), 'new')} -> {one.holding}")
        path.write_bytes(gzip.compress(msgspec.json.encode(now), mtime=0))
        print(path, of_claims(now), of_questions(now), sep="\n")
        page = given.pages / path.parent.name / PAGE
        if page.exists() and not is_dated:
            write_claims_page(now, page)


if __name__ == "__main__":
    main()
