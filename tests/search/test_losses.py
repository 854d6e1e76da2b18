"""The profile of the winner at the end of a study: once, if there is time, and what stops it is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import NothingValidError
from lbmtune.records.profile import Profile
from lbmtune.records.spec import StudySpec, TimingProtocol
from lbmtune.records.store import read_profile
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import PROFILE
from lbmtune.search.study import run_study
from tests.support.studies.fake_study import FakeEvaluator, header, search, space_of, spec
from tests.support.studies.made_up_profile import PROFILE as MADE_UP


class Profiler:
    """Makes up profiles. asked: keys so far; reason: why it can make none."""

    def __init__(self, reason: str = "") -> None:
        self.asked, self.reason = list[str](), reason

    def __call__(self, config: KernelConfig) -> Profile:
        self.asked.append(config.key)
        if self.reason:
            raise NothingValidError(self.reason)
        return replace(MADE_UP, key=config.key, config=config.flat())


def studied(folder: Path, profiler: Profiler, asked: StudySpec | None = None, **how: bool) -> StudyRecord:
    wanted = asked or spec()
    needs = replace(search(folder, FakeEvaluator()), profile=profiler)
    return run_study(needs, header(wanted), space_of(wanted), **how)


def test_the_winner_is_profiled_once(tmp_path: Path) -> None:
    profiler = Profiler()
    record = studied(tmp_path, profiler)
    assert record.winner
    assert profiler.asked == [record.winner.key]
    assert read_profile(tmp_path, record.winner.key)
    assert read_profile(tmp_path, "another") is None
    studied(tmp_path, profiler, resume=True)
    assert len(profiler.asked) == 1
    (tmp_path / PROFILE).write_text("{")
    studied(tmp_path, profiler, resume=True)
    assert len(profiler.asked) == 2, "a damaged one is made anew"
    assert read_profile(tmp_path, record.winner.key)


def test_none_is_made_if_none_is_asked_for(tmp_path: Path) -> None:
    profiler = Profiler()
    assert studied(tmp_path, profiler, spec(protocol=TimingProtocol(profiled=0))).finished
    assert not profiler.asked


@pytest.mark.parametrize("reason", ["the kernel cannot be profiled: no memory is left"])
def test_a_study_without_a_profile_says_why(tmp_path: Path, reason: str) -> None:
    record = studied(tmp_path, Profiler(reason))
    assert record.finished
    assert record.header.left_out == (f"profile: {reason}",)
    assert not (tmp_path / PROFILE).exists()
    assert studied(tmp_path, Profiler(), resume=True).header.left_out == ()
