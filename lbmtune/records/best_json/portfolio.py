"""Kernels for many domains, as a best.json holds them: the kernels, the rule that chooses one, and what was measured.

Domains are extents along x, y and z; shares of speed are relative to the fastest kernel that was measured there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, prod
from typing import NamedTuple

from lbmtune.catalogue.config import Scalar
from lbmtune.errors import InputError
from lbmtune.records.best_json.domain import evaluated
from lbmtune.records.best_json.kernel import MOST_EXTENT, Int3, Kernel, Storage
from lbmtune.records.best_json.law import CHUNKS, Corrections, Law, extents_of, picoseconds, said
from lbmtune.records.measurement import Verification
from lbmtune.records.quantities import Count, NotNegative, OneOrMore, Positive

_VARIED = 2
"""Kernels of which several numbers of chunks are worth measuring."""
SEARCHED, TAUGHT, CHECKED = "searched", "taught", "checked"
"""Parts that a domain played: a search ran on it; the rule was made with it; it was checked."""


@dataclass(frozen=True, kw_only=True)
class RuleLine:
    """A line of a decision list: the kernel to take on domains that meet all its conditions.

    kernel: place in `Portfolio.kernels`, from 0; multiple, least, most: of nx, ny and nz; least_cells, most_cells: of
    nx * ny * nz, null: any number.
    """

    kernel: Count
    multiple: tuple[OneOrMore, OneOrMore, OneOrMore] = (1, 1, 1)
    least: Int3 = (1, 1, 1)
    most: Int3 = (MOST_EXTENT, MOST_EXTENT, MOST_EXTENT)
    least_cells: Count = 1
    most_cells: Count | None = None

    def holds(self, domain: Int3) -> bool:
        """Return whether a domain meets all conditions."""
        cells = prod(domain)
        extents = zip(domain, self.multiple, self.least, self.most, strict=True)
        return (
            all(least <= n <= most and n % multiple == 0 for n, multiple, least, most in extents)
            and cells >= self.least_cells
            and (self.most_cells is None or cells <= self.most_cells)
        )

    @property
    def said(self) -> str:
        """Return the conditions in C; empty if there are none."""
        parts = []
        for name, multiple, least, most in zip("xyz", self.multiple, self.least, self.most, strict=True):
            parts += [f"n{name} % {multiple} == 0"] * (multiple > 1)
            parts += [f"n{name} >= {least}"] * (least > 1)
            parts += [f"n{name} <= {most}"] * (most < MOST_EXTENT)
        parts += [f"nx * ny * nz >= {self.least_cells}"] * (self.least_cells > 1)
        parts += [f"nx * ny * nz <= {self.most_cells}"] * (self.most_cells is not None)
        return " && ".join(parts)


Rule = tuple[RuleLine, ...]
"""The first line counts whose conditions hold and whose kernel takes the domain; none: laws decide."""


def chosen_by(rule: Rule, domain: Int3, takes: Callable[[int], bool]) -> int | None:
    """Return the kernel of the first line that holds for a domain, if the kernel takes it; None if there is none."""
    return next((line.kernel for line in rule if line.holds(domain) and takes(line.kernel)), None)


class Span(NamedTuple):
    """Picoseconds of a step by a law, and between which they may be."""

    earliest: float
    usual: float
    latest: float


@dataclass(frozen=True, kw_only=True)
class PortfolioKernel:
    """A kernel of a portfolio, as `Best` describes one, with the domain on which its record was made.

    mlups and its interval were measured there. covers: measured domains on which the rule chooses it; worst_loss: the
    largest share of speed that it loses there, 0 if it covers none. law, corrections: the time of a step by extents;
    none in files whose rule has a line for every domain. doubt: share of that time by which it may err, null in files
    that do not say it: any share.
    """

    key: str
    configuration: dict[str, Scalar]
    domain: Int3
    kernel: Kernel
    storage: Storage
    mlups: Positive
    ci_low_mlups: NotNegative
    ci_high_mlups: NotNegative
    bandwidth_bytes_per_s: Positive
    bytes_per_update: Positive
    footprint_bytes: Count
    share_of_ceiling: NotNegative
    verification: Verification | None
    covers: Count
    worst_loss: NotNegative
    law: Law = ()
    corrections: Corrections = ()
    doubt: NotNegative | None = None

    @property
    def time(self) -> str:
        """Return the law in words."""
        near = f", corrected near {len(self.corrections)} measured domains" if self.corrections else ""
        return f"{said(self.law)}{near}"

    def picoseconds(self, domain: Int3) -> float:
        """Return the time of a step by the law. Raises InputError for what is no formula."""
        chunks = self.kernel.chunks.count(domain) if self.kernel.chunks else 1
        return picoseconds(self.law, self.corrections, {**extents_of(domain), CHUNKS: chunks})

    def span(self, domain: Int3) -> Span:
        """Return the time of a step with its doubt; any time if the kernel has no law, or its law no doubt."""
        usual = self.picoseconds(domain) if self.law else inf
        if not self.law or self.doubt is None:
            return Span(0.0, usual, inf)
        return Span(usual * (1 - self.doubt), usual, usual * (1 + self.doubt))

    def refusal(self, domain: Int3, multiprocessors: int | None = None) -> str | None:
        """Return why this kernel does not take a domain, or None. multiprocessors: of the device, None: not checked."""
        if self.kernel.domain is None:
            return None
        numbers = extents_of(domain)
        parts = (text.partition("=") for text in self.storage.extents)  # 'NX = nx + 2'
        stored = {name.strip(): evaluated(formula, numbers) for name, _, formula in parts}
        return self.kernel.domain.refusal({**numbers, **stored}, multiprocessors)


class Candidate(NamedTuple):
    """A launch that may be the fastest on a domain.

    place: of its kernel; chunks: along z, None if its launches do not set their number.
    """

    place: int
    chunks: int | None


@dataclass(frozen=True, kw_only=True)
class PortfolioRow:
    """A domain that was measured, with the kernel that the rule chooses there.

    part: 'searched', 'taught' or 'checked'; kernel: place in `Portfolio.kernels`; loss: share of the speed of the
    fastest kernel measured there, which `fastest` names by its key; behind_default: whether it is slower than the
    default kernel at 95 %; robust_loss: of the robust kernel, null if it was not measured there.
    """

    domain: Int3
    part: str
    kernel: Count
    mlups: Positive
    default_mlups: Positive
    fastest: str
    fastest_mlups: Positive
    loss: NotNegative
    behind_default: bool
    robust_loss: NotNegative | None = None


@dataclass(frozen=True, kw_only=True)
class Portfolio:
    """Kernels that cover a range of domains, and the rule that chooses one: the first line that holds for a domain.

    If there is none, it is the kernel with the least time by its law, of those that have one and take the domain.
    domains: as they were asked for; tolerance: share of speed that a kernel may lose; robust: place of the kernel to
    take if there can be only one; robust_loss: its largest loss on any measured domain; worst_loss: the largest on
    checked domains, null if none was checked; behind_default: number of checked domains on which the choice is slower
    than the default kernel; seed: of the domains; left_out: what did not fit into the time.
    """

    domains: str
    tolerance: Positive
    seed: Count
    kernels: tuple[PortfolioKernel, ...]
    rule: Rule
    robust: Count
    robust_loss: NotNegative
    worst_loss: NotNegative | None
    checked: Count
    behind_default: Count
    rows: tuple[PortfolioRow, ...]
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError for a place that no kernel has."""
        places = [self.robust, *(line.kernel for line in self.rule), *(row.kernel for row in self.rows)]
        if not self.kernels or max(places) >= len(self.kernels):
            raise InputError(f"a portfolio of {len(self.kernels)} kernels names number {max(places)}")

    @property
    def said(self) -> list[tuple[str, int]]:
        """Return the rule in words: conditions and times, with numbers of kernels from 1 on."""
        lines = [(line.said or "any that the kernel takes", line.kernel + 1) for line in self.rule]
        laws = [(f"least picoseconds: {one.time}", n) for n, one in enumerate(self.kernels, 1) if one.law]
        return [*lines, *laws]

    def chosen(self, domain: Int3, multiprocessors: int | None = None) -> int | None:
        """Return the place of the kernel for a domain; None if none takes it."""

        def takes(place: int) -> bool:
            return not self.kernels[place].refusal(domain, multiprocessors)

        found = chosen_by(self.rule, domain, takes)
        if found is not None:
            return found
        lawful = [place for place, one in enumerate(self.kernels) if one.law and takes(place)]
        return min(lawful, key=lambda place: self.kernels[place].picoseconds(domain), default=None)

    def possible(self, domain: Int3, multiprocessors: int | None = None) -> tuple[int, ...]:
        """Return the places of the kernels that may be the fastest on a domain, that of `chosen` first.

        The others come by their laws: each whose time, less its doubt, is not above any time with its doubt.
        """
        first = self.chosen(domain, multiprocessors)
        taking = [n for n, one in enumerate(self.kernels) if not one.refusal(domain, multiprocessors)]
        spans = {n: self.kernels[n].span(domain) for n in taking}
        latest = min((span.latest for span in spans.values()), default=inf)
        likely = [n for n in taking if n != first and spans[n].earliest <= latest]
        return (*([] if first is None else [first]), *sorted(likely, key=lambda n: spans[n].usual))

    def candidates(self, domain: Int3, multiprocessors: int | None = None) -> tuple[Candidate, ...]:
        """Return the launches that are worth measuring on a domain, that of the rule first.

        Each possible kernel has one with its number of chunks; the first two have others with likely numbers.
        """
        places = self.possible(domain, multiprocessors)
        numbers = {place: self.kernels[place].kernel.chunks for place in places}
        of_each = {place: one.likely(domain) if one else (None,) for place, one in numbers.items()}
        usual = (Candidate(place, counts[0]) for place, counts in of_each.items())
        others = (Candidate(place, count) for place in places[:_VARIED] for count in of_each[place][1:])
        return (*usual, *others)
