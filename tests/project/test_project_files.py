"""Files about the project agree with the package."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import Counter

import pytest

import lbmtune
from lbmtune.catalogue.config import FAMILIES, backend_knobs
from lbmtune.records.legacy.configurations import RENAMED
from tests.conftest import EVERY_DAY_S
from tests.support import durations
from tests.support.paths import ROOT

DURATIONS = durations.read()
STARTS_S = 40.0
"""Seconds on two cores in which pytest and its workers start and collect."""


def test_the_version_is_the_newest_of_the_changelog_and_the_one_to_cite() -> None:
    released = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    versions = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["versioningit"]
    assert released[0] == versions["default-version"] == versions["vcs"]["default-tag"].removeprefix("v")
    assert re.match(r"\d+\.\d+\.\d+(\.post|\+|$)", lbmtune.__version__), "as it was installed"
    assert released == sorted(released, key=lambda version: [*map(int, version.split("."))], reverse=True)
    assert f"version: {released[0]}\n" in (ROOT / "CITATION.cff").read_text()


def test_knobs_of_the_changelog_are_those_of_today() -> None:
    rows = re.findall(r"^\| `(\w+).*?\| `(\w+)[`=].*?\|", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    now = {name for backend in FAMILIES for name in backend_knobs(backend)}
    assert len(rows) > 20
    assert {new for _, new in rows} <= now
    assert {*RENAMED} <= {old for old, _ in rows}


def test_make_targets_of_the_guide_for_contributors_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {target for code in re.findall(r"`make ([a-z-]+)`", text) for target in [code]}
    assert len(named) > 8
    assert named <= targets


def test_folders_of_the_guide_for_contributors_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:catalogue|codegen|measure|report|cli|api|records)/[a-z_/]+)", text)
    assert len(named) > 8
    for name in named:
        path = ROOT / "lbmtune" / name
        assert path.is_dir() or path.with_suffix(".py").is_file() or path.parent.is_dir(), name


def test_every_test_whose_duration_is_kept_is_there() -> None:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(DURATIONS) > 100
    for test, seconds in DURATIONS.items():
        file, *_, name = test.split("::")
        assert f"def {name}(" in texts[file], test
        assert seconds >= 0


def test_tests_of_every_day_take_less_than_six_minutes_on_two_cores(request: pytest.FixtureRequest) -> None:
    assert request.config.stash[EVERY_DAY_S] < 2 * (360 - STARTS_S)


def test_python_versions_are_those_that_the_classifiers_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [name.rpartition(" ")[2] for name in project["classifiers"] if ":: Python :: 3." in name]
    assert versions == ["3.11", "3.12", "3.13"]
    assert project["requires-python"] == f">={versions[0]}"


def test_make_alone_lists_all_targets_with_what_they_do():
    text = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split()
    first = re.search(r"^([a-z-]+):", text, re.MULTILINE)[1]
    assert first == "help"
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert sorted(line.split()[1] for line in listed.splitlines()) == sorted(targets)


def test_folders_have_at_most_16_modules_beside_their_init():
    modules = Counter(path.parent for name in ("lbmtune", "scripts", "tests") for path in (ROOT / name).rglob("*.py"))
    assert len(modules) > 80
    assert {str(folder.relative_to(ROOT)): count for folder, count in modules.items() if count > 17} == {}, (
        "and one init"
    )
