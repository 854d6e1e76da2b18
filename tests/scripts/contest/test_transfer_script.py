"""The tables of what earlier studies save."""

import pytest

from scripts.contest import transfer
from scripts.contest.sets import names
from scripts.contest.transfer import Row, differ, pairs


def test_the_pairs_are_recorded_sets_that_differ_in_one_respect():
    found = pairs()
    assert {name for pair in found for name in pair} <= set(names())
    respects = [(now, *differ(before, now)) for before, now in found]
    assert len(set(respects)) == len(found) > 20
    assert {tuple(rest) for _, *rest in respects} == {("card",), ("precision",), ("domain",)}


def test_no_pair_of_this_kind_is_left_out():
    """A set has a pair for each respect in which any other of its backend differs alone."""
    gpus = [name for name in names() if name.startswith("nvidia-")]
    wanted = {(b, *differ(a, b)) for a in gpus for b in gpus if a != b and len(differ(a, b)) == 1}
    wanted = {one for one in wanted if one[1] != "question"}
    assert {(now, *differ(before, now)) for before, now in pairs() if now in gpus} == wanted


def test_names_tell_in_what_sets_differ():
    box = "nvidia-h200/d3q19-box-fast-fp32"
    assert differ(box, "nvidia-h100/d3q19-box-fast-fp32") == ("card",)
    assert differ(box, "nvidia-h200/d3q19-box-fast-384-fp32") == ("domain",)
    assert differ(box, "nvidia-h200/d3q27-box-fast-fp64") == ("precision", "question")


def test_a_set_is_played_after_the_most_similar_others():
    found = transfer.similar("nvidia-h200/d3q19-box-fast-384-fp32")
    assert len(found) == 4
    assert found[0] == "nvidia-h200/d3q19-box-fast-fp32"
    assert all(name.startswith("nvidia-") for name in found)
    assert transfer.similar("xeon-2-cores/d3q19-box-fp32") == ()


def test_the_tables_count_what_was_halved_and_doubled():
    found = [
        Row("nvidia-h200/b", ("nvidia-h200/a",), start, alone, after)
        for start in transfer.STARTS
        for alone, after in ((8.0, 2.0), (1.0, 1.0), (3.0, 9.0))
    ]
    text = "\n".join(transfer._pairs(found, 5))
    assert "| h200/a | h200/b | 8.0 | 2.0 | 0.25 | 8.0 | 2.0 | 0.25 |" in text
    assert text.count("halved on 1 of 2 pairs on which `auto` alone needs at least 3, 0.87 of the evaluations") == 2
    assert text.count("More than doubled on 1 of all 3") == 2
    assert "h200/b calibrated 3.0 to 9.0, h200/b bandwidths 3.0 to 9.0" in text
    assert "h200/b calibrated 3.0 to 9.0, h200/b bandwidths 3.0 to 9.0" in "\n".join(transfer._others(found))


@pytest.mark.parametrize("mark", [transfer._BEGIN, transfer._END])
def test_the_page_has_a_place_for_them(mark):
    assert transfer.PAGE.read_text(encoding="utf-8").count(mark) == 1
