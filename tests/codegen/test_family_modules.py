from __future__ import annotations

import inspect

import pytest

from lbmtune.catalogue.config import FAMILIES, KernelConfig
from lbmtune.catalogue.families import module_of
from lbmtune.catalogue.families.rules import rules
from lbmtune.model.cpu.inputs import Family as CpuFamily
from lbmtune.model.gpu.families import Family as GpuFamily

RECORDS = [record for families in FAMILIES.values() for record in families.values()]
MODELS = {"cuda": ("lbmtune.model.gpu", GpuFamily), "cpu": ("lbmtune.model.cpu", CpuFamily)}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.backend}-{record.family}")
def test_a_family_has_one_name_in_every_layer(record: type[KernelConfig]) -> None:
    layer, family = MODELS[record.backend]
    name = record.family.replace("-", "_")
    assert record.__module__ == f"lbmtune.catalogue.families.{record.backend}.{name}"
    assert list(inspect.signature(module_of(f"lbmtune.codegen.{record.backend}", record).render).parameters)[:2] == [
        "case",
        "config",
    ]
    assert isinstance(module_of(layer, record).MODEL, family)
    assert len(rules(record)) > 10
