"""Recorded claims judged again: rows of the same question stay, others are dropped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lbmtune.claims.plan import plans
from lbmtune.records.claims import Claims, Row
from scripts.recorded.rejudge import asked, judged
from tests.claims.test_claims import HERE, TEXT, document, run


def rows(claims: Claims, text: str) -> list[list[str]]:
    return [[row.variant for row in group.rows] for group in asked(claims.groups, plans(document(text), HERE))]


def test_rows_that_answer_another_question_are_dropped(tmp_path: Path) -> None:
    claims = run(tmp_path, document())
    assert isinstance(claims, Claims)
    every = [["fast", "slow", "unheard-of"]] * 2
    assert rows(claims, TEXT) == every
    other = TEXT.replace("scheme=aa,block=32x1x1", "scheme=aa,block=64x1x1")
    assert rows(claims, other) == [["slow", "unheard-of"]] * 2
    assert rows(claims, TEXT.replace('"32x32x32", "64x64x64"]', '"48x48x48", "64x64x64"]')) == every[1:]
    assert (
        rows(
            claims,
            TEXT.replace(
                'series = "box"\ncuda = "scheme=pull', 'series = "box"\nduty = "refresh"\ncuda = "scheme=pull'
            ),
        )
        == [["fast", "unheard-of"]] * 2
    )


def test_a_knob_that_came_later_has_its_default(tmp_path: Path) -> None:
    claims = run(tmp_path, document())

    def older(row: Row) -> Row:
        return replace(row, config={name: value for name, value in row.config.items() if name != "wrap"})

    groups = [replace(group, rows=tuple(map(older, group.rows))) for group in claims.groups]
    assert "wrap" in claims.groups[0].rows[0].config
    planned = list(plans(document(), HERE))
    assert [len(group.rows) for group in asked(groups, planned)] == [3, 3]
    assert all(plan.is_of(group) for plan, group in zip(planned, groups, strict=True)), "a run goes on with it"


def test_a_dated_record_is_judged_by_its_own_documents(tmp_path: Path) -> None:
    claims = run(tmp_path, document())
    assert isinstance(claims, Claims)
    wrong = replace(claims, verdicts=tuple(replace(one, reason="for no reason") for one in claims.verdicts))
    assert judged(wrong) == claims
