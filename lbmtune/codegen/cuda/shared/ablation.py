"""Parts of a kernel that may be left out, so that a measurement shows what the other parts cost.

Without reads, values are made from the place of the cell. Without writes, values are stored on a condition that
depends on all of them and is never true. The case leaves out collision (`catalogue.collisions.none`).
"""

from typing import Any, NamedTuple

from lbmtune.catalogue.families import module_of
from lbmtune.codegen.passes import REFRESH
from lbmtune.codegen.program import Program

_EACH = "#pragma unroll\n    for (int {0} = 0; {0} < {1}; ++{0}) {{\n"
_ALL = _EACH.format("i", "Q") + _EACH.format("v", "CELLS")
NEVER_STORED = f"""\
__device__ __forceinline__ bool never(const Real (&m)[CELLS][MOMENTS]) {{
    Real sum = 0;
{_EACH.format("v", "CELLS")}{_EACH.format("k", "MOMENTS")}        sum += m[v][k];
    }}}}
    return sum == unit * Real(1e20);
}}
"""


class Parts(NamedTuple):
    """The parts that a kernel has: it reads its state, and writes it."""

    reads: bool = True
    writes: bool = True


WHOLE = Parts()


def reading(parts: Parts, text: str, where: str) -> str:
    """Return the region "read" of a one-step kernel. where: an expression that differs from cell to cell."""
    if parts.reads:
        return text
    return f"""\
    const Real made = Real(1 + {where}) * (unit / 1048576);
{_ALL}        f[i][v] = made * (Q * v + i);
    }}}}"""


def writing(parts: Parts, text: str) -> str:
    """Return the region "write" of a one-step kernel."""
    if parts.writes:
        return text
    return f"""\
    Real sum = 0;
{_ALL}        sum += f[i][v];
    }}}}
    if (sum == unit * Real(1e20)) {{
{text}
    }}"""


def can_be_ablated(program: Program) -> bool:
    """Return whether parts of a program can be left out: it has one kernel per time step or launch.

    The module of its family says ABLATABLE if its `render` takes `Parts`.
    """
    one_kernel = not any(entry.startswith(REFRESH) for entry in program.entries)
    return one_kernel and getattr(_module(program), "ABLATABLE", False)


def ablated(program: Program, *, reads: bool, writes: bool) -> Program:
    """Return the program without its reads, its writes, or both."""
    found: Program = _module(program).render(program.case, program.config, Parts(reads, writes))
    return found


def _module(program: Program) -> Any:
    return module_of(f"lbmtune.codegen.{program.target}", program.config)
