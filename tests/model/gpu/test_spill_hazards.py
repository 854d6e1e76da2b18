"""Words that are stored while a load of them is on its way: read off compiled code, and in the model."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.backend.cuda.nvrtc import architectures, compile_cuda, compile_text
from lbmtune.backend.cuda.sass import Instruction, _hazards, _instruction, _instructions, _loop, _texts, spill_hazards
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.probes import OVERTAKEN as PROBE
from lbmtune.codegen.probes import overtaken_probe
from lbmtune.model.gpu.families import inputs_of
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.temporal_blocking import terms
from lbmtune.model.gpu.temporal_blocking.spills import alone_s, found_in_l1, hazard_stalls, loop_answers_s, stall_s
from lbmtune.model.machine.curves import retained_in_l2
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.records import Entry, Resources
from lbmtune.records.store import read_study
from lbmtune.records.terms import LOCAL, SPILL_HAZARDS, STAGES
from tests.support.kernels.cuda_samples import needs_nvrtc
from tests.support.paths import RECORDED
from tests.support.seconds import close

CARD = read_machine(RECORDED / "nvidia-h100" / "machine.toml")
CASE = box("d3q19", "regularised", (256, 256, 256))
MARCH = cuda.TemporalBlocking(block=(32, 11, 1), representation="moments", rows=5)
LOAD, STORE, BRANCH, OTHER = 0x983, 0x387, 0x947, 0x221
STACK = 1


def load(number: int, releases: int = 0, words: int = 1, waits: int = 0) -> Instruction:
    return Instruction(LOAD, (STACK, number), words, releases, waits, 0)


def store(number: int, words: int = 1, waits: int = 0) -> Instruction:
    return Instruction(STORE, (STACK, number), words, 7, waits, 0)


def wait(barrier: int) -> Instruction:
    return Instruction(OTHER, (0, 0), 1, 7, 1 << barrier, 0)


def branch(leads: int) -> Instruction:
    return Instruction(BRANCH, (0, 0), 1, 7, 0, leads)


def looped(code: list[Instruction]) -> list[Instruction]:
    """And what stands before and behind it: a loop of two, a branch ahead, and the end of every text."""
    ahead = [load(0, 5), wait(4), branch(-2), branch(len(code) + 1)]
    return [*ahead, *code, branch(-len(code) - 1), store(0), branch(-1)]


# the code


@needs_nvrtc
@pytest.mark.parametrize("together", [1, 2, 4])
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_89", "sm_90"])
def test_a_loop_that_stores_what_is_on_its_way_is_told_from_one_that_waits(together: int, architecture: str) -> None:
    """Each word of a turn, far from the others, by what NVRTC makes of the micro-benchmark."""
    if architecture not in architectures():
        pytest.skip(f"this NVRTC does not know {architecture}")
    for overtakes in (False, True):
        program = overtaken_probe(local_bytes=1024, together=together, overtakes=overtakes, threads=256)
        found = compile_cuda(program, architecture)
        assert spill_hazards(found.image) == {PROBE: together * overtakes}
        assert found.resources.overtaken == together * overtakes, "and is in the record of what was compiled"
        ((_, text),) = _texts(found.image)
        loop = _loop(_instructions(text, split=architecture >= "sm_90"))
        assert 2 * together < len(loop) < len(text) / 16 / 2, "the loop of turns, and not the one before it"
        assert sum(one.code == LOAD for one in loop) == sum(one.code == STORE for one in loop) == together


@needs_nvrtc
def test_code_of_devices_that_lay_it_out_otherwise_tells_nothing() -> None:
    newest = architectures()[-1]
    if int(newest.removeprefix("sm_")) < 100:
        pytest.skip(f"this NVRTC knows none after {newest}")
    program = overtaken_probe(local_bytes=1024, together=1, overtakes=True, threads=256)
    found = compile_cuda(program, newest)
    assert spill_hazards(found.image) == {}
    assert found.resources.overtaken is None
    assert spill_hazards(b"a module of a processor") == {}
    assert spill_hazards(b"") == {}


@needs_nvrtc
def test_entries_are_told_apart() -> None:
    text = 'extern "C" __global__ void %s(float* a) { a[threadIdx.x] = 1; }'
    found = compile_text("\n".join(text % name for name in ("one", "two")), ("--gpu-architecture=sm_90",))
    assert spill_hazards(found.image) == {"one": 0, "two": 0}


def test_an_instruction_is_taken_to_pieces() -> None:
    """LDL R5, [R1+0x12c] and a branch 80 bytes back from the one behind it, as an assembler wrote them."""
    found = _instruction(0x00012C0001057983, 1 << 46 | 0b100001 << 52 | 4 << 9, split=True)
    assert found == Instruction(LOAD, (1, 0x12C), 1, 1, 0b100001, 0)
    assert _instruction(0xFFFFFFFC00EC0947, 0x000FEA000383FFFF, split=True).leads == -5
    assert _instruction(0x0000000000248947, 0x000FEA0003800000, split=True).leads == 9
    assert _instruction(0x0000000400048947, 0x000FEA0003800000, split=True).leads == 65
    # as before compute capability 9.0
    assert _instruction(0xFFFFFF1000009947, 0x000FEA000383FFFF, split=False).leads == -15
    assert _instruction(0x0000010000008947, 0x000FEA0003800000, split=False).leads == 16
    wide, before = (
        _instruction(*one, split=True) for one in ((0xFFFFF80001057983, 6 << 9 | 7 << 46), (0x0000000001007387, 5 << 9))
    )
    assert (wide.address, wide.words, wide.releases) == ((1, -8), 4, 7)
    assert (before.code, before.words) == (STORE, 2)


def test_the_loop_is_what_lies_before_the_branch_that_leads_furthest_back() -> None:
    code = [wait(n) for n in range(6)]
    short, long, ahead, end = (branch(leads) for leads in (-2, -4, 3, -1))
    assert not _loop([ahead, *code, end]), "where nothing leads back but the end to itself"
    assert not _hazards([load(0), store(0), end])
    assert _loop([code[0], branch(-9), end]) == [code[0], branch(-9)], "of a text that is not whole"
    whole = [code[0], code[1], code[2], short, long, code[3]]
    assert _loop([*whole, end]) == [code[1], code[2], short, long]
    assert _loop([*code[:3], long, code[3], short, end]) == [*code[:3], long], "wherever it stands"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ([load(0), store(0), wait(0)], 1),
        ([load(0), wait(0), store(0)], 0),
        ([load(0), store(0, waits=1)], 0),
        ([load(0), store(8), wait(0)], 0),
        ([load(0), wait(1), store(0), wait(0)], 1),
        ([store(0), load(0)], 1),  # of the next pass
        ([store(0), load(0), wait(0)], 0),
        # who waits for one has waited about as long as for the other
        ([load(0, 0), load(64, 1), wait(0), store(64), wait(1)], 0),
        ([load(0, 0), store(0), load(64, 1), store(64), wait(0), wait(1)], 2),
        # what was on its way when one was held up is there when it goes on, and what is asked for afterwards is not
        ([load(0, 0), load(4, 0), store(0), store(4), wait(0)], 1),
        ([load(0, 0), load(64, 1), store(64), store(0), wait(0), wait(1)], 1),
        ([load(0, 0), load(4, 0), store(4), load(8, 1), store(0), store(8), wait(0), wait(1)], 2),
        ([load(0, 0), store(0), wait(0), load(4, 0), store(4), wait(0)], 2),
        ([load(0, words=2), store(0, words=2), wait(0)], 1),
        ([load(0, words=4), store(8), wait(0)], 1),
        ([load(0), store(0, words=4), wait(0)], 1),
        ([load(0, 7), store(0)], 1),  # nobody waits for it at all
        ([load(0), Instruction(STORE, (STACK + 1, 0), 1, 7, 0, 0), wait(0)], 0),  # of another place
    ],
)
def test_words_that_are_overtaken_in_a_pass(code: list[Instruction], found: int) -> None:
    assert _hazards(looped(code)) == found


@given(st.permutations(range(6)))
def test_each_load_that_is_asked_for_behind_a_store_is_one_more(order: list[int]) -> None:
    """And those that are asked for before the first store are one, in whatever order they are stored."""
    waits = [wait(n) for n in range(6)]
    each = [one for n in order for one in (load(16 * n, n), store(16 * n))]
    assert _hazards(looped([*each, *waits])) == 6
    together = [*(load(16 * n, n) for n in range(6)), *(store(16 * n) for n in order)]
    assert _hazards(looped([*together, *waits])) == 1


SPLIT, WHOLE = 0xFFFFFFFC00F40947, 0xFFFFFFD000000947
"""Branches to the second instruction before them, as since compute capability 9.0 and as before."""


def made_by_hand(abi: int = 7, flags: int = 90, back: int = SPLIT) -> bytes:
    """A cubin of two sections, one of code, which ends within an instruction, and that of the names.

    A load and a store come before the loop, and the same make it up.
    """
    names = b"\0.text.k\0.names\0"
    words = *((0x00012C0001057983, 0), (0x00012C0001007387, 0)) * 2, (back, 0x000FEA000383FFFF)
    code = b"".join(struct.pack("<QQ", *one) for one in words) + b"\0" * 7
    heads = [(1, 1, 0, 0, 64, len(code)), (9, 3, 0, 0, 64 + len(code), len(names))]
    table = b"".join(struct.pack("<IIQQQQ", *one) + b"\0" * 24 for one in heads)
    start = 64 + len(code) + len(names)
    head = b"\x7fELF\2\1\1\x33" + bytes([abi]) + b"\0" * 7 + struct.pack("<HHIQQQI", 2, 190, 1, 0, 0, start, flags)
    return head + struct.pack("<HHHHHH", 64, 0, 0, 64, 2, 1) + code + names + table


@pytest.mark.parametrize(
    ("abi", "flags", "readable"), [(7, 90, True), (8, 90 << 8, True), (8, 100 << 8, False), (9, 90, False)]
)
def test_a_text_that_ends_within_an_instruction_has_the_others(abi: int, flags: int, readable: bool) -> None:
    assert spill_hazards(made_by_hand(abi, flags)) == ({"k": 1} if readable else {})


@pytest.mark.parametrize("capability", [70, 75, 80, 86, 89])
def test_the_loop_is_found_where_branches_are_laid_out_as_before(capability: int) -> None:
    assert spill_hazards(made_by_hand(7, capability, WHOLE)) == {"k": 1}


def test_a_cubin_that_is_not_whole_tells_nothing() -> None:
    """Wherever it ends, and whatever it says of where its parts are."""
    whole = made_by_hand()
    assert all(spill_hazards(whole[:end]) == {} for end in range(len(whole) - 24))  # which of the last head is not read
    for place in range(40, 64):
        for value in (0xFF, 0x7F):
            assert spill_hazards(whole[:place] + bytes([value]) + whole[place + 1 :]) in ({}, {"k": 1}), place
    assert spill_hazards(whole[:40] + b"\xff" * 8 + whole[48:]) == {}
    no_text = whole.replace(b".text.k", b".text.\xff")
    assert spill_hazards(no_text) == {}, "a name that is no text"


# what is recorded


def test_the_largest_of_the_entries_is_that_of_the_kernel_and_none_where_nobody_looked() -> None:
    entries = {"step_0": Entry(registers=8, overtaken=3), "step_1": Entry(registers=8, overtaken=5)}
    assert Resources(entries=entries).overtaken == 5
    assert Resources(entries=entries | {"refresh": Entry(registers=4)}).overtaken == 5
    assert Resources(entries={"step_0": Entry(registers=8)}).overtaken is None
    assert Resources(registers=8).overtaken is None
    with pytest.raises(ValueError, match="overtaken 7, but 5 is the largest of the entries"):
        Resources(entries=entries, overtaken=7)


# the model


def subject(words: int | None, local_bytes: int = 592, config: CudaConfig = MARCH, machine: Machine = CARD) -> Inputs:
    assert machine.calibration
    resources = Resources(registers=168, spill_bytes=1700, local_bytes=local_bytes, overtaken=words)
    return inputs_of(CASE, config, machine, resources)


def test_a_multiprocessor_is_held_up_for_each_word_of_each_warp_that_memory_has_to_bring() -> None:
    """By hand: planes that it takes one after the other, eleven warps, seven words, and the share that L2 has lost."""
    one = subject(7)
    lost = 1 - retained_in_l2(CARD, 352 * 592 * 132)
    assert 0.5 < lost < 1
    found = hazard_stalls(one, turns=200)
    assert found
    assert found.seconds == close(200 * 11 * 7 * lost * stall_s(one, 11) / (256**3 * 2))
    assert "7 stores" in found.sentence
    twice = hazard_stalls(subject(14), turns=200)
    assert twice
    assert twice.seconds == close(2 * found.seconds)
    both = hazard_stalls(subject(7, config=replace(MARCH, z_buffer="registers", plane_fetch="none")), turns=200)
    assert both
    assert both.seconds == close(found.seconds / 2), "a pass that takes two planes has its words once for both"


def test_what_a_word_takes_is_measured_by_warps_and_as_with_the_fewest_below_them() -> None:
    assert CARD.calibration
    measured = {f"used by {n}": 1e-8 for n in (8, 16, 32)} | {"overtaken by 8": 4e-7, "overtaken by 16": 3e-7}
    here = replace(subject(1), calibration=replace(CARD.calibration, overtaken_s=measured | {"overtaken by 32": 2e-7}))
    for warps, longer in (
        (1, 3.9e-7),
        (8, 3.9e-7),
        (12, 3.4e-7),
        (16, 2.9e-7),
        (24, 2.4e-7),
        (32, 1.9e-7),
        (64, 1.9e-7),
    ):
        assert stall_s(here, warps) == close(longer), warps
    never = replace(
        here, calibration=replace(CARD.calibration, overtaken_s=dict.fromkeys([*measured, "overtaken by 32"], 1e-8))
    )
    assert stall_s(never, 16) == 0


@pytest.mark.parametrize("words", [0, None])
def test_nothing_is_said_where_nothing_is_overtaken_or_nobody_has_looked(words: int | None) -> None:
    assert hazard_stalls(subject(words), turns=200) is None
    assert SPILL_HAZARDS not in [term.name for term in terms(subject(words), ())]


def test_a_machine_of_which_nobody_has_measured_it_does_without() -> None:
    assert CARD.calibration
    bare = replace(CARD, calibration=replace(CARD.calibration, overtaken_s={}))
    assert hazard_stalls(subject(7, machine=bare), turns=200) is None
    assert (
        predict(CASE, MARCH, bare, subject(7).resources).mlups > predict(CASE, MARCH, CARD, subject(7).resources).mlups
    )


def test_updates_are_those_of_fluid_cells() -> None:
    """A stone takes time and is none: of a domain with one an update takes longer by what it lacks."""
    stone = read_study(RECORDED / "nvidia-h200" / "d3q19-sphere-fast-fp32").header.spec.case
    whole = replace(stone, geometry="")
    assert stone.fluid_sites < 0.99 * whole.fluid_sites
    one, other = (hazard_stalls(replace(subject(7), case=case), turns=200) for case in (stone, whole))
    assert one
    assert other
    assert one.seconds * stone.fluid_sites == close(other.seconds * whole.fluid_sites)


def test_what_l2_has_holds_nobody_up() -> None:
    few = hazard_stalls(subject(7, local_bytes=4), turns=200)
    assert few
    many = hazard_stalls(subject(7), turns=200)
    assert many
    assert few.seconds < 0.1 * many.seconds


def test_with_several_steps_waits_hide_part_of_it_and_with_one_none() -> None:
    """As far as its warps wait anyway for words that were spilled, and for their exchanges."""
    alone = replace(MARCH, steps=1)
    for config in (MARCH, alone):
        one = subject(7, config=config)
        found = {term.name: term for term in terms(one, ())}
        without = {term.name: term for term in terms(one, (LOCAL,))}
        held, by_itself = found[SPILL_HAZARDS], without[SPILL_HAZARDS]
        assert 0 < held.seconds <= by_itself.seconds
        if config.steps == 1:
            assert held.seconds == close(by_itself.seconds)
        else:
            assert held.alone_s
            assert held.seconds < by_itself.seconds
            assert held.alone_s == close(by_itself.alone_s)


def test_instructions_and_exchanges_hide_part_of_it_too() -> None:
    """With several steps, where warps wait for their neighbours; spilled words are left out."""
    one = subject(7, config=replace(MARCH, warp_sync="neighbours"))

    def held(*without: str) -> float:
        (found,) = (term.seconds for term in terms(one, without) if term.name == SPILL_HAZARDS)
        return found

    alone = hazard_stalls(one, one.turns)
    assert alone
    assert held(LOCAL, STAGES) < 0.99 * alone.seconds, "instructions of other warps"
    assert held(LOCAL) < held(LOCAL, STAGES), "and waits for exchanges"
    assert SPILL_HAZARDS not in [term.name for term in terms(one, (SPILL_HAZARDS,))]


def test_spilled_words_that_l1_has_are_not_waited_for() -> None:
    few, many = (subject(7, local_bytes=size) for size in (16, 592))
    assert found_in_l1(many) < found_in_l1(few) < 1
    for each in (few, many):
        answers = loop_answers_s(each) * each.turns / (256**3 * 2)
        assert alone_s(each) == close((1 - found_in_l1(each)) * answers)


@given(words=st.integers(1, 60))
def test_more_words_never_make_a_kernel_faster(words: int) -> None:
    fewer, more = (predict(CASE, MARCH, CARD, subject(n).resources).mlups for n in (words - 1, words))
    assert more <= fewer * (1 + 1e-12)
