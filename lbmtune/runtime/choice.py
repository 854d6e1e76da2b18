"""Take the launch of a portfolio that is the fastest on a domain, by timing those that its rule holds possible."""

from __future__ import annotations

import hashlib
import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from lbmtune.backend.registry import open_device
from lbmtune.cores import usable_cores
from lbmtune.errors import InputError
from lbmtune.records import Environment
from lbmtune.records.best_json.document import Best, encode_best
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.best_json.portfolio import Candidate
from lbmtune.records.store import cache_folder
from lbmtune.records.whole_files import write_atomically
from lbmtune.regular_file import regular_bytes
from lbmtune.runtime.solver import Solver
from lbmtune.version import __version__

LOG = logging.getLogger("lbmtune")
_FEWEST = 2
"""Launches between which there is a choice."""
_SAMPLES, _SAMPLE_S = 3, 0.02
"""Timed runs of a launch, of which the median counts, and the seconds of each."""


class Choice(NamedTuple):
    """A kernel alone, and what was timed to choose it, in a sentence."""

    best: Best
    said: str


@dataclass(frozen=True)
class Timed:
    """The speeds of launches on a domain. mlups: of each, as the rule ranks them; 0 if it does not run here."""

    mlups: tuple[tuple[Candidate, float], ...]

    @property
    def runs(self) -> tuple[tuple[Candidate, float], ...]:
        """Return the launches that run here."""
        return tuple(one for one in self.mlups if one[1] > 0)


def measured(
    whole: Best,
    usual: Best,
    path: str | os.PathLike[str],
    device: str,
    domain: Int3,
    load: Callable[[Best], Solver],
) -> Choice:
    """Return the kernel of a portfolio that is the fastest on a domain, by timing those that may be.

    whole: content of the file, `path` in messages; usual: what is taken without it, also if there is nothing to choose;
    load: returns the flow of a kernel on that domain. Speeds are kept in the user's cache, for this file, device and
    domain. Raises InputError.
    """
    if whole.portfolio is None:
        return Choice(usual, f"{path} holds no portfolio: nothing was timed.")
    candidates = whole.portfolio.candidates(domain)
    if len(candidates) < _FEWEST:
        return Choice(usual, f"{path} holds no other kernel that may be faster on this domain: none was timed.")
    kept = _place(whole, open_device(device).environment, domain)
    found = _read(kept, candidates)
    if found is None:
        found = Timed(tuple((one, _mlups(whole.of_portfolio(*_on(one, domain)), load)) for one in candidates))
        if not found.runs:
            return Choice(usual, f"no kernel of {path} that may be the fastest runs here: nothing was timed.")
        _keep(kept, found)
    return _fastest(whole, path, domain, found)


def _fastest(whole: Best, path: str | os.PathLike[str], domain: Int3, found: Timed) -> Choice:
    (first, first_mlups), kernels = found.mlups[0], {one.place for one, _ in found.runs}
    fastest, mlups = max(found.runs, key=lambda one: one[1])
    best = whole.of_portfolio(*_on(fastest, domain))
    extents = "x".join(map(str, domain))
    timed = f"the fastest of {len(found.runs)} launches of {len(kernels)} kernels, timed on {extents}"
    if fastest == first:
        return Choice(best, f"{best.key} of {path} is {timed}: {mlups:,.0f} MLUPS.")
    rule = f"that of the rule has {first_mlups:,.0f}" if first_mlups else "that of the rule does not run here"
    return Choice(best, f"{best.key} of {path} is taken instead: {timed}, {mlups:,.0f} MLUPS; {rule}.")


def _on(one: Candidate, domain: Int3) -> tuple[int, Int3, int | None]:
    return one.place, domain, one.chunks


def _mlups(alone: Best, load: Callable[[Best], Solver]) -> float:
    """Return the speed of a launch; 0 if it does not run here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they come again with what is taken in the end
            flow = load(alone)
            return flow.case.sites / (1e6 * _seconds(flow))
    except InputError as error:
        LOG.info("%s is not timed: %s", alone.key, error)
        return 0.0


def _seconds(flow: Solver) -> float:
    """Return the seconds of a step."""
    flow.time_per_step_s(1)  # loads what is needed once
    steps = max(1, round(_SAMPLE_S / flow.time_per_step_s(1)))
    return median(flow.time_per_step_s(steps) for _ in range(_SAMPLES))


def _place(best: Best, here: Environment, domain: Int3) -> Path:
    """Return the file of the cache for a best.json on a device and a domain."""
    device = (here.device, here.architecture, here.driver, here.runtime, here.compiler, usable_cores())
    named = msgspec.json.encode((hashlib.sha256(encode_best(best)).hexdigest(), __version__, device, domain))
    return cache_folder("choices") / f"{hashlib.sha256(named).hexdigest()[:32]}.json"


def _read(path: Path, candidates: tuple[Candidate, ...]) -> Timed | None:
    """Return what was timed before; None if it was not, or of other launches."""
    try:
        found = msgspec.json.decode(regular_bytes(path), type=Timed)
    except (OSError, msgspec.DecodeError):
        return None
    return found if tuple(one for one, _ in found.mlups) == candidates and found.runs else None


def _keep(path: Path, found: Timed) -> None:
    try:
        write_atomically(path, msgspec.json.encode(found))
    except InputError as error:  # the kernel runs all the same
        LOG.warning("what was timed is not kept: %s", error)
