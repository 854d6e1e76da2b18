"""Profiles: losses measured on the real processor, counters, the record, the page and the verb."""

from __future__ import annotations

import errno
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lbmtune.backend.cpu import open_cpu
from lbmtune.catalogue.collisions import NO_COLLISION
from lbmtune.catalogue.config import CudaConfig, cpu, cuda, from_flat
from lbmtune.catalogue.layouts import AoS, AoSoA
from lbmtune.catalogue.problem.flows import box
from lbmtune.cli import main
from lbmtune.cli.format.profile import print_profile
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.measure.calibration.microbench import Bandwidths, Rate
from lbmtune.measure.profiling import counters, profiler_target
from lbmtune.measure.profiling import loss_breakdown as losses
from lbmtune.measure.profiling import perf_events as perf
from lbmtune.model.gpu.temporal_blocking.instruction_issue import slots
from lbmtune.model.loss_breakdown import expected
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Conditions, Resources, Term
from lbmtune.records.best_json.document import read_best
from lbmtune.records.profile import COPY, DATASHEET, KERNEL, STREAMING, STREAMS, Profile, Rung
from lbmtune.records.remarks import profile_disturbance
from lbmtune.records.spec import TimingProtocol
from lbmtune.report.profile import profile_page, write_profile_page
from lbmtune.report.profile_tables import conclusion, counter_rows, deviation, level_rows, state_rows
from lbmtune.units import format_mlups
from scripts import gpu
from scripts.recorded import profiles
from tests.support.browser import check_fits, laid_out
from tests.support.paths import RECORDED, ROOT
from tests.support.studies.made_up_profile import PROFILE

QUICK = TimingProtocol(verify_periods=1, max_samples=6, min_cpu_share=0.0, sustained_s=0.2, settling_s=0.0)


def test_losses_add_up_to_what_is_missing_to_the_ceiling() -> None:
    measured = [loss.measured for loss in PROFILE.losses]
    assert measured == pytest.approx([0.2, 0.16, 0.14, 0.1])
    assert sum(measured) == pytest.approx(1 - 10000 / 25000)
    model = [loss.model or 0.0 for loss in PROFILE.losses]
    assert model == pytest.approx([0.2, 0.16, 0.14, 0.1 - 10000 * (100 / 96 - 1) / 25000])
    assert sum(model) + (PROFILE.unexplained or 0.0) == pytest.approx(sum(measured))


def test_without_a_prediction_nothing_is_said_of_it() -> None:
    silent = replace(PROFILE, rungs=tuple(replace(one, model_s=None) for one in PROFILE.rungs))
    assert {loss.model for loss in silent.losses} == {None}
    assert silent.unexplained is None
    assert not any(row["model: adds, ps>"] or row["difference, ps>"] for row in level_rows(silent))
    assert "model" not in [trace.name for trace in losses_figure_of(silent)]


LOSS = "most time, 20.00 of 100.00 ps, is added from streaming to kernel"


def test_the_conclusion_names_the_share_what_adds_most_time_its_term_and_what_is_open() -> None:
    assert conclusion(PROFILE) == (
        f"The kernel reaches 10,000 of the 25,000 MLUPS that the data sheet allows, 40.0 %; {LOSS}, where the model "
        "adds 16.00 ps, by its term memory (160 B). Unexplained: +4.00 ps (the kernel is slower than predicted); "
        "largest difference: kernel, +4.00 ps."
    )


def test_levels_rank_by_the_time_that_they_add_not_by_the_speed_that_they_cost() -> None:
    """Early levels cost more MLUPS per picosecond than late ones: 106 ps would seem more than 156."""
    times = (394e-12, 409e-12, 515e-12, 671e-12)
    rungs = tuple(replace(one, seconds=s) for one, s in zip(PROFILE.rungs[1:], times, strict=True))
    found = replace(PROFILE, rungs=rungs)
    lost = {loss.name: loss.measured for loss in found.losses}
    assert lost["streaming"] > lost["kernel"]
    assert "most time, 156.00 of 671.00 ps, is added from streaming to kernel" in conclusion(found)
    rows = {row["level"]: row for row in level_rows(found)}
    assert [rows[name]["adds, ps>"] for name in ("streams", "streaming", "kernel")] == ["+15.00", "+106.00", "+156.00"]
    shares = [float(row["of the time>"].split()[0]) for row in rows.values() if row["level"] != "unexplained"]
    assert sum(shares) == pytest.approx(100, abs=0.2)


def test_the_term_of_a_loss_is_the_one_that_grows_most() -> None:
    datasheet, copy, streams, streaming, kernel = PROFILE.rungs
    bytes_alone = replace(streams, model=(Term(name=STREAMS, seconds=62.5e-12, sentence="", source=""),))
    apart = {"memory": 60e-12, "exchanges": 3e-12, "instructions": 17e-12}
    told = tuple(Term(name=name, seconds=s, sentence=f"of {name}", source="") for name, s in apart.items())
    slow = replace(streaming, seconds=160e-12, model=told)
    found = replace(PROFILE, rungs=(datasheet, copy, bytes_alone, slow, replace(kernel, seconds=160e-12)))
    assert "from streams to streaming (the kernel without collision), where" in conclusion(found)
    assert "mostly by its term instructions (of instructions; the collision hides it)." in conclusion(found)


def test_a_conclusion_without_a_model_or_a_loss_or_beside_others_says_so() -> None:
    silent = replace(PROFILE, rungs=tuple(replace(one, model_s=None, model=()) for one in PROFILE.rungs))
    assert conclusion(silent).endswith(f"{LOSS}. Unexplained: all of it, because the model has no prediction.")
    level = replace(PROFILE, rungs=tuple(replace(one, seconds=40e-12) for one in PROFILE.rungs))
    assert "allows, 100.0 %; there is no loss." in conclusion(level)
    quick = replace(PROFILE.rungs[2], seconds=35e-12)
    above = replace(PROFILE, rungs=(*PROFILE.rungs[:2], quick, *PROFILE.rungs[3:]))
    assert "40.0 % (no upper bound: the level streams has 28,571);" in conclusion(above)
    faster = replace(PROFILE, rungs=(*PROFILE.rungs[:-1], replace(PROFILE.rungs[-1], seconds=90e-12)))
    assert "(the kernel is faster than predicted)" in conclusion(faster)
    assert conclusion(beside_others(0.5)) == "There is no conclusion: other programs used the device."


def losses_figure_of(profile: Profile) -> Sequence[object]:
    from lbmtune.report.profile import waterfall_figure

    return list(waterfall_figure(profile).data)


def test_the_waterfall_ends_at_the_kernel() -> None:
    measured, model = losses_figure_of(PROFILE)
    for trace, last in ((measured, 100), (model, 96)):
        *steps, total = trace.y  # type: ignore[attr-defined]
        assert sum(steps) == pytest.approx(100), "the unexplained part closes the gap"
        assert total == pytest.approx(last), "each has its own sum"
    assert model.y[-2] == pytest.approx(4)  # type: ignore[attr-defined]


def test_the_page_holds_the_losses_the_counters_and_the_energy() -> None:
    page = profile_page(PROFILE)
    assert "10,000 MLUPS, 40% of the datasheet" in page
    assert page.index(f'<p id="conclusion">{conclusion(PROFILE)}</p>') < page.index("<main>")
    for row in level_rows(PROFILE):
        assert f"<td>{row['level']}</td>" in page
    assert counter_rows(PROFILE) == [("DRAM bytes read", "84", "per update", "80", "1.050")]
    state = dict(state_rows(PROFILE))
    assert state["energy"] == "60.6 nJ per update, by counter"
    assert state["throttle reasons"] == "software power cap in 25% of the samples"
    assert state["ECC"] == "on"


def test_the_record_comes_back() -> None:
    assert msgspec.json.decode(msgspec.json.encode(PROFILE), type=Profile) == PROFILE


# losses on the processor


@pytest.fixture
def climbed(monkeypatch: pytest.MonkeyPatch) -> Profile:
    """All of it for real but the copies, which take their time."""
    now = Bandwidths(copy=Rate(4e10, 0.01), in_place=Rate(3e10, 0.01), streams={"32": Rate(2e10, 0.02)})
    monkeypatch.setattr(losses, "measure_bandwidths", lambda *_: now)
    machine = read_machine(RECORDED / "xeon-2-cores" / "machine.toml")
    case = box("d3q19", "bgk", (32, 20, 16))
    config = cpu.Direct(scheme="aa", vector_bits=256)
    return losses.measure_losses(open_cpu(), losses.ProfileRequest(case, config, machine, QUICK), lambda _: None)


def test_the_losses_on_the_processor(climbed: Profile) -> None:
    assert [one.name for one in climbed.rungs] == [COPY, STREAMS, STREAMING, KERNEL]
    copy, streams, streaming, kernel = climbed.rungs
    assert copy.seconds == pytest.approx(152 / 4e10)
    assert streams.seconds == pytest.approx(152 / 3e10), "in place"
    assert streaming.seconds > 0
    assert kernel.seconds > 0
    assert climbed.verification.passed
    assert climbed.sustained is not None
    assert all(one.model_s for one in climbed.rungs)
    assert climbed.counters.source.startswith(("perf events", "no counters: "))
    assert bool(climbed.counters.found) == (climbed.counters.source == "perf events")
    assert msgspec.json.decode(msgspec.json.encode(climbed), type=Profile) == climbed


def on_a_processor(machine: Machine) -> losses._CpuLosses:
    asked = losses.ProfileRequest(box("d3q19", "bgk", (32, 20, 16)), cpu.Direct(scheme="aa"), machine, QUICK)
    return losses._CpuLosses(open_cpu(), lambda _: None, asked, lambda _: None)  # type: ignore[arg-type, return-value]


def test_copies_are_larger_than_the_largest_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    caches: list[int] = []

    def measured(_device: object, _compiler: object, cache_bytes: int, _say: object) -> Bandwidths:
        caches.append(cache_bytes)
        return Bandwidths(copy=Rate(4e10, 0.01), in_place=Rate(3e10, 0.01), streams={"32": Rate(2e10, 0.02)})

    monkeypatch.setattr(losses, "measure_bandwidths", measured)
    machine = read_machine(RECORDED / "xeon-2-cores" / "machine.toml")
    for known in ({"L2": 1 << 20, "L3": 32 << 20}, {}):
        list(on_a_processor(replace(machine, caches_bytes=known))._copies())
    assert caches == [32 << 20, losses._UNKNOWN_CACHE_BYTES]


def test_each_miss_fetches_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel updates 10,240 cells in 6 steps."""
    updates = 32 * 20 * 16 * 6
    monkeypatch.setattr(losses.perf, "counted", lambda _: {"instructions": 300.0 * updates, perf.MISSES: updates / 4})
    monkeypatch.setattr(losses, "steps_per_sample", lambda *_: 6)
    device = SimpleNamespace(time_s=lambda _: 1e-3)
    simulation = SimpleNamespace(cycle_steps=2, device=device, step=lambda _: None)
    machine = read_machine(RECORDED / "xeon-2-cores" / "machine.toml")
    found = on_a_processor(machine)._count(simulation)  # type: ignore[arg-type]
    assert {one.name: one.value for one in found.found} == pytest.approx(
        {"instructions": 300, perf.MISSES: 0.25, "bytes fetched by these misses": 16}
    )


def test_a_gpu_that_nobody_calibrated_explains_nothing() -> None:
    machine = replace(read_machine(RECORDED / "nvidia-h200" / "machine.toml"), calibration=None)
    asked = losses.ProfileRequest(box("d3q19", "bgk", (64, 64, 64)), cuda.Direct(), machine, QUICK)
    with pytest.raises(InputError, match="no calibration"):
        losses.measure_losses(open_cpu(), asked, lambda _: None)


# counters


@pytest.mark.parametrize(
    ("code", "why"), [(errno.EACCES, "does not permit"), (errno.ENOENT, "no hardware"), (errno.ENOMEM, "memory")]
)
def test_why_there_are_no_perf_events(code: int, why: str) -> None:
    assert why in perf._why(code)


def test_perf_events_count_or_say_why() -> None:
    found: dict[str, float] | str
    try:
        found = dict(perf.counted(lambda: sum(range(100_000))))
    except perf.PerfError as error:
        found = str(error)
    if isinstance(found, str):  # as in most virtual machines
        assert re.search("does not permit|no hardware counters|cannot be opened", found)
    else:
        assert found["instructions"] > 100_000


def test_launches_that_a_profiler_looks_at() -> None:
    case = box("d3q19", "bgk", (64, 64, 64))
    assert profiler_target.launches(render(case, cuda.Direct())) == 2
    assert profiler_target.launches(render(case, cuda.Direct(scheme="aa"))) == 2
    assert profiler_target.launches(render(case, cuda.Direct(scheme="esoteric-pull"))) == 2
    assert profiler_target.launches(render(case, cuda.Direct(scheme="two-step"))) == 2


def test_without_nsight_compute_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters.shutil, "which", lambda _: None)
    found = counters.counted(render(PROFILE.case, cuda.Direct()), "0")
    assert (found.source, found.found) == ("no counters: ncu (Nsight Compute) is not on PATH", ())


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "ERR_NVGPUCTRPERM"),
        (
            "==ERROR== The application returned an error code (3).",
            "ncu reported: The application returned an error code",
        ),
        ("==WARNING== No kernels were profiled.", "ncu found no launch of the kernel"),
    ],
)
def test_a_profiler_that_may_not_or_cannot(said: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        assert "PYTHONPATH" in environment
        return subprocess.CompletedProcess(list(command), 1, said, "")

    monkeypatch.setattr(counters.shutil, "which", lambda _: "/opt/ncu")
    found = counters.counted(render(PROFILE.case, cuda.Direct()), "0", run=run)
    assert found.source.startswith("no counters: ")
    assert why in found.source
    assert commands[0][0] == "/opt/ncu"
    assert "regex:^(step_0)$" in commands[0]


def test_launches_of_several_kernels_are_told_apart() -> None:
    """As one kernel after the other; of a third one, the launches broke off."""
    printed = (ROOT / "tests" / "golden" / "ncu" / "one_step.csv.txt").read_text()
    lines = printed.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith('"ID"'))
    head, launched = lines[: start + 2], lines[start + 2 : start + 4]
    output = "\n".join([*head, *launched, *launched, launched[0]])
    programs = [render(box("d3q19", "bgk", (n, 256, 256)), cuda.Direct()) for n in (256, 128, 64)]
    one, half, none = counters.read_each(output, programs)
    assert one.value("DRAM bytes read") == pytest.approx(76, rel=1e-3)
    assert half.value("DRAM bytes read") == pytest.approx(2 * 76, rel=1e-3)
    assert (none.source, none.found) == ("no counters: ncu found no launch of the kernel", ())
    request = [Path("a.json"), Path("b.json")]
    asked = counters.command("ncu", programs[:2], request, 30)
    assert asked[-4:] == ["--limit", "30", "a.json", "b.json"]
    assert "--profile-from-start" in asked


def test_counters_as_nsight_compute_printed_them() -> None:
    """Two launches of pull in single precision on an H200: 76 bytes come and go with each update."""
    best = read_best(RECORDED / "nvidia-h200" / "d3q19-box-fp32" / "best.json")
    printed = (ROOT / "tests" / "golden" / "ncu" / "one_step.csv.txt").read_text()
    found = counters.read(printed, best.case, from_flat(best.configuration))
    assert found.source == "Nsight Compute"
    updates = 2 * 256**3
    assert found.value("DRAM bytes read") == pytest.approx((1275097600 + 1275091712) / updates)
    assert found.value("L1 sectors stored") == 76 / 32
    assert found.value("occupancy") == pytest.approx(27.0, abs=0.1)
    assert found.value("stalled: long scoreboard") == pytest.approx(13.88, abs=0.01)
    assert found.value("DRAM sectors read") is None, "it was not asked for then"
    ratio = {one.name: one.value / one.ideal for one in found.found if one.ideal}
    assert ratio == pytest.approx(
        {"DRAM bytes read": 1, "DRAM bytes written": 1, "L1 sectors loaded": 1.0658, "L1 sectors stored": 1}, abs=3e-3
    )


def test_a_launch_of_several_steps_updates_each_cell_as_often() -> None:
    printed = (ROOT / "tests" / "golden" / "ncu" / "one_step.csv.txt").read_text()
    case = box("d3q19", "regularised", (256, 256, 256))
    march = cuda.TemporalBlocking(plane_fetch="none", representation="moments", steps=1)
    one, three = (counters.read(printed, case, replace(march, steps=steps)) for steps in (1, 3))
    for name in ("DRAM bytes read", "warp instructions"):
        value = one.value(name)
        assert value
        assert three.value(name) == pytest.approx(value / 3)


def test_what_should_be_written_is_populations_and_fields() -> None:
    """76 bytes are read, and 76 written with 16 of density and velocity."""
    printed = (ROOT / "tests" / "golden" / "ncu" / "one_step.csv.txt").read_text()
    config = cuda.Direct(macroscopics="every-step")
    found = {one.name: one.ideal for one in counters.read(printed, box("d3q19", "bgk", (256, 256, 256)), config).found}
    assert (found["DRAM bytes read"], found["DRAM bytes written"]) == (76, 92)


# what the model expects of each level


def test_the_model_has_not_seen_what_it_explains(kept_profile: Profile) -> None:
    """Rungs that were three times as slow are expected to be as they were; but for the first one, which is given."""
    first, *others = kept_profile.rungs
    slower = replace(kept_profile, rungs=(first, *(replace(one, seconds=3 * one.seconds) for one in others)))
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    found, then = (expected(one, machine) for one in (kept_profile, slower))
    assert [one.model_s for one in found.rungs] == [one.model_s for one in then.rungs]
    assert found.memory_bytes == then.memory_bytes


def test_a_level_is_expected_by_its_own_registers_and_without_what_it_leaves_out(kept_profile: Profile) -> None:
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    *above, streaming, kernel = kept_profile.rungs
    assert (streaming.name, kernel.name) == (STREAMING, KERNEL)
    alike = replace(kept_profile, rungs=(*above, replace(streaming, resources=kernel.resources), kernel))
    free, whole = (one.model_s for one in expected(alike, machine).rungs[-2:])
    assert free
    assert whole
    assert free < whole, "as many registers, and no collision"
    spills = Resources(registers=64, spill_bytes=4000, local_bytes=2000)
    spilling = replace(kept_profile, rungs=(*above, replace(streaming, resources=spills), kernel))
    before, after = (expected(one, machine).rungs[-2:] for one in (kept_profile, spilling))
    assert (after[0].model_s or 0) > 1.1 * (before[0].model_s or 0)
    assert after[1].model_s == before[1].model_s


def test_blocks_that_run_at_the_same_time_decide_what_is_read_again() -> None:
    """Blocks of arrays of structures are as many as the registers of the whole kernel allow."""
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    profile = kept()["nvidia-h200/aos"]
    many, few = (
        expected(replace(profile, rungs=(*profile.rungs[:-1], replace(profile.rungs[-1], resources=one))), machine)
        for one in (Resources(registers=32), Resources(registers=255))
    )
    assert many.memory_bytes > 1.02 * few.memory_bytes > profile.bytes_per_update


def test_a_profile_names_the_description_that_it_is_held_against() -> None:
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    found = expected(PROFILE, replace(machine, name="another one", date="2030-01-01T00:00:00+00:00"))
    assert (found.machine, found.machine_date) == ("another one", "2030-01-01T00:00:00+00:00")


@pytest.mark.parametrize(
    "config",
    [
        cuda.Direct(layout=AoS()),
        cuda.Direct(scheme="ghost-cell", layout=AoS()),
        cuda.Sparse(layout=AoSoA(width=32)),
        cuda.Direct(block=(8, 16, 1)),
    ],
    ids=lambda config: config.brief,
)
def test_the_copy_of_streams_is_expected_to_displace_nothing(config: CudaConfig) -> None:
    """Nor to know of lists, rings and rows of blocks: what these take is lost from that rung to the next one."""
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    assert machine.calibration
    found = expected(replace(PROFILE, config=config.flat(), key=config.key), machine).rung(STREAMS)
    rate = {
        "soa": machine.calibration.runs_bytes_per_s["4"],
        "aosoa": machine.calibration.runs_bytes_per_s["4 of 128"],
        "aos": machine.calibration.displaced_bytes_per_s["4 of 4 x 19 none by 64"],
    }[config.memory.name]
    assert found.model_s == pytest.approx(PROFILE.bytes_per_update / rate)


@pytest.fixture(params=["aa", "aos", "many-steps", "one-step-fp16s", "one-step-fp32", "one-step-fp64"])
def kept_profile(request: pytest.FixtureRequest) -> Profile:
    return kept()[f"nvidia-h200/{request.param}"]


# what is kept


NAMES = [f"{path.parent.parent.name}/{path.stem}" for path in sorted(RECORDED.rglob("profiles/*.json"))]


@cache
def kept() -> dict[str, Profile]:
    """By name. Every worker of the tests imports this file, and one needs them."""
    return dict(profiles.kept(RECORDED))


@pytest.mark.parametrize("name", NAMES)
def test_profiles_that_are_kept_are_within_the_bars(name: str) -> None:
    """By the model as it is now: rungs within 3 % of the ceiling, 5 % unexplained at most, bytes within 5 %."""
    found = deviation(kept()[name])
    assert profiles.within(found), found


def test_profiles_that_are_kept_are_whole() -> None:
    assert sorted(kept()) == NAMES
    assert {name.rpartition("/")[2] for name in NAMES} >= gpu.PROFILES.keys()
    for profile in kept().values():
        assert [one.name for one in profile.rungs] == [DATASHEET, COPY, STREAMS, STREAMING, KERNEL]
        assert profile.verification.passed
        assert not any(one.disturbed for one in profile.rungs)


def test_the_document_has_the_recorded_losses_as_the_model_is_now() -> None:
    """Rounded as it prints them."""
    text = (ROOT / "docs" / "guide" / "profile.md").read_text()
    written = {}
    for line in text.splitlines():
        if match := re.match(r"\| .* \| ([\d,]+) \| ([\d.]+) % \| ([\d.]+) % \| (-?[\d.]+) % \| ([\d.]+) \|$", line):
            speed, *figures = match.groups()
            written[speed] = tuple(map(float, figures))
    now = {}
    for profile in kept().values():
        found, mlups = deviation(profile), profile.rungs[-1].mlups
        assert found.level is not None
        assert found.unexplained is not None
        assert found.bytes_ratio is not None
        shares = (mlups / profile.rungs[0].mlups, found.level, found.unexplained)
        now[format_mlups(mlups)] = (*(round(100 * share, 1) for share in shares), round(found.bytes_ratio, 3))
    assert written == now


def test_no_profiles_are_not_within_the_bars(tmp_path: Path) -> None:
    assert profiles.main([str(tmp_path), "--out", str(tmp_path)]) == 1


@pytest.mark.parametrize("representation", ["moments", "populations"])
def test_the_model_expects_temporal_blocking_without_collision_to_issue_less(representation: str) -> None:
    case = box("d3q19", "regularised", (64, 64, 64))
    march = cuda.TemporalBlocking(representation=representation, chunk_planes=16, plane_fetch="none")
    free, full = (slots(replace(case, collision=name), march, 1) for name in (NO_COLLISION, "regularised"))
    assert 0 < free < full


def test_what_was_not_measured_is_not_within_the_bars() -> None:
    assert deviation(PROFILE) == (pytest.approx(1 / 60), pytest.approx(1 / 60), None)
    assert not profiles.within(deviation(PROFILE))
    assert profiles.within(deviation(PROFILE)._replace(bytes_ratio=1.04))
    assert not profiles.within(deviation(PROFILE)._replace(bytes_ratio=0.94))
    assert not profiles.within(deviation(PROFILE)._replace(bytes_ratio=1.0, level=0.031))
    assert not profiles.within(deviation(PROFILE)._replace(bytes_ratio=1.0, unexplained=-0.051))


# the verb


@pytest.fixture(scope="module")
def on_screens(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("screens")
    write_profile_page(PROFILE, folder / "profile.html")
    return {width: laid_out(folder / "profile.html", width) for width in (400, 1400)}


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_the_screen(on_screens: dict[int, dict[str, Any]], width: int) -> None:
    check_fits(on_screens[width], width)


def test_the_page_needs_a_name_of_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["profile", "scheme=aa", "--device", "cpu", "--output", "profile.txt"])
    assert ended.value.code == 2
    assert "--output profile.txt is not a page; name a file that ends in .html" in capsys.readouterr().err


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_profile(PROFILE)
    printed = capsys.readouterr().out
    assert "unexplained" in printed
    assert "-4.00" not in printed
    assert "+4.00" in printed
    assert "nJ per update" in printed
    assert " ".join(printed.split()).endswith(conclusion(PROFILE))


def beside_others(share: float) -> Profile:
    """On a processor, with this share of it."""
    assert PROFILE.sustained
    seen = Conditions(cpu_share=share)
    busy = share < TimingProtocol().min_cpu_share
    return replace(
        PROFILE, sustained=replace(PROFILE.sustained, throttled={}, conditions=seen, disturbed=busy), conditions=seen
    )


def test_a_profile_beside_other_programs_says_first_that_it_means_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_profile(beside_others(0.529))
    first = " ".join(capsys.readouterr().out.split()).removeprefix("disturbed: ")
    assert first.startswith("other programs used the processor (CPU share 53 %): the losses and the unexplained part")
    assert "profile again when the machine is idle" in first
    written = profile_page(beside_others(0.529))
    assert written.index('id="disturbance">Disturbed: other programs used') < written.index('id="losses"')
    print_profile(beside_others(0.97))
    assert "disturbed" not in capsys.readouterr().out
    assert 'id="disturbance"' not in profile_page(beside_others(0.97))


@pytest.mark.parametrize("part", ["rung", "run"])
def test_a_profile_is_disturbed_where_a_part_of_it_was(part: str) -> None:
    assert PROFILE.sustained
    *above, last = PROFILE.rungs
    marked = {
        "rung": replace(PROFILE, rungs=(*above, replace(last, disturbed=True))),
        "run": replace(PROFILE, sustained=replace(PROFILE.sustained, disturbed=True)),
    }
    assert profile_disturbance(PROFILE) == ""
    assert "the unexplained part are not reliable" in profile_disturbance(marked[part])


def test_nothing_is_said_of_clocks_where_nothing_holds_them_down() -> None:
    assert PROFILE.sustained
    assert "throttle reasons" not in dict(state_rows(beside_others(1.0)))
    free = replace(PROFILE, sustained=replace(PROFILE.sustained, throttled={}))
    assert dict(state_rows(free))["throttle reasons"] == "none"


def test_levels_have_a_speed() -> None:
    assert Rung(name="x", seconds=1e-10).mlups == pytest.approx(10_000)
