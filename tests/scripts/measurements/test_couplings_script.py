"""The script that measures exchanges between GPUs, on host devices: proofs, rows, what is left, what failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lbmtune.api.machines.devices import limits_of
from lbmtune.api.machines.shipped import named_machine
from lbmtune.api.predicted.parallel import with_links
from lbmtune.catalogue.problem.flows import box
from lbmtune.decomposition.coupling import parse_coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.rules import refusal
from lbmtune.errors import InputError
from scripts.measurements.couplings import __main__ as script
from scripts.measurements.couplings.__main__ import Opened, main, measure, recorded_launch_s
from scripts.measurements.couplings.groups import GROUPS, SOA, Group, scaling
from scripts.measurements.couplings.measured import predictions
from tests.shim.device import QUICKLY_MADE, HostDevice, compile_on_host
from tests.shim.queues import Host

LIMITS = limits_of(named_machine("h100"))
COUPLINGS = ("transport=copy,overlap=none", "transport=copy", "transport=copy,edge_planes=99")
SMALL = Group("small", box("d3q19", "bgk", (64, 3, 4), 1.6), {**SOA, "scheme": "pull"}, COUPLINGS, devices=3)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host has no links that could be measured, and needs no long samples."""
    monkeypatch.setattr(script, "links", lambda *_: [])
    monkeypatch.setattr("lbmtune.measure.parts.race.GRAPH_ROUNDS", 1)


class Timed(HostDevice):
    """A host device with a clock, for which its speed is of no interest."""

    def time_s(self, run: Callable[[], None]) -> float:
        run()
        return 1e-4


def hosts(number: int) -> Opened:
    host = Host("random")
    return [Timed(host) for _ in range(number)], partial(compile_on_host, level=QUICKLY_MADE)


def test_groups_are_proved_timed_and_not_measured_again(tmp_path: Path) -> None:
    out = tmp_path / "couplings.json"
    assert measure(out, [SMALL], hosts(3), 100.0, 1, 1e-4) == 0
    document = json.loads(out.read_text())
    (group,) = document["groups"]
    assert (group["devices"], group["cut"], group["proof"]["worst"]) == (3, "z:3", 0)
    assert group["cells"] == [64 * 3 * 4, 3 * 64 * 3 * 4]
    assert [(one["transport"], one["overlap"]) for one in group["couplings"]] == [
        ("copy", "none"),
        ("copy", "edge-priority"),
    ]
    assert all(len(one["period_s"]) == 1 for one in group["couplings"])
    broken = replace(SMALL, name="broken", couplings=COUPLINGS[2:])
    assert measure(out, [SMALL, broken], hosts(3), 100.0, 1, 1e-4) == 1
    again = json.loads(out.read_text())
    assert again["groups"] == document["groups"]
    assert [name for name, _ in again["failed"]] == ["broken"]


def test_launches_of_a_prediction_follow_one_gpu_of_an_earlier_run() -> None:
    machine = with_links(named_machine("h100"))
    group = next(one for one in GROUPS if one.name == "moments fp32")
    launch_s = recorded_launch_s(group, "NVIDIA H100 80GB HBM3")
    assert launch_s
    by_model, followed = predictions(group, machine), predictions(group, machine, launch_s)
    assert by_model["own"] == 1
    assert followed["alone_s"] == pytest.approx(launch_s, rel=1e-3)
    assert followed["own"] == pytest.approx(launch_s / by_model["alone_s"], rel=0.05)
    first = str(parse_coupling(group.couplings[0]))
    assert followed["couplings"][first]["exchange_s"] == by_model["couplings"][first]["exchange_s"]
    assert recorded_launch_s(group, "NVIDIA A100") is None
    assert recorded_launch_s(replace(group, case=replace(group.case, lattice="d3q27")), machine.name) is None
    assert recorded_launch_s(replace(group, case=replace(group.case, domain=(64, 64, 64))), machine.name) is None


def test_no_group_begins_without_time(tmp_path: Path) -> None:
    assert measure(tmp_path / "out.json", [SMALL], hosts(3), 0.0) == 1


def test_scaling_has_cuts_that_are_legal() -> None:
    groups = [*scaling(8), *GROUPS]
    assert len({group.name for group in groups}) == len(groups)
    for group in groups:
        if group.along != "bisection":
            depth = group.launches * group.kernel.fused_steps
            assert refusal(group.whole, group.kernel, parse_cut(group.cut), LIMITS, depth) is None
        assert group.weak == (group.whole.domain != group.case.domain)


def test_shares_have_each_group_once() -> None:
    asked = [script.arguments(["out.json", "--share", f"{one}/3"]) for one in (1, 2, 3)]
    names = [group.name for each in asked for group in script.chosen(each)]
    assert sorted(names) == sorted(group.name for group in GROUPS)


@pytest.mark.parametrize("words", ["0/2", "3/2", "1", "a/b"])
def test_a_share_that_is_none_is_refused(words: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        script.arguments(["out.json", "--share", words])


def test_predictions_need_no_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--predict", "h100", "--group", "one-step fp32, 4 GPUs", "--devices", "4"]) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.startswith("| one-step fp32, 4 GPUs | z:4 | `transport=pack` | ")
    assert 0.9 < float(row.split(" | ")[4]) < 1.0
    with pytest.raises(InputError, match="no machine 'nothing'"):
        main(["--predict", "nothing"])
