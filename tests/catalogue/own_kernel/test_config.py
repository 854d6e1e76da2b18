"""Configurations of a user's kernel: its description alone says which values its knobs have."""

from __future__ import annotations

import pytest

from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.families.common_rules import value_rules
from lbmtune.catalogue.own_kernel.config import family_of
from lbmtune.files.kernelfile import load_kernel
from tests.support.paths import ROOT

KERNEL, CASE = load_kernel(ROOT / "examples" / "own-kernel" / "d2q9_gpu.cu")
FAMILY = family_of(KERNEL)
"""Which makes it known by its name."""


def refusals(**values: int) -> list[str]:
    config = from_flat({"backend": "cuda", "family": KERNEL.family, **values})
    return [reason for rule in value_rules(FAMILY) if (reason := rule(CASE, config, None))]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [one.name for one in KERNEL.knobs])
def test_each_described_value_is_legal_wherever_it_stands(name: str) -> None:
    (knob,) = (one for one in KERNEL.knobs if one.name == name)
    assert [refusals(**{name: value}) for value in knob.values] == [[]] * len(knob.values)


def test_other_values_are_refused() -> None:
    assert refusals(MODULO=2) == [f"MODULO=2 is not supported for family {KERNEL.family} (use 1 or 0)"]
