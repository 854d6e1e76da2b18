"""What the model knows of a family of CPU kernels: `MODEL` of its module."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from lbmtune.model.cpu.inputs import CpuInputs
from lbmtune.records import Term


@dataclass(frozen=True)
class Family:
    """The model of a family. inputs: quantities that shared terms need; terms: of a calibrated machine."""

    inputs: type[CpuInputs]
    terms: Callable[[Any, Collection[str]], list[Term]]
