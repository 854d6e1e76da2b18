"""Print published claims beside what was measured, and progress on standard error; nothing is drawn meanwhile."""

import time
from collections.abc import Sequence

from rich.console import Console, Group
from rich.progress_bar import ProgressBar
from rich.table import Table

from lbmtune.claims.evidence import evidence, reasons
from lbmtune.claims.figures import figures
from lbmtune.claims.plan import Plan
from lbmtune.claims.run import Observer
from lbmtune.claims.tally import of_claims, of_questions, verdicts_of
from lbmtune.cli.format.output import table
from lbmtune.cli.format.studies.progress import Shown, clock
from lbmtune.records.claims import Claims, Document, Verdict
from lbmtune.records.claims import Group as Measured
from lbmtune.units import format_mlups


def verdict_table(found: Claims, document: Document, *, own: bool = False) -> Table:
    """Return the verdicts on a document's claims, or on own questions, as a table."""
    named = {claim.name: claim for claim in document.claims}
    mine = verdicts_of(found, own=own, document=document.name)

    def why(verdict: Verdict) -> str:
        claim = named[verdict.claim]
        because = reasons(claim, evidence(found, document, claim), found.header.rates)
        return "; ".join((f"{verdict.reason}{' (disturbed)' if verdict.disturbed else ''}", *because))

    rows = ((str(verdict.holding), named[verdict.claim].sentence, why(verdict)) for verdict in mine)
    title, what = (of_questions, "question") if own else (of_claims, "claim")
    return table(title(found, document.name), ("verdict", what, "why"), rows)


def variant_table(found: Claims, document: Document) -> Table:
    """Return published and measured speeds of a document's variants as a table."""
    columns = ("domain", "variant", "published (on)>", "MLUPS here>", "95 % interval>", "ratio>", "remark")
    rows = (
        (
            f.domain,
            f.title,
            "; ".join(f.published_texts),
            f.measured_text,
            f.interval_text,
            "; ".join(f.ratio_texts),
            f.why_not or f.remark,
        )
        for f in figures(found, document)
    )
    return table(f"{document.name}: {document.title}", columns, rows)


class ClaimsProgress(Shown, Observer):
    """Show the group under measurement, how many are done, and their time. A context manager."""

    def __init__(self, console: Console, device: str, documents: int) -> None:
        super().__init__(console)
        self._device, self._documents = device, documents
        self._begin_s = time.monotonic()
        self._total = self._done = 0

    def started(self, planned: Sequence[Plan], done: Sequence[Measured]) -> None:
        """Print the size of the run."""
        self._total, self._done = len(planned), len(done)
        count = sum(len(plan.runnable) for plan in planned)
        resumed = f", {len(done)} {'group' if len(done) == 1 else 'groups'} done before" if done else ""
        self._say(f"{self._documents} documents on {self._device}: {count} variants in {self._total} groups{resumed}")

    def measuring(self, plan: Plan) -> None:
        """Show the group under measurement."""
        text = f"{plan.document}: {plan.series.title}, {_cells(plan.case.domain)}, {len(plan.runnable)} variants"
        if self._live:
            bar = ProgressBar(max(self._total, 1), self._done, width=60)
            self._live.update(Group(bar, f"{self._counted()}: {text}"), refresh=True)

    def finished(self, group: Measured) -> None:
        """Print a finished group."""
        self._done += 1
        speeds = [row.trial.mlups for row in group.rows if row.trial and row.trial.mlups]
        best = f", fastest {format_mlups(max(speeds))} MLUPS" if speeds else ""
        asked = sum(bool(row.config) for row in group.rows)  # others have no configuration for the device
        of = f"{len(speeds)} of {asked} variants"
        where = f"{group.document}: {group.series}, {_cells(group.case.domain)}"
        self._say(f"{self._counted()}: {where}: {of}{best}, {group.seconds:.1f} s")

    def counting(self, kernels: int) -> None:
        """Print that hardware counters are read."""
        self._say(f"{self._counted()}: counters of {kernels} kernels on which claims that do not hold rest")

    def _counted(self) -> str:
        return f"{clock(time.monotonic() - self._begin_s)}  group {self._done}/{self._total}"

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False)


def _cells(domain: tuple[int, int, int]) -> str:
    return "x".join(map(str, domain))
