"""The time of output every n steps: density and velocity in a pass of their own, copied, saved and compared.

Source of the parts: de Oliveira, Lugarini, Franco 2019, section 4.2. Rates are measured; none is fitted.
"""

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import ceiling, predict
from lbmtune.records.output import RESIDUAL, SAVE, Output, OutputRates

_PLACE_BYTES, _WORD_BYTES = 8, 4
ROWS, GROUPS, CELLS, LISTED = "rows", "groups", "cells", "list"
"""Ways to read a value of neighbouring cells in the pass: by whole rows, groups of cells, one by one, or by a list."""
_COMPARED = 2
"""Velocities that a residual reads: those now and those before."""
Parts = dict[str, float]
"""Seconds of each part of an output, by name."""


def fields_bytes(case: Case, config: KernelConfig | None = None) -> int:
    """Return the bytes of density and velocity of all cells, in the compute precision; None: single precision."""
    return MACROSCOPIC_FIELDS * case.sites * (config.computed.bytes if config else 4)


def pass_bytes(case: Case, config: KernelConfig) -> float:
    """Return the bytes that the pass moves: values of the state, fields, and tables of the size of the domain.

    Moments that are neither density nor momentum are not read. A CPU fetches the lines of the fields before it writes
    them. With an index list the pass has a table of all places; cells with solid ones among them have a word each.
    """
    listed = config.place_source == "list"
    cells = case.fluid_sites if listed else case.sites
    each = _values(case, config) * (config.stored.bytes + listed * _PLACE_BYTES) + (
        0 if listed else bool(case.geometry) * _WORD_BYTES
    )
    written = MACROSCOPIC_FIELDS * config.computed.bytes * (1 + BACKENDS[config.backend].write_allocates)
    return cells * (each + written)


def _values(case: Case, config: KernelConfig) -> int:
    return 1 + case.stencil.dimensions if config.of_moments else case.stencil.q


def reading(case: Case, config: KernelConfig) -> str:
    """Return how the pass reads a value of neighbouring cells."""
    if config.place_source == "list":
        return LISTED
    layout, extents = config.memory, config.stored_extents(case)
    if layout.along_x(1, extents) - layout.along_x(0, extents) != 1:
        return CELLS
    return GROUPS if layout.run else ROWS


def _pass_s(case: Case, config: KernelConfig, bandwidth_bytes_per_s: float, rates: OutputRates) -> float:
    """Return the seconds of the pass: those of its bytes, or of its values if reading those takes longer."""
    fastest = [bandwidth_bytes_per_s]
    if rates.pass_bytes_per_s:
        fastest.append(rates.pass_bytes_per_s)
    threads: int = getattr(config, "threads", rates.threads)
    if rates.thread_pass_bytes_per_s:
        fastest.append(threads * rates.thread_pass_bytes_per_s)
    moved_s = pass_bytes(case, config) / min(fastest)
    rate = rates.pass_values_per_s.get(reading(case, config))
    if not rate:
        return moved_s
    cells = case.fluid_sites if config.place_source == "list" else case.sites
    return max(moved_s, cells * _values(case, config) * rates.threads / (threads * rate))


def output_parts(
    case: Case, config: KernelConfig, kind: str, bandwidth_bytes_per_s: float, rates: OutputRates, between_s: float
) -> Parts:
    """Return what an output adds to the time of the steps, in parts.

    between_s: seconds of the steps from one to the next, behind which a GPU hides the residual of the host. The threads
    of a CPU that compute one, as fast as their memory at most, are those of the kernel: it hides nothing.
    """
    fields = fields_bytes(case, config)
    velocities = fields * (MACROSCOPIC_FIELDS - 1) / MACROSCOPIC_FIELDS
    parts = {"pass": _pass_s(case, config, bandwidth_bytes_per_s, rates)}
    if kind in (SAVE, RESIDUAL) and rates.copy_bytes_per_s:
        parts["copy to the host"] = (fields if kind == SAVE else velocities) / rates.copy_bytes_per_s
    if kind == SAVE:
        parts["file"] = fields / rates.file_bytes_per_s
    if kind == RESIDUAL and rates.copy_bytes_per_s:
        parts["residual"] = max(0.0, velocities / rates.residual_bytes_per_s - between_s)
    elif kind == RESIDUAL:
        parts["residual"] = velocities / min(rates.residual_bytes_per_s, bandwidth_bytes_per_s / _COMPARED)
    return parts


def predicted_output(
    case: Case, config: KernelConfig, machine: Machine, rates: OutputRates, wanted: Output
) -> dict[str, tuple[Parts, float]]:
    """Return the seconds of each kind of output, in parts, and its share of the time of a run, by its name."""
    step_s, bandwidth = case.fluid_sites / (1e6 * predict(case, config, machine).mlups), ceiling(config, machine)
    found = {}
    for kind, every in wanted.intervals.items():
        parts = output_parts(case, config, kind, bandwidth.bytes_per_s, rates, every * step_s)
        event_s = sum(parts.values())
        found[kind] = parts, event_s / (every * step_s + event_s)
    return found
