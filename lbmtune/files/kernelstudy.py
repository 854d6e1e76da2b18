"""Studies of users' kernels: their description with the options of a study."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.knobs import Scalar
from lbmtune.catalogue.own_kernel.definition import THREADS, OwnKernel
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.files.kernelfile import load_kernel
from lbmtune.files.studyfile import parse_study
from lbmtune.records.spec import StudySpec

TRIALS = 100
"""Trials of a study without a limit of its own."""
_KEYS = ("name", "objective", "seed", "strategy", "budget.", "protocol.", "limits.footprint", "limits.power")
"""Keys of a study file that act on kernels of users; how those of a table begin."""
_LIMITS = ("budget.",)
_DOMAIN = "case.domain"


def kernel_study(path: Path, overrides: Sequence[str] = ()) -> StudySpec:
    """Return the study of a kernel that a file describes. overrides: 'key=value', also of its knobs.

    Raises InputError.
    """
    return study_of(*load_kernel(path), overrides)


def study_of(kernel: OwnKernel, case: Case, overrides: Sequence[str]) -> StudySpec:
    """Return the study of a kernel with options, as `kernel_study`. Raises InputError."""
    names, others = {one.name for one in kernel.knobs}, []
    given: dict[str, tuple[Scalar, ...]] = {}
    for item in overrides:
        key, _, value = (part.strip() for part in item.partition("="))
        if key in names:
            given[key] = _values(kernel, key, value)
        elif key == _DOMAIN:
            case = _on_domain(case, value)
        elif key.startswith(_KEYS):
            others.append(item)
        else:
            knobs = f"; its knobs are {', '.join(sorted(names))}" if names else ""
            raise InputError(f"--set {key}: {value} is not supported for a kernel of your own (leave it out){knobs}.")
    return _study(kernel, case, others, given)


def _study(kernel: OwnKernel, case: Case, others: Sequence[str], given: Mapping[str, Any]) -> StudySpec:
    limited = any(item.strip().startswith(_LIMITS) for item in others)
    text = f'name = "{kernel.name}"\n[case]\nflow = "box"\nlattice = "d2q9"\ndomain = [8, 8]\nrelaxation_rate = 1\n'
    plain = parse_study(text, kernel.name, [*others, *([] if limited else [f"budget.trials={TRIALS}"])])
    if "accuracy" in plain.objectives:
        raise InputError("objective=accuracy is not supported for a kernel of your own (use mlups or footprint).")
    table: dict[str, tuple[Scalar, ...]] = {} if BACKENDS[kernel.backend].thread_blocks else {THREADS: (1,)}
    table |= {"family": (kernel.family,), **{one.name: one.values for one in kernel.knobs}, **given}
    return replace(plain, case=case, families=(), axes={kernel.backend: table}, kernel=kernel)


def _values(kernel: OwnKernel, name: str, text: str) -> tuple[Scalar, ...]:
    known = {str(value): value for one in kernel.knobs if one.name == name for value in one.values}
    asked = [part.strip() for part in text.strip("[]").split(",")]
    if unknown := [one for one in asked if one not in known]:
        raise InputError(f"--set {name}={text}: {unknown[0]} is none of its values (use {', '.join(known)}).")
    return tuple(known[one] for one in asked)


def _on_domain(case: Case, text: str) -> Case:
    parts = text.strip("[]").replace(",", "x").split("x")
    try:
        found = tuple(int(part) for part in parts)
    except ValueError:
        found = ()
    if len(found) not in (2, 3):
        raise InputError(f"--domain {text} is not of the form 512x512; give two or three cell counts.")
    x, y, z = (*found, 1)[:3]
    return replace(case, domain=(x, y, z))
