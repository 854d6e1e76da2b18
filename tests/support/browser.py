"""Headless Chromium on a local file: the page after its scripts have run, and all that its console said."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
    "--log-level=0",
    "--virtual-time-budget=20000",
)


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


_FRAME = '<iframe src="{url}" style="position: absolute; width: {width}px; height: 800px; border: 0"></iframe>'
_MEASURED = """<!doctype html><body style="margin: 0">
{frames}
<script>
const box = (one) => {{ const r = one.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; }};
const boxes = (within, selector) => [...within.querySelectorAll(selector)].map(box);
const measured = (page) => {{
  const root = page.scrollingElement;
  const found = {{ width: root.clientWidth, needed: root.scrollWidth, figures: {{}} }};
  found.scrolled = [...page.querySelectorAll(".scroll")].map((one) => [...box(one), one.scrollWidth, one.clientWidth]);
  found.pairs = boxes(page, "#winner .pairs");
  found.words = boxes(page, "td.wide, td.long").filter(([left, , right]) => right > left);
  for (const plot of page.querySelectorAll(".plot")) found.figures[plot.id.replace("plot-", "")] = {{
    box: box(plot), areas: boxes(plot, ".nsewdrag"), legends: boxes(plot, ".legend .bg"),
    entries: boxes(plot, ".legend .legendtext"), titles: boxes(plot, ".xtitle, .ytitle, .y2title"),
  }};
  return found;
}};
const wait = setInterval(() => {{
  const pages = [...document.querySelectorAll("iframe")].map((one) => one.contentDocument);
  if (pages.some((page) => page.documentElement.dataset.ready !== "yes")) return;
  clearInterval(wait);
  document.body.textContent = JSON.stringify(pages.map(measured));
}}, 50);
</script></body>"""


def laid_out(file: Path, folder: Path, widths: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Where the parts of a page lie on screens of so many pixels: one browser has a frame of each.

    Boxes are left, top, right, bottom. width, needed: of the page; scrolled: boxes that scroll, each with the width
    that it needs and that it has; pairs: tables of names and values of the winner; words: cells of tables that hold
    sentences, where they show; figures: by name their box, areas of axes, legends, the entries of these, and titles of
    axes.
    """
    frame = folder / "frame.html"
    frames = "".join(_FRAME.format(url=file.as_uri(), width=width) for width in widths)
    frame.write_text(_MEASURED.format(frames=frames))
    page = visit(
        frame, folder, "--allow-file-access-from-files", "--hide-scrollbars", f"--window-size={max(widths)},800"
    )
    found = re.search(r"<body[^>]*>(\[.*\])</body>", page.html)
    assert found, page
    return dict(zip(widths, json.loads(found[1]), strict=True))


def _svg(plot: str) -> bool:
    return 'class="main-svg"' in plot and ("<path" in plot or "<canvas" in plot)


def visit(file: Path, folder: Path, *extra: str) -> Page:
    """Opens a file; skips where there is no browser, fails instead where CI promises one."""
    if not CHROMIUM:
        if os.environ.get("CI") == "true" or os.environ.get("LBMTUNE_REQUIRE_ALL") == "1":
            pytest.fail("Chromium is not installed, but this run must not skip: apt-get install chromium")
        pytest.skip("Chromium is not installed")
    profile = folder / "profile"
    done = subprocess.run(
        [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", *extra, "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "HOME": str(folder)},
    )
    return Page(done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line])


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
