"""The header of a study, which is written before its trials."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from lbmtune.catalogue.config import Scalar
from lbmtune.records import SCHEMA_VERSION, Environment, Trial
from lbmtune.records.output import OutputRates
from lbmtune.records.parts import PartsAsked
from lbmtune.records.quantities import Count, LogRatio, NotNegative, Positive
from lbmtune.records.spec import StudySpec

CEILING_STREAMS = 19
"""Arrays that a copy of many streams reads and writes at once."""


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Measured bandwidths of the device of a study, bytes per second.

    cpu_share: share of the processor during their measurement, or None.
    """

    copy_bytes_per_s: Positive
    in_place_bytes_per_s: Positive
    stream_bytes_per_s: dict[str, NotNegative]
    date: str = ""
    cpu_share: NotNegative | None = None

    @property
    def best_bytes_per_s(self) -> float:
        """Return the ceiling: the fastest q-stream copy or in-place update."""
        return max([*self.stream_bytes_per_s.values(), self.in_place_bytes_per_s])

    def share(self, trial: Trial) -> float:
        """Return the bandwidth of a measured trial over the ceiling."""
        return trial.best_measurement.bandwidth_bytes_per_s / self.best_bytes_per_s


@dataclass(frozen=True, kw_only=True)
class KnobRange:
    """The values of a knob that kernels of a family were searched with, and why there were no others."""

    family: str
    knob: str
    values: tuple[Scalar, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class EarlierStudy:
    """An earlier study that a search learned from. trials: how many of it; date: on which it began."""

    folder: str
    date: str
    trials: Count


_NAMED = 3
"""Earlier studies that a line names."""


def prior_text(earlier: Sequence[EarlierStudy]) -> str:
    """Return in words from what a search learned, such as '2 earlier studies, 240 trials (box-gpu 2026-11-20, ...)'."""
    if not earlier:
        return ""
    count, trials = len(earlier), sum(one.trials for one in earlier)
    names = [f"{PurePath(one.folder).name} {one.date[:10]}" for one in earlier[:_NAMED]]
    more = [f"and {count - _NAMED} more"] if count > _NAMED else []
    studies = "study" if count == 1 else "studies"
    return f"{count} earlier {studies}, {trials} trials ({', '.join(names + more)})"


@dataclass(frozen=True, kw_only=True)
class StudyHeader:
    """Header of a study, which is written first.

    illegal_configurations: an example of each reason -> number of points of the axes that it removed; ranges: of
    knobs whose values were made for case and device; drawn_from: about how many configurations are legal, if a part of
    them was drawn, else 0; last_cache_bytes: of a CPU, 0 if unknown; entries_by: compiler
    that reported resources by entry afterwards, or '';
    calibration_cpu_share: share of the processor during the calibration for the predictions, or None;
    calibrated_how: by what the predictions are calibrated, in words, '' in early records; finished: whether
    the search came to its end and all that follows was made, None in early records; repeats: of the machine
    (`model.machine.description.Machine`); output_rates: if the study has output; stopped: why the search ended, in a
    sentence; left_out: what did not fit into the time of the study; no_finals: why finalists
    have no finals, '' if all have, and in early records; earlier: studies that its search learned from;
    finals_device: id of the device that held the finals, '' for that of the environment; parts: of a study on several
    devices, None of one on a single one.
    """

    spec: StudySpec
    backend: str
    environment: Environment
    ceiling: Ceiling
    legal_configurations: Count
    illegal_configurations: dict[str, Count] = field(default_factory=dict)
    ranges: tuple[KnobRange, ...] = ()
    drawn_from: Count = 0
    last_cache_bytes: Count = 0
    date: str
    version: str
    schema: int = SCHEMA_VERSION
    entries_by: str = ""
    calibration_cpu_share: NotNegative | None = None
    calibrated_how: str = ""
    finished: bool | None = None
    repeats: tuple[LogRatio, ...] = ()
    output_rates: OutputRates | None = None
    stopped: str = ""
    left_out: tuple[str, ...] = ()
    no_finals: str = ""
    earlier: tuple[EarlierStudy, ...] = ()
    finals_device: str = ""
    parts: PartsAsked | None = None

    @property
    def cpu_shares(self) -> tuple[float | None, float | None]:
        """Return the shares of the processor during the measurement of bandwidths and the calibration, or None."""
        return self.ceiling.cpu_share, self.calibration_cpu_share
