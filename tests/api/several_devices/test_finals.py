"""Finals of a study on several devices: on parts of one processor, and on two GPUs that the host stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lbmtune
from lbmtune.api.several_devices import finals
from lbmtune.api.several_devices import parts as several
from lbmtune.api.several_devices.finals import check_parts, hold_finals_on_parts, suited, time_for_parts
from lbmtune.api.studies.results import Study
from lbmtune.catalogue.config import KernelConfig, cpu, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.render import render
from lbmtune.decomposition.coupling import Coupling
from lbmtune.errors import InputError, NothingValidError
from lbmtune.export.on_parts import edge_limits, sent_links
from lbmtune.measure.parts.proof import Agreement
from lbmtune.measure.parts.race import Coupled, Race
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Outcome
from lbmtune.records.best_json.document import read_best
from lbmtune.records.best_json.domain import evaluated
from lbmtune.records.parts import PartsAsked, ranked_parts
from lbmtune.records.store import append_trial, read_study, write_header
from lbmtune.records.whole_files import PARTS
from lbmtune.report.study.on_parts import parts_rows, parts_text
from lbmtune.search.clock import Clock, now
from lbmtune.search.interfaces import Observer
from lbmtune.search.spaces.space import Space
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.shim.queues import Host
from tests.support.paths import RECORDED
from tests.support.studies import made_up_records as made

pytestmark = pytest.mark.filterwarnings("ignore:this kernel was tuned")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
MACHINE = read_machine(RECORDED / "nvidia-h100" / "machine.toml")
CASE = box("d3q19", "bgk", (16, 18, 20), 1.3)
TWO = PartsAsked(devices=("cpu", "cpu"))
AA = cpu.Direct(scheme="aa", storage="fp64", compute="fp64", vector_bits=0, threads=1)
PULL = replace(AA, scheme="pull")


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finals, "_SAMPLE_S", 0.001)


def folder_of(folder: Path, case: Case, configs: Sequence[KernelConfig], asked: PartsAsked) -> Path:
    """A study whose search is over: a proven trial for each configuration."""
    record = made.cpu_study() if configs[0].backend == "cpu" else made.gpu_study()
    header = replace(record.header, spec=replace(record.header.spec, case=case), parts=asked, finished=True)
    write_header(folder, header)
    first = record.ranked[0]
    for number, config in enumerate(configs):
        verified = first.verification and replace(first.verification, full_size=True)
        source = render(case, config).digest
        append_trial(
            folder,
            replace(
                first,
                number=number,
                config=config.flat(),
                key=config.key,
                source_digest=source,
                verification=verified,
                final=None,
                measurement=first.measurement and replace(first.measurement, mlups=1000.0 - number),
            ),
        )
    return folder


def held(folder: Path, limit_s: float = 1e9) -> tuple[str, ...]:
    return hold_finals_on_parts(folder, MACHINE, Clock(now(), limit_s), Observer())


def test_kernels_and_cuts_are_proved_and_timed_beside_one_device(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, CASE, [AA, PULL], TWO)
    assert held(folder) == ()
    record = read_study(folder)
    tried = {(one.key, one.cut) for one in record.on_parts}
    assert tried == {(config.key, cut) for config in (AA, PULL) for cut in ("z:2", "y:2")}
    ok = ranked_parts(record.on_parts)
    assert {one.outcome for one in record.on_parts} == {Outcome.OK, Outcome.ILLEGAL}
    for one in ok:
        assert one.compared
        assert (one.compared.different, one.compared.worst) == (0.0, 0.0)
        assert len(one.period_s) == len(one.alone_s) >= 5
        assert one.sites == one.alone_sites == CASE.sites
    speeds = [one.mlups or 0.0 for one in ok]
    assert speeds == sorted(speeds, reverse=True)
    refused = [one.reason for one in record.on_parts if one.outcome is Outcome.ILLEGAL]
    assert any("transport=pack is not supported for backend=cpu" in reason for reason in refused)
    assert any("overlap=edge-first is not supported for family=direct" in reason for reason in refused)


def test_best_json_carries_cut_exchange_and_overlap_and_runs_so(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, CASE, [AA, PULL], TWO)
    held(folder)
    record = read_study(folder)
    assert record.winner_on_parts
    best, study = record.winner_on_parts[0], Study(folder)
    file = read_best(study.export())
    assert file.key == best.key
    assert file.parts
    assert (file.parts.devices, file.parts.cut, file.parts.domain) == (2, best.cut, CASE.domain)
    assert (file.parts.coupling.transport, file.parts.coupling.overlap) == ("copy", "none")
    assert file.parts.mlups == pytest.approx(best.mlups)
    flow = lbmtune.load(study.folder / "best.json", devices=["cpu", "cpu"])
    flow.step(2)
    assert f"cut={best.cut}" in repr(flow)
    axis = "xyz".index(best.cut[0])
    first = file.parts.first_cell
    assert first
    numbers = dict(zip(("nx", "ny", "nz"), CASE.domain, strict=True))
    starts = [evaluated(first[axis], {**numbers, "p": p}) for p in (0, 1, 2)]
    assert starts == [0, CASE.domain[axis] // 2, CASE.domain[axis]]
    text = study.report().read_text()
    assert "One period on several devices" in text
    assert f"cut={best.cut}" in text


def test_the_report_says_what_each_coupling_took(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, CASE, [AA], replace(TWO, cut="z:2"))
    held(folder)
    record = read_study(folder)
    rows = parts_rows(record)
    assert len(rows) == len(record.on_parts)
    assert rows[0]["beside one device"].startswith("equal bit for bit on ")
    assert rows[-1]["MLUPS"] == "-"
    assert rows[-1]["beside one device"].startswith("illegal: ")
    assert f"{AA.key}, cut=z:2, overlap=none" in parts_text(record)


def test_what_was_tried_is_not_tried_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, CASE, [AA, PULL], replace(TWO, cut="z:2"))
    held(folder)
    lines = (folder / PARTS).read_text().splitlines()
    (folder / PARTS).write_text("\n".join(line for line in lines if PULL.key not in line) + "\n" + lines[-1][:40])
    held(folder)
    again = (folder / PARTS).read_text().splitlines()
    assert [line for line in again if AA.key in line] == [line for line in lines if AA.key in line]
    assert {one.key for one in read_study(folder).on_parts} == {AA.key, PULL.key}


def test_one_kernel_is_tried_however_little_time_is_left(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, CASE, [AA, PULL], TWO)
    assert held(folder, 0.0) == ("3 of 4 kernels and cuts on several devices",)
    assert len({(one.key, one.cut) for one in read_study(folder).on_parts}) == 1


def test_a_wrong_state_has_no_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Agreement(steps=4, different=0.5, worst=1e-3, bound=1e-14)
    monkeypatch.setattr(finals, "agreement", lambda *_: wrong)
    folder = folder_of(tmp_path, CASE, [AA], replace(TWO, cut="z:2"))
    held(folder)
    record = read_study(folder)
    assert record.winner_on_parts is None
    assert record.on_parts[0].outcome is Outcome.WRONG_RESULT
    assert "no kernel was proved on 2 parts: 0.001 apart from one device after 4 steps" in parts_text(record)
    assert read_best(Study(folder).export()).parts is None


def test_weak_scaling_has_the_domain_on_each_device(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, CASE, [AA], replace(TWO, weak=True))
    held(folder)
    record = read_study(folder)
    domains = {one.cut: one.domain for one in record.on_parts}
    assert domains == {"z:2": (16, 18, 40), "y:2": (16, 36, 20)}
    for one in ranked_parts(record.on_parts):
        assert one.sites == 2 * one.alone_sites
    file = Study(folder).export()
    assert lbmtune.load(file, devices=["cpu", "cpu"]).case.domain in domains.values()
    assert lbmtune.load(file).case.domain == CASE.domain


def test_a_device_that_fails_ends_the_finals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise several.DeviceFaultError("an illegal address")

    monkeypatch.setattr(finals, "agreement", failing)
    with pytest.raises(NothingValidError, match="a device failed: an illegal address"):
        held(folder_of(tmp_path, CASE, [AA], TWO))


@pytest.fixture
def shims(monkeypatch: pytest.MonkeyPatch) -> dict[str, HostDevice]:
    """Two GPUs of one host; their times are made up: edges beside the interior, and edges of 8 planes, are faster."""
    host = Host("random")
    known = {name: HostDevice(host) for name in ("0", "1")}

    @contextmanager
    def opened(names: Sequence[str]) -> Iterator[list[HostDevice]]:
        yield [known[name] for name in names]

    def timed(alone: Any, parts: Any, couplings: Sequence[Coupling], **_: Any) -> Race:
        parts.step(2)
        return Race(
            alone=(2.0, 2.1, 1.9),
            alone_cells=100,
            cells=100,
            steps=1,
            devices=2,
            coupled=tuple(Coupled(coupling=one, samples=(seconds(one),) * 3, launches_s=1.0) for one in couplings),
        )

    def seconds(one: Coupling) -> float:
        slower = {"none": 0.3, "edge-first": 0.2, "edge-priority": 0.1}[one.overlap]
        return 1.0 + slower + 0.01 * (one.transport == "copy") + 0.01 * (one.edge_planes != 8)

    monkeypatch.setattr(finals, "opened_devices", opened)
    monkeypatch.setattr(several, "compiler_for", lambda _: compile_on_host)
    monkeypatch.setattr(finals, "race", timed)
    return known


@needs_compiler
@pytest.mark.usefixtures("shims")
def test_two_gpus_search_transport_overlap_and_edges(tmp_path: Path) -> None:
    one = cuda.Direct(scheme="aa", storage="fp64", compute="fp64", block=(4, 2, 1))
    case = box("d3q19", "bgk", (17, 11, 41), 1.3)
    folder = folder_of(tmp_path, case, [one], PartsAsked(devices=("0", "1"), cut="z:2"))
    held(folder)
    record = read_study(folder)
    ways = {(t.coupling.transport, t.coupling.overlap) for t in record.on_parts}
    assert ways == {(a, b) for a in ("copy", "pack") for b in ("none", "edge-first", "edge-priority")}
    assert {t.coupling.edge_planes for t in record.on_parts} == {0, 8, 32, 64, 128}
    assert {t.coupling.launching for t in record.on_parts} == {"graph", "call"}
    for trial in record.on_parts:
        if trial.coupling.edge_planes in (32, 64, 128):
            assert trial.outcome is Outcome.ILLEGAL
        else:
            assert trial.compared
            assert trial.compared.worst == 0.0
    assert record.winner_on_parts
    won = record.winner_on_parts[0]
    assert won.coupling == Coupling("pack", "edge-priority", edge_planes=8, launching=won.coupling.launching)
    assert won.predicted_s is not None
    file = read_best(Study(folder).export()).parts
    assert file
    assert (file.coupling, file.edge_least, file.edge_most, file.takes_planes) == (won.coupling, 8, 8, True)
    assert file.efficiency == pytest.approx(2.0 / 1.1 / 2)


def test_formulae_are_those_of_the_decomposition() -> None:
    one = cuda.Direct(scheme="esoteric-pull", storage="fp64", compute="fp64", block=(4, 2, 1))
    sent = sent_links(CASE, one)
    assert len(sent) == one.propagation.period
    assert {link.direction for link in sent[0]} == set(range(1, 19))
    tiles = cuda.TemporalBlocking(representation="moments", steps=3)
    moments = replace(CASE, collision="regularised")
    assert sent_links(moments, tiles) == []
    trial = made_trial(tiles, Coupling())
    assert edge_limits(moments, tiles, trial) == (3, max(3, tiles.block_cells(CASE.stencil)[2]))
    assert edge_limits(moments, tiles, replace(trial, coupling=Coupling(overlap="none"))) == (0, 0)


def made_trial(config: KernelConfig, coupling: Coupling) -> Any:
    return finals.PartsTrial(
        number=0,
        key=config.key,
        config=config.flat(),
        devices=("0", "1"),
        cut="z:2",
        domain=CASE.domain,
        coupling=coupling,
        outcome=Outcome.OK,
        halo_layers=config.fused_steps,
    )


def test_kernels_that_do_not_run_on_parts_are_not_searched() -> None:
    swap = cpu.Direct(scheme="swap", storage="fp64", compute="fp64", vector_bits=0)
    found = suited(Space((AA, swap, PULL), {}, (3,)), CASE)
    assert found.configs == (AA, PULL)
    assert [(count, "scheme=swap" in reason) for reason, count in found.illegal.items()] == [(1, True)]
    with pytest.raises(InputError, match=r"scheme=swap is not supported .*; no kernel of this study runs on several"):
        suited(Space((swap,), {}, (1,)), CASE)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (PartsAsked(devices=("cpu",)), "cut=auto is not supported for one part"),
        (replace(TWO, cut="z:3"), "cut=z:3 is not supported for 2 parts"),
        (replace(TWO, cut="bisection:2", weak=True), "cut=bisection:2 is not supported for equal domains"),
    ],
)
def test_what_is_refused_before_anything_is_measured(asked: PartsAsked, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_parts(CASE, asked)


def test_time_of_a_study_is_shared() -> None:
    assert time_for_parts(0.0) == 0.0
    assert 0 < time_for_parts(60.0) < 30.0
    assert time_for_parts(3600.0) == 90.0
