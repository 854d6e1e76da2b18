"""Tasks of the measuring process, without a process around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import pytest

from lbmtune.backend.protocol import Binary, TooManyResourcesError
from lbmtune.backend.registry import reassembled
from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.render import render
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.workers import one_kernel, worker_tasks
from lbmtune.measure.workers.messages import FinalsRequest, MeasureRequest, MeasureResult
from lbmtune.measure.workers.one_kernel import verify_and_measure
from lbmtune.measure.workers.worker_tasks import dry_run
from lbmtune.records import Conditions, Outcome, Resources, Verification
from lbmtune.records.spec import TimingProtocol
from tests.support.devices.fake_device import CASE, FakeDevice, compiler, config, renderer

PROTOCOL = TimingProtocol(verify_periods=1, warmup_s=0.002, sample_s=0.001, max_samples=6)
PROGRAM = renderer(CASE, config("right", "cuda"))


def outcome(durations_s: list[float], clock_hz: float) -> MeasureResult:
    times = cycle(durations_s)
    device = FakeDevice("cuda", durations_s=lambda: next(times), weather=lambda: Conditions(sm_clock_hz=clock_hz))
    stages: list[str] = []
    found = verify_and_measure(
        PROGRAM, compiler(PROGRAM), PooledDevice(device), MeasureRequest(path=Path("unused")), PROTOCOL, stages.append
    )
    assert stages == ["verify", "measure"]
    return found


@pytest.mark.parametrize(
    ("right", "expected", "blame"),
    [
        ("one", Outcome.MISCOMPILED, "; assembled by ptxas -O1 the same text is right"),
        ("two", Outcome.MISCOMPILED, "; assembled by ptxas -O0 the same text is right"),
        ("", Outcome.WRONG_RESULT, ""),
    ],
)
def test_a_wrong_kernel_is_assembled_otherwise(
    monkeypatch: pytest.MonkeyPatch, right: str, expected: Outcome, blame: str
) -> None:
    """What is kept is the verification of the kernel itself; a kernel that is wrong in either way has no speed."""
    ways = [(f"ptxas -O{2 - n}", Binary(b"", name, Resources())) for n, name in enumerate(("one", "two"), 1)]

    def verified(_: object, binary: Binary, *__: object) -> Verification:
        error = 0.0 if binary.digest == right else 1.0
        return Verification(
            error=error, bound=1e-6, worst_cell=(1, 2, 3), worst_direction=4, worst_steps=2, domains=((9, 5, 7),)
        )

    monkeypatch.setattr("lbmtune.measure.workers.one_kernel.verify", verified)
    monkeypatch.setattr("lbmtune.measure.workers.one_kernel.reassembled", lambda *_: iter(ways))
    request, device = MeasureRequest(path=Path("unused")), FakeDevice("cuda")
    found = verify_and_measure(PROGRAM, compiler(PROGRAM), PooledDevice(device), request, PROTOCOL, lambda _: None)
    assert found.outcome is expected
    assert found.reason == f"f_4 at cell (1, 2, 3) of 9x5x7 is off by 1 after 2 steps; the bound is 1e-06{blame}"
    assert found.verification is not None
    assert not found.verification.passed
    assert found.measurement is None


def test_a_binary_that_is_right_when_it_is_loaded_anew_is_no_fault_of_the_assembler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As of a kernel that counts its launches, and goes wrong after some."""
    mine, loaded = compiler(PROGRAM), list[str]()

    def verified(_: object, binary: Binary, *__: object) -> Verification:
        loaded.append(binary.digest)
        return Verification(
            error=float(len(loaded) == 1),
            bound=1e-6,
            worst_cell=(1, 2, 3),
            worst_direction=4,
            worst_steps=2,
            domains=((9, 5, 7),),
        )

    monkeypatch.setattr("lbmtune.measure.workers.one_kernel.verify", verified)
    variant = Binary(b"", "variant", Resources())
    monkeypatch.setattr("lbmtune.measure.workers.one_kernel.reassembled", lambda *_: iter([("ptxas -O1", variant)]))
    request, device = MeasureRequest(path=Path("unused")), PooledDevice(FakeDevice("cuda"))
    found = verify_and_measure(PROGRAM, mine, device, request, PROTOCOL, lambda _: None)
    assert loaded == [mine.digest, "variant", mine.digest]
    assert found.outcome is Outcome.WRONG_RESULT
    assert "loaded anew it is right: it goes wrong after other launches" in found.reason


def test_what_cannot_run_when_assembled_otherwise_leaves_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def verified(_: object, binary: Binary, *__: object) -> Verification:
        if binary.digest == "other":
            raise TooManyResourcesError("255 registers for 1024 threads")
        return Verification(
            error=1.0, bound=1e-6, worst_cell=(1, 2, 3), worst_direction=4, worst_steps=2, domains=((9, 5, 7),)
        )

    monkeypatch.setattr("lbmtune.measure.workers.one_kernel.verify", verified)
    other = Binary(b"", "other", Resources())
    monkeypatch.setattr("lbmtune.measure.workers.one_kernel.reassembled", lambda *_: iter([("ptxas -O0", other)]))
    found = verify_and_measure(
        PROGRAM,
        compiler(PROGRAM),
        PooledDevice(FakeDevice("cuda")),
        MeasureRequest(path=Path("unused")),
        PROTOCOL,
        lambda _: None,
    )
    assert found.outcome is Outcome.WRONG_RESULT
    assert found.verification is not None


def test_only_what_an_assembler_made_is_assembled_again() -> None:
    assert list(reassembled(FakeDevice("cpu").environment, PROGRAM)) == []


def test_where_threads_meet_nothing_is_assembled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A race that slower code hides is no fault of the assembler."""
    plainer = [("-O1", Binary(b"", "", Resources()))]
    monkeypatch.setattr("lbmtune.backend.cuda.nvrtc.reassembled", lambda *_: iter(plainer))
    direct = cuda.Direct(block=(32, 2, 1))
    blocked = cuda.TemporalBlocking(representation="moments", block=(32, 8, 1), chunk_planes=1, steps=1)
    for chosen, ways in ((direct, ["ptxas -O1"]), (replace(direct, launch="dependent"), []), (blocked, [])):
        program = render(box("d3q19", "regularised", (64, 32, 32), 1.6), chosen)
        assert [how for how, _ in reassembled(FakeDevice("cuda").environment, program)] == ways


@pytest.mark.parametrize(
    ("durations_s", "clock_hz", "expected"),
    [
        ([1e-3, 5e-3], 1e9, Outcome.UNSTABLE_TIMING),
        ([1e-3, 5e-3], 2e9, Outcome.OK),
        ([1e-3], 1e9, Outcome.OK),
    ],
)
def test_a_disturbed_and_wide_measurement_is_unstable(
    durations_s: list[float], clock_hz: float, expected: Outcome
) -> None:
    found = outcome(durations_s, clock_hz)
    assert found.outcome is expected
    assert found.measurement
    assert found.measurement.disturbed == (clock_hz < 1.5e9)
    assert ("95 % interval" in found.reason) == (expected is Outcome.UNSTABLE_TIMING)


def test_a_dry_run_launches_nothing() -> None:
    program = renderer(CASE, config("device fault", "cuda"))
    dry_run(program, FakeDevice("cuda"))


def test_what_a_run_of_seconds_leaves_is_proved_as_it_is_and_from_random_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sums are those from the end of the warm-up; a refill comes last, because it hides what went before."""
    done: list[object] = []

    def sustain(simulation: object, protocol: object, warm: Callable[[], None]) -> SimpleNamespace:
        done.append("warm-up")
        warm()
        done.append("run")
        return SimpleNamespace(steps=1000)

    monkeypatch.setattr(one_kernel, "sustain", sustain)
    monkeypatch.setattr(one_kernel, "sums", lambda _: done.append("sums") or "begun")
    monkeypatch.setattr(one_kernel, "check_sums", lambda _, before: done.append(("check sums", before)))
    monkeypatch.setattr(one_kernel, "check_slab", lambda _: done.append("check slab"))
    monkeypatch.setattr(one_kernel, "check_slabs", lambda _, steps: done.append(("check slabs", steps)))
    device = PooledDevice(FakeDevice("cuda"))
    monkeypatch.setattr(device, "check_guards", lambda names: done.append("check guards"))
    one_kernel._sustained(PROGRAM, compiler(PROGRAM), device, PROTOCOL, None)
    assert done == [
        *("warm-up", "sums", "run", ("check sums", "begun")),
        *("check slab", ("check slabs", 1000), "check guards"),
    ]


def test_each_final_is_proved_after_the_steps_that_were_timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[object] = []
    monkeypatch.setattr(worker_tasks, "_read_spool", lambda path: (PROGRAM, compiler(PROGRAM), None))
    timed = [SimpleNamespace(steps_per_sample=steps, samples_s=[1.0] * 3) for steps in (10, 20)]
    monkeypatch.setattr(worker_tasks, "measure_interleaved", lambda *_: timed)
    monkeypatch.setattr(worker_tasks, "check_slabs", lambda _, steps: done.append(steps))
    measurer = worker_tasks._Measurer(PooledDevice(FakeDevice("cuda")), PROTOCOL)
    assert measurer.answer(FinalsRequest(paths=(tmp_path, tmp_path)), lambda _: None) == timed
    assert done == [30, 60]
