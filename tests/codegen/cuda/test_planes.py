"""Kernels that take planes: which configurations have them, and what changes in their text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.program import FIRST_PLANE, LAST_PLANE
from lbmtune.codegen.render import render, render_on_planes
from lbmtune.decomposition.coupling import takes_planes
from tests.support.kernels.configs import configured
from tests.support.kernels.cuda_samples import Sample, config, flows, one_of_each_kind

FLOWS = ("box", "grinder")


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("lattice", ["d2q9", "d3q19"])
def test_a_kernel_takes_planes_if_its_configuration_says_so(lattice: str, flow: str) -> None:
    case = flows(lattice, "bgk")[flow]
    configs = [one for made, one in one_of_each_kind(flow) if made.lattice == lattice]
    configs += [replace(one, wrap="ghost") for one in configs]
    legal = [one for one in configs if broken(case, one, Limits()) is None]
    found = {takes_planes(case, one) for one in legal}
    for one in legal:
        assert takes_planes(case, one) == (render_on_planes(render(case, one)) is not None), one
    assert found == ({True, False} if lattice == "d3q19" else {False})


def others() -> Iterator[Sample]:
    """Columns, tiles and kernels with output: each skeleton that has limits along z."""
    ahead = ({}, {"prefetch_cells": 1}, {"prefetch_cells": 2}, {"prefetch_cells": 2, "prefetch_to": "shared"})
    columns: Iterator[Any] = (config(family="column", z_cells=4, **knobs) for knobs in ahead)
    schedules, kept = ("uniform", "tapered"), ("moments", "populations")
    tiles = (
        configured(cuda.TemporalBlocking, representation=one, steps=2, block=(32, 8, 1), chunk_schedule=schedule)
        for one, schedule in product(kept, schedules)
    )
    output = (config(scheme=scheme, macroscopics="every-step") for scheme in ("pull", "aa"))
    for one in (*columns, *tiles, *output):
        yield flows("d3q19", "regularised")["channel"], one


def test_only_limits_along_z_change() -> None:
    direct = [(case, one) for case, one in one_of_each_kind("grinder") if takes_planes(case, one)]
    for case, one in (*direct, *others()):
        assert broken(case, one, Limits(asynchronous=True)) is None, one
        program = render(case, one)
        taking = render_on_planes(program)
        assert taking
        before, after = (code_of("cuda", each.source).splitlines() for each in (program, taking))
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert len(changed) == (4 if one.family == "column" else 3) * program.source.count('extern "C"')
        assert all(FIRST_PLANE in new or LAST_PLANE in new for _, new in changed)
        whole = taking.scalars(case)
        assert (whole[FIRST_PLANE], whole[LAST_PLANE]) == (0, case.domain[2])
        assert FIRST_PLANE not in program.scalars(case)
        assert taking.entries == program.entries
