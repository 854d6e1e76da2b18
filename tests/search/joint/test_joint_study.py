"""Workers that share a study: nothing is measured twice or lost, whoever dies or comes late."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import optuna
import pytest
from optuna.exceptions import StorageInternalError

from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Outcome, Trial
from lbmtune.records.spec import Budget
from lbmtune.records.store import read_study, write_header
from lbmtune.search.interfaces import Search
from lbmtune.search.joint.ledger import LOST_S, Ledger, begin, open_storage, searching
from lbmtune.search.joint.sharing import SharedEvaluator, SharedStrategy, gather, joint
from lbmtune.search.optuna_view.storage import optuna_name
from lbmtune.search.study import run_study
from tests.support.paths import ROOT
from tests.support.studies import replayed
from tests.support.studies.fake_study import ACCURACY, FakeEvaluator
from tests.support.studies.replayed import ReplayedEvaluator, search_in, studied, usable_set
from tests.support.waiting import until

RECORD = usable_set()
HEADER, SPACE = studied(RECORD)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every look be a new one."""
    monkeypatch.setattr("lbmtune.search.joint.ledger._FRESH_S", 0.0)


@dataclass
class Clock:
    """The time by which a worker tells how long ago another has beaten."""

    now_s: float = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    told = SimpleNamespace(monotonic=lambda: clock.now_s, sleep=time.sleep)
    monkeypatch.setattr("lbmtune.search.joint.ledger.time", told)
    return clock


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'joint.db'}"


def replaying() -> Search:
    return search_in(Path(), RECORD, ReplayedEvaluator(RECORD))


def worker(role: str, url: str, folder: Path, each_s: float, dies_at: int = -1) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    asked = (role, url, str(folder), str(each_s), str(dies_at))
    return subprocess.Popen([sys.executable, "-m", replayed.__name__, *asked])


def alone(folder: Path) -> tuple[str, float]:
    found = run_study(search_in(folder, RECORD, ReplayedEvaluator(RECORD)), HEADER, SPACE)
    assert found.winner
    return found.winner.key, found.winner.mlups or 0.0


def check(folder: Path, url: str) -> None:
    """Check that the study holds each configuration once, as the ledger does."""
    found = read_study(folder)
    assert Counter(trial.key for trial in found.trials) == Counter(config.key for config in SPACE.configs)
    assert found.finished
    with Ledger(open_storage(url), "replayed", SPACE.configs) as ledger:
        assert Counter(t.key for t in ledger.results()) == Counter(config.key for config in SPACE.configs)
        assert not ledger.running()
    kept = optuna.load_study(study_name=optuna_name(HEADER), storage=url)
    assert kept.metric_names == ["MLUPS"]
    states = Counter(trial.state.name for trial in kept.trials)
    assert states["RUNNING"] == 0
    complete = [trial.user_attrs["key"] for trial in kept.trials if trial.state.name == "COMPLETE"]
    assert len(complete) == len(set(complete))
    assert kept.user_attrs["final_mlups"] == {t.key: t.final.mlups for t in found.trials if t.final}


def test_one_process_alone_finds_what_it_finds_without_a_storage(tmp_path: Path, url: str) -> None:
    search = search_in(tmp_path / "joint", RECORD, ReplayedEvaluator(RECORD))
    with joint(open_storage(url), search, HEADER, SPACE) as found:
        record = run_study(found, HEADER, SPACE)
    assert record.winner
    assert (record.winner.key, record.winner.mlups) == alone(tmp_path / "alone")
    check(tmp_path / "joint", url)


def test_three_workers_of_which_one_is_killed_and_one_is_late(tmp_path: Path, url: str) -> None:
    three_share(tmp_path, url)


def three_share(tmp_path: Path, url: str) -> None:
    """Lead with one process; let a second be killed in the middle of its second trial, and a third come late."""
    lead = worker("lead", url, tmp_path / "lead", 1.0)
    until_begun(url, lead)
    killed = worker("help", url, tmp_path / "killed", 0.03, dies_at=1)
    assert killed.wait() == -signal.SIGKILL
    late = worker("help", url, tmp_path / "late", 0.03)
    assert lead.wait() == late.wait() == 0
    check(tmp_path / "lead", url)
    found = read_study(tmp_path / "lead")
    assert found.winner
    assert (found.winner.key, found.winner.mlups) == alone(tmp_path / "alone")
    kept = optuna.load_study(study_name=optuna_name(HEADER), storage=url).trials
    void = Counter(trial.user_attrs["lbmtune:void"] for trial in kept if "lbmtune:void" in trial.user_attrs)
    assert void["worker lost"] >= 1


def until_begun(url: str, lead: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        try:
            with Ledger(open_storage(url), "replayed", SPACE.configs) as ledger:
                if ledger.taken():
                    return
        except InputError:
            pass
        assert lead.poll() is None
        time.sleep(0.1)
    pytest.fail("the study has not begun")


def test_a_leader_that_was_killed_goes_on_with_what_the_others_found(tmp_path: Path, url: str) -> None:
    lead = worker("lead", url, tmp_path / "lead", 0.02, dies_at=4)
    assert lead.wait() == -signal.SIGKILL
    helper = worker("help", url, tmp_path / "help", 0.0)
    assert helper.wait() == 0
    with Ledger(open_storage(url), "replayed", SPACE.configs, replayed.BEAT_S) as ledger:
        known = {trial.key for trial in ledger.results()}
    # the other may have ended before what the dead had under way was free again
    lost = {config.key for config in SPACE.configs} - known
    assert len(lost) <= 5
    lost -= {trial.key for trial in read_study(tmp_path / "lead").trials}
    tries = ReplayedEvaluator(RECORD)
    search = search_in(tmp_path / "lead", RECORD, tries)
    with joint(open_storage(url), search, HEADER, SPACE, replayed.BEAT_S) as found:
        run_study(found, HEADER, SPACE, resume=True)
    assert Counter(tries.tried) == Counter(lost), "each once, and nothing that is on disk"
    check(tmp_path / "lead", url)


def ledgers(url: str, count: int, beat_s: float = 5.0) -> Iterator[Ledger]:
    begin(open_storage(url), optuna_name(HEADER), HEADER)
    for _ in range(count):
        yield Ledger(open_storage(url), "replayed", SPACE.configs, beat_s)


def test_a_configuration_has_one_holder(url: str) -> None:
    one, other = ledgers(url, 2)
    config, *_ = SPACE.configs
    with one, other:
        number = one.claim(config)
        assert number is not None
        assert other.claim(config) is None
        assert one.claim(config) is None
        assert other.taken() == {config.key} == other.running()
        assert not one.running()
        trial = replace(RECORD.trials[0], number=99)
        assert trial.key == config.key
        one.finish(number, trial)
        one.flush()
        assert other.results() == [replace(trial, number=number)]
        assert other.claim(config) is None
        assert not other.running()


def test_the_end_of_the_search_holds_for_all_workers(url: str) -> None:
    one, other = ledgers(url, 2)
    first, second, *_ = SPACE.configs
    with one, other:
        one.claim(first)
        other.claim(second)
        assert [other.is_over(trials) for trials in (0, 1, 2, 3)] == [False, True, True, False]
        working = SharedEvaluator(replaying(), other, {})
        assert working.measure_room() > 0 < working.compile_room(0)
        one.end_search()
        assert [other.is_over(trials) for trials in (0, 3)] == [True, True]
        assert working.measure_room() == working.compile_room(0) == 0
    begin(open_storage(url), optuna_name(HEADER), HEADER)  # as one that goes on
    with Ledger(open_storage(url), "replayed", SPACE.configs) as again:
        assert not again.is_over(0)


def test_a_worker_that_comes_second_measures_something_else(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = ledgers(url, 2)
    first, second, third, *_ = SPACE.configs

    class InOrder:
        def next(self, ready: list[int]) -> int:
            return min(ready)

    with one, other:
        claims: dict[str, int] = {}
        strategy = SharedStrategy(InOrder(), SPACE.configs, other, claims)  # type: ignore[arg-type]
        evaluator = SharedEvaluator(replaying(), other, claims)
        monkeypatch.setattr(strategy, "_taken", set[int])
        assert one.claim(first) is not None  # between the look and the claim of the other
        assert strategy.next([0, 1, 2]) == 1
        assert claims.keys() == {second.key} == one.running()
        evaluator.measure(7, second)
        assert not claims
        found = evaluator.event()
        assert isinstance(found, Trial)
        assert (found.number, found.key) == (7, second.key)
        other.flush()
        assert [trial.key for trial in one.results()] == [second.key]
        assert one.claim(third) is not None
        assert strategy.next([0, 2]) == 0, "others have all of it: its trial is waited for"


def test_what_others_measure_is_taken_over_when_their_last_beat_is_long_ago(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """Whichever look finds it: also the one that finds nothing else under way."""
    one, other = ledgers(url, 2)
    search = search_in(tmp_path / "lead", RECORD, tries := ReplayedEvaluator(RECORD))
    write_header(search.folder, HEADER)
    config, *_ = SPACE.configs
    assert other.claim(config) is not None  # it never beats
    looks = [{config.key}, {config.key}]
    real = one.running
    monkeypatch.setattr(one, "running", lambda: looks.pop() if looks else real())
    with one:
        one.taken()
        clock.now_s += LOST_S  # lost at the first look that is real
        gather(search, one, SPACE.configs)
        assert tries.tried == [config.key] == [trial.key for trial in one.results()]
    assert [trial.key for trial in read_study(search.folder).trials] == [config.key]


def test_a_trial_with_a_known_accuracy_counts_for_all_workers(tmp_path: Path, url: str) -> None:
    """Of the leader, of another worker, and what the leader measures when the search is over."""
    header = replace(HEADER, spec=replace(HEADER.spec, objective="accuracy"))
    first, second, *_ = SPACE.configs
    accuracy = replace(ACCURACY, after=ACCURACY.points[0])
    known = replace(search_in(tmp_path, RECORD, ReplayedEvaluator(RECORD)), known_accuracy=lambda _: accuracy)
    storage = open_storage(url)
    with joint(storage, known, header, SPACE, replayed.BEAT_S) as leading:
        other = Ledger(storage, "replayed", SPACE.configs, replayed.BEAT_S)
        other.claim(second)  # it never beats: the leader measures it at the end
        with Ledger(storage, "replayed", SPACE.configs, replayed.BEAT_S) as ledger:
            helping = SharedEvaluator(replace(known, evaluator=ReplayedEvaluator(RECORD)), ledger, {})
            helping.measure(0, first)
            helping.event()
            ledger.flush()
        run_study(leading, header, SPACE)
    kept = optuna.load_study(study_name=optuna_name(header), storage=url).trials
    fast = {trial.key for trial in RECORD.trials if trial.mlups}
    complete = {trial.user_attrs["key"]: trial.values for trial in kept if trial.state.name == "COMPLETE"}
    assert complete == {key: [accuracy.error] for key in fast}
    found = read_study(tmp_path)
    assert {trial.key for trial in found.trials} == {trial.key for trial in RECORD.trials}
    assert {trial.accuracy for trial in found.trials} == {accuracy}


@pytest.mark.parametrize("own", [HEADER.environment.device_id, "GPU-of-another-host"])
def test_a_trial_says_which_device_measured_it(url: str, own: str) -> None:
    """Nothing, if it was the one of the study's environment; of several at a worker the one that had it."""
    one, ledger = ledgers(url, 2)
    first, second, *_ = SPACE.configs
    with one, ledger:
        tries = ReplayedEvaluator(RECORD)
        tries.environments = (replace(tries.environment, device_id=own),)
        evaluator = SharedEvaluator(search_in(Path(), RECORD, tries), ledger, {})
        wanted = "" if own == HEADER.environment.device_id else own
        for number, config, device in ((1, first, ""), (2, second, "another of its own")):
            tries.device = device
            evaluator.measure(number, config)
            found = evaluator.event()
            assert isinstance(found, Trial)
            assert found.device == (device or wanted)
        ledger.flush()
        assert [trial.device for trial in one.results()] == [wanted, "another of its own"]


def test_a_search_of_which_others_made_the_last_trials_says_why_it_ended(tmp_path: Path, url: str) -> None:
    header = replace(HEADER, spec=replace(HEADER.spec, budget=Budget(trials=8)))
    search, storage = search_in(tmp_path, RECORD, ReplayedEvaluator(RECORD)), open_storage(url)
    with joint(storage, search, header, SPACE) as leading:
        with Ledger(storage, "replayed", SPACE.configs) as ledger:
            helping = SharedEvaluator(replaying(), ledger, {})
            for number, config in enumerate(SPACE.configs[:5]):
                helping.measure(number, config)
                helping.event()
        run_study(leading, header, SPACE)
    found = read_study(tmp_path)
    assert len(found.trials) == 8
    assert found.header.stopped == "stopped after 3 evaluations: the limit of trials is reached"


def test_a_wait_for_nothing_is_an_error(url: str) -> None:
    (ledger,) = ledgers(url, 1)
    with ledger, pytest.raises(RuntimeError, match="nothing is compiled, measured or waited for"):
        SharedEvaluator(replaying(), ledger, {}).event()


def test_a_claim_that_was_not_measured_is_given_back_with_the_others(url: str) -> None:
    one, other = ledgers(url, 2)
    first, second, *_ = SPACE.configs
    with one, other:
        claims = {config.key: one.claim(config) or 0 for config in (first, second)}
        evaluator = SharedEvaluator(replaying(), one, claims)
        evaluator.measure(0, first)
        assert other.running() == {first.key, second.key}
        evaluator.forget()
        assert not other.running()
        assert not claims


def test_what_ends_between_two_looks_is_not_claimed_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lbmtune.search.joint.ledger._FRESH_S", 60.0)
    one, other = ledgers(url, 2)
    config, *_ = SPACE.configs
    with one, other:
        number = one.claim(config)
        assert number is not None
        evaluator = SharedEvaluator(replaying(), other, {})
        evaluator.measure(3, config)
        one.finish(number, replace(RECORD.trials[0], number=0))
        one.flush()
        found = evaluator.event()
        assert isinstance(found, Trial)
        assert (found.number, found.key) == (3, config.key)
    kept = optuna.load_study(study_name=optuna_name(HEADER), storage=url).trials
    assert len(kept) == 2, "the trial, and the claim that came second"


def test_what_does_not_compile_is_told_to_all(url: str, tmp_path: Path) -> None:
    evaluator = FakeEvaluator(fails=Outcome.COMPILE_FAILED)
    search = replace(search_in(tmp_path / "lead", RECORD, ReplayedEvaluator(RECORD)), evaluator=evaluator)
    with joint(open_storage(url), search, HEADER, SPACE) as found, pytest.raises(NothingValidError):
        run_study(found, HEADER, SPACE)
    with Ledger(open_storage(url), "replayed", SPACE.configs) as ledger:
        results = ledger.results()
    assert Counter(trial.key for trial in results) == Counter(config.key for config in SPACE.configs)
    assert {trial.outcome for trial in results} == {Outcome.COMPILE_FAILED}


def test_results_that_cannot_be_written_are_an_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise StorageInternalError("the database is gone")

    (ledger,) = ledgers(url, 1)
    with ExitStack() as left:
        left.enter_context(ledger)
        number = ledger.claim(SPACE.configs[0])
        assert number is not None
        monkeypatch.setattr(ledger._storage, "set_trial_user_attr", breaks)
        ledger.finish(number, replace(RECORD.trials[0], number=0))
        with pytest.raises(StorageInternalError, match="is gone"):
            left.close()


def test_processes_open_a_new_database_at_once(url: str) -> None:
    """They have imported what they need, so that their beginnings fall together."""
    program = (
        "from multiprocessing import get_context; from lbmtune.search.joint.ledger import open_storage; "
        f"together = [get_context('fork').Process(target=open_storage, args=({url!r},)) for _ in range(4)]; "
        "begun = [one.start() for one in together]; ended = [one.join() for one in together]; "
        "print([one.exitcode for one in together])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 0, 0, 0]\n", done.stderr


def test_a_worker_joins_the_latest_study_whose_search_is_not_over(url: str) -> None:
    storage = open_storage(url)
    for name in ("box 1", "box 2", "box 3", "boxes 4"):
        begin(storage, name, HEADER)
    Ledger(storage, "box", SPACE.configs).end_search()
    assert searching(storage, "box") == "box 2"
    assert searching(storage, "box 1") == "box 1"
    with pytest.raises(InputError, match="the search of study 'box 3' is over; begin another"):
        searching(storage, "box 3")


@pytest.mark.parametrize("language", ["bash", "python"])
def test_recipes_of_the_guide_are_programs(language: str) -> None:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs/guide/workers.md").read_text(), re.M | re.S)
    assert blocks
    for block in blocks:
        if language == "bash":
            subprocess.run(["bash", "-n"], input=block, text=True, check=True)
        else:
            compile(block, "recipe", "exec")


def test_what_a_worker_does_not_finish_is_free_again(url: str) -> None:
    one, other = ledgers(url, 2)
    config, *_ = SPACE.configs
    with other:
        with one:
            assert one.claim(config) is not None
            assert other.claim(config) is None
        assert other.claim(config) is not None


def test_a_worker_that_beats_keeps_its_trial_and_one_that_does_not_loses_it(url: str, clock: Clock) -> None:
    lives, stands, looks = ledgers(url, 3, 0.05)
    first, second, third, *_ = SPACE.configs

    def beats() -> dict[str, int]:
        trials = lives._storage.get_all_trials(lives._study)
        return {one.user_attrs["key"]: one.user_attrs["lbmtune:beat"] for one in trials}

    def time_passes() -> None:
        """After which who beats has beaten since the last look."""
        before = beats()[first.key]
        until(lambda: beats()[first.key] != before)
        clock.now_s += LOST_S

    with lives, looks:
        assert lives.claim(first) is not None
        lost = stands.claim(second)  # it never beats
        assert lost is not None
        assert looks.taken() == {first.key, second.key}
        time_passes()
        assert looks.taken() == {first.key}
        late = replace(RECORD.trials[1], number=0)
        stands.finish(lost, late)  # nobody else has it: it counts
        stands.flush()
        assert [one.key for one in looks.results()] == [second.key]
        time_passes()
        assert looks.running() == {first.key}
        lost = stands.claim(third)
        assert lost is not None
        assert third.key in looks.taken()
        time_passes()
        assert third.key not in looks.taken()
        assert looks.claim(third) is not None
        stands.finish(lost, replace(RECORD.trials[2], number=0))  # too late
        stands.flush()
        assert [one.key for one in looks.results()] == [second.key]


def test_an_unknown_study_is_refused_with_those_that_there_are(url: str) -> None:
    with pytest.raises(InputError, match="there is no study 'it' in this storage; begin it with lbmtune study"):
        Ledger(open_storage(url), "it", SPACE.configs)
    begin(open_storage(url), "made-up 1", HEADER)
    with pytest.raises(InputError, match=r"there is no study 'made' in this storage \(known: made-up 1\); begin it"):
        Ledger(open_storage(url), "made", SPACE.configs)
    assert Ledger(open_storage(url), "made-up", SPACE.configs).header == HEADER
