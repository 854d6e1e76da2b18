"""The page of several studies: what its tables say, and the page in a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import harmonic_mean

import pytest

from lbmtune.api.studies.comparing import write_comparison_page
from lbmtune.errors import InputError
from lbmtune.records.regression.kernels import shared
from lbmtune.records.regression.studies import compared
from lbmtune.records.store import read_study
from lbmtune.report.compared import page, tables
from lbmtune.report.compared.figures import panels
from tests.records.test_regression import LIKE, TWENTY, slower, study
from tests.support.browser import laid_out
from tests.support.driven import browser
from tests.support.paths import RECORDED
from tests.support.studies import made_up_records as made

SETS = {
    "cards": ("nvidia-h200/d3q19-box-fp32", "nvidia-h100/d3q19-box-fp32"),
    "precisions": ("nvidia-h200/d3q19-box-fp32", "nvidia-h200/d3q19-box-fp16s"),
    "days": ("nvidia-h100/d3q19-moments-fp32", "nvidia-h100/d3q19-moments-whole-fp32"),
}
APART = (0.002, -0.002) * 6


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("compared")
    return {
        name: write_comparison_page([RECORDED / one for one in sets], folder / f"{name}.html")
        for name, sets in SETS.items()
    }


@pytest.mark.parametrize(("name", "width"), [("cards", 1280), ("precisions", 400), ("days", 1280)])
def test_a_page_is_drawn_without_an_error_and_fits(name: str, width: int, written: dict[str, Path]) -> None:
    parts, found = laid_out(written[name], width), browser()
    assert parts["needed"] <= parts["width"] == width
    assert found.said == []
    assert found.ask("plots.map((one) => one.id)") == ["plot-winners", "plot-distributions", "plot-changes"]
    text = written["cards"].read_text()
    assert "nvidia-h100/d3q19-box-fp32 19,489 (0.71 times)</h1>" in text


@pytest.mark.parametrize("name", SETS)
def test_a_page_holds_the_facts(name: str, written: dict[str, Path]) -> None:
    text = written[name].read_text()
    (inside,) = re.findall(r'<script type="application/json" id="facts">(.*?)</script>', text)
    facts = json.loads(inside)
    assert (facts["format"], facts["version"]) == ("lbmtune.comparison", 1)
    assert facts["before"].endswith(SETS[name][0])
    first, second = (read_study(RECORDED / one) for one in SETS[name])
    assert facts["after"][0]["kernels"][0]["key"] in {trial.key for trial in second.ranked}
    assert len(facts["after"][0]["kernels"]) == len(compared(first, second).changes)
    assert len(text) < 1_200_000


def test_the_matrix_has_harmonic_means_of_shares() -> None:
    """The kernel that is second on both may serve both best."""
    speeds = [[100.0, 90.0, 50.0], [40.0, 72.0, 80.0]]
    studies = [study([slower(TWENTY[0], one / TWENTY[0].mlups) for one in several]) for several in speeds]
    found = shared(studies)
    assert found[0].trials[0].number == 1
    assert len(found) == 3
    assert found[0].portability == pytest.approx(harmonic_mean([0.9, 0.9]))
    assert found[0].shares == pytest.approx((0.9, 0.9))
    assert [one.portability for one in found[1:]] == pytest.approx([harmonic_mean([1.0, 0.5])] * 2)
    text = tables.portable_text(found, ("one", "two"))
    assert f"{LIKE.trials[1].key} has a harmonic mean of 90.0% " in text
    assert "loses 10.0% on one, 10.0% on two" in text


def test_kernels_that_one_study_lacks_or_dismissed_are_not_in_the_matrix() -> None:
    was = study(TWENTY)
    dismissed = replace(was.trials[3], measurement=replace(TWENTY[3], dismissed=True))
    now = replace(was, trials=(*was.trials[:3], dismissed, *was.trials[5:]))
    assert {one.trials[0].number for one in shared([was, now])} == {*range(20)} - {3, 4}
    assert shared([was, made.empty_study()]) == ()


def test_studies_stand_beside_each_other() -> None:
    was = study(TWENTY, APART)
    same, slow = was, study([slower(one, 0.9) for one in TWENTY], APART)
    studies = (was, same, slow)
    found = [compared(was, one, 2) for one in (same, slow)]
    answer = dict(tables.answer_rows(studies, found))
    assert answer["winner"] == ("1,019 MLUPS", "1,019 MLUPS", "917 MLUPS")
    assert answer["against the first"][0] == ""
    assert answer["against the first"][1].endswith("the same within the noise")
    assert answer["against the first"][2].endswith("slower")
    assert "disturbed" not in answer, "a row that says nothing is left out"
    said = page.headline(("a", "b", "c"), studies, found)
    assert said == "a has 1,019 MLUPS, b 1,019 (the same within the noise), c 917 (0.90 times)"
    assert [one.name for one in panels(("a", "b", "c"), studies, found)] == ["winners", "distributions", "changes"]
    assert page.noise("b", found[0]) == "b: speeds of two runs lie up to 0.76 % apart (90 % of repeats)."
    environment = dict(tables.environment_rows(studies))
    assert environment["device"] == ("NVIDIA H200",) * 3


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (("a/b", "a/c"), ("b", "c")),
        (("h200/box", "h100/box"), ("h200/box", "h100/box")),
        (("/x/h200/box/", "box"), ("h200/box", "box")),
    ],
)
def test_names_are_the_shortest_ends_that_differ(folders: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert tables.names_of(folders) == names


def test_one_study_is_no_comparison(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one study at most"):
        write_comparison_page([RECORDED / SETS["cards"][0]], tmp_path / "page.html")
