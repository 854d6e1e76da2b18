"""Rankings: estimates, then what was compiled; kept on disk; machines by name."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune import api
from lbmtune.api.machines.devices import limits_of
from lbmtune.api.machines.shipped import machine_of, named_machine, shipped_machines
from lbmtune.api.predicted import ranking as cli_ranking
from lbmtune.api.predicted.estimates import predictor
from lbmtune.api.predicted.grouping import differences, families, folded, others, with_scheme
from lbmtune.api.predicted.ranking import Entry, Ranking, Row, rank
from lbmtune.api.predicted.variation import vary
from lbmtune.api.studies.run import compiled_first_of
from lbmtune.backend.cuda import compiled_cache as backend_compiled
from lbmtune.backend.cuda import nvrtc
from lbmtune.backend.cuda.compiled_cache import Compiled, compiled, compiled_all, compiled_before
from lbmtune.backend.protocol import CompileError
from lbmtune.catalogue.config import cuda, from_flat, parse_config
from lbmtune.catalogue.families.rules import cuda_limits
from lbmtune.catalogue.layouts import AoSoA
from lbmtune.catalogue.problem.flows import box
from lbmtune.cli import notes_on_stderr
from lbmtune.cli.format import predictions as rankingtable
from lbmtune.cli.format.predictions import single_value, ties
from lbmtune.errors import DeviceUnavailableError, InputError
from lbmtune.model.gpu.terms.array_of_structures import longer_s
from lbmtune.model.machine.curves import retained_in_l2
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.process_pool import pool
from lbmtune.records import Resources
from lbmtune.records.remarks import in_cache, last_cache
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import CACHE_VARIABLE, read_study
from lbmtune.search import estimates as search_estimates
from lbmtune.search.estimates import estimates
from lbmtune.search.spaces.space import legal_set
from lbmtune.units import format_bytes
from tests.support.kernels.configs import configured
from tests.support.paths import RECORDED
from tests.support.seconds import close

CASE = box("d3q19", "bgk", (128, 128, 128))
AXES = {"scheme": ("pull", "aa"), "block": ("32x1x1", "64x1x1"), "cells_per_thread": (1, 2), "layout": ("soa",)}
SPEC = StudySpec(name="few", case=CASE, axes={"cuda": AXES}, objective="mlups", seed=1)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with notes_on_stderr():
        yield tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stands in for the compiler: kernels of AA spill, those with block 64x1x1 of pull are refused."""
    heard: list[list[str]] = []

    def stand_in(case, configs, architecture, processes):
        heard.append([config.brief for config in configs])
        spilled = Resources(registers=255, spill_bytes=400, local_bytes=200)
        refused = Compiled(reason="too much\nin line 3")
        return [
            Compiled(spilled)
            if config.scheme == "aa"
            else refused
            if config.block[0] == 64
            else Compiled(Resources(registers=40))
            for config in configs
        ]

    monkeypatch.setattr(backend_compiled, "compiled_all", stand_in)
    return heard


def ranked(machine: Machine, compile_first: int = 100, top: int = 5) -> tuple[Ranking, list[str]]:
    said: list[str] = []
    return rank(SPEC, machine, top, compile_first, said.append), said


def test_what_was_compiled_decides(asked):
    machine = named_machine("h200")
    estimated, _ = ranked(machine, 0)
    assert asked == []
    assert not any(entry.compiled for entry in estimated.entries)
    found, said = ranked(machine)
    assert len(asked[0]) == estimated.legal == found.legal == 8
    assert said == [
        "estimating all legal configurations of few on NVIDIA H200",
        "8 configurations estimated; compiling the first 8 for sm_90",
        "2 of them do not compile and are left out: too much",
    ]
    assert all(entry.compiled for entry in found.entries)
    assert [entry.config.scheme for entry in found.entries] == ["pull", "pull", "aa", "aa", "aa"]
    assert {entry.config.block[0] for entry in found.entries[:2]} == {32}
    speeds = [entry.prediction.mlups for entry in found.entries]
    assert speeds == sorted(speeds, reverse=True)
    assert any(term.name == "local memory" for term in found.entries[-1].prediction.terms)
    assert found.facts()["first"][0]["compiled"] is True


def test_an_axis_is_varied_around_the_first_of_the_ranking(asked, capsys):
    """All values as they are compiled, and the first one as the ranking has it, which is kept and used."""
    machine, spec = named_machine("h200"), replace(SPEC, axes={"cuda": {**AXES, "block": ("64x1x1", "32x1x1")}})
    estimate, first = (rank(spec, machine, 1, count, lambda _: None).entries[0] for count in (0, 100))
    assert (estimate.config.block[0], first.config.block[0]) == (64, 32)
    found = vary(spec, machine, "scheme", compiled=100)
    assert (found.around, found.predictions[first.config.scheme]) == (first.config, first.prediction)
    assert any(term.name == "local memory" for term in found.predictions["aa"].terms)
    assert (found.compiled, len(asked)) == (True, 2)
    said = "the first of the ranking of few; the kernels of all values are compiled for sm_90"
    assert capsys.readouterr().err == f"around {first.config.key}, {said}\n"
    refused = vary(spec, machine, "block", compiled=100)
    assert refused.illegal == {"64x1x1": "it does not compile: too much"}
    assert list(refused.predictions) == ["32x1x1"]


def test_an_axis_is_varied_by_estimates_where_nothing_is_compiled(asked, capsys):
    for machine, count in ((named_machine("h200"), 0), (named_machine("k20"), 100)):
        first = ranked(machine, 0)[0].entries[0]
        found = vary(SPEC, machine, "block", compiled=count)
        assert (found.around, found.compiled, asked) == (first.config, False, [])
        assert found.predictions["x".join(map(str, first.config.block))] == first.prediction
        said = f"around {first.config.key}, the first of the ranking of few by estimates; no kernel was compiled\n"
        assert capsys.readouterr().err.endswith(said)


def test_one_value_alone_is_compared_with_nothing_and_that_is_said():
    machine, base = named_machine("h200"), cuda.Direct()
    one = vary(SPEC, machine, "storage", base)
    assert single_value(one, has_record=False) == (
        "only the values of the study are compared, and it gives storage none but fp32; add others with "
        "--set storage=fp32,fp64,fp16s."
    )
    assert "beside a best.json name a study that has others with --study, or " in single_value(one, has_record=True)
    listed = vary(SPEC, machine, "sites_per_thread", "family=sparse,block=64x1x1")
    assert single_value(listed, has_record=False).endswith("--set sites_per_thread=A,B,C.")
    with pytest.raises(
        InputError, match=r"march is not a knob of family direct \(use family column or sparse or temporal"
    ):
        vary(SPEC, machine, "march", base)
    assert single_value(vary(SPEC, machine, "scheme", base), has_record=False) == ""
    two = replace(SPEC, axes={"cuda": {**AXES, "block": ("256x1x1", "2048x1x1")}})
    assert single_value(vary(two, machine, "block", base), has_record=False) == "", (
        "one of them is illegal, which is said"
    )


def test_how_far_compiling_is_is_told(asked, monkeypatch):
    monkeypatch.setattr(cli_ranking, "_QUIET_S", 0.0)
    _, said = ranked(named_machine("h200"), 3)
    assert said[2:4] == ["1 of 3 compiled", "2 of 3 compiled"]
    assert not any("3 of 3" in line for line in said)


def test_only_the_first_are_compiled(asked):
    estimated, _ = ranked(named_machine("h200"), 0, top=8)
    ranked(named_machine("h200"), 3)
    assert asked == [[entry.config.brief for entry in estimated.entries[:3]]]


def test_a_ranking_is_kept_by_all_that_it_follows_from(asked, monkeypatch):
    machine = named_machine("h200")
    first, _ = ranked(machine)
    again, said = ranked(machine)
    assert again == first
    assert (len(asked), said) == (1, [])
    ranked(replace(machine, copy_bytes_per_s=1e12))
    ranked(machine, 7)
    assert len(asked) == 3
    monkeypatch.setattr(nvrtc, "version", lambda: (12, 0))
    ranked(machine)
    assert len(asked) == 4
    monkeypatch.setattr(cli_ranking, "_KEPT", 1)
    ranked(replace(machine, name="other"), top=1)
    assert len(ranked(replace(machine, name="other"), top=4)[0].entries) == 4


def test_another_case_and_other_axes_are_ranked_anew(asked):
    machine = named_machine("h200")
    larger = replace(SPEC, case=box("d3q19", "bgk", (256, 256, 256)))
    fewer = replace(SPEC, axes={"cuda": {**AXES, "scheme": ("pull",)}})
    found = [rank(spec, machine, 5, 100, lambda _: None) for spec in (SPEC, larger, fewer)]
    assert len(asked) == 3
    assert [one.legal for one in found] == [8, 8, 4]
    assert found[0].entries[0].prediction != found[1].entries[0].prediction


def test_equal_ones_stay_in_the_order_of_the_space():
    assert cli_ranking._fastest({0: 1.0, 1: 2.0, 2: 3.0, 3: 2.0, 4: 3.0}) == [2, 4, 1, 3, 0]


def test_estimates_where_nothing_compiles(asked, monkeypatch):
    found, said = ranked(named_machine("k20"))
    line, beginning = said
    assert beginning == "estimating all legal configurations of few on NVIDIA Tesla K20"
    version = ".".join(map(str, nvrtc.version()))
    oldest = nvrtc.architectures()[0]
    assert line == f"NVRTC {version} compiles for {oldest} and newer, not for sm_35: the ranking is of estimates alone."
    assert found.legal == 8
    assert not any(entry.compiled for entry in found.entries)

    def missing():
        raise DeviceUnavailableError("NVRTC was not found")

    monkeypatch.setattr(nvrtc, "version", missing)
    _, said = ranked(named_machine("h200"))
    assert said[0] == "NVRTC was not found; the ranking is of estimates alone."
    assert asked == []


def test_compiled_once(monkeypatch, cache):
    config = cuda.Direct(block=(64, 1, 1), scheme="aa")
    (found,) = compiled_all(CASE, [config], "sm_90", 1)
    assert found.resources is not None
    assert 20 < found.resources.registers < 128
    times = []

    def refused(program, architecture):
        times.append(architecture)
        raise CompileError("no\nway")

    monkeypatch.setattr(nvrtc, "compile_cuda", refused)
    assert compiled(CASE, "sm_90", config) == found
    assert times == []
    assert compiled(CASE, "sm_80", config) == Compiled(reason="no\nway")
    assert compiled(CASE, "sm_80", config).resources is None
    assert times == ["sm_80"]
    for path in (cache / "nvrtc").iterdir():
        path.write_text("damaged")
    compiled(CASE, "sm_80", config)
    assert times == ["sm_80"] * 2


def test_what_was_compiled_before_is_found_by_text_architecture_and_compiler(monkeypatch):
    config = cuda.Direct(block=(64, 1, 1), scheme="aa")
    assert compiled_before(CASE, "sm_90", config) is None, "nothing is compiled by asking"
    found = compiled(CASE, "sm_90", config)
    assert compiled_before(CASE, "sm_90", config) == found.resources
    assert compiled_before(CASE, "sm_80", config) is None
    assert compiled_before(CASE, "sm_90", replace(config, block=(128, 1, 1))) is None
    assert compiled_before(box("d3q27", "bgk", (128, 128, 128)), "sm_90", config) is None
    with monkeypatch.context() as another:
        another.setattr(backend_compiled, "_readers", lambda: "of another version, which may look for less")
        assert compiled_before(CASE, "sm_90", config) is None
    monkeypatch.setattr(nvrtc, "version", lambda: (12, 0))
    assert compiled_before(CASE, "sm_90", config) is None

    def missing():
        raise DeviceUnavailableError("NVRTC was not found")

    monkeypatch.setattr(nvrtc, "version", missing)
    assert compiled_before(CASE, "sm_90", config) is None


def test_a_kernel_that_was_refused_has_nothing_to_tell(monkeypatch):
    def refused(program, architecture):
        raise CompileError("no")

    monkeypatch.setattr(nvrtc, "compile_cuda", refused)
    assert compiled(CASE, "sm_90", cuda.Direct()).reason
    assert compiled_before(CASE, "sm_90", cuda.Direct()) is None


# machines by name

UNITS = {
    **{"sm_13": (8, 1), "sm_35": (192, 64), "sm_52": (128, 4), "sm_60": (64, 32), "sm_70": (64, 32)},
    **{"sm_80": (64, 32), "sm_90": (128, 64)},
}
"""A multiprocessor has so many units for single and for double precision. Source: CUDA C++ Programming Guide."""
DATASHEETS = (
    *("a100", "c1060", "gtx-285", "gtx-titan", "h100-datasheet", "k20", "k20x", "k40c", "p100", "titan-x", "v100"),
)
PER_PIN = {"c1060": 1.6e9, "gtx-285": 2.48e9, "gtx-titan": 6.0e9, "k40c": 6.0e9, "p100": 1.43e9, "titan-x": 7.0e9}
"""Bits per second of a pin of the memory, where they are not between 1.7e9 and 5.3e9. Source: the data sheets."""


def test_shipped_machines():
    assert list(shipped_machines()) == [
        *("a100", "c1060", "gtx-285", "gtx-titan", "h100", "h100-datasheet", "h200", "k20", "k20x", "k40c", "p100"),
        *("titan-x", "v100", "xeon-e5-2690v3", "xeon-phi-7210"),
    ]
    for name in ("H100", "H200"):
        assert named_machine(name).measured
        assert named_machine(name).calibrated


@pytest.mark.parametrize("name", DATASHEETS)
def test_a_data_sheet_agrees_with_itself(name):
    """Operations are units times clock times two; memory clocks are those of its kind of memory."""
    machine = read_machine(shipped_machines()[name])
    sheet, environment = machine.datasheet, machine.environment
    assert sheet is not None
    assert not machine.measured
    assert "measured" in shipped_machines()[name].read_text().splitlines()[0]
    assert sheet.source
    for flops, units in zip(
        (sheet.fp32_flops_per_s, sheet.fp64_flops_per_s), UNITS[environment.architecture], strict=True
    ):
        assert flops == pytest.approx(2 * units * machine.multiprocessors * sheet.clock_hz, rel=0.01)
    assert set(machine.stream_bytes_per_s.values()) == {sheet.memory_bytes_per_s}
    assert machine.copy_bytes_per_s == machine.in_place_bytes_per_s == sheet.memory_bytes_per_s
    assert sheet.clock_hz == environment.max_sm_clock_hz
    bits_per_pin = sheet.memory_bytes_per_s * 8 / sheet.bus_bits
    assert 1.7e9 < bits_per_pin < 5.3e9 or bits_per_pin == pytest.approx(PER_PIN[name], rel=0.01)
    limits = cuda_limits(environment.architecture, machine.multiprocessors, environment.memory_bytes)
    assert limits.shared_bytes_per_multiprocessor == sheet.shared_bytes
    assert limits.cooperative == (int(environment.architecture.removeprefix("sm_")) >= 60)
    assert limits.dependent == (name == "h100-datasheet")


@pytest.mark.parametrize(("name", "threads"), [("xeon-e5-2690v3", 48), ("xeon-phi-7210", 256)])
def test_processors_of_data_sheets_are_predicted_by_bandwidth_and_clock(name: str, threads: int) -> None:
    machine = named_machine(name)
    assert not machine.measured
    assert not machine.calibrated
    assert limits_of(machine).cores == threads
    expected = api.predict(CASE, "backend=cpu,scheme=aa,storage=fp64", machine)
    assert 0.6 < expected.mlups / (machine.in_place_bytes_per_s / expected.bytes_per_update / 1e6) < 1


def test_a_data_sheet_has_the_curves_of_what_was_measured():
    """A100: 2039 of 4800 GB/s in memory, 108 x 1.41 of 132 x 1.98 GHz on chip."""
    lender, found = named_machine("h200"), named_machine("a100")
    assert found.calibrated_as == "NVIDIA H200"
    assert found.copy_bytes_per_s == pytest.approx(lender.copy_bytes_per_s * 2039 / 4800)
    ours, theirs = found.calibration, lender.calibration
    assert ours is not None
    assert theirs is not None
    for name, factor in (("runs_bytes_per_s", 2039 / 4800), ("instructions_per_s", 108 * 1.41 / (132 * 1.98))):
        rates = getattr(theirs, name)
        assert getattr(ours, name) == pytest.approx({key: rate * factor for key, rate in rates.items()})
    assert ours.local_bytes_per_s["memory"] == pytest.approx(theirs.local_bytes_per_s["memory"] * 2039 / 4800)
    assert ours.l1_bytes == 192 << 10
    name, seconds = max(theirs.small_s.items(), key=lambda item: int(item[0].split()[1]))
    moved = int(name.split()[1])
    beyond = seconds - moved / theirs.runs_bytes_per_s["4"]
    assert ours.small_s[name] - moved / ours.runs_bytes_per_s["4"] == pytest.approx(beyond)
    fast, slow = (
        predict(CASE, configured(cuda.Direct, cells_per_thread=cells, layout=layout), found)
        for cells, layout in ((4, "soa"), (1, "aos"))
    )
    assert fast.mlups > 2 * slow.mlups
    assert fast.mlups < 2.039e12 / 152 / 1e6
    assert fast.ceiling_source == "data sheet, not measured; curves of NVIDIA H200 scaled to it"


def test_a_card_known_by_its_data_sheet_is_predicted_as_the_document_says():
    """Every second of the recorded kernels of an H100."""
    machine = named_machine("h100-datasheet")
    off: dict[bool, list[float]] = {False: [], True: []}
    for folder in sorted(header.parent for header in (RECORDED / "nvidia-h100").glob("*/study.json")):
        study = read_study(folder)
        for trial in [one for one in study.trials if one.mlups][::2]:
            config = from_flat(trial.config)
            expected = predict(study.header.spec.case, config, machine, trial.resources).mlups
            off[config.fused_steps > 1].append(abs(expected / trial.mlups - 1))
    for many, half, most in ((False, 0.05, 0.13), (True, 0.05, 0.17)):
        assert len(off[many]) > 200
        assert statistics.median(off[many]) == pytest.approx(half, abs=0.015)
        assert statistics.quantiles(off[many], n=10)[-1] == pytest.approx(most, abs=0.04)


def test_sizes_of_caches_and_threads_in_flight_are_scaled_as_well():
    """V100: 6 of 60 MiB of L2 cache, 80 of 132 multiprocessors, 900 of 4800 GB/s."""
    lender, found = named_machine("h200"), named_machine("v100")
    assert retained_in_l2(lender, 8 << 20) > 0.9
    assert retained_in_l2(found, 8 << 20) == 0
    assert retained_in_l2(found, 800 << 10) == retained_in_l2(lender, 8000 << 10)
    assert lender.calibration
    assert found.calibration
    threads = 900 / 4800 * 132 / 80
    for of_lender, own in zip(
        lender.calibration.threads_bytes_per_s, found.calibration.threads_bytes_per_s, strict=True
    ):
        assert int(own.split()[2]) == round(int(of_lender.split()[2]) * threads)
    for of_lender, own in zip(lender.calibration.planes_bytes_per_s, found.calibration.planes_bytes_per_s, strict=True):
        assert int(own.split()[0]) == round(int(of_lender.split()[0]) / 10), "as far apart in so much smaller a cache"
    local_bytes = 64 << 10  # a tenth of the L2 cache is shared by fewer multiprocessors
    ours, theirs = (longer_s(one, 8, 27, "in place", kept) for one, kept in ((found, local_bytes), (lender, 0)))
    assert ours > theirs == 0
    at_once = local_bytes * 10 * 80 / 132
    assert ours == close(longer_s(lender, 8, 27, "in place", at_once) * 4800 / 900, rel=0.01)


@pytest.mark.parametrize("name", DATASHEETS)
def test_words_of_structures_take_no_longer_on_a_card_of_a_data_sheet(name: str) -> None:
    """Words cost nothing more where they cost the lender no more than anywhere, and where there are none at all."""
    lender, found = named_machine("h200"), named_machine(name)
    assert lender.calibration
    assert found.calibration
    lenders, ours = (one.structures_bytes_per_s for one in (lender.calibration, found.calibration))
    assert len(ours) == len(lenders)
    assert min(ours.values()) > 0
    memory = found.copy_bytes_per_s / lender.copy_bytes_per_s
    for side in ("stay", "loads", "stores", "in place"):
        without = f"8 x 27 by 512 of 0 {side}"
        assert ours[without] == pytest.approx(lenders[without] * memory)
    for kept_bytes in (1 << 10, 16 << 10, 256 << 10):
        assert longer_s(lender, 4, 19, "loads", kept_bytes) == longer_s(found, 4, 19, "loads", kept_bytes) == 0


@pytest.mark.parametrize("name", ["a100", "k20"])
def test_a_file_of_a_data_sheet_is_what_the_shipped_name_of_it_is(tmp_path: Path, name: str) -> None:
    """Also a copy of it, which somebody edits for a card of their own."""
    shipped = shipped_machines()[name]
    copy = tmp_path / "mine.toml"
    copy.write_text(shipped.read_text())
    assert named_machine(str(shipped)) == named_machine(str(copy)) == named_machine(name)
    assert named_machine(str(copy)).calibrated_as == "NVIDIA H200"


def test_a_file_that_was_measured_or_has_no_data_sheet_borrows_nothing(tmp_path: Path) -> None:
    shipped = shipped_machines()
    copy = tmp_path / "mine.toml"
    copy.write_text(shipped["a100"].read_text().replace("measured = false", "measured = true"))
    assert named_machine(str(copy)) == read_machine(copy)
    copy.write_text(shipped["a100"].read_text().partition("[datasheet]")[0])
    assert named_machine(str(copy)) == read_machine(copy)
    copy.write_text(shipped["h200"].read_text().replace("measured = true", "measured = false"))
    assert named_machine(str(copy)).calibrated_as == ""


def test_a_machine_that_nobody_knows():
    with pytest.raises(InputError, match=r"no machine 'h20'; known are a100, .*; did you mean 'h200'\?"):
        named_machine("h20")
    with pytest.raises(InputError, match=r"cannot read there\.toml"):
        named_machine("there.toml")


def test_the_machine_of_a_device():
    """By the name that a device has, and not as a study calls it."""
    assert machine_of("NVIDIA H200") == named_machine("h200")
    assert machine_of("NVIDIA A100 SXM4 80 GB") == named_machine("a100")
    assert machine_of("h200") is None


def test_many_are_estimated_by_several_processes_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = named_machine("h200")
    configs = legal_set(CASE, "cuda", AXES, limits_of(machine)).configs
    expected = predictor(CASE, machine)
    started: list[int] = []

    def counted(processes: int) -> ProcessPoolExecutor:
        started.append(processes)
        return pool(processes)

    monkeypatch.setattr(search_estimates, "pool", counted)
    monkeypatch.setattr(search_estimates, "usable_cores", lambda: 2)
    one_by_one = [(one.mlups, one.footprint_bytes) for one in map(expected, configs)]
    assert estimates(expected, configs) == one_by_one
    assert not started
    monkeypatch.setattr(search_estimates, "_ALONE", 3)
    monkeypatch.setattr(search_estimates, "_BATCH", 3)
    assert len(configs) > 3
    assert estimates(expected, configs) == one_by_one
    assert started == [2]


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        ((5, 4, 3), ""),
        ((5, 5, 4), "rows 1 to 2;"),
        ((6, 5, 5, 5, 4, 3, 3), "rows 2 to 4, 6 to 7;"),
        ((500.2, 500.1), "rows 1 to 2;"),
        ((501, 500), ""),
        ((5,), ""),
        ((), ""),
    ],
)
def test_what_the_model_does_not_tell_apart_is_said(speeds, said):
    config = cuda.Direct()
    one = predict(CASE, config, named_machine("h200"))
    rows = tuple(
        Row(place, Entry(config, replace(one, mlups=mlups), compiled=False), 1, 0, {})
        for place, mlups in enumerate(speeds, 1)
    )
    found = ties(Ranking("few", CASE, "H200", len(speeds), (), rows, ()))
    assert said in found if said else found == ""


# rows and families

SIX = [
    cuda.Direct(block=(32, 1, 1)),
    cuda.Direct(block=(32, 1, 1), scheme="aa"),
    cuda.Direct(block=(64, 1, 1), wrap="ghost"),
    cuda.Direct(layout=AoSoA(), block=(32, 1, 1)),
    cuda.Direct(block=(64, 1, 1)),
    cuda.Direct(block=(64, 1, 1), scheme="aa"),
]


def test_what_prints_alike_and_is_stored_alike_is_one_group_where_its_first_one_stands():
    speeds = {0: 26844.4, 1: 26843.9, 2: 26843.8, 3: 26843.7, 4: 26843.6, 5: 26000.0}
    assert folded([0, 1, 2, 3, 4, 5], SIX, speeds) == [[0, 2, 4], [1], [3], [5]]
    assert folded([4, 2, 1, 0], SIX, speeds) == [[4, 2, 0], [1]], "the order is that of the ranking"
    assert folded([0, 2, 4], SIX, speeds | {2: 26845.0}) == [[0, 4], [2]]
    assert folded([0, 1], SIX, dict.fromkeys(range(2), 1.0)) == [[0], [1]], "another scheme is another kernel"


@pytest.mark.parametrize(
    "other", [{"storage": "fp16"}, {"storage": "fp64", "compute": "fp64"}, {"layout": "aos"}, {"flags": "memory"}]
)
def test_what_a_solver_would_store_otherwise_is_not_folded(other):
    configs = [cuda.Direct(), configured(cuda.Direct, **other)]
    assert folded([0, 1], configs, {0: 1.0, 1: 1.0}) == [[0], [1]]


def test_axes_in_which_configurations_differ_are_told_with_their_values():
    group = [SIX[n] for n in (0, 2, 4)]
    found = differences(group)
    assert found == {"block": ["32x1x1", "64x1x1"], "wrap": ["arithmetic", "ghost"]}
    assert others(len(group), found) == " (and 2 more that differ in block, wrap)"
    assert others(2, ["block"]) == " (and 1 more that differs in block)"
    assert others(1, {}) == ""


def test_families_are_by_scheme_and_by_what_is_kept_and_not_by_the_number_of_several_steps():
    tiles = {"block": (64, 4, 1), "chunk_planes": 1, "plane_fetch": "none"}
    configs = [
        *SIX[:2],
        configured(cuda.TemporalBlocking, steps=2, **tiles),
        configured(cuda.TemporalBlocking, steps=3, **tiles),
        configured(cuda.TemporalBlocking, representation="moments", steps=1, **tiles),
        SIX[4],
    ]
    assert families([1, 0, 3, 2, 4, 5], configs) == [[1], [0, 5], [3, 2], [4]]


def test_a_configuration_names_its_scheme_and_is_read_back():
    for config in SIX:
        said = with_scheme(config)
        assert said.startswith(f"scheme={config.scheme},")
        assert parse_config(said) == config


def test_a_ranking_has_rows_and_families_beside_its_places(monkeypatch):
    """A ranking of eight configurations names the six that should be as fast, and finds the key of any row again."""
    speeds = {n: 100.0 + (n == 3) - 10 * (n >= 6) for n in range(8)}
    described = named_machine("h200")
    configs = legal_set(CASE, "cuda", AXES, limits_of(described)).configs
    kept_one = cli_ranking._first(configs, speeds, {0: Resources(registers=40)}, 2)
    assert [one.key for one in kept_one.ones] == [configs[3].key, configs[0].key], "places know nothing of rows"
    assert (kept_one.legal, kept_one.ranked, len(kept_one.rows)) == (8, 8, 2)
    first, second = kept_one.rows
    assert (first.place, first.size, first.compiled, first.differ) == (1, 1, 0, {})
    assert (second.place, second.size, second.compiled) == (2, 3, 1)
    assert second.differ == {"block": ["32x1x1", "64x1x1"], "cells_per_thread": [1, 2]}
    assert [(row.place, row.size, row.first.key) for row in kept_one.families] == [
        (1, 4, configs[3].key),
        (5, 4, configs[4].key),
    ]
    assert kept_one.named(configs[4].key).config == configs[4].flat(), "it leads a family and has none of the places"
    assert kept_one.named(configs[7].key) is None


def test_a_ranking_is_printed_by_rows_and_told_by_places(asked, capsys):
    found, _ = ranked(named_machine("h200"), 1, top=3)
    rankingtable.print_ranking(found, "D3Q19 BGK box")
    table, families_table = capsys.readouterr().out.split("\n\n")
    assert len(table.splitlines()) == 3 + len(found.rows)
    for row, line in zip(found.rows, table.splitlines()[3:], strict=True):
        assert f"{row.first.config.key}  scheme={row.first.config.scheme},backend=cuda" in line
        assert format_bytes(row.first.prediction.footprint_bytes) in line
    half, whole = sorted((row.first.prediction for row in found.families), key=lambda one: one.footprint_bytes)
    assert whole.footprint_bytes > 1.9 * half.footprint_bytes
    lines = families_table.splitlines()[2:]
    assert ["one lattice" in line for line in lines] == [row.first.config.scheme == "aa" for row in found.families]
    assert "100.0%" in lines[0]
    facts = found.facts()
    assert [one["key"] for one in facts["first"]] == [entry.config.key for entry in found.entries]
    assert [one["place"] for one in facts["rows"]] == [row.place for row in found.rows]
    assert sum(one["configurations"] for one in facts["families"]) == found.legal
    assert {one["family"] for one in facts["families"]} == {
        "aa, populations in one lattice",
        "pull, populations in two lattices",
    }


def test_how_many_of_a_row_were_compiled_is_said():
    one = Entry(cuda.Direct(), predict(CASE, cuda.Direct(), named_machine("h200")), compiled=True)
    said = [rankingtable._how_many_compiled(Row(1, one, 3, count, {})) for count in (0, 2, 3)]
    assert said == ["no", "2 of 3", "yes"]


def test_a_ranking_of_all_that_compiles_is_not_made_again(asked):
    first, _ = ranked(named_machine("h200"), top=8)
    assert (len(first.entries), first.legal) == (6, 8)
    assert ranked(named_machine("h200"), top=8)[0] == first
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("footprint", "domain", "beyond"),
    [(24 << 20, (64, 64, 64), "128x128x128"), (2 << 20, (64, 64, 1), "512x512x1"), (33 << 20, (64, 64, 64), "")],
)
def test_a_footprint_that_the_last_cache_holds_is_said_with_a_domain_that_it_does_not_hold(footprint, domain, beyond):
    said = in_cache(footprint, last_cache("cpu", {"L2": 1 << 20, "L3": 32 << 20}), domain)
    assert f"case.domain={beyond}." in said if beyond else said == ""
    assert in_cache(footprint, last_cache("cuda", {"L2": 50 << 20}), domain) == ""


def test_a_study_compiles_the_first_where_the_model_makes_something_of_it(monkeypatch):
    described = named_machine("h200")
    assert compiled_first_of(described) >= 8
    assert compiled_first_of(replace(described, calibration=None)) == 0
    assert compiled_first_of(named_machine("k20")) == 0, "NVRTC does not compile for it"

    def missing():
        raise DeviceUnavailableError("NVRTC was not found")

    monkeypatch.setattr(nvrtc, "version", missing)
    assert compiled_first_of(described) == 0
