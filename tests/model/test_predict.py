"""The model's first term: bytes per update and the bandwidth measured for that access."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig, cpu, cuda
from lbmtune.catalogue.layouts import AoSoA, Rows
from lbmtune.catalogue.problem.flows import box
from lbmtune.errors import InputError
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine, write_machine
from lbmtune.model.predict import predict
from lbmtune.records import Conditions, Environment, Term, significant
from tests.support.kernels.configs import configured
from tests.support.paths import RECORDED
from tests.support.seconds import close

CASE = box("d3q19", "bgk", (256, 256, 256))
GPU = Machine(
    name="card",
    environment=Environment(backend="cuda", device="card", device_id="GPU-1", architecture="sm_90"),
    copy_bytes_per_s=4.28e12,
    in_place_bytes_per_s=4.25e12,
    stream_bytes_per_s={"4": 3.88e12, "8": 4.07e12, "16": 4.08e12},
)
CPU = Machine(
    name="cores",
    environment=Environment(backend="cpu", device="cores", device_id="host", architecture="x", cores=8),
    copy_bytes_per_s=40e9,
    in_place_bytes_per_s=45e9,
    stream_bytes_per_s={"4": 20e9, "8": 21e9, "32": 30e9, "64": 32e9, "64 streaming": 38e9},
    thread_bytes_per_s=10e9,
    caches_bytes={"L2": 1 << 20},
)


@pytest.mark.parametrize(
    ("config", "bytes_per_s", "moved"),
    [
        (cuda.Direct(cells_per_thread=4), 4.08e12, 152),
        (cuda.Direct(), 3.88e12, 152),
        (cuda.Direct(cells_per_thread=2, scheme="aa"), 4.07e12, 152),
        (cuda.Direct(cells_per_thread=2, compute="fp64", storage="fp64"), 4.08e12, 304),
        (cuda.Direct(cells_per_thread=8, storage="fp16s"), 4.08e12, 76),
        (cuda.Direct(storage="fp16s"), 3.88e12, 76),
    ],
)
def test_cuda_takes_the_copy_of_its_width(config: CudaConfig, bytes_per_s: float, moved: int) -> None:
    found = predict(CASE, config, GPU)
    assert found.bandwidth_bytes_per_s == bytes_per_s
    assert found.bytes_per_update == moved
    assert found.mlups == pytest.approx(bytes_per_s / moved / 1e6)
    assert "19-stream copy" in found.ceiling_source
    (memory,) = found.terms
    assert memory.sentence == f"{moved} bytes per update at {bytes_per_s / 1e9:.4g} GB/s"
    assert memory.seconds == close(moved / bytes_per_s)
    assert found.limit.startswith(f"memory: {memory.sentence}, ")


def test_the_published_card_predicts_the_published_speed() -> None:
    """A pull kernel with 16-byte access at 4080 GB/s: 26 840 MLUPS in single precision."""
    assert predict(CASE, cuda.Direct(cells_per_thread=4), GPU).mlups == pytest.approx(26840, rel=1e-3)


@pytest.mark.parametrize(
    ("config", "bytes_per_s", "moved"),
    [
        (cpu.Direct(threads=8), 32e9, 228),
        (cpu.Direct(threads=8, vector_bits=256), 30e9, 228),
        (cpu.Direct(threads=8, vector_bits=0), 20e9, 228),
        (cpu.Direct(row_padding=15, streaming_stores=1, threads=8), 38e9, 152),
        (cpu.Direct(scheme="aa", threads=8), 45e9, 152),
        (cpu.Direct(scheme="aa", threads=2), 20e9, 152),
        (cpu.Direct(vector_bits=0), 10e9, 228),
    ],
)
def test_a_cpu_is_bound_by_its_stores_and_its_threads(config: CpuConfig, bytes_per_s: float, moved: int) -> None:
    found = predict(CASE, config, CPU)
    assert (found.bandwidth_bytes_per_s, found.bytes_per_update) == (bytes_per_s, moved)


@pytest.mark.parametrize("config", [cuda.Direct(scheme="aa"), cuda.Direct(), cpu.Direct(scheme="aa")])
def test_in_place_schemes_need_half_the_memory(config: KernelConfig) -> None:
    found = predict(CASE, config, CPU if isinstance(config, CpuConfig) else GPU)
    lattices = 1 if config.scheme == "aa" else 2
    assert found.footprint_bytes == pytest.approx(lattices * 19 * 4 * 256**3, rel=0.15)


def test_a_prediction_loads_no_device_library() -> None:
    assert predict(CASE, cuda.Direct(), GPU).mlups > 0
    assert "cupy" not in sys.modules or sys.modules["cupy"] is None


@pytest.mark.parametrize("machine", [GPU, CPU], ids=["gpu", "cpu"])
def test_a_description_survives_its_file(tmp_path: Path, machine: Machine) -> None:
    path = tmp_path / "folder" / "machine.toml"
    odd = replace(
        machine,
        name='a "quoted" \\ name \u00b5',
        conditions=Conditions(power_w=1e-7, throttle=("software power cap",)),
        spread={"64 streaming": 0.01},
    )
    write_machine(path, odd)
    assert read_machine(path) == odd


def test_a_damaged_description_is_told(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    with pytest.raises(InputError, match="cannot read"):
        read_machine(path)
    for text in ("name = ", 'name = "card"\n', "\xff"):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(InputError, match="is damaged"):
            read_machine(path)


def test_a_calibration_of_another_version_is_told(tmp_path: Path) -> None:
    """The model would look for figures that it does not have."""
    recorded = RECORDED / "nvidia-h200" / "machine.toml"
    path = tmp_path / "machine.toml"
    path.write_text(re.sub("l2_latency_s = .*\n", "", recorded.read_text()))
    with pytest.raises(
        InputError,
        match=r"of another version: .*calibration\.l2_latency_s is missing, .*; delete it and run lbmtune devices",
    ):
        read_machine(path)


@pytest.mark.parametrize(
    ("edge", "tile", "measured_mlups"), [(32, (8, 1), 19_700), (48, (6, 3), 44_200), (64, (8, 4), 73_900)]
)
def test_what_stays_on_chip_is_bound_by_meetings_and_instructions(edge, tile, measured_mlups):
    """Measured on one H200, launches of 2048 steps; no figure of the model was fitted to them."""
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    rows, planes = tile
    config = configured(cuda.Persistent, layout="rows", block=(edge, rows, 1), tile_planes=planes)
    found = predict(box("d3q19", "bgk", (edge, edge, edge)), config, machine)
    assert found.mlups == pytest.approx(measured_mlups, rel=0.18)
    assert {term.name for term in found.terms} == {"grid sync", "instructions", "exchanges"}
    assert machine.calibration
    assert found.seconds_of("grid sync") == close(machine.calibration.meeting_s / edge**3)


@pytest.mark.parametrize("calibrated", [True, False])
@pytest.mark.parametrize(
    "config",
    [
        cuda.Direct(block=(64, 1, 1), scheme="aa"),
        cuda.Column(layout=AoSoA(width=64), block=(32, 1, 1)),
        cuda.TemporalBlocking(block=(32, 12, 1), plane_fetch="none", representation="moments", rows=2, steps=3),
        cuda.Persistent(layout=Rows(), block=(64, 8, 1)),
    ],
    ids=lambda config: config.brief,
)
def test_terms_add_up_to_the_time_of_an_update_the_largest_first(config: CudaConfig, calibrated: bool) -> None:
    recorded = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    edge = 64 if config.family == "persistent" else 256
    machine = recorded if calibrated else replace(recorded, calibration=None)
    found = predict(box("d3q19", "regularised" if config.of_moments else "bgk", (edge,) * 3), config, machine)
    seconds = [term.seconds for term in found.terms]
    assert sum(seconds) == close(1e-6 / found.mlups)
    assert seconds == sorted(seconds, reverse=True)
    assert found.binding == found.terms[0].name
    assert all(term.sentence and term.source for term in found.terms)
    assert found.limit.startswith(f"{found.binding}: ")


def test_what_no_figure_of_a_prediction_shows_is_not_told() -> None:
    """A share of ten thousand is; less is not, whether it is added or taken off."""
    terms = tuple(Term(name=str(s), seconds=s, sentence="", source="") for s in (1.0, 2e-4, 2e-5, 0.0, -2e-4, -2e-5))
    assert [one.seconds for one in significant(terms)] == [1.0, 2e-4, -2e-4]


def test_the_limit_of_a_prediction_leaves_out_what_is_not_told() -> None:
    card = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    large = box("d3q19", "bgk", (1024, 1024, 1024))
    found = predict(large, cuda.Direct(block=(64, 1, 1)), card)
    hidden = {one.name for one in found.terms} - {one.name for one in found.significant_terms}
    assert hidden, "the last wave of so many blocks"
    assert not any(f"{name}: " in found.limit for name in hidden)
    assert all(f"{one.name}: " in found.limit for one in found.significant_terms)
