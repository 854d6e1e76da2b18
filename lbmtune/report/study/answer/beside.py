"""Kernels beside the winner: runner-up, default, bests of other kinds, and published ones of the device."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from lbmtune.catalogue.config import Scalar, from_flat
from lbmtune.records import Trial
from lbmtune.records.comparison.race import slower
from lbmtune.records.study import StudyRecord, once
from lbmtune.report.study.answer.words import device_option, meaning, words
from lbmtune.report.study.steps import SLOWER, best_of_stages
from lbmtune.search.kinds import is_default
from lbmtune.units import format_mlups

_PUBLISHED = Path(__file__).with_name("published.toml")
_SHOWN = ("layout", "block", "cells_per_thread")
"""Knobs of the default kernel that are told."""
_LESS_MEMORY = 0.75
"""Share of the winner's footprint up to which a kernel counts as one with less memory."""

_PAIRED = 0.005
"""Relative difference between the ratio of two speeds and that of rounds of both from which on it is told."""
NEARLY = 0.02
"""Relative difference of speeds up to which a kernel is nearly as fast, or as fast over seconds as in bursts."""
FAR = 0.05
"""Relative difference of the speeds of search and finals from which on both are told."""
_TOLD = 0.001
"""Relative lead over seconds from which on a trial is named."""


@dataclass(frozen=True)
class Beside:
    """A kernel to compare the winner with. gain: the winner's speed over its; trial: None of a published one.

    source: of a published one; of a trial what tells its speed from the winner's, which is of the finals.
    footprint_bytes: of all buffers, 0 if it is not recorded; meaning: of the words of the kernel, '' if not known;
    gain_in_search: by the winner's speed of the search, if that is another one and the trial has no final; else None.
    """

    what: str
    kernel: str
    mlups: float
    gain: float
    trial: int | None = None
    source: str = ""
    sustained_mlups: float | None = None
    footprint_bytes: int = 0
    meaning: str = ""
    gain_in_search: float | None = None

    @property
    def gain_range(self) -> str:
        """Return the gains of search and finals, such as '1.9 to 2.1'; '' if both ran at the same speed."""
        return (
            "" if self.gain_in_search is None else "{:.2g} to {:.2g}".format(*sorted((self.gain, self.gain_in_search)))
        )


@once
def beside(study: StudyRecord) -> tuple[Beside, ...]:
    """Return the kernels beside the winner that are known, each once with all that it stands for."""
    winner = study.ranked[0]
    stands_for: dict[int, list[str]] = {}
    named = {trial.number: trial for trial in study.ranked}
    for what, trial in _named(study):
        if trial and trial is not winner:
            stands_for.setdefault(trial.number, []).append(what)
    other = best_of_another_kind(study)
    if other and other.number not in stands_for:
        stands_for[other.number] = ["best of another kind"]
    found = (_noted(study, of_trial(study, "; ".join(what), named[number])) for number, what in stands_for.items())
    return (*found, *_published(study, winner))


def _noted(study: StudyRecord, one: Beside) -> Beside:
    """Add to the best of one step which trial of the search alone was faster."""
    if "one step" not in one.what:
        return one
    of = next(trial for trial in study.ranked if trial.number == one.trial)
    other = faster_in_search(study, of, populations="populations" in one.what)
    if other is None:
        return one
    speed = format_mlups(other.mlups or 0.0)
    return replace(one, source=f"in the finals; in the search alone trial {other.number} had {speed}")


def faster_in_search(study: StudyRecord, one: Trial, *, populations: bool = False) -> Trial | None:
    """Return the fastest trial of one step that took no part in the finals, if it was faster than one that did.

    It has to be faster in the search, too, which the machine may have run at another speed.
    """
    alone = (t for t in study.ranked if not t.final and _is_of_one_step(t, populations=populations))
    best = max(alone, key=lambda t: t.mlups or 0.0, default=None)
    if best is None or one.final is None or one.measurement is None:
        return None
    return best if (best.mlups or 0.0) > max(one.measurement.mlups, one.mlups or 0.0) else None


def _named(study: StudyRecord) -> Iterator[tuple[str, Trial | None]]:
    """Yield what a trial to compare the winner with is, and the trial; None of one that the study has not."""
    second = _next(study)
    if study.overtaken is None:
        yield "tied with it" if second and second.number in study.tied else "runner-up", second
    yield "fastest sustained", fastest_sustained(study)
    yield from (("nearly as fast sustained", one) for one in nearly_sustained(study))
    yield "fastest in bursts", study.overtaken
    if study.overtaken:
        level = f"tied with {study.overtaken.number} in bursts"
        yield from ((level, one) for one in tied_in_bursts(study))
    if study.header.spec.kernel:
        return
    one, stored = best_of_one_step(study), best_of_one_step(study, populations=True)
    yield "best of one step per launch", one
    alone = stored is default_of(study) and tried_of_one_step(study, populations=True) == 1
    yield "best of one step that stores populations", None if stored is one or alone else stored
    yield "best with less memory", best_with_less_memory(study)
    yield "default", default_of(study)


def _next(study: StudyRecord) -> Trial | None:
    """Return the fastest trial that is tied with the winner, or else the runner-up."""
    tied = (trial for trial in study.ranked if trial.number in study.tied)
    return max(tied, key=lambda t: t.mlups or 0.0, default=next(iter(study.ranked[1:]), None))


def best_of_another_kind(study: StudyRecord) -> Trial | None:
    """Return the fastest trial of another kind of kernel than the winner, whatever it was measured in."""
    own = words(study.ranked[0].kernel_config)
    others = (trial for trial in study.ranked if words(trial.kernel_config) != own)
    return max(others, key=lambda t: t.mlups or 0.0, default=None)


class Missing(NamedTuple):
    """The default without a speed in a study: its kernel, why, and the command that measures it.

    alike_mlups: median of the trials of its scheme, whatever their blocks and layouts; None without any.
    """

    kernel: str
    why: str
    command: str
    alike_mlups: float | None = None


def missing(study: StudyRecord) -> tuple[Missing, ...]:
    """Return the default if it has no speed in the study."""
    if study.header.spec.kernel or default_of(study):
        return ()
    why = "not verified" if any(is_default(trial.kernel_config) for trial in study.trials) else "not measured"
    winner, backend = study.ranked[0].config, study.header.backend
    knobs: dict[str, Scalar] = {"family": "direct"}
    knobs |= {name: winner[name] for name in ("storage", "compute") if name in winner}
    command = f"lbmtune measure {','.join(f'{name}={value}' for name, value in knobs.items())} --study . "
    command += f"--device {device_option(study)}"
    config = from_flat({"backend": backend, **knobs})
    shown = [f"{name}={config.flat()[name]}" for name in _SHOWN if name in config.flat()]
    kernel = f"{words(config)}: {', '.join(shown)}"
    alike = [t.mlups or 0.0 for t in study.ranked if words(t.kernel_config) == words(config)]
    near = f"median of {len(alike):,} trials of its scheme; itself " if alike else ""
    why = f"{near}{why} in this study:"
    return (Missing(kernel, why, command, median(alike) if alike else None),)


def none_published(study: StudyRecord) -> str:
    """Say that no published speed is known to compare with; empty if one is, or a user's kernel was tuned."""
    if not study.ranked or study.header.spec.kernel or any(_published(study, study.ranked[0])):
        return ""
    return "No published speed is known for this device, lattice, storage and flow."


def of_trial(study: StudyRecord, what: str, trial: Trial) -> Beside:
    """Return a trial beside the winner."""
    winner, own, run = study.ranked[0], trial.mlups or 0.0, trial.sustained
    gain, paired = (winner.mlups or 0.0) / own, None if study.overtaken else study.paired_with_winner(trial)
    there = in_its_search(winner, trial)
    alone = f"search only, where the winner had {format_mlups(there)}" if there else "search only"
    apart = f"round by round {1 / paired.median:.3f} x" if paired and abs(gain * paired.median - 1) > _PAIRED else ""
    return Beside(
        what,
        words(trial.kernel_config),
        own,
        gain,
        trial.number,
        alone if winner.final and not trial.final else apart,
        sustained_mlups=run.mlups if run else None,
        footprint_bytes=footprint(trial),
        meaning=meaning(trial.kernel_config),
        gain_in_search=there / own if there else None,
    )


def in_its_search(winner: Trial, trial: Trial) -> float | None:
    """Return the winner's MLUPS in the search, if a trial was measured there alone and the finals ran at another speed.

    The machine may have changed in between, so that both speeds of the winner are compared with it.
    """
    return None if trial.final else other_in_search(winner)


def other_in_search(trial: Trial) -> float | None:
    """Return the MLUPS of a trial in the search, if it ran at another speed in the finals."""
    first = trial.measurement.mlups if trial.measurement and trial.final else None
    return first if first and abs(first / (trial.mlups or first) - 1) > FAR else None


def footprint(trial: Trial) -> int:
    """Return the bytes of all buffers of a trial; 0 if they are not recorded."""
    return trial.prediction.footprint_bytes if trial.prediction else 0


def differs(trial: Trial) -> bool:
    """Return whether the sustained speed of a trial is another one than that in bursts."""
    run = trial.sustained
    return run is not None and not run.disturbed and abs(run.mlups / (trial.mlups or 1.0) - 1) > NEARLY


def fastest_sustained(study: StudyRecord) -> Trial | None:
    """Return the trial that leads over seconds without a pause; None if none does visibly, or that is not known."""
    winner = study.ranked[0].sustained
    runs = [(t.sustained.mlups, t) for t in study.ranked if t.sustained and not t.sustained.disturbed]
    if winner is None or winner.disturbed or study.header.spec.objective != "mlups":
        return None
    speed, trial = max(runs, key=lambda run: run[0])
    return trial if speed >= (1 + _TOLD) * winner.mlups else None


def nearly_sustained(study: StudyRecord) -> list[Trial]:
    """Return the trials that a winner which leads over seconds alone hardly leads, the fastest first."""
    winner = study.ranked[0]
    if study.overtaken is None or winner.sustained is None:
        return []
    least = (1 - SLOWER) * winner.sustained.mlups
    runs = [(t.sustained.mlups, t) for t in study.ranked[1:] if t.sustained and not t.sustained.disturbed]
    near = [(speed, t) for speed, t in runs if speed >= least and t is not study.overtaken]
    return [trial for _, trial in sorted(near, key=lambda run: -run[0])]


def tied_in_bursts(study: StudyRecord) -> list[Trial]:
    """Return the trials that are tied with the fastest in bursts, if another one wins over seconds."""
    first = study.overtaken
    if first is None:
        return []
    low = study.interval(first).low_mlups
    near = (t for t in study.ranked[1:] if t.final and t is not first and (t.mlups or 0.0) >= low)
    return [trial for trial in near if not slower(trial, first)]


def best_of_one_step(study: StudyRecord, *, populations: bool = False) -> Trial | None:
    """Return the best trial of one step per launch, of any kernel or of those that store populations."""
    if _is_of_one_step(study.ranked[0], populations=populations):
        return study.ranked[0]
    found = (t for t in best_of_stages(study).values() if _is_of_one_step(t, populations=populations))
    return max(found, key=lambda t: t.mlups or 0.0, default=None)


def tried_of_one_step(study: StudyRecord, *, populations: bool = False) -> int:
    """Return the number of verified trials of one step per launch. populations: of those that store them."""
    return sum(_is_of_one_step(trial, populations=populations) for trial in study.ranked)


def _is_of_one_step(trial: Trial, *, populations: bool = False) -> bool:
    config = trial.kernel_config
    stored = not populations or config.kept.name == "populations"
    return stored and config.fused_steps == 1 and not config.on_chip


def best_with_less_memory(study: StudyRecord) -> Trial | None:
    """Return the best trial whose buffers are clearly smaller than the winner's."""
    most = _LESS_MEMORY * footprint(study.ranked[0])
    return next((t for t in study.ranked if 0 < footprint(t) <= most), None)


@once
def default_of(study: StudyRecord) -> Trial | None:
    """Return the best verified trial that leaves all knobs at their defaults."""
    return next((t for t in study.ranked if is_default(t.kernel_config)), None)


def _published(study: StudyRecord, winner: Trial) -> Iterator[Beside]:
    """Return published speeds of the device: of the same lattice, storage and flow, without solid cells."""
    case, device = study.header.spec.case, study.header.environment.device
    asked = {"lattice": case.lattice, "storage": winner.config.get("storage"), "flow": case.flow}
    for row in _rows():
        if device == row["device"] and not case.geometry and all(row[name] == value for name, value in asked.items()):
            gain = (winner.mlups or 0.0) / row["mlups"]
            other = "" if case.collision == row["collision"] else "; not the collision operator of this study"
            source = f"{row['source']}{other}{_same_scheme(study, row)}"
            yield Beside("published", row["kernel"], row["mlups"], gain, source=source)


def _same_scheme(study: StudyRecord, row: dict[str, Any]) -> str:
    """Name the best trial of the scheme of a published kernel, to compare like with like; empty without one."""
    one_step = (t for t in study.ranked if t.kernel_config.fused_steps == 1)
    alike = (t for t in one_step if t.config.get("scheme") == row["scheme"])
    best = next(alike, None)
    if best is None or best is study.ranked[0]:
        return ""
    speed = best.mlups or 0.0
    return f"; the same scheme here: trial {best.number}, {format_mlups(speed)}, {speed / row['mlups']:.2f} x published"


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    return tuple(tomllib.loads(_PUBLISHED.read_text(encoding="utf-8"))["rows"])
