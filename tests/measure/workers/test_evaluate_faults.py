"""Whatever a kernel does, it costs one trial with the right outcome, and the next one works."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from lbmtune.backend.protocol import Device
from lbmtune.catalogue.config import cpu
from lbmtune.errors import DeviceUnavailableError, InputError
from lbmtune.measure.processes import worker as workers
from lbmtune.measure.processes.events import Death
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.measure.workers.worker_pool import WorkerPool
from lbmtune.measure.workers.worker_tasks import Renderer
from lbmtune.records import Compiled, Outcome, Prediction, Resources, Trial
from lbmtune.records.spec import TimingProtocol
from tests.support.devices.fake_device import (
    CASE,
    ONCE,
    compiler,
    config,
    open_cpu,
    open_cuda,
    open_late,
    open_nothing,
    renderer,
)
from tests.support.devices.odd_compilers import (
    EXAMPLE,
    broken_renderer,
    counted_compiler,
    same_renderer,
    slow_compiler,
)
from tests.support.paths import ROOT
from tests.support.waiting import until

PROTOCOL = TimingProtocol(
    verify_periods=2,
    warmup_s=0.001,
    sample_s=0.001,
    min_samples=3,
    max_samples=6,
    min_cpu_share=0.0,
    final_sample_s=0.001,
    final_rounds=3,
    sustained_s=0.02,
    settling_s=0.01,
    compile_limit_s=2.0,
    verify_limit_s=2.0,
    measure_limit_s=10.0,
)


def predict(_: object, /, *, resources: Resources | None = None) -> Prediction:
    """As many MLUPS as registers, of which a kernel that nobody has compiled is taken to have one."""
    return Prediction(
        mlups=float(resources.registers) if resources else 1.0,
        bytes_per_update=144,
        bandwidth_bytes_per_s=1e9,
        footprint_bytes=1,
        limit="memory",
        ceiling_source="planted",
    )


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(CASE, "cpu", PROTOCOL, predict, compiler=compiler, renderer=renderer, opener=open_cpu) as opened:
        yield opened


def ask(evaluator: Evaluator, fault: str) -> Trial:
    evaluator.submit(1, config(fault, evaluator.environment.backend))
    return evaluator.next()


@pytest.mark.parametrize(
    ("fault", "outcome", "reason"),
    [
        ("segfault", Outcome.CRASHED, "killed by SIGSEGV during verify (Fatal Python error: Segmentation fault)"),
        ("segfault when timed", Outcome.CRASHED, "killed by SIGSEGV during measure"),
        ("killed", Outcome.CRASHED, "killed by SIGKILL during verify"),
        ("endless", Outcome.TIMED_OUT, "verify took longer than 2 s"),
        ("busy compilation", Outcome.TIMED_OUT, "compile took longer than 2 s of processor time"),
        ("end of file", Outcome.CRASHED, "EOFError: Ran out of input"),
        ("nan", Outcome.WRONG_RESULT, "f_1 at cell (3, 2, 0)"),
        ("wrong cell", Outcome.WRONG_RESULT, "f_5 at cell (4, 1, 0)"),
        ("idle", Outcome.WRONG_RESULT, "left the state as it was"),
        ("refused", Outcome.COMPILE_FAILED, "line 7: expected a ';'"),
        ("broken compiler", Outcome.CRASHED, "ZeroDivisionError: planted"),
        ("compiler crash", Outcome.CRASHED, "killed by SIGKILL during compile"),
        ("out of memory", Outcome.OUT_OF_MEMORY, "40 GiB were asked for"),
        ("too many resources", Outcome.TOO_MANY_RESOURCES, "70000 registers per block"),
        ("device fault", Outcome.CRASHED, "an illegal memory access was encountered"),
    ],
)
def test_a_fault_costs_one_trial(evaluator: Evaluator, fault: str, outcome: Outcome, reason: str) -> None:
    failed = ask(evaluator, fault)
    assert failed.outcome is outcome
    assert reason in failed.reason
    assert failed.mlups is None
    following = ask(evaluator, "right")
    assert following.outcome is Outcome.OK, following.reason
    assert following.mlups
    assert not evaluator.in_flight


def test_a_trial_is_complete(evaluator: Evaluator) -> None:
    trial = ask(evaluator, "right")
    assert trial.verification
    assert trial.verification.passed
    assert trial.measurement
    assert trial.measurement.sites == CASE.sites
    assert trial.resources
    assert trial.resources.registers == 32
    assert trial.prediction == predict(None, resources=trial.resources)
    assert min(trial.costs.verify_s, trial.costs.measure_s, trial.costs.compile_s) > 0
    assert trial.binary_digest == "digest of right"
    assert trial.source_digest == renderer(CASE, config()).digest
    assert trial.date


def test_an_illegal_configuration_is_answered_with_the_rule(evaluator: Evaluator) -> None:
    evaluator.submit(4, cpu.Direct(threads=512, vector_bits=0))
    trial = evaluator.next()
    assert (trial.number, trial.outcome) == (4, Outcome.ILLEGAL)
    assert trial.reason == "threads=512; this device has 1 cores"


def test_finals_are_verified_at_full_size_and_measured_together(evaluator: Evaluator) -> None:
    trials = evaluator.finals([config("right"), config("wrong cell"), config("right")])
    assert [t.outcome for t in trials] == [Outcome.OK, Outcome.WRONG_RESULT, Outcome.OK]
    assert [t.final is not None for t in trials] == [True, False, True]
    for trial in trials:
        assert trial.verification
        assert trial.verification.full_size
        assert trial.verification.domains == (CASE.domain,)
    assert trials[0].final
    assert len(trials[0].final.samples_s) == PROTOCOL.final_rounds


def test_a_run_of_seconds_follows_the_proof_where_there_was_none(evaluator: Evaluator) -> None:
    proven, fresh, wrong = evaluator.sustained(
        [config("right"), config("right"), config("wrong cell")], [True, False, False], PROTOCOL.sustained_s
    )
    assert proven.sustained
    assert fresh.sustained
    assert proven.verification is None
    assert fresh.proven
    assert (wrong.outcome, wrong.sustained) == (Outcome.WRONG_RESULT, None)
    assert proven.sustained.steps >= len(proven.sustained.slices_s) >= 1
    assert proven.measurement is None
    assert not list(evaluator.pool.spool.glob("*.pickle"))


def test_finals_survive_a_kernel_that_crashes_only_at_full_size(evaluator: Evaluator) -> None:
    trials = evaluator.finals([config("right"), config("segfault when timed")])
    assert trials[1].outcome is Outcome.CRASHED
    assert trials[0].final


@pytest.mark.parametrize(
    ("fault", "outcome", "reason"),
    [
        ("segfault when repeated", Outcome.CRASHED, "killed by SIGSEGV during finals, number 2"),
        ("endless when repeated", Outcome.TIMED_OUT, "finals, number 2 took longer than 10 s"),
        ("nan when repeated", Outcome.WRONG_RESULT, "left values that are not finite numbers"),
    ],
)
def test_who_spoils_the_interleaved_round_pays_and_the_others_are_measured(
    evaluator: Evaluator, fault: str, outcome: Outcome, reason: str
) -> None:
    trials = evaluator.finals([config("right"), config(fault), config("right")])
    assert [t.outcome for t in trials] == [Outcome.OK, outcome, Outcome.OK]
    assert reason in trials[1].reason
    assert trials[1].final is None
    assert trials[0].final
    assert trials[2].final
    assert all(t.verification and t.verification.full_size for t in trials)


def test_where_nobody_can_be_blamed_all_keep_what_they_have_with_the_reason(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(evaluator.pool, "answer", lambda *_: Death("finals", "killed by SIGKILL during finals"))
        trials = evaluator.finals([config("right"), config("right")])
    assert [t.outcome for t in trials] == [Outcome.OK, Outcome.OK]
    assert {t.reason for t in trials} == {"killed by SIGKILL during finals"}
    assert all(t.verification and t.verification.full_size and not t.final for t in trials)


def test_the_death_of_an_idle_worker_costs_nothing(evaluator: Evaluator) -> None:
    assert ask(evaluator, "right").outcome is Outcome.OK
    for worker in list(evaluator.pool.workers()):
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
    following = ask(evaluator, "right")
    assert following.outcome is Outcome.OK, following.reason


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [("right", Outcome.OK), ("wrong cell", Outcome.WRONG_RESULT), ("segfault", Outcome.CRASHED)],
)
@pytest.mark.parametrize("full", [False, True])
def test_a_proof_is_isolated_and_takes_no_measurement(
    evaluator: Evaluator, fault: str, outcome: Outcome, full: bool
) -> None:
    trial = evaluator.verify(config(fault), full=full)
    assert trial.outcome is outcome
    assert trial.measurement is None
    assert (trial.verification is None) == (outcome is Outcome.CRASHED)
    assert not trial.verification or trial.verification.full_size == full


def test_many_run_ahead_on_a_gpu() -> None:
    stages: list[tuple[int, str]] = []
    with Evaluator(
        CASE,
        "0",
        PROTOCOL,
        compiler=compiler,
        renderer=renderer,
        opener=open_cuda,
        on_stage=lambda number, stage: stages.append((number, stage)),
    ) as evaluator:
        faults = ["right", "device fault", "refused", "right", "right"]
        for number, fault in enumerate(faults):
            evaluator.submit(number, config(fault, "cuda"))
        trials = sorted((evaluator.next() for _ in faults), key=lambda trial: trial.number)
    outcomes = [Outcome.OK, Outcome.CRASHED, Outcome.COMPILE_FAILED, Outcome.OK, Outcome.OK]
    assert [trial.outcome for trial in trials] == outcomes
    assert {number for number, stage in stages if stage == "compile"} == set(range(5))


@pytest.mark.parametrize(("backend", "opener"), [("cpu", open_cpu), ("cuda", open_cuda)])
def test_what_is_compiled_is_measured_if_it_is_chosen(backend: str, opener: Callable[[], Device]) -> None:
    faults = ["right", "refused", "compiler crash", "device fault", "idle"]
    configs = {config(fault, backend).key: fault for fault in faults}
    with Evaluator(CASE, "0", PROTOCOL, predict, compiler=compiler, renderer=renderer, opener=opener) as evaluator:
        assert evaluator.compile_room(0) >= 1
        for fault in faults:
            evaluator.compile(config(fault, backend))
        assert evaluator.compile_room(0) <= 0 or backend == "cuda"
        assert not evaluator.in_flight
        found = {}
        for _ in faults:
            compiled = evaluator.event()
            assert isinstance(compiled, Compiled)
            found[configs[compiled.trial.key]] = compiled.trial
        assert {fault: trial.outcome for fault, trial in found.items()} == {
            **dict.fromkeys(faults, Outcome.OK),
            "refused": Outcome.COMPILE_FAILED,
            "compiler crash": Outcome.CRASHED,
        }
        assert found["right"].prediction == predict(None, resources=Resources(registers=32))
        assert found["right"].costs.compile_s > 0
        assert evaluator.measure_room() == (1 if backend == "cpu" else 2)
        evaluator.measure(7, config("device fault", backend))
        assert evaluator.measure_room() == (0 if backend == "cpu" else 1)
        assert evaluator.in_flight == 1
        failed = evaluator.event()
        evaluator.measure(8, config("right", backend))
        right = evaluator.event()
        assert isinstance(failed, Trial)
        assert isinstance(right, Trial)
        assert (failed.number, failed.outcome) == (7, Outcome.CRASHED)
        assert (right.number, right.outcome, right.resources) == (8, Outcome.OK, Resources(registers=32))
        with pytest.raises(IndexError):
            evaluator.event()
        evaluator.forget()
        assert not list(evaluator.pool.spool.glob("*.pickle"))
        assert evaluator.verify(config("right", backend)).outcome is Outcome.OK


@pytest.mark.parametrize(("backend", "opener"), [("cpu", open_cpu), ("cuda", open_cuda)])
def test_what_is_being_compiled_is_forgotten_too(backend: str, opener: Callable[[], Device]) -> None:
    with Evaluator(CASE, "0", PROTOCOL, predict, compiler=slow_compiler, renderer=renderer, opener=opener) as evaluator:
        evaluator.compile(config("right", backend))
        evaluator._step()
        assert any(worker.jobs for worker in evaluator.pool.compilers)
        evaluator.forget()
        evaluator.compile(config("refused", backend))
        found = evaluator.event()
        assert isinstance(found, Compiled)
        assert found.trial.key == config("refused", backend).key
        with pytest.raises(IndexError):
            evaluator.event()
        assert not list(evaluator.pool.spool.glob("*.pickle"))


@pytest.mark.parametrize(("backend", "opener"), [("cpu", open_cpu), ("cuda", open_cuda)])
def test_what_is_dropped_when_the_time_is_over_leaves_no_files(backend: str, opener: Callable[[], Device]) -> None:
    with Evaluator(CASE, "0", PROTOCOL, predict, compiler=slow_compiler, renderer=renderer, opener=opener) as evaluator:
        for name in ("right", "nan"):
            evaluator.compile(config(name, backend))
            evaluator.event()
        evaluator.measure(0, config("right", backend))
        evaluator._start_measuring()
        assert evaluator.pool.measurer.jobs
        evaluator.measure(1, config("nan", backend))
        evaluator.submit(2, config("device fault", backend))
        evaluator.abandon()
        assert not evaluator.in_flight
        assert not list(evaluator.pool.spool.glob("*.pickle"))
        assert evaluator.verify(config("right", backend)).outcome is Outcome.OK


def test_one_text_is_compiled_once(once: Path) -> None:
    protocol = replace(PROTOCOL, compile_limit_s=10.0)
    with Evaluator(
        CASE, "cpu", protocol, predict, compiler=counted_compiler, renderer=same_renderer, opener=open_cpu
    ) as evaluator:
        evaluator.compile(config("right"))
        first = evaluator.event()
        evaluator.compile(config("idle"))
        second = evaluator.event()
        assert isinstance(first, Compiled)
        assert isinstance(second, Compiled)
        assert first.trial.key != second.trial.key
        assert first.trial.binary_digest == second.trial.binary_digest == "digest of right"
        assert second.trial.resources == first.trial.resources
        evaluator.measure(3, config("idle"))
        assert evaluator.next().number == 3
    assert once.read_text() == "compiled\n"


@pytest.mark.parametrize("how", [renderer, broken_renderer])
def test_workers_of_a_gpu_get_ready_for_what_is_expected(how: Renderer) -> None:
    """Nothing is lost where an example, which may never be tried, costs them their lives."""
    with Evaluator(CASE, "0", PROTOCOL, compiler=compiler, renderer=how, opener=open_cuda) as evaluator:
        evaluator.prepare([EXAMPLE, config("right", "cuda")])
        assert evaluator.in_flight == 0
        started = {worker.process.pid for worker in evaluator.pool.workers()}
        assert len(started) == evaluator.compile_workers + 1
        evaluator.submit(7, config("right", "cuda"))
        found = evaluator.next()
        (final,) = evaluator.finals([config("right", "cuda")])
        kept = {worker.process.pid for worker in evaluator.pool.workers()} & started
    assert (found.number, found.outcome) == (7, Outcome.OK)
    assert final.final
    assert len(kept) == (len(started) if how is renderer else 0)


def test_nothing_runs_beside_what_a_processor_measures(evaluator: Evaluator) -> None:
    before = len(list(evaluator.pool.workers()))
    evaluator.prepare([config("right")])
    assert len(list(evaluator.pool.workers())) == before


def test_a_device_that_cannot_be_opened_is_told() -> None:
    with pytest.raises(DeviceUnavailableError, match="plug one in"):
        Evaluator(CASE, "cpu", PROTOCOL, compiler=compiler, renderer=renderer, opener=open_nothing)


def test_a_worker_that_takes_too_long_to_start_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "START_LIMIT_S", 0.01)
    late = "start took longer than 0.01 s; if other programs load the machine, try again when they have ended"
    with pytest.raises(DeviceUnavailableError, match=f"^the measuring process could not start: {late}.$"):
        Evaluator(CASE, "cpu", PROTOCOL, predict, compiler=compiler, renderer=renderer, opener=open_late)


def test_closing_leaves_no_process_and_no_file() -> None:
    evaluator = Evaluator(CASE, "cpu", PROTOCOL, compiler=compiler, renderer=renderer, opener=open_cpu)
    ask(evaluator, "right")
    workers = [worker.process.pid for worker in evaluator.pool.workers()]
    assert len(workers) == 2
    assert all(map(_alive, workers))
    evaluator.close()
    assert not evaluator.pool.spool.exists()
    assert not any(map(_alive, workers))


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    """Even one that is stuck in a kernel and reads no pipe."""
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent("""
        from tests.support.devices.fake_device import CASE, compiler, config, open_cpu, renderer
        from lbmtune.measure.workers.evaluate import Evaluator
        from lbmtune.records.spec import TimingProtocol

        def tell(number, stage):
            if stage == "verify":
                print(*(worker.process.pid for worker in evaluator.pool.workers()), flush=True)

        with Evaluator(CASE, "cpu", TimingProtocol(), compiler=compiler, renderer=renderer, opener=open_cpu,
                       on_stage=tell) as evaluator:
            evaluator.submit(0, config("endless"))
            evaluator.next()
        """)
    )
    path = str(ROOT)
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)},
    )
    assert parent.stdout
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    until(lambda: not any(map(_alive, workers)))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv(ONCE, str(tmp_path / "once"))
    return tmp_path / "once"


@contextmanager
def opened(protocol: TimingProtocol = PROTOCOL) -> Iterator[Evaluator]:
    with Evaluator(CASE, "cpu", protocol, predict, compiler=compiler, renderer=renderer, opener=open_cpu) as found:
        yield found


def test_workers_may_be_left_running_for_the_next_case() -> None:
    wider = replace(CASE, domain=(2 * CASE.domain[0], *CASE.domain[1:]))
    with WorkerPool(open_cpu, PROTOCOL) as pool:
        processes, sites = [], []
        for case in (CASE, wider):
            with Evaluator(case, "cpu", PROTOCOL, compiler=compiler, renderer=renderer, pool=pool) as evaluator:
                (trial,) = evaluator.finals([config("right")])
            assert trial.final
            processes.append([worker.process.pid for worker in pool.workers()])
            sites.append(trial.final.sites)
    assert processes[0] == processes[1]
    assert sites == [CASE.fluid_sites, wider.fluid_sites]


@pytest.mark.parametrize("fault", ["killed once", "compiler killed once"])
def test_a_worker_that_something_else_kills_costs_no_trial(once: Path, fault: str) -> None:
    with opened() as evaluator:
        trial = ask(evaluator, fault)
        assert once.exists()
        assert trial.outcome is Outcome.OK, trial.reason


def test_a_worker_that_something_else_kills_costs_no_finalist(once: Path) -> None:
    """Neither in the proof at full size, nor in the interleaved rounds, nor in the run of seconds."""
    with opened() as evaluator:
        once.touch()
        assert ask(evaluator, "killed once").outcome is Outcome.OK
        once.unlink()
        trials = evaluator.finals([config("killed once"), config("right")])
        assert once.exists()
        assert [bool(trial.final) for trial in trials] == [True, True]
        once.unlink()
        (trial,) = evaluator.sustained([config("killed once")], [True], PROTOCOL.sustained_s)
        assert once.exists()
        assert trial.sustained


def test_a_kill_for_want_of_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kills = count()
    monkeypatch.setattr(workers.quotas, "oom_kills", lambda: next(kills))
    with opened() as evaluator:
        trial = ask(evaluator, "killed")
    assert trial.outcome is Outcome.OUT_OF_MEMORY
    assert trial.reason == "killed by the system for want of memory during verify"


def test_interleaved_rounds_are_repeated_once_after_a_kill(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []

    def kill_first(_number: int, stage: str) -> None:
        if stage == "finals, number 1" and not killed:
            killed.append(evaluator.pool.measurer.process.pid)
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(evaluator, "_on_stage", kill_first)
    trials = evaluator.finals([config("right"), config("right")])
    assert killed
    assert evaluator.pool.measurer.process.pid not in killed
    assert all(trial.final for trial in trials)


@pytest.mark.parametrize("fault", ["full disk", "compiler on a full disk"])
def test_a_full_disk_is_no_outcome_of_a_kernel(fault: str) -> None:
    with opened() as evaluator:
        with pytest.raises(InputError, match=r"^cannot write .*(space|quota).*; make room") as told:
            ask(evaluator, fault)
        assert ("/cache/lbm.nbc" in str(told.value)) == (fault != "full disk")


def test_a_log_without_room_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usual = Path.open

    def full(path: Path, *mode: str, **options: str) -> object:
        if path.name == "log":
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return usual(path, *mode, **options)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(InputError, match=r"cannot write .*log: Read-only file system; make room"):
        workers.Worker("measure", open_cpu, {}, tmp_path / "log")


def test_a_slow_machine_is_no_hang_and_a_hang_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_WALL_FACTOR", 1e3)
    with opened(replace(PROTOCOL, compile_limit_s=1.0)) as evaluator:
        slow = ask(evaluator, "slow compilation")
        assert slow.outcome is Outcome.OK
        assert slow.costs.compile_s > 1.0
        monkeypatch.setattr(workers, "_WALL_FACTOR", 2)
        hanging = ask(evaluator, "endless compilation")
        assert (hanging.outcome, hanging.reason) == (Outcome.TIMED_OUT, "compile took longer than 2 s")
        assert hanging.costs.compile_s >= 2.0


@pytest.mark.parametrize("fault", ["forks", "forks and dies"])
def test_what_a_kernel_forks_ends_with_its_worker(once: Path, fault: str) -> None:
    """Also one in a session of its own; one that holds the pipe hides no death, or its worker would be timed out."""
    with opened() as evaluator:
        trial = ask(evaluator, fault)
        assert trial.outcome is (Outcome.OK if fault == "forks" else Outcome.CRASHED)
        assert "exit code 3 during verify" in trial.reason or fault == "forks"
        forked = int(once.read_text())
        assert fault == "forks and dies" or _alive(forked)
    until(lambda: not _alive(forked))


def test_logs_are_bounded() -> None:
    with opened() as evaluator:
        assert ask(evaluator, "chatter").outcome is Outcome.OK
        evaluator.pool.poll(0.0)
        assert all(path.stat().st_size <= 2 << 20 for path in evaluator.pool.spool.glob("*.log"))
