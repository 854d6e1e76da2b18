"""Early trials are measured again at the end of the search, few and in a new process."""

from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.records import Outcome, Trial
from lbmtune.records.store import append_trial, read_study, write_header
from lbmtune.records.study import StudyRecord
from lbmtune.search import visits
from lbmtune.search.visits import chosen_trials, visit_again
from tests.support.studies.fake_study import FakeEvaluator, header, measurement, search, space_of, spec, unlimited


class Slow(FakeEvaluator):
    """Each visit is one per cent faster than the first measurement."""

    def next(self) -> Trial:
        assert self.incumbent_s is None
        answer = super().next()
        self.incumbent_s = 1.0
        return replace(answer, measurement=answer.measurement and replace(answer.measurement, mlups=1010.0))


def searched(folder: Path, seconds: float, count: int = 40, **changes: object) -> StudyRecord:
    """Write a study whose search took some time, and return it."""
    study = spec()
    write_header(folder, header(study))
    for number, config in enumerate(space_of(study).configs[:count]):
        found = Trial(
            number=number,
            key=config.key,
            config=config.flat(),
            outcome=Outcome.OK,
            measurement=replace(measurement(config), mlups=1000.0),
            elapsed_s=seconds * (number + 1) / count,
        )
        append_trial(folder, replace(found, **changes))  # type: ignore[arg-type]
    return read_study(folder)


def test_early_trials_are_visited_in_a_new_process(tmp_path: Path) -> None:
    before = searched(tmp_path, 300)
    evaluator = Slow()
    evaluator.incumbent_s = 0.5
    visit_again(search(tmp_path, evaluator), unlimited())
    record = read_study(tmp_path)
    seen = [trial for trial in record.trials if trial.again]
    assert evaluator.restarts == 1
    assert evaluator.incumbent_s == 0.5
    assert 6 <= len(seen) <= 12
    assert max(trial.number for trial in seen) < 2 / 3 * len(record.trials)
    assert record.between_runs == pytest.approx(0.01 * 2.3 * 1.6, rel=0.2)
    assert [replace(trial, again=None) for trial in record.trials] == list(before.trials)
    visit_again(search(tmp_path, evaluator), unlimited())
    assert evaluator.restarts == 1


@pytest.mark.parametrize(
    ("seconds", "count", "changes"),
    [
        (150, 40, {}),  # 3 % of it are spent with the start of the process
        (300, 3, {}),
        (300, 40, {"outcome": Outcome.CRASHED}),
        (300, 40, {"measurement": None}),
    ],
)
def test_nothing_is_visited_if_time_or_trials_do_not_suffice(
    tmp_path: Path, seconds: float, count: int, changes: dict[str, object]
) -> None:
    before = searched(tmp_path, seconds, count, **changes)
    evaluator = Slow()
    visit_again(search(tmp_path, evaluator), unlimited())
    assert evaluator.restarts == 0
    assert read_study(tmp_path) == before


def test_visits_end_with_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine seconds of 300, of which each look at the clock takes two."""
    searched(tmp_path, 300)
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(visits.time, "monotonic", lambda: float(next(clock)))
    visit_again(search(tmp_path, Slow()), unlimited())
    assert sum(trial.again is not None for trial in read_study(tmp_path).trials) == 4


def test_visits_are_spread_over_the_early_search_and_leave_out_what_was_dismissed(tmp_path: Path) -> None:
    trials = searched(tmp_path, 300).trials
    chosen = [trial.number for trial in chosen_trials(trials)]
    assert sorted(chosen) == list(range(0, 26, 3))
    assert chosen == [*sorted(chosen)[::2], *sorted(chosen)[1::2]]
    dismissed = [replace(t, measurement=replace(t.measurement, dismissed=True)) for t in trials]  # type: ignore[type-var]
    assert chosen_trials(dismissed) == []
    elsewhere = [replace(t, device="another" if t.number % 2 else "") for t in trials]
    assert {trial.number % 2 for trial in chosen_trials(elsewhere)} == {0}
