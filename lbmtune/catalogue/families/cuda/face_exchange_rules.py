"""What a kernel cannot be whose tiles leave at their faces what crosses them, and why."""

from __future__ import annotations

from collections.abc import Callable

from lbmtune.catalogue.config import HALOS, CudaConfig, defaults
from lbmtune.catalogue.families.cuda.face_exchange import tile_bytes
from lbmtune.catalogue.families.moment_rules import why_no_moments
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told
from lbmtune.units import format_bytes

_OWN = "a thread has one cell of the tile of its block"
_MARCH = "only blocks that march over tiles have them"
_FIXED = {
    "scheme": "populations exist within a launch alone, so that they are propagated in no other way",
    "wrap": "what comes around the box comes from a tile, as everywhere",
    "cells_per_thread": _OWN,
    "march": _OWN,
    "rows": _OWN,
    "pack": "each moment of a cell lies where the layout has it",
    "barrier": _MARCH,
    "pending": _MARCH,
    "beyond": _MARCH,
    "chunks": _MARCH,
    "prefetch": "a thread has no next cell to read",
    "boundary": "a cell reads again what it has sent itself",
    "load_hint": "its loads and stores are its own",
    "store_hint": "its loads and stores are its own",
    "l2_prefetch": "its loads and stores are its own",
    "block_order": "tiles are numbered in rows",
    "macroscopics": "moments are what is written anyway",
}
"""Axes that have no say, and why."""
_BUNDLES = ("bundle", "bundle-aosoa")


def why_not(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """The first reason, or None."""
    return next((reason for rule in _RULES if (reason := rule(case, config, limits))), None)


def _moments(case: Case, config: CudaConfig, _: Limits) -> str | None:
    if config.halo not in HALOS:
        return f"halo {config.halo!r}: {' and '.join(HALOS)} exist"
    if not config.of_moments:
        return f"halo {config.halo} with representation {config.representation}: tiles of moments have it"
    if config.steps > 1:
        when = "what crosses a face is there when a launch begins"
        return f"halo {config.halo} with steps {config.steps}: {when}; set steps=1"
    return None


def _other_axes(_case: Case, config: CudaConfig, _: Limits) -> str | None:
    usual = defaults("cuda")
    for name, reason in _FIXED.items():
        if getattr(config, name) != usual[name]:
            return f"{name} {getattr(config, name)} with halo {config.halo}: {reason}"
    if config.layout in _BUNDLES:
        return f"layout {config.layout} with halo {config.halo}: moments are no directions to be bundled"
    return None


def _physics(case: Case, config: CudaConfig, _: Limits) -> str | None:
    if reason := why_no_moments(case, config):
        return reason
    if where := told(case):
        return f"{where} with halo {config.halo}: its cells complete what arrives, which is not kept"
    if case.patches:
        return f"{case.patches[0].kind} patch with halo {config.halo}: its tiles know whole faces alone"
    if config.indirect:
        return f"halo {config.halo} with {config.addressing} addressing: tiles are cut out of a box"
    return None


def _copies(case: Case, config: CudaConfig, _: Limits) -> str | None:
    """What an asynchronous copy cannot bring to shared memory."""
    if config.copies_ahead and config.storage != config.compute:
        return (
            f"fetch {config.fetch} with storage {config.storage} and compute {config.compute}: a copy does not convert"
        )
    return None


def _on_chip(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    needed, allowed = tile_bytes(case.stencil, config), limits.shared_bytes_per_block
    if needed <= allowed:
        return None
    return (
        f"a tile of {extents(config.block)} needs {format_bytes(needed)} of shared memory; "
        f"a block here has {format_bytes(allowed)}"
    )


_RULES: tuple[Callable[[Case, CudaConfig, Limits], str | None], ...] = (
    _moments,
    _other_axes,
    _physics,
    _copies,
    _on_chip,
)
