"""Select the kernel of one or several best.json files for a case on a device, and say why."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import dist, inf, log
from pathlib import Path
from typing import Any

from lbmtune.backend.registry import available, backend_of, open_device
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.describe import describe_kernel, describe_storage
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.records import Environment
from lbmtune.records.best_json.document import Alternate, Best, read_best
from lbmtune.records.best_json.kernel import Int3
from lbmtune.runtime.choice import measured
from lbmtune.runtime.load import loaded
from lbmtune.runtime.solver import Solver

LOG = logging.getLogger("lbmtune")
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_FREE = ("relaxation_rate", "force", "wall_velocity", "velocity_scale")
"""Values of a case that a kernel takes as arguments, besides the domain, or that say how a flow begins."""


@dataclass(frozen=True)
class Selection:
    """A kernel for a case on a device. path: of its file; best: that kernel alone; said: why, in sentences.

    exact: whether it was measured on this device, for this domain or a range that holds it.
    """

    path: Path
    best: Best
    case: Case
    device: str
    said: tuple[str, ...]
    exact: bool

    def __str__(self) -> str:
        """Return the sentences."""
        return " ".join(self.said)

    def load(self, *, trusted: bool = False) -> Solver:
        """Return the flow of the case at its initial state (`lbmtune.load`)."""
        given = {**_given(self.case), "trusted": trusted}
        return loaded(self.best, self.path, self.device, domain=self.case.domain, **given)


def _given(case: Case) -> dict[str, Any]:
    """Return the values of a case that a kernel takes as arguments, besides the domain."""
    return {name: getattr(case, name) for name in ("relaxation_rate", "force", "wall_velocity")}


@dataclass(frozen=True)
class _Candidate:
    """A kernel of a file. far: of its device and its domains from those that are asked for; first: of its file.

    made: returns the file with this kernel alone; whole: the file.
    """

    path: Path
    whole: Best
    config: KernelConfig
    made: Callable[[], Best]
    far: tuple[int, float, float]
    why: str
    first: bool = True


def select(
    files: Paths,
    device: str | int | None = None,
    case: Case | Int3 | None = None,
    *,
    strict: bool = False,
    measure: bool = False,
) -> Selection:
    """Return the kernel of best.json files that fits a case on a device best, with the reasons.

    files: best.json files, or folders that hold them, one or several. device: 'cpu' or the index of a GPU; None: the
    first one here. case: the flow with its domain, or the domain alone; None: the domain of the first file. If no
    kernel was measured on this device, that of the nearest device is taken; if a kernel does not take the domain, the
    next one that does, also of `alternates`. The sentences of the result say so. strict: raise InputError instead.
    measure: of a portfolio, time the kernels that may be the fastest on the domain, and take the one that is.

    Raises InputError if there is no kernel for the case, DeviceUnavailableError.
    """
    where = available()[0] if device is None else str(device)
    opened = open_device(where)
    found = [(path, best) for path, best in _read(files) if best.kernel.target == backend_of(where)]
    if not found:
        kind = BACKENDS[backend_of(where)].device_kind
        raise InputError(f"device={where} is not supported for {_named(files)} (use files with a kernel for {kind}).")
    wanted = _case(case, found[0][1])
    alike = [(path, best) for path, best in found if _alike(wanted, best.case)]
    if not alike:
        raise InputError(f"case is not supported for {_named(files)}: {_unlike(wanted, found[0][1].case)}.")
    candidates = sorted(
        (one for path, best in alike for one in _candidates(path, best, wanted, opened.environment)),
        key=lambda one: (one.far[:2], not one.first, one.far[2]),
    )
    skipped: list[str] = []
    for one in candidates:
        if reason := _refusal(one.config, wanted, opened.limits):
            skipped.append(f"{one.config.key} of {one.path} does not take this case: {reason}.")
            continue
        exact = not skipped and one.first and one.far[:2] == (0, 0.0)
        if strict and not exact:
            raise InputError(f"no kernel of {_named(files)} was measured for this: {' '.join([*skipped, one.why])}")
        alone, said = one.made(), (*skipped, one.why)
        if measure:
            run = partial(loaded, path=one.path, device=where, domain=wanted.domain, **_given(wanted))
            found_here = measured(one.whole, alone, one.path, where, wanted.domain, run)
            alone, said = found_here.best, (*said, found_here.said)
        return Selection(one.path, alone, wanted, where, said, exact)
    raise InputError(f"no kernel of {_named(files)} takes this case: {' '.join(skipped)}")


def _named(files: Paths) -> str:
    listed = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    return ", ".join(map(str, listed)) or "no files"


def _read(files: Paths) -> Iterator[tuple[Path, Best]]:
    """Yield the files with their content; a damaged one of a folder is left out with a warning. Raises InputError."""
    for given in [files] if isinstance(files, (str, os.PathLike)) else files:
        path = Path(given)
        if not path.is_dir():
            yield path, read_best(path)
            continue
        inside = sorted([*path.glob("best.json"), *path.glob("*/best.json")])
        if not inside:
            raise InputError(f"{path} holds no best.json; lbmtune export writes one.")
        for one in inside:
            try:
                yield one, read_best(one)
            except InputError as error:
                LOG.warning("left out: %s", error)


def _case(case: Case | Int3 | None, first: Best) -> Case:
    if isinstance(case, Case):
        return case
    return first.case if case is None else replace(first.case, domain=(case[0], case[1], case[2]))


def _without_arguments(case: Case) -> Case:
    return replace(case, domain=(8, 8, 8) if case.stencil.dimensions == 3 else (8, 8, 1), **_usual(case))


def _usual(case: Case) -> dict[str, Any]:
    """Return values in the place of those that are arguments; a force or a moving wall stays one."""
    force, wall = (float(case.forced) * 1e-6, 0.0, 0.0), (float("moving" in case.faces) * 0.01, 0.0, 0.0)
    return dict(zip(_FREE, (1.0, force, wall, 0.05), strict=True))


def _alike(wanted: Case, recorded: Case) -> bool:
    if wanted.geometry or wanted.patches or recorded.geometry or recorded.patches:
        return wanted == recorded
    return _without_arguments(wanted) == _without_arguments(recorded)


def _unlike(wanted: Case, recorded: Case) -> str:
    """Return the first field in which two cases differ, with both values."""
    fields = [name for name in vars(wanted) if name not in (*_FREE, "domain")]
    name = next((name for name in fields if getattr(wanted, name) != getattr(recorded, name)), "force or walls")
    return f"{name} is {getattr(recorded, name, 'another')} there, and {getattr(wanted, name, 'another')} here"


def _candidates(path: Path, best: Best, case: Case, here: Environment) -> Iterator[_Candidate]:
    """Yield the kernels of a file: that for the domain first, then the others, which are fallbacks."""
    device, said = _device_distance(best.environment, here)
    domain, where = _domain_distance(best, case.domain)
    for number, (config, mlups, made) in enumerate(_kernels(best, case.domain)):
        what = "the kernel of the file" if number == 0 else "the next kernel of the file"
        if best.portfolio:
            what = f"{what} for this domain" if number == 0 else "another kernel of the portfolio"
        why = f"{config.key} of {path} is taken: {what}, {where}; {said}."
        yield _Candidate(path, best, config, made, (device, domain, -mlups), why, number == 0)


def _kernels(best: Best, domain: Int3) -> Iterator[tuple[KernelConfig, float, Callable[[], Best]]]:
    """Yield the kernels of a file with their speeds, that for a domain first."""
    if best.portfolio:
        place = best.portfolio.chosen(domain)
        for one in dict.fromkeys([*([] if place is None else [place]), *range(len(best.portfolio.kernels))]):
            alone = best.of_portfolio(one, domain)
            yield alone.config, alone.expected.mlups, partial(best.of_portfolio, one, domain)
        return
    yield best.config, best.expected.mlups, lambda: best
    for other in best.alternates:
        yield from_flat(other.configuration), other.mlups, partial(_alternate, best, other)


def _alternate(best: Best, one: Alternate) -> Best:
    """Return a file with one of its alternates alone, whose text this version makes."""
    program = render(best.case, from_flat(one.configuration))
    speeds: dict[str, Any] = {name: getattr(one, name) for name in ("mlups", "ci_low_mlups", "ci_high_mlups")}
    return replace(
        best,
        key=one.key,
        configuration=one.configuration,
        kernel=describe_kernel(program),
        storage=describe_storage(program),
        expected=replace(best.expected, **speeds),
        proven=one.proven,
        alternates=(),
    )


def _device_distance(there: Environment, here: Environment) -> tuple[int, str]:
    """Return how far two devices of a backend are apart, 0: alike, with the sentence."""
    if there.device == here.device:
        return 0, f"it was measured on {here.device}"
    said = f"it was measured on {there.device}, and this is {here.device}"
    if there.architecture == here.architecture and there.vector_bits == here.vector_bits:
        return 1, f"{said}, of the same architecture"
    return 2 + abs(_number(there) - _number(here)), f"{said}, the nearest device"


def _number(environment: Environment) -> int:
    digits = "".join(filter(str.isdigit, environment.architecture))
    return int(digits or environment.vector_bits)


def _domain_distance(best: Best, domain: Int3) -> tuple[float, str]:
    """Return how far a domain is from those that were measured, in logarithms of extents, with words."""
    text = "x".join
    if best.portfolio is None:
        apart = _apart(best.case.domain, domain)
        measured = text(map(str, best.case.domain))
        return apart, f"measured on this domain, {measured}" if apart == 0 else f"measured on {measured}"
    domains = [row.domain for row in best.portfolio.rows]
    ends: list[Callable[..., int]] = [min, max]
    least, most = ([end(one[axis] for one in domains) for axis in range(3)] for end in ends)
    within = all(low <= n <= high for low, n, high in zip(least, domain, most, strict=True))
    apart = 0.0 if within else min((_apart(one, domain) for one in domains), default=inf)
    return apart, f"measured for {best.portfolio.domains}{'' if within else ', which does not hold this domain'}"


def _apart(one: Int3, other: Int3) -> float:
    return dist([log(n) for n in one], [log(n) for n in other])


def _refusal(config: KernelConfig, case: Case, limits: Limits) -> str | None:
    """Return why a kernel does not run a case here, or None; with fewer threads where there are fewer cores."""
    if getattr(config, "threads", 1) > limits.cores:
        changes: dict[str, Any] = {"threads": limits.cores}
        config = replace(config, **changes)
    return broken(case, config, limits)
