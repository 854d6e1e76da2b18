"""Hints name the knobs that act on what a kernel loses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.catalogue.config import KernelConfig, backend_knobs, cpu, cuda
from lbmtune.model.predict import CPU_TERMS, TERMS
from lbmtune.model.tuning_hints import KNOBS_OF, worth_varying
from lbmtune.records import Prediction, Term


def predicted(*names: str) -> Prediction:
    """Terms of these names, the largest first."""
    terms = tuple(
        Term(name=name, seconds=1e-11 / (n + 1), sentence="so much", source="made up") for n, name in enumerate(names)
    )
    return Prediction(
        mlups=1.0,
        bytes_per_update=1.0,
        bandwidth_bytes_per_s=1.0,
        footprint_bytes=1,
        limit="",
        ceiling_source="",
        terms=terms,
    )


def test_every_term_of_the_model_has_axes_and_each_is_one_of_the_backend() -> None:
    assert KNOBS_OF["cpu"].keys() == {"memory", "wall pass", *CPU_TERMS}
    assert KNOBS_OF["cuda"].keys() == {"memory", *TERMS} - set(CPU_TERMS)
    for backend, terms in KNOBS_OF.items():
        known = {*backend_knobs(backend)}
        for term, axes in terms.items():
            assert axes, term
            assert set(axes) <= known, term
            assert len(set(axes)) == len(axes), term


@pytest.mark.parametrize(
    ("terms", "config", "found"),
    [
        (["launch", "memory"], cuda.Direct(), ("launch", ("launch",))),
        (["in place"], cuda.Direct(), ("in place", ("block", "cells_per_thread", "scheme"))),
        # one cell after another is read ahead, and one alone is not
        (["latency"], cuda.Direct(), ("latency", ("register_limit",))),
        (["latency"], cuda.Column(), ("latency", ("z_cells", "register_limit", "prefetch_cells"))),
        # none of the first acts, so that the second is told
        (["index prefetch", "launch"], cuda.Direct(), ("launch", ("launch",))),
        (["grid sync"], cuda.Direct(), ("grid sync", ("block",))),
        (["refills"], cpu.Direct(), ("refills", ("padding", "row_padding", "stride", "layout"))),
        (["of another version"], cuda.Direct(), ("", ())),
        ([], cuda.Direct(), ("", ())),
    ],
)
def test_axes_that_act_are_told_of_the_largest_term_that_has_some(
    terms: list[str], config: KernelConfig, found: tuple[str, tuple[str, ...]]
) -> None:
    assert worth_varying(predicted(*terms), config) == found


def test_what_is_told_does_not_depend_on_what_the_axes_stand_at() -> None:
    for value in (32, 64):
        config = replace(cuda.Direct(), block=(value, 1, 1))
        assert worth_varying(predicted("waves"), config) == ("waves", ("block",))
