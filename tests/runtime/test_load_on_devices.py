"""A best.json on several devices: the flow of one device, in parts that exchange, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
import pytest

import lbmtune
from lbmtune.backend.ranks import Rank
from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.export import write_best
from lbmtune.runtime import load as loading
from tests.records.best_json.test_export import CPU, cpu_record
from tests.runtime.parts.test_decomposed import ROUNDING, case_named, config, needs_compiler, tiles, words
from tests.runtime.parts.test_ranks import Mailbox, OneAtATime
from tests.shim.device import HostDevice, compile_on_host
from tests.shim.queues import Host
from tests.support.studies import made_up_records as made

pytestmark = [
    pytest.mark.filterwarnings("ignore:this kernel was tuned"),
    pytest.mark.filterwarnings("ignore:the kernel of .* was not verified on the whole domain"),
]
TWO = ["cpu", "cpu"]


@pytest.fixture
def shims(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs of one host by their numbers; kernels are compiled for the host."""
    host, known = Host("random"), dict[str, HostDevice]()
    monkeypatch.setattr(loading, "open_device", lambda name: known.setdefault(name, HostDevice(host)))
    monkeypatch.setattr(loading, "compiler_for", lambda _: compile_on_host)


def gpu_file(folder: Path, case: Case, one: KernelConfig) -> Path:
    study = made.gpu_study()
    source = render(case, one).digest
    trial = replace(study.ranked[0], config=one.flat(), key=one.key, source_digest=source, final=None)
    header = replace(study.header, spec=replace(study.header.spec, case=case))
    write_best(replace(study, header=header, trials=(trial,)), folder / "best.json")
    return folder / "best.json"


def cpu_file(folder: Path, case: Case) -> Path:
    write_best(cpu_record(case, replace(CPU, **words(case))), folder / "best.json")  # type: ignore[arg-type]
    return folder / "best.json"


@needs_compiler
def test_each_rank_has_its_part_of_the_flow(shims: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_named("grinder")
    file = gpu_file(tmp_path, case, config(scheme="aa", storage="fp64", block=(4, 2, 1)))
    alone, mailbox = lbmtune.load(file, 0), Mailbox(2)
    alone.step(4)
    assert alone.held is None
    monkeypatch.setattr(loading, "open_device", lambda _: OneAtATime())
    monkeypatch.setattr("lbmtune.runtime.gathered.joined", lambda place: mailbox.of(place.number))
    here = local()
    monkeypatch.setattr(loading, "this_rank", lambda: here.rank)

    def run(number: int) -> Any:
        here.rank = Rank(number, 2, number)
        flow = lbmtune.load(file, ranks=True, cut="z:2")
        flow.step(4)
        assert "2 x host, 2 parts, cut=z:2" in repr(flow)
        fields = flow.populations(), *flow.macroscopic()
        assert (np.isfinite(fields[1]) == flow.held).all()
        return fields

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, range(2)))
    for expected, first, second in zip((alone.populations(), *alone.macroscopic()), *found, strict=True):
        assert (np.isnan(first) != np.isnan(second)).all()
        assert np.array_equal(np.where(np.isnan(first), second, first), expected)


def test_ranks_go_with_no_other_device(tmp_path: Path) -> None:
    file = cpu_file(tmp_path, case_named("box"))
    with pytest.raises(
        InputError, match=r"devices=\['cpu', 'cpu'\] does not go with ranks=True; leave one of them out"
    ):
        lbmtune.load(file, devices=TWO, ranks=True)
    with pytest.raises(InputError, match="device=cpu does not go with ranks=True"):
        lbmtune.load(file, "cpu", ranks=True)


def same(one: Any, other: Any, apart: float = 0.0) -> None:
    fluid = ~solid_in(one.case, whole(one.case.domain))
    np.testing.assert_allclose(other.populations()[:, fluid], one.populations()[:, fluid], rtol=0.0, atol=apart)
    for expected, found in zip(one.macroscopic(), other.macroscopic(), strict=True):
        np.testing.assert_allclose(found[..., fluid], expected[..., fluid], rtol=0.0, atol=apart)


@pytest.mark.parametrize(("flow", "cut"), [("grinder", "y:3"), ("sphere", ""), ("channel", "1x2x2")])
def test_parts_on_a_processor_are_the_flow_of_one_device(tmp_path: Path, flow: str, cut: str) -> None:
    file = cpu_file(tmp_path, case_named(flow))
    parts = {"": 3, "y:3": 3, "1x2x2": 4}[cut]
    alone, several = lbmtune.load(file, "cpu"), lbmtune.load(file, devices=["cpu"] * parts, cut=cut)
    for flowing in (alone, several):
        flowing.initialise(velocity=(0.02, -0.01, 0.03))
        flowing.step(5)
        flowing.relaxation_rate = 1.7
        flowing.step(4)
    assert np.abs(alone.velocity()).max() > 1e-3
    same(alone, several)
    assert several.steps_done == 9
    assert f"{parts} parts, cut=" in repr(several)
    assert several.time_per_step_s(3) > 0
    assert several.steps_done == 12


@needs_compiler
@pytest.mark.usefixtures("shims")
def test_two_gpus_hide_the_exchange_and_take_another_force(tmp_path: Path) -> None:
    file = gpu_file(tmp_path, case_named("grinder"), config(scheme="aa", storage="fp64", block=(4, 2, 1)))
    alone, several = lbmtune.load(file, "0"), lbmtune.load(file, devices=[0, 1], cut="z:2")
    coupling = several._simulation._schedule.coupling  # type: ignore[union-attr]
    assert (coupling.transport, coupling.overlap) == ("pack", "edge-priority")
    for flowing in (alone, several):
        flowing.step(3)
        flowing.force = (0.0, 2e-4, 1e-4)
        flowing.step(4)
    same(alone, several)


@needs_compiler
@pytest.mark.usefixtures("shims")
def test_launches_of_several_steps_are_whole(tmp_path: Path) -> None:
    case = replace(case_named("box", collision="regularised"), domain=(33, 23, 41))
    file = gpu_file(tmp_path, case, tiles(representation="moments", steps=2))
    several, alone = lbmtune.load(file, devices=[0, 1], coupling="transport=copy,overlap=none"), lbmtune.load(file, "0")
    for flowing in (alone, several):
        flowing.step(4)
    same(alone, several, ROUNDING)
    with pytest.raises(InputError, match=r"steps=3 is not supported \(use a multiple of 2\): parts exchange after"):
        several.step(3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"devices": TWO, "device": "cpu"}, r"device=cpu does not go with devices=\['cpu', 'cpu'\]"),
        ({"devices": []}, r"devices=\[\] is not supported \(use one device for each part\)"),
        ({"devices": TWO, "trusted": True}, "trusted=True is not supported for several devices"),
        ({"cut": "z:2"}, r"cut=z:2 is not supported for one device \(give devices=\[0, 1\]\)"),
        ({"coupling": "overlap=none"}, "coupling=overlap=none is not supported for one device"),
        ({"devices": TWO, "cut": "z:3"}, "cut=z:3 is not supported for 2 parts"),
        ({"devices": ["cpu"] * 50, "cut": "z:50"}, "it has more parts than planes"),
        ({"devices": TWO, "coupling": "transport=pack"}, "transport=pack is not supported for backend=cpu"),
        ({"devices": TWO, "coupling": "overlap=edge-first"}, "overlap=edge-first is not supported for family=direct"),
        ({"devices": ["cpu", "0"]}, "device=0 is not supported for"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_rule(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        lbmtune.load(cpu_file(tmp_path, case_named("box")), **given)


@needs_compiler
def test_devices_of_one_kind_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Card(HostDevice):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.environment = replace(HostDevice.environment, device="H100" if name == "0" else "A100")  # type: ignore[misc]

    monkeypatch.setattr(loading, "open_device", Card)
    file = gpu_file(tmp_path, case_named("box"), config(scheme="aa", storage="fp64", block=(4, 2, 1)))
    with pytest.raises(InputError, match=r"devices=0,1 is not supported \(use devices of one kind\): A100 and H100"):
        lbmtune.load(file, devices=[0, 1])
