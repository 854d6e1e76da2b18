"""Numba kernels as Python text: the row kernel of each phase, and the loop over rows. Imports no numba."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from string import Template

import sympy

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.collision import Parameters, assignments, wall_gain
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.config import CpuConfig
from lbmtune.codegen.cpu.expressions import Constants, divide_late, hoist, text
from lbmtune.codegen.cpu.rows import GroupedRow, LinearRow, Row, SelectedRow
from lbmtune.codegen.cpu.streams import Streams
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.skeleton import skeleton

_SUPPORT = Path(__file__).resolve().parents[2] / "backend" / "cpu" / "simd.py"
_DOMAIN = ("nx", "ny", "nz")
_INDENT = " " * 4


def render_cpu(case: Case, config: CpuConfig) -> Program:
    """The Python module of a legal configuration: step_0, step_1 advance a state of that parity."""
    constants = Constants()
    steps = [_step(case, config, parity, constants) for parity in range(config.propagation.period)]
    lanes = lanes_of(config)
    source = _filled(
        "module",
        title=f"{case.flow}, {case.lattice}, {case.collision}: {config.propagation.title}; {config.brief}",
        support=support_digest(),
        compute=config.computed.dtype,
        lanes=str(lanes),
        constants="\n".join(constants.definitions()),
        names=_names(config),
        steps="\n\n\n".join(steps),
    )
    launches = tuple((Launch(f"step_{parity}", _arguments(case, config)),) for parity in range(len(steps)))
    return Program("cpu", case, config, source, (), launches)


def lanes_of(config: CpuConfig) -> int:
    """Cells that one access moves."""
    return config.vector_bits // (8 * config.computed.bytes) or 1


@cache
def support_digest() -> str:
    """Names the text of the support module, so that what was compiled with another one is not reused."""
    return hashlib.sha256(_SUPPORT.read_bytes()).hexdigest()[:16]


def _filled(name: str, **values: str) -> str:
    return Template(skeleton(f"cpu/{name}.py.in")).substitute(values)


def _names(config: CpuConfig) -> str:
    """Plain names for the access functions: kernels can use no attributes of other objects."""
    names = ["load", "store", *(["stream"] if config.streaming_stores else [])]
    if config.layout == "aosoa" and config.wrap == "ghost" and config.vector_bits:
        names += ["load_before", "load_after", "store_before", "store_after"]
    lines = [f"{name} = many.{name}" for name in names]
    return "\n".join([*lines, "load_one, store_one = one.load, one.store"] if config.wrap == "ghost" else lines)


def _step(case: Case, config: CpuConfig, parity: int, constants: Constants) -> str:
    """The row kernel and the loop over rows of one parity."""
    row = _row(case, config, parity)
    operator = assignments(collision(case.collision), case.stencil, case.forced)
    steps = hoist(divide_late(operator, case.stencil), _parameters())
    gains = [f"gain{i} = {text(wall_gain(case.stencil, i), constants)}" for i in row.streams.gains]
    if gains:
        constants.name(sympy.Integer(0))
    scale = [f"unit = {constants.name(sympy.Integer(int(config.stored.scale)))}"]
    invariants = [*scale, *(f"{a.name} = {text(a.value, constants)}" for a in steps.invariants), *gains]
    body = [f"{a.name} = {text(a.value, constants)}" for a in steps.body]
    arguments = ", ".join(_parameter_names(case, config))
    return (
        _filled(
            "row",
            parity=str(parity),
            arguments=arguments,
            lanes=str(row.lanes),
            before=_lines([*invariants, *row.before()], 1),
            body=_lines([*row.cell(), *row.loads(), *body, *row.stores()], 2),
            after=_lines(row.after(), 1),
        ).rstrip()
        + "\n\n\n"
        + _loop(case, config, parity, arguments)
    )


def _row(case: Case, config: CpuConfig, parity: int) -> Row:
    buffers = ("field", "field") if config.propagation.in_place else ("source", "target")
    streams = Streams(case, config, config.propagation.phase(case.stencil, parity), buffers)
    if config.wrap == "select":
        return SelectedRow(streams, 1)
    kind = GroupedRow if config.layout == "aosoa" else LinearRow
    return kind(streams, lanes_of(config), "stream" if config.streaming_stores else "store")


def _loop(case: Case, config: CpuConfig, parity: int, arguments: str) -> str:
    parallel = config.threads > 1
    return _filled(
        f"loop_{config.loop}",
        parity=str(parity),
        arguments=arguments,
        signature=_signature(case, config),
        parallel=str(parallel),
        range="simd.prange" if parallel else "range",
        tile_y=str(config.tile_y),
        tile_z=str(config.tile_z),
        fence=_lines(["simd.fence()"] if config.streaming_stores else [], 2),
    ).rstrip()


def _parameters() -> list[sympy.Symbol]:
    return [Parameters.omega, Parameters.omega_minus, Parameters.unit, *Parameters.force]


def _scalars(case: Case) -> tuple[str, ...]:
    """Names of the real arguments."""
    names = list(collision(case.collision).parameters)
    names += [f"force_{a}" for a in "xyz"] if case.forced else []
    return (*names, *((f"wall_{a}" for a in "xyz") if case.moving else ()))


def _arguments(case: Case, config: CpuConfig) -> tuple[str, ...]:
    """What a launch passes."""
    return (*("f0", "f1")[: config.propagation.lattices], *_DOMAIN, *_scalars(case))


def _parameter_names(case: Case, config: CpuConfig) -> tuple[str, ...]:
    """The same arguments by the names that the kernel gives them."""
    buffers = ("field",) if config.propagation.in_place else ("source", "target")
    return (*buffers, *_DOMAIN, *_scalars(case))


def _signature(case: Case, config: CpuConfig) -> str:
    # halves travel as 16-bit integers: Numba has no half on the CPU
    element = "uint16" if config.stored.bytes == 2 else config.stored.dtype
    kinds = [f"{element}[::1]"] * config.propagation.lattices + ["int64"] * 3
    return ", ".join([*kinds, *[config.computed.dtype] * len(_scalars(case))])


def _lines(lines: list[str], depth: int) -> str:
    return "\n".join(_INDENT * depth + line for line in lines)
