"""The module around the kernels of a configuration: imports, constants, access functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.shared.expressions import Constants
from lbmtune.codegen.cpu.shared.filling import filled
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.support import support_digest

LANES = "lane, with_lane = lanes.lane, lanes.with_lane"
"""Names of the functions that take cells out of vectors."""


def module(
    case: Case,
    config: CpuConfig,
    constants: Constants,
    steps: Sequence[str],
    period: tuple[tuple[Launch, ...], ...],
    names: Sequence[str],
    support: Sequence[str] = (),
    skeleton: str = "shared/module",
    values: Mapping[str, str] | None = None,
) -> Program:
    """Return the program of a module: its kernels, the support modules beside `simd`, and names of their functions.

    steps: texts of the kernels; names: lines that name access functions, because kernels can use no attributes;
    values: further fields of the skeleton.
    """
    modules = [*support, "simd"]
    source = filled(
        skeleton,
        title=f"{config.family} {case.flow} {case.lattice} {case.collision}: {config.propagation.title}",
        support=support_digest(*support),
        compute=config.computed.dtype,
        codes=codes(config),
        lanes=str(config.lanes),
        constants="\n".join(constants.definitions()),
        steps="\n\n\n".join(steps),
        imports=", ".join(modules),
        names="\n".join(names),
        **(values or {}),
    )
    return Program("cpu", case, config, source, (), period, steps=config.fused_steps)


def codes(config: CpuConfig) -> str:
    """Return the argument that names the storage format to access functions if memory holds codes, or ''."""
    return f', "{config.storage}"' if config.stored.codes else ""


def access_names(
    *, streaming: bool = False, grouped: bool = False, ends: bool = True, prefetch: bool = False
) -> list[str]:
    """Return lines that name the access functions of rows.

    streaming: stores are non-temporal; grouped: vectors may cross groups of cells; ends: single elements at the ends
    of rows are accessed; prefetch: cache lines are prefetched.
    """
    names = ["load", "store", *(["stream"] if streaming else [])]
    names += ["load_before", "load_after", "store_before", "store_after"] if grouped else []
    return [
        *(f"{name} = many.{name}" for name in names),
        *(["prefetch = simd.prefetch"] if prefetch else []),
        *(["load_one, store_one = one.load, one.store"] if ends else []),
    ]
