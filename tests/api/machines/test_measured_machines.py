"""By what predictions are calibrated: what is on file, a similar card, a quick calibration, or nothing."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lbmtune.api.machines import measured_machines
from lbmtune.api.machines.devices import doubt
from lbmtune.api.machines.measured_machines import borrowing, how_calibrated, lender
from lbmtune.api.machines.shipped import measured_cards
from lbmtune.api.studies.run import study
from lbmtune.errors import InputError
from lbmtune.measure.calibration.machines import CONFIG_VARIABLE, machine_path
from lbmtune.model.machine.datasheet_scaling import bandwidth_ratio, with_borrowed_calibration
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine, write_machine
from tests.support.paths import RECORDED
from tests.support.studies import fake_study

H100, H200 = (read_machine(RECORDED / f"nvidia-{name}" / "machine.toml") for name in ("h100", "h200"))
BARE = replace(H100, calibration=None, repeats=())


def test_a_lender_is_the_same_card_or_one_of_its_architecture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path))
    assert lender(H100.environment) == H100
    assert lender(H200.environment) == H200
    other = replace(H100.environment, device="NVIDIA GH200", device_id="of another")
    assert lender(other) in (H100, H200)
    assert lender(replace(other, architecture="sm_80")) in (H100, H200)
    assert lender(fake_study.environment("cpu")) is None
    assert {one.name for one in measured_cards()} == {H100.name, H200.name}


def test_a_neighbour_that_was_calibrated_here_lends_before_a_shipped_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path))
    neighbour = replace(H100, environment=replace(H100.environment, device_id="its neighbour"), date="of here")
    write_machine(machine_path(neighbour.environment), neighbour)
    (tmp_path / "machines" / "damaged.toml").write_text("name = ")
    assert lender(H100.environment) == neighbour
    write_machine(machine_path(neighbour.environment), replace(neighbour, quick=True))
    assert lender(H100.environment) == H100
    write_machine(machine_path(neighbour.environment), replace(neighbour, calibration=None))
    assert lender(H100.environment) == H100


def test_tables_are_scaled_by_the_bandwidths_that_were_measured() -> None:
    ratio = bandwidth_ratio(BARE, H200)
    assert ratio == pytest.approx(1 / bandwidth_ratio(H200, BARE))
    assert 0.6 < ratio < 0.8
    found = with_borrowed_calibration(BARE, H200)
    assert (found.calibrated_as, found.stream_bytes_per_s) == (H200.name, H100.stream_bytes_per_s)
    assert found.calibration
    assert H200.calibration
    assert H100.calibration
    for name, rate in found.calibration.runs_bytes_per_s.items():
        assert rate == pytest.approx(ratio * H200.calibration.runs_bytes_per_s[name])
        assert rate == pytest.approx(H100.calibration.runs_bytes_per_s[name], rel=0.15)
    assert found.calibration.instructions_per_s == H200.calibration.instructions_per_s  # as many, at the same clock
    half = replace(BARE, multiprocessors=H200.multiprocessors // 2)
    scaled = with_borrowed_calibration(half, H200).calibration
    assert scaled
    assert scaled.instructions_per_s["double"] == pytest.approx(H200.calibration.instructions_per_s["double"] / 2)
    unknown = replace(BARE, environment=replace(BARE.environment, max_sm_clock_hz=None))
    assert with_borrowed_calibration(unknown, H200).calibration == found.calibration
    assert with_borrowed_calibration(BARE, replace(H200, calibration=None)) == BARE


@pytest.mark.parametrize(("bandwidth", "l2", "multiprocessors"), [(0.991, 1.0, 132), (1.013, 0.8, 114), (0.3, 0.1, 24)])
@pytest.mark.parametrize("card", [H100, H200], ids=lambda card: card.name)
def test_borrowed_tables_are_kept_and_read_again(
    tmp_path: Path, card: Machine, bandwidth: float, l2: float, multiprocessors: int
) -> None:
    rates = {width: rate * bandwidth for width, rate in BARE.stream_bytes_per_s.items()}
    caches = {level: int(size * (l2 if level == "L2" else 1)) for level, size in BARE.caches_bytes.items()}
    here = replace(BARE, stream_bytes_per_s=rates, caches_bytes=caches, multiprocessors=multiprocessors, quick=True)
    borrowed = with_borrowed_calibration(here, card)
    write_machine(tmp_path / "it.toml", borrowed)
    assert read_machine(tmp_path / "it.toml") == borrowed
    found = borrowed.calibration
    assert found
    lacks = {name: rate for name, rate in found.threads_bytes_per_s.items() if not name.startswith("4 by")}
    damaged = replace(borrowed, calibration=replace(found, threads_bytes_per_s=lacks))
    write_machine(tmp_path / "it.toml", damaged)
    with pytest.raises(InputError, match=r"calibration\.threads_bytes_per_s lacks '4 by 128'"):
        read_machine(tmp_path / "it.toml")


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (BARE, "not calibrated, by bandwidths alone; lbmtune devices --calibrate measures the rest"),
        (H100, "calibrated on this device"),
        (replace(H100, quick=True), "quickly calibrated on this device"),
        (
            replace(H100, quick=True, calibrated_as="NVIDIA H200"),
            "quickly calibrated on this device, other figures of NVIDIA H200, scaled",
        ),
        (
            replace(H100, quick=True, calibrated_as=H100.name),
            "calibrated on another NVIDIA H100 80GB HBM3, scaled by the bandwidths of this one; lbmtune devices "
            "--calibrate measures it",
        ),
        (
            with_borrowed_calibration(BARE, H200),
            "calibrated on NVIDIA H200, scaled by the bandwidths of this card, which may rank kernels otherwise; "
            "lbmtune devices --calibrate measures it",
        ),
    ],
)
def test_it_is_said_by_what_predictions_are_calibrated(machine: Machine, said: str) -> None:
    assert how_calibrated(machine) == said
    assert bool(doubt(machine)) == (machine is BARE), "a measured card with borrowed curves is no data sheet"


def test_a_gpu_without_tables_has_those_of_the_most_similar_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path))
    other = replace(BARE, name="another", environment=replace(BARE.environment, device="another"))
    assert borrowing(other) == with_borrowed_calibration(other, H100)
    assert borrowing(H200) is H200, "its own tables are kept"
    cpu = replace(fake_study.machine(), calibration=None, cpu=None)
    assert borrowing(cpu) is cpu, "no processor lends its tables"


@pytest.mark.parametrize(("calibrate", "extent"), [(True, "quick"), (False, "bandwidths")])
def test_a_study_says_before_its_search_by_what_predictions_are_calibrated(
    calibrate: bool, extent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fake_study.stand_in(monkeypatch)
    asked: list[dict[str, Any]] = []
    machine = fake_study.machine()
    monkeypatch.setattr(measured_machines, "measured_machine", lambda *_, **how: (asked.append(how), machine)[1])
    said = "not calibrated, by bandwidths alone; lbmtune devices --calibrate measures the rest"
    with caplog.at_level(logging.INFO, "lbmtune"):
        found = study("quick", "cpu", tmp_path / "it", overrides=["budget.trials=2"], calibrate=calibrate)
    assert [how["extent"] for how in asked] == [extent]
    assert f"predictions: {said}" in caplog.messages
    assert found.record.header.calibrated_how == said
    assert said in found.report().read_text()
