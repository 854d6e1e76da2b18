"""The tables of what earlier studies save."""

import pytest

from scripts.contest import transfer
from scripts.contest.sets import names
from scripts.contest.transfer import PAIRS, Row


def test_the_pairs_are_recorded_sets_of_one_backend():
    assert {name for pair in PAIRS for name in pair} <= set(names())
    assert len(set(PAIRS)) == len(PAIRS) == 11


def test_a_set_is_played_after_the_most_similar_others():
    found = transfer.similar("nvidia-h200/d3q19-box-fast-384-fp32")
    assert len(found) == 4
    assert found[0] == "nvidia-h200/d3q19-box-fast-fp32"
    assert all(name.startswith("nvidia-") for name in found)
    assert transfer.similar("xeon-2-cores/d3q19-box-fp32") == ()


def test_the_tables_count_what_was_halved_and_doubled():
    found = [
        Row("nvidia-h200/b", ("nvidia-h200/a",), calibrated, alone, after)
        for calibrated in (True, False)
        for alone, after in ((8.0, 2.0), (1.0, 1.0), (3.0, 9.0))
    ]
    text = "\n".join(transfer._pairs(found, 5))
    assert "| h200/a | h200/b | 8.0 | 2.0 | 0.25 | 8.0 | 2.0 | 0.25 |" in text
    assert text.count("halved on 1 of 3 pairs, more than doubled on 1") == 2
    assert text.count("On 1 of them `auto` alone needs fewer than two") == 2
    assert "h200/b calibrated 3.0 to 9.0, h200/b cold 3.0 to 9.0" in "\n".join(transfer._others(found))


@pytest.mark.parametrize("mark", [transfer._BEGIN, transfer._END])
def test_the_page_has_a_place_for_them(mark):
    assert transfer.PAGE.read_text(encoding="utf-8").count(mark) == 1
