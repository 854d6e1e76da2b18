"""Kernels that several studies measured: which are the same, and how fast each of them was everywhere."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import harmonic_mean

from lbmtune.catalogue.config import Scalar
from lbmtune.records.study import StudyRecord
from lbmtune.records.trial import Trial

PRECISION = ("storage", "compute")
"""Knobs by which studies may differ as a whole: kernels that are equal but for them are compared."""
Key = frozenset[tuple[str, Scalar]]


def apart(studies: Sequence[StudyRecord]) -> Mapping[str, tuple[str, ...]]:
    """Return the knobs of precision of which each study has one value, if these differ, with the value of each."""
    found: dict[str, tuple[str, ...]] = {}
    for name in PRECISION:
        values = [{str(trial.config.get(name)) for trial in study.ranked} for study in studies]
        if all(len(one) == 1 for one in values) and len(set.union(*values)) > 1:
            found[name] = tuple(one.pop() for one in values)
    return found


def key_without(names: Collection[str]) -> Callable[[Trial], Key]:
    """Return what is the same of two trials that differ at most in these knobs."""
    return lambda trial: frozenset((name, value) for name, value in trial.config.items() if name not in names)


@dataclass(frozen=True)
class Shared:
    """A kernel that all studies measured. mlups: first measurements; shares: of the best first one of each study."""

    trials: tuple[Trial, ...]
    mlups: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def portability(self) -> float:
        """Return the harmonic mean of the shares.

        Source: Pennycook, Sewall and Lee, Implications of a metric for performance portability, 2019.
        """
        return harmonic_mean(self.shares)


def shared(studies: Sequence[StudyRecord]) -> tuple[Shared, ...]:
    """Return the kernels that all studies measured, the best by the harmonic mean of their shares first.

    Of first measurements, which all trials have: finals are of the best of one study alone.
    """
    key = key_without(apart(studies))
    tables = [{key(trial): trial for trial in reversed(study.ranked) if _first(trial)} for study in studies]
    if not all(tables):
        return ()
    best = [max(map(_first, table.values())) for table in tables]
    names = [name for name in tables[0] if all(name in table for table in tables)]
    found = (_shared([table[name] for table in tables], best) for name in names)
    return tuple(sorted(found, key=lambda one: -one.portability))


def _shared(trials: Sequence[Trial], best: Sequence[float]) -> Shared:
    speeds = tuple(map(_first, trials))
    return Shared(tuple(trials), speeds, tuple(one / most for one, most in zip(speeds, best, strict=True)))


def _first(trial: Trial) -> float:
    """Return the speed of the first measurement; 0 if there is none, or if it was dismissed."""
    found = trial.measurement
    return found.mlups if found and not found.dismissed else 0.0
