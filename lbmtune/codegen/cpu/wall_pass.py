"""Numba text of the pass that completes walls of second order after a step (kernels/cpu/passes/walls.py.in)."""

from lbmtune.catalogue.config import CpuConfig
from lbmtune.codegen.cpu.shared.module import codes, parallel_loop, signature
from lbmtune.codegen.program import LIST
from lbmtune.codegen.skeleton import filled


def text(config: CpuConfig) -> str:
    """Return the text of the pass, which stands after that of the kernel."""
    compute = config.computed.dtype
    types = f"{signature(config, ('field', LIST, LIST))}, {compute}[::1], int64"
    loop = parallel_loop(config)
    return "\n\n" + filled("passes/walls", compute=compute, codes=codes(config), signature=types, **loop)
