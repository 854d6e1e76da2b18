"""Study records that no device made: every outcome, on something like a GPU and something like a CPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from lbmtune.catalogue.config import CudaConfig, KernelConfig, cpu, cuda
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.records import (
    Conditions,
    Costs,
    Environment,
    Measurement,
    Outcome,
    Prediction,
    Resources,
    Trial,
    Verification,
)
from lbmtune.records.header import Ceiling, StudyHeader
from lbmtune.records.spec import Budget, StudySpec
from lbmtune.records.study import StudyRecord

DATE = "2026-01-02T03:04:05+00:00"
GPU_CEILING = Ceiling(
    copy_bytes_per_s=4.1e12,
    in_place_bytes_per_s=4.2e12,
    stream_bytes_per_s={"4": 3.6e12, "8": 4.0e12, "16": 4.15e12},
    date=DATE,
)
CPU_CEILING = Ceiling(
    copy_bytes_per_s=4.9e10,
    in_place_bytes_per_s=5.4e10,
    stream_bytes_per_s={"4": 2.9e10, "64 streaming": 5.2e10},
    date=DATE,
)
REASONS = {
    Outcome.COMPILE_FAILED: "line 7: expected a ';' <script>alert(1)</script>",
    Outcome.WRONG_RESULT: "f_3 at cell (1, 2, 3) of 32x5x7 is off by 0.2 after 2 steps; the bound is 1e-6",
    Outcome.MISCOMPILED: "f_3 at cell (1, 2, 3) of 32x5x7 is off by 0.2; assembled by ptxas -O1 the same text is right",
    Outcome.TIMED_OUT: "measure took longer than 60 s",
    Outcome.CRASHED: "the process died by signal 11",
}


def gpu_study(count: int = 60) -> StudyRecord:
    """Registers, clocks, finals; every outcome occurs."""
    case = box("d3q19", "bgk", (256, 256, 256))
    limits = ("none", "64-registers", "128-registers")
    space = product(("aa", "esoteric-pull", "pull"), (1, 2, 4), (64, 128, 256), limits)
    configs = [
        cuda.Direct(scheme=s, cells_per_thread=c, block=(x, 1, 1), register_limit=r)
        for s, c, x, r in list(space)[:count]
    ]
    trials = [_trial(case, n, config, GPU_CEILING) for n, config in enumerate(configs)]
    return _study(case, "cuda", GPU_CEILING, _with_finals(trials), GPU)


def cpu_study() -> StudyRecord:
    """No registers, no clocks, no finals."""
    case = cavity("d2q9", "trt", (64, 64, 1), 1.4)
    configs = [cpu.Direct(scheme=s, vector_bits=v) for s, v in product(("aa", "pull", "push"), (0, 256, 512))]
    trials = [_trial(case, n, config, CPU_CEILING) for n, config in enumerate(configs)]
    return _study(case, "cpu", CPU_CEILING, trials, CPU)


def hopeless_study() -> StudyRecord:
    """Nothing was verified."""
    study = gpu_study(20)
    return replace(study, trials=tuple(t for t in study.trials if t.outcome is not Outcome.OK))


def empty_study() -> StudyRecord:
    """Nothing was tried."""
    return replace(cpu_study(), trials=())


def _study(case: Case, backend: str, ceiling: Ceiling, trials: list[Trial], environment: Environment) -> StudyRecord:
    axes: dict[str, dict[str, tuple[int | str, ...]]] = {backend: {"scheme": ("aa", "pull")}}
    header = StudyHeader(
        spec=StudySpec(name="made up & <b>marked</b>", case=case, axes=axes, budget=Budget(trials=60)),
        backend=backend,
        environment=environment,
        ceiling=ceiling,
        legal_configurations=1234,
        illegal_configurations={"block 1024x2x1 = 2048 threads; this device allows 1024": 17},
        date=DATE,
        version="0.1.0",
    )
    return StudyRecord(header=header, trials=tuple(trials))


GPU = Environment(
    backend="cuda",
    device="NVIDIA H200",
    device_id="GPU-0",
    architecture="sm_90",
    driver="580",
    runtime="13.0",
    compiler="NVRTC 13.0",
    memory_bytes=150 * 2**30,
    power_limit_w=700.0,
    max_sm_clock_hz=1.98e9,
    ecc=True,
    packages={"numpy": "2.4"},
    date=DATE,
)
CPU = Environment(backend="cpu", device="EPYC", device_id="host EPYC", architecture="x86_64", cores=2, vector_bits=512)


def _trial(case: Case, number: int, config: KernelConfig, ceiling: Ceiling) -> Trial:
    outcome = Outcome.OK if number % 3 else list(Outcome)[number // 3 % len(Outcome)]
    gpu = isinstance(config, CudaConfig)
    trial = Trial(
        number=number,
        key=config.key,
        config=config.flat(),
        outcome=outcome,
        reason=REASONS.get(outcome, "" if outcome is Outcome.OK else f"a reason for {outcome}"),
        prediction=_prediction(case, config, ceiling),
        resources=Resources(registers=40 + number, spill_bytes=8, code_bytes=4096) if gpu else None,
        costs=Costs(compile_s=0.4, verify_s=0.1, measure_s=0.2 * (outcome is Outcome.OK), search_s=0.01),
        date=DATE,
    )
    if outcome is not Outcome.OK:
        return trial
    return replace(trial, verification=_verification(), measurement=_measurement(case, trial, number, gpu=gpu))


def _prediction(case: Case, config: KernelConfig, ceiling: Ceiling) -> Prediction:
    moved = bytes_per_update(case, config)
    rate = ceiling.best_bytes_per_s
    return Prediction(
        mlups=rate / moved / 1e6,
        bytes_per_update=moved,
        bandwidth_bytes_per_s=rate,
        footprint_bytes=footprint_bytes(case, config),
        limit="memory bandwidth",
        ceiling_source="stream copy",
    )


def _verification() -> Verification:
    return Verification(
        error=1e-8,
        bound=1e-7,
        worst_cell=(1, 2, 3),
        worst_direction=4,
        worst_steps=6,
        domains=((33, 5, 7),),
        full_size=True,
    )


def _measurement(case: Case, trial: Trial, number: int, *, gpu: bool) -> Measurement:
    assert trial.prediction is not None
    mlups = trial.prediction.mlups * (0.55 + 0.44 * (number * 37 % 61) / 61)
    conditions = Conditions(sm_clock_hz=1.9e9, memory_clock_hz=3.2e9, power_w=650, temperature_c=55)
    return Measurement(
        mlups=mlups,
        ci_low_mlups=0.99 * mlups,
        ci_high_mlups=1.01 * mlups,
        bandwidth_bytes_per_s=mlups * 1e6 * trial.prediction.bytes_per_update,
        bytes_per_update=trial.prediction.bytes_per_update,
        samples_s=tuple(case.sites / mlups / 1e6 * (1 + 0.001 * i) for i in range(9)),
        steps_per_sample=20,
        sites=case.sites,
        conditions=conditions if gpu else Conditions(cpu_share=0.98),
    )


def _with_finals(trials: list[Trial]) -> list[Trial]:
    best = sorted((t for t in trials if t.mlups), key=lambda t: -(t.mlups or 0))[:4]
    return [replace(t, final=t.measurement) if t in best else t for t in trials]
