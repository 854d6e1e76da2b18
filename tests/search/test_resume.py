"""A study that is killed goes on: nothing recorded is lost, nothing is tried twice."""

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from optuna.storages import JournalStorage

from lbmtune import api
from lbmtune.backend.registry import open_device
from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.problem.flows import box
from lbmtune.errors import InputError
from lbmtune.records import SCHEMA_VERSION, Costs, Outcome, Trial
from lbmtune.records.spec import Budget
from lbmtune.records.store import append_trial, read_study
from lbmtune.records.whole_files import HEADER, TRIALS
from lbmtune.search import lock
from lbmtune.search.finals import finalists_of
from lbmtune.search.joint.ledger import open_storage
from lbmtune.search.joint.sharing import joint
from lbmtune.search.lock import device_lock, device_locks, folder_lock
from lbmtune.search.loop import budget_left
from lbmtune.search.optuna_view.storage import JOURNAL, Journal, optuna_name, write_journal
from lbmtune.search.study import run_study
from tests.support.paths import ROOT
from tests.support.studies.fake_study import DEVICE_ID, FakeEvaluator, header, machine, search, space_of, spec


def resume(folder, study=None, evaluator=None):
    study = study or spec()
    evaluator = evaluator or FakeEvaluator()
    return run_study(search(folder, evaluator), header(study), space_of(study), resume=True), evaluator


def begun(folder, trials=8, **changes):
    study = spec(budget=Budget(trials=trials), **changes)
    return run_study(search(folder, FakeEvaluator()), header(study), space_of(study))


def same_measurements(before, after):
    """Whether everything that was measured before is still there, unchanged."""
    kept = {trial.number: trial for trial in after.trials}
    return all(kept[t.number].measurement == t.measurement and kept[t.number].key == t.key for t in before.trials)


@pytest.mark.parametrize("stage", ["compile", "verify", "measure", "finals"])
def test_kill_9_in_every_stage(tmp_path, stage):
    number = 0 if stage == "finals" else 9
    program = [sys.executable, "-m", "tests.support.studies.fake_study", str(tmp_path), stage, str(number)]
    killed = subprocess.run(program, env=with_path(), check=False)
    assert killed.returncode == -signal.SIGKILL
    before = read_study(tmp_path)
    assert len(before.trials) == 20 if stage == "finals" else 0 < len(before.trials) < 12
    after, evaluator = resume(tmp_path)
    assert same_measurements(before, after)
    assert not {trial.key for trial in before.trials} & set(evaluator.tried)
    assert len(after.trials) == len({trial.key for trial in after.trials}) == 20
    assert {t.number for t in after.trials if t.final} == {t.number for t in finalists_of(after)}


def test_kill_9_of_a_study_on_the_processor(tmp_path):
    """While it compiles, verifies and measures, real kernels in real workers; what it had is there each time."""
    program = [sys.executable, "-m", "tests.support.studies.cpu_study", str(tmp_path / "study")]
    environment = {**with_path(), "LBMTUNE_CACHE": str(tmp_path / "kernels")}  # so that each kernel is compiled once
    runs = []
    for stage, number in (("compile", "2"), ("verify", "2"), ("measure", "3")):
        killed = subprocess.run([*program, stage, number], env=environment, check=False)
        assert killed.returncode == -signal.SIGKILL, stage
        runs.append(read_study(tmp_path / "study"))
        assert 0 < len(runs[-1].trials) < 4
    subprocess.run(program, env=environment, check=True)
    runs.append(read_study(tmp_path / "study"))
    assert all(same_measurements(before, after) for before, after in pairwise(runs))
    before, after = runs[-2:]
    assert len(after.trials) == len({trial.key for trial in after.trials}) == 4
    first = (tmp_path / "study" / TRIALS).read_bytes().splitlines()[: len(before.trials)]
    assert [line for line in first if b'"final":null' in line] == first
    finals = [trial for trial in after.trials if trial.final]
    assert {trial.number for trial in finals} == {trial.number for trial in finalists_of(after)}
    assert all(trial.verification.full_size for trial in finals)


def test_kill_9_again_and_again(tmp_path):
    for number in (2, 6, 10, 14):
        program = [sys.executable, "-m", "tests.support.studies.fake_study", str(tmp_path), "measure", str(number)]
        assert subprocess.run(program, env=with_path(), check=False).returncode == -signal.SIGKILL
    before = read_study(tmp_path)
    after, _ = resume(tmp_path)
    assert same_measurements(before, after)
    assert len({trial.key for trial in after.trials}) == 20


def with_path():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_a_record_that_optuna_never_heard_of_is_kept(tmp_path, monkeypatch):
    def die(*_):
        raise KeyboardInterrupt

    study = spec(budget=Budget(trials=8))
    with monkeypatch.context() as patched:
        patched.setattr("lbmtune.search.optuna_view.storage.write_journal", die)
        with pytest.raises(KeyboardInterrupt):
            run_study(search(tmp_path, FakeEvaluator()), header(study), space_of(study))
    before = read_study(tmp_path)
    assert len(before.trials) == 8
    after, evaluator = resume(tmp_path)
    assert same_measurements(before, after)
    assert before.trials[0].key not in evaluator.tried
    assert told(tmp_path) >= {trial.number for trial in after.trials}


def told(folder):
    import optuna

    trials = optuna.load_study(
        study_name=optuna_name(header(spec())), storage=JournalStorage(Journal(folder / JOURNAL))
    ).trials
    assert all(trial.state.is_finished() for trial in trials)
    return {trial.user_attrs["lbmtune:number"] for trial in trials}


def test_a_torn_last_line_costs_that_trial_alone(tmp_path):
    begun(tmp_path)
    path = tmp_path / TRIALS
    whole = read_study(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    before = read_study(tmp_path)
    after, _ = resume(tmp_path)
    assert len(whole.trials) == 8
    assert same_measurements(before, after)
    assert len(after.trials) == 20


@pytest.mark.parametrize("damage", ["missing", "garbage", "cut", "empty"])
def test_optuna_is_rebuilt_from_the_records(tmp_path, damage):
    begun(tmp_path)
    kept = tmp_path / JOURNAL
    content = kept.read_bytes()
    kept.unlink()
    if damage != "missing":
        kept.write_bytes({"garbage": b"no journal" * 999, "cut": content[: len(content) // 3], "empty": b""}[damage])
    after, _ = resume(tmp_path)
    assert len(after.trials) == 20
    assert told(tmp_path) >= {trial.number for trial in after.trials}


def test_a_journal_is_written_in_one_piece(tmp_path, monkeypatch):
    trials = begun(tmp_path, trials=20).trials
    configs = space_of(spec()).configs
    forced, force = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (forced.append(file), force(file)))
    write_journal(tmp_path / JOURNAL, header(spec()), configs, trials)
    assert len(forced) == 1
    assert told(tmp_path) == {trial.number for trial in trials}
    (tmp_path / f"{JOURNAL}.lock").write_text("of a process that was killed")
    write_journal(tmp_path / JOURNAL, header(spec()), configs, trials)
    assert len(forced) == 2
    assert told(tmp_path) == {trial.number for trial in trials}


def test_a_database_hears_of_each_trial_once(tmp_path):
    url = f"sqlite:///{tmp_path / 'mine.db'}"
    for trials in (8, 20):
        study = spec(budget=Budget(trials=trials))
        space = space_of(study)
        with joint(open_storage(url), search(tmp_path, FakeEvaluator()), header(study), space) as found:
            run_study(found, header(study), space, resume=trials > 8)
    import optuna

    kept = optuna.load_study(study_name=optuna_name(header(spec())), storage=url)
    record = read_study(tmp_path)
    assert sorted(trial.user_attrs["key"] for trial in kept.trials) == sorted(trial.key for trial in record.trials)
    assert len(record.trials) == 20
    finals = {trial.key: trial.final.mlups for trial in record.trials if trial.final}
    assert finals
    assert kept.user_attrs["final_mlups"] == finals


def test_a_finished_study_does_nothing_more(tmp_path):
    before = begun(tmp_path)
    after, evaluator = resume(tmp_path, spec(budget=Budget(trials=8)))
    assert evaluator.tried == evaluator.finalists == []
    assert after == before


def test_a_resumed_study_is_of_the_version_that_resumed_it(tmp_path):
    """An older one would take outcomes that it does not know for damage."""
    begun(tmp_path)
    kept = json.loads((tmp_path / HEADER).read_text())
    (tmp_path / HEADER).write_text(json.dumps(kept | {"schema": SCHEMA_VERSION - 1}))
    assert resume(tmp_path)[0].header.schema == read_study(tmp_path).header.schema == SCHEMA_VERSION


def test_more_budget_goes_on_and_new_finals_replace_the_old(tmp_path):
    endless = {"strategy": "list"}  # it cannot tell when to stop
    begun(tmp_path, **endless)
    after, evaluator = resume(tmp_path, spec(budget=Budget(trials=60), **endless))
    assert len(evaluator.tried) == 52
    assert {trial.key for trial in after.trials if trial.final} == set(evaluator.finalists)


def test_the_seconds_of_earlier_runs_count(tmp_path):
    study = spec(budget=Budget(trials=100, seconds=1.0))
    for trial in begun(tmp_path, trials=4).trials:
        append_trial(tmp_path, replace(trial, costs=replace(trial.costs, measure_s=5.0)))
    _, evaluator = resume(tmp_path, study)
    assert evaluator.tried == []


def test_another_device_is_refused(tmp_path):
    begun(tmp_path)
    study = spec()
    other = header(study)
    other = replace(other, environment=replace(other.environment, device_id="uuid-of-another"))
    with pytest.raises(InputError, match=f"begun with device_id '{DEVICE_ID}' and this is 'uuid-of-another'"):
        run_study(search(tmp_path, FakeEvaluator()), other, space_of(study), resume=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("driver", "9"), ("compiler", "NVRTC 1"), ("runtime", "1"), ("ecc", True), ("power_limit_w", 9.0)],
)
def test_another_environment_is_refused(tmp_path, name, value):
    begun(tmp_path)
    other = header(spec())
    other = replace(other, environment=replace(other.environment, **{name: value}))
    with pytest.raises(InputError, match=f"begun with {name} .* and this is {value!r}; resume it there"):
        run_study(search(tmp_path, FakeEvaluator()), other, space_of(spec()), resume=True)


def test_another_version_is_refused(tmp_path):
    begun(tmp_path)
    newer = replace(header(spec()), version="1")
    with pytest.raises(InputError, match="begun with lbmtune '0' and this is '1'"):
        run_study(search(tmp_path, FakeEvaluator()), newer, space_of(spec()), resume=True)


def test_a_resumed_study_knows_its_best(tmp_path):
    before = begun(tmp_path)
    evaluator = FakeEvaluator()
    resume(tmp_path, evaluator=evaluator)
    best = max(trial.measurement.mlups for trial in before.trials if trial.mlups)
    assert evaluator.incumbent_s == pytest.approx(before.header.spec.case.sites / best / 1e6)


def test_two_processes_do_not_share_a_folder(tmp_path):
    begun(tmp_path)
    before = read_study(tmp_path)
    with folder_lock(tmp_path), pytest.raises(InputError, match="another process works on the study in"):
        resume(tmp_path)
    assert read_study(tmp_path) == before
    assert len(resume(tmp_path)[0].trials) == 20


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_two_runs_do_not_share_a_device(tmp_path, monkeypatch, backend):
    """Whatever the cache is; the cores of a host are one device."""
    one = replace(header(spec()).environment, backend=backend)
    other = replace(one, device_id="uuid-of-another")
    with device_lock(one):
        monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path))
        with pytest.raises(InputError, match=rf"^Made-up 1 is in use by process {os.getpid()} \(.*; wait for it, or "):
            device_lock(one).__enter__()
        if backend == "cuda":
            with device_lock(other):
                pass
        else:
            with pytest.raises(InputError, match="is in use"):
                device_lock(other).__enter__()
        monkeypatch.setenv("LBMTUNE_LOCKS", "of another run")
        with device_lock(one):
            pass
    with device_lock(one):
        pass


@pytest.mark.parametrize("way", ["_listening", "_holding"])
def test_either_lock_is_enough(monkeypatch, way):
    """Of two containers, which need not have a network and a folder for temporary files in common."""
    one = header(spec()).environment
    with device_lock(one):
        other = {"_listening": "_holding", "_holding": "_listening"}[way]
        monkeypatch.setattr(lock, other, lambda *_: nullcontext())
        with pytest.raises(InputError, match=rf"^Made-up 1 is in use by process {os.getpid()} \("):
            device_lock(one).__enter__()
    with device_lock(one):
        pass


def test_a_lock_leaves_no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(lock, "_SHARED", tmp_path)

    def interrupted():
        with device_lock(header(spec()).environment):
            (file,) = tmp_path.iterdir()
            assert file.stat().st_mode & 0o777 == 0o644
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_a_device_is_locked_where_there_is_no_folder_for_the_file(monkeypatch, tmp_path):
    one = header(spec()).environment
    monkeypatch.setattr(lock, "_SHARED", tmp_path / "gone")
    with device_lock(one), pytest.raises(InputError, match="is in use"):
        device_lock(one).__enter__()


def test_several_devices_are_locked_together(tmp_path):
    one = header(spec()).environment
    other = replace(one, device="Made-up 2", device_id=f"another than {one.device_id}")
    with device_locks([one, other]):
        for taken in (one, other):
            with pytest.raises(InputError, match=f"^{taken.device} is in use by process"):
                device_lock(taken).__enter__()
    with device_lock(other), pytest.raises(InputError, match=r"^Made-up 2 is in use"), device_locks([one, other]):
        pass
    with device_lock(one):
        pass


@pytest.mark.parametrize(("devices", "left_s"), [(("", "", "", ""), 60.0), (("", "another", "", ""), 70.0)])
def test_the_time_of_earlier_runs_is_that_of_the_busiest_device(devices, left_s):
    done = [
        Trial(
            number=n,
            key=str(n),
            config={},
            outcome=Outcome.OK,
            costs=Costs(compile_s=99.0, verify_s=1.0, measure_s=9.0),
            device=device,
        )
        for n, device in enumerate(devices)
    ]
    assert budget_left(spec(budget=Budget(search_seconds=100.0, trials=9)), done) == (5, left_s)


HOLDER = """
import sys
from lbmtune.backend.registry import open_device
from lbmtune.search.lock import device_lock
with device_lock(open_device("cpu").environment):
    print("held", flush=True)
    input()
"""


def test_whatever_times_a_device_is_refused_while_another_process_has_it(monkeypatch):
    ways = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", HOLDER, "a-study.toml"]
    with subprocess.Popen(command, env=ways, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        case, config = box("d2q9", "bgk", (16, 12, 1)), {"backend": "cpu", "threads": 1}
        monkeypatch.setattr("lbmtune.api.machines.measured_machines.measured_machine", lambda *_, **__: machine())
        verbs = [partial(verb, case, config) for verb in (api.verify, api.accuracy, api.measure)]
        for verb in (*verbs, partial(api.profile, case, from_flat(config))):
            with pytest.raises(InputError, match=rf"is in use by process {holder.pid} \({sys.executable} -c"):
                verb("cpu")
        holder.kill()
    with device_lock(open_device("cpu").environment):
        pass


def test_runs_of_the_tests_beside_each_other_have_made_up_devices_of_their_own():
    """Also where they share a cache, and the locks in it; one's own programs have the same (`test_kill_9_...`)."""
    others = {name: value for name, value in os.environ.items() if name != "MADE_UP_DEVICE"}
    others["PYTHONPATH"] = str(ROOT)
    shown = [sys.executable, "-c", "from tests.support.studies import fake_study; print(fake_study.DEVICE_ID)"]
    found = subprocess.run(shown, env=others, capture_output=True, text=True, check=True).stdout.strip()
    assert found.startswith("uuid-")
    assert found != DEVICE_ID


@pytest.mark.parametrize("change", [{"seed": 2}, {"objective": "footprint"}])
def test_another_question_is_refused(tmp_path, change):
    begun(tmp_path)
    with pytest.raises(InputError, match=f"holds a study with {next(iter(change))} .*; only the budget can change"):
        resume(tmp_path, spec(**change))


SPACES = (
    {"scheme": ("aa", "pull"), "block": ("32x1x1",), "cells_per_thread": (1, 2)},
    {"scheme": ("push",), "block": ("64x1x1",), "wrap": ("arithmetic", "ghost")},
)


def test_a_union_of_spaces_goes_on_and_is_used_up(tmp_path):
    begin = spec(axes=SPACES, budget=Budget(trials=4, sample=2))
    before = run_study(search(tmp_path, FakeEvaluator()), header(begin), space_of(begin))
    assert before.header.spec == begin == read_study(tmp_path).header.spec
    after, evaluator = resume(tmp_path, spec(axes=SPACES, budget=Budget(trials=20, sample=2)))
    assert same_measurements(before, after)
    assert {trial.key for trial in after.trials} == {config.key for config in space_of(begin).configs}
    assert len(after.trials) == 6
    assert len(evaluator.tried) == 2


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((SPACES[0], {**SPACES[1], "wrap": ("ghost",)}), r"with axes.cuda\[2\].wrap arithmetic, ghost, .* ghost;"),
        ((SPACES[0],), "with axes.cuda.*this one has"),
    ],
)
def test_another_union_of_spaces_is_refused(tmp_path, axes, message):
    begin = spec(axes=SPACES, budget=Budget(trials=2))
    run_study(search(tmp_path, FakeEvaluator()), header(begin), space_of(begin))
    with pytest.raises(InputError, match=message):
        resume(tmp_path, spec(axes=axes))


def test_a_folder_with_a_study_is_not_overwritten(tmp_path):
    before = begun(tmp_path)
    with pytest.raises(InputError, match="--resume"):
        begun(tmp_path)
    assert read_study(tmp_path) == before
