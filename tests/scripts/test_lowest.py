"""The least versions that are tested are those that pyproject.toml allows."""

import pytest

from scripts import lowest
from tests.support.paths import ROOT


def test_each_dependency_is_pinned_to_its_least_version() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    versions = lowest.least_versions()
    assert len(versions) == text.split("dependencies = [")[1].split("]")[0].count(">=")
    assert all(f'"{one.replace("==", ">=")}"' in text for one in versions)


def test_one_without_a_least_version_is_refused() -> None:
    assert lowest.pinned(["numpy>=2.0"]) == ["numpy==2.0"]
    with pytest.raises(ValueError, match="unpack"):
        lowest.pinned(["numpy"])


def test_what_is_tested_exists() -> None:
    assert all((ROOT / "tests" / one).exists() for one in lowest.TESTS)
