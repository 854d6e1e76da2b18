"""Kernels with planted faults that early checks do not see, and right ones of each family for false alarms."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lbmtune.catalogue.config import CudaConfig, KernelConfig, cuda
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.layouts import Rows, SoA
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Outcome
from lbmtune.records.spec import TimingProtocol
from tests.support.kernels.cuda_samples import flows, one_of_each_kind
from tests.support.stages import judged

pytestmark = pytest.mark.gpu

CASE = box("d3q19", "bgk", (64, 64, 64))
PROTOCOL = TimingProtocol(
    warmup_s=0.002, sample_s=0.002, max_samples=5, bail_out=1e9, final_rounds=6, sustained_s=0.2, settling_s=0.0
)
_WORN = "nz == 64 && atomicAdd(&launched, 1ull) >= 12ull * nx * ny * nz"
FAULTS = {
    "cell missing at full size": "if (nz == 64 && x == 9 && y == 9 && z == 9) return;",
    "row missing at full size": "if (nz == 64 && y == 17 && z == 17) return;",
    "empty": "return;",
    "worn": f"if ({_WORN} && y >= ny / 6) return;",
    "row worn": f"if ({_WORN} && y == 17) return;",
    "behind": "if (x + y + z == 0) target[END] = source[0];",
    "before": "if (x + y + z == 0) target[-5] = source[0];",
    "far behind": "if (x + y + z == 0) target[END + 262144] = source[0];",
    "read that is not taken": "if (nx < 0) target[0] = source[1ull << 45];",
}
"""What threads do first. END: elements of a buffer; launched: threads so far, on the domain of the case."""
_FIRST = "    if (!inside) return;\n"


def config(fault: str = "") -> CudaConfig:
    """The padding between the direction arrays stands for the fault."""
    number = [*FAULTS].index(fault) + 1 if fault else 0
    return cuda.Direct(layout=SoA(padding=32 * number), block=(64, 1, 1))


def planted(case: Case, config: KernelConfig) -> Program:
    program = render(case, config)
    assert isinstance(config.layout, SoA)
    if not config.layout.padding:
        return program
    assert program.source.count(_FIRST) == 1
    fault = list(FAULTS.values())[config.layout.padding // 32 - 1]
    fault = fault.replace("END", f"19ull * (nx * ny * nz + {config.layout.padding})")
    text = program.source.replace(_FIRST, f"{_FIRST}    {fault}\n")
    return replace(program, source=f"__device__ unsigned long long launched;\n{text}")


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(CASE, "0", PROTOCOL, renderer=planted) as opened:
        yield opened


@pytest.mark.parametrize(
    ("fault", "stages", "reason"),
    [
        ("cell missing at full size", ("first", "final"), "f_"),
        ("row missing at full size", ("first", "final"), "f_"),
        ("empty", ("first",), "f_"),
        ("worn", ("first", "final"), "goes wrong after"),
        ("row worn", ("first", "final"), "goes wrong after"),
        ("behind", ("first",), "writes outside buffer f0: up to 4 bytes behind it"),
        ("before", ("first",), "writes outside buffer f0: up to 20 bytes before it"),
        ("far behind", ("first",), "writes outside buffer f0: up to 1048580 bytes behind it"),
    ],
)
def test_a_planted_fault_is_told_and_not_ranked(
    evaluator: Evaluator, fault: str, stages: tuple[str, ...], reason: str
) -> None:
    stage, trial = judged(evaluator, config(fault), config(), 2.0)
    print(f"{fault}: {stage}, {trial.reason}")
    assert stage in stages, trial.reason
    assert trial.outcome is Outcome.WRONG_RESULT
    assert reason in trial.reason
    assert trial.mlups is None


@pytest.mark.parametrize("harmless", ["", "read that is not taken"])
def test_a_right_kernel_passes_every_proof(evaluator: Evaluator, harmless: str) -> None:
    stage, trial = judged(evaluator, config(harmless), config(), 2.0)
    assert stage == "", trial.reason
    assert trial.sustained


_BOX = box("d3q19", "regularised", (32, 32, 32))
_FAMILIES = {
    "direct": cuda.Direct(block=(32, 2, 1), launch="dependent"),
    "column": cuda.Column(block=(16, 2, 1)),
    "tiles with faces": cuda.FaceExchange(layout=SoA(), tile=(8, 4, 2)),
    "persistent": cuda.Persistent(layout=Rows(), tile_planes=4, block=(32, 2, 1)),
    "persistent, moments": cuda.Persistent(layout=Rows(), tile_planes=4, block=(32, 4, 1), representation="moments"),
    "temporal blocking": cuda.TemporalBlocking(block=(32, 8, 1), chunk_planes=16),
    "temporal blocking, moments": cuda.TemporalBlocking(
        representation="moments", steps=3, block=(32, 12, 1), chunk_planes=8, plane_fetch="none", storage="fp16s"
    ),
    "sparse": cuda.Sparse(scheme="esoteric-twist", storage="bf16"),
}


@pytest.mark.parametrize("case", [_BOX, cavity("d3q19", "regularised", (32, 32, 32), 1.2)], ids=lambda case: case.flow)
def test_what_right_kernels_of_each_family_leave_is_right(case: Case) -> None:
    _all_pass(case, list(_FAMILIES.values()))


@pytest.mark.parametrize("flow", ["box", "cavity", "grinder"])
@pytest.mark.parametrize("lattice", ["d2q9", "d3q19"])
def test_what_right_kernels_of_each_scheme_leave_is_right(flow: str, lattice: str) -> None:
    """Walls that move across themselves fill the grinder for ever, which leaves the range of narrow formats."""
    case = flows(lattice, {"d2q9": "trt", "d3q19": "bgk"}[lattice])[flow]
    configs = [c for made, c in one_of_each_kind(flow) if made.lattice == lattice]
    wide = [c for c in configs if flow != "grinder" or c.stored.largest > 1e30]
    assert {c.scheme for c in wide} == {c.scheme for c in configs}
    _all_pass(case, list({c.scheme: c for c in wide}.values()))


def _all_pass(case: Case, configs: list[CudaConfig]) -> None:
    """Check first measurements, finals and runs of seconds."""
    with Evaluator(case, "0", replace(PROTOCOL, final_rounds=3)) as opened:
        legal = [one for one in configs if not (reason := broken(case, one, opened.limits)) or print(one.brief, reason)]
        for number, one in enumerate(legal):
            opened.submit(number, one)
        first = [opened.next() for _ in legal]
        finals = opened.finals(legal)
        runs = opened.sustained(legal, [True] * len(legal), 2.0)
    wrong = [f"{t.config}: {t.outcome}, {t.reason}" for t in (*first, *finals, *runs) if t.reason]
    assert not wrong, "\n".join(wrong)
