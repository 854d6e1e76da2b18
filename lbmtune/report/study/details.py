"""Say what the panel of a trial shows beside its row of the table, and what columns, knobs and terms mean."""

from collections.abc import Iterable
from typing import TypedDict

from lbmtune.catalogue.config import from_flat, knobs_by_name
from lbmtune.records import Trial
from lbmtune.report.limits import figures_of
from lbmtune.report.tables import Pairs, conditions_table
from lbmtune.units import format_ps

_COLUMNS = {
    "outcome": "what became of the trial; only verified ones have a speed",
    "MLUPS": "million lattice updates per second, cells times steps over time; a final counts before a first look",
    "interval, ± %": "half-width of the interval that holds 90 % of repeats in other runs; empty if not measured",
    "within the run, ± %": "half-width of the 95 % interval of the median of this run's samples",
    "% of ceiling": "bandwidth over the fastest copy of many streams, or update in place, of the device",
    "predicted MLUPS": "speed by the model, which is not fitted to this study",
    "measured / predicted": "below 1: slower than the model expects",
    "proven": "verified against the oracle on the measured domain",
    "sustained MLUPS": "speed over seconds without a pause, which a power limit lowers",
    "nJ / update": "energy of the device for the update of one cell",
    "registers": "32-bit registers of a thread, as compiled",
    "spills (B)": "bytes of registers that went to memory, stores and loads",
    "key": "digits of the checksum of the configuration",
}


class Details(TypedDict):
    """terms: of the prediction, with picoseconds and figures; samples: microseconds of a step; state: of the device."""

    terms: list[tuple[str, str, str]]
    samples: list[float]
    state: Pairs


def details(trial: Trial) -> Details:
    """Return what the panel of a trial shows beside its row."""
    measured = trial.final or trial.measurement
    terms = trial.prediction.significant_terms if trial.prediction else ()
    return Details(
        terms=[(term.name, format_ps(term.seconds), figures_of(term)) for term in terms],
        samples=[float(f"{1e6 * sample:.5g}") for sample in measured.samples_s] if measured else [],
        state=_state(trial),
    )


def _state(trial: Trial) -> Pairs:
    measured, resources = trial.final or trial.measurement, trial.resources
    rows = [("taken in", "the finals" if trial.final else "the search")] if measured else []
    rows += conditions_table(measured.conditions) if measured else []
    rows += [("local memory per thread", f"{resources.local_bytes} B")] if resources and resources.local_bytes else []
    rows += [("source digest", trial.source_digest[:12])] if trial.source_digest else []
    return rows


def meanings(trials: Iterable[Trial]) -> dict[str, str]:
    """Return what the columns of the table of trials and the knobs of their families mean."""
    return {**knob_meanings(trials), **_COLUMNS}


def knob_meanings(trials: Iterable[Trial]) -> dict[str, str]:
    """Return what the knobs of the families of trials mean, with their units."""
    found: dict[str, str] = {}
    one_of = {str(trial.config.get("family")): trial.config for trial in trials}
    for name in sorted(one_of):
        for one in knobs_by_name(type(from_flat(one_of[name]))).values():
            found.setdefault(one.name, f"{one.meaning}{f' ({one.unit})' if one.unit else ''}")
    return found
