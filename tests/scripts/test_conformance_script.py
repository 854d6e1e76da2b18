"""The script that checks every pair of choices: what one kernel does to its process is no other kernel's fault."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.families.rules import cuda_limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from scripts import conformance
from tests.shim.device import HostDevice
from tests.support.conformance.covering import Covering

DEADLY = (3, 4)


def judged(sample: int) -> str | None:
    if sample in DEADLY:
        os._exit(1)
    return "wrong" if sample == 6 else None


def test_a_kernel_that_ends_its_process_is_wrong_and_the_others_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "on_cpu", judged)
    found = list(conformance.in_parallel(range(8), "cpu", 2))
    dead = "ends its process"
    assert found == [None, None, None, dead, dead, None, "wrong", None]


def test_what_a_smaller_device_cannot_launch_is_left_out_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    fits = box("d3q19", "bgk", (64, 8, 8), 1.2), cuda.Direct(block=(64, 1, 1))
    needy = (
        box("d3q19", "regularised", (64, 64, 64), 1.2),
        cuda.TemporalBlocking(block=(32, 12, 1), chunk_planes=1, plane_fetch="none", representation="moments", steps=5),
    )
    both = Covering((fits, needy), (), 1)
    assert conformance.launched_on(cuda_limits("sm_90", 132, 2**36), both) == both
    assert capsys.readouterr().out == ""
    assert conformance.launched_on(cuda_limits("sm_75", 40, 2**34), both).samples == (fits,)
    said = capsys.readouterr().out
    assert said.startswith(f"skipped on this device: d3q19 box regularised {needy[1].brief}: ")
    assert "65,536" in said


@pytest.mark.parametrize(("mended", "wrong"), [(True, 0), (False, 1)])
def test_what_the_assembler_spoils_is_counted_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mended: bool, wrong: int
) -> None:
    """A wrong kernel is one of the assembler's only where the same text is right when assembled otherwise."""
    sample = Case("box", "d3q19", "bgk", (8, 8, 8), 1.2), cuda.Direct()

    def reassembled(environment: object, program: Program) -> Iterator[tuple[str, str]]:
        assert program == render(*sample)
        yield from (("ptxas -O1", "better"), ("ptxas -O0", "best"))

    def verified(program: Program, binary: object, device: object) -> str | None:
        return None if mended and binary == "best" else "wrong: 1.0 above 0.1"

    def on_gpu(*_: object) -> Iterator[str]:
        yield conformance._told_apart(render(*sample), "wrong: 1.0 above 0.1", HostDevice())

    monkeypatch.setattr(conformance, "reassembled", reassembled)
    monkeypatch.setattr(conformance, "_verified", verified)
    monkeypatch.setattr(conformance, "on_gpu", on_gpu)
    assert conformance.check("0", Covering((sample,), (), 1), 1, 1) == wrong
    printed = capsys.readouterr().out
    assert f"{wrong} wrong" in printed
    assert (f"1 {conformance.MISASSEMBLED}" in printed) == mended
    assert (f"{conformance.MISASSEMBLED}, right by ptxas -O0: wrong: 1.0 above 0.1" in printed) == mended
