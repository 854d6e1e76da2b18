"""Configurations by the knobs of version 0.1, for tests that draw them together: their family follows from them."""

from __future__ import annotations

from typing import Any

from lbmtune.catalogue.config import FAMILIES, KernelConfig, from_flat, knobs_by_name
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.family_knobs import layout_knobs
from lbmtune.catalogue.knobs import own_knobs, scalar
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.records.legacy import migrated


def old_cuda(**knobs: Any) -> Any:
    """Return the CUDA configuration that version 0.1 knew by these knobs."""
    return _old("cuda", knobs)


def old_cpu(**knobs: Any) -> Any:
    """Return the CPU configuration that version 0.1 knew by these knobs."""
    return _old("cpu", knobs)


def _old(backend: str, knobs: dict[str, Any]) -> KernelConfig:
    return from_flat(migrated({"backend": backend, **{name: scalar(value) for name, value in knobs.items()}}))


def varied(config: Any, **knobs: Any) -> Any:
    """Return a configuration with some knobs, or its family, changed; knobs that the family lacks are left out."""
    flat = {**config.flat(), **{name: scalar(value) for name, value in knobs.items()}}
    record = FAMILIES[config.backend][str(flat["family"])]
    kept = {name: value for name, value in flat.items() if name in knobs_by_name(record)}
    if "layout" in knobs:
        own = {one.name for one in own_knobs(LAYOUTS[str(flat["layout"])])}
        kept = {name: value for name, value in kept.items() if name not in layout_knobs(record) or name in own}
    return from_flat({"backend": config.backend, "family": flat["family"], **kept})


def refusal(case: Case, limits: Limits, config: Any, **knobs: Any) -> str:
    """Return why a configuration with some knobs changed is refused, by its record or by a rule; "" if it is legal."""
    try:
        changed = from_flat({**config.flat(), **{name: scalar(value) for name, value in knobs.items()}})
    except InputError as error:
        return str(error)
    return broken(case, changed, limits) or ""
