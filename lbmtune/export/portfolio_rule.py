"""Write the rule of a portfolio as C: which of several exported headers to use on a domain."""

from __future__ import annotations

from lbmtune.export.c_text import filled
from lbmtune.export.solver_text import check_name
from lbmtune.records.best_json.portfolio import Portfolio, RuleLine


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
        version=version,
        includes="\n".join(f'#include "{name}_{number}.h"' for number in numbers),
        lines="\n".join(_statement(line, name) for line in found.rule),
    )


def _statement(line: RuleLine, name: str) -> str:
    """Return a line of the rule in C."""
    number = f"{name}_{line.kernel + 1}"
    takes = f"{number}_check_domain((int)nx, (int)ny, (int)nz, 0) == {number.upper()}_OK"
    return f"    if ({' && '.join(filter(None, (line.said, takes)))}) return {line.kernel + 1};"
