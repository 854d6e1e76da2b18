"""The storage format of a kernel as C text: types, conversion and cache hints."""

from __future__ import annotations

from lbmtune.catalogue.cache_hints import load_instruction, store_instruction
from lbmtune.catalogue.config import CudaConfig
from lbmtune.codegen.cuda.shared import entry
from lbmtune.codegen.cuda.shared.assemble import fill, variants


def has_hints(config: CudaConfig) -> bool:
    """Return whether loads or stores of a one-step kernel carry cache hints."""
    return (config.load_hint, config.store_hint, config.l2_prefetch) != ("default", "default", 0)


def hinted_format(config: CudaConfig) -> str:
    """Return the storage format of a one-step kernel, whose loads and stores may carry cache hints."""
    if not has_hints(config):
        return stored_format(config, config.cells_per_thread)
    in_place = config.propagation.in_place
    hints = (
        f'#define LOAD "{load_instruction(config.load_hint, config.l2_prefetch, constant=not in_place)}"',
        f'#define STORE "{store_instruction(config.store_hint)}"',
        f"#define IN_PLACE {int(in_place)}",
    )
    plain = stored_format(config, config.cells_per_thread)
    return "\n".join(("namespace plain {", plain, "}", fill("shared/cache_hints.cu", {"hints": "\n".join(hints)})))


def stored_format(config: CudaConfig, cells: int) -> str:
    """Return the type of stored values, and how vectors of `cells` of them are widened and narrowed."""
    pairs = f"typedef {_vector('uint', max(cells // 2, 1))} Vector;"
    if config.storage == "fp16s":
        return fill("shared/storage_half.cu", {"vector": pairs})
    if config.stored.codes:
        conversion = fill(f"shared/{config.storage}.cu", {})
        return fill("shared/storage_codes.cu", {"vector": pairs, "conversion": conversion})
    stored = entry.real(config.storage)
    types = f"typedef {stored} Stored;\ntypedef {_vector(stored, cells)} Vector;"
    return fill("shared/storage_plain.cu", {"stored": types})


def _vector(element: str, length: int) -> str:
    return f"{element}{length}" if length > 1 else {"uint": "unsigned int"}.get(element, element)


def async_copies(*, past_l1: bool = False) -> str:
    """Return the functions of asynchronous copies to shared memory; past_l1: copies of 16 bytes bypass L1."""
    name = "shared/async_copies.cu"
    return fill(name, {"variants": "", **(variants(name, {}) if past_l1 else {})})


def copy_groups() -> str:
    """Return the functions of asynchronous copies that are waited for by group."""
    return fill("shared/copy_groups.cu", {"copies": async_copies()})
