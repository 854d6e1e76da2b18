"""Kernel families. A family has one name in every layer: a record here, a module in `codegen` and one in `model`."""

from importlib import import_module
from typing import Any

from lbmtune.catalogue.record import KernelConfig


def module_of(layer: str, config: KernelConfig | type[KernelConfig]) -> Any:
    """Return the module of a family in a layer such as `lbmtune.codegen.cuda`, which it is imported from on first use.

    What a layer asks of it is said there: `codegen.render.Renderer`, `model.gpu.families.Family`,
    `model.cpu.inputs.Family`.
    """
    name, _, _ = config.family.partition(":")  # those of users' kernels have one module
    return import_module(f"{layer}.{name.replace('-', '_')}")
