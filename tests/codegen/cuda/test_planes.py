"""Kernels that take planes: which configurations have them, and what changes in their text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.cuda.planes import on_planes
from lbmtune.codegen.program import FIRST_PLANE, LAST_PLANE
from lbmtune.codegen.render import render
from lbmtune.decomposition.coupling import takes_planes
from tests.support.cuda_samples import flows, one_of_each_kind

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
        assert takes_planes(case, one) == (on_planes(render(case, one)) is not None), one
    assert found == ({True, False} if lattice == "d3q19" else {False})


def test_only_limits_along_z_change() -> None:
    case = flows("d3q19", "bgk")["grinder"]
    for _, one in one_of_each_kind("grinder"):
        if not takes_planes(case, one) or broken(case, one, Limits()):
            continue
        program = render(case, one)
        taking = on_planes(program)
        assert taking
        before, after = (code_of("cuda", each.source).splitlines() for each in (program, taking))
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert 2 * len(program.entries) <= len(changed) <= 4 * len(program.entries)
        assert all(FIRST_PLANE in new or LAST_PLANE in new for _, new in changed)
        whole = taking.scalars(case)
        assert (whole[FIRST_PLANE], whole[LAST_PLANE]) == (0, case.domain[2])
        assert FIRST_PLANE not in program.scalars(case)
