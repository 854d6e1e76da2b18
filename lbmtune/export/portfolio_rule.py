"""Write the rule of a portfolio as C: which of several exported headers to use on a domain."""

from __future__ import annotations

from collections.abc import Iterator

from lbmtune.export.c_text import filled
from lbmtune.export.solver_text import check_name
from lbmtune.records.best_json.law import CHUNKS, FALL
from lbmtune.records.best_json.portfolio import Portfolio, PortfolioKernel

_NO_LAW = "1e300"
"""Picoseconds of a kernel without a law, which comes after the others."""


def rule_header(found: Portfolio, name: str, version: str) -> str:
    """Return a header that includes those of all kernels, NAME_1.h and so on, and chooses between them.

    Raises InputError for a name that none can have.
    """
    check_name(name)
    numbers = range(1, len(found.kernels) + 1)
    return filled(
        "portfolio",
        name=name,
        NAME=name.upper(),
        count=len(found.kernels),
        domains=found.domains,
        fall=FALL,
        version=version,
        includes="\n".join(f'#include "{name}_{number}.h"' for number in numbers),
        laws="\n\n".join(_law(one, name, number) for number, one in enumerate(found.kernels, 1) if one.law),
        lines="\n".join(_lines(found, name)),
        spans="\n".join(line for number, one in enumerate(found.kernels, 1) for line in _span(one, name, number)),
    )


def _law(kernel: PortfolioKernel, name: str, number: int) -> str:
    """Return the function of the time of a kernel in C."""
    terms = "\n        + ".join(one.said for one in kernel.law)
    near = "".join(f"\n        + {one.said(f'{name}_near')}" for one in kernel.corrections)
    chunks = f"const long long {CHUNKS} = {name}_{number}_{CHUNKS}(nx, ny, nz);\n    " if kernel.kernel.chunks else ""
    return (
        f"static inline double {name}_{number}_picoseconds(long long nx, long long ny, long long nz) {{\n"
        f"    {chunks}const double time =\n        {terms};\n    return time * (1{near});\n}}"
    )


def _lines(found: Portfolio, name: str) -> Iterator[str]:
    for line in found.rule:
        conditions = " && ".join(filter(None, (line.said, _takes(name, line.kernel + 1))))
        yield f"    if ({conditions}) return {line.kernel + 1};"
    lawful = [number for number, one in enumerate(found.kernels, 1) if one.law]
    if lawful:
        yield "    double least = 0, time;\n    int found = 0;"
    for number in lawful:
        yield f"    time = {name}_{number}_picoseconds(nx, ny, nz);"
        yield f"    if ({_takes(name, number)} && (!found || time < least)) found = {number}, least = time;"
    yield "    return found;" if lawful else "    return 0;"


def _span(kernel: PortfolioKernel, name: str, number: int) -> Iterator[str]:
    """Yield what `PortfolioKernel.span` is in C, for a kernel that takes the domain."""
    usual = f"{name}_{number}_picoseconds(nx, ny, nz)" if kernel.law else _NO_LAW
    known = bool(kernel.law) and kernel.doubt is not None
    earliest = f"usual[{number}] * {1 - (kernel.doubt or 0.0)!r}" if known else "0"
    yield f"    takes[{number}] = {_takes(name, number)};"
    yield f"    usual[{number}] = {usual}, earliest[{number}] = {earliest};"
    if known:
        end = f"usual[{number}] * {1 + (kernel.doubt or 0.0)!r}"
        yield f"    if (takes[{number}] && (latest < 0 || {end} < latest)) latest = {end};"


def _takes(name: str, number: int) -> str:
    """Return the condition that a kernel takes a domain, in C."""
    one = f"{name}_{number}"
    return f"{one}_check_domain((int)nx, (int)ny, (int)nz, 0) == {one.upper()}_OK"
