"""The folder of a portfolio: what was asked, the studies of its domains, and what was measured on all of them.

portfolio.json      what was asked, written first
64x64x64/, ...   the study of each domain that is searched
domains.jsonl    the kernels that were measured in turns on a domain, one domain a line
best.json        the kernels with their rule
"""

from dataclasses import dataclass
from pathlib import Path

from lbmtune.errors import InputError
from lbmtune.records import SCHEMA_VERSION, Environment, Trial
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.quantities import Count
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import append_line, decoded, drop_torn_line, read_lines, write_record
from lbmtune.regular_file import regular_bytes

ASKED, DOMAINS = "portfolio.json", "domains.jsonl"


@dataclass(frozen=True, kw_only=True)
class PortfolioAsked:
    """A portfolio as it was asked for.

    spec: of each study, but for domain and time; searched: the domains of studies; last_resort: the configuration that
    takes every domain, flat.
    """

    spec: StudySpec
    domains: str
    searched: tuple[Int3, ...]
    last_resort: dict[str, int | str]
    backend: str
    environment: Environment
    date: str
    version: str
    schema: Count = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class MeasuredDomain:
    """Kernels that were measured in turns on a domain.

    visit: 0 for a searched domain, 1 for one that teaches, more for the checks.

    default: key of the kernel that is taken if no knob is given.
    """

    domain: Int3
    visit: Count
    default: str
    trials: tuple[Trial, ...]


def holds_portfolio(folder: Path) -> bool:
    """Return whether a folder holds a portfolio."""
    return (folder / ASKED).exists()


def write_asked(folder: Path, asked: PortfolioAsked) -> None:
    """Write what a portfolio was asked for. Raises InputError."""
    write_record(folder / ASKED, asked)


def read_asked(folder: Path) -> PortfolioAsked:
    """Return what the portfolio of a folder was asked for. Raises InputError."""
    path = folder / ASKED
    try:
        asked = decoded(regular_bytes(path), PortfolioAsked)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the folder of a portfolio.") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}; restore it or begin anew in another folder.") from error
    if asked.schema > SCHEMA_VERSION:
        raise InputError(
            f"{path} has schema {asked.schema}, this version reads up to {SCHEMA_VERSION}; update lbmtune."
        )
    return asked


def append_domain(folder: Path, found: MeasuredDomain) -> None:
    """Append what was measured on a domain. Raises InputError."""
    append_line(folder / DOMAINS, found)


def read_domains(folder: Path) -> list[MeasuredDomain]:
    """Return what was measured on domains, without a last line that a crash cut short. Raises InputError."""
    drop_torn_line(folder / DOMAINS)
    return read_lines(folder / DOMAINS, MeasuredDomain)
