"""Headless Chromium on a local file: the page after its scripts have run, and all that its console said."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

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
