"""Pages in a headless Chromium: what becomes of them, what their console says, and where their parts lie."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.driven import browser


class Page(NamedTuple):
    """html: of the document at the end; console: everything that was logged, of any severity."""

    html: str
    console: list[str]

    @property
    def drawn(self) -> list[str]:
        """Names of the figures that hold a Plotly drawing."""
        plots = self.html.split('<figure class="panel')[1:]
        names = (re.search(r'id="plot-([a-z]+)"', plot) for plot in plots)
        return [n[1] for n, plot in zip(names, plots, strict=True) if n and 'data-drawn="yes"' in plot and _svg(plot)]

    @property
    def errors(self) -> str:
        """What the page itself noted."""
        found = re.search(r'<html[^>]*data-errors="([^"]*)"', self.html)
        return found[1] if found else ""


_MEASURED = """(() => {
const box = (one) => { const r = one.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const boxes = (within, selector) => [...within.querySelectorAll(selector)].map(box);
const page = document, root = page.scrollingElement;
const found = { width: root.clientWidth, needed: root.scrollWidth, figures: {} };
found.scrolled = [...page.querySelectorAll(".scroll")].map((one) => [...box(one), one.scrollWidth, one.clientWidth]);
found.pairs = boxes(page, "#winner .pairs");
found.words = boxes(page, "td.wide, td.long").filter(([left, , right]) => right > left);
for (const plot of page.querySelectorAll(".plot")) found.figures[plot.id.replace("plot-", "")] = {
  box: box(plot), areas: boxes(plot, ".nsewdrag"), legends: boxes(plot, ".legend .bg"),
  entries: boxes(plot, ".legend .legendtext"), titles: boxes(plot, ".xtitle, .ytitle, .y2title"),
};
return found;
})()"""


def layout() -> dict[str, Any]:
    """Return where the parts of the page lie that the browser shows.

    Boxes are left, top, right, bottom. width, needed: of the page; scrolled: boxes that scroll, each with the width
    that it needs and that it has; pairs: tables of names and values of the winner; words: cells of tables that hold
    sentences, where they show; figures: by name their box, areas of axes, legends, the entries of these, and titles of
    axes.
    """
    return dict(browser().ask(_MEASURED))


def laid_out(file: Path, width: int) -> dict[str, Any]:
    """Open a page on a screen of so many pixels, and return its `layout`."""
    browser().open(file, width)
    browser().draw_all()
    return layout()


def _svg(plot: str) -> bool:
    return 'class="main-svg"' in plot and ("<path" in plot or "<canvas" in plot)


def shown() -> Page:
    """Return the page that the browser shows."""
    return Page(browser().ask("document.documentElement.outerHTML"), list(browser().said))


def visit(file: Path) -> Page:
    """Opens a file; skips where there is no browser, fails instead where CI promises one."""
    browser().open(file)
    browser().draw_all()
    return shown()


def check_fits(found: dict[str, Any], width: int) -> None:
    """A page is no wider than the screen: what is wider scrolls in a box of its own, and cells of words fit on it."""
    assert found["width"] == found["needed"] == width
    assert all(0 <= left < right <= width for left, _, right, _, *_ in found["scrolled"])
    assert found["words"]
    assert all(180 <= right - left <= 0.9 * width for left, _, right, _ in found["words"])
    for name, parts in found["figures"].items():
        left, _, right, _ = parts["box"]
        assert 0 <= left < right <= width
        assert all(left <= begin < end <= right for begin, _, end, _ in parts["areas"]), name


def check_figures_fit(found: dict[str, Any], width: int) -> None:
    """What belongs to a figure lies in it, and legends leave the axes half of its width."""
    assert found["width"] == found["needed"] == width
    assert all(0 <= left < right <= width for left, _, right, _, *_ in found["scrolled"])
    assert found["figures"]
    for figure, parts in found["figures"].items():
        left, top, right, bottom = parts["box"]
        assert 0 <= left < right <= width
        inside = [*parts["titles"], *parts["areas"], *parts["entries"]]
        assert all(left <= a and b <= right and top <= c and d <= bottom for a, c, b, d in inside), figure
        assert max(b - a for a, _, b, _ in parts["areas"]) >= 0.5 * (right - left), figure
        for begin, above, *_ in parts["legends"]:
            below = all(above >= under for *_, under in parts["areas"])
            beside = all(begin >= end for _, _, end, _ in parts["areas"])
            assert below or (beside and width > 400), figure
