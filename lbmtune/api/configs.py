"""Configurations given as a record, as a dict of knobs, or as text: 'scheme=aa,block=256x1x1'."""

import logging
from collections.abc import Mapping

from lbmtune.catalogue.config import (
    DEFAULT_FAMILY,
    FAMILIES,
    KernelConfig,
    Scalar,
    backend_knobs,
    completed,
    flat_values,
    from_flat,
)
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.family_knobs import knobs_by_name
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.records.legacy.configurations import DEFAULTS, family_meant, gone, is_legacy, migrated, name_in

LOG = logging.getLogger("lbmtune")
Config = KernelConfig | Mapping[str, Scalar] | str
_BLOCKS = ("128x1x1", "64x1x1", "32x1x1", "32x4x1", "32x8x1")
"""Blocks that are tried, in this order, if the default one is illegal; the last for kernels of moments."""


def config_of(config: Config, case: Case, limits: Limits, backend: str) -> KernelConfig:
    """Return the record of a configuration; knobs that are not given have their defaults.

    backend: of a configuration that names none. Raises InputError for unknown knobs and values.
    """
    if isinstance(config, KernelConfig):
        return config
    values = parse_values(config) if isinstance(config, str) else dict(config)
    values = current_values({"backend": backend_of_knobs(values) or backend, **values})
    return fitted(case, completed(values, limits), limits)


def legal_config(config: Config, case: Case, limits: Limits, backend: str) -> KernelConfig:
    """Return the record of a configuration (`config_of`). Raises InputError with the reason if it is illegal."""
    if case.geometry:
        from lbmtune.catalogue.problem.geometry import check_solid  # here: arrays are not needed otherwise

        check_solid(case)
    found = config_of(config, case, limits, backend)
    if reason := broken(case, found, limits):
        raise InputError(f"illegal configuration: {reason}.")
    return found


def parse_values(text: str) -> dict[str, Scalar]:
    """Return the knobs of 'scheme=aa,block=256x1x1' with their values as texts. Raises InputError."""
    values = flat_values(text)
    if not values:
        raise InputError("the configuration is empty; write for example scheme=aa, a trial's key, or a best.json.")
    return values


def config_text(config: KernelConfig) -> str:
    """Return the text that is read back as the configuration, without the default family."""
    return ",".join(part for part in config.said.split(",") if part != f"family={DEFAULT_FAMILY}")


def backend_of_knobs(values: Mapping[str, Scalar]) -> str | None:
    """Return the backend that a configuration names, or the only one that has its family or a knob; else None."""
    if "backend" in values:
        return str(values["backend"])
    given = {*values, f"family={values.get('family')}"}
    names = {one: {*known_names(one), *(f"family={name}" for name in FAMILIES[one])} for one in FAMILIES}
    shared = set.intersection(*names.values())
    return next((backend for backend, mine in names.items() if (mine - shared) & given), None)


def known_names(backend: str) -> set[str]:
    """Return the names of a backend's knobs, with those of version 0.1."""
    return {*backend_knobs(backend), *DEFAULTS[backend]}


def current_values(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return flat values by the names of today, with a family. Raises InputError.

    Those of version 0.1 are translated, with a note; a family that follows from names of today is told.
    """
    if not is_legacy(values):
        _check_names(values)
        return dict(values)
    if found := _with_family(values):
        return found
    try:
        now = migrated(values)
    except InputError as error:
        raise _illegible(values, error) from error
    backend = str(values["backend"])
    off = {name for name, value in now.items() if name not in values and str(value).startswith("0x")}
    if off and not gone(backend) & values.keys():  # no configuration of version 0.1 that could be run
        return dict(values)
    known = backend_knobs(backend)
    said = {
        name: value
        for name, value in now.items()
        if name in ("backend", "family") or name in values or value != known[name].default
    }
    LOG.info(
        "without a family this is read as a configuration of version 0.1; today: %s",
        ",".join(f"{n}={v}" for n, v in said.items()),
    )
    return said


def _with_family(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return values by names of today with the family that they stand for, if no other one has all of these knobs."""
    backend = str(values.get("backend", "cuda"))
    if backend not in FAMILIES:
        return {}
    meant = family_meant({**DEFAULTS[backend], **values}, backend)
    found = {"family": meant, **values}
    try:
        from_flat(found)
    except InputError:
        return {}
    if _families_with(values, backend) != [meant]:
        return {}
    LOG.info(
        "family=%s is taken, for which %s stands without a family; say family=NAME for another", meant, _said(values)
    )
    return found


def _families_with(values: Mapping[str, Scalar], backend: str) -> list[str]:
    """Return the families that have all of these knobs."""
    names = {*values} - {"backend"}
    return [name for name, record in FAMILIES[backend].items() if names <= knobs_by_name(record).keys()]


def _said(values: Mapping[str, Scalar]) -> str:
    return ",".join(f"{name}={value}" for name, value in values.items() if name != "backend")


def _illegible(values: Mapping[str, Scalar], error: InputError) -> InputError:
    """Return the error for values that are of no family: by the names of today, if all of them are."""
    backend = str(values.get("backend", "cuda"))
    if backend not in FAMILIES or gone(backend) & values.keys():
        return InputError(f"without a family this is read as a configuration of version 0.1: {error}")
    meant = family_meant({**DEFAULTS[backend], **values}, backend)
    has = knobs_by_name(FAMILIES[backend][meant])
    lacking = {name: value for name, value in values.items() if name not in has and name != "backend"}
    if not lacking:
        return error
    having = " or ".join(f"family={name}" for name in _families_with(values, backend))
    others = _said({name: value for name, value in values.items() if name in has})
    return InputError(
        f"{_said(lacking)} is not supported for family {meant} (use "
        f"{having or f'fewer: no family of {backend} has all of these knobs'}): without a family {others} stands for "
        "that one."
    )


def _check_names(values: Mapping[str, Scalar]) -> None:
    """Refuse names of version 0.1 beside a family, with their names of today. Raises InputError."""
    backend = str(values.get("backend", "cuda"))
    record = FAMILIES.get(backend, {}).get(str(values.get("family", DEFAULT_FAMILY)))
    if record is None:
        return
    now, known = knobs_by_name(record), backend_knobs(backend)
    for old in (name for name in values if name in DEFAULTS[backend] and name not in known):
        today = name_in(now, old)
        instead = f"say {today.name}" if today else "lbmtune list shows those of today"
        raise InputError(f"{old} is a knob of version 0.1, which family {record.family} does not have; {instead}.")


def fitted(case: Case, values: Mapping[str, Scalar], limits: Limits) -> KernelConfig:
    """Return the configuration; if no block is given and the default one is illegal, with the first legal one.

    The default block may cover a short row twice, and kernels of moments need other blocks.
    """
    usual = from_flat(values)
    if "block" in values or "block" not in usual.flat() or not broken(case, usual, limits):
        return usual
    blocks = (from_flat({**values, "block": block}) for block in _BLOCKS)
    return next((config for config in blocks if not broken(case, config, limits)), usual)
