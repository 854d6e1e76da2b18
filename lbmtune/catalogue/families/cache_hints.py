"""Cache hints of CUDA loads and stores: names, and qualifiers of the PTX instructions.

Source: PTX ISA, instructions ld, ld.global.nc and st (cache operators, eviction priorities, prefetch sizes).
Eviction priorities need compute capability 7.0, prefetch sizes 7.5, that of 256 bytes 8.0. Write-back is the default of
stores, and evict-first assembles to the same code as streaming (sm_80, sm_90), so neither is a value.
"""

from collections.abc import Mapping

_OPERATORS: Mapping[str, str] = {"default": "", "streaming": ".cs", "l2-only": ".cg"}
STORE_HINTS: Mapping[str, str] = {**_OPERATORS, "no-allocate": ".L1::no_allocate"}
LOAD_HINTS: Mapping[str, str] = {**STORE_HINTS, "evict-last": ".L1::evict_last"}
L2_PREFETCHES = (0, 64, 128, 256)


def load_instruction(hint: str, prefetch_bytes: int, *, constant: bool) -> str:
    """Return the load without its type. constant: the memory is read-only during the launch."""
    operator, priority = (LOAD_HINTS[hint], "") if hint in _OPERATORS else ("", LOAD_HINTS[hint])
    prefetch = f".L2::{prefetch_bytes}B" if prefetch_bytes else ""
    return f"ld.global{operator}{'.nc' if constant else ''}{priority}{prefetch}"


def store_instruction(hint: str) -> str:
    """Return the store without its type."""
    return f"st.global{STORE_HINTS[hint]}"
