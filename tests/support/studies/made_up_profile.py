"""A profile with round figures: 160 bytes per update, 4000 GB/s by the data sheet."""

from __future__ import annotations

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.flows import box
from lbmtune.records import Conditions, Environment, Resources, Sustained, Term, Verification
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


def rung(name: str, ps: float, model_ps: float | None = None, registers: int = 0) -> Rung:
    return Rung(
        name=name,
        seconds=ps * 1e-12,
        model_s=model_ps * 1e-12 if model_ps else None,
        model=(Term(name=_term(name), seconds=model_ps * 1e-12, sentence="160 B", source="made up"),)
        if model_ps
        else (),
        resources=Resources(registers=registers) if registers else None,
    )


def _term(name: str) -> str:
    """As `model.loss_breakdown` names them: what moves bytes alone has the name of its rung."""
    return name if name in (DATASHEET, COPY, STREAMS) else "memory"


PROFILE = Profile(
    case=box("d3q19", "bgk", (256, 256, 256)),
    key=cuda.Direct().key,
    config=cuda.Direct().flat(),
    environment=Environment(backend="cuda", device="NVIDIA H200", device_id="GPU-0", architecture="sm_90", ecc=True),
    machine="NVIDIA H200",
    machine_date="2026-11-22T00:00:00+00:00",
    bytes_per_update=160.0,
    # 25000, 20000, 16000, 12500 and 10000 MLUPS; by the model 25000, 20000, 16000, 12500 and 10000 * 50 / 48
    rungs=(
        rung(DATASHEET, 40, 40),
        rung(COPY, 50, 50),
        rung(STREAMS, 62.5, 62.5),
        rung(STREAMING, 80, 80, registers=64),
        rung(KERNEL, 100, 96, registers=95),
    ),
    apart=(rung(READS, 50, registers=64), rung(WRITES, 55, registers=24), rung(COLLISION, 20, registers=87)),
    verification=Verification(
        error=1e-9, bound=1e-8, worst_cell=(0, 0, 0), worst_direction=0, worst_steps=1, domains=((8, 6, 4),)
    ),
    counters=Counters(
        source="Nsight Compute",
        found=(Counter(name="DRAM bytes read", value=84.0, unit="per update", ideal=80.0),),
    ),
    sustained=Sustained(
        mlups=9900.0,
        seconds=2.0,
        steps=1180,
        sites=256**3,
        slices_s=(1.7e-3,),
        energy_j=1200.0,
        energy_source="counter",
        power_w=600.0,
        power_limit_w=700.0,
        throttled={"software power cap": 0.25},
        conditions=Conditions(sm_clock_hz=1.98e9, power_w=610.0),
    ),
    date="2026-11-22T08:00:00+00:00",
    version="0.1.0",
)
