"""Kernels with a part taken out, so that it shows what the others cost alone: reading, colliding, writing.

The text is that of the kernel itself: its regions `read` and `write` are replaced, and of marches what their loop
fetches and stores. What is read is made from the place of the cell instead; what would be written depends on a sum of
all values that no compiler can know, and never is. The case takes collision out (`catalogue.collisions.none`).
"""

from __future__ import annotations

import re
from dataclasses import replace

from lbmtune.catalogue.config import CudaConfig
from lbmtune.codegen.passes import REFRESH
from lbmtune.codegen.program import Program

_EACH = "#pragma unroll\n    for (int {0} = 0; {0} < {1}; ++{0}) {{\n"
_ALL = _EACH.format("i", "Q") + _EACH.format("v", "CELLS")
_MADE = f"""\
    const Real made = Real(1 + WHERE) * (unit / 1048576);
{_ALL}        f[i][v] = made * (Q * v + i);
    }}}}"""
_NEVER = f"""\
    Real sum = 0;
{_ALL}        sum += f[i][v];
    }}}}
    if (sum == unit * Real(1e20)) {{
"""
_NEVER_STORED = f"""\
__device__ __forceinline__ bool never(const Real (&m)[CELLS][MOMENTS]) {{
    Real sum = 0;
{_EACH.format("v", "CELLS")}{_EACH.format("k", "MOMENTS")}        sum += m[v][k];
    }}}}
    return sum == unit * Real(1e20);
}}
"""
_FETCHED = {
    "source + (from + row[r]), pitch, x)": "next_z + r",
    "source + (along_y(next_y, n) + x * PACK), pitch, x)": "next_y",
}
"""Where a march reads a row, and the number of that row."""
_CACHED = "source + (along_y(NUMBER & 3, n) + NEAR * PACK), pitch, NEAR)".replace("NEAR", "CELLS * int(threadIdx.x)")
"""The beginning of one of the first rows, which stay in the cache of each multiprocessor."""
_STORE = re.compile(r"store_cells\((m\[r\]|m), target")
_ENTRY = re.compile(r'^extern "C"', re.MULTILINE)


def can_be_alone(program: Program) -> bool:
    """Whether parts can be taken out: of one kernel per time step, and of marches."""
    config = program.config
    one_kernel = not any(entry.startswith(REFRESH) for entry in program.entries)
    return isinstance(config, CudaConfig) and one_kernel and not (config.resident or config.by_faces)


def alone(program: Program, *, reads: bool, writes: bool) -> Program:
    """The program without its reads, its writes, or both."""
    config = program.config
    assert isinstance(config, CudaConfig)
    text = _march(program.source, reads, writes) if config.marches else _one_step(program.source, reads, writes)
    return replace(program, source=text)


def _one_step(text: str, reads: bool, writes: bool) -> str:
    where = "site" if '"kernels/cuda/indirect.cu"' in text else "x + z"
    if not reads:
        text = _region("read").sub(lambda found: found[1] + _MADE.replace("WHERE", where), text)
    if not writes:
        text = _region("write").sub(lambda found: f"{found[1]}{_NEVER}{found[2]}\n    }}", text)
    return text


def _region(name: str) -> re.Pattern[str]:
    """A region of a printed text: its mark, and the lines up to the next one."""
    return re.compile(rf'(#line 1 "{name}"\n)(.*?)(?=\n#line |\Z)', re.DOTALL)


def _march(text: str, reads: bool, writes: bool) -> str:
    if not reads:
        for place, number in _FETCHED.items():
            text = text.replace(place, _CACHED.replace("NUMBER", number))
    if not writes:
        text = _STORE.sub(r"if (never(\1)) store_cells(\1, target", text)
        text = _ENTRY.sub(_NEVER_STORED + 'extern "C"', text, count=1)
    return text
