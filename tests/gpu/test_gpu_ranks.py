"""A process for each of two GPUs, which exchange by NCCL: bit for bit the state of one."""

from __future__ import annotations

import pytest

from lbmtune.backend.registry import available
from scripts.measurements.ranks import KERNELS as RECORDED
from scripts.measurements.ranks import of_ranks

pytestmark = pytest.mark.gpu
BOX = ("--study", "d3q19-box")
KERNELS = {
    "pull": (("scheme=pull,block=64x1x1", *BOX), "overlap=edge-priority"),
    "aa, 16 bits": (("scheme=aa,block=64x1x1,storage=fp16s", *BOX), "overlap=edge-first"),
    "index list": (("family=sparse,scheme=aa,block=128x1x1", *BOX), "overlap=none"),
    "call by call": (("scheme=esoteric-pull,block=64x1x1", *BOX), "overlap=edge-priority,launching=call"),
    "moments": (RECORDED["moments fp32"], "overlap=edge-priority"),
}


@pytest.fixture(scope="module", autouse=True)
def two_gpus_with_nccl() -> None:
    if len([name for name in available() if name.isdecimal()]) < 2:
        pytest.skip("one GPU")
    from cupy.cuda import nccl

    if not nccl.available:
        pytest.skip("no NCCL")


@pytest.mark.parametrize("kernel", KERNELS)
def test_two_processes_have_the_state_of_one_gpu(kernel: str) -> None:
    configuration, knobs = KERNELS[kernel]
    words = ("verify", *configuration, "--ranks", "--coupling", f"transport=nccl,{knobs}")
    said = of_ranks(("-m", "lbmtune", *words), 2)
    assert "equal bit for bit" in said or (kernel == "moments" and "by rounding up to" in said)
