"""Measure the losses from the memory ceiling to the kernel; each level differs from the previous one in one thing.

datasheet   bus width times clock of the memory, as reported by the driver
copy        one array to another, by the widest accesses
streams     as many streams as a cell has values, by the accesses of the kernel, in runs as long as in its layout
streaming   the kernel without collision
kernel      the kernel

Kernels with parts removed (`codegen.cuda.shared.ablation`) are timed besides. Times are of the whole device per
update. What the model expects of a level comes from the machine description and the compiled kernel only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import ceil, prod
from typing import NamedTuple, cast

import numpy as np

from lbmtune import __version__
from lbmtune.backend.protocol import Binary, CompileError, Compiler, Device, OutOfMemoryError, TooManyResourcesError
from lbmtune.backend.registry import compiler_for
from lbmtune.catalogue.collisions import NO_COLLISION
from lbmtune.catalogue.config import CudaConfig, KernelConfig
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.ablation import ablated, can_be_ablated
from lbmtune.codegen.probes import RUNS, WORD_BYTES, probe
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.errors import InputError, NothingValidError
from lbmtune.measure.calibration.microbench import Bandwidths, Rate, measure_bandwidths, measure_copy, rate
from lbmtune.measure.processes.worker import Progress
from lbmtune.measure.profiling import perf_events as perf
from lbmtune.measure.timing.pooled_device import PooledDevice, pooled_bytes
from lbmtune.measure.timing.protocol import measure
from lbmtune.measure.timing.sampling import steps_per_sample
from lbmtune.measure.timing.state import WrongResultError, all_true, excite, fill_random, probed, stable_case, unchanged
from lbmtune.measure.timing.sustained import sustain
from lbmtune.measure.verification.verify import describe_failure, verify
from lbmtune.model.gpu.families import inputs_of
from lbmtune.model.loss_breakdown import expected
from lbmtune.model.machine.description import Machine
from lbmtune.model.predict import ceiling
from lbmtune.records import Resources, Sustained, Verification
from lbmtune.records import profile as levels
from lbmtune.records.profile import Counter, Counters, Profile, Rung
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime import Simulation

_UNKNOWN_CACHE_BYTES = 64 << 20
_MOST_THREADS = 512
_SAMPLED_ELEMENTS = 4099
_COUNTED_S = 0.5
_FREE_RATE = 1e-9
"""Relaxation rate at which regularised collision, which kernels of moments imply, changes nothing."""
_NO_COUNTERS = Counters(source="no counters: they were not asked for")


@dataclass(frozen=True)
class ProfileRequest:
    """A kernel to profile, and the machine by which the model predicts it.

    counters: read those of the hardware; brief: take the copies from the description, and make no run without a pause.
    """

    case: Case
    config: KernelConfig
    machine: Machine
    protocol: TimingProtocol
    counters: bool = True
    brief: bool = False


def measure_losses(device: Device, request: ProfileRequest, progress: Progress) -> Profile:
    """Return the profile without counters of a GPU. device: if it is pooled, its memory is used.

    Raises NothingValidError if the kernel is wrong or cannot run.
    """
    try:
        kind = _KINDS[request.config.backend]
        return kind(device, compiler_for(device.environment), request, progress).profile()
    except (TooManyResourcesError, OutOfMemoryError, MemoryError, WrongResultError) as error:
        raise NothingValidError(f"the kernel cannot be profiled: {error or 'no memory is left'}") from error


class _Compiled(NamedTuple):
    program: Program
    binary: Binary


class _LossBreakdown:
    """Measures all levels in the same memory."""

    def __init__(self, device: Device, compiler: Compiler, request: ProfileRequest, progress: Progress) -> None:
        self._pooled = device if isinstance(device, PooledDevice) else PooledDevice(device)
        self._device, self._compiler, self._progress = self._pooled.device, compiler, progress
        self._case, self._config, self._machine = request.case, request.config, request.machine
        self._protocol, self._counters, self._brief = request.protocol, request.counters, request.brief
        self._bytes = bytes_per_update(request.case, request.config)
        self._cache_bytes = max(request.machine.caches_bytes.values(), default=_UNKNOWN_CACHE_BYTES)

    def profile(self) -> Profile:
        """Measure all levels."""
        full = self._compiled(render(self._case, self._config))
        free = self._compiled(render(replace(self._case, collision=NO_COLLISION), self._config))
        proof = self._verified(full)
        self._verified(free)
        rungs = [*self._datasheet(), *self._copies()]
        rungs += [self._timed(levels.STREAMING, free), self._timed(levels.KERNEL, full)]
        sustained, counters = (None, _NO_COUNTERS) if self._brief else self._sustained(full)
        found = Profile(
            case=self._case,
            key=self._config.key,
            config=self._config.flat(),
            environment=self._device.environment,
            machine=self._machine.name,
            machine_date=self._machine.date,
            bytes_per_update=self._bytes,
            rungs=tuple(rungs),
            apart=tuple(self._ablations(full.program, free.program)),
            verification=proof,
            counters=counters,
            sustained=sustained,
            conditions=self._device.conditions(),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            version=__version__,
        )
        return expected(found, self._machine)

    def _compiled(self, program: Program) -> _Compiled:
        try:
            return _Compiled(program, self._compiler(program))
        except CompileError as error:
            raise NothingValidError(f"the kernel cannot be compiled: {' '.join(str(error).split())}") from error

    def _verified(self, made: _Compiled) -> Verification:
        self._progress("verify" if made.program.case.relaxes else "verify without collision")
        self._pooled.reset()
        found = verify(provable(made.program), made.binary, self._pooled, self._protocol.verify_periods)
        if not found.passed:
            raise NothingValidError(f"wrong result: {describe_failure(found)}.")
        return found

    def _simulation(self, made: _Compiled) -> Simulation:
        """Create a simulation on the case's own domain, from a random state."""
        self._pooled.reset(pooled_bytes(made.program.array_bytes(self._case.domain)))
        simulation = Simulation(made.program, made.binary, self._pooled, stable_case(made.program.case))
        excite(simulation)
        return simulation

    def _sustained(self, made: _Compiled) -> tuple[Sustained, Counters]:
        self._progress("sustained run")
        simulation = self._simulation(made)
        return sustain(simulation, self._protocol), self._count(simulation)

    def _described(self, name: str, bytes_per_s: float) -> Rung:
        """Return a level of bandwidth by the description of the machine."""
        return Rung(name=name, seconds=self._bytes / bytes_per_s)

    def _at(self, name: str, found: Rate) -> Rung:
        """Return a level of bandwidth: the bytes of the kernel at that rate."""
        return Rung(name=name, seconds=self._bytes / found.bytes_per_s, spread=found.spread)

    def _datasheet(self) -> Iterator[Rung]:
        """Return the level of the data sheet, if the driver reports bus and clock."""
        found = self._device.datasheet_bytes_per_s()
        if found:
            yield Rung(name=levels.DATASHEET, seconds=self._bytes / found)

    def _copies(self) -> Iterator[Rung]:
        """Measure copies of one array, and of as many streams as a cell has values."""
        raise NotImplementedError

    def _count(self, simulation: Simulation) -> Counters:  # noqa: ARG002
        """Read hardware counters in this process; those of a GPU are read by another one."""
        return _NO_COUNTERS

    def _ablations(self, full: Program, free: Program) -> Iterator[Rung]:  # noqa: ARG002
        yield from ()

    def _timed(self, name: str, made: _Compiled) -> Rung:
        self._progress("kernel" if name == levels.KERNEL else "kernel without collision")
        found = measure(self._simulation(made), self._protocol)
        return Rung(
            name=name,
            seconds=1e-6 / found.mlups,
            spread=(found.ci_high_mlups - found.ci_low_mlups) / 2 / found.mlups,
            resources=made.binary.resources,
            disturbed=found.disturbed,
        )


class _GpuLosses(_LossBreakdown):
    """The losses of a CUDA kernel."""

    def __init__(self, device: Device, compiler: Compiler, request: ProfileRequest, progress: Progress) -> None:
        """Raises InputError if the machine description has no calibration."""
        super().__init__(device, compiler, request, progress)
        if request.machine.calibration is None:
            raise InputError(
                f"the description of {request.machine.name} has no calibration, which explains losses; "
                "run: lbmtune devices --calibrate."
            )
        config = cast("CudaConfig", request.config)
        self._inputs = inputs_of(request.case, config, request.machine, Resources())

    def _copies(self) -> Iterator[Rung]:
        if self._brief:
            yield self._described(levels.COPY, self._machine.copy_bytes_per_s)
        else:
            self._progress("copy of one array")
            yield self._at(levels.COPY, measure_copy(self._device, self._compiler, self._cache_bytes))
        yield self._at(levels.STREAMS, self._streams())

    def _streams(self) -> Rate:
        """Copy in as much memory as the kernel has, from one lattice to the other or in place."""
        inputs, size = self._inputs, footprint_bytes(self._case, self._config)
        self._progress("copy of as many streams as a cell has values")
        config, streams, access = inputs.config, inputs.config.kept.values(self._case.stencil), inputs.access_bytes
        threads = min(prod(config.block), _MOST_THREADS)
        run_bytes = max(inputs.run_bytes, access) if inputs.run_bytes else 0
        made = self._compiled(
            probe(streams=streams, access_bytes=access, run_bytes=run_bytes // access * access, threads=threads)
        )
        size = size // config.propagation.lattices // WORD_BYTES
        self._pooled.reset(pooled_bytes([size * WORD_BYTES] * config.propagation.lattices))
        arrays = [self._pooled.empty(size, "float32") for _ in range(config.propagation.lattices)]
        for array in arrays:
            array.fill(0)
        fill_random(arrays[0], 1.0, self._device.xp)
        accesses = size * WORD_BYTES // (streams * access)
        accesses -= accesses % max(1, run_bytes // access)  # whole runs
        launch = next(one for one in made.program.period[0] if one.entry == RUNS)
        executable = self._pooled.load(made.program, made.binary)
        arguments = arrays[0], arrays[-1], np.int32(accesses)
        run = partial(executable.launch, launch, (ceil(accesses / threads), 1, 1), arguments)
        found = rate(self._device, run, 2.0 * streams * accesses * access)
        copied = streams * accesses * access // WORD_BYTES
        some = slice(0, copied, max(1, copied // _SAMPLED_ELEMENTS))
        if not all_true(arrays[0][some] == arrays[-1][some]):
            raise RuntimeError("a copy of streams did not move what it should; its figure would mean nothing")
        return found

    def _ablations(self, full: Program, free: Program) -> Iterator[Rung]:
        """Time kernels with parts removed, if the kernel has separable parts."""
        if not can_be_ablated(full):
            return
        yield self._ablation(levels.READS, ablated(free, reads=True, writes=False))
        yield self._ablation(levels.WRITES, ablated(free, reads=False, writes=True))
        yield self._ablation(levels.COLLISION, ablated(full, reads=False, writes=False))

    def _ablation(self, name: str, program: Program) -> Rung:
        self._progress(name)
        made = self._compiled(program)
        simulation = self._simulation(made)
        before = probed(simulation)
        steps = simulation.cycle_steps
        found = rate(self._device, lambda: simulation.step(steps), steps * self._case.fluid_sites)
        if unchanged(before, probed(simulation)) == (name == levels.WRITES):
            raise RuntimeError(f"{name}: the kernel {'left' if name == levels.WRITES else 'changed'} the state")
        return Rung(name=name, seconds=1 / found.bytes_per_s, spread=found.spread, resources=made.binary.resources)


class _CpuLosses(_LossBreakdown):
    """The losses of a CPU kernel."""

    def _copies(self) -> Iterator[Rung]:
        if self._brief:
            yield self._described(levels.COPY, self._machine.copy_bytes_per_s)
            yield self._described(levels.STREAMS, ceiling(self._config, self._machine).bytes_per_s)
            return
        found = measure_bandwidths(self._device, self._compiler, self._cache_bytes, self._progress)
        yield self._at(levels.COPY, found.copy)
        yield self._at(levels.STREAMS, self._streams(found))

    def _streams(self, found: Bandwidths) -> Rate:
        measured = replace(
            self._machine,
            in_place_bytes_per_s=found.in_place.bytes_per_s,
            stream_bytes_per_s={name: one.bytes_per_s for name, one in found.streams.items()},
            thread_bytes_per_s=found.thread.bytes_per_s if found.thread else None,
        )
        spread = max(one.spread for one in (found.in_place, *found.streams.values()))
        return Rate(ceiling(self._config, measured).bytes_per_s, spread)

    def _count(self, simulation: Simulation) -> Counters:
        if not self._counters:
            return _NO_COUNTERS
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


_KINDS: Mapping[str, type[_LossBreakdown]] = {"cuda": _GpuLosses, "cpu": _CpuLosses}


def provable(program: Program) -> Program:
    """Return the program with a case that the oracle can follow.

    A kernel of moments without collision streams populations rebuilt from moments: regularised collision at rate zero.
    """
    if program.case.relaxes or program.config.kept.name != "moments":
        return program
    free = replace(program.case, collision="regularised", relaxation_rate=_FREE_RATE, force=(0.0, 0.0, 0.0))
    return replace(program, case=free)
