"""A user's kernel in CUDA on a GPU: instances of a template are launched, right, and timed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.own_kernel.config import family_of
from lbmtune.catalogue.own_kernel.definition import OwnKernel
from lbmtune.files.kernelfile import load_kernel
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Outcome
from lbmtune.records.spec import TimingProtocol
from tests.support.paths import ROOT

pytestmark = pytest.mark.gpu

KERNEL, CASE = load_kernel(ROOT / "examples" / "own-kernel" / "d2q9_gpu.cu")
SMALL = replace(CASE, domain=(512, 512, 1))
LOOK = TimingProtocol(warmup_s=0.002, sample_s=0.002, max_samples=6, final_rounds=3)


def config_of(kernel: OwnKernel = KERNEL, **knobs: int) -> KernelConfig:
    return family_of(kernel).parse(knobs)


def test_variants_are_right_timed_and_hold_finals() -> None:
    configs = [config_of(SOA=soa, MODULO=modulo, BLOCK_X=64, BLOCK_Y=4) for soa, modulo in ((0, 1), (1, 0))]
    wrong = replace(KERNEL, source=KERNEL.source.replace("x >= nx ||", "x + 1 >= nx ||"))
    outside = replace(KERNEL, source=KERNEL.source.replace("if (x >= nx", "if (x > nx + 4"))
    with Evaluator(SMALL, "0", LOOK) as evaluator:
        for number, config in enumerate(configs):
            evaluator.submit(number, config)
            trial = evaluator.next()
            assert trial.outcome is Outcome.OK, trial.reason
            assert trial.mlups
            assert trial.resources
            assert trial.resources.registers
        for number, kernel in enumerate((wrong, outside), 2):
            evaluator.submit(number, config_of(kernel, SOA=1, BLOCK_X=64, BLOCK_Y=4))
            assert evaluator.next().outcome in (Outcome.WRONG_RESULT, Outcome.CRASHED)
        finals = evaluator.finals(configs)
    assert all(trial.final and trial.verification and trial.verification.full_size for trial in finals)
