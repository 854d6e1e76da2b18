"""The table of a document: each variant with its published figure and the one measured here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lbmtune.catalogue.config import from_flat
from lbmtune.records import Measurement
from lbmtune.records.claims import Claims, Document, Group, Row, Variant


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A row of the table. published: MLUPS, None where none is printed; circumstances: of it; why_not: no speed."""

    series: str
    domain: str
    title: str
    config: str
    device: str
    circumstances: str
    published: float | None
    measurement: Measurement | None
    why_not: str

    @property
    def published_text(self) -> str:
        """The figure and its circumstances, where these are not the domain measured here."""
        if self.published is None:
            return ""
        elsewhere = "" if self.circumstances == self.domain else f" at {self.circumstances}"
        return f"{self.published:,.4g}{elsewhere}"

    @property
    def measured_text(self) -> str:
        """MLUPS."""
        return f"{self.measurement.mlups:,.4g}" if self.measurement else ""

    @property
    def interval_text(self) -> str:
        """Of the median."""
        m = self.measurement
        return f"{m.ci_low_mlups:,.4g} .. {m.ci_high_mlups:,.4g}{' disturbed' if m.disturbed else ''}" if m else ""

    @property
    def ratio(self) -> float | None:
        """Measured over published."""
        return self.measurement.mlups / self.published if self.measurement and self.published else None

    @property
    def ratio_text(self) -> str:
        """Measured over published."""
        return f"{self.ratio:.3g}" if self.ratio else ""


def figures(claims: Claims, document: Document) -> Iterator[Figure]:
    """The rows of a document's table, group by group: variants that are for devices of this kind."""
    variants = {variant.name: variant for variant in document.variants}
    titles = {series.name: series.title for series in document.series}
    for group in claims.groups:
        if group.document == document.name:
            mine = ((row, variants[row.variant]) for row in group.rows)
            meant = ((row, variant) for row, variant in mine if claims.header.backend in variant.configs)
            yield from (_figure(group, titles[group.series], row, variant) for row, variant in meant)


def _figure(group: Group, series: str, row: Row, variant: Variant) -> Figure:
    domain = "x".join(map(str, group.case.domain))
    circumstances = domain if domain in variant.published else next(reversed(variant.published), "")
    return Figure(
        series=series,
        domain=domain,
        title=variant.title,
        config=from_flat(row.config).brief if row.config else "",
        device=variant.device if circumstances else "",
        circumstances=circumstances,
        published=variant.published.get(circumstances),
        measurement=row.trial.final if row.trial and not row.why_not else None,
        why_not=row.why_not,
    )
