import io
import re
from collections import Counter
from dataclasses import replace

import pytest
from rich.console import Console

from lbmtune.api.machines.measured_machines import disturbance as disturbance_of_machine
from lbmtune.api.studies.run import study_header
from lbmtune.cli import notes_on_stderr
from lbmtune.cli.format.claims import ClaimsProgress
from lbmtune.cli.format.output import fitted, short, stdout, table
from lbmtune.cli.format.studies.finished import SPARE, print_study, ranking
from lbmtune.cli.format.studies.progress import Progress, clock
from lbmtune.errors import NothingValidError
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Conditions, Outcome, Sustained
from lbmtune.records.remarks import disturbance, doubt, faster_first
from lbmtune.records.spec import Budget, TimingProtocol
from lbmtune.report.study.page import page
from lbmtune.report.study.tables import trial_table
from lbmtune.search.finals import finalists_of
from lbmtune.search.study import run_study
from tests.claims.test_claims import document, run
from tests.support.paths import RECORDED
from tests.support.studies.fake_study import FakeEvaluator, header, machine, one_family, search, space_of, spec


def shown(tmp_path, terminal, width=160, **changes):
    """Return what is printed of a study, without control sequences."""
    study = spec(budget=Budget(trials=7), **changes)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    with Progress(console) as progress:
        record = run_study(search(tmp_path, FakeEvaluator(), progress), header(study), space_of(study))
    return console.file.getvalue(), record


@pytest.mark.parametrize("terminal", [True, False])
def test_trial_best_prediction_and_time_left_are_shown(tmp_path, terminal):
    text, record = shown(tmp_path, terminal)
    best = max(trial.measurement.mlups for trial in record.trials if trial.measurement)
    last = next(t for t in record.trials if t.measurement and t.measurement.mlups == best)
    assert "made-up on Made-up 1" in text
    assert f"best {best:,.0f} MLUPS" in text
    assert f"{last.prediction.mlups:,.0f}" in text
    assert short(last.config) in text
    assert "left" in text
    assert f"finals: {len(finalists_of(record))} configurations" in text
    assert "1 of 7 done" in text
    assert "7 of 7 done" in text or not terminal


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(trials=2, search_seconds=5400.0), True),
        (Budget(trials=2, seconds=5400.0), False),
        (Budget(trials=2), False),
    ],
)
def test_what_a_limit_of_time_covers_is_told_at_the_beginning(tmp_path, budget, said):
    study, console = spec(budget=budget), Console(file=io.StringIO(), width=1000)
    with Progress(console) as progress:
        run_study(search(tmp_path, FakeEvaluator(), progress), header(study), space_of(study))
    _, second, *_ = console.file.getvalue().splitlines()
    line = "searching for 5,400 s; finals, sustained runs and accuracy follow"
    assert (second.rstrip() == line) is said


def test_what_is_left_of_a_limit_is_told_as_such(tmp_path):
    study = spec(budget=Budget(trials=4, search_seconds=5400.0))
    folder, kept = search(tmp_path, FakeEvaluator()), header(study)
    record = run_study(folder, kept, space_of(study))
    for trials, said in ((8, ["what is left, "]), (4, [])):
        console = Console(file=io.StringIO(), width=1000)
        with Progress(console) as progress:
            progress.started(
                replace(kept, spec=replace(study, budget=Budget(trials=trials, search_seconds=5400.0))), record.trials
            )
        assert re.findall("what is left, ", console.file.getvalue()) == said
        assert "for 5,400 s" not in console.file.getvalue()


def test_trials_go_by_the_numbers_of_their_records(tmp_path):
    text, record = shown(tmp_path, False)
    told = re.findall(r"^trial (\d+), \d of 7 done: (.+?): ", text, re.MULTILINE)
    assert told
    assert {(int(number), what) for number, what in told} <= {(t.number, short(t.config)) for t in record.trials}
    live = shown(tmp_path / "live", True)[0]
    assert {row.split()[0] for row in live.splitlines() if row.strip()[:1].isdigit()} >= {"0", "6"}


def test_a_narrow_terminal_shows_the_best_and_the_time_left(tmp_path):
    text = shown(tmp_path, True, width=80)[0]
    assert re.search(r"7 of 7 done, best [\d,]+ MLUPS, 0:\d\d left *$", text, re.MULTILINE)


def test_failures_are_named(tmp_path):
    text, record = shown(tmp_path, False, seed=8)
    failed = [trial for trial in record.trials if trial.outcome is Outcome.WRONG_RESULT]
    assert failed
    assert text.count("wrong result: planted") == len(failed)


def test_a_trial_that_is_measured_again_counts_once(tmp_path):
    study, console = spec(budget=Budget(trials=4)), Console(file=io.StringIO(), width=200)
    record = run_study(search(tmp_path, FakeEvaluator()), header(study), space_of(study))
    with Progress(console) as progress:
        progress.started(record.header, ())
        for trial in (*record.trials[:2], record.trials[1]):
            progress.finished(replace(trial, outcome=Outcome.UNSTABLE_TIMING))
    assert re.findall(r"(\d) of 4 done", console.file.getvalue()) == ["1", "2", "2"]


def test_a_configuration_in_one_line():
    config = space_of(spec(axes={"scheme": ("aa",), "block": ("64x1x1",)})).configs[0]
    assert short(config.flat()) == "aa soa fp32 block=64x1x1"


def test_clock():
    assert clock(125.9) == "2:05"


def test_before_the_first_speed_there_is_no_best(tmp_path):
    console = Console(file=io.StringIO(), force_terminal=False, width=160)
    failing = FakeEvaluator(fails=Outcome.CRASHED)
    study = spec(budget=Budget(trials=2))
    with Progress(console) as progress, pytest.raises(NothingValidError):
        run_study(search(tmp_path, failing, progress), header(study), space_of(study))
    assert "best: none yet" in console.file.getvalue()
    assert "best 0 MLUPS" not in console.file.getvalue()


@pytest.mark.parametrize(("number", "text"), [(1, "finals: 1 configuration, "), (2, "finals: 2 configurations, ")])
def test_finalists_are_counted(tmp_path, number, text):
    assert text in shown(tmp_path, False, axes=one_family(), protocol=TimingProtocol(finalists=number))[0]


class Disturbed(FakeEvaluator):
    """A device on which nothing is measured alone."""

    share = Conditions(cpu_share=0.18)

    def next(self):
        return self._marked(super().next())

    def finals(self, configs, **how):
        return [self._marked(trial) for trial in super().finals(configs, **how)]

    def _marked(self, trial):
        marked = {
            name: replace(found, disturbed=True, conditions=self.share)
            for name in ("measurement", "final")
            if (found := getattr(trial, name))
        }
        return replace(trial, **marked)


def disturbed_study(tmp_path, terminal):
    study = spec(budget=Budget(trials=7))
    console = Console(file=io.StringIO(), force_terminal=terminal, width=160, color_system=None)
    with Progress(console) as progress:
        record = run_study(search(tmp_path, Disturbed(), progress), header(study), space_of(study))
    return console.file.getvalue(), record


@pytest.mark.parametrize("terminal", [True, False])
def test_disturbed_trials_are_marked(tmp_path, terminal):
    assert ", disturbed" in disturbed_study(tmp_path, terminal)[0]
    assert "disturbed" not in shown(tmp_path / "quiet", terminal)[0]


def test_a_disturbed_winner_is_told_in_terminal_and_report(tmp_path, monkeypatch):
    record = disturbed_study(tmp_path, False)[1]
    said = disturbance(record)
    assert said.startswith("other programs used the processor (CPU share 18 %): these speeds are too low")
    assert '<p class="warning" id="disturbance">Disturbed: other programs' in page(record)
    assert {row[-1] for row in trial_table(record).rows if row[2]} == {"disturbed"}
    columns = {column.header: set(column.cells) for column in ranking(record).columns}
    assert (columns["+-"], columns["note"]) == ({">= 1.0 %"}, {"disturbed"})
    quiet = shown(tmp_path / "quiet", False)[1]
    notes = {column.header: set(column.cells) for column in ranking(quiet).columns}["note"]
    assert notes <= {"", "tied"}
    assert disturbance(quiet) == ""
    assert 'id="disturbance"' not in page(quiet)
    monkeypatch.setattr(Disturbed, "share", Conditions(throttle=("power cap", "thermal")))
    assert disturbance(disturbed_study(tmp_path / "gpu", False)[1]).startswith(
        "the GPU reduced its clocks (power cap, thermal): these speeds"
    )


def printed(record, folder, capsys):
    with notes_on_stderr():
        print_study(record, folder / "report.html", folder / "best.json")
    return capsys.readouterr()


def restless(record, half):
    """The study, with this relative half-width of its winner's interval."""
    final = record.winner.final
    wide = replace(final, ci_low_mlups=final.mlups * (1 - half), ci_high_mlups=final.mlups * (1 + half))
    winner = replace(record.winner, final=wide)
    return replace(record, trials=tuple(winner if t.key == winner.key else t for t in record.trials))


def test_a_winner_that_is_hardly_known_is_told_before_the_table(tmp_path, capsys):
    record = disturbed_study(tmp_path, False)[1]
    said = printed(restless(record, 0.598), tmp_path, capsys)
    out = " ".join(said.out.split())
    assert out.startswith(
        "the winner's speed is known to +-59.8 % only, and closer configurations cannot be ranked: other"
    )
    assert out.index("run again when the machine is idle") < out.index("MLUPS")
    assert "run again when the machine is idle" in " ".join(said.err.split())
    assert printed(record, tmp_path, capsys).out.lstrip().startswith("the best")


def test_a_winner_that_is_hardly_known_though_nothing_disturbed_it(tmp_path, capsys):
    record = shown(tmp_path, False)[1]
    advice = "run again with longer samples (--set protocol.final_sample_s=0.5)."
    assert advice in " ".join(printed(restless(record, 0.11), tmp_path, capsys).out.split())
    assert advice in page(restless(record, 0.11))
    assert doubt(restless(record, 0.09)) == ""
    assert 'id="doubt"' not in page(record)


@pytest.mark.parametrize("calibrated", [None, 0.4, 0.98])
def test_a_machine_described_beside_other_programs_is_told_on_the_page(tmp_path, calibrated):
    record = shown(tmp_path, False)[1]
    known = read_machine(RECORDED / "xeon-2-cores" / "machine.toml").cpu
    calibration = replace(known, conditions=Conditions(cpu_share=calibrated)) if calibrated else None
    described = replace(machine(), conditions=Conditions(cpu_share=0.69), cpu=calibration)
    found = study_header(record.header.spec, described, FakeEvaluator())
    assert (found.ceiling.cpu_share, found.calibration_cpu_share) == (0.69, calibrated)
    said = disturbance_of_machine(described)
    marked = replace(record.header, ceiling=found.ceiling, calibration_cpu_share=found.calibration_cpu_share)
    written = page(replace(record, header=marked))
    assert f'<p class="warning" id="description-disturbance">Disturbed: {said}</p>' in written
    assert written.index(said) < written.index("<h1")
    quiet = replace(marked, ceiling=replace(found.ceiling, cpu_share=0.97), calibration_cpu_share=0.97)
    assert 'id="description-disturbance"' not in page(replace(record, header=quiet))
    assert 'id="description-disturbance"' not in page(record)


def kept_up(record, *, disturbed):
    """The study, with a run of seconds of its winner alone."""
    found = Sustained(
        mlups=91.6, seconds=2.0, steps=100, sites=64, slices_s=(0.02,), conditions=Conditions(cpu_share=0.43)
    )
    winner = replace(record.winner, sustained=replace(found, disturbed=disturbed))
    return replace(record, trials=tuple(winner if t.key == winner.key else t for t in record.trials))


def test_a_disturbed_run_of_seconds_is_told_wherever_its_speed_is(tmp_path):
    record = kept_up(shown(tmp_path, False)[1], disturbed=True)
    assert disturbance(record) == (
        "during the sustained run other programs used the processor (CPU share 43 %): the sustained speed is too low "
        "and cannot be compared; run again when the machine is idle."
    )
    columns = {column.header: list(column.cells) for column in ranking(record).columns}
    assert (columns["sustained"][0], columns["note"][0]) == ("91.6", "sustained run disturbed")
    written = page(record)
    assert '<p class="warning" id="disturbance">Disturbed: during the sustained run' in written
    assert "disturbed; over 2.0 s without a pause" in written
    table = trial_table(record)
    assert table.rows[table.winner][-1] == "sustained run disturbed"


def test_an_undisturbed_run_of_seconds_has_no_mark(tmp_path):
    record = kept_up(shown(tmp_path, False)[1], disturbed=False)
    assert disturbance(record) == ""
    columns = {column.header: list(column.cells) for column in ranking(record).columns}
    assert columns["sustained"][0] == "91.6"
    assert "disturbed; over" not in page(record)


def whole_domain(record):
    """Trials with a speed by what the report says of their proof."""
    table = trial_table(record)
    column = table.columns.index("proven")
    return {said: n for said, n in Counter(row[column] for row in table.rows).items() if said}


def test_the_table_of_the_best_says_what_was_measured_how(tmp_path):
    record = shown(tmp_path, False, axes=one_family(), protocol=TimingProtocol(finalists=2))[1]
    columns = {column.header: list(column.cells) for column in ranking(record).columns}
    assert columns["stage"] == ["final", "final", "first", "first", "first"]
    assert columns["proven"] == ["yes", "yes", "no", "no", "no"]
    assert whole_domain(record) == {"at full size": 2, "not at full size": len(record.ranked) - 2}
    assert faster_first(record) == ""
    winner, other = record.winner, record.ranked[-1]
    faster = replace(other.measurement, mlups=winner.final.ci_high_mlups * 1.1)
    trials = [replace(t, measurement=faster) if t is other else t for t in record.trials]
    assert f"the first measurement of trial {other.number}, " in faster_first(replace(record, trials=tuple(trials)))


def test_the_table_of_the_best_is_never_broken_within_a_word(tmp_path):
    record = shown(tmp_path, False)[1]
    whole, best = ranking(record), record.ranked[:5]
    for width in (44, 56, 80, 100, 140, 240):
        console = Console(file=io.StringIO(), width=width, color_system=None, soft_wrap=True)
        parts = fitted(whole, width, SPARE)
        console.print(*parts)
        printed = console.file.getvalue()
        kept = {column.header for part in parts for column in part.columns}
        assert kept >= {"MLUPS", "+-", "stage", "ceiling", "key", "configuration"}
        assert {*printed.split()} >= {
            *kept,
            *(t.key for t in best),
            *(w for t in best for w in short(t.config).split()),
        }
        if width == 80:
            assert max(map(len, printed.splitlines())) <= 80
            assert "registers" not in kept, "nothing is known of them"
            assert "footprint" in kept, "there is room"
    assert parts == (whole,), "all of it where there is room"


def test_what_is_piped_keeps_one_line_per_row(capsys):
    long = "axis=value " * 60
    stdout().print(table("the best", ("key", "configuration"), [("0123456789ab", long.strip())]))
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 3
    assert long.strip() in rows[-1]


def test_a_group_of_claims_counts_the_variants_that_the_device_has(tmp_path):
    """A variant without a configuration for the device has not failed."""
    group = run(tmp_path, document()).groups[0]
    assert [row.variant for row in group.rows if not row.config] == ["unheard-of"]
    out = io.StringIO()
    ClaimsProgress(Console(file=out, width=160), "a device", 1).finished(group)
    assert "made-up: box, 32x32x32: 2 of 2 variants, fastest" in out.getvalue()
