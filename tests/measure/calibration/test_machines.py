"""Machine descriptions: what is measured, where it is kept, when it is measured again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lbmtune.api.machines.measured_machines import disturbance
from lbmtune.backend.cpu import device as cpu_device
from lbmtune.backend.cpu import open_cpu
from lbmtune.backend.cpu.compilation.modules import import_text
from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.backend.protocol import Binary, Compiler
from lbmtune.catalogue.families.rules import Limits
from lbmtune.cli.format.description import machine_rows
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import COPY, SCALE, STREAMS, CpuAccess, cpu_streams, cuda_streams, streams_digest
from lbmtune.errors import DeviceUnavailableError, InputError
from lbmtune.measure.calibration import machines as devices
from lbmtune.measure.calibration import microbench, repeats
from lbmtune.measure.calibration.gpu import texts
from lbmtune.model.machine import benchmark_names as measured
from lbmtune.model.machine.description import CpuCalibration, Extent, Machine
from lbmtune.model.machine.memory_walks import calibrated
from lbmtune.model.machine.toml import read_machine, write_machine
from lbmtune.records import Conditions, Resources
from lbmtune.records.output import OutputRates
from lbmtune.records.remarks import description_disturbance
from lbmtune.records.store import CACHE_VARIABLE
from lbmtune.search.lock import device_lock
from tests.support.devices.fake_device import FakeDevice
from tests.support.devices.small_device import no_device, small_cpu
from tests.support.paths import RECORDED
from tests.support.studies import fake_study

RATE = microbench.Rate(1e10, 0.01)
SHIPPED = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
RATES = OutputRates(copy_bytes_per_s=5e10, file_bytes_per_s=5e7, residual_bytes_per_s=4e9, folder="/scratch")
BANDWIDTHS = microbench.Bandwidths(copy=RATE, in_place=RATE, streams={"4": RATE}, thread=RATE)


def test_a_cpu_is_described_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.CONFIG_VARIABLE, str(tmp_path))
    heard: list[str] = []
    machine = devices.describe("cpu", progress=heard.append, opener=small_cpu)
    assert any("19 streams" in text for text in heard)
    assert {"4", "8", "16"} <= set(machine.stream_bytes_per_s)
    assert min(machine.stream_bytes_per_s.values()) > 1e6  # arrays this small take as long as threads take to meet
    assert machine.thread_bytes_per_s
    assert machine.output
    assert machine.output.pass_bytes_per_s
    assert 0 < (machine.conditions.cpu_share or 0) <= 1
    assert machine.in_place_bytes_per_s >= machine.thread_bytes_per_s
    assert set(machine.spread) == {"copy", "in_place", *machine.stream_bytes_per_s}
    (path,) = tmp_path.glob("machines/*.toml")
    assert read_machine(path) == machine

    heard.clear()
    assert devices.describe("cpu", progress=heard.append, opener=small_cpu) == machine
    assert not heard

    assert devices._known(path, machine.environment, None) == machine
    older = replace(machine, environment=replace(machine.environment, packages={"numba": "0.1"}))
    write_machine(path, older)
    assert devices._known(path, machine.environment, None) is None
    write_machine(path, replace(machine, streams_digest="of another text"))
    assert devices._known(path, machine.environment, None) is None
    path.write_text("name = ")
    assert devices._known(path, machine.environment, None) is None

    write_machine(path, machine)
    monkeypatch.setattr(devices, "write_machine", lambda _, found: write_machine(path / "below-a-file.toml", found))
    assert devices.describe("cpu", refresh=True, progress=heard.append, opener=small_cpu).name == machine.name
    assert any("19 streams" in text for text in heard)
    assert heard[-1].startswith(f"cannot write {path}/below-a-file.toml: ")
    assert heard[-1].endswith(": the description of this device is not kept; set LBMTUNE_CONFIG to another folder.")


@pytest.mark.parametrize(("age_s", "max_age_s", "known"), [(90, 60, False), (30, 60, True), (1e7, None, True)])
def test_an_old_description_does_not_count_where_age_matters(
    tmp_path: Path, age_s: float, max_age_s: float | None, known: bool
) -> None:
    machine = replace(fake_study.machine(), streams_digest=streams_digest("cpu"))
    dated = replace(machine, date=(datetime.now(UTC) - timedelta(seconds=age_s)).isoformat())
    write_machine(tmp_path / "it.toml", dated)
    assert devices._known(tmp_path / "it.toml", machine.environment, max_age_s) == (dated if known else None)
    for share, alone in ((0.5, False), (0.999, True)):
        write_machine(tmp_path / "it.toml", replace(dated, conditions=replace(dated.conditions, cpu_share=share)))
        found = devices._known(tmp_path / "it.toml", machine.environment, max_age_s)
        assert (found is not None) == (known and (alone or max_age_s is None))
    write_machine(tmp_path / "it.toml", replace(machine, date=""))
    assert (devices._known(tmp_path / "it.toml", machine.environment, max_age_s) is None) == (max_age_s is not None)


class InThisProcess:
    """Stands for the worker that measures a device; asked: the extent, each time.

    share: of the processor during a calibration, 0: it is left out; bandwidths: during that of bandwidths.
    """

    asked: list[Extent] = []
    least: list[float] = []
    share: float | None = 0.98
    bandwidths: float | None = None

    def __init__(self, *_: object) -> None:
        self.answers: list[object] = [fake_study.machine().environment]

    def send(self, _: str, request: tuple[Extent, Machine | None, float]) -> None:
        extent, _lender, least = request
        self.asked.append(extent)
        self.least.append(least)
        found = replace(fake_study.machine(), streams_digest=streams_digest("cpu"), copy_bytes_per_s=2e12)
        found = replace(found, conditions=Conditions(cpu_share=self.bandwidths))
        calibrated = replace(found, cpu=_calibrated(self.share), quick=extent == "quick")
        self.answers.append(found if extent == "bandwidths" or not self.share else calibrated)

    def end(self) -> None:
        pass


def _calibrated(share: float | None) -> CpuCalibration:
    conditions = Conditions(cpu_share=share)
    rates, walks = {"4": 1e9}, {walk.name: 1e9 for walk in calibrated((4,))}
    return CpuCalibration(
        walks_bytes_per_s=walks,
        thread_walks_bytes_per_s=walks,
        cached_bytes_per_s=rates,
        multiply_add_per_s=rates,
        divide_per_s=rates,
        refill_s=1e-9,
        conditions=conditions,
    )


QUICK, FULL, NONE = "quick", "full", "bandwidths"
AGAIN = "calibration: measured again, because other programs"
NEW = "calibrating in about 15 s: this device is not known yet"


@pytest.mark.parametrize(
    ("held", "share", "refresh", "extent", "asked", "kept", "said"),
    [
        # bandwidths are asked for: the calibration on file is not worth keeping
        (FULL, 0.4, True, NONE, [FULL], False, AGAIN),
        # it is on file, but not to be believed
        (FULL, 0.4, False, FULL, [FULL], False, ""),
        # nothing is to be measured
        (FULL, 0.4, False, NONE, [], True, ""),
        (FULL, 0.99, True, NONE, [NONE], True, ""),
        (FULL, 0.99, False, FULL, [], True, ""),
        # of a version that did not note it
        (FULL, None, True, NONE, [NONE], True, ""),
        (FULL, None, False, FULL, [], True, ""),
        # a quick calibration replaces a full one only if that was disturbed
        (FULL, 0.99, False, QUICK, [], True, ""),
        (FULL, 0.99, True, QUICK, [NONE], True, ""),
        (FULL, 0.4, False, QUICK, [QUICK], False, AGAIN),
        (FULL, 0.4, True, QUICK, [QUICK], False, AGAIN),
        # a full one replaces a quick one
        (QUICK, 0.99, False, FULL, [FULL], False, ""),
        (QUICK, 0.99, False, QUICK, [], True, ""),
        (QUICK, 0.99, True, QUICK, [NONE], True, ""),
        (QUICK, 0.4, False, QUICK, [QUICK], False, AGAIN),
        (QUICK, 0.4, True, NONE, [QUICK], False, AGAIN),
        (NONE, None, False, QUICK, [QUICK], False, NEW),
        (NONE, None, True, QUICK, [QUICK], False, NEW),
        (NONE, None, False, FULL, [FULL], False, ""),
        (NONE, None, True, NONE, [NONE], True, ""),
    ],
)
def test_a_calibration_is_kept_if_it_holds_what_is_asked_for_and_was_left_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    held: Extent,
    share: float | None,
    refresh: bool,
    extent: Extent,
    asked: list[Extent],
    kept: bool,
    said: str,
) -> None:
    monkeypatch.setenv(devices.CONFIG_VARIABLE, str(tmp_path))
    monkeypatch.setattr("lbmtune.measure.processes.worker.Worker", InThisProcess)
    monkeypatch.setattr(devices, "await_answer", lambda worker, _: worker.answers.pop(0))
    monkeypatch.setattr(InThisProcess, "asked", [])
    visits: list[dict[str, float]] = [{"aa": 100.0, "push": 80.0}, {"aa": 200.0}]
    monkeypatch.setattr(repeats, "visit", lambda *_: visits.pop(0))
    on_file = replace(fake_study.machine(), streams_digest=streams_digest("cpu"))
    if held != NONE:
        on_file = replace(on_file, cpu=_calibrated(share), repeats=(0.5, -0.25), quick=held == QUICK)
    assert on_file.extent == held
    write_machine(devices.machine_path(on_file.environment), on_file)
    heard: list[str] = []
    found = devices.describe("cpu", refresh=refresh, extent=extent, progress=heard.append)
    assert InThisProcess.asked == asked
    assert found.cpu == (on_file.cpu if kept else _calibrated(0.98))
    again = (pytest.approx(log(2)),) if asked == [FULL] else ()  # by two visits, which take their time
    assert found.repeats == (on_file.repeats if kept else again)
    assert found.extent == (held if kept else asked[0])
    assert (found.copy_bytes_per_s == 2e12) == bool(asked)
    assert read_machine(devices.machine_path(on_file.environment)) == found
    assert [text[: len(said)] for text in heard] == ([said] if said else [])


CAL_KEPT, BANDWIDTHS_KEPT = "calibration: the one on file is kept", "bandwidths: those on file are kept"


@pytest.mark.parametrize(
    ("held", "share", "extent", "now", "bandwidths", "kept", "said"),
    [
        # what is quiet is not replaced by what others disturbed, even if that holds more
        (QUICK, 0.99, FULL, 0.4, None, True, [CAL_KEPT]),
        (QUICK, 0.99, FULL, 0.98, None, False, []),
        (QUICK, 0.99, FULL, 0.4, 0.5, True, [BANDWIDTHS_KEPT, CAL_KEPT]),
        (QUICK, 0.99, FULL, 0.98, 0.5, False, [BANDWIDTHS_KEPT]),
        # a disturbed one is better than none, which was left out
        (FULL, 0.4, QUICK, 0.0, None, True, [AGAIN, CAL_KEPT]),
        # and one that holds more than another that is no better
        (QUICK, 0.4, FULL, 0.3, None, False, []),
        (FULL, 0.4, FULL, 0.5, None, False, []),
        (FULL, 0.4, FULL, 0.3, None, True, [CAL_KEPT]),
    ],
)
def test_what_was_left_alone_is_not_replaced_by_what_others_disturbed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    held: Extent,
    share: float,
    extent: Extent,
    now: float,
    bandwidths: float | None,
    kept: bool,
    said: list[str],
) -> None:
    monkeypatch.setenv(devices.CONFIG_VARIABLE, str(tmp_path))
    monkeypatch.setattr("lbmtune.measure.processes.worker.Worker", InThisProcess)
    monkeypatch.setattr(devices, "await_answer", lambda worker, _: worker.answers.pop(0))
    monkeypatch.setattr(repeats, "visit", lambda *_: {})
    for name, value in {"asked": [], "least": [], "share": now, "bandwidths": bandwidths}.items():
        monkeypatch.setattr(InThisProcess, name, value)
    on_file = replace(fake_study.machine(), streams_digest=streams_digest("cpu"), repeats=(0.5, -0.25))
    on_file = replace(on_file, cpu=_calibrated(share), quick=held == QUICK, conditions=Conditions(cpu_share=0.99))
    write_machine(devices.machine_path(on_file.environment), on_file)
    heard: list[str] = []
    found = devices.describe("cpu", extent=extent, progress=heard.append)
    assert (InThisProcess.asked, InThisProcess.least) == ([extent], [0.95])
    assert (found.cpu, found.extent) == ((on_file.cpu, held) if kept else (_calibrated(now), extent))
    assert found.copy_bytes_per_s == (on_file.copy_bytes_per_s if bandwidths else 2e12)
    assert found.conditions.cpu_share == (0.99 if bandwidths else None)
    assert found.repeats == (on_file.repeats if kept else ())
    assert len(heard) == len(said)
    for text, begin in zip(heard, said, strict=True):
        assert text.startswith(begin)


def test_each_part_is_kept_with_the_share_of_the_processor_that_it_was_measured_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = iter((0.97, 0.3))
    monkeypatch.setattr(devices, "cpu_share", lambda *_: next(shares))
    monkeypatch.setattr(devices, "measure_bandwidths", lambda *_: BANDWIDTHS)
    monkeypatch.setattr("lbmtune.measure.calibration.cpu.calibrate_cpu", lambda *_, **__: _calibrated(None))
    found = devices.measured(open_cpu(), lambda _: None, "full")
    assert found.cpu
    assert (found.conditions.cpu_share, found.cpu.conditions.cpu_share) == (0.97, 0.3)


@pytest.mark.parametrize(
    ("extent", "shares", "least", "runs", "kept"),
    [
        (QUICK, (0.97, 0.9), 0.8, 1, True),
        (QUICK, (0.97, 0.3), 0.8, 1, False),
        (QUICK, (0.3, 0.97), 0.8, 0, False),  # it is not even begun
        (QUICK, (0.9, 0.97), 0.95, 0, False),  # it would replace one that is as good
        (FULL, (0.3, 0.3), 0.95, 1, True),  # the user asked for it, and it is the median of rounds
    ],
)
def test_a_quick_calibration_beside_other_programs_is_worse_than_none(
    monkeypatch: pytest.MonkeyPatch, extent: Extent, shares: tuple[float, float], least: float, runs: int, kept: bool
) -> None:
    left, ran, heard = iter(shares), list[str](), list[str]()
    monkeypatch.setattr(devices, "cpu_share", lambda *_: next(left))
    monkeypatch.setattr(devices, "measure_bandwidths", lambda *_: BANDWIDTHS)
    monkeypatch.setattr(devices, "_output_rates", lambda _: RATES)
    monkeypatch.setattr(
        "lbmtune.measure.calibration.cpu.calibrate_cpu", lambda *_, **__: (ran.append("ran"), _calibrated(None))[1]
    )
    found = devices.measured(open_cpu(), heard.append, extent, None, least)
    assert len(ran) == runs
    assert found.extent == (extent if kept else NONE)
    assert found.conditions.cpu_share == shares[0]
    left_out = f"calibration: left out, because other programs left {min(shares):.0%} of the processor"
    assert heard == ([] if kept else [left_out])


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize("extent", [NONE, QUICK, FULL])
@pytest.mark.parametrize("lends", ["nothing", "another card", "the same card"])
def test_texts_of_a_calibration_are_compiled_while_bandwidths_of_a_gpu_are_measured(
    monkeypatch: pytest.MonkeyPatch, backend: str, extent: Extent, lends: str
) -> None:
    happened: list[str] = []

    @contextmanager
    def ahead(compiler: Compiler, programs: Iterable[Program], processes: int) -> Iterator[Compiler]:
        happened.append(f"{len({one.digest for one in programs})} texts by {processes}")
        yield compiler
        happened.append("over")

    def measures(what: str, found: object) -> Callable[..., object]:
        return lambda *_, **__: (happened.append(what), found)[1]

    monkeypatch.setattr(devices, "precompiled", ahead)
    monkeypatch.setattr(devices, "usable_cores", lambda: 3)
    monkeypatch.setattr(devices, "cpu_share", lambda *_: 1.0)  # whatever else this machine does meanwhile
    monkeypatch.setattr(devices, "measure_bandwidths", measures("bandwidths", BANDWIDTHS))
    monkeypatch.setattr(devices, "calibrate", measures("calibration", SHIPPED.calibration))
    monkeypatch.setattr(devices, "calibrate_quickly", measures("a part of it", SHIPPED.calibration))
    monkeypatch.setattr(devices, "_output_rates", measures("output", RATES))
    monkeypatch.setattr("lbmtune.measure.calibration.cpu.calibrate_cpu", measures("walks", _calibrated(None)))
    device: Any = FakeDevice(backend)
    device.multiprocessors, device.caches_bytes = 100, {"L2": 25 << 20}
    same = replace(SHIPPED, environment=replace(SHIPPED.environment, device=device.environment.device))
    lender = {"nothing": None, "another card": SHIPPED, "the same card": same}[lends] if extent == QUICK else None
    found = devices.measured(device, lambda _: None, extent, lender)
    parts = {
        (NONE, lends): "",
        (FULL, lends): "calibration",
        (QUICK, "nothing"): "calibration",
        (QUICK, "another card"): "a part of it",
        (QUICK, "the same card"): "",
    }[extent, lends]
    on_gpu = parts if backend == "cuda" else ""
    wanted = texts(Limits(), ranking=parts == "a part of it") if on_gpu else ()
    assert happened == [
        f"{len({one.digest for one in wanted})} texts by 2",
        "bandwidths",
        *[on_gpu] * bool(on_gpu),
        *["walks"] * (extent != NONE and backend == "cpu"),
        "over",
        *["output"] * (extent != QUICK),  # which a study without output does without
    ]
    assert found.output == (None if extent == QUICK else RATES)
    assert (found.calibration == SHIPPED.calibration) == bool(on_gpu)
    # without a lender a GPU is calibrated in full
    assert found.extent == (FULL if (extent, lends, backend) == (QUICK, "nothing", "cuda") else extent)
    borrowed = extent == QUICK and lends != "nothing" and backend == "cuda"
    assert found.calibrated_as == (SHIPPED.name if borrowed else "")
    assert (found.calibration is not None) == (backend == "cuda" and extent != NONE)


def test_a_quick_calibration_needs_a_fraction_of_the_texts() -> None:
    every, few = ({one.digest for one in texts(Limits(), ranking=ranking)} for ranking in (False, True))
    assert few < every
    assert len(few) < 2 / 3 * len(every)


def test_kernels_are_measured_again_in_another_process() -> None:
    heard: list[str] = []
    first, again = (repeats.visit(partial(small_cpu, ""), heard.append) for _ in range(2))
    assert first
    assert len(repeats.apart(first, again)) == len(first.keys() & again.keys()) > 0
    assert min(*first.values(), *again.values()) > 0
    assert heard == ["the same kernels in another process"] * 2


def test_a_device_whose_kernels_cannot_be_measured_again_is_described_all_the_same() -> None:
    heard: list[str] = []
    assert repeats.visit(partial(no_device, ""), heard.append) == {}
    assert heard == ["the spread between runs is not measured: there is no such device; plug one in."]


def test_a_slow_figure_is_measured_by_few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run takes 0.4 s of the clock."""
    monkeypatch.setattr(microbench.time, "monotonic", lambda: 0.4 * len(runs))
    runs: list[float] = []
    device = SimpleNamespace(time_s=lambda run: (runs.append(0.4), 0.4)[1])
    assert microbench.rate(device, lambda: None, 4.0, 9).bytes_per_s == pytest.approx(10)  # type: ignore[arg-type]
    assert len(runs) == 1 + microbench._FEWEST


BANDWIDTHS_AT, CALIBRATED_AT = (
    "40% of the processor when its bandwidths were measured",
    "30% of the processor when it was calibrated",
)


@pytest.mark.parametrize(
    ("bandwidths", "calibration", "cause", "spoilt"),
    [
        (
            0.99,
            0.3,
            CALIBRATED_AT,
            "predictions are not reliable, nor shares of them, but the ceiling is, which rests on",
        ),
        (None, 0.3, CALIBRATED_AT, "predictions are not reliable, nor shares of them; when the machine"),
        (0.4, 0.99, BANDWIDTHS_AT, "the ceiling is not reliable, nor shares of it, but predictions are, which rest on"),
        (0.4, None, BANDWIDTHS_AT, "the ceiling is not reliable, nor predictions that rest on it, nor shares of them;"),
        (0.4, 0.3, f"{BANDWIDTHS_AT} and {CALIBRATED_AT}", "neither the ceiling nor predictions are reliable, nor"),
    ],
)
def test_what_was_measured_beside_other_programs_is_told_in_one_sentence(
    bandwidths: float | None, calibration: float | None, cause: str, spoilt: str
) -> None:
    machine = replace(fake_study.machine(), conditions=Conditions(cpu_share=bandwidths), cpu=_calibrated(calibration))
    said = disturbance(machine)
    assert said.startswith(f"other programs left {cause}: {spoilt}")
    assert said.endswith("; when the machine is idle, lbmtune devices --refresh measures it again.")
    assert disturbance(replace(machine, cpu=None)) == description_disturbance(bandwidths, None)
    assert dict(machine_rows("cpu", machine))["calibrated"] == (
        "yes, disturbed by other programs" if calibration == 0.3 else "yes"
    )


@pytest.mark.parametrize("bandwidths", [None, 0.95, 1.0])
@pytest.mark.parametrize("calibration", [None, 0.95, 1.0])
def test_nothing_is_said_of_a_description_that_was_left_alone(
    bandwidths: float | None, calibration: float | None
) -> None:
    assert description_disturbance(bandwidths, calibration) == ""


def test_a_device_is_not_measured_while_a_study_runs_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.CONFIG_VARIABLE, str(tmp_path))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with device_lock(open_cpu().environment), pytest.raises(InputError, match="is in use by process"):
        devices.describe("cpu", alone=device_lock)
    assert not list(tmp_path.rglob("*.toml"))


def test_a_device_that_cannot_be_opened_is_told() -> None:
    with pytest.raises(DeviceUnavailableError, match="plug one in"):
        devices.describe("0", opener=no_device)


class StreamDevice(FakeDevice):
    """Runs the CUDA bandwidth kernels in NumPy; `skips` leaves the last stream out."""

    skips = False

    def load(self, program: Program, binary: Binary) -> Any:
        width = {"unsigned short": 2, "unsigned int": 4, "uint2": 8, "uint4": 16}
        (access,) = (o.removeprefix("-DACCESS=") for o in program.options if o.startswith("-DACCESS="))
        return StreamExecutable(width[access], self.skips)


class StreamExecutable:
    resources = Resources()

    def __init__(self, width: int, skips: bool) -> None:
        self.width, self.skips = width, skips

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Any) -> None:
        *arrays, accesses = arguments
        assert grid[0] * launch.block[0] >= accesses
        assert launch.entry in (COPY, SCALE)
        if launch.entry == SCALE:
            assert int(accesses) * 16 == arrays[0].nbytes
            arrays[0][:] = arrays[0] * arrays[1]
            return
        source, target = arrays
        assert source.nbytes % (int(accesses) * self.width) == 0
        target[: -1 - source.size // STREAMS if self.skips else None] = source[
            : -1 - source.size // STREAMS if self.skips else None
        ]


def test_a_gpu_is_measured_by_width(monkeypatch: pytest.MonkeyPatch) -> None:
    _small_cuda(monkeypatch)
    seconds = iter(np.linspace(1e-3, 2e-3, 10**6))
    device = StreamDevice("cuda", durations_s=lambda: float(next(seconds)))
    found = microbench.measure_bandwidths(device, _compiled, 1 << 16, lambda _: None)
    assert list(found.streams) == ["2", "4", "8", "16"]
    moved = 2 * STREAMS * 4 * (1 << 16) // 8192 * 8192
    # a sample lasts 10 ms or more: the first run took 1 ms, so each has ten
    assert found.streams["16"].bytes_per_s == pytest.approx(10 * moved / 1e-3, rel=0.01)
    assert found.thread is None


def test_a_copy_that_leaves_a_stream_out_has_no_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    _small_cuda(monkeypatch)
    device = StreamDevice("cuda", durations_s=lambda: 1e-3)
    device.skips = True
    with pytest.raises(RuntimeError, match="did not move what it should"):
        microbench.measure_bandwidths(device, _compiled, 1 << 16, lambda _: None)


def _small_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microbench, "_CUDA_ELEMENTS", 1 << 16)
    monkeypatch.setattr(microbench, "_CUDA_BLOCKS", (128,))


def _compiled(program: Program) -> Binary:
    return Binary(b"", "", Resources())


@pytest.mark.parametrize("bits", [0, 256, 512])
def test_a_cpu_copies_by_every_width_up_to_its_own(bits: int) -> None:
    wide = {0: [], 256: [32, 64, "64 streaming"], 512: [32, 64, "64 streaming"]}[bits]
    assert [microbench._name(one) for one in microbench._cpu_accesses(bits)] == [*map(str, (4, 8, 16, *wide))]


def test_sixteen_bytes_are_moved_at_once_and_other_texts_are_as_ever(tmp_path: Path) -> None:
    program = cpu_streams(2, CpuAccess("float32", 4, streaming=False), 1)
    module = import_text(tmp_path / "copy_of_sixteen.py", program.source)
    (assembly,) = module.copy_streams.inspect_asm().values()
    loads = re.findall(r"mov[au]ps\s+[^%\n]*\(.*\), %xmm|\tldr\s+q|\tldp\s+q", assembly)
    stores = re.findall(r"mov[au]ps\s+%xmm\d+, [^%\n]*\(|\tstr\s+q|\tstp\s+q", assembly)
    assert min(len(loads), len(stores)) >= 2
    assert "narrow" in program.source
    assert not any("narrow" in cpu_streams(2, one, 1).source for one in microbench._cpu_accesses(512) if one.lanes != 4)


@pytest.mark.parametrize("access_bytes", [2, 4, 8, 16])
@pytest.mark.parametrize("apart", [True, False])
def test_the_stream_kernels_compile_without_spills(access_bytes: int, apart: bool) -> None:
    for architecture in ("sm_80", "sm_90"):
        found = compile_cuda(cuda_streams(STREAMS, access_bytes, 512, apart=apart), architecture).resources
        assert found.spill_bytes == 0
        assert 0 < found.registers <= 128


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (SimpleNamespace(current=1800.0, max=3500.0), 3.5e9),
        (SimpleNamespace(current=2500.0, max=0.0), 2.5e9),
        (SimpleNamespace(current=0.0, max=0.0), None),
        (None, None),
    ],
)
def test_the_clock_of_cores_is_what_the_system_tells(
    told: object, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_device.psutil, "cpu_freq", lambda: told)
    assert open_cpu().core_clock_hz == expected


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("multiprocessors = 132", "multiprocessors = 0", "multiprocessors is 0"),
        ("latency_s = ", "latency_s = nan # ", "calibration.latency_s is nan"),
        ("latency_s = ", "latency_s = -1e-6 # ", "calibration.latency_s is -1e-06"),
        ("l1_bytes = ", "l1_bytes = 0 # ", "calibration.l1_bytes is 0"),
        ("max_sm_clock_hz = ", "max_sm_clock_hz = 0.0 # ", "environment.max_sm_clock_hz is 0.0"),
        ("streams = 19", "streams = 0", "streams is 0"),
        ("[stream_bytes_per_s]", "[stream_bytes_per_s]\n[spare]", "stream_bytes_per_s is empty"),
        ("copy_bytes_per_s = ", "copy_bytes_per_s = -1.0 # ", "copy_bytes_per_s is -1.0"),
        ("[calibration.displaced_bytes_per_s]", "[spare]", "displaced_bytes_per_s"),
        (
            "[calibration.listed_bytes_per_s]",
            "[calibration.listed_bytes_per_s]\n[spare]",
            "listed_bytes_per_s is empty",
        ),
    ],
)
def test_a_machine_whose_figures_cannot_be_is_told_with_the_figure(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    shipped = RECORDED / "nvidia-h200" / "machine.toml"
    path = tmp_path / "machine.toml"
    path.write_text(shipped.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=re.escape(said)):
        read_machine(path)


@pytest.mark.parametrize(
    ("device", "line", "said"),
    [
        ("nvidia-h200", '"4 of 128"', "calibration.runs_bytes_per_s lacks '4 of 128', which the model looks up"),
        ("nvidia-h200", '"4 loads by', "calibration.displaced_bytes_per_s lacks '4 loads by 16', and 5 more"),
        ("nvidia-h200", "L1", "calibration.local_bytes_per_s lacks 'L1'"),
        ("nvidia-h200", '"neighbours by 12"', "calibration.stages_s lacks 'neighbours by 12'"),
        ("nvidia-h200", '"8 by 1152 of 0"', "calibration.spilled_bytes_per_s lacks '8 by M of 0'"),
        ("xeon-2-cores", '"copy, 32 bytes, shifted"', "cpu.walks_bytes_per_s lacks 'copy, 32 bytes, shifted'"),
        ("xeon-2-cores", '"in place, 4 bytes"', "'in place, 4 bytes'"),
    ],
)
def test_a_machine_whose_tables_lack_figures_is_told_with_the_first(
    tmp_path: Path, device: str, line: str, said: str
) -> None:
    """The model would look for them in the middle of a study."""
    recorded = RECORDED / device / "machine.toml"
    path = tmp_path / "machine.toml"
    lines = recorded.read_text().splitlines(keepends=True)
    path.write_text("".join(one for one in lines if not one.startswith(line)))
    with pytest.raises(InputError, match=rf"of another version: .*{re.escape(said)}.*; delete it and run lbmtune dev"):
        read_machine(path)


def test_no_figure_of_a_calibration_can_be_left_out_unnoticed() -> None:
    recorded = RECORDED / "nvidia-h200" / "machine.toml"
    found = read_machine(recorded).calibration
    assert found is not None
    tables = {one.name for one in fields(found) if isinstance(getattr(found, one.name), dict)}
    assert set(measured.names()) == tables - {"spilled_bytes_per_s"}, "which is looked through by pattern"
    for table, names in measured.names().items():
        whole = getattr(found, table)
        assert set(names) <= set(whole)
        assert all("16 none" in name for name in set(whole) - set(names)), "the one that nothing asks for any more"
        for name in names[:: 1 + len(names) // 20]:
            without = {one: figure for one, figure in whole.items() if one != name}
            assert [*measured.lacking(replace(found, **{table: without}))] == [f"{table} lacks {name!r}"]


@pytest.mark.parametrize("device", ["xeon-2-cores", "epyc-2-cores"])
@pytest.mark.parametrize(
    "table", ["walks_bytes_per_s", "thread_walks_bytes_per_s", "cached_bytes_per_s", "divide_per_s"]
)
def test_nor_one_of_a_processor(device: str, table: str) -> None:
    recorded = RECORDED / device / "machine.toml"
    found = read_machine(recorded).cpu
    assert found is not None
    whole = getattr(found, table)
    for name in whole:
        without = {one: figure for one, figure in whole.items() if one != name}
        assert f"{table} lacks {name!r}" in [*measured.lacking_of_cpu(replace(found, **{table: without}))]


def test_a_card_that_cannot_wait_for_neighbours_lacks_nothing() -> None:
    recorded = RECORDED / "nvidia-h200" / "machine.toml"
    found = read_machine(recorded).calibration
    assert found is not None
    stages = {name: s for name, s in found.stages_s.items() if not name.startswith("neighbours")}
    assert not [*measured.lacking(replace(found, stages_s=stages))]
    assert not [*measured.lacking(replace(found, stages_s={}))], "of an earlier version: the model does without"


def test_a_core_may_hide_what_its_second_cache_takes(tmp_path: Path) -> None:
    shipped = RECORDED / "xeon-2-cores" / "machine.toml"
    path = tmp_path / "machine.toml"
    path.write_text(re.sub(r"refill_s = .*", "refill_s = 0.0", shipped.read_text()))
    assert read_machine(path).cpu is not None


def test_rates_of_output_are_kept_and_a_folder_that_takes_no_file_leaves_them_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "machine.toml"
    write_machine(path, replace(SHIPPED, output=RATES))
    assert read_machine(path).output == RATES
    path.write_text(path.read_text().replace("file_bytes_per_s = 50000000.0", "file_bytes_per_s = 0.05"))
    with pytest.raises(InputError, match=r"output.file_bytes_per_s is 0.05, which has to be bytes per second from 1"):
        read_machine(path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    assert devices._output_rates(open_cpu()) is None
