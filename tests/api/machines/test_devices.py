"""Names of devices, and studies on several of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lbmtune.api.machines.devices import several
from lbmtune.api.studies import run as studies
from lbmtune.api.studies.run import study
from lbmtune.errors import DeviceUnavailableError, InputError
from tests.support.studies import fake_study


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host of four GPUs."""
    monkeypatch.setattr("lbmtune.api.machines.devices.available", lambda: ("0", "1", "2", "3", "cpu"))


@pytest.mark.usefixtures("four")
def test_devices_are_listed() -> None:
    assert several("0, 2") == ("0", "2")
    assert several("3,0") == ("3", "0")
    assert several("all") == ("0", "1", "2", "3")


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("devices", ["0,0", "0,cpu", "cpu", "", "all,0"])
def test_devices_that_do_not_go_together(devices: str) -> None:
    with pytest.raises(InputError, match=r"is not supported .use all, or indices of GPUs such as 0,1|device="):
        several(devices)


@pytest.mark.usefixtures("four")
def test_a_device_that_is_not_here() -> None:
    with pytest.raises(DeviceUnavailableError, match=r"^GPU 4 does not exist: this machine has 4, counted from 0"):
        several("0,4")


@pytest.mark.parametrize("asked", ["all", "0,1"])
def test_no_gpu_at_all(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setattr("lbmtune.api.machines.devices.available", lambda: ("cpu",))
    with pytest.raises(DeviceUnavailableError, match=r"there is no GPU here|GPU 0 does not exist"):
        several(asked)


def test_a_study_on_several_devices_measures_on_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_study.stand_in(monkeypatch, fake_study.FakeEvaluator("cuda"))
    asked: list[Any] = []

    def evaluator(_case: object, device: str, *_: object, others: tuple[str, ...] = ()) -> fake_study.FakeEvaluator:
        asked.append((device, others))
        return fake

    monkeypatch.setattr(studies, "Evaluator", evaluator)
    found = study("quick", "2", tmp_path / "it", others=("0", "1"), overrides=["budget.trials=3"])
    assert asked == [("2", ("0", "1"))]
    assert len(found.record.trials) == 3
