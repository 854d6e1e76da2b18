"""The model of CPU kernels: which walk a kernel is, what its arithmetic takes, and which lines its L1 cache loses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.catalogue.config import CpuConfig, cpu
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.cpu.moments_wavefront.cell import cell_text
from lbmtune.model.cpu.arithmetic import arithmetic, estimated_calibration
from lbmtune.model.cpu.families import ceiling, inputs_of, terms
from lbmtune.model.cpu.inputs import CpuInputs, collision_text
from lbmtune.model.cpu.l1_refills import lost_lines
from lbmtune.model.cpu.memory import walk
from lbmtune.model.instructions import Operations
from lbmtune.model.instructions import operations as counted_on
from lbmtune.model.machine.description import CpuCalibration, Machine
from lbmtune.model.machine.memory_walks import TRANSFERS, Walk, calibrated, fillings
from lbmtune.model.predict import CPU_TERMS, predict
from lbmtune.records import Environment
from tests.support.kernels.configs import varied
from tests.support.seconds import close

CASE = box("d3q19", "bgk", (128, 128, 128))
WIDTHS = (4, 32, 64)
RATES = {one.name: 1e9 * (n + 20) for n, one in enumerate(calibrated(WIDTHS))}
FOUND = CpuCalibration(
    walks_bytes_per_s=RATES,
    thread_walks_bytes_per_s={name: rate / 3 for name, rate in RATES.items() if name.count(",") == 1},
    cached_bytes_per_s={"4": 20e9, "32": 60e9, "64": 80e9},
    multiply_add_per_s={"4": 5e9, "32": 4e9, "64": 3e9},
    divide_per_s={"4": 8e8, "32": 5e8, "64": 2e8},
    refill_s=2e-9,
)
MACHINE = Machine(
    name="cores",
    environment=Environment(
        backend="cpu", device="cores", device_id="host", architecture="x", cores=4, vector_bits=512
    ),
    copy_bytes_per_s=40e9,
    in_place_bytes_per_s=45e9,
    stream_bytes_per_s={"4": 20e9, "64": 32e9},
    caches_bytes={"L1": 32 << 10, "L2": 1 << 20},
    cpu=FOUND,
)
ALIGNED = cpu.Direct(row_padding=15, threads=4)
"""Rows of 16 + 128 + 1 + 15 cells: whole lines of 64 bytes."""
ODD = replace(ALIGNED, row_padding=0)
SCALAR = replace(ALIGNED, vector_bits=0)
GROUPS = varied(ALIGNED, layout="aosoa", width=16)


def operations(case: Case) -> Operations:
    return counted_on(collision_text(case, "one"))


def subject(config: CpuConfig, machine: Machine = MACHINE, domain: tuple[int, int, int] = CASE.domain) -> CpuInputs:
    assert machine.cpu is not None
    return inputs_of(replace(CASE, domain=domain), config, machine, machine.cpu)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (ALIGNED, Walk("copy", 64)),
        (ODD, Walk("copy", 64, shifted=True)),
        (replace(ALIGNED, row_offset=1), Walk("copy", 64, shifted=True)),
        (varied(ALIGNED, padding=1), Walk("copy", 64, shifted=True)),
        (varied(ALIGNED, padding=208), Walk("copy", 64)),
        (replace(ALIGNED, streaming_stores=1), Walk("streaming", 64)),
        (replace(ALIGNED, streaming_stores=1, scheme="aa"), Walk("in place", 64)),
        (cpu.Sparse(streaming_stores=1, vector_bits=512, threads=4), Walk("streaming", 64)),
        (replace(ALIGNED, scheme="aa", vector_bits=256), Walk("in place", 32)),
        (replace(ALIGNED, storage="fp16s"), Walk("copy", 32, shifted=True)),
        (replace(ALIGNED, storage="fp64", compute="fp64"), Walk("copy", 64)),
        (replace(SCALAR, scheme="push"), Walk("copy", 4)),
        (GROUPS, Walk("copy", 64, grouped=True)),
        (replace(GROUPS, scheme="esoteric-pull"), Walk("in place", 64, grouped=True)),
    ],
)
def test_the_walk_of_a_kernel(config: CpuConfig, expected: Walk) -> None:
    assert walk(subject(config)) == expected


@pytest.mark.parametrize(
    "config",
    [ALIGNED, replace(ALIGNED, streaming_stores=1), replace(ALIGNED, scheme="aa"), replace(SCALAR, scheme="push")],
)
def test_bytes_of_a_walk_are_counted_as_those_of_the_kernels_that_go_by_its_rate(config: CpuConfig) -> None:
    """19 populations of four bytes; otherwise a rate would be of other bytes than what is divided by it."""
    assert TRANSFERS[walk(subject(config)).kind] * 19 * 4 == bytes_per_update(CASE, config)


def test_every_walk_was_calibrated() -> None:
    names = [one.name for one in calibrated(WIDTHS)]
    assert len(set(names)) == len(names) == 32
    assert names[:3] == ["in place, 4 bytes", "in place, 4 bytes, shifted", "in place, 4 bytes, grouped"]
    assert "streaming, 64 bytes, ahead" in names


def test_memory_is_bytes_over_the_rate_of_the_walk() -> None:
    (memory,) = terms(subject(ALIGNED), without=CPU_TERMS)
    assert memory.name == "memory"
    assert memory.seconds == close(228 / RATES["copy, 64 bytes"])
    assert memory.sentence.startswith("228 bytes per update at ")
    assert memory.sentence.endswith("GB/s, copy, 64 bytes")


def test_what_is_asked_for_ahead_has_its_share_of_both_rates() -> None:
    config = replace(ALIGNED, prefetch_propagated=64)
    assert subject(config).prefetched == pytest.approx(18 / 19)
    assert subject(replace(config, prefetch_local=32)).prefetched == 1
    assert subject(replace(config, scheme="aa")).prefetched == pytest.approx((0 + 18) / 38)
    memory = terms(subject(config))[0]
    expected = 228 * (18 / 19 / RATES["copy, 64 bytes, ahead"] + 1 / 19 / RATES["copy, 64 bytes"])
    assert memory.seconds == close(expected)


def test_sites_of_a_list_have_their_share_of_both_rates() -> None:
    listed = cpu.Sparse(scheme="aa", vector_bits=512, threads=4)
    found = subject(replace(listed, prefetch_propagated=64, prefetch_local=32))
    assert subject(listed).prefetched == 0
    assert found.prefetched == 1
    plain, ahead = (terms(inputs)[0].seconds for inputs in (subject(listed), found))
    assert ahead / plain == close(RATES["in place, 64 bytes"] / RATES["in place, 64 bytes, ahead"])


def test_a_numa_node_has_the_share_of_its_processors() -> None:
    """Half of the four processors: half of the bandwidth, where two free threads may have more."""
    half, free = (terms(subject(replace(ALIGNED, threads=2, pinning=one)))[0].seconds for one in ("node-1", "cores"))
    assert half == close(2 * 228 / RATES["copy, 64 bytes"])
    assert free <= half
    memory_alone = replace(ALIGNED, pinning="node-2")
    assert terms(subject(memory_alone))[0].seconds == close(228 / RATES["copy, 64 bytes"])
    of_node = ceiling(replace(ALIGNED, threads=2, pinning="node-1"), MACHINE)
    assert of_node.bytes_per_s == close(ceiling(ALIGNED, MACHINE).bytes_per_s / 2)


def test_few_threads_have_so_many_times_what_one_has() -> None:
    one, two, three = (
        terms(subject(replace(ODD, threads=threads)))[0].seconds / terms(subject(ODD))[0].seconds
        for threads in (1, 2, 3)
    )
    assert (one, two, three) == pytest.approx((3, 1.5, 1))


def test_operations_are_counted_on_the_text() -> None:
    assert counted_on("a = b * c + d\ne = c1 / a\nf = (a + b) * (c - d) / e\ng = -f")[:2] == (4, 2)
    assert counted_on("a = b * c + d\ne = c1 / a\nf = (a + b) * (c - d) / e\ng = 2 * 3 + -f * f").products == 3
    assert operations(CASE) == Operations(operations(CASE).plain, 1, operations(CASE).products)
    assert 0 < operations(CASE).products < operations(CASE).plain
    assert 90 < operations(CASE).plain < 250
    assert operations(box("d3q27", "bgk", (32, 32, 32))).plain > operations(CASE).plain


def test_arithmetic_goes_by_lanes_and_threads() -> None:
    def seconds(config: CpuConfig) -> float:
        return next(one.seconds for one in terms(subject(config)) if one.name == "arithmetic")

    plain = operations(CASE).plain
    assert seconds(SCALAR) == close((plain / 5e9 + 1 / 8e8) / 4)
    assert seconds(ALIGNED) == close((plain / 3e9 + 1 / 2e8) / 16 / 4)
    assert seconds(replace(ALIGNED, threads=1)) == close(4 * seconds(ALIGNED))
    # 10 of 19 populations come from the side, by 3 instructions each; they stay where they are when they are written
    assert seconds(GROUPS) - seconds(ALIGNED) == close(3 * 10 / 3e9 / 16 / 4)
    halves = replace(ALIGNED, storage="fp16s")
    assert seconds(halves) - seconds(ALIGNED) == close(2 * 19 * 2 / 3e9 / 16 / 4)


@pytest.mark.parametrize(("mixed", "alone"), [(3e9, 3e9), (5e9, 3e9), (6e9, 1e9)])
def test_sums_go_on_beside_products_as_far_as_that_has_been_measured(mixed: float, alone: float) -> None:
    """As many of each as there are take no less than either kind alone, where values are as fast as in registers."""
    rates, both = {"4": 5e9, "32": 4e9, "64": alone}, {"4": 5e9, "32": 4e9, "64": mixed}
    found = replace(FOUND, multiply_add_per_s=rates, mixed_per_s=both, worked_per_s=both)
    plain, _, with_product = operations(CASE)
    slowest = max(plain / mixed, with_product / alone, (plain - with_product) / alone)
    expected = (slowest + 1 / 2e8) / 16 / 4
    assert seconds(ALIGNED, "arithmetic", replace(MACHINE, cpu=found)) == close(expected)


def test_sums_gain_nothing_beside_products_where_work_on_so_many_values_was_not_measured() -> None:
    """Nine values may well stay in registers, where they do."""
    beside = replace(MACHINE, cpu=replace(FOUND, mixed_per_s={"4": 9e9, "32": 7e9, "64": 5e9}))
    assert seconds(ALIGNED, "arithmetic", beside) == seconds(ALIGNED, "arithmetic")
    plane = box("d2q9", "bgk", (128, 128, 1))
    few = [inputs_of(plane, ALIGNED, machine, machine.cpu) for machine in (MACHINE, beside) if machine.cpu]
    assert arithmetic(few[1]).seconds < arithmetic(few[0]).seconds


CROWDED = {
    **{"in place, 32 bytes, 10 together": 1e-9, "in place, 32 bytes, 13 together": 4e-9},
    **{"in place, 32 bytes, 19 together": 7e-9, "in place, 64 bytes, 19 together": 1.1e-9},
    **{"copy, 32 bytes, 38 together": 3e-9, "streaming, 64 bytes, 19 together": 2e-9},
}


def test_lines_that_share_a_set_take_what_such_walks_take_longer() -> None:
    """The rows below: 19 lines in the even steps of AA, and in the odd ones 14 at two of 16 places of a line."""
    row = cpu.Direct(scheme="aa", threads=4, vector_bits=256, row_padding=1024 - 17)
    machine, domain = replace(MACHINE, cpu=replace(FOUND, refills_s=CROWDED)), (1024, 16, 16)

    def longer_s(config: CpuConfig, machine: Machine = machine) -> float:
        every = terms(subject(config, machine, domain))
        return next(one.seconds for one in every if one.name == "refills")

    fourteen_s = 4e-9 + (7e-9 - 4e-9) / 6
    assert longer_s(row) == close((7e-9 + (14 * 7e-9 + 2 * fourteen_s) / 16) / 2)
    assert longer_s(replace(row, threads=2)) == close(2 * longer_s(row))
    assert longer_s(replace(row, vector_bits=512)) == close((1.1e-9 + (14 * 1.1e-9 + 2 * 0.6e-9) / 16) / 2)
    assert longer_s(varied(row, padding=208)) == 0
    # 19 that are read, or those with as many that are written, all in one set or some of them beside it
    some = replace(row, scheme="pull", streaming_stores=1, vector_bits=512)
    assert 0 < longer_s(some) <= 2e-9
    assert 0 < longer_s(replace(row, scheme="pull")) <= 3e-9
    # of halves a vector of the same bytes has twice as many cells
    halves = replace(row, storage="fp16s", vector_bits=512, row_padding=2048 - 17 - 1024)
    assert longer_s(halves) == close(longer_s(row) / 2, rel=0.1)
    # what waits for each line: a scalar, and a vector where no walk of its kind was measured
    scalar = replace(row, vector_bits=0)
    assert longer_s(scalar) == longer_s(scalar, MACHINE) > 0
    others = {name: one for name, one in CROWDED.items() if not name.startswith("in place")}
    assert longer_s(row, replace(MACHINE, cpu=replace(FOUND, refills_s=others))) == longer_s(row, MACHINE) > 0


def test_lines_that_share_a_set_are_lost() -> None:
    """Rows of 4096 bytes: all rows of all directions start in the same set, which has eight lines.

    In the even steps of AA all 19 lie there. In the odd ones five are displaced to either side: at the first and at the
    last element of a line five of them are in the set beside. 15 of 16 accesses find their line gone, to read and to
    write.
    """
    row = cpu.Direct(row_offset=0, scheme="aa", threads=4, vector_bits=0, wrap="select")
    domain = (1024, 16, 16)
    odd = (14 * 19 + 2 * 14) / 16
    assert lost_lines(subject(row, domain=domain)) == pytest.approx(2 * 15 / 16 * (19 + odd) / 2)
    assert lost_lines(subject(varied(row, padding=208), domain=domain)) == 0
    assert lost_lines(subject(row, replace(MACHINE, caches_bytes={"L1": 128 << 10}), domain=domain)) == 0
    assert lost_lines(subject(ALIGNED)) == 0  # a vector is a line, which nobody needs again
    half = replace(row, wrap="ghost", row_offset=16, vector_bits=256, row_padding=1024 - 17)
    assert lost_lines(subject(half, domain=domain)) == pytest.approx(2 * 1 / 16 * (19 + odd) / 2)


SEVERAL = varied(ODD, family="wavefront", scheme="aa", tile=(8, 4), steps=4)


def seconds(config: CpuConfig, name: str, machine: Machine = MACHINE, without: tuple[str, ...] = ()) -> float:
    return next(one.seconds for one in terms(subject(config, machine), without) if one.name == name)


def test_steps_that_stay_in_a_cache_take_its_rate() -> None:
    """Three of four go through it; what they take there counts beyond their arithmetic."""
    config = replace(SEVERAL, tile=(8, 1))
    assert subject(config).kept_bytes == 8 * (1 + 4) * (16 + 128 + 1) * 19 * 4 < 1 << 20
    alone = 0.75 * 152 / 80e9
    assert seconds(config, "cache", without=("arithmetic",)) == close(alone)
    assert seconds(config, "cache") == close(alone - seconds(config, "arithmetic"))
    slow = replace(MACHINE, cpu=replace(FOUND, multiply_add_per_s={"4": 1e9, "32": 1e9, "64": 1e9}))
    assert seconds(config, "cache", slow) == 0
    assert seconds(config, "memory") < 0.5 * seconds(replace(config, steps=1), "memory")


def test_work_on_more_values_than_registers_hold_takes_longer_as_far_as_that_has_been_measured() -> None:
    """With 19 values as measured; nine may well stay in registers, and work is never faster than without them."""
    spilled = replace(MACHINE, cpu=replace(FOUND, worked_per_s={"4": 6e9, "32": 3e9, "64": 2e9}))
    quotients_s = operations(CASE).quotients / (16 * 4) / FOUND.divide_per_s["64"]
    plain_s = arithmetic(subject(ALIGNED)).seconds - quotients_s
    assert arithmetic(subject(ALIGNED, spilled)).seconds == close(1.5 * plain_s + quotients_s)
    assert arithmetic(subject(SCALAR, spilled)) == arithmetic(subject(SCALAR))
    # where sums go on beside products, each of them still takes as long as was measured with as many values
    beside = {"4": 9e9, "32": 7e9, "64": 5e9}
    both = replace(MACHINE, cpu=replace(spilled.cpu, mixed_per_s=beside))  # type: ignore[type-var]
    assert arithmetic(subject(ALIGNED, both)) == arithmetic(subject(ALIGNED, spilled))
    plane = box("d2q9", "bgk", (128, 128, 1))
    few = [inputs_of(plane, ALIGNED, machine, machine.cpu) for machine in (MACHINE, spilled) if machine.cpu]
    assert arithmetic(few[0]) == arithmetic(few[1])


def test_what_a_cache_takes_hides_behind_arithmetic_as_far_as_that_has_been_measured() -> None:
    config = replace(SEVERAL, tile=(8, 1))
    machine = replace(
        MACHINE, cpu=replace(FOUND, cached_hidden={"in place, 32 bytes": 0.5, "in place, 64 bytes": 0.75})
    )
    alone, arithmetic = seconds(config, "cache", without=("arithmetic",)), seconds(config, "arithmetic")
    assert seconds(config, "cache", machine) == close(alone - 0.75 * min(alone, arithmetic))
    assert seconds(config, "cache", machine, ("arithmetic",)) == alone
    slow = {"4": 1e9, "32": 1e9, "64": 1e9}
    slower = replace(machine, cpu=replace(machine.cpu, multiply_add_per_s=slow))  # type: ignore[type-var]
    assert seconds(config, "cache", slower) == close(0.25 * alone)


def test_steps_that_do_not_stay_in_the_second_cache_take_the_rate_of_the_last_one() -> None:
    config = replace(SEVERAL, tile=(32, 4))
    assert subject(config).kept_bytes == 32 * (4 + 4) * (16 + 128 + 1) * 19 * 4 > 1 << 20
    unknown = seconds(config, "cache", without=("arithmetic",))
    assert unknown == close(0.75 * 152 / 80e9)
    last = {"in place, 64 bytes": 40e9, "in place, 64 bytes, ahead": 50e9}
    machine = replace(MACHINE, cpu=replace(FOUND, last_cached_bytes_per_s=last))
    assert seconds(config, "cache", machine, ("arithmetic",)) == close(0.75 * 152 / 40e9)
    ahead = replace(config, prefetch_local=64, prefetch_propagated=64)
    assert seconds(ahead, "cache", machine, ("arithmetic",)) == close(0.75 * 152 / 50e9)
    some = replace(config, scheme="esoteric-twist", prefetch_propagated=64)
    share = subject(some).prefetched
    assert 0 < share < 1
    mean = 0.75 * 152 * (share / 50e9 + (1 - share) / 40e9)
    assert seconds(some, "cache", machine, ("arithmetic",)) == close(mean)
    assert seconds(replace(config, tile=(8, 1)), "cache", machine, ("arithmetic",)) == close(0.75 * 152 / 80e9)


SWEEP = replace(SEVERAL, tile=(32, 4))
KEPT = 4 * subject(SWEEP).kept_bytes


@pytest.mark.parametrize(
    ("l3_bytes", "expected"),
    [
        (19 << 40, 120e9),
        (6 * KEPT, 1 / (0.5 / 120e9 + 0.5 / 60e9)),
        (3 * KEPT, 60e9),
        (2 * KEPT, 1 / (0.5 / 60e9 + 0.5 / 50e9)),
        (1.5 * KEPT, 50e9),
        (0.75 * KEPT, 40e9),
        (0.375 * KEPT, 1 / (0.5 / 40e9 + 0.5 / RATES["in place, 64 bytes"])),
    ],
)
def test_what_fills_the_last_cache_is_slower_and_what_it_cannot_hold_comes_from_memory(
    l3_bytes: float, expected: float
) -> None:
    """All threads together go through as much as they keep, which is a third, two or four thirds of such caches."""
    one = Walk("in place", 64)
    slower = dict(zip(fillings(one), (60e9, 50e9, 40e9), strict=True))
    found = replace(
        FOUND,
        last_cached_bytes_per_s={one.name: 120e9},
        filled_bytes_per_s={filling.name: rate for filling, rate in slower.items()},
    )
    machine = replace(MACHINE, cpu=found, caches_bytes={**MACHINE.caches_bytes, "L3": round(l3_bytes)})
    found_s = seconds(SWEEP, "cache", machine, ("arithmetic",))
    assert found_s == close(0.75 * 152 / expected, rel=1e-5)


def test_arithmetic_hides_behind_memory_as_far_as_that_has_been_measured() -> None:
    """Of a launch of several steps, that of the one which waits for memory."""
    shares = {"in place, 64 bytes": 0.25, "in place, 64 bytes, ahead": 0.75}
    machine = replace(MACHINE, cpu=replace(FOUND, hidden=shares))
    one = replace(ODD, scheme="aa")
    alone = seconds(one, "arithmetic")
    assert alone < seconds(one, "memory")
    assert seconds(one, "arithmetic", machine) == close(0.75 * alone)
    ahead = replace(one, prefetch_local=64, prefetch_propagated=64)
    assert seconds(ahead, "arithmetic", machine) == close(0.25 * alone)
    assert seconds(SEVERAL, "arithmetic", machine) == close((1 - 0.25 / 4) * alone)
    slow = replace(machine, cpu=replace(machine.cpu, multiply_add_per_s={"4": 1e8, "32": 1e8, "64": 1e8}))  # type: ignore[type-var]
    assert seconds(one, "arithmetic", slow) == close(
        seconds(one, "arithmetic", replace(slow, cpu=replace(slow.cpu, hidden={}))) - 0.25 * seconds(one, "memory")  # type: ignore[type-var]
    )


def test_threads_that_find_no_work_do_not_count() -> None:
    """Slabs of 8 steps of AA are 14 planes at least, blocks of moments as many planes as they say."""
    thin = (128, 128, 30)
    assert subject(replace(SEVERAL, steps=8), domain=thin).threads == 2
    assert subject(replace(SEVERAL, steps=8), domain=(128, 128, 128)).threads == 4
    assert subject(ODD, domain=thin).threads == 4
    moments = varied(ALIGNED, family="moments-wavefront", tile=(128, 16, 32), steps=3)
    assert subject(moments).threads == 4
    assert subject(replace(moments, tile=(128, 16, 64))).threads == 2
    assert subject(replace(moments, tile=(128, 16, 24))).threads == 3  # six blocks, of which two threads have two


def test_moments_are_charged_for_their_halo_and_for_what_their_cells_do() -> None:
    moments = varied(ALIGNED, family="moments-wavefront", tile=(128, 16, 32), steps=3)
    assert subject(moments).repeated == pytest.approx((128 + 4) / 128 * (32 + 4) / 32)
    assert subject(replace(moments, tile=(64, 16, 32))).repeated == pytest.approx(1.5 * (128 + 4) / 128 * (32 + 4) / 32)
    assert subject(SEVERAL).repeated == 1
    counted = counted_on(cell_text(replace(CASE, collision="regularised")))
    assert counted.quotients == 1
    assert 80 < counted.plain < 120
    regularised = inputs_of(replace(CASE, collision="regularised"), moments, MACHINE, FOUND)
    (found,) = (one.seconds for one in terms(regularised) if one.name == "arithmetic")
    assert found == close(regularised.repeated * (counted.plain / 3e9 + 1 / 2e8) / 16 / 4)


def test_moments_send_all_populations_of_each_step_through_a_cache() -> None:
    moments = varied(ALIGNED, family="moments-wavefront", tile=(128, 16, 32), steps=1)
    for config in (moments, replace(moments, steps=2), replace(moments, storage="fp16s")):
        moved = subject(config).repeated * 228  # read, and written to lines that nobody has read before
        assert seconds(config, "cache", without=("arithmetic",)) == close(moved / 80e9)


def test_what_one_step_asks_for_the_next_rows_is_all_asked_for() -> None:
    assert subject(SEVERAL).prefetched == 0
    rows = replace(SEVERAL, tile=(32, 4), prefetch_rows=1)
    assert subject(rows).prefetched == 1
    last = {"in place, 64 bytes": 40e9, "in place, 64 bytes, ahead": 50e9}
    machine = replace(MACHINE, cpu=replace(FOUND, last_cached_bytes_per_s=last))
    assert seconds(rows, "cache", machine, ("arithmetic",)) == close(0.75 * 152 / 40e9)


@pytest.mark.parametrize("config", [ALIGNED, ODD, SCALAR, GROUPS, replace(SCALAR, scheme="aa")])
def test_a_prediction_is_its_terms_and_stays_below_the_ceiling(config: CpuConfig) -> None:
    found = predict(CASE, config, MACHINE)
    assert found.mlups == pytest.approx(1e-6 / sum(one.seconds for one in found.terms))
    assert found.ceiling_source == "calibrated by micro-benchmarks"
    assert found.mlups < found.bandwidth_bytes_per_s / bytes_per_update(CASE, config) / 1e6
    assert all(
        predict(CASE, config, MACHINE, without=(term,)).mlups >= found.mlups for term in ("arithmetic", "refills")
    )
    faster = replace(FOUND, walks_bytes_per_s={name: 2 * rate for name, rate in RATES.items()})
    assert found.mlups < predict(CASE, config, replace(MACHINE, cpu=faster)).mlups < 2 * found.mlups


CLOCKED = replace(MACHINE, cpu=None, core_clock_hz=2e9)


@pytest.mark.parametrize(
    ("config", "operations_s", "quotients_s"),
    [
        (ALIGNED, 1 / (4e9 * 16), 10 / (2e9 * 16)),
        (replace(ALIGNED, vector_bits=256), 1 / (4e9 * 8), 5 / (2e9 * 8)),
        (replace(ALIGNED, vector_bits=0, threads=1), 4 / 4e9, 4 * 3 / 2e9),
    ],
)
def test_arithmetic_is_estimated_by_the_clock(config: CpuConfig, operations_s: float, quotients_s: float) -> None:
    """Two operations of each of four cores in a cycle; divisions of a register take 3, 5 and 10 cycles."""
    counted = operations(CASE)
    found = predict(CASE, config, CLOCKED)
    (estimate,) = (term for term in found.terms if term.name == "arithmetic")
    assert estimate.seconds * 4 == close(counted.plain * operations_s + counted.quotients * quotients_s)
    assert estimate.source == "estimated by the clock, not measured"
    (memory,) = predict(CASE, config, replace(CLOCKED, core_clock_hz=None)).terms
    assert found.mlups == pytest.approx(1e-6 / (memory.seconds + estimate.seconds))


@pytest.mark.parametrize(
    ("architecture", "vector_bits", "bits", "passes"),
    [
        ("znver4", 512, 512, 2),
        ("znver4", 512, 256, 1),
        ("znver1", 256, 256, 2),
        ("znver1", 256, 0, 1),
        ("znver5", 512, 512, 1),
        ("skylake-avx512", 512, 512, 1),
        ("haswell", 256, 512, 2),
    ],
)
def test_a_core_splits_operations_on_more_bytes_than_it_has(
    architecture: str, vector_bits: int, bits: int, passes: int
) -> None:
    environment = replace(CLOCKED.environment, architecture=architecture, vector_bits=vector_bits)
    rates = estimated_calibration(replace(CLOCKED, environment=environment))
    assert rates is not None
    assert rates.multiply_add_per_s[str(bits // 8 or 4)] == 2 * 2e9 / passes


def test_several_steps_in_a_cache_do_not_outrun_the_cores() -> None:
    config = varied(ALIGNED, family="moments-wavefront", steps=8, tile=(64, 16, 16))
    bytes_alone = predict(CASE, config, replace(CLOCKED, core_clock_hz=None)).mlups
    at_1_ghz, at_2_ghz = (predict(CASE, config, replace(CLOCKED, core_clock_hz=hz)).mlups for hz in (1e9, 2e9))
    assert at_1_ghz < at_2_ghz < bytes_alone


def test_what_was_measured_is_not_estimated() -> None:
    assert all(
        "estimated" not in term.source for term in predict(CASE, ALIGNED, replace(MACHINE, core_clock_hz=1)).terms
    )
