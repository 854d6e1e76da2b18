"""Limits by the issue of instructions: counted, wasted, and held against a prototype of such kernels."""

from __future__ import annotations

import struct
from dataclasses import replace
from statistics import median

import pytest

from lbmtune.api.machines.shipped import as_machine
from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.cuda.shared import moments
from lbmtune.codegen.render import render
from lbmtune.files.studyfile import load_study
from lbmtune.lattice import lattice
from lbmtune.model.gpu.temporal_blocking.instruction_issue import (
    efficiency,
    exchanges,
    issue,
    needed_registers,
    registers,
    slots,
    together,
)
from lbmtune.model.gpu.temporal_blocking.overlap import overlapped
from lbmtune.model.gpu.terms.instructions import precision_slots, rates
from lbmtune.model.gpu.terms.mva import shares
from lbmtune.model.instructions import arithmetic
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.records import Environment, Term
from lbmtune.records.terms import MEMORY
from lbmtune.search.spaces.space import legal_set
from tests.support.paths import RECORDED
from tests.support.seconds import close

# a card with 132 multiprocessors of compute capability 9.0, with bandwidths measured on it
CARD = Machine(
    name="card",
    environment=Environment(
        backend="cuda", device="card", device_id="GPU-1", architecture="sm_90", max_sm_clock_hz=1.98e9
    ),
    copy_bytes_per_s=4.28e12,
    in_place_bytes_per_s=4.25e12,
    stream_bytes_per_s={"4": 3.88e12, "8": 4.07e12, "16": 4.08e12},
    multiprocessors=132,
)
CALIBRATED = read_machine(RECORDED / "nvidia-h200/machine.toml")
MOMENTS = cuda.TemporalBlocking(plane_fetch="none", representation="moments", steps=1)
ONE = replace(
    MOMENTS,
    cells_per_thread=2,
    block=(32, 10, 1),
    pack=2,
    plane_fetch="registers",
    chunk_planes=32,
    register_limit="2-blocks",
)
TWO = replace(MOMENTS, rows=3, block=(32, 12, 1), pack=4, plane_fetch="cp_async", steps=2, chunk_planes=86)
THREE = replace(MOMENTS, rows=2, block=(32, 11, 1), pack=4, plane_fetch="registers", steps=3, chunk_planes=64)
TALL = replace(THREE, block=(32, 12, 1), chunk_planes=192)
HALF = replace(TWO, storage="fp16s")
DOUBLE = replace(MOMENTS, rows=2, block=(32, 8, 1), plane_fetch="registers", steps=2, storage="fp64", compute="fp64")
STAGE = 99
"""Operations of a cell of D3Q19 in a time step, as counted on the text."""
COPIED = 0.59 * 14
"""Copies between registers of a cell in a time step."""


def cube(edge: int, lattice_name: str = "d3q19") -> Case:
    return box(lattice_name, "regularised", (edge, edge, edge))


@pytest.mark.parametrize(
    ("line", "instructions"),
    [
        ("x = a + b;", 1),
        ("x = a * b + c;", 1),
        ("const Real x = c - a * b;", 1),
        ("x = a * b + c * d;", 2),
        ("x = (a + b) * (c - d);", 3),
        ("x[3] = Real(1.0 / 3) * a - 2 * b[1] - c;", 3),
        ("x = a / (b + unit);", 6),
        ("x = Real(1) / (b + unit);", 2),
        ("x = 1 / b;", 1),
        ("x = omega * Real(1) / (b + unit);", 6),
        ("x = omega * unit * a;", 1),
        ("x = -a;", 0),
        ("x = a;", 0),
        ("const Real x = Real(1.0) - omega;", 0),
        ("x[0] = Real(1.0) - omega;", 0),
        ("const Real keep = 2 * omega;\n    x = keep * a + omega * unit;", 1),
        ("const Real twice = 2 * a;\n    x = twice * b;", 2),
        ("const Real twice = 2 * a;\n    x = twice + b;", 1),
        ("const Real twice = 2 * a;\n    x = b - twice;\n    y = c + twice;", 2),
        ("const Real twice = 2 * a;\n    x = twice + b;\n    y = twice * b;", 3),
        ("const Real twice = 2 * a;\n    x = twice + b * c;", 2),
        ("twice = 2 * a;\n    x = twice + b;", 2),
        ("x = a - b + c;\n    y = c * (a - b);", 3),
        ("x = a + b;\n    a = 2 * c;\n    y = a + b;", 3),
        ("x = a + b;\n    y = b + -a;", 2),
    ],
)
def test_instructions_of_assignments(line: str, instructions: int) -> None:
    assert arithmetic(f"void f() {{\n    {line}\n}}", ("omega", "unit")) == instructions


@pytest.mark.parametrize(
    ("name", "forced", "count"), [("d3q19", False, STAGE), ("d3q19", True, 121), ("d3q27", False, 139)]
)
def test_instructions_of_a_stage(name: str, forced: bool, count: int) -> None:
    """As compiled for compute capability 9.0, which has 99.2 and 139.3 of the two without a force."""
    text = moments.functions(lattice(name), forced)
    assert arithmetic(text, ("unit", *moments.scalars(lattice(name), forced))) == count


def besides(accesses: int, rows: int, steps: int, cells: int = 1, flags: int = 0) -> float:
    """Of a cell and step: what a thread does in a plane besides arithmetic and moving, as in compiled kernels."""
    return (27 + 4.3 * accesses * rows + 5 * rows * steps + flags) / (rows * steps * cells)


@pytest.mark.parametrize(("architecture", "many"), [("sm_90a", 2), ("sm_89", 64), ("sm_35", 3)])
def test_slots_of_doubles_follow_the_architecture_or_the_data_sheet(architecture: str, many: int) -> None:
    """A GeForce of compute capability 3.5 has an eighth of the units for doubles that a Tesla K20 has."""
    machine = replace(CARD, environment=replace(CARD.environment, architecture=architecture))
    assert precision_slots(TWO, machine) == 1
    assert precision_slots(DOUBLE, machine) == many
    tesla = as_machine("k20")
    sheet = tesla.datasheet
    assert sheet is not None
    assert precision_slots(DOUBLE, replace(machine, datasheet=sheet)) == 3
    geforce = replace(sheet, fp64_flops_per_s=sheet.fp64_flops_per_s / 8)
    assert precision_slots(DOUBLE, replace(machine, datasheet=geforce)) == 24
    assert precision_slots(TWO, replace(machine, datasheet=geforce)) == 1


def test_slots_of_a_cell_and_step() -> None:
    """Operations; 5 populations go each way by shuffles; rim rows hand on 5 sums in two accesses, each way.

    10 moments in groups of 4, 4 and 2 are three loads and three stores; prefetch 2 passes them on once more. Of what
    waits, 14 words are brought along where a pass takes one plane, as that of THREE does.
    """
    case = cube(256)
    assert slots(case, TWO, 1) == pytest.approx(STAGE + 10 + 8 / 3 + 9 / 2 + besides(3, 3, 2))
    assert slots(case, THREE, 1) == pytest.approx(STAGE + COPIED + 10 + 8 / 2 + 6 / 3 + besides(3, 2, 3))
    half = slots(case, replace(THREE, storage="fp16s"), 1)  # pairs are converted at once when they are stored
    assert half == pytest.approx(STAGE + 10 + 8 / 2 + (6 + 15) / 3 + besides(3, 2, 3))
    double = 20 + 20 / 2 + 20 / 2 + besides(10, 2, 2)
    assert slots(case, DOUBLE, 2) == pytest.approx(2 * (STAGE + 14) + double)
    assert slots(case, DOUBLE, 64) == pytest.approx(64 * (STAGE + 14) + double)
    shelved = replace(THREE, z_buffer="shared")  # 5 sums in two accesses, there and back
    assert slots(case, shelved, 1) - slots(case, THREE, 1) == pytest.approx(4 - COPIED)
    waiting = replace(THREE, warp_sync="neighbours")
    assert slots(case, waiting, 1) - slots(case, THREE, 1) == pytest.approx(31 / 6)
    pairs = replace(MOMENTS, cells_per_thread=2, pack=2)
    assert slots(case, pairs, 1) == pytest.approx(STAGE + COPIED + 5 + 8 + 2 * 5 / 2 + besides(5, 1, 1, cells=2))


def test_words_that_are_exchanged() -> None:
    """Each way 5 populations along x and 5 sums along y, these through shared memory; 10 moments from and to memory."""
    case = cube(256)
    assert exchanges(case, THREE) == pytest.approx(10 + 4 * 5 / 2 + 20 / 3)
    assert exchanges(case, TWO) == pytest.approx(10 + 4 * 5 / 3 + 40 / 2)
    assert exchanges(case, replace(THREE, z_buffer="shared")) == pytest.approx(exchanges(case, THREE) + 10)
    assert exchanges(case, replace(THREE, storage="fp16s")) == pytest.approx(10 + 10 + 10 / 3)
    single = replace(
        MOMENTS, plane_fetch="registers", storage="fp16s"
    )  # an access of half a word takes as long as one of a word
    assert exchanges(case, single) == pytest.approx(10 + 4 * 5 + 20)
    assert exchanges(case, DOUBLE) == pytest.approx(20 + 4 * 10 / 2 + 40 / 2)
    assert exchanges(SQUARE, FLAT) == pytest.approx(3 + 12 / 6)
    # of ten doubles four and four lie together, which two stores of a lane leave in halves of sectors, and two
    quads = replace(DOUBLE, pack=4)
    assert exchanges(case, quads) == pytest.approx(exchanges(case, replace(DOUBLE, pack=2)) + 16 / 2)


def test_what_has_no_register_is_stored_and_loaded_once_per_plane() -> None:
    """44 and 2 x (3 x 14 + 10 + 10) are 168 registers; 16 warps leave 65536 / 512 = 128 of them to a thread.

    It needs 7 and 2 x (1.15 x 3 x 14 + 1.75 x 10 + 10), 159.
    """
    case = cube(256)
    assert registers(case, THREE) == 168
    assert registers(case, replace(THREE, z_buffer="shared")) == 168 - 2 * 3 * 5
    many = replace(THREE, block=(32, 16, 1))
    assert needed_registers(case, THREE) == 159
    assert needed_registers(case, replace(THREE, plane_fetch="cp_async")) == 159 - 20
    assert slots(case, many, 1) - slots(case, THREE, 1) == pytest.approx(2 * 4 * (159 - 128) / (2 * 3))
    assert slots(case, replace(THREE, register_limit="128-registers"), 1) == slots(case, many, 1)
    assert slots(case, replace(THREE, block=(32, 12, 1)), 1) == slots(case, THREE, 1)


def test_a_thread_keeps_flags_of_its_neighbours_and_places_of_what_waits_in_shared_memory() -> None:
    """8 registers of flags; a z buffer in shared memory spares 5 besides its words, and costs 8 with links to cut."""
    periodic, walled = cube(256), cavity("d3q19", "regularised", (192, 192, 192), 1.6)
    waiting = 1.15 * 2 * 3 * 9  # instead of 14 words of a cell for a stage
    assert needed_registers(periodic, replace(THREE, warp_sync="neighbours")) == 159 + 8
    assert needed_registers(periodic, replace(THREE, z_buffer="shared")) == round(7 - 5 + waiting + 2 * 27.5)
    assert needed_registers(walled, THREE) == 159 + 11
    assert needed_registers(walled, replace(THREE, z_buffer="shared")) == round(7 + 11 + 8 + waiting + 2 * 27.5)


def test_cells_lanes_and_multiprocessors_that_are_wasted() -> None:
    """Tiles of 28 x 32 cells in 32 lanes and 36 rows: 10 x 8 of them, in 3 chunks of 86 planes and 4 more."""
    found = efficiency(cube(256), TWO, 132)
    assert found == (256 / 320, 256 / 288, 256 / 270, 240 / 264, 1)
    assert found.cells == pytest.approx(0.674, abs=5e-4)
    assert efficiency(cube(256), replace(TWO, register_limit="2-blocks"), 132).wave == 240 / 264
    assert efficiency(cube(256), TWO, 240).wave == 1
    assert efficiency(cube(256), TWO, 239).wave == 240 / 478
    falling = efficiency(
        cube(256), replace(TWO, chunk_planes=64, chunk_schedule="tapered"), 132
    )  # 112, 80, 48 and 16 planes
    mean = 80 * (256 + 4 * 4) / 132
    assert (falling.z, falling.wave) == pytest.approx((256 / 272, mean / (mean + 10)))


# of a prototype on one card, in bursts: shape, edge of the domain, lattice, MLUPS
PUBLISHED = [
    (ONE, 256, "d3q19", 46_700),
    (replace(ONE, chunk_planes=35), 384, "d3q19", 46_300),
    (TWO, 256, "d3q19", 83_400),
    (replace(TWO, chunk_planes=128), 384, "d3q19", 90_300),
    (THREE, 256, "d3q19", 83_900),
    (TALL, 384, "d3q19", 95_700),
    (HALF, 256, "d3q19", 101_900),
    (replace(HALF, rows=2, block=(32, 16, 1), chunk_planes=192, plane_fetch="registers"), 384, "d3q19", 122_700),
    (replace(DOUBLE, pack=2, chunk_planes=192), 384, "d3q19", 39_800),
    (replace(MOMENTS, rows=4, steps=2, plane_fetch="cp_async", pack=2, chunk_planes=96), 384, "d3q27", 75_500),
]


def test_the_speeds_of_a_prototype_are_met_to_a_twelfth() -> None:
    ratios = [predict(cube(edge, name), config, CALIBRATED).mlups / mlups for config, edge, name, mlups in PUBLISHED]
    errors = [abs(ratio - 1) for ratio in ratios]
    assert max(errors) < 1 / 12
    assert median(errors) < 0.05


FLAT = replace(
    MOMENTS, cells_per_thread=2, pack=2, plane_fetch="registers", block=(32, 4, 1), chunk_planes=128, steps=6
)
SQUARE = box("d2q9", "regularised", (8192, 8192, 1))


@pytest.mark.parametrize(
    ("config", "mlups", "ratio"),
    [(replace(FLAT, steps=1, block=(32, 8, 1), chunk_planes=64), 76_300, 1.008), (FLAT, 315_000, 0.996)],
)
def test_the_speeds_of_a_prototype_in_two_dimensions(config: CudaConfig, mlups: int, ratio: float) -> None:
    assert predict(SQUARE, config, CALIBRATED).mlups / mlups == pytest.approx(ratio, abs=2e-3)


def test_warps_side_by_side_march_along_y() -> None:
    """Tiles of 52 cells in 64 lanes' cells, four to a block: 40 blocks along x; chunks of 128 rows and 12 more.

    3 x 4 warps have the 164 registers that a thread wants, 4 x 4 have not; blocks come in 7 waves of 3 x 132.
    """
    assert registers(SQUARE, FLAT) == 164
    assert together(SQUARE, FLAT) == 3
    assert efficiency(SQUARE, FLAT, 132) == (8192 / (40 * 256), 8192 / (64 * 140), 1, 40 * 64 / (7 * 396), 1)


def test_blocks_share_a_multiprocessor_as_registers_allow() -> None:
    """34 registers for the sums and moments of a cell and step make 78; 640 threads may have 96, 1024 of them 64."""
    small = replace(MOMENTS, steps=1, pack=4, plane_fetch="registers", block=(32, 10, 1))
    assert registers(cube(256), small) == 78
    assert together(cube(256), small) == 2
    assert together(cube(256), replace(small, block=(32, 20, 1))) == 1
    assert together(cube(256), replace(small, register_limit="3-blocks")) == 3


@pytest.mark.parametrize(("config", "compiled"), [(TWO, 134.8), (THREE, 133.8), (HALF, 140.5)])
def test_counted_instructions_are_those_that_are_compiled(config: CudaConfig, compiled: float) -> None:
    """Those of the loop over planes for compute capability 9.0, of a cell and step, as disassembled."""
    assert slots(cube(256), config, 1) / compiled == pytest.approx(1, abs=0.03)


def compiled_instructions(image: bytes, entry: str) -> int:
    """Of an entry of a cubin, an ELF file: 16 bytes each since compute capability 7.0; what fills it up left out."""
    start, width, count, names = struct.unpack_from("<Q10xHHH", image, 40)
    heads = [struct.unpack_from("<IIQQQQ", image, start + n * width) for n in range(count)]
    wanted = f".text.{entry}\0".encode()
    ((at, length),) = [head[4:] for head in heads if image.startswith(wanted, heads[names][4] + head[0])]
    words = (struct.unpack_from("<Q", image, at + n)[0] for n in range(0, length, 16))
    return sum(word & _OPCODE != _NOP for word in words)


_OPCODE, _NOP = 0xFFF, 0x918


@pytest.mark.parametrize("collision", ["bgk", "trt", "regularised", "mrt"])
def test_counted_instructions_of_one_step_are_those_that_are_compiled(collision: str) -> None:
    """All of a kernel without branches, where what is counted of the text is all that it does: AA where it stays."""
    case, config = box("d3q19", collision, (256, 256, 256)), cuda.Direct(scheme="aa")
    program = render(case, config)
    compiled = compiled_instructions(compile_cuda(program, "sm_90").image, program.entries[0])
    (term,) = (one for one in predict(case, config, CALIBRATED).terms if one.name == "instructions")
    counted = int(term.sentence.split()[0])
    assert counted > 200
    assert counted / compiled == pytest.approx(1, abs=0.1)


def test_the_best_of_three_steps_by_the_model_is_the_best_shape_that_is_known() -> None:
    spec = load_study("d3q19-box-fast", ["axes.cuda[2].steps=3"])
    space = legal_set(
        spec.case, "cuda", spec.axes["cuda"][1], Limits(shared_bytes_per_block=227 << 10, asynchronous=True)
    )
    best = max(space.configs, key=lambda config: predict(spec.case, config, CARD).mlups)
    assert best == THREE


def test_the_binding_resource_is_named() -> None:
    one, three = (predict(cube(256), config, CARD) for config in (ONE, THREE))
    assert one.binding == "memory"
    assert one.terms[0].sentence == "80 bytes per update at 4080 GB/s, 19.6 ps alone, 3 planes in flight"
    assert three.binding == "instructions"
    per_update = slots(cube(256), THREE, 1) * (320 * 352 * 280) / 256**3
    assert three.limit.startswith(f"instructions: {per_update:.0f} issue slots per update, halos included")
    lanes_per_s = 132 * 128 * 1.98e9
    alone = per_update / lanes_per_s / (640 / 660)
    assert f", {alone * 1e12:.3g} ps alone, 3 warps per scheduler in flight" in three.terms[0].sentence
    assert {term.name for term in three.terms} == {"memory", "instructions", "exchanges"}


def test_what_is_hidden_stands_between_the_largest_and_the_sum() -> None:
    three = predict(cube(256), THREE, CALIBRATED)
    told = [term.sentence.rsplit(", ", 2)[1] for term in three.terms if "in flight" in term.sentence]
    alone = [float(one.removesuffix(" ps alone")) for one in told]
    assert len(alone) == len({"instructions", "memory", "exchanges", "latency"})
    assert max(alone) < 1e6 / three.mlups < sum(alone)


def test_measured_rates_take_the_place_of_those_of_the_architecture() -> None:
    assert CALIBRATED.calibration
    known = CALIBRATED.calibration.instructions_per_s
    found = rates(CALIBRATED, 13, meeting=True)
    assert found
    assert found.issued == known["multiply-add, 12 warps of 8, meeting"]
    assert found.exchanged == min(known["shuffle"], known["shared memory"])
    few = rates(CALIBRATED, 2, meeting=True)
    assert few
    assert few.issued == known["multiply-add, 4 warps of 8, meeting"] / 2, "two of four schedulers have no work"
    plain = rates(CARD, 12, meeting=True)
    assert plain
    assert plain.issued == pytest.approx(132 * 4 * 1.98e9)
    assert plain.exchanged == pytest.approx(plain.issued / 4)


def test_warps_of_one_block_meet_and_those_of_several_go_on() -> None:
    alone, two = (issue(cube(256), replace(MOMENTS, block=(32, 16 // n, 1)), CALIBRATED, n) for n in (1, 2))
    assert alone
    assert two
    for found, meeting in ((alone, True), (two, False)):
        rate = rates(CALIBRATED, 16, meeting=meeting)
        assert rate
        config = replace(MOMENTS, block=(32, 16 if meeting else 8, 1))
        wave = efficiency(cube(256), config, 132, 1 if meeting else 2).wave
        assert found.seconds == close(found.slots / 32 / rate.issued / wave)


def test_instructions_and_exchanges_of_one_step_hide_behind_each_other_by_warps() -> None:
    """Of w warps (w + 1) / w where both take as long; and memory, with two planes, as much of that as two hide."""
    parts = [Term(name=name, seconds=1.0, sentence="", source="") for name in ("memory", "instructions", "exchanges")]
    config = replace(MOMENTS, block=(32, 8, 1), plane_fetch="registers")
    memory, *computed = overlapped(cube(256), config, parts[0], parts[1:], (), 1)
    assert sum(one.seconds for one in computed) == pytest.approx(shares([1.0, 9 / 8], 0.0, 2).stations[1])
    assert computed[0].seconds == computed[1].seconds
    assert memory.seconds == pytest.approx(shares([1.0, 9 / 8], 0.0, 2).stations[0])


@pytest.mark.parametrize(
    "machine",
    [replace(CARD, multiprocessors=0), replace(CARD, environment=replace(CARD.environment, max_sm_clock_hz=None))],
)
def test_without_clock_or_multiprocessors_bytes_alone_are_counted(machine: Machine) -> None:
    assert predict(cube(256), THREE, machine).limit.startswith("memory")
    assert predict(cube(256), THREE, machine).mlups == pytest.approx(4.08e12 / (80 / 3) / 1e6)


def test_kernels_of_populations_are_bound_by_memory() -> None:
    config = cuda.Direct(cells_per_thread=4)
    assert [term.name for term in predict(cube(256), config, CARD).terms] == [MEMORY]
    assert predict(cube(256), config, CARD).mlups == pytest.approx(26_842, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("config", [ONE, DOUBLE, replace(TWO, rows=2, cells_per_thread=2, pack=1, block=(32, 8, 1))])
def test_registers_are_those_that_are_compiled(config: CudaConfig) -> None:
    free = replace(config, register_limit="none")
    found = compile_cuda(render(cube(256), free)).resources
    assert found.registers == pytest.approx(registers(cube(256), free), rel=0.2)
