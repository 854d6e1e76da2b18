"""The table of a document: each variant with its published figure and the one measured here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.limits import extents
from lbmtune.records.claims import Claims, Document, Group, Printed, Row, Variant
from lbmtune.records.idle_threads import idle_threads

_DOMAIN = re.compile(r"\d+x\d+(x\d+)?")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A row of the table, as text.

    published_texts: printed figures of the same experiment, each with its device, and its circumstances unless they are
    the same domain; measured_text: MLUPS; interval_text: of the median; ratio_texts: measured over published speed, for
    each published figure; why_not: the reason for no speed; remark: on a speed.
    """

    series: str
    domain: str
    title: str
    config: str
    published_texts: tuple[str, ...]
    measured_text: str
    interval_text: str
    ratio_texts: tuple[str, ...]
    why_not: str
    remark: str = ""


def figures(claims: Claims, document: Document) -> Iterator[Figure]:
    """Return the rows of a document's table, group by group, for the variants of this backend."""
    variants = {variant.name: variant for variant in document.variants}
    titles = {series.name: series.title for series in document.series}
    for group in claims.groups:
        if group.document == document.name:
            mine = ((row, variants[row.variant]) for row in group.rows)
            here = ((row, variant) for row, variant in mine if claims.header.backend in variant.configs)
            yield from (_figure(group, titles[group.series], row, variant) for row, variant in here)


def _figure(group: Group, series: str, row: Row, variant: Variant) -> Figure:
    config = from_flat(row.config) if row.config else None
    domain, m = extents(group.case.domain), row.trial.final if row.trial and not row.why_not else None
    published = tuple(_beside(variant, group.series, domain))
    bounds = f"{_round(m.ci_low_mlups)} .. {_round(m.ci_high_mlups)}" if m else ""
    return Figure(
        series=series,
        domain=domain,
        title=variant.title,
        config=config.brief if config else "",
        published_texts=tuple(_printed(one, domain) for one in published),
        measured_text=_round(m.mlups) if m else "",
        interval_text=f"{bounds} disturbed" if m and m.disturbed else bounds,
        ratio_texts=tuple(f"{m.mlups / one.mlups:.3g}" for one in published) if m else (),
        why_not=row.why_not,
        remark=idle_threads(group.case, config) if config else "",
    )


def _printed(one: Printed, domain: str) -> str:
    elsewhere = "" if one.circumstances in ("", domain) else f", {one.circumstances}"
    return f"{_round(one.mlups)} ({one.device}{elsewhere})"


def _beside(variant: Variant, series: str, domain: str) -> Iterator[Printed]:
    """Return the printed figures of an experiment: of each device that of the domain, or of its last domain.

    Figures whose circumstances are no domain are all returned.
    """
    mine = [one for one in variant.published if one.series in ("", series)]
    on_domains = [one for one in mine if _DOMAIN.fullmatch(one.circumstances)]
    last = {one.device: one for one in on_domains}
    nearest = last | {one.device: one for one in on_domains if one.circumstances == domain}
    yield from (one for one in mine if one not in on_domains or one is nearest[one.device])


def _round(mlups: float) -> str:
    return f"{mlups:,.4g}" if mlups < 1000 else f"{mlups:,.0f}"
