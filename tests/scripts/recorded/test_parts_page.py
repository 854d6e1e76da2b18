"""The page of recorded couplings: its figures are of the recorded times and of the model."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import pytest

from lbmtune.records.comparison.statistics import Interval
from lbmtune.report.parts import Timed, scaling_efficiency_figure, spans, timeline_figure
from scripts.recorded import parts_page
from scripts.recorded.parts_page import FILE, groups, page, timed

RECORDED: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


def test_efficiencies_are_of_the_recorded_samples() -> None:
    for group, one in zip(groups(RECORDED), RECORDED["groups"], strict=True):
        best = min(one["couplings"], key=lambda each: median(each["period_s"]))
        pairs = [alone / both for alone, both in zip(one["alone_s"], best["period_s"], strict=True)]
        share = 1.0 if one["kind"] == "weak" else 0.5
        assert group.efficiency(group.best).median == pytest.approx(share * median(pairs), rel=0.02)


def test_a_timeline_follows_from_recorded_times() -> None:
    moments = next(groups(RECORDED))
    by_overlap = {one["overlap"]: timed(moments, one) for one in moments.couplings if one["transport"] == "copy"}
    none, first, priority = (spans(by_overlap[name]) for name in ("none", "edge-first", "edge-priority"))
    assert [one.lane for one in none] == ["all planes", "exchange"]
    assert none[1].begin_s == none[0].end_s == by_overlap["none"].launches_s
    for found in (first, priority):
        edges, interior, exchange = found
        assert exchange.begin_s == edges.end_s
        assert interior.end_s == pytest.approx(max(one.launches_s for one in by_overlap.values()), rel=0.2)
    assert first[1].begin_s == first[0].end_s
    assert priority[1].begin_s == 0.0
    edges = priority[0].end_s / by_overlap["edge-priority"].launches_s
    assert edges == pytest.approx(2 * 64 / 384)


def test_figures_have_what_they_are_given() -> None:
    figure = timeline_figure({"a": Timed("none", 0.0, 2e-6, 1e-6, 3.5e-6)})
    assert [trace.name for trace in figure.data] == ["all planes", "exchange", "measured period"]
    assert figure.data[1].base[0] == pytest.approx(2.0)
    assert figure.data[2].x[0] == pytest.approx(3.5)
    figure = scaling_efficiency_figure({"a": [(1, 1.0), (2, 0.98)]}, {"a": (2, Interval(0.9, 0.95, 0.97))})
    assert [trace.name for trace in figure.data] == ["a, predicted", "a, measured"]
    assert figure.data[1].y[0] == pytest.approx(95.0)


def test_the_page_has_scaling_and_timelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_page, "_predicted", lambda *_: [(1, 1.0), (2, 0.99)])
    text = page(RECORDED)
    assert "Weak scaling" in text
    assert "Strong scaling" in text
    assert "weak moments fp32 384x384x384: one period" in text
    assert f"{RECORDED['proofs']['compared']} proofs" in text
