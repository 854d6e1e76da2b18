"""Tables of several studies side by side: a column for each."""

from collections.abc import Callable, Iterator, Sequence

from lbmtune.records.regression.kernels import Shared
from lbmtune.records.regression.ratios import Verdict
from lbmtune.records.regression.studies import Comparison
from lbmtune.records.remarks import disturbance, left_alone, race_text
from lbmtune.records.study import StudyRecord
from lbmtune.report.limits import ceiling_of
from lbmtune.report.study.trials import varied_knobs
from lbmtune.report.tables import environment_table, subject
from lbmtune.units import format_bytes, format_mlups, format_rate

Rows = list[tuple[str, tuple[str, ...]]]
"""Names with the value of each study."""
_MATRIX = 24
"""Kernels of the matrix."""


def names_of(folders: Sequence[str]) -> tuple[str, ...]:
    """Return the shortest ends of paths that tell them apart."""
    parts = [folder.rstrip("/").split("/") for folder in folders]
    most = max(map(len, parts))
    ends = (tuple("/".join(one[-length:]) for one in parts) for length in range(1, most + 1))
    return next((found for found in ends if len(set(found)) == len(folders)), tuple(folders))


def answer_rows(studies: Sequence[StudyRecord], comparisons: Sequence[Comparison]) -> Rows:
    """Return speed, verdict and costs of the winner of each study."""
    of: dict[str, Callable[[StudyRecord], str]] = {
        "device": lambda s: f"{s.header.environment.device}, {s.header.date[:10]}",
        "winner": lambda s: f"{format_mlups(s.ranked[0].best_measurement.mlups)} {s.header.spec.case.speed_unit}",
        "interval": lambda s: str(s.interval(s.ranked[0])),
        "sustained": _sustained,
        "kernel": lambda s: s.ranked[0].kernel_config.said,
        "finals": race_text,
        "bandwidth": lambda s: format_rate(s.ranked[0].best_measurement.bandwidth_bytes_per_s),
        "of the ceiling": _share,
        "bytes per update": lambda s: f"{s.ranked[0].best_measurement.bytes_per_update:.4g} B",
        "footprint": lambda s: format_bytes(s.ranked[0].prediction.footprint_bytes) if s.ranked[0].prediction else "",
        "disturbed": disturbance,
    }
    rows = [(name, tuple(map(text, studies))) for name, text in of.items()]
    verdicts = [("against the first", ("", *(map(_winner, comparisons))))]
    medians = [("all kernels against the first", ("", *(map(_whole, comparisons))))]
    return _told([*rows[:2], *verdicts, *medians, *rows[2:]])


def _sustained(study: StudyRecord) -> str:
    run = study.ranked[0].sustained
    return f"{format_mlups(run.mlups)} over {run.seconds:.1f} s" if run else ""


def _share(study: StudyRecord) -> str:
    ceiling = ceiling_of(study)
    if not left_alone(study.header.ceiling.cpu_share):
        return f"not reliable: {ceiling.name}"
    return f"{study.share_of_ceiling(study.ranked[0]):.1%} of {format_rate(ceiling.bytes_per_s)}, {ceiling.name}"


def _winner(found: Comparison) -> str:
    return "" if found.winners is None else f"{found.winners.ratio}: {_word(found.winners.verdict)}"


def _whole(found: Comparison) -> str:
    return "" if found.whole is None else f"{found.whole}: {_word(found.whole.verdict)}, {len(found.changes)} kernels"


def _word(verdict: Verdict) -> str:
    return {Verdict.SAME: "the same within the noise", Verdict.UNKNOWN: "no verdict"}.get(verdict, str(verdict))


def search_rows(studies: Sequence[StudyRecord]) -> Rows:
    """Return what each study searched, and how."""
    rows: dict[str, Callable[[StudyRecord], str]] = {
        "subject": lambda s: subject(s.header.spec.case, [trial.kernel_config for trial in s.trials]),
        "legal configurations": lambda s: f"{s.header.legal_configurations:,}",
        "trials": lambda s: f"{len(s.trials):,}, {len(s.ranked):,} with a speed",
        "knobs that vary": lambda s: ", ".join(varied_knobs(s)),
        "strategy": lambda s: s.header.spec.strategy,
        "search": lambda s: s.header.stopped,
        "left out": lambda s: "; ".join(s.header.left_out),
        "predictions": lambda s: s.header.calibrated_how,
        "lbmtune": lambda s: s.header.version,
    }
    return _told([(name, tuple(map(text, studies))) for name, text in rows.items()])


def environment_rows(studies: Sequence[StudyRecord]) -> Rows:
    """Return device, software and host of each study."""
    tables = [dict(environment_table(study.header.environment)) for study in studies]
    names = dict.fromkeys(name for table in tables for name in table)
    return [(name, tuple(table.get(name, "") for table in tables)) for name in names]


def _told(rows: Rows) -> Rows:
    return [row for row in rows if any(row[1])]


def matrix_rows(found: Sequence[Shared]) -> Iterator[tuple[str, str, float, tuple[tuple[str, float], ...]]]:
    """Yield key, knobs, harmonic mean, and per study speed and share of its best, of the best kernels."""
    best = found[:_MATRIX]
    varied = _varied(best)
    for one in best:
        knobs = " ".join(f"{name}={one.trials[0].config[name]}" for name in varied if name in one.trials[0].config)
        cells = tuple((format_mlups(mlups), share) for mlups, share in zip(one.mlups, one.shares, strict=True))
        yield one.trials[0].key, knobs, one.portability, cells


def _varied(found: Sequence[Shared]) -> list[str]:
    """Return the knobs in which these kernels differ."""
    configs = [one.trials[0].config for one in found]
    names = dict.fromkeys(name for config in configs for name in config)
    return [name for name in names if len({config.get(name) for config in configs}) > 1]


def portable_text(found: Sequence[Shared], names: Sequence[str]) -> str:
    """Return which kernel serves all studies best, and what each of them loses by it; empty without shared kernels."""
    if not found:
        return ""
    best = found[0]
    losses = ", ".join(f"{1 - share:.1%} on {name}" for name, share in zip(names, best.shares, strict=True))
    return (
        f"One kernel for all: {best.trials[0].key} has a harmonic mean of {best.portability:.1%} of the best speed "
        f"of each study, and loses {losses}."
    )
