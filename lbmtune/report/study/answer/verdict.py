"""The first lines of the page of a study: its title, and what a reader has to know beside the speed."""

from collections.abc import Sequence

from lbmtune.records import Trial
from lbmtune.records.profile import Profile
from lbmtune.records.study import ALIKE, StudyRecord
from lbmtune.records.terms import MEMORY
from lbmtune.report.limits import binding, contradicted, off_by
from lbmtune.report.study.answer.beside import (
    NEARLY,
    best_of_one_step,
    best_with_less_memory,
    default_of,
    differs,
    faster_in_search,
    fastest_sustained,
    footprint,
    in_its_search,
    nearly_sustained,
    of_trial,
    tied_in_bursts,
    tried_of_one_step,
)
from lbmtune.report.study.answer.doubts import doubts, names_candidates
from lbmtune.report.study.answer.words import device_words, named, named_as, words
from lbmtune.report.study.steps import power_bound_text
from lbmtune.report.study.tables import moved
from lbmtune.search.finals import NEAR
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_mlups, format_rate

_TITLES = {
    "mlups": "",
    "footprint": "Smallest footprint: ",
    "energy": "Least energy: ",
    "accuracy": "Most accurate: ",
}
_FEW = 3
"""Trials of a kind up to which it was hardly searched."""
_MANY = 20
"""Trials from which on a search saw enough, and times as many configurations that are more than it saw."""
_DEFAULT = "default"
_ONE_STEP = "best of one step per launch"
_STORED = "best of them that stores populations"


def title(study: StudyRecord) -> str:
    """Name speed, device and winner in one line; the sustained speed first if the winner leads by that alone."""
    device, unit = device_words(study), study.header.spec.case.speed_unit
    if not study.ranked:
        return f"No configuration gave a verified measurement on {device}; trials: {len(study.trials)}"
    winner = study.ranked[0]
    speed, name, run = format_mlups(winner.mlups or 0.0), words(winner.kernel_config), winner.sustained
    if study.overtaken and run:
        return f"{format_mlups(run.mlups)} {unit} sustained on {device}: {name} (trial {winner.number})"
    both = f" in bursts, {format_mlups(run.mlups)} sustained," if run and differs(winner) else ""
    return f"{_TITLES[study.header.spec.objective]}{speed} {unit}{both} on {device}: {name}"


def verdict(study: StudyRecord, profile: Profile | None = None) -> str:
    """State the gain of the winner, its ties, what is nearly as fast or faster in bursts, and the share of its limit.

    profile: of the winner.
    """
    if not study.ranked:
        return ""
    said = (
        _few(study),
        _over_seconds(study),
        _gain(study),
        _ties(study),
        _in_bursts(study),
        _bound(study, study.ranked[0], profile),
        _ran_alone(study),
        _with_less_memory(study),
    )
    return " ".join(filter(None, said))


def _over_seconds(study: StudyRecord) -> str:
    """Say which kernels are as fast over seconds, or faster by little."""
    winner, other = study.ranked[0], fastest_sustained(study)
    if other and other.sustained and winner.sustained:
        lead = other.sustained.mlups / winner.sustained.mlups - 1
        speed = format_mlups(other.sustained.mlups)
        return f"Fastest in bursts; sustained, trial {other.number} reaches {speed}, {lead:.1%} more."
    named = [f"{one.number} ({format_mlups(one.sustained.mlups)})" for one in nearly_sustained(study) if one.sustained]
    if not named:
        return ""
    trials = f"Trials {', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else f"Trial {named[0]}"
    return f"{trials} may be as fast: one run each."


def _in_bursts(study: StudyRecord) -> str:
    """Say which kernel is faster in bursts, and what is left of that over seconds; empty if none is."""
    first = study.overtaken
    if first is None or first.sustained is None:
        return ""
    run, burst = first.sustained, first.mlups or first.sustained.mlups
    reason = power_bound_text(run, burst) or ", ".join(run.throttled) or "why is not recorded"
    reason = "" if reason in _by_power(study.ranked[0]) else f", {reason}"
    what = format_mlups(burst)
    others = [(trial, trial.sustained) for trial in tied_in_bursts(study) if trial.sustained]
    level = ", ".join(f"{trial.number} ({format_mlups(trial.mlups or 0.0)})" for trial, _ in others)
    who = (
        f"trials {first.number} ({what}) and {level} tie as fastest"
        if others
        else f"trial {first.number} leads ({what})"
    )
    falls = " and ".join(format_mlups(one.mlups) for one in (run, *(sustained for _, sustained in others)))
    return f"In bursts {who}; over {run.seconds:.1f} s {'they fall' if others else 'it falls'} to {falls}{reason}."


def _gain(study: StudyRecord) -> str:
    """Compare with the best kernels of one step per launch, or else the default."""
    winner, one, stored = study.ranked[0], best_of_one_step(study), best_of_one_step(study, populations=True)
    if study.header.spec.kernel:
        return ""
    usual = default_of(study)
    named = {(_DEFAULT if one and one is usual else _ONE_STEP): one}
    if stored is not one:
        named[_DEFAULT if stored is usual else _STORED] = stored
    if one is None or one is winner:
        named = {_DEFAULT: usual}
    others = {what: trial for what, trial in named.items() if trial and trial is not winner}
    sustained = {what: _gain_over_seconds(study, trial) for what, trial in others.items()}
    apart = any(sustained.values())
    of_bursts = " in bursts" if differs(winner) else ""
    said = [
        f"{_times(study, trial)} times the {what} "
        f"({format_mlups(trial.mlups or 0.0)}, {kind_of(trial.kernel_config).pattern}"
        f"{'' if what == _DEFAULT else _found_among(study, trial, populations=what == _STORED)}"
        f"{_searched(winner, trial)})"
        f"{sustained[what] or (of_bursts if apart else '')}"
        for what, trial in others.items()
    ]
    first = f"{'' if apart else of_bursts} {', '.join(said)}.".lstrip()
    return f"{first[:1].upper()}{first[1:]}{_hardly(study)}" if said else ""


def _searched(winner: Trial, trial: Trial) -> str:
    """Say that a trial was measured in the search alone, if the winner had another speed there."""
    return "; in the search alone" if in_its_search(winner, trial) else ""


def _times(study: StudyRecord, trial: Trial) -> str:
    """Return how many times as fast the winner is: from one to another if search and finals ran at other speeds."""
    one = of_trial(study, "", trial)
    return one.gain_range or f"{one.gain:.2f}"


def _gain_over_seconds(study: StudyRecord, other: Trial) -> str:
    """Return the gain of sustained runs, if it is another one than in bursts."""
    winner = study.ranked[0]
    if not (winner.sustained and other.sustained):
        return ""
    gain, burst = winner.sustained.mlups / other.sustained.mlups, (winner.mlups or 0.0) / (other.mlups or 1.0)
    return f" in bursts, {gain:.2f} times sustained" if abs(gain / burst - 1) > NEARLY else ""


def _found_among(study: StudyRecord, trial: Trial, *, populations: bool) -> str:
    """Say among how many trials of one step one was found, and if one of the search alone was faster."""
    tried = tried_of_one_step(study, populations=populations)
    other = faster_in_search(study, trial, populations=populations)
    speed = format_mlups(other.mlups or 0.0) if other else ""
    above = f", in the finals; in the search alone trial {other.number} had {speed}" if other else ""
    found = f"best of {tried:,} tried" if tried > 1 else "the only one"
    return f"{above}; {found}"


def _few(study: StudyRecord) -> str:
    """Say that few configurations were tried, if they were; else empty."""
    tried, legal = len(study.trials), study.header.legal_configurations
    return f"The best of {tried} tried; {legal:,} are legal." if 1 < tried < _MANY and legal > _MANY * tried else ""


def _hardly(study: StudyRecord) -> str:
    """Say that kernels of one step per launch were hardly searched, beside the kind of the winner; else empty."""
    if not one_step_untuned(study):
        return ""
    tried, winners = tried_of_one_step(study), _of_its_kind(study)
    trials = f"{tried} trial{'s' * (tried > 1)}"
    return f" No kernel of one step per launch was tuned ({trials}; of the winner's kind {winners:,})."


def one_step_untuned(study: StudyRecord) -> bool:
    """Return whether the winner takes several steps per launch, and few trials took one."""
    tried = tried_of_one_step(study)
    several = bool(study.ranked) and study.ranked[0].kernel_config.fused_steps > 1
    return several and 0 < tried <= _FEW and _of_its_kind(study) > _FEW * tried


def _of_its_kind(study: StudyRecord) -> int:
    kind = words(study.ranked[0].kernel_config)
    return sum(words(trial.kernel_config) == kind for trial in study.ranked)


def _ties(study: StudyRecord) -> str:
    if study.header.spec.objective != "mlups" or study.overtaken:
        return ""
    tied = sorted(study.tied)
    if not (tied or study.untold) and doubts(study).unsteady:
        return ""
    if study.untold and not tied:
        if names_candidates(study):
            return ""
        are = "are" if len(study.untold) > 1 else "is"
        return f"The rounds of the finals are too few to tell if trial{named(study.untold)} {are} slower."
    if not tied:
        return _alone(study)
    winner, speeds = study.ranked[0], {trial.number: trial.mlups or 0.0 for trial in study.ranked}
    faster = any(speeds[number] > speeds[winner.number] for number in tied)
    if not faster:
        return f"Tied with trial{named(tied)}: their order is chance."
    first = sorted(tied, key=lambda number: -speeds[number])
    told = [f"{number} ({format_mlups(speeds[number])})" for number in first]
    return f"Tied with trial{named_as(told)}: {_why_first(study, tied)}."


def _why_first(study: StudyRecord, tied: Sequence[int]) -> str:
    """Say why the winner comes before faster trials that are tied with it."""
    winner = study.ranked[0]
    faster = [t for t in study.ranked if t.number in tied and (t.mlups or 0.0) > (winner.mlups or 0.0)]
    less = 0 < ALIKE * footprint(winner) < min(map(footprint, faster))
    return f"trial {winner.number} needs less memory" if less else "their order is chance"


def _alone(study: StudyRecord) -> str:
    """Say that none is tied; of a small lead, that runs may differ by more if the spread between them is not known."""
    winner, second = study.ranked[0], next(iter(study.ranked[1:]), None)
    lead = (winner.mlups or 0.0) / (second.mlups or 1.0) - 1 if second else 1.0
    if study.interval(winner).between is not None:
        return "No other trial is tied with it."
    if second is None or lead >= NEARLY:
        return "No other trial is tied with it within this run."
    return f"Trial {second.number} is {1 - 1 / (1 + lead):.2%} slower; another run may reverse that."


def _by_power(trial: Trial) -> str:
    """Say that power binds a sustained run; empty if it does not."""
    found = power_bound_text(trial.sustained, trial.mlups or 0.0) if trial.sustained else ""
    return f", {found.partition(' (')[0]}" if found else ""


def _ran_alone(study: StudyRecord) -> str:
    """Say that nothing else ran for seconds beside a winner that is slower there; empty if nothing near could.

    In a study of limited time, finalists that are nearly as fast share the time of these runs, if it is enough.
    """
    winner, *others = study.ranked
    spec = study.header.spec
    slower = winner.sustained and differs(winner) and winner.sustained.mlups < (winner.mlups or 0.0)
    near = [t for t in others if t.final and (t.mlups or 0.0) >= NEAR * (winner.mlups or 0.0)]
    shared = spec.budget.seconds and spec.objectives == ("mlups",) and spec.max_power_w is None
    if not (slower and near and shared) or study.overtaken or any(trial.sustained for trial in others):
        return ""
    return "Only the winner ran for seconds, where another may lead: a study of more time runs others, too."


def _with_less_memory(study: StudyRecord) -> str:
    """Name a kernel that is nearly as fast with less memory, if there is one."""
    winner, other = study.ranked[0], best_with_less_memory(study)
    if other is None or study.header.spec.objective != "mlups":
        return ""
    one = of_trial(study, "", other)
    if one.gain >= 1 + NEARLY:
        return ""
    share = one.footprint_bytes / footprint(winner)
    slower = f"{1 - 1 / one.gain:.2%} slower{'' if study.interval(winner).between else ' in this run'}"
    return f"Trial {other.number} ({one.kernel}) needs {share:.0%} of the memory, and is {slower}."


def _bound(study: StudyRecord, trial: Trial, profile: Profile | None = None) -> str:
    """State the share of its limit that a trial reaches. profile: of the trial."""
    limit = binding(study, trial)
    if limit is None:
        return "No limit is known: the device was not calibrated (lbmtune devices --calibrate)."
    share, allowed = (trial.mlups or 0.0) / limit.mlups, format_mlups(limit.mlups)
    unit = study.header.spec.case.speed_unit
    if limit.refuted:
        drawn = format_rate(trial.best_measurement.bandwidth_bytes_per_s)
        each = moved(trial.best_measurement.bytes_per_update)
        if limit.name != MEMORY:
            return f"The winner's limit is not known: it exceeds {limit.name} alone by the model, {allowed} {unit}."
        return (
            f"The winner's limit is not known: its {each} per update are {drawn} in bursts, more than the benchmark of "
            "the model reached."
        )
    if limit.exceeded:
        bursts = "" if limit.measured else " in bursts"
        said = f"{limit.said}{bursts} ({allowed} {unit}{limit.exceeded_said})"
        return f"The winner reaches {share:.1%} of the {said}."
    run = trial.sustained
    apart = differs(trial) or study.overtaken is not None
    bursts = " in bursts" if apart else ""
    sustained = f"; sustained {run.mlups / limit.mlups:.1%}{_by_power(trial)}" if run and apart else ""
    if profile and contradicted(limit, profile):
        return (
            f"The winner reaches{bursts} {share:.1%} of the lowest limit by the model, {limit.name} "
            f"({allowed} {unit}){sustained}. That this one binds is not certain: levels of the model are off by up "
            f"to {off_by(profile):.0%} of the time. The command under Why may tell."
        )
    return (
        f"The winner reaches{bursts} {share:.1%} of its limit, {limit.name}: {allowed} {unit} if nothing "
        f"else took time{sustained}."
    )
