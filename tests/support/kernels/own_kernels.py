"""A small kernel of a user in C: means of neighbours along a ring, with what can be wrong about it."""

from __future__ import annotations

from pathlib import Path

from lbmtune.catalogue.own_kernel.definition import OwnKernel
from lbmtune.catalogue.problem.case import Case
from lbmtune.files.kernelfile import load_kernel

TEXT = """
void mean(const float *restrict f, float *restrict g, int *count, int nx) {
    for (int x0 = 0; x0 < nx; x0 += TILE)
        for (int x = x0; x < x0 + TILE && x < nx; x++)
            g[x] = 0.5f * (f[(x + 1) % nx] + f[(x + nx - 1) % nx]);
    *count += 1;
}
void plain(const float *restrict f, float *restrict g, int *count, int nx) {
    for (int x = 0; x < nx; x++)
        g[x] = 0.5f * (f[(x + 1) % nx] + f[(x + nx - 1) % nx]);
    *count += 1;
}
"""
DESCRIPTION = """
entry = "mean"
domain = [64, 1]
options = ["-O0"]
constraints = ["TILE <= nx"]

[[argument]]
name = "f"
type = "float32"
size = "nx"
role = "in"
swap = "g"

[[argument]]
name = "g"
type = "float32"
size = "nx"
role = "out"

[[argument]]
name = "count"
type = "int32"
size = 1
role = "inout"

[[argument]]
name = "nx"
type = "int32"
value = "nx"

[knobs]
TILE = [4, 8, 128]

[reference]
entry = "plain"
"""
NUMPY = """
import numpy as np

def mean(f, g, count, nx, TILE):
    g[:] = 0.5 * (np.roll(f, 1) + np.roll(f, -1))
    count += 1
"""


def written(folder: Path, text: str = TEXT, description: str = DESCRIPTION, numpy: str = NUMPY) -> Path:
    """Writes a kernel with its description; returns the path of the kernel."""
    path = folder / "ring.c"
    path.write_text(text)
    path.with_suffix(".toml").write_text(description)
    (folder / "reference.py").write_text(numpy)
    return path


def loaded(folder: Path, text: str = TEXT, description: str = DESCRIPTION) -> tuple[OwnKernel, Case]:
    return load_kernel(written(folder, text, description))
