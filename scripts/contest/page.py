"""The page of the contest: tables and a plot of the kept scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import TYPE_CHECKING

from lbmtune.report.drawing import PALETTE, plain_figure, scatter
from scripts.contest.score import MARKS, Score
from scripts.contest.table import Results
from scripts.paths import ROOT

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PAGE = ROOT / "docs" / "design" / "search-contest.md"
PLOT = ROOT / "build" / "search-contest.html"
_BEGIN, _END = "<!-- scores -->\n", "<!-- /scores -->"
JUDGED = (10, 25, 50, 100)
"""Evaluations at which strategies are compared."""
BEHIND = 0.005
"""Share by which a strategy is behind another."""
_NEVER = 200
"""Evaluations that count for a share that was not reached."""
_MEDIAN, _P95 = {"cuda": 15, "cpu": 25}, 40
"""Evaluations to 99 % on GPUs and to 98 % on CPUs within which the search is meant to be."""
_BACKENDS = {"cuda": "GPU", "cpu": "CPU"}
_KT = "kernel_tuner "


@dataclass(frozen=True)
class Contest:
    """All kept scores."""

    results: Results

    @property
    def sets(self) -> dict[str, Score]:
        """The sets that `auto` played, with its calibrated score."""
        return {one.set: one for one in self.results.values() if (one.strategy, one.start) == ("auto", "calibrated")}

    @property
    def players(self) -> list[tuple[str, str]]:
        """Strategies with their starts: ours first, then rivals."""
        found = dict.fromkeys((one.strategy, one.start) for one in self.results.values())
        order = ("auto", "list", "gp", "random")
        return sorted(found, key=lambda one: (order.index(one[0]) if one[0] in order else len(order), one[1], one[0]))

    def of(self, player: tuple[str, str], backend: str) -> list[Score]:
        """Return the scores of a strategy on all sets of a backend, as far as it played them."""
        keys = [(name, *player) for name, one in self.sets.items() if one.backend == backend]
        return [self.results[key] for key in keys if key in self.results]

    def late(self) -> dict[str, str]:
        """Return the sets on which `auto`, calibrated, needs more evaluations than it should, and how many."""
        return {name: _needed(one.to_99, one.to_99_p95) for name, one in self.sets.items() if not _in_time(one)}

    def behind(self, start: str, against: Callable[[Score], bool]) -> dict[str, str]:
        """Return where `auto` is behind another: how much, after how many evaluations, and which."""
        found: dict[str, str] = {}
        for name in self.sets:
            ours = self.results.get((name, "auto", start))
            others = [one for one in self.results.values() if one.set == name and against(one)]
            if not ours or not others:
                continue
            loss, mark, best = max(
                ((one.at(mark) - ours.at(mark), mark, one) for one in others for mark in JUDGED), key=lambda one: one[0]
            )
            if loss > BEHIND:
                found[name] = f"{_percent(loss)} after {mark}, {_player(best)}"
        return found

    def behind_calibrated(self) -> dict[str, str]:
        """Return where `auto`, calibrated, is behind any other."""
        return self.behind("calibrated", lambda one: one.strategy != "auto" and one.start in ("calibrated", "none"))

    def behind_kernel_tuner(self, start: str) -> dict[str, str]:
        """Return where `auto` without a calibration of the device is behind Kernel Tuner's best."""
        return self.behind(start, lambda one: one.strategy.startswith(_KT))


def renewed(page: str, contest: Contest) -> str:
    """Return the page with the tables of a contest in place of those that it has."""
    before, rest = page.split(_BEGIN)
    return before + _BEGIN + "\n".join(_lines(contest)) + "\n" + _END + rest.split(_END)[1]


def _lines(contest: Contest) -> Iterator[str]:
    yield f"\n{len(contest.sets)} sets.\n"
    yield "| sets | strategy | seeds | share at 10 | 25 | 50 | 100 | to 98 % | to 99 % | device s to 99 % | in time |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for backend, label in _BACKENDS.items():
        for player in contest.players:
            if found := contest.of(player, backend):
                yield _mean_row(label, found)
    yield (
        "\n| set | of | at 10, 25, 50, 100 | auto | list | gp | random | rival | auto, cold | list, cold | "
        "auto, bandwidths | stop |"
    )
    yield "|---|---:|---|---:|---:|---:|---:|---|---:|---:|---:|---|"
    for name, one in contest.sets.items():
        yield _set_row(contest, name, one)
    yield "\nWhere `auto` is not in time, or behind another by more than 0.5 %:\n"
    yield "| set | evaluations | calibrated, behind any | cold, behind Kernel Tuner | bandwidths, behind Kernel Tuner |"
    yield "|---|---:|---|---|---|"
    missed = contest.late(), contest.behind_calibrated(), *map(contest.behind_kernel_tuner, ("cold", "bandwidths"))
    for name in contest.sets:
        if any(name in one for one in missed):
            yield f"| {_short(name)} | {' | '.join(one.get(name, '') for one in missed)} |"
    yield ""


def _in_time(one: Score) -> bool:
    """Return whether a strategy needs no more evaluations on a set than it should."""
    if one.backend == "cpu":
        return (one.to_98 or _NEVER) <= _MEDIAN["cpu"]
    return (one.to_99 or _NEVER) <= _MEDIAN["cuda"] and (one.to_99_p95 or _NEVER) <= _P95


def _mean_row(label: str, found: Sequence[Score]) -> str:
    shares = " | ".join(f"{fmean(one.at(mark) for one in found):.3f}" for mark in JUDGED)
    seeds = f"{min(one.seeds for one in found)}"
    to_98, to_99 = ([getattr(one, name) or _NEVER for one in found] for name in ("to_98", "to_99"))
    seconds = [one.seconds_99 for one in found if one.seconds_99]
    device = f"{_mean(seconds):.2f}" if seconds else "-"
    in_time = sum(map(_in_time, found))
    return (
        f"| {label} | {_player(found[0])} | {seeds} | {shares} | {_mean(to_98):.1f} | {_mean(to_99):.1f} | "
        f"{device} | {in_time} of {len(found)} |"
    )


def _set_row(contest: Contest, name: str, one: Score) -> str:
    def needed(strategy: str, start: str) -> str:
        found = contest.results.get((name, strategy, start))
        return _needed(found.to_99, found.to_99_p95) if found else ""

    rivals = [r for r in contest.results.values() if r.set == name and r.strategy not in ("auto", "list", "gp")]
    best = min(rivals, key=lambda r: (r.to_99 or _NEVER, r.to_99_p95 or _NEVER), default=None)
    rival = f"{needed(best.strategy, best.start)} {best.strategy.removeprefix(_KT)}" if best else ""
    shares = " ".join(f"{one.at(mark):.3f}" for mark in JUDGED)
    stop = f"{one.stop}, {_percent(one.lost)}, {_percent(one.lost_p95)}" if one.stop else "-"
    calibrated = " | ".join(needed(strategy, "calibrated") for strategy in ("auto", "list", "gp"))
    cold = " | ".join(needed(*one) for one in (("auto", "cold"), ("list", "cold"), ("auto", "bandwidths")))
    return (
        f"| {_short(name)} | {one.configurations} | {shares} | {calibrated} | {needed('random', 'none')} | {rival} | "
        f"{cold} | {stop} |"
    )


def _needed(median: int | None, p95: int | None) -> str:
    return f"{median or '-'}/{p95 or '-'}"


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.1f} %"


def _short(name: str) -> str:
    return name.removeprefix("nvidia-").replace("-2-cores", "")


def _player(one: Score) -> str:
    return one.strategy if one.start == "none" else f"{one.strategy}, {one.start}"


def _mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(fmean(log(value) for value in values))


def curves(contest: Contest) -> dict[str, list[float]]:
    """Return the share of the optimum that is missing at each of `MARKS`, the mean over all GPU sets, by strategy."""
    found = {player: contest.of(player, "cuda") for player in contest.players}
    return {
        _player(scores[0]): [1.0 - fmean(one.at(mark) for one in scores) for mark in MARKS]
        for scores in found.values()
        if scores
    }


def plot(contest: Contest) -> Figure:
    """Return the missing share over the evaluations, both logarithmic."""
    figure = plain_figure("evaluations", "share of the optimum that is missing, mean over the GPU sets")
    for place, (name, missing) in enumerate(curves(contest).items()):
        figure.add_trace(
            scatter(
                x=MARKS,
                y=missing,
                name=name,
                mode="lines+markers",
                line={"color": PALETTE[place % len(PALETTE)], "dash": "dot" if "," not in name else "solid"},
            )
        )
    figure.update_layout(xaxis={"type": "log"}, yaxis={"type": "log"})
    return figure
