"""`lbmtune watch` and `study --live`: a study as another terminal, or a browser, sees it while it runs."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from lbmtune.api.studies import following
from lbmtune.api.studies.following import follow
from lbmtune.cli.format.studies.live import LIVE
from lbmtune.records.spec import Budget
from lbmtune.records.store import append_trial, read_study, write_header
from lbmtune.records.whole_files import HEADER, TRIALS
from lbmtune.search.interfaces import Observer
from lbmtune.search.lock import folder_lock, is_worked_on
from lbmtune.search.study import run_study
from tests.support.studies.fake_study import FakeEvaluator, header, search, space_of, spec, stand_in

ASKED = ("study", "quick", "--device", "cpu", "--set", "case.domain=64x64x64", "--trials", "6", "--output")


@pytest.fixture
def finished(tmp_path):
    """The folder of a study that has come to its end."""
    study, folder = spec(budget=Budget(trials=6)), tmp_path / "mine"
    folder.mkdir()
    run_study(search(folder, FakeEvaluator()), header(study), space_of(study))
    return folder


class Told(Observer):
    def __init__(self):
        self.said = []

    def started(self, header, done):
        self.said.append(("started", len(done)))

    def phase(self, name, expected_s=None):
        self.said.append(("phase", name))

    def finished(self, trial):
        self.said.append(("trial", trial.number, trial.final is not None))


def test_a_study_is_followed_from_its_records_until_nobody_works_on_it(finished, tmp_path, monkeypatch):
    """Its trials come one by one, the last ones between two looks, the finals at its end; nothing is written."""
    whole = read_study(finished)
    first = next(trial for trial in whole.trials if trial.final)
    second, third, *_ = (replace(trial, final=None) for trial in whole.trials if trial != first)
    running, looks = tmp_path / "running", []
    running.mkdir()
    write_header(running, replace(whole.header, finished=False, stopped=""))
    append_trial(running, replace(first, final=None))
    working = [True, True, True, False]
    monkeypatch.setattr(following, "is_worked_on", lambda _: working.pop(0))

    def wait(seconds):
        looks.append(seconds)
        if len(looks) == 1:
            append_trial(running, second)
        if len(looks) == 3:  # the search ends, finals are held, and the process goes
            append_trial(running, first)
            append_trial(running, third)
            write_header(running, whole.header)

    told = Told()
    assert follow(running, told, wait=wait).header == whole.header
    assert told.said[:2] == [("started", 1), ("trial", second.number, False)]
    assert {*told.said[2:4]} == {("trial", first.number, True), ("trial", third.number, False)}
    assert told.said[4:] == [("phase", f"search: {whole.header.stopped}")]
    assert {path.name for path in running.iterdir()} == {HEADER, TRIALS}


def test_who_works_on_a_folder_is_seen_without_a_lock(tmp_path):
    assert not is_worked_on(tmp_path)
    with folder_lock(tmp_path):
        assert is_worked_on(tmp_path)
        assert is_worked_on(tmp_path)
    assert not is_worked_on(tmp_path)
    with folder_lock(tmp_path):
        pass


def test_the_end_is_printed_with_the_ranking_and_how_to_go_on(run, finished):
    code, out, err = run("watch", "mine")
    assert code == 0
    assert "6 trials done before" in err
    assert re.search(r"^ended +.*trials", out, re.MULTILINE)
    assert read_study(finished).ranked[0].key in out
    kept = read_study(finished).header
    write_header(finished, replace(kept, finished=False, stopped="interrupted"))
    assert "interrupted; lbmtune study --output mine --resume goes on" in run("watch", "mine")[1]


def test_how_far_a_study_is_as_json(run, finished):
    facts = json.loads(run("watch", "mine", "--json")[1])
    best = read_study(finished).ranked[0]
    assert (facts["format"], facts["running"], facts["finished"], facts["trials"]) == ("lbmtune.watch", False, True, 6)
    assert (facts["best"]["key"], facts["best"]["mlups"]) == (best.key, best.mlups)
    with folder_lock(finished):
        assert json.loads(run("watch", "mine", "--json")[1])["running"]


class Page(HTMLParser):
    """The text of a page, and the contents of its meta elements by name."""

    def __init__(self, text):
        super().__init__()
        self.text, self.meta = "", {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        if tag == "meta" and "http-equiv" in named:
            self.meta[named["http-equiv"]] = named["content"]

    def handle_data(self, data):
        self.text += data


def test_a_live_page_shows_each_trial_and_leads_to_the_report(run, monkeypatch, tmp_path):
    stand_in(monkeypatch)
    pages = []
    from lbmtune.cli.format.studies import live

    plain = live.write_atomically

    def written(path, content):
        pages.append(Page(content.decode()))
        plain(path, content)

    monkeypatch.setattr(live, "_PAUSE_S", -1.0)
    monkeypatch.setattr(live, "write_atomically", written)
    assert run(*ASKED, "mine", "--live")[0] == 0
    *meanwhile, last = pages
    assert all(int(page.meta["refresh"]) > 0 for page in meanwhile)
    assert all(page.meta["Content-Security-Policy"].startswith("default-src 'none'") for page in pages)
    assert "quick on Made-up 1" in meanwhile[0].text
    counted = [int(found[1]) for page in meanwhile if (found := re.search(r"(\d+) of 6 done", page.text))]
    assert counted == sorted(counted)
    assert counted[-1] == 6
    assert any("finals" in page.text for page in meanwhile)
    assert last.meta["refresh"] == "0; url=report.html"
    assert (tmp_path / "mine" / "report.html").exists()
    assert Page((tmp_path / "mine" / LIVE).read_text()).meta == last.meta
    assert run(*ASKED, "other")[0] == 0
    assert not (tmp_path / "other" / LIVE).exists()
