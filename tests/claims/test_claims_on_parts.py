"""Experiments on several devices: parts of a processor, two GPUs that the host stands for, and the shipped document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lbmtune import api
from lbmtune.api.several_devices import parts as several
from lbmtune.api.several_devices import reproduced
from lbmtune.api.several_devices.reproduced import measured_on_parts
from lbmtune.backend.protocol import DeviceFaultError, OutOfMemoryError, TooManyResourcesError
from lbmtune.claims.judge import readings_of, speed_ratio
from lbmtune.claims.plan import Here, Plan, plans, question
from lbmtune.decomposition.transfers import runs
from lbmtune.errors import InputError, NothingValidError
from lbmtune.files.claimsfile import load_documents, parse_document
from lbmtune.measure.parts.proof import Agreement, agreement
from lbmtune.records import Outcome
from lbmtune.records.claims import Document, Holding, OverDevices
from lbmtune.runtime.parts import transports
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.shim.queues import Host
from tests.support.studies.described_cpu import describe_cpu
from tests.support.studies.fake_study import LIMITS

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
TEXT = """
name = "parts"
title = "parts"
source = "nobody"

[series.box]
title = "box"
case = { flow = "box", lattice = "d3q19", collision = "bgk", relaxation_rate = 1.2 }
cpu = ["16x18x20"]
cuda = ["8x6x24"]
devices = 2

[variants.one]
title = "one device"
series = "box"
cpu = "scheme=aa,storage=fp64"
cuda = "scheme=aa,storage=fp64,block=4x2x1"

[variants.two]
title = "two devices"
series = "box"
cpu = "scheme=aa,storage=fp64"
cuda = "scheme=aa,storage=fp64,block=4x2x1"
parts = "cut=z:2,overlap=none"

[variants.weak]
title = "two devices, the domain on each"
series = "box"
cpu = "scheme=aa,storage=fp64"
cuda = "scheme=aa,storage=fp64,block=4x2x1"
parts = "cut=z:2,weak=yes,overlap=none"

[variants.beside]
title = "edges first"
series = "box"
cpu = "scheme=aa,storage=fp64"
cuda = "scheme=aa,storage=fp64,block=4x2x1"
parts = "cut=z:2,transport=pack,overlap=edge-first,edge_planes=4"

[variants.halo]
title = "halo computed"
series = "box"
cuda = "scheme=aa,storage=fp64,block=4x2x1"
parts = "cut=z:2,transport=pack,overlap=none,halo=computed"

[claims.strong]
sentence = "Two devices are faster than one."
of = "two"
over = "one"
at_least = 1e-9
published = [1e-9, 1e9]

[claims.weak]
sentence = "The domain on each of two devices."
of = "weak"
over = "one"
at_least = 1e-9
"""


def document() -> Document:
    return parse_document(TEXT, "parts.toml")


def planned(backend: str, devices: int) -> Plan:
    here = Here(backend=backend, limits=LIMITS, physical_cores=1, budget_bytes=1 << 30, devices=devices)
    return next(plans(document(), here))


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduced, "_SAMPLE_S", 0.001)
    monkeypatch.setattr(reproduced, "_LEAST_STEPS", 4)
    monkeypatch.setattr(reproduced.time, "sleep", lambda _: None)


def test_parts_of_a_processor_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    describe_cpu(monkeypatch, tmp_path)
    file = tmp_path / "parts.toml"
    file.write_text(TEXT)
    machine = api.measured_machine("cpu")
    found = api.reproduce(load_documents([str(file)]), "cpu", tmp_path / "out", others=["cpu"], machine=machine)
    assert found.header.devices == 2
    (group,) = found.groups
    rows = {row.variant: row for row in group.rows}
    assert rows["two"].over == OverDevices(cut="z:2", coupling="overlap=none")
    assert rows["two"].compared
    assert (rows["two"].compared.different, rows["two"].compared.worst) == (0.0, 0.0)
    assert rows["one"].compared is None
    assert "transport=pack is not supported for backend=cpu (use copy)" in rows["beside"].why_not
    for name in ("one", "two", "weak"):
        trial = rows[name].trial
        assert trial
        assert trial.final
        assert trial.final.sites == 16 * 18 * 20 * (2 if name == "weak" else 1)
    assert {verdict.claim: verdict.holding for verdict in found.verdicts} == {
        "strong": Holding.HOLDS,
        "weak": Holding.HOLDS,
    }
    readings = readings_of(found.documents[0], found.groups, "cpu")
    weak, one = readings["weak"].measurement, readings["one"].measurement
    seconds = [b / a for a, b in zip(weak.samples_s, one.samples_s, strict=True)]
    assert speed_ratio(readings["weak"], readings["one"]).median == pytest.approx(2 * sorted(seconds)[4])


def test_one_device_says_what_is_missing() -> None:
    reasons = {entry.reason for entry in planned("cuda", 1).entries}
    assert all("it takes 2 devices, and this run has 1 (give --devices 0,1)" in reason for reason in reasons)
    assert not planned("cuda", 1).runnable
    assert len(planned("cuda", 2).runnable) == 5


def test_another_cut_is_another_question() -> None:
    plan = planned("cuda", 2)
    row = plan.row(plan.entries[1])
    assert row.over
    assert question(row) != question(replace(row, over=replace(row.over, cut="y:2")))


@pytest.fixture
def shims(monkeypatch: pytest.MonkeyPatch) -> list[HostDevice]:
    """Two GPUs of one host; one of them is timed by steps."""
    host = Host("random")
    monkeypatch.setattr(several, "compiler_for", lambda _: compile_on_host)
    monkeypatch.setattr(reproduced, "_on", lambda device, alone, steps: 1e-3 * steps)
    return [HostDevice(host), HostDevice(host)]


@needs_compiler
def test_two_gpus_are_proved_before_they_are_timed(shims: list[HostDevice]) -> None:
    plan = planned("cuda", 2)
    found = measured_on_parts(plan.case, plan.runnable, shims)
    assert [trial.outcome for trial, _ in found] == [Outcome.OK] * 5
    assert all(trial.final and len(trial.final.samples_s) == 9 for trial, _ in found)
    assert [state is None for _, state in found] == [True, False, False, False, False]
    assert all(state.worst == 0.0 for _, state in found if state)


@needs_compiler
def test_a_wrong_state_has_no_speed(shims: list[HostDevice], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Agreement(steps=4, different=1.0, worst=0.1, bound=1e-14)
    monkeypatch.setattr(reproduced, "agreement", lambda *_: wrong)
    plan = planned("cuda", 2)
    (trial, state), *_ = measured_on_parts(plan.case, plan.runnable[1:2], shims)
    assert (trial.outcome, trial.final, state) == (Outcome.WRONG_RESULT, None, None)
    assert trial.reason == "parts are 0.1 apart from one device, allowed 1e-14"


@needs_compiler
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (OutOfMemoryError("64 GiB asked for"), Outcome.OUT_OF_MEMORY),
        (TooManyResourcesError("too many registers"), Outcome.TOO_MANY_RESOURCES),
    ],
)
def test_parts_that_do_not_fit_are_not_wrong(
    shims: list[HostDevice], monkeypatch: pytest.MonkeyPatch, error: Exception, outcome: Outcome
) -> None:
    def refused(*_: object) -> Agreement:
        raise error

    monkeypatch.setattr(reproduced, "agreement", refused)
    plan = planned("cuda", 2)
    alone, (trial, state), *_ = measured_on_parts(plan.case, plan.runnable[:2], shims)
    assert alone[0].final
    assert (trial.outcome, trial.reason, trial.final, state) == (outcome, str(error), None, None)


def test_a_variant_that_fails_between_turns_ends_alone() -> None:
    seconds = iter((0.5, OutOfMemoryError("no room for a graph")))

    def failing(_: int) -> float:
        found = next(seconds)
        if isinstance(found, Exception):
            raise found
        return found * 1e-4

    timed = {0: (reproduced._Timed(lambda _: 1e-4, 1, 1), 2), 1: (reproduced._Timed(failing, 1, 1), 2)}
    samples, failed = reproduced._in_turns(timed)
    assert samples == {0: [5e-5] * 9}
    assert [str(error) for error in failed.values()] == ["no room for a graph"]
    assert [*failed] == [1]


@needs_compiler
def test_a_device_that_fails_ends_all_variants(shims: list[HostDevice], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> Agreement:
        raise DeviceFaultError("an illegal address")

    monkeypatch.setattr(reproduced, "agreement", failing)
    plan = planned("cuda", 2)
    with pytest.raises(
        NothingValidError, match="a device failed: an illegal address; nothing that ran since is proved"
    ):
        measured_on_parts(plan.case, plan.runnable, shims)


@needs_compiler
def test_a_message_that_is_too_long_ends_its_variant_alone(
    shims: list[HostDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of the domain have more runs than those of the proof, which passes."""

    def proved(*pair: Any) -> Agreement:
        found = agreement(*pair)
        monkeypatch.setattr(transports, "MOST_COPIES", 0)
        return found

    plan = planned("cuda", 2)
    monkeypatch.setattr(reproduced, "agreement", proved)
    names = [entry.variant.name for entry in plan.runnable]
    found = dict(zip(names, measured_on_parts(plan.case, plan.runnable, shims), strict=True))
    assert found["two"][0].outcome is Outcome.ILLEGAL
    assert "transport=copy is not supported for a message of 5 runs (use pack)" in found["two"][0].reason
    for name in ("one", "beside", "halo"):
        assert found[name][0].final


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("cut=z:3", "cut=z:3 is not supported for 2 devices"),
        ("cut=around", "cut=around is not supported (use z:2 for slabs"),
        ("overlap=none", "cut= is not supported"),
        ("cut=z:2,overlap=some", "overlap=some is not supported for a decomposition"),
        ("cut=z:2,weak=maybe", "weak=maybe is not supported (use no or yes)"),
    ],
)
def test_a_wrong_cut_of_a_document_is_named(parts: str, said: str) -> None:
    text = TEXT.replace("cut=z:2,overlap=none", parts, 1)
    with pytest.raises(InputError) as found:
        parse_document(text, "parts.toml")
    assert said in str(found.value)
    assert "variants.two.parts" in str(found.value)


def test_the_shipped_document_is_legal_on_two_gpus() -> None:
    (shipped,) = load_documents((), 2)
    assert shipped.devices == 2
    assert shipped.name not in {one.name for one in load_documents(())}
    limits: Any = replace(LIMITS, memory_bytes=80 << 30, cores=4, asynchronous=True)
    here = Here(backend="cuda", limits=limits, physical_cores=1, budget_bytes=1 << 30, devices=2)
    for plan in plans(shipped, here):
        assert [entry.reason for entry in plan.entries if entry.config is None] == []
        for entry in plan.entries:
            over = entry.variant.over
            if over and entry.config:
                cut = several.parse_cut(over.cut)
                whole = several.grown(plan.case, cut) if over.weak else plan.case
                found = several.decomposed(whole, entry.config, cut)
                coupling, planes = several.parse_coupling(over.coupling), not over.halo_computed
                assert several.coupling_refusal(found, coupling, planes=planes, reached=True) is None
                several.check_cut(whole, entry.config, cut, limits)
                if coupling.transport != "pack":  # a sample's links would be thousands of runs
                    assert not whole.geometry
                    assert sum(runs(found, face) for face in found.faces) <= transports.MOST_COPIES
