"""The CUDA text itself: golden files, determinism, launches and arguments."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from tests.support.conformance.choices import patched
from tests.support.kernels.cuda_samples import Sample, config, flows, label, sampled
from tests.support.paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "cuda"
REWRITE = "LBMTUNE_REWRITE_GOLDEN"


def tiles(**knobs: object) -> CudaConfig:
    """A configuration of temporal blocking with short chunks, planes read when they are needed."""
    return config(**{"family": "temporal-blocking", "chunk_planes": 16, "plane_fetch": "none", **knobs})


GOLDENS: dict[str, Sample] = {
    "pull_d2q9_box": (flows("d2q9", "bgk")["box"], config(cells_per_thread=4)),
    "pull_d3q19_cavity_half": (flows("d3q19", "trt")["cavity"], config(storage="fp16s", cells_per_thread=8)),
    "push_d2q9_grinder": (
        flows("d2q9", "bgk")["grinder"],
        config(scheme="push", storage="fp64", register_limit="64-registers"),
    ),
    "aa_d2q9_channel_ghost": (
        flows("d2q9", "trt")["channel"],
        config(scheme="aa", wrap="ghost", register_limit="4-blocks"),
    ),
    "esoteric-pull_d3q19_box_aosoa": (
        flows("d3q19", "bgk")["box"],
        config(scheme="esoteric-pull", layout="aosoa", cells_per_thread=4),
    ),
    "aa_d3q19_channel_copied": (
        flows("d3q19", "bgk")["channel"],
        config(scheme="aa", cells_per_thread=4, z_cells=8, prefetch_cells=2, prefetch_to="shared"),
    ),
    "aa_d2q9_cavity_list_copied": (
        flows("d2q9", "bgk")["cavity"],
        config(
            family="sparse", scheme="aa", block=(32, 1, 1), sites_per_thread=4, prefetch_sites=1, prefetch_to="shared"
        ),
    ),
    "pull_d2q9_patched": (
        patched("d2q9", "bgk", (192, 64, 1)),
        config(cells_per_thread=2),
    ),
    "moments_d3q19_box": (
        flows("d3q19", "regularised")["box"],
        tiles(representation="moments", pack=2, steps=2, block=(32, 8, 1), plane_fetch="cp_async"),
    ),
    "several-steps_d3q19_box": (
        flows("d3q19", "bgk")["box"],
        tiles(pack=2, steps=3, rows=2, block=(32, 8, 1), plane_fetch="cp_async"),
    ),
    "moments_d2q9_cavity": (
        flows("d2q9", "regularised")["cavity"],
        tiles(representation="moments", pack=2, steps=6, cells_per_thread=2, block=(32, 4, 1)),
    ),
    "moments_d3q27_grinder_flags": (
        flows("d3q27", "regularised")["grinder"],
        tiles(representation="moments", steps=1, block=(32, 8, 1), flags="memory"),
    ),
    "faces_d3q19_cavity": (
        flows("d3q19", "regularised")["cavity"],
        config(family="face-exchange", tile=(8, 8, 4), layout="rows", register_limit="4-blocks"),
    ),
    "resident_d3q19_cavity": (
        replace(flows("d3q19", "bgk")["cavity"], domain=(64, 64, 64)),
        config(family="persistent", layout="rows", block=(64, 4, 1), tile_planes=8),
    ),
    "resident_moments_d3q19_cavity": (
        replace(flows("d3q19", "regularised")["cavity"], domain=(64, 64, 64)),
        config(family="persistent", representation="moments", layout="rows", block=(32, 8, 1), cells_per_thread=2),
    ),
    "esoteric-twist_d2q9_cavity": (flows("d2q9", "bgk")["cavity"], config(scheme="esoteric-twist", cells_per_thread=2)),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_text_is_the_golden_one(name: str) -> None:
    case, chosen = GOLDENS[name]
    file = GOLDEN / chosen.family / f"{name}.cu.txt"
    found = render(case, chosen).source
    if os.environ.get(REWRITE):
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8"), f"{file} differs; {REWRITE}=1 rewrites it"


@pytest.mark.parametrize("sample", sampled(40, seed=5), ids=label)
def test_launches_name_what_the_entries_take(sample: Sample) -> None:
    program = render(*sample)
    case = replace(program.case, domain=(32, 8, 1))
    known = {*program.buffers(), *program.other_buffers(case.domain), *program.scalars(case)}
    for step in program.period:
        for launch in step:
            assert set(launch.arguments) <= known
            assert len(_parameters(program, launch.entry)) == len(launch.arguments)
    assert "//@" not in program.source


def _parameters(program: Program, entry: str) -> list[str]:
    """Names, each of which the body uses."""
    _, _, rest = program.source.partition(f" {entry}(")
    signature, _, rest = rest.partition(")")
    body, _, _ = rest.partition('extern "C"')
    names = [parameter.split()[-1] for parameter in signature.split(",")]
    assert all(name in body for name in names)
    return names


def test_parities_are_entries_and_ghosts_are_launches() -> None:
    case = flows("d3q19", "bgk")["box"]

    def entries(scheme: str, wrap: str) -> list[list[str]]:
        return [[one.entry for one in step] for step in render(case, config(scheme=scheme, wrap=wrap)).period]

    assert entries("pull", "arithmetic") == [["step_0"]]
    assert entries("pull", "ghost") == [["refresh_read_0", "step_0"]]
    assert entries("push", "ghost") == [["step_0", "refresh_write_0"]]
    assert entries("aa", "arithmetic") == [["step_0"], ["step_1"]]
    assert entries("aa", "ghost") == [["step_0"], ["refresh_read_1", "step_1", "refresh_write_1"]]


@pytest.mark.parametrize("scheme", ["pull", "push", "aa"])
def test_ghost_rows_beside_words_of_cells_are_not_refreshed(scheme: str) -> None:
    """No link leads there: the faces along y and z are not periodic."""
    one = config(scheme=scheme, wrap="ghost", flags="memory", boundary="predicated")
    program = render(flows("d3q19", "bgk")["cavity"], one)
    assert all(launch.entry.startswith("step_") for step in program.period for launch in step)
    assert "refresh_" not in program.source
    assert "constexpr bool WRAPS = false;" in program.source


def test_relaxation_and_domain_are_arguments() -> None:
    """What is verified on small extents is the very text that is timed."""
    case, one = flows("d3q19", "trt")["cavity"], config()
    other = replace(case, domain=(512, 32, 64), relaxation_rate=0.7, wall_velocity=(0.0, 0.0, 0.01))
    assert render(case, one).digest == render(other, one).digest


def test_an_index_beyond_32_bits_gets_64() -> None:
    wide = "typedef unsigned long long Index;"
    assert wide not in render(box("d3q19", "bgk", (512, 512, 512)), config(layout="aos")).source
    assert wide in render(box("d3q19", "bgk", (64, 64, 64)), config(index_bits=64)).source
    assert wide not in render(box("d3q19", "bgk", (1024, 1024, 1024)), config()).source
    assert wide in render(box("d3q19", "bgk", (1024, 512, 512)), config(layout="aos")).source
    assert wide in render(box("d2q9", "bgk", (1 << 17, 1 << 15, 1)), config()).source


def test_the_two_register_mechanisms_exclude_each_other() -> None:
    case = flows("d3q19", "bgk")["box"]
    plain, capped, bounded = (
        render(case, config(**axes))
        for axes in ({}, {"register_limit": "96-registers"}, {"register_limit": "3-blocks"})
    )
    assert "__launch_bounds__(32) step_0" in plain.source
    assert "__launch_bounds__(32, 3) step_0" in bounded.source
    assert 'extern "C" __global__ void step_0' in capped.source
    assert "--maxrregcount=96" in capped.options
    assert not any("maxrregcount" in option for option in (*plain.options, *bounded.options))


def test_printing_is_quick_once_the_physics_is_derived() -> None:
    """A study on a GPU asks for eight and more configurations per second."""
    samples = sampled(40, seed=5)
    for sample in samples:
        render(*sample)
    start = time.process_time()
    for sample in samples:
        render(*sample)
    assert (time.process_time() - start) / len(samples) < 0.03
