"""Accuracy of the model on recorded sets: errors, ranks, and the effect of each term."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lbmtune import __version__
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.records.comparison.statistics import relative_error
from lbmtune.records.whole_files import write_atomically
from lbmtune.report.drawing import PALETTE, Figure, log_axis, plain_figure
from lbmtune.report.html import figure_page

if TYPE_CHECKING:
    import pandas

FIRST = 10
"""Configurations that the model ranks first, whose best is compared with the best of all."""
_TENTHS = 10
SMALL = 128**3
"""Cells of the largest small domain, and of the smallest large one."""
_KINDS = {"one step": False, "several steps": True}
_BOUNDS = {"one step": {"median": 0.07, "90 %": 0.18}, "several steps": {"median": 0.12, "90 %": 0.25}}
"""Bounds of errors on large domains of GPUs."""
_ENOUGH = 20
"""Fewest kernels of a scheme or a tenth with bounds of their own; of fewer the 90th percentile depends on two."""
_APART = 1.1
"""Spread of nine tenths of the speeds of a set, from which on their order is tested."""
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagram")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A measured configuration and its prediction. many: a launch does several time steps.

    backend: 'cuda' or 'cpu'; sites: of the domain; dismissed: it was slow at a first look, and not measured to the end.
    """

    set: str
    scheme: str
    many: bool
    key: str
    label: str
    measured: float
    predicted: float
    limit: str
    backend: str = "cuda"
    sites: int = 256**3
    dismissed: bool = False


class Bar(NamedTuple):
    """A bound on a figure of a set. at_least: lower bound instead of an upper one."""

    set: str
    figure: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the bound holds; False for NaN."""
        return bool(self.value >= self.bound if self.at_least else self.value <= self.bound)


def frame(judged: Sequence[Judged]) -> pandas.DataFrame:
    """Return a row per configuration, with its `relative_error`."""
    import pandas

    table = pandas.DataFrame([asdict(one) for one in judged], columns=[field.name for field in fields(Judged)])
    error = [relative_error(one.predicted, one.measured) for one in judged]
    on_host = [BACKENDS[one.backend].shares_host for one in judged]
    return table.assign(error=error, ratio=table.predicted / table.measured, on_host=on_host)


def errors(table: pandas.DataFrame) -> dict[str, float]:
    """Return number, median and 90th percentile of the errors."""
    return {"n": len(table), "median": float(table.error.median()), "90 %": float(table.error.quantile(0.9))}


def ranks(table: pandas.DataFrame) -> dict[str, float]:
    """Return Spearman's rank correlation, and the best of the first ten of the model over the best of all.

    The order of keys breaks ties of predictions.
    """
    first = table.sort_values(["predicted", "key"], ascending=[False, True]).head(FIRST)
    return {
        "rank": table.predicted.rank().corr(table.measured.rank()),
        "first 10": first.measured.max() / table.measured.max(),
    }


def by_set(judged: Sequence[Judged]) -> pandas.DataFrame:
    """Return errors and ranks, one row per set; also by kind for sets with several steps per launch."""
    import pandas

    rows = {}
    for name, mine in frame(judged).groupby("set"):
        rows[str(name)] = {**errors(mine), **ranks(mine)}
        if mine.many.any():
            rows[f"{name}, one step"] = {**errors(mine[~mine.many]), **ranks(mine[~mine.many])}
            rows[f"{name}, several steps"] = {**errors(mine[mine.many]), **ranks(mine[mine.many])}
    return pandas.DataFrame(rows).T


def pooled(judged: Sequence[Judged]) -> pandas.DataFrame:
    """Return errors of all kernels on large domains of a GPU, by steps per launch, scheme and tenth of MLUPS."""
    import pandas

    rows = {}
    for name, kind, mine in _parts(frame(judged)):
        rows[f"{name}, {kind}"] = errors(mine)
        rows |= {f"{name}, {kind}, {part}": errors(each) for part, each in _by_scheme_and_tenth(mine)}
    return pandas.DataFrame(rows).T


def by_look(judged: Sequence[Judged]) -> pandas.DataFrame:
    """Return errors of all kernels of GPUs, of those measured to the end, and of those dismissed after a first look."""
    import pandas

    table = frame(judged)
    mine = table[~table.on_host.astype(bool)]
    dismissed = mine.dismissed.astype(bool)
    parts = {"all": mine, "measured to the end": mine[~dismissed], "dismissed after a first look": mine[dismissed]}
    return pandas.DataFrame({name: errors(part) for name, part in parts.items() if len(part)}).T


def _by_scheme_and_tenth(mine: pandas.DataFrame) -> Iterator[tuple[str, pandas.DataFrame]]:
    """Yield parts by scheme, and by tenth of measured MLUPS with the slowest first."""
    yield from ((str(scheme), part) for scheme, part in mine.groupby("scheme"))
    tenth = (mine.measured.rank(method="first") - 1) * _TENTHS // len(mine)
    for n, part in mine.groupby(tenth):
        yield f"tenth {int(n) + 1}: {part.measured.min():,.0f} to {part.measured.max():,.0f} MLUPS", part


def _parts(table: pandas.DataFrame) -> Iterator[tuple[str, str, pandas.DataFrame]]:
    for name, mine in table.groupby(table.set.str.partition("/")[0]):
        yield from ((str(name), kind, part) for kind, part in _large(mine))


def _large(table: pandas.DataFrame) -> list[tuple[str, pandas.DataFrame]]:
    table = table[~table.on_host.astype(bool) & (table.sites >= SMALL)]
    return [(kind, table[table.many == many]) for kind, many in _KINDS.items() if (table.many == many).any()]


def by_scheme(judged: Sequence[Judged]) -> pandas.DataFrame:
    """Return median errors of each scheme in each set."""
    return frame(judged).pivot_table(index="set", columns="scheme", values="error", aggfunc="median")


def by_tenth(judged: Sequence[Judged]) -> pandas.DataFrame:
    """Return median errors of each tenth of the measured MLUPS of each set, the slowest first."""
    table = frame(judged)
    sets = table.groupby("set").measured
    tenth = ((sets.rank(method="first") - 1) * _TENTHS // sets.transform("size")).astype(int) + 1
    return table.assign(tenth=tenth).pivot_table(index="set", columns="tenth", values="error", aggfunc="median")


def bars(judged: Sequence[Judged]) -> list[Bar]:
    """Return the bounds on all large domains of a GPU together, by scheme and tenth of MLUPS, and on each set."""
    table = frame(judged)
    together = [
        bar
        for name, kind, mine in _parts(table)
        for part, each in (("all", mine), *_by_scheme_and_tenth(mine))
        if part == "all" or len(each) >= _ENOUGH
        for bar in _of_errors(f"{name}, {part}", kind, each)
    ]
    return [*together, *(bar for name, mine in table.groupby("set") for bar in _bars(str(name), mine))]


def _of_errors(name: str, kind: str, mine: pandas.DataFrame) -> list[Bar]:
    found = errors(mine)
    return [Bar(name, f"{figure} error, {kind}", found[figure], bound) for figure, bound in _BOUNDS[kind].items()]


def _bars(name: str, mine: pandas.DataFrame) -> list[Bar]:
    found, ranked = errors(mine), ranks(mine)
    first = ranked["first 10"]
    if mine.on_host.all():
        return [Bar(name, "median error", found["median"], 0.15), Bar(name, "best of the first 10", first, 0.95, True)]
    small = [Bar(name, "median error", found["median"], 0.20)] if mine.sites.max() <= SMALL else []
    if mine.sites.min() < SMALL:
        return small
    result = small + [bar for kind, part in _large(mine) for bar in _of_errors(name, kind, part)]
    if mine.measured.quantile(0.9) > _APART * mine.measured.quantile(0.1):
        result.append(Bar(name, "rank", ranked["rank"], 0.9, True))
    return [*result, Bar(name, "best of the first 10", first, 0.98, True)]


def judgement(judged: Sequence[Judged]) -> str:
    """Return the bounds with their figures as text."""
    found = bars(judged)
    width = max(len(f"{bar.set}: {bar.figure}") for bar in found)
    lines = [
        f"{f'{bar.set}: {bar.figure}':<{width}}  {bar.value:6.3f}  {'>=' if bar.at_least else '<='} {bar.bound:.2f}  "
        f"{'holds' if bar.holds else 'does not hold'}"
        for bar in found
    ]
    return "\n".join((*lines, f"{sum(bar.holds for bar in found)} of {len(found)} hold")) + "\n"


def printed(judged: Sequence[Judged]) -> str:
    """Return all tables as text."""
    tables = (
        ("errors of all kernels of GPUs, by how long they were measured", by_look(judged)),
        ("errors of all large domains of a GPU together, by scheme, by tenth of MLUPS", pooled(judged)),
        ("errors |predicted / measured - 1|, ranks, best of the first 10 over best", by_set(judged)),
        ("median errors by scheme", by_scheme(judged)),
        ("median errors by tenth of MLUPS, the slowest first", by_tenth(judged)),
    )
    shown = (f"{title}\n{_text(table)}" for title, table in tables if len(table))
    return "\n\n".join((f"predictions of {model()}", *shown)) + "\n"


def with_ablation(whole: pandas.DataFrame, left_out: Mapping[str, pandas.DataFrame], *, parts: bool = True) -> str:
    """Return the change of median, 90th percentile and rank without each term, as text; unchanged sets have no row.

    parts: kernels of one step and of several have rows of their own.
    """
    import pandas

    rows: dict[tuple[str, str], pandas.Series[float]] = {}
    for term, table in left_out.items():
        change = (table - whole)[["median", "90 %", "rank"]]
        rows |= {
            (name, term): change.loc[name]
            for name in change.index
            if change.loc[name].abs().max() >= 5e-4 and (parts or ", " not in str(name))
        }
    found = pandas.DataFrame(rows).T.sort_index() if rows else pandas.DataFrame()
    return f"without a term: change of median and 90 % of the errors, and of the rank\n{_text(found)}\n"


def by_card(judged: Sequence[Judged]) -> str:
    """Return the tables of all and of each set of GPUs, and the bounds that do not hold, as text."""
    found = bars(judged)
    table = by_set([one for one in judged if not BACKENDS[one.backend].shares_host])
    held = f"{sum(bar.holds for bar in found)} of {len(found)} bars hold; these do not:\n"
    missed = "".join(
        f"  {bar.set}: {bar.figure} {bar.value:.3f} for {bar.bound:.2f}\n" for bar in found if not bar.holds
    )
    several = (each for each in (by_look(judged), pooled(judged), table) if len(each))
    return "\n\n".join((f"predictions of {model()}", *map(_text, several), f"{held}{missed}"))


def model() -> str:
    """Return the version of the model and the day, as text."""
    return f"lbmtune {__version__}, {datetime.now(UTC).date().isoformat()}"


def write_tables(path: Path, tables: Mapping[str, str]) -> None:
    """Write each table into a document, as code, between the lines <!-- NAME --> and <!-- /NAME -->.

    Raises ValueError if one of the lines is missing.
    """
    text = path.read_text(encoding="utf-8")
    for name, table in tables.items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if not begin or not end:
            raise ValueError(f"{path} has no place for the table {name}")
        indented = "".join(f"    {line}".rstrip() + "\n" for line in table.rstrip().splitlines())
        text = f"{before}{begin}\n{indented}\n{end}{after}"
    path.write_text(text, encoding="utf-8")


def _text(table: pandas.DataFrame) -> str:
    if "n" in table:
        table = table.assign(n=table.n.astype(int))
    return str(table.to_string(float_format=lambda value: f"{value:.3f}", na_rep="-"))


def figure(judged: Sequence[Judged]) -> Figure:
    """Return a figure of measured over predicted MLUPS of every configuration, by set."""
    found = plain_figure("predicted MLUPS", "measured / predicted")
    for number, (name, mine) in enumerate(frame(judged).groupby("set")):
        found.add_scattergl(
            x=mine.predicted,
            y=mine.measured / mine.predicted,
            mode="markers",
            name=str(name),
            marker={"size": 5, "opacity": 0.6} | _look(number),
            text=mine.label + "<br>" + mine.limit,
            hovertemplate="%{text}<br>predicted %{x:,.0f} MLUPS, measured / predicted %{y:.3f}"
            "<extra>%{fullData.name}</extra>",
        )
    speeds = [one.predicted for one in judged]
    log_axis(found.update_xaxes, min(speeds) / 1.3, max(speeds) * 1.3)
    found.add_hline(y=1, line={"width": 1, "color": "#888888"})
    found.update_yaxes(range=[0, 1.6])
    return found


def _look(number: int) -> dict[str, str]:
    turn, colour = divmod(number, len(PALETTE))
    return {"color": PALETTE[colour], "symbol": _SYMBOLS[turn % len(_SYMBOLS)]}


def write_page(path: Path, judged: Sequence[Judged]) -> None:
    """Write a self-contained page with the figure and the tables."""
    write_atomically(path, figure_page("The model against recorded sets", figure(judged), "640px", printed(judged)))
