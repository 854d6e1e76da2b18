"""The page of a run of claims: verdicts, tables and figures of each document."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.claims.evidence import Evidence, evidence, reasons
from lbmtune.claims.figures import Figure as Row
from lbmtune.claims.figures import figures as table_of
from lbmtune.claims.judge import shown_interval, shown_range
from lbmtune.claims.sizing import domain_texts
from lbmtune.claims.tally import MEANINGS, Standing, can_be_asked, of_claims, of_questions, standing, standings, tally
from lbmtune.records.claims import ERRORS, Claim, Claims, Document, Holding, Verdict
from lbmtune.records.comparison.statistics import Interval
from lbmtune.records.whole_files import write_atomically
from lbmtune.report.drawing import NEUTRAL, Figure, interval, log_axis, plain_figure, wrapped
from lbmtune.report.html import Panel, filled, panel
from lbmtune.report.tables import Pairs, environment_table
from lbmtune.units import format_bytes, format_rate

COLOURS = {
    Holding.HOLDS: "#2a9d6f",
    Holding.FAILS: "#d1495b",
    Holding.UNDECIDED: "#e9a03b",
    Holding.UNTESTABLE: "#9aa0a6",
}
_CARDS = {
    Standing.AS_PUBLISHED: "#2a9d6f",
    Standing.MORE: "#5cb891",
    Standing.LESS: "#5cb891",
    Standing.NOT_HERE: "#d1495b",
    Standing.UNDECIDED: "#e9a03b",
    Standing.NOT_MEASURED: "#9aa0a6",
    Standing.NOT_ASKED: "#9aa0a6",
}
_PUBLISHED = "rgba(201,133,0,0.38)"
_CAPTION = "Points: measured on this device, with 95 % intervals. Bars: published."


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict; evidence, reasons: of one that does not hold; can_be_asked: on this device."""

    claim: Claim
    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    reasons: tuple[str, ...] = ()
    can_be_asked: bool = True

    @property
    def standing(self) -> Standing:
        """Return what became of the claim."""
        return standing(self.verdict, can_be_asked=self.can_be_asked)

    @property
    def label(self) -> str:
        """Return the name in a figure."""
        return f"{self.claim.name} (own)" if self.claim.own else self.claim.name

    @property
    def comparison(self) -> str:
        """Return how the measured value compares with the printed range; '' while the claim is undecided."""
        return "" if self.verdict.holding is Holding.UNDECIDED else self.verdict.beside_published

    @property
    def evidence_table(self) -> tuple[dict[str, str], ...]:
        """Return the rows of the evidence, without the columns that this device does not fill."""
        rows = [kernel.texts for kernel in self.evidence]
        filled = [name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)]
        return tuple({name: row[name] for name in filled} for row in rows)

    @property
    def measured(self) -> str:
        """Return the measured value with its interval."""
        v = self.verdict
        if v.median is None or v.low is None or v.high is None:
            return ""
        return shown_interval(self.claim.kind, Interval(v.low, v.median, v.high))


@dataclass(frozen=True)
class Section:
    """A document of the page. counts: sentences on its claims and on own questions; domains: on those that grew."""

    document: Document
    judged: tuple[Judged, ...]
    counts: tuple[str, ...]
    domains: tuple[str, ...]
    panels: tuple[Panel, ...]
    rows: tuple[Row, ...]

    @property
    def tables(self) -> list[tuple[str, list[Judged]]]:
        """Return the tables of verdicts with their titles: claims, own questions, claims that cannot be asked."""
        published, own = ([one for one in self.judged if one.claim.own is own] for own in (False, True))
        asked, without = ([one for one in published if one.can_be_asked is asked] for asked in (True, False))
        tables = (("Claims", asked), ("Own questions", own), ("Claims that cannot be asked here", without))
        return [(title, judged) for title, judged in tables if judged]


def write_claims_page(claims: Claims, path: Path) -> None:
    """Write the page. Raises InputError if the path cannot be written."""
    write_atomically(path, claims_page(claims).encode())


def claims_page(claims: Claims) -> str:
    """Return the HTML text."""
    each, counted = sections(claims), tally(standings(claims).values())
    return filled(
        "claims.html",
        ("script.js", "tables.js", "start.js"),
        [one for section in each for one in section.panels],
        header=claims.header,
        headline=headline(claims),
        own=of_questions(claims),
        cards=[(str(one), count, _CARDS[one], MEANINGS[one]) for one, count in counted.items()],
        disturbed=sum(verdict.disturbed for verdict in claims.verdicts),
        sections=each,
        standings=list(counted),
        documents=document_rows(claims),
        published=shown_range,
        colours=COLOURS,
        has_counters=not BACKENDS[claims.header.backend].shares_host,
        environment=environment_table(claims.header.environment),
        run=_run_table(claims),
    )


def headline(claims: Claims) -> str:
    """State what became of the published claims on the device."""
    return f"{(of_claims(claims) or 'no claims').capitalize()}, on {claims.header.environment.device}."


def document_rows(claims: Claims) -> list[tuple[Document, int, list[int]]]:
    """Return each document with the number of its claims, and with how many have each standing of the page."""
    shown = tally(standings(claims).values())
    found = []
    for document in claims.documents:
        mine = Counter(standings(claims, document.name).values())
        found.append((document, mine.total(), [mine[one] for one in shown]))
    return found


def sections(claims: Claims) -> list[Section]:
    """Return a section for each document."""
    return [_section(claims, document) for document in claims.documents]


def _section(claims: Claims, document: Document) -> Section:
    mine = {verdict.claim: verdict for verdict in claims.verdicts if verdict.document == document.name}
    judged = []
    for claim in (one for one in document.claims if one.name in mine):
        found = evidence(claims, document, claim)
        why = tuple(reasons(claim, found, claims.header.rates))
        asked = can_be_asked(document, claim, claims.header.backend)
        judged.append(Judged(claim, mine[claim.name], found, why, asked))
    letters = "".join(filter(str.isalpha, document.name))
    ratios = [one for one in judged if one.claim.kind == "ratio" and one.verdict.median]
    shares = [one for one in judged if one.claim.kind not in ("ratio", *ERRORS) and one.verdict.median is not None]
    panels = []
    if ratios:
        caption = f"{_CAPTION} Right of 1, the first is faster."
        panels.append(panel(f"{letters}ratios", "Ratios of speeds", caption, ratio_figure(ratios)))
    if shares:
        panels.append(panel(f"{letters}shares", "Losses, spreads and shares", _CAPTION, share_figure(shares)))
    counts = tuple(filter(None, (of_claims(claims, document.name), of_questions(claims, document.name))))
    domains = tuple(domain_texts(claims, document))
    return Section(document, tuple(judged), counts, domains, tuple(panels), tuple(table_of(claims, document)))


def ratio_figure(judged: Sequence[Judged]) -> Figure:
    """Draw ratios on a logarithmic axis."""
    figure = _figure("ratio of speeds", judged, 1.0)
    figure.add_vline(x=1.0, line={"dash": "dot", "width": 1.2, "color": NEUTRAL})
    values = [value for one in judged for value in (one.verdict.low, one.verdict.high, *(one.claim.published or ()))]
    positive = [value for value in values if value and value > 0] or [1.0]
    log_axis(figure.update_xaxes, min(0.9, *positive) / 1.1, max(1.1, *positive) * 1.1)
    return figure


def share_figure(judged: Sequence[Judged]) -> Figure:
    """Draw shares in per cent."""
    figure = _figure("per cent", judged, 100.0)
    figure.update_xaxes(rangemode="tozero")
    return figure


def _figure(title: str, judged: Sequence[Judged], scale: float) -> Figure:
    """Draw claims below each other: published ranges as bars, measured intervals as points on top."""
    figure = plain_figure(title, "")
    printed = [(one.label, one.claim.published) for one in judged if one.claim.published]
    for number, (name, (low, high)) in enumerate(printed):
        figure.add_scatter(
            x=[scale * low, scale * high],
            y=[name, name],
            mode="lines+markers",
            line={"width": 12, "color": _PUBLISHED},
            marker={"size": 12, "color": _PUBLISHED, "symbol": "line-ns-open"},
            name="published",
            legendgroup="published",
            showlegend=number == 0,
            hovertemplate="published %{x:.3g}<extra></extra>",
        )
    for holding in Holding:
        if mine := [one for one in judged if one.verdict.holding is holding]:
            _add_points(figure, mine, holding, scale)
    order = [one.label for one in judged]
    figure.update_yaxes(categoryorder="array", categoryarray=order[::-1], type="category")
    return figure


def _add_points(figure: Figure, judged: Sequence[Judged], holding: Holding, scale: float) -> None:
    verdicts = [one.verdict for one in judged]
    low, median, high = (
        [scale * (getattr(verdict, name) or 0.0) for verdict in verdicts] for name in ("low", "median", "high")
    )
    figure.add_scatter(
        x=median,
        y=[one.label for one in judged],
        mode="markers",
        marker={"size": 10, "color": COLOURS[holding]},
        error_x=interval(median, low, high, COLOURS[holding]),
        name=str(holding),
        text=[f"{wrapped(one.claim.sentence)}<br>{wrapped(one.verdict.reason)}" for one in judged],
        hovertemplate="%{text}<extra></extra>",
    )


def _run_table(claims: Claims) -> Pairs:
    header = claims.header
    seconds = sum(group.seconds for group in claims.groups)
    variants = sum(row.trial is not None for group in claims.groups for row in group.rows)
    cache = [("last-level cache", format_bytes(header.last_cache_bytes))] if header.last_cache_bytes else []
    return [
        ("begun", header.date),
        ("measured", f"{variants} variants in {len(claims.groups)} groups, {seconds:,.0f} s"),
        ("copy bandwidth", format_rate(header.rates.copy_bytes_per_s)),
        ("update in place", format_rate(header.rates.in_place_bytes_per_s)),
        ("memory budget of a small device", format_bytes(header.budget_bytes)),
        *cache,
    ]
