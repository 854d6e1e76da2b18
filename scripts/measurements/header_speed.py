"""The speed of exported CUDA headers beside that of the same kernels in lbmtune, on the same device in turns.

    python -m scripts.measurements.header_speed             eight kinds of kernels on GPU 0; needs nvcc
    python -m scripts.measurements.header_speed --host      on the host shim and small domains: that it works, no speed

Kernels are the best of their kind in recorded studies. Each header is compiled with the options that stand in it.
Prints a row for each: MLUPS of the header, of `lbmtune measure`, and the ratio, which should be 0.98 or more.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lbmtune import api
from lbmtune.api.machines.shipped import named_machine
from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.catalogue.problem.case import Case
from lbmtune.export import best
from lbmtune.export.cuda_header import cuda_header, nvcc_options
from lbmtune.records import Trial
from lbmtune.records.best_json.document import Best
from scripts.paths import ROOT

SOURCE = Path(__file__).with_name("header_speed.cpp")
LEAST_RATIO = 0.98
_SAMPLES, _SAMPLE_MS, _LAUNCHES = 15, 40, 128
"""The longest graph of a header has 64 cycles of up to two launches."""


@dataclass(frozen=True)
class Kind:
    """A kind of kernel: the best trial of a recorded set that a condition takes, the best of all if there is none."""

    name: str
    recorded: str
    takes: Callable[[Trial], bool] = lambda _: True


KINDS = (
    Kind("one step, fp32", "nvidia-h100/d3q19-box-fp32"),
    Kind("one step, fp64", "nvidia-h200/d3q19-box-fp64"),
    Kind("one step, fp16s", "nvidia-h200/d3q19-box-fp16s"),
    Kind("in place", "nvidia-h200/d3q19-box-fp32", lambda one: one.config["scheme"] == "esoteric-pull"),
    Kind("moments, 3 steps", "nvidia-h100/d3q19-box-fast-fp32", lambda one: one.config["steps"] == 3),
    Kind("resident", "nvidia-h200/d3q19-small-96"),
    Kind("indirect", "nvidia-h200/porous-fp32"),
    Kind("cavity with flags", "nvidia-h200/d3q19-cavity-fast-flags-fp32"),
)


def chosen(kind: Kind) -> Best:
    """Return the best.json of a kind."""
    record = api.Study(ROOT / "studies" / "recorded" / kind.recorded).record
    trial = next(one for one in record.ranked if kind.takes(one))
    return best(replace(record, trials=(trial,)))


def small(found: Best) -> Case:
    """Return the case on a domain that verifies its kernel, and is as large as its launches want it."""
    assert found.kernel.domain
    x, y, z = map(max, found.config.awkward_domain(found.case), found.kernel.domain.least)
    return replace(found.case, domain=(x, y, z))


def built(found: Best, folder: Path, *, host: bool) -> Path:
    """Return the program of a kernel, compiled in a folder of its own."""
    folder.mkdir()
    (folder / "made.h").write_text(cuda_header(found, "made", "made.h"))
    (folder / "made.cu").write_text('#define MADE_IMPLEMENTATION\n#include "made.h"\n')
    program = folder / "header_speed"
    if host:
        from tests.support.kernels.headers import build_program

        build_program([SOURCE, folder / "made.cu"], program, "made", folder)
    else:
        command = [
            "nvcc",
            "-O3",
            "-arch=native",
            "-I",
            folder,
            *nvcc_options(found.kernel.options),
            SOURCE,
            folder / "made.cu",
            "-o",
            program,
        ]
        subprocess.run([*map(str, command)], check=True, cwd=folder)
    return program


def speed(program: Path, case: Case, samples: int, sample_ms: int, launches: int = _LAUNCHES) -> float:
    """Return the median MLUPS of a header on the domain of a case. Raises CalledProcessError.

    launches: samples take multiples of so many.
    """
    command = [program, *case.domain, case.fluid_sites, samples, sample_ms, launches]
    if case.geometry:
        solid = program.with_name("solid")
        solid.write_bytes(solid_in(case, whole(case.domain)).astype(np.uint8).tobytes())
        command.append(solid)
    done = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if a header is slower than it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", action="store_true", help="on the host shim, without speeds")
    parser.add_argument("--machine", default="h100", help="description for the predictions that lbmtune makes")
    given = parser.parse_args(arguments)
    slow = False
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        found = [chosen(kind) for kind in KINDS]
        folders = [Path(folder) / str(n) for n in range(len(found))]
        programs = list(pool.map(lambda one, where: built(one, where, host=given.host), found, folders))
        for kind, one, program in zip(KINDS, found, programs, strict=True):
            if given.host:
                print(f"{kind.name:20} {speed(program, small(one), 1, 0, 1):8.3f} on the shim", flush=True)
                continue
            ours = api.measure(one.case, one.config, "0", machine=named_machine(given.machine)).mlups
            header = speed(program, one.case, _SAMPLES, _SAMPLE_MS)
            ratio = header / ours if ours else float("nan")
            slow |= not ratio >= LEAST_RATIO
            print(f"{kind.name:20} {header:10,.0f} MLUPS, lbmtune {ours or 0:10,.0f}, ratio {ratio:.3f}", flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
