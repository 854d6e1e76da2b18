"""A new study learns from named studies, similar ones of the user's folder, or none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lbmtune import api
from lbmtune.api.studies import earlier
from lbmtune.api.studies.folders import RESULTS
from lbmtune.catalogue.config import cpu
from lbmtune.cli.app import app
from lbmtune.errors import InputError
from lbmtune.records import Trial
from lbmtune.records.header import EarlierStudy, prior_text
from lbmtune.records.spec import Budget, StudySpec
from lbmtune.records.store import read_study, write_header
from lbmtune.records.whole_files import HEADER, TRIALS
from lbmtune.report.study.tables import protocol_table
from lbmtune.search.joint.ledger import begin, open_storage
from lbmtune.search.optuna_view.storage import optuna_name
from lbmtune.search.strategies.auto import Auto
from tests.support.studies.fake_study import CASE, machine, spec, stand_in

TRIALS_OF_ONE = 12
TILED = cpu.MomentsWavefront()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    stand_in(monkeypatch)
    return tmp_path


def question(edge: int = 64, collision: str = "bgk", **changes: object) -> StudySpec:
    case = replace(CASE, domain=(edge, edge, edge), collision=collision)
    return replace(spec("cpu", budget=Budget(trials=TRIALS_OF_ONE)), case=case, **changes)


def begun(name: str, edge: int = 64, collision: str = "bgk", **changes: object) -> Path:
    """Run a study in the user's folder that learns from nothing."""
    folder = RESULTS / name
    api.study(question(edge, collision, **changes), "cpu", folder, sources=())
    return folder


def learned(folder: Path) -> list[str]:
    return [Path(one.folder).name for one in read_study(folder).header.earlier]


def test_none_are_taken_from_an_empty_folder_or_if_none_are_wanted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lbmtune")
    assert learned(begun("first")) == []
    api.study(question(48), "cpu", "new", sources=())
    assert learned(Path("new")) == []
    assert "prior:" not in caplog.text


def test_similar_studies_of_the_folder_are_taken_and_named(caplog: pytest.LogCaptureFixture) -> None:
    begun("first")
    caplog.set_level(logging.INFO, "lbmtune")
    found = api.study(question(48), "cpu", "new")
    header = found.record.header
    (one,) = header.earlier
    ok = [t for t in read_study(RESULTS / "first").trials if t.measurement]
    assert (one.folder, one.trials) == (str((RESULTS / "first").resolve()), len(ok))
    text = f"1 earlier study, {len(ok)} trials (first {one.date[:10]})"
    assert prior_text(header.earlier) == text
    assert f"prior: {text}" in caplog.text
    assert ("prior", text) in protocol_table(header)
    assert text in found.report().read_text()


def test_the_most_similar_come_first_and_only_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier, "MOST_STUDIES", 2)
    for name, edge in (("a", 32), ("b", 96), ("c", 64)):
        begun(name, edge)
    begun("d", 64, collision="trt")
    api.study(question(64), "cpu", "new")
    assert learned(Path("new")) == ["c", "b"]


def test_named_studies_are_taken_by_folder_or_name() -> None:
    for name in ("a", "b", "c"):
        begun(name)
    api.study(question(48), "cpu", "new", sources=["b", RESULTS / "c"])
    assert learned(Path("new")) == ["b", "c"]


def test_a_strategy_that_does_not_learn_takes_none() -> None:
    begun("first")
    api.study(question(48, strategy="list"), "cpu", "new")
    assert learned(Path("new")) == []
    with pytest.raises(InputError, match=r"--from is not supported for strategy=list \(use auto or gp\)"):
        api.study(question(48, strategy="list"), "cpu", "other", sources=["first"])
    assert not Path("other").exists()


def test_what_nobody_can_learn_from_is_refused_if_it_is_named() -> None:
    begun("cuda")
    header = read_study(RESULTS / "cuda").header
    write_header(RESULTS / "cuda", replace(header, backend="cuda"))
    with pytest.raises(InputError, match="is not supported for cpu"):
        api.study(question(), "cpu", "new", sources=["cuda"])
    begun("short", budget=Budget(trials=3))
    with pytest.raises(InputError, match="8 measured trials or more"):
        api.study(question(), "cpu", "new", sources=["short"])
    with pytest.raises(InputError, match="no study at nowhere"):
        api.study(question(), "cpu", "new", sources=["nowhere"])
    api.study(question(), "cpu", "new")
    assert learned(Path("new")) == []


@pytest.mark.parametrize("part", [HEADER, TRIALS])
def test_a_damaged_study_is_left_out_with_a_warning_and_refused_if_named(
    part: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun("good")
    begun("damaged")
    (RESULTS / "damaged" / part).write_text('{"schema": 5}\n')
    api.study(question(48), "cpu", "new")
    assert learned(Path("new")) == ["good"]
    (warning,) = [r.getMessage() for r in caplog.records if "left out of the prior" in r.getMessage()]
    assert "damaged" in warning
    with pytest.raises(InputError, match="damaged"):
        api.study(question(48), "cpu", "other", sources=["damaged"])


def test_a_named_study_of_other_families_is_refused() -> None:
    begun("first")
    wavefront = question(collision="regularised", axes={"cpu": {"family": ("moments-wavefront",), "threads": (2,)}})
    with pytest.raises(InputError, match=r"--from .*first is not supported .*it has no kernel of moments-wavefront"):
        api.study(wavefront, "cpu", "new", sources=["first"])
    assert not Path("new").exists()
    api.study(wavefront, "cpu", "new")
    assert learned(Path("new")) == [], "without a word if nobody named it"


def test_a_named_study_of_another_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = begun("first")
    header = read_study(folder).header
    write_header(folder, replace(header, environment=replace(header.environment, device="Another")))
    with pytest.raises(InputError, match=r"first is not supported .*measured on Another, and this is Made-up 1"):
        api.study(question(), "cpu", "new", sources=["first"])
    assert not Path("new").exists()


def test_a_study_that_is_named_twice_counts_once() -> None:
    begun("first")
    api.study(question(48), "cpu", "new", sources=["first", RESULTS / "first"])
    assert learned(Path("new")) == ["first"]
    api.study(question(48), "cpu", "new", sources=["first"], resume=True)


def sources_of(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return the numbers of trials of each source of the strategies that are made from now on."""
    given: list[tuple[int, ...]] = []
    plain = Auto.__init__

    def noted(self: Auto, task: object) -> None:
        given.append(tuple(len(one.configs) for one in task.sources))  # type: ignore[attr-defined]
        plain(self, task)  # type: ignore[arg-type]

    monkeypatch.setattr(Auto, "__init__", noted)
    return given


def test_workers_of_a_joint_study_learn_from_the_same_studies(
    here: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun("first")
    given = sources_of(monkeypatch)
    url = f"sqlite:///{here / 'joint.db'}"
    found = api.study(question(48), "cpu", "new", sources=["first"], storage=url).record.header
    for number in (1, 2):
        asked = replace(found, date=f"2999-01-0{number}", spec=replace(found.spec, budget=Budget(trials=3)))
        begin(open_storage(url), optuna_name(asked), asked)
        api.work(optuna_name(asked), url, "cpu")
        (RESULTS / "first" / HEADER).unlink(missing_ok=True)  # as on a host that has no such folder
    leader, worker, elsewhere = given
    assert leader == worker
    assert len(leader) == 1
    assert elsewhere == ()
    assert "left out of the prior" in caplog.text


@pytest.mark.parametrize(
    ("was", "becomes"),
    [('"family":"', '"family":"not-'), ('"threads":', f'"threads":{10**400}'), ('"layout":"', '"layout":"not-')],
)
def test_a_trial_of_an_impossible_kernel_is_a_warning(was: str, becomes: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = begun("later")
    text = (folder / TRIALS).read_text()
    assert was in text
    (folder / TRIALS).write_text(text.replace(was, becomes))
    api.study(question(48), "cpu", "new")
    assert learned(Path("new")) == []
    assert "left out of the prior" in caplog.text


@pytest.mark.parametrize(
    "changed",
    [
        lambda trial: replace(trial, config={**TILED.flat(), "tile": f"{10**400}x16x64"}),
        lambda trial: replace(trial, config={**TILED.flat(), "tile": f"256x16x{2**63}"}),
        lambda trial: replace(trial, measurement=replace(trial.measurement, ci_high_mlups=inf)),
    ],
)
def test_a_number_that_no_kernel_has_is_no_lesson(
    changed: Callable[[Trial], Trial], caplog: pytest.LogCaptureFixture
) -> None:
    folder = begun("first")
    record = read_study(folder)
    first, *others = (trial for trial in record.trials if trial.measurement)
    configs = [trial.kernel_config for trial in others]
    for odd in (replace(first, config=TILED.flat()), changed(first)):
        found = earlier.Found(folder, replace(record, trials=(odd, *others)))
        lessons = earlier.lessons([found], question(), configs, machine(), Path("new"))
        assert len(lessons) == ("left out of the prior" not in caplog.text)
    assert not lessons
    with pytest.raises(InputError, match=r"another study\): it holds a number that no kernel has"):
        earlier.lessons([found], question(), configs, machine(), Path("new"), asked=True)


def test_an_interrupted_study_goes_on_with_the_studies_it_began_with(caplog: pytest.LogCaptureFixture) -> None:
    begun("first")
    few = question(48, budget=Budget(trials=5))
    api.study(few, "cpu", "new")
    begun("second", 48)
    more = question(48, budget=Budget(trials=9))
    api.study(more, "cpu", "new", resume=True, sources=["first"])
    assert learned(Path("new")) == ["first"]
    with pytest.raises(InputError, match=r"was begun with --from .*first; resume it with these"):
        api.study(more, "cpu", "new", resume=True, sources=["second"])
    with pytest.raises(InputError, match="resume it with these"):
        api.study(more, "cpu", "new", resume=True, sources=())
    (RESULTS / "first" / HEADER).write_text("")
    found = api.study(question(48), "cpu", "new", resume=True)
    assert "left out of the prior" in caplog.text
    assert len(found.record.trials) == TRIALS_OF_ONE
    assert learned(Path("new")) == ["first"]


def test_the_search_of_a_resumed_study_has_the_same_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    begun("first")
    given = sources_of(monkeypatch)
    api.study(question(48, budget=Budget(trials=5)), "cpu", "new")
    begun("second", 48)
    api.study(question(48), "cpu", "new", resume=True)
    first, without, again = given
    assert first == again
    assert len(first) == 1
    assert without == ()


def test_the_model_of_the_new_study_predicts_for_the_earlier_one() -> None:
    """Errors are those of the model in use, not of the one when the earlier study was made."""
    folder = begun("first")
    record = read_study(folder)
    doubled = replace(machine(), copy_bytes_per_s=2 * machine().copy_bytes_per_s)
    found = [earlier.Found(folder, record)]
    configs = [trial.kernel_config for trial in record.trials]
    own = Path("new")
    (here,) = earlier.lessons(found, question(), configs, machine(), own)
    fast = {name: 2 * value for name, value in machine().stream_bytes_per_s.items()}
    in_place = 2 * machine().in_place_bytes_per_s
    doubled = replace(doubled, stream_bytes_per_s=fast, in_place_bytes_per_s=in_place, date="later")
    (there,) = earlier.lessons(found, question(), configs, doubled, own)
    assert there.source.errors.mean() == pytest.approx(here.source.errors.mean() - 0.693, abs=0.05)


def test_the_option_takes_studies_or_none() -> None:
    begun("first")
    run = CliRunner().invoke
    base = ["study", "quick", "--device", "cpu", "--trials", "4", "--set", "scheme=aa", "--set", "threads=2"]
    assert run(app, [*base, "--output", "new", "--from", "first"]).exit_code == 0
    assert learned(Path("new")) == ["first"]
    assert run(app, [*base, "--output", "none", "--from", "none"]).exit_code == 0
    assert learned(Path("none")) == []
    both = run(app, [*base, "--output", "both", "--from", "none", "--from", "first"])
    assert isinstance(both.exception, InputError)
    assert "beside other studies" in str(both.exception)


def test_a_second_study_finds_the_first_where_studies_lie_by_default() -> None:
    begun("quick-cpu")
    call = ["study", "quick", "--device", "cpu", "--trials", "4", "--set", "scheme=aa", "--set", "threads=2"]
    assert CliRunner().invoke(app, call).exit_code == 0
    assert sorted(folder.name for folder in RESULTS.iterdir()) == ["quick-cpu", "quick-cpu-2"]
    assert learned(RESULTS / "quick-cpu-2") == ["quick-cpu"]
    assert (
        prior_text(read_study(RESULTS / "quick-cpu-2").header.earlier)
        in (RESULTS / "quick-cpu-2" / "report.html").read_text()
    )


def test_a_line_names_a_few_studies() -> None:
    assert prior_text(()) == ""
    several = [EarlierStudy(folder=f"/x/study-{n}", date=f"2026-11-0{n}T00:00", trials=100) for n in range(1, 6)]
    assert prior_text(several) == (
        "5 earlier studies, 500 trials (study-1 2026-11-01, study-2 2026-11-02, study-3 2026-11-03, and 2 more)"
    )
