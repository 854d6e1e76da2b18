"""Kernels of several steps per launch, as plain data and in words: why they are past the roofline of one step.

The bandwidth is that of the ceiling of the study, the issue bound is what the model's issue slots
(`model.gpu.instruction_issue`) take by themselves, and power binds where a run of seconds is slower than a burst and
says that the power limit was the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.model.predict import computed_cells
from lbmtune.records import Sustained, Trial
from lbmtune.records.study import StudyRecord
from lbmtune.records.terms import MEMORY
from lbmtune.report.bounds import issue_mlups
from lbmtune.report.info import case_title, family, kind
from lbmtune.units import format_bytes, format_mlups, format_rate

NEAR = 0.9
"""Share of a bound from which on it counts as reached."""
SLOWER = 0.01
"""By how much a run of seconds must be slower than bursts for power to be what binds it."""
_MOST_STEPS = 8


@dataclass(frozen=True)
class Stage:
    """The best trial of a kind of kernel with so many steps per launch.

    kept: moments or populations; on_chip: whether they stay there, through as many steps as a launch is asked for, of
    which `steps` says nothing; bytes_per_update: without halos; halo_bytes: with each of their cells read from memory,
    of which caches spare a part; memory_mlups, issue_mlups: what bandwidth and the issue of instructions allow, each by
    itself, the latter None where the model does not know it; predicted_mlups: by all that the model knows.
    """

    number: int
    kept: str
    on_chip: bool
    family: str
    steps: int
    bytes_per_update: float
    halo_bytes: float
    memory_mlups: float
    issue_mlups: float | None
    predicted_mlups: float | None
    mlups: float
    sustained_mlups: float | None

    @property
    def title(self) -> str:
        """What it is in a sentence."""
        return f"{self.kept.capitalize()} {'on chip' if self.on_chip else f'with T = {self.steps}'}"


@dataclass(frozen=True)
class StepsInfo:
    """ideal: bytes per update by what is kept, for 1, 2, ... steps; bytes_per_s: the ceiling of the study.

    one_step_mlups: what populations with one step per launch could reach at that ceiling; winner: of the study, one of
    the stages unless it was ranked by something else than its speed.
    """

    ideal: dict[str, tuple[float, ...]]
    bytes_per_s: float
    one_step_mlups: float
    stages: tuple[Stage, ...]
    winner: Stage


def steps_info(study: StudyRecord) -> StepsInfo | None:
    """The best of each kind; None where no verified kernel keeps moments or does several steps at once."""
    best: dict[tuple[str, bool, int], Trial] = {}
    for trial in sorted(study.ranked, key=lambda t: -(t.mlups or 0.0)):
        config = from_flat(trial.config)
        best.setdefault((config.kept.name, kind(trial.config).on_chip, config.fused_steps), trial)
    if not any(kept != "populations" or on_chip or steps > 1 for kept, on_chip, steps in best):
        return None
    stored = from_flat(study.ranked[0].config).stored.bytes
    rate, stencil = study.header.ceiling.best_bytes_per_s, study.header.spec.case.stencil
    values = {from_flat(t.config).kept.name: from_flat(t.config).kept.values(stencil) for t in best.values()}
    values.setdefault("populations", stencil.q)
    most = max(_MOST_STEPS if stencil.dimensions == 2 else _MOST_STEPS // 2, *(steps for *_, steps in best))
    ideal = {kept: tuple(2 * n * stored / t for t in range(1, most + 1)) for kept, n in values.items()}
    stages = tuple(_stage(study, best[key], rate) for key in sorted(best))
    first = study.ranked[0]
    winner = next((s for s in stages if s.number == first.number), None) or _stage(study, first, rate)
    return StepsInfo(ideal, rate, rate / ideal["populations"][0] / 1e6, stages, winner)


def _stage(study: StudyRecord, trial: Trial, rate: float) -> Stage:
    config, measured = from_flat(trial.config), trial.best_measurement
    predicted = trial.prediction
    return Stage(
        number=trial.number,
        kept=config.kept.name,
        on_chip=kind(trial.config).on_chip,
        family=family(trial.config),
        steps=config.fused_steps,
        bytes_per_update=measured.bytes_per_update,
        halo_bytes=measured.bytes_per_update * (1 + read_again(study, config)) / 2,
        memory_mlups=rate / measured.bytes_per_update / 1e6,
        issue_mlups=issue_mlups(predicted),
        predicted_mlups=predicted.mlups if predicted else None,
        mlups=measured.mlups,
        sustained_mlups=trial.sustained.mlups if trial.sustained else None,
    )


def read_again(study: StudyRecord, config: KernelConfig) -> float:
    """Cells that a launch reads, over those that it updates: 1 without halos."""
    return computed_cells(study.header.spec.case, config)


def why(study: StudyRecord) -> tuple[str, ...]:
    """Sentences on the best trial: past which bound it is and why, what binds it, what a run of seconds takes away."""
    found = steps_info(study)
    if found is None:
        return ()
    winner, stage = study.ranked[0], found.winner
    binds = _by_terms(winner, stage) if stage.on_chip else _by_terms(winner, stage) or _binds(stage)
    told = (
        _past(study, winner, stage, found),
        _beside_one_step(study, stage, found),
        binds,
        power(winner.sustained, stage.mlups),
    )
    return tuple(sentence for sentence in told if sentence)


def _past(study: StudyRecord, winner: Trial, stage: Stage, found: StepsInfo) -> str:
    """Operator, domain and steps are named on both sides: none of them may differ unsaid."""
    case, storage = study.header.spec.case, winner.config["storage"]
    what = f"{case_title(case)}, {' x '.join(map(str, case.domain))} cells, {storage}"
    ratio = stage.mlups / found.one_step_mlups
    if ratio <= 1:
        return ""
    through = ", and those through the L2 cache," if stage.on_chip else ""
    return (
        f"{stage.title} ({what}) make {format_mlups(stage.mlups)} MLUPS in bursts, "
        f"{ratio:.2f} times what populations with T = 1 ({what}) could reach at {format_rate(found.bytes_per_s)}, "
        f"{format_mlups(found.one_step_mlups)} MLUPS: they move {stage.bytes_per_update:.3g} bytes per update{through} "
        f"instead of {found.ideal['populations'][0]:.3g}."
    )


def _beside_one_step(study: StudyRecord, stage: Stage, found: StepsInfo) -> str:
    """The best that was measured with one step per launch, and whether bytes from memory bound it at all."""
    one = max((s for s in found.stages if s.steps == 1 and not s.on_chip), key=lambda s: s.mlups, default=None)
    if one is None or one.number == stage.number:
        return ""
    said = (
        f"The best measured with T = 1, trial {one.number} ({one.family}), makes {format_mlups(one.mlups)} MLUPS; "
        f"this is {stage.mlups / one.mlups:.2f} times as fast."
    )
    kept = next(t.prediction.footprint_bytes if t.prediction else 0 for t in study.trials if t.number == one.number)
    cache_bytes = study.header.last_cache_bytes
    if not 0 < kept <= cache_bytes:
        above = one.mlups > one.memory_mlups
        return said + (f" It is above what {format_rate(found.bytes_per_s)} allow: no bound here." if above else "")
    return (
        f"{said} All that trial keeps, {format_bytes(kept)}, fits in the last cache ({format_bytes(cache_bytes)}): "
        "bytes from memory are no bound there."
    )


def _by_terms(winner: Trial, stage: Stage) -> str:
    """On a processor, whose cores wait as well as work, on chip, and in marches: what each term takes; else empty.

    Terms add up there, and none alone is the bound.
    """
    predicted = winner.prediction
    adds_up = winner.config.get("backend") == "cpu" or stage.on_chip or stage.issue_mlups is not None
    if not adds_up or predicted is None or not predicted.terms:
        return ""
    first, *others = predicted.told
    if stage.on_chip and not others and first.name == MEMORY:
        return (
            f"The {format_mlups(predicted.mlups)} MLUPS that were predicted are of bytes alone: the device had not "
            "been calibrated."
        )
    whole = sum(one.seconds for one in predicted.terms)
    beside = "".join(f", {one.name} {one.seconds / whole:.0%}" for one in others)
    by_themselves = (
        f" By itself the issue of instructions would allow {format_mlups(stage.issue_mlups)} MLUPS, bandwidth "
        f"{format_mlups(stage.memory_mlups)}: what the model adds up is what is left when each hides behind the others."
        if stage.issue_mlups
        else ""
    )
    return (
        f"By the model {first.name} takes {first.seconds / whole:.0%} of an update{beside}: "
        f"{format_mlups(predicted.mlups)} MLUPS, of which {stage.mlups / predicted.mlups:.0%} are reached."
        f"{by_themselves}"
    )


def _binds(stage: Stage) -> str:
    """Memory, and how much of what it allows was reached."""
    reached = stage.mlups / stage.memory_mlups
    said = "binds now" if reached >= NEAR else "is the lowest bound that is known, and not reached"
    return f"Memory {said}: {format_mlups(stage.memory_mlups)} MLUPS, of which {reached:.0%} are reached."


def power(run: Sustained | None, burst_mlups: float) -> str:
    """What a run of seconds says; empty where there was none."""
    if run is None:
        return ""
    change = run.mlups / burst_mlups - 1
    energy = f", {run.nj_per_update:.3g} nJ per update" if run.nj_per_update else ""
    mark = ", disturbed," if run.disturbed else ""
    said = f"Over {run.seconds:.1f} s without a pause{mark} they are {format_mlups(run.mlups)} MLUPS ({change:+.1%})"
    said += energy
    if not power_bound(run, burst_mlups):
        return f"{said}."
    share = max(value for reason, value in run.throttled.items() if "power" in reason)
    drawn = f" at {run.power_w:.0f} W of {run.power_limit_w:.0f} W" if run.power_w and run.power_limit_w else ""
    return (
        f"{said}: power binds a run that lasts{drawn}, and was the reason for lower clocks at {share:.0%} of the looks."
    )


def power_bound(run: Sustained, burst_mlups: float) -> bool:
    """Whether it is slower than bursts, and a power limit was a reason for lower clocks."""
    return run.mlups < (1 - SLOWER) * burst_mlups and any("power" in reason for reason in run.throttled)
