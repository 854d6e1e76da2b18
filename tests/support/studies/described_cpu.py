"""A description of this processor for tests that need one and measure none: that takes seconds of all cores."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lbmtune.backend.registry import open_device
from lbmtune.codegen.streams import streams_digest
from lbmtune.measure.calibration.machines import CONFIG_VARIABLE, machine_path
from lbmtune.model.machine.toml import write_machine
from lbmtune.records import Conditions
from tests.support.studies import fake_study


def describe_cpu(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Keep a description of this processor with made-up bandwidths in a folder, and let it be that of the user."""
    monkeypatch.setenv(CONFIG_VARIABLE, str(folder))
    machine = replace(
        fake_study.machine("cpu"),
        environment=open_device("cpu").environment,
        conditions=Conditions(cpu_share=1.0),
        streams_digest=streams_digest("cpu"),
        date=datetime.now(UTC).isoformat(),
    )
    write_machine(machine_path(machine.environment), machine)
