"""Predictions and their terms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Term:
    """A part of a prediction. seconds: of the whole device, what it adds to an update; all terms add up to its time.

    sentence: the figures behind it, with their units; source: the measurement or the literature that they come from.
    alone_s: what it would take if an update were nothing else, where terms go on beside each other; records of before
    say it in the sentence alone.
    """

    name: str
    seconds: float
    sentence: str
    source: str
    alone_s: float | None = None


_NEGLIGIBLE = 1e-4
"""Share of the time of an update below which a term is not told of: no figure of the others shows it."""


def worth_telling(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """All but those that add hardly anything to the time of an update, nor take it off."""
    whole = sum(one.seconds for one in terms)
    return tuple(one for one in terms if abs(one.seconds) >= _NEGLIGIBLE * whole)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What the model expects. limit: the terms in words, the binding resource first; ceiling_source: of the bandwidth.

    terms: what the time of an update is made of, the binding one first; records of before there were terms have none.
    """

    mlups: float
    bytes_per_update: float
    bandwidth_bytes_per_s: float
    footprint_bytes: int
    limit: str
    ceiling_source: str
    terms: tuple[Term, ...] = ()

    @property
    def told(self) -> tuple[Term, ...]:
        """Terms that are worth telling of."""
        return worth_telling(self.terms)

    @property
    def binding(self) -> str:
        """The resource that takes most of the time; empty where that was not recorded."""
        return self.terms[0].name if self.terms else ""

    def seconds_of(self, name: str) -> float:
        """What a term adds to the time of an update; nothing where there is none of that name."""
        return sum(term.seconds for term in self.terms if term.name == name)
