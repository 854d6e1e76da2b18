"""Verify every pair of choices of the catalogue against the oracle (tests/support/conformance/covering.py).

    python -m scripts.conformance            the CUDA text on the host shim, and the CPU kernels compiled
    python -m scripts.conformance --on 0     the CUDA kernels on GPU 0

Prints what it verified, illegal pairs with their reasons, kernels that a GPU cannot launch, and wrong kernels. A wrong
kernel on a GPU is assembled again with fewer optimisations. If that is right, the text is right and the assembler is
at fault; such kernels are counted separately.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Array, Binary, CompileError, Device, Placing
from lbmtune.backend.registry import compiler_for, open_device, reassembled
from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.cores import usable_cores
from lbmtune.measure.timing.pooled_device import PooledDevice, WrappedDevice
from lbmtune.measure.timing.state import WrongResultError, excite
from lbmtune.measure.verification.aftermath import check_line, check_slab, check_slabs, check_sums, sums
from lbmtune.measure.verification.verify import short_chunks, verify
from lbmtune.records import Resources
from lbmtune.runtime import Simulation
from lbmtune.runtime.macroscopic_pass import MacroscopicPass
from lbmtune.runtime.memory import array_names
from tests.support.conformance.choices import Sample
from tests.support.conformance.covering import Covering, everything

Verdict = str | None
"""The error of a kernel; None: it is right."""
_STEPS = 24
"""Steps of a kernel on its own domain before the state that it leaves is proved."""
_FIELD_ROUNDINGS = 32
_NOTHING = Binary(b"", "", Resources())
MISASSEMBLED = "wrong as assembled alone"
"""Start of the verdict on a wrong kernel whose text is right."""


def on_shim(sample: Sample) -> Verdict:
    """Verify the CUDA text, compiled as C++ and run on the host."""
    from tests.shim.device import HostDevice, compile_on_host

    return _checked(sample, compile_on_host, HostDevice())


def on_cpu(sample: Sample) -> Verdict:
    """Verify the CPU kernel."""
    from lbmtune.backend.cpu import compile_cpu, open_cpu

    return _checked(sample, compile_cpu, open_cpu())


def _checked(sample: Sample, compiler: Callable[[Program], Binary], device: Device) -> Verdict:
    try:
        program = render(*sample)
        return _verified(program, compiler(program), device) or wrong_fields(program, device, compiler)
    except CompileError as error:
        return f"does not compile: {str(error)[:500]}"
    except Exception:
        # a failure of the generator must not prevent the verification of others
        return f"cannot be generated: {traceback.format_exc(limit=-1)}"


def _verified(program: Program, binary: Binary, device: Device) -> Verdict:
    """Verify a program, its writes outside buffers, and what it leaves after some steps."""
    pooled = PooledDevice(device)
    found = verify(program, binary, pooled)
    if not found.passed:
        return f"wrong: {found}"
    try:
        pooled.check_guards(array_names(program))
        # on a small domain, because the host shim takes seconds for a step of the case's own
        case = replace(program.case, domain=program.config.awkward_domain(program.case))
        _leave_a_state(Simulation(short_chunks(program), binary, pooled, case))
        pooled.check_guards(array_names(program))
    except WrongResultError as error:
        return f"wrong: {error}"
    return None


def wrong_fields(program: Program, device: Device, compiler: Callable[[Program], Binary]) -> Verdict:
    """Compare density and velocity by a pass of their own with those that the host sums up, for every parity."""
    case, config = replace(program.case, domain=program.config.awkward_domain(program.case)), program.config
    simulation = Simulation(program, _NOTHING, _Idle(device), case)
    found = MacroscopicPass(simulation, device, compiler)
    solid = solid_in(case, whole(case.domain), device.xp) if case.geometry else None
    random, xp = np.random.default_rng(1), device.xp
    rest = 0.0 if config.stored.shifted else 1.0
    for buffer in simulation.buffers.values():
        values = (rest + random.uniform(-1e-2, 1e-2, buffer.size)) / case.stencil.q  # deviations are small
        buffer[...] = xp.asarray(config.stored.stored(values, np, config.unit))
    for parity in range(config.propagation.period):
        simulation.steps_done = parity
        fields = found().reshape(-1, *case.domain[::-1])
        density, velocity = simulation.macroscopic()
        expected = xp.concatenate([density[None], velocity])
        if solid is not None:
            expected[0][solid] = 1.0
        error = float(xp.abs(fields - expected).max())
        if not error <= _FIELD_ROUNDINGS * config.computed.epsilon:
            return f"wrong: density or velocity of parity {parity} by a pass of its own is off by {error:.3g}"
    return None


class _Idle(WrappedDevice):
    """A device on which no kernel is loaded."""

    def empty(self, elements: int, dtype: str, placing: Placing | None = None) -> Array:
        return self.device.empty(elements, dtype, placing)

    def load(self, _program: Program, _binary: Binary) -> Any:
        return None


def _leave_a_state(simulation: Simulation) -> None:
    """Prove a state as those of timed launches are proved. Raises WrongResultError."""
    excite(simulation)
    simulation.step(2 * simulation.parity_steps)
    before = sums(simulation)
    simulation.step(_STEPS // simulation.parity_steps * simulation.parity_steps)
    check_sums(simulation, before)
    check_slab(simulation)
    check_slabs(simulation, simulation.steps_done)
    check_line(simulation)


def _compiled(architecture_of: partial[Binary], sample: Sample) -> Binary | str:
    try:
        return architecture_of(render(*sample))
    except CompileError as error:
        return f"does not compile: {str(error)[:500]}"


def _told_apart(program: Program, verdict: str, device: Device) -> str:
    """Return the verdict on a wrong GPU kernel after its text was assembled with fewer optimisations."""
    ways = reassembled(device.environment, program)
    right = next((how for how, binary in ways if not _verified(program, binary, device)), "")
    return f"{MISASSEMBLED}, right by {right}: {verdict}" if right else verdict


def on_gpu(samples: Sequence[Sample], name: str, workers: int) -> Iterator[Verdict]:
    """Yield verdicts on GPU kernels, compiled by other processes and verified by this one."""
    device = open_device(name)
    compiler = compiler_for(device.environment)
    assert isinstance(compiler, partial)
    with ProcessPoolExecutor(workers) as pool:
        for sample, binary in zip(samples, pool.map(partial(_compiled, compiler), samples), strict=True):
            if isinstance(binary, str):
                yield binary
                continue
            program = render(*sample)
            verdict = _verified(program, binary, device)
            yield verdict and _told_apart(program, verdict, device)


def in_parallel(samples: Sequence[Sample], name: str, workers: int) -> Iterator[Verdict]:
    """Yield verdicts on samples in several processes; a sample that ends its process is wrong."""
    check_one, done = on_shim if name == "shim" else on_cpu, 0
    while done < len(samples):
        with ProcessPoolExecutor(workers) as pool:
            try:
                for verdict in pool.map(check_one, samples[done:]):
                    yield verdict
                    done += 1
                continue
            except BrokenProcessPool:
                pass
        yield _alone(check_one, samples[done])
        done += 1


def _alone(check_one: Callable[[Sample], Verdict], sample: Sample) -> Verdict:
    """Verify a sample in a process of its own, because the first pending sample need not be the one that failed."""
    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(check_one, sample).result()
        except BrokenProcessPool:
            return "ends its process"


def launched_on(limits: Limits, covering: Covering) -> Covering:
    """Return the kernels that a device can launch; print the others with the reasons."""
    reasons = {sample: broken(*sample, limits) for sample in covering.samples}
    for (case, config), reason in reasons.items():
        if reason:
            print(f"skipped on this device: {case.lattice} {case.flow} {case.collision} {config.brief}: {reason}")
    return replace(covering, samples=tuple(sample for sample, reason in reasons.items() if not reason))


def check(name: str, covering: Covering, workers: int, every: int) -> int:
    """Verify every n-th sample in one place; print the results; return the number of wrong ones."""
    begin, samples = time.monotonic(), covering.samples[::every]
    print(f"{name}: {len(samples)} kernels for {covering.pairs} pairs of choices", flush=True)
    verdicts = in_parallel(samples, name, workers) if name in ("shim", "cpu") else on_gpu(samples, name, workers)
    wrong = misassembled = 0
    for (case, config), verdict in zip(samples, verdicts, strict=True):
        if verdict:
            misassembled += verdict.startswith(MISASSEMBLED)
            wrong += not verdict.startswith(MISASSEMBLED)
            print(f"  {case.lattice} {case.flow} {case.collision} {config.brief}: {verdict}", flush=True)
    apart = f", {misassembled} {MISASSEMBLED}" if misassembled else ""
    print(f"{name}: {len(samples)} kernels in {time.monotonic() - begin:.0f} s, {wrong} wrong{apart}", flush=True)
    return wrong


def print_missing(name: str, covering: Covering) -> None:
    """Print the pairs of values without a sample by reason: illegal ones, then undecided ones."""
    for what, proved in (("illegal", True), ("undecided", False)):
        reasons: dict[str, list[str]] = {}
        for one in covering.missing:
            if one.proved == proved:
                values = ",".join(f"{knob}={value}" for knob, value in one.values)
                reasons.setdefault(f"{one.family}: {one.reason}", []).append(values)
        print(f"{name}: {sum(map(len, reasons.values()))} pairs and combinations are {what}")
        for reason, found in sorted(reasons.items(), key=lambda item: -len(item[1])):
            print(f"  {len(found):4} {reason}\n       {' '.join(found)}")


def main() -> int:
    """Return 1 if a kernel is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="shim,cpu", help="comma separated: shim, cpu, or the index of a GPU")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="only every n-th kernel")
    parser.add_argument("--workers", type=int, default=usable_cores())
    given = parser.parse_args()
    wrong = 0
    for name in given.on.split(","):
        covering = everything("cpu" if name == "cpu" else "cuda", given.seed)
        if name not in ("shim", "cpu"):
            covering = launched_on(open_device(name).limits, covering)
        wrong += check(name, covering, given.workers, given.every)
        print_missing(name, covering)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
