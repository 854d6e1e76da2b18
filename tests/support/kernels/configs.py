"""Configurations by flat knobs, for tests that draw them together or change some of them."""

from __future__ import annotations

from typing import Any

from lbmtune.catalogue.config import FAMILIES, KernelConfig, from_flat, knobs_by_name
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.family_knobs import layout_knobs
from lbmtune.catalogue.knobs import own_knobs, scalar
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError


def configured(record: type[KernelConfig], **knobs: Any) -> Any:
    """Return a configuration of a family by its knobs, those of its layout among them."""
    given = {name: scalar(value) for name, value in knobs.items()}
    return from_flat({"backend": record.backend, "family": record.family, **given})


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
