"""Printed text is the same in every process, whatever the order of its sets: digests are kept and compared."""

from __future__ import annotations

import os
import subprocess
import sys

from lbmtune.codegen.render import render
from tests.codegen import test_collision_kernels as collisions
from tests.codegen.cpu import test_cpu_text as cpu
from tests.support.kernels.cuda_samples import sampled


def digests() -> list[str]:
    """Of CPU examples, of CUDA samples, and of every third operator and lattice on both."""
    examples = [cpu._example(name) for name in cpu.EXAMPLES]
    samples = [render(*sample) for sample in sampled(12, seed=5)]
    printers = collisions._cuda, collisions._cpu
    operators = [made(*pair, "aa", "fp32") for pair in collisions.PAIRS[::3] for made in printers]
    return [program.digest for program in (*examples, *samples, *operators)]


def test_text_does_not_depend_on_the_hash_seed() -> None:
    """In this process it was drawn at random, or is what the environment says."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "271828" else "271828"
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = "from tests.codegen import test_hash_seed as t; print(*t.digests())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == digests()
