"""Kernels with several steps per launch: which bounds of one step they exceed, and why.

The bandwidth is the ceiling of the study, the issue bound is the time of the model's issue slots alone, and power is
the bound if a sustained run is slower than bursts and the power limit was the throttle reason.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.records import Prediction, Sustained, Trial
from lbmtune.records.study import StudyRecord, once
from lbmtune.records.terms import ISSUE, MEMORY
from lbmtune.report.limits import alone_s, limits_of, limits_text
from lbmtune.report.tables import case_title
from lbmtune.search.kinds import Kind, kind_of
from lbmtune.units import format_bytes, format_mlups, format_rate

CellsRead = Callable[[KernelConfig], float]
"""Cells that a launch of a configuration reads per cell that it updates: 1 without halos."""
NEAR = 0.9
"""Share of a bound from which it counts as reached."""
SLOWER = 0.01
"""Relative loss of a sustained run against bursts from which power counts as its bound."""
_MOST_STEPS = 8
_HALOS = 1.005
"""Ratio of bytes with halos to those without from which on it is told."""
_SAID = 3
"""Limits that the text names."""


@dataclass(frozen=True)
class Stage:
    """The best trial with a representation, a place of the state and a number of steps per launch.

    bytes_per_update: without halos; halo_bytes: with each cell of a halo read from memory, of which caches save a part,
    None if unknown; memory_mlups, issue_mlups: what bandwidth and issue slots allow, each alone, the latter None if
    unknown; predicted_mlups: by all terms of the model.
    """

    number: int
    kind: Kind
    bytes_per_update: float
    halo_bytes: float | None
    memory_mlups: float
    issue_mlups: float | None
    predicted_mlups: float | None
    mlups: float
    sustained_mlups: float | None

    @property
    def title(self) -> str:
        """Name the kernels of the stage, to begin a sentence."""
        kind = self.kind
        return kind.state.capitalize() if kind.on_chip else f"{kind.representation.capitalize()} with T = {kind.steps}"


@dataclass(frozen=True)
class StepsInfo:
    """Data of the figure. ideal: bytes per update by representation, for 1, 2, ... steps; bytes_per_s: the ceiling.

    one_step_mlups: what the ceiling allows populations with one step per launch; winner: of the study, one of the
    stages unless the objective is not speed.
    """

    ideal: dict[str, tuple[float, ...]]
    bytes_per_s: float
    one_step_mlups: float
    stages: tuple[Stage, ...]
    winner: Stage


def steps_info(study: StudyRecord, cells_read: CellsRead | None = None) -> StepsInfo | None:
    """Return the best of each stage; None if no verified kernel keeps moments, the state on chip, or fuses steps."""
    best = best_of_stages(study)
    if not any(kept != "populations" or on_chip or steps > 1 for kept, on_chip, steps in best):
        return None
    configs = [trial.kernel_config for trial in best.values()]
    stored = study.ranked[0].kernel_config.stored.bytes
    rate, stencil = study.header.ceiling.best_bytes_per_s, study.header.spec.case.stencil
    values = {config.kept.name: config.kept.values(stencil) for config in configs}
    values.setdefault("populations", stencil.q)
    most = max(_MOST_STEPS if stencil.dimensions == 2 else _MOST_STEPS // 2, *(steps for *_, steps in best))
    ideal = {kept: tuple(2 * n * stored / t for t in range(1, most + 1)) for kept, n in values.items()}
    stages = tuple(_stage(best[key], rate, cells_read) for key in sorted(best))
    first = study.ranked[0]
    winner = next((s for s in stages if s.number == first.number), None) or _stage(first, rate, cells_read)
    return StepsInfo(ideal, rate, rate / ideal["populations"][0] / 1e6, stages, winner)


@once
def best_of_stages(study: StudyRecord) -> Mapping[tuple[str, bool, int], Trial]:
    """Return the best trial by representation, whether the state is on chip, and steps per launch.

    A final, which is measured interleaved, goes before a first measurement.
    """
    best: dict[tuple[str, bool, int], Trial] = {}
    for trial in sorted(study.ranked, key=lambda t: (t.final is None, -(t.mlups or 0.0))):
        kind = kind_of(trial.kernel_config)
        best.setdefault((kind.representation, kind.on_chip, kind.steps), trial)
    return best


def _stage(trial: Trial, rate: float, cells_read: CellsRead | None) -> Stage:
    config, measured = trial.kernel_config, trial.best_measurement
    moved, predicted = measured.bytes_per_update, trial.prediction
    return Stage(
        number=trial.number,
        kind=kind_of(config),
        bytes_per_update=moved,
        halo_bytes=bytes_with_halos(trial, cells_read) if cells_read else None,
        memory_mlups=rate / moved / 1e6,
        issue_mlups=issue_mlups(predicted),
        predicted_mlups=predicted.mlups if predicted else None,
        mlups=measured.mlups,
        sustained_mlups=trial.sustained.mlups if trial.sustained else None,
    )


def leaves_out_halos(config: KernelConfig) -> bool:
    """Return whether the bytes of an update leave out the halos that a kernel reads; those of a CPU count them."""
    return config.fused_steps > 1 and not config.on_chip and not BACKENDS[config.backend].shares_host


def bytes_with_halos(trial: Trial, cells_read: CellsRead) -> float:
    """Return the bytes of an update if each cell of a halo is read from memory: halos are read, and not written."""
    return trial.best_measurement.bytes_per_update * (1 + cells_read(trial.kernel_config)) / 2


def halo_mlups(trial: Trial, cells_read: CellsRead | None) -> float | None:
    """Return the speed that memory alone allows if no cache saves a read of a halo, by the model's bandwidth.

    None if there are no halos, or it is not known.
    """
    kind, rate = kind_of(trial.kernel_config), trial.prediction.bandwidth_bytes_per_s if trial.prediction else 0.0
    if cells_read is None or kind.on_chip or kind.steps == 1 or not rate:
        return None
    moved = bytes_with_halos(trial, cells_read)
    return rate / moved / 1e6 if moved > _HALOS * trial.best_measurement.bytes_per_update else None


def with_halos(trial: Trial, limit_mlups: float, cells_read: CellsRead | None) -> str:
    """Say that memory may limit a trial more than its limit does, if no cache saves a read of a halo; else empty."""
    allowed = halo_mlups(trial, cells_read)
    measured = trial.best_measurement.mlups
    if allowed is None or not measured <= allowed < limit_mlups:
        return ""
    reached = f"{format_mlups(allowed)}, of which {measured / allowed:.0%} are reached"
    return f"; if all halos came from memory, it would be the limit: {reached}"


def issue_mlups(prediction: Prediction | None) -> float | None:
    """Return the speed if issue slots were the only bound; None if the record does not tell it."""
    term = next((one for one in prediction.terms if one.name == ISSUE), None) if prediction else None
    seconds = alone_s(term) if term else None
    return 1e-6 / seconds if seconds else None


def explanation(study: StudyRecord, info: StepsInfo, cells_read: CellsRead | None = None) -> tuple[str, ...]:
    """Explain the best trial: the bound that it exceeds and why, what bounds it, and its sustained speed."""
    winner, stage = study.ranked[0], info.winner
    bound = _by_terms(study, winner, stage)
    sentences = (
        _past(study, winner, stage, info),
        _beside_one_step(study, stage, info),
        bound if bound or stage.kind.on_chip else _memory_bound(stage),
        _halos(stage, halo_mlups(winner, cells_read)),
        sustained_text(winner.sustained, stage.mlups),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _past(study: StudyRecord, winner: Trial, stage: Stage, info: StepsInfo) -> str:
    """Compare with the bound of one step; both sides name operator, domain and steps, which may not differ unsaid."""
    case, storage = study.header.spec.case, winner.config["storage"]
    what = f"{case_title(case)}, {' x '.join(map(str, case.domain))} cells, {storage}"
    ratio = stage.mlups / info.one_step_mlups
    if ratio <= 1:
        return ""
    if stage.bytes_per_update >= info.ideal["populations"][0]:
        return (
            f"{stage.title} ({what}) reach {format_mlups(stage.mlups)} MLUPS in bursts, {ratio:.2f} times what "
            f"{format_rate(info.bytes_per_s)} allow: the benchmark underestimates this memory."
        )
    through = ", through the L2 cache," if stage.kind.on_chip else ""
    return (
        f"{stage.title} ({what}) reach {format_mlups(stage.mlups)} MLUPS in bursts, "
        f"{ratio:.2f} times what {format_rate(info.bytes_per_s)} allow populations with T = 1 ({what}), "
        f"{format_mlups(info.one_step_mlups)} MLUPS: they move {stage.bytes_per_update:.3g} bytes per update{through} "
        f"instead of {info.ideal['populations'][0]:.3g}."
    )


def _beside_one_step(study: StudyRecord, stage: Stage, info: StepsInfo) -> str:
    """Compare with the best measured one step per launch, and say if memory bandwidth bounds that at all."""
    single = (s for s in info.stages if s.kind.steps == 1 and not s.kind.on_chip)
    one = max(single, key=lambda s: s.mlups, default=None)
    if one is None or one.number == stage.number:
        return ""
    trial = next(t for t in study.trials if t.number == one.number)
    said = (
        f"The best measured with T = 1, trial {one.number} ({one.kind.label}), reaches {format_mlups(one.mlups)} "
        f"MLUPS; the winner is {stage.mlups / one.mlups:.2f} times as fast."
    )
    footprint = trial.prediction.footprint_bytes if trial.prediction else 0
    cache_bytes = study.header.last_cache_bytes
    if not 0 < footprint <= cache_bytes:
        bound = (
            f" Trial {one.number} is faster than one step per launch could be at {format_rate(info.bytes_per_s)} "
            f"({format_mlups(one.memory_mlups)} MLUPS): the benchmark underestimates this memory."
        )
        return said + (bound if one.mlups > one.memory_mlups else "")
    return (
        f"{said} The footprint of that trial, {format_bytes(footprint)}, fits in the last-level cache "
        f"({format_bytes(cache_bytes)}): memory bandwidth does not bound it."
    )


def _by_terms(study: StudyRecord, winner: Trial, stage: Stage) -> str:
    """State the share of each term of the prediction; empty if terms do not add up, as for one step on a GPU."""
    predicted = winner.prediction
    overlaps = BACKENDS[winner.kernel_config.backend].overlaps_memory
    adds_up = not overlaps or stage.kind.on_chip or stage.issue_mlups is not None
    if not adds_up or predicted is None or not predicted.terms:
        return ""
    first, *others = predicted.significant_terms
    if stage.kind.on_chip and not others and first.name == MEMORY:
        return (
            f"The predicted {format_mlups(predicted.mlups)} MLUPS follow from bytes alone: the device was not "
            "calibrated."
        )
    whole = sum(one.seconds for one in predicted.terms)
    beside = "".join(f", {one.name} {one.seconds / whole:.0%}" for one in others)
    reached = f"{format_mlups(predicted.mlups)} MLUPS, of which {stage.mlups / predicted.mlups:.0%} are reached."
    if stage.issue_mlups:
        alone = limits_text(study, limits_of(study, winner)[:_SAID])
        return f"Each alone would allow: {alone}. The model predicts {reached}"
    return f"Terms of the model: {first.name} {first.seconds / whole:.0%} of an update{beside}; {reached}"


def _memory_bound(stage: Stage) -> str:
    reached = stage.mlups / stage.memory_mlups
    said = "is the bound" if reached >= NEAR else "is the lowest known bound, and not reached"
    return f"Memory {said}: {format_mlups(stage.memory_mlups)} MLUPS, of which {reached:.0%} are reached."


def _halos(stage: Stage, allowed: float | None) -> str:
    """State what memory allows if no cache saves a read of a halo; empty without halos."""
    moved = stage.halo_bytes
    if moved is None or allowed is None:
        return ""
    share = stage.mlups / allowed
    saved = ", because caches save some of these reads" if share > 1 else ""
    return (
        f"With each halo cell read from memory an update moves {moved:.3g} bytes, for which memory alone would allow "
        f"{format_mlups(allowed)} MLUPS by the model's bandwidth; {share:.0%} of that is reached{saved}."
    )


def sustained_text(run: Sustained | None, burst_mlups: float) -> str:
    """State the sustained speed against bursts, and if power is its bound; empty without a sustained run."""
    if run is None:
        return ""
    change = run.mlups / burst_mlups - 1
    energy = f", {run.nj_per_update:.3g} nJ per update" if run.nj_per_update else ""
    mark = "disturbed, " if run.disturbed else ""
    said = f"Sustained over {run.seconds:.1f} s: {mark}{format_mlups(run.mlups)} MLUPS ({change:+.1%}){energy}"
    if not is_power_bound(run, burst_mlups):
        return f"{said}."
    share = max(value for reason, value in run.throttled.items() if "power" in reason)
    return f"{said}; {power_bound_text(run, burst_mlups)}, the throttle reason in {share:.0%} of the samples."


def power_bound_text(run: Sustained, burst_mlups: float) -> str:
    """Say that power binds a sustained run, with the power allowed; empty if it does not."""
    if not is_power_bound(run, burst_mlups):
        return ""
    if not (run.power_w and run.power_limit_w):
        return "bound by power"
    return f"held at the power limit of {run.power_limit_w:.0f} W"


def is_power_bound(run: Sustained, burst_mlups: float) -> bool:
    """Return whether a sustained run is slower than bursts and a power limit was a throttle reason."""
    return run.mlups < (1 - SLOWER) * burst_mlups and any("power" in reason for reason in run.throttled)
