"""Facts of a study that are computed once."""

from dataclasses import replace

from lbmtune.catalogue.config import from_flat
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord, once
from tests.support.paths import RECORDED


def test_a_fact_is_computed_once_for_each_study() -> None:
    asked: list[StudyRecord] = []

    @once
    def tried(study: StudyRecord) -> int:
        asked.append(study)
        return len(study.trials)

    study = read_study(RECORDED / "nvidia-h200" / "d3q19-small-96")
    fewer = replace(study, trials=study.trials[:3])
    assert [tried(study), tried(fewer), tried(study), tried(fewer)] == [len(study.trials), 3] * 2
    assert len(asked) == 2


def test_a_trial_with_another_configuration_has_not_the_old_one() -> None:
    first, second, *_ = read_study(RECORDED / "nvidia-h200" / "d3q19-small-96").trials
    assert first.kernel_config.key == first.key
    assert replace(first, config=second.config).kernel_config == from_flat(second.config)
    assert first.kernel_config != second.kernel_config
