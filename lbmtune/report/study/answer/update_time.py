"""The time of an update of the winner, from what its limit takes alone up to the measurement, in parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lbmtune.records import Prediction, Term
from lbmtune.records.study import StudyRecord
from lbmtune.records.terms import MEANINGS
from lbmtune.report.limits import Limit, alone_s, binding, figures_of
from lbmtune.units import format_ps

UNEXPLAINED, FASTER = "not explained", "faster than predicted"
_BEYOND = "the rest"
BANDWIDTH, NOT_HIDDEN = "bandwidth of the model", "not hidden"
_BENCHMARK = "bytes that memory moves for an update, at the fastest benchmark of many streams"
_OF_MODEL = "what accesses like these take beyond that benchmark"
_EXPLAINED = 0.5
"""Share of what a kernel takes beyond its limit up to which the model may be wrong and still explain it."""
_NEGLIGIBLE = 1e-4
"""Share of the time of an update below which a difference of bandwidths is no part of its own."""


@dataclass(frozen=True)
class Part:
    """A part of the time of an update. seconds: that it adds, negative if it saves time; None: told by another part.

    share: of the measured time; alone_s: what it would take by itself, None if the record does not tell it, or if it
    is no more than it adds. told: what it is the time of, if that is not the meaning of the term of its name.
    """

    name: str
    seconds: float | None
    share: float
    figures: str = ""
    source: str = ""
    alone_s: float | None = None
    told: str = ""

    @property
    def meaning(self) -> str:
        """Return what the part is the time of; empty if that is not known."""
        return self.told or MEANINGS.get(self.name, "")

    @property
    def ps(self) -> str:
        """Return the picoseconds that it adds as text; empty if another part tells them."""
        return "" if self.seconds is None else format_ps(self.seconds)

    @property
    def alone_ps(self) -> str:
        """Return the picoseconds by itself as text; empty if unknown."""
        return "" if self.alone_s is None else format_ps(self.alone_s)


def measured_s(study: StudyRecord) -> float:
    """Return the measured seconds of an update of the winner."""
    return 1e-6 / study.ranked[0].best_measurement.mlups


def unknown(study: StudyRecord) -> bool:
    """Return whether the model does not explain what the winner takes beyond its limit."""
    found = parts(study)
    if not found or binding(study, study.ranked[0]) is None:
        return False
    beyond = measured_s(study) - (found[0].seconds or 0.0)
    return beyond > 0 and abs(found[-1].seconds or 0.0) > _EXPLAINED * beyond


def no_help(study: StudyRecord) -> bool:
    """Return whether the model predicts a lower speed than was measured, and so tells nothing of what is lost."""
    found = parts(study)
    return unknown(study) and found[-1].name != UNEXPLAINED


def parts(study: StudyRecord) -> tuple[Part, ...]:
    """Return the limit of the winner alone, then what the model adds, then the rest; none without terms.

    What they add is the measured time.
    """
    predicted = study.ranked[0].prediction if study.ranked else None
    if predicted is None or not predicted.terms:
        return ()
    whole = measured_s(study)
    found = [_shared(one, whole) for one in _modelled(predicted, binding(study, study.ranked[0]))]
    rest = whole - sum(one.seconds or 0.0 for one in found)
    return (*found, Part(FASTER if rest < 0 else UNEXPLAINED, rest, rest / whole, "measured minus predicted"))


def shown_parts(study: StudyRecord) -> tuple[Part, ...]:
    """Return the parts, but all that they add beyond the limit as one if the model is of no help there."""
    found = parts(study)
    if not no_help(study):
        return found
    beyond = sum(one.seconds or 0.0 for one in found[1:])
    overlapping = (one for one in found[1:] if one.seconds is None)
    return found[0], *overlapping, Part(_BEYOND, beyond, 1 - found[0].share, "measured minus the limit")


def _shared(part: Part, whole: float) -> Part:
    return replace(part, share=(part.seconds or 0.0) / whole)


def _modelled(predicted: Prediction, limit: Limit | None) -> Iterator[Part]:
    """Yield the limit and what the model adds to it, without shares."""
    terms = predicted.significant_terms
    own = next((one for one in terms if limit and one.name == limit.name), None)
    others = [one for one in terms if one is not own]
    if limit:
        seconds = 1e-6 / limit.mlups
        told = _BENCHMARK if limit.measured else ""
        figures, _, source = (
            limit.source.rpartition(", ") if limit.measured else (figures_of(own) if own else "", "", "")
        )
        yield Part(limit.name, seconds, 0, figures, source or (own.source if own else ""), _alone(own), told)
        yield from _other_bandwidth(own, limit, seconds)
    hidden = [one for one in others if _alone(one) is not None]
    yield from (Part(one.name, None, 0, figures_of(one), one.source, _alone(one)) for one in hidden)
    added = [one for one in others if one not in hidden]
    if hidden:
        first = _taken(own) if own else 0.0
        left = sum(one.seconds for one in predicted.terms) - first - sum(one.seconds for one in added)
        yield Part(not_hidden(hidden), left, 0, "of all that overlaps, beyond the limit")
    yield from (Part(one.name, one.seconds, 0, figures_of(one), one.source) for one in added)


def not_hidden(hidden: Sequence[Term]) -> str:
    """Name what terms that overlap with the limit add to it."""
    names = [one.name for one in hidden]
    named = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{named}, {NOT_HIDDEN}"


def _other_bandwidth(own: Term | None, limit: Limit, seconds: float) -> Iterator[Part]:
    """Yield what the model takes for memory beyond the benchmark, if the limit is that of the benchmark."""
    if own and limit.measured and abs(_taken(own) / seconds - 1) > _NEGLIGIBLE:
        yield Part(BANDWIDTH, _taken(own) - seconds, 0, figures_of(own), own.source, told=_OF_MODEL)


def _taken(term: Term) -> float:
    """Return the seconds that a term takes, whatever overlaps with it."""
    return term.seconds if (alone := _alone(term)) is None else alone


def _alone(term: Term | None) -> float | None:
    return alone_s(term) if term else None
