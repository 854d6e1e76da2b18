"""The top of the page of a study, below its verdict: cards, kernels beside the winner, and what to try next."""

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import median

from lbmtune.records import Trial
from lbmtune.records.profile import KERNEL, Profile
from lbmtune.records.remarks import left_alone, prediction_doubt, profile_disturbance
from lbmtune.records.study import StudyRecord
from lbmtune.records.terms import MEANINGS, MEMORY
from lbmtune.report.limits import alone_s, binding, contradicted, off_by, refuted_text
from lbmtune.report.study.answer.beside import Beside, Missing, beside, differs, missing, of_trial, other_in_search
from lbmtune.report.study.answer.update_time import no_help
from lbmtune.report.study.answer.use import Next
from lbmtune.report.study.answer.verdict import one_step_untuned
from lbmtune.report.study.answer.why import refuted
from lbmtune.report.study.answer.words import config_text, device_option
from lbmtune.report.study.output import output_text, with_output_mlups
from lbmtune.report.study.steps import CellsRead, bytes_with_halos, leaves_out_halos, power_bound_text, with_halos
from lbmtune.report.study.tables import moved
from lbmtune.report.tables import plus_minus
from lbmtune.units import format_bytes, format_mlups, format_rate

Card = tuple[str, str, str]
"""Title, figure and remark."""
_OF_LIMIT, _OF_BENCHMARK, _OF_MODEL = "of the limit: ", "of the benchmark: ", "of the model's limit: "
_CARDS = {
    "speed in bursts": "MLUPS: million lattice updates per second, cells times steps over time; by short samples",
    "sustained": "over seconds without a pause, in which a power limit may lower the clocks",
    "of the prediction": "measured over predicted speed, by a model that is not fitted to this study",
    "memory used": "by all buffers of the kernel, and what an update moves",
}
"""Cards whose titles do not say what they mean have their meaning here, by title."""
WINNER, _NOT_RUN = "winner", "not run"
_DRAWN = 0.02
"""Share of the bytes of an update from which on halos that are drawn beyond them are told."""
_NEARLY, _HARDLY = 0.05, 0.001
"""Relative differences of two speeds from which on two digits and three tell them."""


def winner_text(study: StudyRecord) -> str:
    """Return the knobs of the winner; empty if there is none."""
    return config_text(study.ranked[0]) if study.ranked else ""


def cards(study: StudyRecord, cells_read: CellsRead | None = None, profile: Profile | None = None) -> list[Card]:
    """Return the cards of the winner, and how many trials there are. profile: of the winner."""
    counted = f"{len(study.ranked)} of {len(study.trials)}"
    trials = ("trials verified", counted, f"{study.header.legal_configurations:,} legal configurations")
    if not study.ranked:
        return [trials]
    several = _on_parts(study)
    return [*([several] if several else []), *_of_trial(study, study.ranked[0], cells_read, profile), trials]


def _of_trial(
    study: StudyRecord, winner: Trial, cells_read: CellsRead | None, profile: Profile | None = None
) -> list[Card]:
    speeds = (_speed(study, winner, profile), _sustained(study, winner))
    found = (
        *(reversed(speeds) if study.overtaken else speeds),
        _with_output(study, winner),
        _limit(study, winner, cells_read, profile),
        _predicted(study, winner),
        _memory(winner, cells_read),
        _error(winner),
        _energy(winner),
    )
    return [card for card in found if card]


def _speed(study: StudyRecord, winner: Trial, profile: Profile | None) -> Card:
    unit = study.header.spec.case.speed_unit
    return (
        "speed in bursts",
        f"{format_mlups(winner.mlups or 0.0)} {unit}",
        f"{_samples(winner)}; {_spread(study, winner, profile)}{_in_search(winner)}",
    )


def _spread(study: StudyRecord, winner: Trial, profile: Profile | None) -> str:
    """Return the spread within the run, then that between runs, or else the speed of the profile, which came later."""
    spread = study.interval(winner)
    if profile is None or spread.between is not None or profile_disturbance(profile):
        return plus_minus(spread)
    return f"{plus_minus(spread).partition(';')[0]}; measured again: {format_mlups(profile.rung(KERNEL).mlups)}"


def _in_search(trial: Trial) -> str:
    """Tell the speed of the search, if it is another one than that of the finals."""
    first = other_in_search(trial)
    return f"; {format_mlups(first)} in the search" if first else ""


def _samples(trial: Trial) -> str:
    """Say how long the samples of a trial are."""
    measured = trial.best_measurement
    return f"samples of {median(measured.samples_s) * measured.steps_per_sample:.2g} s"


def _sustained(study: StudyRecord, winner: Trial) -> Card | None:
    run = winner.sustained
    if run is None:
        return None
    change = run.mlups / (winner.mlups or run.mlups) - 1
    bound = power_bound_text(run, winner.mlups or run.mlups)
    remark = f"{'disturbed; ' if run.disturbed else ''}over {run.seconds:.1f} s without a pause, {change:+.1%}"
    remark += f"; {bound}" if bound else ""
    return "sustained", f"{format_mlups(run.mlups)} {study.header.spec.case.speed_unit}", remark


def _with_output(study: StudyRecord, winner: Trial) -> Card | None:
    text, unit = output_text(winner), study.header.spec.case.speed_unit
    return ("with output", f"{format_mlups(with_output_mlups(winner))} {unit}", text) if text else None


def _on_parts(study: StudyRecord) -> Card | None:
    several, unit = study.winner_on_parts, study.header.spec.case.speed_unit
    if several is None:
        return None
    one = several[0]
    remark = f"{one.efficiency.median:.1%} of as many times one device; cut={one.cut}, {one.key}"
    return f"{len(one.devices)} parts", f"{format_mlups(one.mlups or 0.0)} {unit}", remark


def _limit(study: StudyRecord, winner: Trial, cells_read: CellsRead | None, profile: Profile | None) -> Card | None:
    limit = binding(study, winner)
    if not left_alone(study.header.ceiling.cpu_share):
        rate = format_rate(study.header.ceiling.best_bytes_per_s)
        return "ceiling", rate, "not reliable: measured while other programs ran"
    if limit is None:
        return None
    allowed = f"{format_mlups(limit.mlups)} {study.header.spec.case.speed_unit}, {limit.source.partition(':')[0]}"
    allowed += refuted_text(study, winner)
    share = f"{(winner.mlups or 0.0) / limit.mlups:.1%}"
    if limit.refuted:
        allowed = f"{format_mlups(limit.mlups)} {study.header.spec.case.speed_unit}"
        return "limit", "not known", f"{limit.name} by the model, {allowed}, exceeded by {limit.exceeded:.0%}"
    if limit.exceeded:
        what = _OF_BENCHMARK if limit.measured else _OF_MODEL
        return f"{what}{limit.name}", share, f"{allowed}; no upper bound{limit.exceeded_said}"
    if profile and contradicted(limit, profile):
        doubt = f"may not bind: levels of the model are off by up to {off_by(profile):.0%} of the time"
        return f"{_OF_MODEL}{limit.name}", share, f"{allowed}; {doubt}"
    return f"{_OF_LIMIT}{limit.name}", share, allowed + with_halos(winner, limit.mlups, cells_read)


def card_meanings() -> dict[str, str]:
    """Return what cards mean, by their titles."""
    titles = (_OF_LIMIT, _OF_BENCHMARK, _OF_MODEL)
    named = {f"{what}{name}": meaning for what in titles for name, meaning in MEANINGS.items()}
    of_memory = {f"{_OF_LIMIT}{MEMORY}": "bytes that memory moves for an update, at the bandwidth that stands here"}
    return {**_CARDS, **named, **of_memory}


def _predicted(study: StudyRecord, winner: Trial) -> Card | None:
    predicted = winner.prediction
    if predicted is None:
        return None
    speed = f"{format_mlups(predicted.mlups)} {study.header.spec.case.speed_unit}"
    if doubtful := prediction_doubt(*study.header.cpu_shares):
        return "predicted", speed, doubtful
    return "of the prediction", f"{(winner.mlups or 0.0) / predicted.mlups:.1%}", f"predicted {speed}"


def _memory(winner: Trial, cells_read: CellsRead | None) -> Card | None:
    p, m = winner.prediction, winner.best_measurement
    remark = f"{moved(m.bytes_per_update)} per update{_halos(winner, cells_read)}"
    return ("memory used", format_bytes(p.footprint_bytes), remark) if p else None


def _halos(winner: Trial, cells_read: CellsRead | None) -> str:
    """Say if the bytes of several steps per launch count halos, and how many they are with all of them."""
    config = winner.kernel_config
    if config.fused_steps == 1 or config.on_chip:
        return ""
    if not leaves_out_halos(config):
        return ", halos counted"
    drawn, least = _drawn(winner), winner.best_measurement.bytes_per_update
    by_model = f", {drawn:.3g} B by the model" if drawn > (1 + _DRAWN) * least else ""
    all_halos = f", {bytes_with_halos(winner, cells_read):.3g} B with all halos" if cells_read else ""
    return f" without halos{by_model}{all_halos}"


def _drawn(trial: Trial) -> float:
    """Return the bytes of an update that cross the memory bus by the model; 0 if it does not tell them."""
    terms = trial.prediction.terms if trial.prediction else ()
    alone = next((alone_s(one) for one in terms if one.name == MEMORY), None)
    return alone * trial.prediction.bandwidth_bytes_per_s if alone and trial.prediction else 0.0


def _error(winner: Trial) -> Card | None:
    found = winner.accuracy
    if found is None or found.after is None or not isfinite(found.error):
        return None
    if found.error == 0 and found.storage == found.compute == "fp64":
        return "error", "none", "stored and computed in fp64"
    after = found.after
    rate = f"relaxation rate {after.relaxation_rate:.4g}"
    flow = f"{after.steps:,} steps of a vortex with u0 = {after.velocity_scale:g}, {rate}"
    return "error", f"{found.error:.1e}", f"relative, of the velocity against fp64, after {flow}"


def _energy(winner: Trial) -> Card | None:
    run = winner.sustained
    if run is None:
        return None
    if not run.nj_per_update:
        return "energy", "not measured", "the device reports none"
    power = f", {run.power_w:.0f} W" if run.power_w else ""
    return "energy", f"{run.nj_per_update:.3g} nJ", f"per update, sustained{power}, by {run.energy_source}"


def beside_rows(study: StudyRecord) -> list[dict[str, str]]:
    """Return the winner and the kernels beside it as rows of text, and what is missing, with the reason."""
    if not study.ranked:
        return []
    winner = study.ranked[0]
    known = [_row(one, winner) for one in (of_trial(study, WINNER, winner), *beside(study))]
    empty = {**dict.fromkeys(known[0], ""), "beside": "default"}
    return [
        *known,
        *({**empty, **_missing(one, winner)} for one in missing(study)),
    ]


def gain_titles(study: StudyRecord, rows: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return the titles of the gains in bursts and over seconds; the second one is empty if no row has one."""
    if not any(row["sustained gain"] for row in rows):
        return f"winner over it{', in bursts' if any(map(differs, study.ranked[:1])) else ''}", ""
    return "winner over it, in bursts", "winner over it, sustained"


def _missing(one: Missing, winner: Trial) -> dict[str, str]:
    near = float(f"{one.alike_mlups:.2g}") if one.alike_mlups else 0.0
    return {
        "MLUPS": f"about {format_mlups(near)}" if near else "",
        "gain": f"about {(winner.mlups or 0.0) / near:.2g} x" if near else "",
        "sustained gain": "",
        "kernel": one.kernel,
        "source": one.why,
        "command": one.command,
    }


def _row(one: Beside, winner: Trial) -> dict[str, str]:
    both = (winner.sustained.mlups if winner.sustained else None, one.sustained_mlups)
    gain = both[0] / both[1] if both[0] and both[1] else 0.0
    shown = one.what != WINNER
    return {
        "beside": one.what,
        "MLUPS": format_mlups(one.mlups),
        "sustained": _seconds(one),
        "gain": (f"{one.gain_range} x" if one.gain_range else _times(one.gain)) if shown else "",
        "sustained gain": _times(gain) if gain and shown else "",
        "memory": format_bytes(one.footprint_bytes) if one.footprint_bytes else "",
        "kernel": one.kernel,
        "meaning": one.meaning,
        "source": ", ".join(filter(None, ("" if one.trial is None else f"trial {one.trial}", one.source))),
        "command": "",
    }


def _seconds(one: Beside) -> str:
    """Return the speed over seconds; of a trial without such a run, that there was none."""
    if one.sustained_mlups:
        return format_mlups(one.sustained_mlups)
    return "" if one.trial is None else _NOT_RUN


def _times(gain: float) -> str:
    """Return a factor with as many digits as tell it from one."""
    off = abs(gain - 1)
    return f"{gain:.{2 + (off < _NEARLY) + (off < _HARDLY)}f} x"


def next_step(study: StudyRecord, knobs: tuple[str, ...], term: str, profile: Profile | None = None) -> Next | None:
    """Return what is worth trying next.

    knobs, term: those that act on the largest term of the winner's time; profile: of the winner.
    """
    if not study.ranked:
        return None
    if not study.finished:
        return Next("The study was ended early.", "lbmtune study --resume --output .")
    if one_step_untuned(study) and not (study.header.spec.case.geometry or study.header.spec.kernel):
        return Next("To tune kernels of one step per launch:", _one_step(study))
    if no_help(study) or refuted(study):
        return None
    tried = [knob for knob in knobs if _has_others(study, knob)]
    if not tried:
        return None
    named = f"{', '.join(knobs)} act{'s' * (len(knobs) == 1)}"
    doubt = " by the model, which is not certain" if contradicted(binding(study, study.ranked[0]), profile) else ""
    reason = f"The largest part of an update is {term}{doubt}, on which {named}. Compare {tried[0]} by the model:"
    return Next(reason, f"lbmtune vary {tried[0]} best.json --study .")


def _one_step(study: StudyRecord) -> str:
    """Return the command that tunes kernels of one step per launch for the case of a study."""
    case, config = study.header.spec.case, study.ranked[0].kernel_config
    asked = f"--lattice {case.lattice} --collision {case.collision} --flow {case.flow}"
    domain = "x".join(map(str, case.domain))
    device = device_option(study)
    precision = f"--set storage={config.storage} --set compute={config.compute}"
    return f"lbmtune study {asked} --domain {domain} --families direct {precision} --device {device}"


def _has_others(study: StudyRecord, knob: str) -> bool:
    """Return whether the study has kernels of the family of the winner with another value of a knob."""
    family = study.ranked[0].config["family"]
    return len({trial.config.get(knob) for trial in study.trials if trial.config["family"] == family} - {None}) > 1
