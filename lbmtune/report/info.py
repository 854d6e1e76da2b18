"""What the report shows, as plain data: every figure and table starts here, and tests look here.

Nothing in this module draws. Rates are in MLUPS, bandwidths in bytes per second, times in seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

from lbmtune.catalogue.config import CudaConfig, KernelConfig, Scalar
from lbmtune.catalogue.operation_counts import flops_per_update
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.codegen.streams import STREAMS
from lbmtune.records import Costs, Measurement, Outcome, Trial
from lbmtune.records.statistics import paired_ratio
from lbmtune.records.study import StudyRecord
from lbmtune.report.bounds import issue_mlups
from lbmtune.units import format_mlups, format_rate

CEILING = "the fastest copy of many separate streams or update in place"
"""What `Ceiling.best_bytes_per_s` is, in words."""
_ACRONYMS = ("bgk", "trt", "mrt")
FEWEST = 6
"""Trials whose median error has a 95 % interval: of fewer it is not told."""


@dataclass(frozen=True, order=True)
class Kind:
    """What a kernel is in figures. pattern: its scheme, or what it keeps instead of populations; steps: of a launch.

    on_chip: whether it stays there through as many steps as a launch is asked for.
    """

    pattern: str
    steps: int
    on_chip: bool = False

    @property
    def name(self) -> str:
        """Schemes go by their name alone where a launch is one step."""
        if self.on_chip:
            return f"{self.pattern} on chip"
        if self.steps == 1 and self.pattern in SCHEMES:
            return self.pattern
        return f"{self.pattern}, {self.steps} step{'s' if self.steps != 1 else ''} per launch"


@dataclass(frozen=True)
class Point:
    """A verified trial. share: of the measured ceiling; intensity: flop per byte moved.

    flaw: why its speed is no measure of the model's error; empty where it is one.
    """

    number: int
    label: str
    kind: Kind
    mlups: float
    predicted_mlups: float | None
    share: float
    intensity: float
    flaw: str = ""


@dataclass(frozen=True)
class Roof:
    """A measured bandwidth."""

    name: str
    bytes_per_s: float


@dataclass(frozen=True)
class RooflineInfo:
    """flops: operations of one cell update (`catalogue.operation_counts`); ceiling: of the roofs, that of all shares.

    points: best first; issue_mlups: what the issue of the winner's instructions allows by itself, None where that is
    not known.
    """

    flops: int
    roofs: tuple[Roof, ...]
    ceiling: Roof
    points: tuple[Point, ...]
    issue_mlups: float | None = None

    @property
    def winner(self) -> Point | None:
        """The first of the points."""
        return next(iter(self.points), None)


@dataclass(frozen=True)
class Attempt:
    """A trial in the order of the search. elapsed_s: seconds of work on it and all before it."""

    number: int
    elapsed_s: float
    outcome: Outcome
    mlups: float | None
    label: str
    reason: str


@dataclass(frozen=True)
class HistoryInfo:
    """best: the highest speed after each attempt; None before the first verified one."""

    attempts: tuple[Attempt, ...]
    best: tuple[float | None, ...]


@dataclass(frozen=True)
class AxisInfo:
    """Speeds by value of one axis. explained: share of the variance that lies between the values."""

    name: str
    values: tuple[str, ...]
    mlups: tuple[tuple[float, ...], ...]
    labels: tuple[tuple[str, ...], ...]
    explained: float


@dataclass(frozen=True)
class ParityInfo:
    """Predicted against measured. median_error: `relative_error` of the points without a flaw, None of too few.

    left_out: how many have each flaw.
    """

    points: tuple[Point, ...]
    median_error: float | None
    left_out: Mapping[str, int]

    @property
    def counted(self) -> int:
        """Points without a flaw."""
        return len(self.points) - sum(self.left_out.values())


@dataclass(frozen=True)
class StageCost:
    """Seconds of one stage that went into trials with one outcome."""

    stage: str
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class OutcomeInfo:
    """How many trials ended so, with their reasons, most frequent first."""

    outcome: Outcome
    count: int
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class FinalInfo:
    """A finalist. ratio: its speed over the winner's, median over the rounds in which both ran; best_of: a family."""

    number: int
    label: str
    best_of: str
    measurement: Measurement
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None


STAGES = ("compile", "verify", "measure", "search")


def label(trial: Trial, varied: Sequence[str]) -> str:
    """A configuration in a line: the axes that differ within the study."""
    return ", ".join(f"{name} {trial.config[name]}" for name in varied if name in trial.config) or str(trial.key)


def varied_axes(study: StudyRecord) -> tuple[str, ...]:
    """Axes with more than one value among the trials; what is kept, scheme, layout and storage lead."""
    seen: dict[str, set[Scalar]] = {}
    for trial in study.trials:
        for name, value in trial.config.items():
            seen.setdefault(name, set()).add(value)
    lead = [name for name in ("representation", "steps", "scheme", "layout", "storage") if name in seen]
    return tuple(n for n in [*lead, *(n for n in seen if n not in lead)] if len(seen[n]) > 1)


def kind(config: Mapping[str, Scalar]) -> Kind:
    """What a kernel is in figures."""
    kept = config.get("representation", "populations")
    return Kind(
        pattern=str(config["scheme"] if kept == "populations" else kept),
        steps=int(config.get("steps", 1)),
        on_chip=config.get("launch") == "resident",
    )


def family(config: Mapping[str, Scalar]) -> str:
    """Its name."""
    return kind(config).name


def case_title(case: Case) -> str:
    """Lattice and collision operator as they are written in text."""
    operator = case.collision.upper() if case.collision in _ACRONYMS else case.collision
    return f"{case.lattice.upper()} {operator}"


def subject(case: Case, configs: Sequence[KernelConfig]) -> str:
    """What is solved, in which precision, and how many steps a launch of these kernels takes."""
    domain = " x ".join(map(str, case.domain))
    about = [f"{case_title(case)} {case.flow}", f"{domain} cells"]
    if configs:
        precisions = sorted({f"{one.storage}/{one.compute}" for one in configs})
        about += [f"{' and '.join(precisions)} (stored/computed)", _steps(configs)]
    return ", ".join(about)


def _steps(configs: Sequence[KernelConfig]) -> str:
    """Kernels that stay on chip take as many as they are asked for."""
    counted = [one.fused_steps for one in configs if not (isinstance(one, CudaConfig) and one.resident)]
    few = " to ".join(map(str, sorted({min(counted), max(counted)}))) if counted else ""
    many = "many" if len(counted) < len(configs) else ""
    number = " or ".join(filter(None, (few, many)))
    return "one step per launch" if number == "1" else f"{number} steps per launch"


def points(study: StudyRecord) -> tuple[Point, ...]:
    """The verified trials, best first."""
    varied, operations = varied_axes(study), flops_per_update(study.header.spec.case)
    return tuple(
        Point(
            number=t.number,
            label=label(t, varied),
            kind=kind(t.config),
            mlups=t.mlups or 0.0,
            predicted_mlups=t.prediction.mlups if t.prediction else None,
            share=study.share_of_ceiling(t),
            intensity=operations / t.best_measurement.bytes_per_update,
            flaw=next(iter(flaws(t.best_measurement)), ""),
        )
        for t in study.ranked
    )


def flaws(found: Measurement) -> tuple[str, ...]:
    """In what a measurement is not as the protocol wants it, in words."""
    marks = {"disturbed": found.disturbed, "dismissed after a first look": found.dismissed}
    return tuple(mark for mark, holds in marks.items() if holds)


def roofline_info(study: StudyRecord) -> RooflineInfo:
    """Measured bandwidths and where each verified trial stands."""
    ceiling = study.header.ceiling
    streams = (Roof(stream_name(width), rate) for width, rate in ceiling.stream_bytes_per_s.items())
    roofs = (
        Roof("update in place", ceiling.in_place_bytes_per_s),
        *streams,
        Roof("copy of one array", ceiling.copy_bytes_per_s),
    )
    best = next(roof for roof in roofs if roof.bytes_per_s == ceiling.best_bytes_per_s)
    found = points(study)
    return RooflineInfo(
        flops=flops_per_update(study.header.spec.case),
        roofs=roofs,
        ceiling=best,
        points=found,
        issue_mlups=issue_mlups(study.ranked[0].prediction) if found else None,
    )


def roofs_told(study: StudyRecord) -> str:
    """Which roofs of the winner a figure has besides bandwidths, and why not where it has none: a sentence."""
    if not study.ranked:
        return ""
    best = study.ranked[0]
    allowed = issue_mlups(best.prediction)
    if allowed:
        return (
            f"The level line is the winner's other roof: the {format_mlups(allowed)} "
            f"{study.header.spec.case.speed_unit} that the issue of its instructions allows by itself."
        )
    told = best.prediction.told if best.prediction else ()
    if len(told) == 1:
        return f"No other roof is known: by the model {told[0].name} alone takes the time of the winner."
    if told:
        named = ", ".join(one.name for one in told)
        return (
            f"No other roof is known: by the model what the winner takes adds up ({named}), and no record tells what "
            "one of these would allow by itself."
        )
    return (
        "Bandwidths are the only roofs that are known: what the winner's instructions take was not recorded, as of a "
        "device that is not calibrated (lbmtune devices --calibrate)."
    )


def above_the_ceiling(study: StudyRecord) -> str:
    """Why a share may exceed 100 %, in a sentence; empty where none does."""
    highest = max(map(study.share_of_ceiling, study.ranked), default=0.0)
    if highest <= 1:
        return ""
    ceiling = study.header.ceiling
    copy_bytes_per_s, plain = ceiling.copy_bytes_per_s, ""
    if copy_bytes_per_s > ceiling.best_bytes_per_s:
        plain = f"; a plain copy of one array moves {format_rate(copy_bytes_per_s)}"
    return (
        f"A share above 100 %, here up to {highest:.0%}, is no error: what lies in longer contiguous runs, or partly "
        f"in a cache, can be moved faster{plain}."
    )


def stream_name(width: str) -> str:
    """What a many-stream bandwidth is called: '16' is the bytes of an access, '64 streaming' those of a store."""
    size, _, kind = width.partition(" ")
    return f"{STREAMS}-stream copy, {size}-byte {kind or 'access'}"


def history_info(study: StudyRecord) -> HistoryInfo:
    """The search as it went."""
    varied = varied_axes(study)
    elapsed = accumulate(sum(seconds(t.costs).values()) for t in study.trials)
    attempts = tuple(
        Attempt(t.number, s, t.outcome, _first_mlups(t), label(t, varied), t.reason)
        for t, s in zip(study.trials, elapsed, strict=True)
    )
    best = tuple(top or None for top in accumulate((a.mlups or 0.0 for a in attempts), max))
    return HistoryInfo(attempts, best)


def _first_mlups(trial: Trial) -> float | None:
    """What the search saw; the finals came later."""
    if trial.mlups is None:
        return None
    return (trial.measurement or trial.best_measurement).mlups


def axes_info(study: StudyRecord) -> tuple[AxisInfo, ...]:
    """Speeds by axis, the axis that explains most first; axes with one verified value are left out."""
    varied = varied_axes(study)
    found = (_axis(study.ranked, name, varied) for name in varied)
    return tuple(sorted((axis for axis in found if len(axis.values) > 1), key=lambda a: -a.explained))


def _axis(trials: Sequence[Trial], name: str, varied: Sequence[str]) -> AxisInfo:
    groups: dict[Scalar, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.config[name], []).append(trial)
    order = sorted(groups, key=lambda value: (isinstance(value, str), value))
    mlups = tuple(tuple(t.mlups or 0.0 for t in groups[v]) for v in order)
    labels = tuple(tuple(f"trial {t.number}: {label(t, varied)}" for t in groups[v]) for v in order)
    return AxisInfo(name, tuple(map(str, order)), mlups, labels, explained_variance(mlups))


def explained_variance(groups: Sequence[Sequence[float]]) -> float:
    """Variance between the means of groups over all variance: 0..1."""
    everything = [value for group in groups for value in group]
    if not everything:
        return 0.0
    mean = sum(everything) / len(everything)
    total = sum((value - mean) ** 2 for value in everything)
    between = sum(len(group) * (sum(group) / len(group) - mean) ** 2 for group in groups)
    return between / total if total else 0.0


def parity_info(study: StudyRecord) -> ParityInfo:
    """Verified trials with a prediction, and the error of those that were left alone and measured to the end."""
    known = tuple(p for p in points(study) if p.predicted_mlups)
    errors = [relative_error(p.predicted_mlups, p.mlups) for p in known if p.predicted_mlups and not p.flaw]
    left_out = Counter(p.flaw for p in known if p.flaw)
    return ParityInfo(known, median(errors) if len(errors) >= FEWEST else None, left_out)


def relative_error(predicted: float, measured: float) -> float:
    """What a model errs by: |predicted / measured - 1|."""
    return abs(predicted / measured - 1)


def error_told(found: ParityInfo) -> str:
    """The median error of the model in a sentence, with the trials that it is of and those that it leaves out."""
    over = f"{found.counted:,} of {len(found.points):,} trials"
    if found.median_error is None:
        said = f"The error of the model is not told: {over} are too few."
    else:
        said = f"Median error of the model, |predicted / measured - 1|, over {over}: {found.median_error:.1%}."
    left_out = ", ".join(f"{count:,} {flaw}" for flaw, count in found.left_out.items())
    return f"{said} Left out, and pale: {left_out}." if left_out else said


def cost_info(study: StudyRecord) -> tuple[StageCost, ...]:
    """Seconds by stage and outcome, without what took none."""
    spent: dict[tuple[str, Outcome], float] = {}
    for trial in study.trials:
        for stage, taken in seconds(trial.costs).items():
            spent[stage, trial.outcome] = spent.get((stage, trial.outcome), 0.0) + taken
    return tuple(StageCost(stage, outcome, s) for (stage, outcome), s in spent.items() if s > 0)


def seconds(costs: Costs) -> dict[str, float]:
    """Seconds by stage."""
    return {stage: getattr(costs, f"{stage}_s") for stage in STAGES}


def outcome_info(study: StudyRecord) -> tuple[OutcomeInfo, ...]:
    """Outcomes that occurred, in the order of their definition."""
    by_outcome = {o: [t for t in study.trials if t.outcome is o] for o in Outcome}
    return tuple(
        OutcomeInfo(o, len(trials), tuple(Counter(_headline(t.reason) for t in trials if t.reason).most_common(5)))
        for o, trials in by_outcome.items()
        if trials
    )


def _headline(reason: str) -> str:
    """The first line, cut."""
    first = reason.strip().splitlines()[0] if reason.strip() else ""
    return first if len(first) <= 160 else f"{first[:157]}..."


def distribution_info(study: StudyRecord) -> dict[Kind, tuple[float, ...]]:
    """Speeds of the verified trials by kind, ascending."""
    found = points(study)
    return {k: tuple(sorted(p.mlups for p in found if p.kind == k)) for k in sorted({p.kind for p in found})}


def finals_info(study: StudyRecord) -> tuple[FinalInfo, ...]:
    """The finalists, winner first, with ratios paired by round."""
    varied = varied_axes(study)
    finalists = [t for t in study.ranked if t.final]
    return tuple(_final(t, finalists[0], varied) for t in finalists)


def _final(trial: Trial, winner: Trial, varied: Sequence[str]) -> FinalInfo:
    assert trial.final is not None
    assert winner.final is not None
    mine, best = trial.final.samples_s, winner.final.samples_s
    name = label(trial, varied)
    # samples are paired by round: with another number of them there are no pairs
    if trial is winner or len(mine) != len(best):
        return FinalInfo(trial.number, name, trial.stands_for, trial.final, None, None, None)
    ratio = paired_ratio(best, mine)
    return FinalInfo(trial.number, name, trial.stands_for, trial.final, ratio.median, ratio.low, ratio.high)


def headline(study: StudyRecord) -> str:
    """The study in one sentence."""
    device = study.header.environment.device
    if not study.ranked:
        return f"No configuration gave a verified measurement on {device}; trials: {len(study.trials)}."
    winner = study.ranked[0]
    m = winner.best_measurement
    against = f", {m.mlups / winner.prediction.mlups:.1%} of prediction" if winner.prediction else ""
    title = "Fastest" if study.header.spec.objective == "mlups" else "Smallest footprint"
    share = study.share_of_ceiling(winner)
    unit = study.header.spec.case.speed_unit
    run = winner.sustained
    kept_up = f" ({format_mlups(run.mlups)} sustained{', disturbed' if run.disturbed else ''})" if run else ""
    return (
        f"{title}: {format_mlups(m.mlups)} {unit}{kept_up} on {device}, {share:.1%} of the measured ceiling{against}."
    )
