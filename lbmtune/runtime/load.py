"""A running flow from a best.json: the recorded kernel text, compiled for a device of this machine."""

import logging
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from lbmtune.backend.protocol import OR_CPU, Binary, CompileError, Device, OutOfMemoryError, TooManyResourcesError
from lbmtune.backend.ranks import Rank
from lbmtune.backend.registry import backend_of, compiler_for, default_device, open_device, this_rank
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Real3
from lbmtune.catalogue.problem.patch_checks import settled
from lbmtune.codegen.describe_domain import domain_rules
from lbmtune.codegen.program import Launch, Mode, Over, Program
from lbmtune.codegen.render import render, render_single
from lbmtune.codegen.support import support_of
from lbmtune.errors import DeviceUnavailableError, InputError
from lbmtune.printable import printable
from lbmtune.records import Environment
from lbmtune.records.best_json.document import Best, read_best
from lbmtune.records.best_json.kernel import LaunchGeometry
from lbmtune.records.remarks import power_remark
from lbmtune.records.store import provide_cache
from lbmtune.runtime.choice import measured
from lbmtune.runtime.gathered import Gathered, gathered, on_planes
from lbmtune.runtime.simulation import Simulation
from lbmtune.runtime.solver import Solver, changed

LOG = logging.getLogger("lbmtune")


def load(
    path: str | os.PathLike[str],
    device: str | int | None = None,
    *,
    devices: Sequence[str | int] | None = None,
    ranks: bool = False,
    cut: str = "",
    coupling: str | None = None,
    domain: tuple[int, int, int] | None = None,
    relaxation_rate: float | None = None,
    force: Real3 | None = None,
    wall_velocity: Real3 | None = None,
    geometry: str | os.PathLike[str] | None = None,
    trusted: bool = False,
    measure: bool = False,
) -> Solver:
    """Return the flow of a best.json at its initial state (Taylor-Green vortices, or rest).

    device: 'cpu' or the index of a GPU; None: a device of the kernel's backend. The case may
    differ from the recorded one in the values that the kernel takes as arguments: the domain (cells along x, y, z),
    the relaxation rate, the body force and the wall velocity (lattice units). Of a portfolio the kernel for the domain
    runs; measure: the fastest here, by timing those that may be on the domain (logged as information, and kept in the
    user's cache). geometry: path of the voxel file of the case, if it is not where it was. trusted: run the text of the
    file whatever it is; otherwise that which this version makes of the configuration runs, and the file must hold the
    same code (comments aside).

    devices: of the parts of the domain, all of one kind, the same one several times for several parts; then cut is
    'z:2', '2x1x4' or 'bisection:8', '': that of the file if it is for as many parts, else the legal one with the least
    work in a part; and coupling how they exchange, 'transport=pack,overlap=none', None: as in the file or usual.
    ranks: a part in each process of this run, which torchrun, mpirun or srun started: all of them do the same, and
    fields are NaN in the parts of others (`Solver.held`).

    Raises InputError (damaged file, wrong version, another text, a case or device that the kernel does not support) and
    DeviceUnavailableError; warns if the device is not the one that the speed was measured on.
    """
    given: dict[str, Any] = {"relaxation_rate": relaxation_rate, "force": force, "wall_velocity": wall_velocity}
    several: dict[str, Any] = {"devices": devices, "ranks": ranks, "cut": cut, "coupling": coupling}
    whole = read_best(Path(path))
    best = for_domain(whole, domain, path)
    if measure and (ranks or devices is not None or cut or coupling):
        raise InputError("measure=True is not supported for several devices (leave it out): it times one alone.")
    if measure and domain is None:
        domain = whole.case.domain
    if measure and domain is not None and _is_domain(domain):
        where = default_device(whole.kernel.target) if device is None else str(device)
        run = partial(loaded, path=path, device=where, domain=domain, geometry=geometry, trusted=trusted, **given)
        choice = measured(whole, best, path, where, domain, run)
        LOG.info("%s", choice.said)
        best = choice.best
    return loaded(best, path, device, domain=domain, geometry=geometry, trusted=trusted, **given, **several)


def for_domain(best: Best, domain: Any, path: str | os.PathLike[str]) -> Best:
    """Return the kernel that a portfolio has for a domain; the file as it is without either.

    domain: three whole numbers, or what is refused later. Raises InputError if no kernel takes it.
    """
    if best.portfolio is None or domain is None or not _is_domain(domain):
        return best
    place = best.portfolio.chosen(tuple(domain))
    if place is None:
        why = best.portfolio.kernels[best.portfolio.robust].refusal(tuple(domain))
        raise InputError(
            f"domain={'x'.join(map(str, domain))} is not supported for {path} (use one of {best.portfolio.domains}): "
            f"no kernel of it takes that, {why}."
        )
    return best.of_portfolio(place, tuple(domain))


def _is_domain(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) == 3 and all(isinstance(n, int) and n > 0 for n in value)


def loaded(
    best: Best,
    path: str | os.PathLike[str],
    device: str | int | None = None,
    *,
    devices: Sequence[str | int] | None = None,
    ranks: bool = False,
    cut: str = "",
    coupling: str | None = None,
    domain: tuple[int, int, int] | None = None,
    relaxation_rate: float | None = None,
    force: Real3 | None = None,
    wall_velocity: Real3 | None = None,
    geometry: str | os.PathLike[str] | None = None,
    trusted: bool = False,
) -> Solver:
    """Return the flow of a best.json that was read (`load`). path: of its file, for messages."""
    rank = _rank(device, devices) if ranks else None
    devices = devices if rank is None else [str(rank.local)] * rank.count
    _check_together(device, devices, cut, coupling, trusted=trusted)
    best = replace(best, case=settled(best.case, geometry))
    if devices is not None and best.parts and best.parts.devices == len(devices) and domain is None:
        domain = best.parts.domain
    given = {"domain": domain, "relaxation_rate": relaxation_rate, "force": force, "wall_velocity": wall_velocity}
    case = changed(best.case, best.case, {name: value for name, value in given.items() if value is not None})
    _check_domain(best, case)
    _check_support(best, path)
    text, text_of_one_step = _recorded(best) if trusted else _made_here(best, path)
    asked = [None if device is None else str(device)] if devices is None else [str(one) for one in devices]
    opened, *others = _opened(best, asked, path)
    if remark := provide_cache():
        warnings.warn(remark, stacklevel=2)
    _warn_of_another_device(best.environment, opened.environment)
    if not best.proven:
        warnings.warn(f"the kernel of {path} was not verified on the whole domain.", stacklevel=2)
    if best.expected.doubts:
        doubts = printable(" ".join(best.expected.doubts))
        warnings.warn(f"the speed that {path} expects is not reliable: {doubts}", stacklevel=2)
    if power := power_remark(f"the kernel of {path}", best.expected.sustained, best.limits.get("power_w")):
        warnings.warn(f"{power}.", stacklevel=2)
    config = _config(best.config, case, opened)
    compiled = partial(_compiled, device=opened, path=path)
    single = text_of_one_step and replace(text_of_one_step, config=config.single_step())
    program, binary = compiled(on_planes(replace(text, config=config)) if devices else replace(text, config=config))
    try:
        simulation: Simulation | Gathered
        if devices is None:
            simulation = Simulation(program, binary, opened, case, partial(compiled, single) if single else None)
        else:
            compiler = compiler_for(opened.environment)
            several: dict[str, Any] = {"cut": cut, "coupling": coupling, "rank": rank}
            simulation = gathered(best, case, program, binary, [opened, *others], compiler, **several)
    except (TooManyResourcesError, OutOfMemoryError) as error:
        raise InputError(f"the kernel of {path} does not fit here: {error}; choose a smaller domain.") from error
    return Solver(simulation, best)


def _check_domain(best: Best, case: Case) -> None:
    """Raise InputError if the domain is none that the recorded text is for. That of its own case is not looked at."""
    if case.domain == best.case.domain:
        return
    rules = best.kernel.domain or domain_rules(render(best.case, best.config), Limits())
    (nx, ny, nz), stored = case.domain, best.config.stored_extents(case)
    numbers = {"nx": nx, "ny": ny, "nz": nz, "NX": stored.x, "NY": stored.y, "NZ": stored.z}
    if reason := rules.refusal(numbers):
        raise InputError(
            f"domain={'x'.join(map(str, case.domain))} is not supported for this kernel (use another domain, or a "
            f"study of this one): {reason}."
        )


def _check_support(best: Best, path: str | os.PathLike[str]) -> None:
    """Raise InputError if a CPU kernel was made for support modules other than the installed ones."""
    found = support_of(best.kernel.source)
    if found and found[0] != found[1]:
        made_for, here = found
        raise InputError(
            f"{path} holds a CPU kernel made for another SIMD support ({made_for or 'not named'}) than that "
            f"of this lbmtune ({here}): what would run was not verified; use lbmtune {best.lbmtune} or run "
            "the study again."
        )


def _made_here(best: Best, path: str | os.PathLike[str]) -> tuple[Program, Program | None]:
    """Return what this version makes of the configuration. Raises InputError if the file holds other code.

    The text of the file does not run: what a reader of code takes for a comment, a compiler may take for code.
    """
    recorded, recorded_single = _recorded(best)
    program = render(best.case, best.config)
    single = (render_single(program) or program) if recorded_single else None
    pairs = ((program, recorded), (single, recorded_single))
    if any(_what_runs(ours) != _what_runs(theirs) for ours, theirs in pairs if ours and theirs):
        raise InputError(
            f"{path} is of another version of lbmtune, or was changed: its kernel is not the one that this version "
            "makes of its configuration. It would run with your rights; if you trust its origin, say "
            "load(..., trusted=True), or run the study again."
        )
    return program, single


def check_text(best: Best, path: str | os.PathLike[str]) -> None:
    """Raise InputError if a file holds other code than this version makes of its configuration."""
    _check_support(best, path)
    _made_here(best, path)


def _what_runs(program: Program) -> tuple[object, ...]:
    return program.digest, program.period, program.prologue, program.steps


def _check_together(
    device: str | int | None, devices: Sequence[str | int] | None, cut: str, coupling: str | None, *, trusted: bool
) -> None:
    """Raise InputError for arguments that do not go together."""
    if devices is None:
        if name := "cut" if cut else "coupling" if coupling else "":
            raise InputError(f"{name}={cut or coupling} is not supported for one device (give devices=[0, 1]).")
        return
    if device is not None:
        raise InputError(f"device={device} does not go with devices={list(devices)}; leave one of them out.")
    if not devices:
        raise InputError("devices=[] is not supported (use one device for each part): there is nothing to run on.")
    if trusted:
        raise InputError(
            "trusted=True is not supported for several devices (leave it out): parts run a text that this version "
            "makes, whose launches take planes."
        )


def _rank(device: str | int | None, devices: Sequence[str | int] | None) -> Rank:
    """Return the rank of this process. Raises InputError."""
    if device is not None or devices is not None:
        name, value = ("device", device) if device is not None else ("devices", devices)
        raise InputError(f"{name}={value} does not go with ranks=True; leave one of them out.")
    return this_rank()


def _opened(best: Best, asked: Sequence[str | None], path: str | os.PathLike[str]) -> list[Any]:
    """Return the device of each part, each opened once. Raises InputError if they are not of one kind."""
    known = {one: _open(best, one, path) for one in dict.fromkeys(asked)}
    kinds = sorted({one.environment.device for one in known.values()})
    if len(kinds) > 1:
        raise InputError(
            f"devices={','.join(map(str, asked))} is not supported (use devices of one kind): {' and '.join(kinds)} "
            "take different times for equal parts."
        )
    return [known[one] for one in asked]


def _open(best: Best, device: str | None, path: str | os.PathLike[str]) -> Device:
    target = best.kernel.target
    spec = default_device(target) if device is None else device
    kind, use = BACKENDS[target].device_kind, BACKENDS[target].device_names
    if backend_of(spec) != target:
        raise InputError(
            f"device={spec} is not supported for {path} (use {use}, or run a study there): its kernel is for {kind}."
        )
    try:
        return open_device(spec)
    except DeviceUnavailableError as error:
        reason = str(error).replace(OR_CPU, "")
        raise DeviceUnavailableError(f"{path} holds a kernel for {kind}: {reason}") from error


def _warn_of_another_device(recorded: Environment, here: Environment) -> None:
    if recorded.device != here.device:
        tuned_on = printable(recorded.device)
        warnings.warn(
            f"this kernel was tuned on {tuned_on} and runs on {here.device}: expect another speed, and perhaps another "
            "best kernel.",
            stacklevel=3,
        )


def _config(config: KernelConfig, case: Case, device: Device) -> KernelConfig:
    """Return the configuration on this device, with fewer threads if it has fewer cores. Raises InputError."""
    cores, threads = device.limits.cores, getattr(config, "threads", 1)
    if threads > cores:
        warnings.warn(f"this kernel was tuned with {threads} threads and gets {cores} cores here.", stacklevel=3)
        changes: dict[str, Any] = {"threads": cores}
        config = replace(config, **changes)
    reason = broken(case, config, device.limits)
    if reason:
        raise InputError(f"this kernel cannot run here: {reason}; choose another domain or run a study.")
    return config


def _recorded(best: Best) -> tuple[Program, Program | None]:
    """Return the recorded text with its launches, and that for steps that are no whole launch, if there is one."""
    kernel, config, single = best.kernel, best.config, best.kernel.single
    period, prologue = (tuple(map(_launches, steps)) for steps in (kernel.period, kernel.opening))
    text = kernel.source, kernel.options
    program = Program(config.backend, best.case, config, *text, period, steps=kernel.steps, prologue=prologue)
    if single is None:
        return program, None
    one_step = (_launches(single.launches),)
    return program, Program(config.backend, best.case, config.single_step(), single.source, single.options, one_step)


def _launches(described: Sequence[LaunchGeometry]) -> tuple[Launch, ...]:
    return tuple(
        Launch(g.entry, g.arguments, g.block, g.covers, g.ends, _over(g.over), g.shared_bytes, _mode(g.mode))
        for g in described
    )


def _over(text: str) -> Over:
    found: Over = next((one for one in get_args(Over) if one == text), "cells")
    return found


def _mode(text: str) -> Mode:
    return "cooperative" if text == "cooperative" else "dependent" if text == "dependent" else "plain"


def _compiled(program: Program, device: Device, path: str | os.PathLike[str]) -> tuple[Program, Binary]:
    """Return a program and its binary for a device. Raises InputError. path: of the file that it comes from."""
    try:
        return program, compiler_for(device.environment)(program)
    except CompileError as error:
        raise InputError(f"the kernel of {path} does not compile here: {error}; run a study on this device.") from error
