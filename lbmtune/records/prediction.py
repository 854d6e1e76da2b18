"""Predictions and their terms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Term:
    """A part of a prediction. seconds: of the whole device, its share of the time of an update; terms add up to it.

    sentence: its figures with their units; source: the measurement or literature that they come from; alone_s: its time
    without the others, if terms overlap (early records have it in the sentence alone).
    """

    name: str
    seconds: float
    sentence: str
    source: str
    alone_s: float | None = None


_NEGLIGIBLE = 1e-4
"""Share of the time of an update below which a term is not printed."""


def significant(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return the terms that change the time of an update noticeably."""
    whole = sum(one.seconds for one in terms)
    return tuple(one for one in terms if abs(one.seconds) >= _NEGLIGIBLE * whole)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A prediction of the model. limit: the terms as text, the largest first; ceiling_source: of the bandwidth.

    terms: parts of the time of an update, the largest first; empty in early records.
    """

    mlups: float
    bytes_per_update: float
    bandwidth_bytes_per_s: float
    footprint_bytes: int
    limit: str
    ceiling_source: str
    terms: tuple[Term, ...] = ()

    @property
    def significant_terms(self) -> tuple[Term, ...]:
        """Terms that change the time of an update noticeably."""
        return significant(self.terms)

    @property
    def binding(self) -> str:
        """Name of the largest term; '' if it was not recorded."""
        return self.terms[0].name if self.terms else ""

    def seconds_of(self, name: str) -> float:
        """Return the seconds of the terms of a name; 0 if there is none."""
        return sum(term.seconds for term in self.terms if term.name == name)
