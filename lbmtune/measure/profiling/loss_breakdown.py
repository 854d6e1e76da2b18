"""From the ceiling to the kernel, each rung measured by a program of the same tables that differs in one thing.

datasheet   bus width times clock of the memory, as the driver tells them
copy        one array to another, by the widest accesses
streams     as many streams as a cell has values, by the accesses of the kernel, in runs as long as in its layout
streaming   the kernel itself without collision
kernel      all of it

Beside them stand kernels with parts taken out (`codegen.cuda.shared.ablation`). Times are of the whole device per
update. What the model expects of a rung comes from the description of the machine and from what was compiled, never
from the rung.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import ceil, prod
from typing import NamedTuple

import numpy as np

from lbmtune import __version__
from lbmtune.backend.protocol import (
    Array,
    Binary,
    CompileError,
    Compiler,
    Device,
    OutOfMemoryError,
    TooManyResourcesError,
)
from lbmtune.backend.registry import compiler_for
from lbmtune.catalogue.config import CudaConfig, KernelConfig
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.problem.case import NO_COLLISION, Case
from lbmtune.codegen.cuda.shared.ablation import alone, can_be_alone
from lbmtune.codegen.probes import RUNS, WORD_BYTES, probe
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.errors import InputError, NothingValidError
from lbmtune.measure.calibration.microbench import Bandwidths, Rate, Say, measure_bandwidths, measure_copy, rate
from lbmtune.measure.profiling import perf_events as perf
from lbmtune.measure.timing.pooled_device import Arena, arena_bytes
from lbmtune.measure.timing.protocol import WrongResultError, excite, measure, steps_per_sample
from lbmtune.measure.timing.random_fill import fill_with_noise
from lbmtune.measure.timing.sustained import sustain
from lbmtune.measure.verification.verify import verify
from lbmtune.measure.workers.worker_tasks import calm, explained
from lbmtune.model.gpu.families import inputs_of
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.loss_breakdown import expected
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import ceiling
from lbmtune.records import Resources, Verification
from lbmtune.records.profile import (
    COLLISION,
    COPY,
    DATASHEET,
    KERNEL,
    READS,
    STREAMING,
    STREAMS,
    WRITES,
    Counter,
    Counters,
    Profile,
    Rung,
)
from lbmtune.records.study import TimingProtocol
from lbmtune.runtime import Simulation

_UNKNOWN_CACHE_BYTES = 64 << 20
_MOST_THREADS = 512
_LOOKED_AT = 4099
_COUNTED_S = 0.5
_FREE_RATE = 1e-9
"""Relaxation rate at which regularised collision, of which kernels of moments are a form, changes nothing."""


@dataclass(frozen=True)
class Asked:
    """What is to be profiled, and by what the model knows. counters: whether those of the hardware are to be read."""

    case: Case
    config: KernelConfig
    machine: Machine
    protocol: TimingProtocol
    counters: bool = True


def climb(device: Device, asked: Asked, say: Say) -> Profile:
    """The profile, without counters. Raises NothingValidError where the kernel is wrong or cannot run."""
    try:
        return _Ladder(device, compiler_for(device.environment), asked, say).profile()
    except (TooManyResourcesError, OutOfMemoryError, MemoryError, WrongResultError) as error:
        raise NothingValidError(f"the kernel cannot be profiled: {error or 'no memory is left'}") from error


class _Made(NamedTuple):
    """A program that was compiled."""

    program: Program
    binary: Binary


class _Ladder:
    """Everything that is measured, in one memory."""

    def __init__(self, device: Device, compiler: Compiler, asked: Asked, say: Say) -> None:
        self._device, self._compiler, self._say = device, compiler, say
        self._arena = Arena(device)
        self._case, self._config, self._machine = asked.case, asked.config, asked.machine
        self._protocol, self._counters = asked.protocol, asked.counters
        self._moved = bytes_per_update(asked.case, asked.config)
        self._subject = _subject(asked)

    def profile(self) -> Profile:
        """Rungs from the bottom of the memory up to the kernel."""
        full = self._compiled(render(self._case, self._config))
        free = self._compiled(render(replace(self._case, collision=NO_COLLISION), self._config))
        proof = self._verified(full)
        self._verified(free)
        rungs = [*self._datasheet(), *self._copies()]
        rungs += [self._timed(STREAMING, free), self._timed(KERNEL, full)]
        self._say("a run of seconds")
        simulation = self._simulation(full)
        sustained = sustain(simulation, self._protocol)
        counters = self._counted(simulation)
        found = Profile(
            case=self._case,
            key=self._config.key,
            config=self._config.flat(),
            environment=self._device.environment,
            machine=self._machine.name,
            machine_date=self._machine.date,
            bytes_per_update=self._moved,
            rungs=tuple(rungs),
            apart=tuple(self._apart(full.program, free.program)),
            verification=proof,
            counters=counters,
            sustained=sustained,
            conditions=self._device.conditions(),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            version=__version__,
        )
        return expected(found, self._machine)

    def _compiled(self, program: Program) -> _Made:
        try:
            return _Made(program, self._compiler(program))
        except CompileError as error:
            raise NothingValidError(f"the kernel cannot be compiled: {' '.join(str(error).split())}") from error

    def _verified(self, made: _Made) -> Verification:
        self._say("verify" if made.program.case.relaxes else "verify it without collision")
        self._arena.reset()
        found = verify(provable(made.program), made.binary, self._arena, self._protocol.verify_periods)
        if not found.passed:
            raise NothingValidError(f"wrong result: {explained(found)}.")
        return found

    def _simulation(self, made: _Made) -> Simulation:
        """On the case's own domain, from a random state."""
        self._arena.reset(arena_bytes(made.program.array_bytes(self._case.domain)))
        simulation = Simulation(made.program, made.binary, self._arena, calm(made.program.case))
        excite(simulation)
        return simulation

    def _at(self, name: str, found: Rate) -> Rung:
        """A rung of bandwidth: the bytes of the kernel at that rate."""
        return Rung(name=name, seconds=self._moved / found.bytes_per_s, spread=found.spread)

    def _datasheet(self) -> Iterator[Rung]:
        """Where the driver tells bus and clock."""
        found = self._device.datasheet_bytes_per_s()
        if found:
            yield Rung(name=DATASHEET, seconds=self._moved / found)

    def _copies(self) -> Iterator[Rung]:
        """Of one array, and of as many streams as a cell has values."""
        cache_bytes = max(self._machine.caches_bytes.values(), default=_UNKNOWN_CACHE_BYTES)
        if self._subject:
            self._say("copy of one array")
            yield self._at(COPY, measure_copy(self._device, self._compiler, cache_bytes))
            yield self._at(STREAMS, self._cuda_streams(self._subject))
        else:
            now = measure_bandwidths(self._device, self._compiler, cache_bytes, self._say)
            yield self._at(COPY, now.copy)
            yield self._at(STREAMS, self._cpu_streams(now))

    def _cpu_streams(self, now: Bandwidths) -> Rate:
        """The copy that fits the accesses of the kernel."""
        measured = replace(
            self._machine,
            in_place_bytes_per_s=now.in_place.bytes_per_s,
            stream_bytes_per_s={name: one.bytes_per_s for name, one in now.streams.items()},
            thread_bytes_per_s=now.thread.bytes_per_s if now.thread else None,
        )
        spread = max(one.spread for one in (now.in_place, *now.streams.values()))
        return Rate(ceiling(self._config, measured).bytes_per_s, spread)

    def _cuda_streams(self, subject: Inputs) -> Rate:
        """In as much memory as the kernel has: from one lattice to the other, or in place."""
        self._say("copy of as many streams as a cell has values")
        config, streams, access = subject.config, subject.config.kept.values(self._case.stencil), subject.access_bytes
        threads = min(prod(config.block), _MOST_THREADS)
        run_bytes = max(subject.run_bytes, access) if subject.run_bytes else 0
        made = self._compiled(
            probe(streams=streams, access_bytes=access, run_bytes=run_bytes // access * access, threads=threads)
        )
        size = footprint_bytes(self._case, config) // config.propagation.lattices // WORD_BYTES
        self._arena.reset(arena_bytes([size * WORD_BYTES] * config.propagation.lattices))
        arrays = [self._arena.empty(size, "float32") for _ in range(config.propagation.lattices)]
        for array in arrays:
            array.fill(0)
        fill_with_noise(arrays[0], 1.0, self._device.xp)
        accesses = size * WORD_BYTES // (streams * access)
        accesses -= accesses % max(1, run_bytes // access)  # whole runs
        launch = next(one for one in made.program.period[0] if one.entry == RUNS)
        executable = self._arena.load(made.program, made.binary)
        arguments = arrays[0], arrays[-1], np.int32(accesses)
        run = partial(executable.launch, launch, (ceil(accesses / threads), 1, 1), arguments)
        found = rate(self._device, run, 2.0 * streams * accesses * access)
        _insist_on_copy(arrays, streams * accesses * access // WORD_BYTES)
        return found

    def _timed(self, name: str, made: _Made) -> Rung:
        """A whole kernel by the protocol."""
        self._say("the kernel" if name == KERNEL else "the kernel without collision")
        found = measure(self._simulation(made), self._protocol)
        return Rung(
            name=name,
            seconds=1e-6 / found.mlups,
            spread=(found.ci_high_mlups - found.ci_low_mlups) / 2 / found.mlups,
            resources=made.binary.resources,
            disturbed=found.disturbed,
        )

    def _counted(self, simulation: Simulation) -> Counters:
        """By perf events, of a CPU; those of a GPU are read by a program of its own."""
        if not self._counters or self._subject:
            return Counters(source="no counters: they were not asked for")
        cycle = simulation.cycle_steps
        cycle_s = simulation.device.time_s(lambda: simulation.step(cycle))
        steps = steps_per_sample(simulation, cycle_s / cycle, _COUNTED_S)
        try:
            found = perf.counted(lambda: simulation.step(steps))
        except perf.PerfError as error:
            return Counters(source=f"no counters: {error}")
        updates = steps * self._case.fluid_sites
        counts = [Counter(name=name, value=value / updates, unit="per update") for name, value in found.items()]
        fetched = found[perf.MISSES] * perf.LINE_BYTES / updates
        counts.append(Counter(name="bytes fetched by these misses", value=fetched, unit="per update"))
        return Counters(source="perf events", found=tuple(counts))

    def _apart(self, full: Program, free: Program) -> Iterator[Rung]:
        """Kernels with parts taken out, where those can be."""
        if not can_be_alone(full):
            return
        yield self._alone(READS, alone(free, reads=True, writes=False))
        yield self._alone(WRITES, alone(free, reads=False, writes=True))
        yield self._alone(COLLISION, alone(full, reads=False, writes=False))

    def _alone(self, name: str, program: Program) -> Rung:
        self._say(name)
        made = self._compiled(program)
        simulation = self._simulation(made)
        before = _looked_at(simulation)
        steps = simulation.cycle_steps
        found = rate(self._device, lambda: simulation.step(steps), steps * self._case.fluid_sites)
        if _same(before, _looked_at(simulation)) == (name == WRITES):
            raise RuntimeError(f"{name}: the kernel {'left' if name == WRITES else 'changed'} the state")
        return Rung(name=name, seconds=1 / found.bytes_per_s, spread=found.spread, resources=made.binary.resources)


def _subject(asked: Asked) -> Inputs | None:
    """What the terms of the model are asked about; None on a CPU. Raises InputError where nobody has calibrated."""
    if not isinstance(asked.config, CudaConfig):
        return None
    if asked.machine.calibration is None:
        raise InputError(
            f"the description of {asked.machine.name} has no calibration, by which losses are explained; "
            "lbmtune devices --calibrate measures it."
        )
    return inputs_of(asked.case, asked.config, asked.machine, Resources())


def _insist_on_copy(arrays: Sequence[Array], elements: int) -> None:
    """Whether what was copied has come, at some places; in place it has in any case."""
    some = slice(0, elements, max(1, elements // _LOOKED_AT))
    if not bool((arrays[0][some] == arrays[-1][some]).all()):
        raise RuntimeError("a copy of streams did not move what it should; its figure would mean nothing")


def _looked_at(simulation: Simulation) -> list[Array]:
    """Some elements of each lattice, all over it."""
    return [buffer[:: max(1, buffer.size // _LOOKED_AT)].copy() for buffer in simulation.buffers.values()]


def _same(before: Sequence[Array], after: Sequence[Array]) -> bool:
    return all(bool((a == b).all()) for a, b in zip(before, after, strict=True))


def provable(program: Program) -> Program:
    """What the oracle can follow: kernels of moments stream what these tell of the populations.

    That is regularised collision at a rate at which it relaxes nothing.
    """
    if program.case.relaxes or program.config.kept.name != "moments":
        return program
    free = replace(program.case, collision="regularised", relaxation_rate=_FREE_RATE, force=(0.0, 0.0, 0.0))
    return replace(program, case=free)
