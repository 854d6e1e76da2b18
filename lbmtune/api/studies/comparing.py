"""Compare studies that were measured before, by their records alone."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lbmtune import __version__
from lbmtune.errors import InputError, NothingValidError
from lbmtune.records.regression.studies import Comparison, compared
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord


def compare(first: Path | str, *others: Path | str) -> tuple[Comparison, ...]:
    """Return how the speeds of other studies relate to those of the first, one comparison for each of them.

    The arguments are study folders. `regressions` of a comparison names what is slower beyond the noise. Raises
    InputError if a folder holds no study, NothingValidError if one has no verified speed.

        >>> sets = "studies/recorded"
        >>> (found,) = compare(f"{sets}/nvidia-h200/d3q19-box-fp32", f"{sets}/nvidia-h100/d3q19-box-fp32")
        >>> found.winners.verdict, found.regressions[0]
        (<Verdict.SLOWER: 'slower'>, 'the winner')
    """
    folders = (Path(first), *map(Path, others))
    return comparisons([read_study(folder) for folder in folders], [str(folder) for folder in folders])


def write_comparison_page(folders: Sequence[Path | str], path: Path | str) -> Path:
    """Write one page of several studies beside the first, which needs no network, and return its path.

    Raises as `compare`.
    """
    from lbmtune.report.compared.page import write_comparison  # here: comparing alone needs no figures

    names = [str(folder) for folder in folders]
    records = [read_study(Path(folder)) for folder in folders]
    _check(records, names)
    write_comparison(records, names, Path(path), __version__)
    return Path(path)


def comparisons(records: Sequence[StudyRecord], names: Sequence[str]) -> tuple[Comparison, ...]:
    """Return the comparison of each record but the first with that one. Raises as `compare`; names: for messages."""
    _check(records, names)
    was, *others = records
    return tuple(compared(was, now, len(others)) for now in others)


def _check(records: Sequence[StudyRecord], names: Sequence[str]) -> None:
    if len(records) < 2:
        raise InputError(f"{', '.join(names) or 'nothing'} is one study at most; name two or more to compare.")
    if twice := next(_twice(names), None):
        raise InputError(f"{twice} is named twice; name another study to compare it with.")
    for record, name in zip(records, names, strict=True):
        if not record.ranked:
            raise NothingValidError(f"{name} holds no verified speed; there is nothing to compare.")


def _twice(names: Sequence[str]) -> Iterator[str]:
    """Yield names of one folder that was named before."""
    resolved = [Path(name).resolve() for name in names]
    yield from (name for n, name in enumerate(names) if resolved[n] in resolved[:n])
