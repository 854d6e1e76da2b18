"""Estimate from case, configuration and machine, without a device: costs, the model, and a case in words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.operation_counts import flops_per_update
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import predict
from lbmtune.report.tables import subject

if TYPE_CHECKING:
    from lbmtune.measure.workers.pipeline import Predict


def costs(case: Case, config: KernelConfig) -> dict[str, float]:
    """Return bytes per update, operations per update and per byte, the footprint in bytes, and the fluid cells."""
    moved, operations = bytes_per_update(case, config), flops_per_update(case)
    return {
        "bytes_per_update": moved,
        "flops_per_update": operations,
        "flops_per_byte": operations / moved,
        "footprint_bytes": footprint_bytes(case, config),
        "fluid_cells": case.fluid_sites,
    }


def case_summary(case: Case) -> str:
    """Return a case in words: 'D3Q19 BGK box, 24 x 24 x 24 cells'."""
    return subject(case, [])


def predictor(case: Case, machine: Machine) -> Predict:
    """Return the model of a case on a machine: configuration -> Prediction."""
    return partial(predict, case, machine=machine)
