"""A headless Chromium that tests drive: pages are opened, clicked, typed into and asked, one browser for many pages.

It speaks the DevTools protocol over a pipe: JSON that ends with a zero byte, commands in, answers and events out.
"""

from __future__ import annotations

import atexit
import base64
import gzip
import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = Path(__file__).parent / "axe" / "axe.min.js.gz"
"""axe-core 4.14.1, MPL-2.0, as published."""
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
_DONE = """document.readyState === 'complete' && location.protocol === 'file:'
    && (!document.getElementById('plotly-packed') || document.documentElement.dataset.ready
        || document.documentElement.dataset.errors)"""
_PATIENCE_S = 120.0
_KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "ArrowDown": (40, ""), "ArrowRight": (39, "")}
"""Codes and texts of keys that are not letters."""
_LOUD = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")


class Driven:
    """A browser with one tab. said: all that the console has logged since the last page was opened."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._number, self._rest, self._session = 0, b"", ""
        self.said: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self._call("Performance.enable", timeDomain="threadTicks")

    def open(self, file: Path, width: int = 1280, *, dark: bool = False, height: int = 900) -> None:
        """Open a file on a screen of so many pixels, and wait until its scripts are ready, or have failed."""
        self._call("Emulation.setScrollbarsHidden", hidden=True)
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Page.navigate", url="about:blank")
        self.said.clear()
        self._call("Page.navigate", url=file.as_uri())
        self.wait(_DONE)
        self.ask("new Promise((done) => setTimeout(done))")  # messages of what failed come behind it

    def processor_s(self) -> float:
        """Return the processor seconds of the scripts, styles and layouts of the page since it was opened."""
        found = {one["name"]: one["value"] for one in self._call("Performance.getMetrics")["metrics"]}
        return float(found["TaskDuration"])

    def resize(self, width: int, height: int = 900) -> None:
        """Set the pixels of the screen."""
        scale = {"deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, **scale)

    def draw_all(self) -> None:
        """Draw the figures below the screen, too, unless the page has failed."""
        self.wait("document.documentElement.dataset.errors || !left.size || (drawAll(), false)")
        self.wait("document.documentElement.dataset.errors || plots.every((one) => one.dataset.drawn)")

    def ask(self, expression: str) -> Any:
        """Return the value of an expression of the page; of a promise, what it becomes. Raises AssertionError."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        found = self._call("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true. Raises AssertionError."""
        end = monotonic() + _PATIENCE_S
        while not self.ask(f"Boolean({condition})"):
            assert monotonic() < end, f"never: {condition}; console: {self.said}"
            select.select([], [], [], 0.02)

    def axe(self) -> list[Any]:
        """Return rule, impact and an element of each rule of WCAG that the page breaks.

        Drawings are left out: they are images to a reader, described by their labels.
        """
        self.ask(gzip.decompress(AXE.read_bytes()).decode() + "; 0")
        return list(
            self.ask(
                "axe.run({ exclude: [['.main-svg']] }, { resultTypes: ['violations'] })"
                ".then(({ violations }) => violations.map((one) => [one.id, one.impact, one.nodes[0].html]))"
            )
        )

    def box(self, selector: str) -> dict[str, float]:
        """Scroll to an element and return where it lies on the screen: x and y of its middle, width, height."""
        return dict(
            self.ask(
                f"(async () => {{ const e = document.querySelector({json.dumps(selector)});"
                "e.scrollIntoView({ block: 'center', behavior: 'instant' });"
                "for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame);"
                "const r = e.getBoundingClientRect();"
                "return { x: r.left + r.width / 2, y: r.top + r.height / 2, width: r.width, height: r.height }; })()"
            )
        )

    def hover(self, x: float, y: float) -> None:
        """Move the mouse."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        """Click an element with the mouse."""
        place = self.box(selector)
        self.click_at(place["x"], place["y"])

    def click_at(self, x: float, y: float) -> None:
        """Click a place with the mouse."""
        self.hover(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def write(self, text: str) -> None:
        """Type letters where the cursor is."""
        self._call("Input.insertText", text=text)

    def press(self, key: str, times: int = 1) -> None:
        """Press a key."""
        code, text = _KEYS[key]
        asked = {"key": key, "code": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
        for kind in ("keyDown", "keyUp") * times:
            self._call("Input.dispatchKeyEvent", type=kind, **asked)

    def downloads(self, folder: Path) -> None:
        """Let downloads go into a folder."""
        self._call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def picture(self, path: Path) -> None:
        """Keep what the screen shows as PNG."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._writing, json.dumps(asked).encode() + b"\0")
        for message in self._messages():
            if message.get("id") == self._number:
                assert "error" not in message, (method, message["error"])
                return dict(message["result"])
            if message.get("method") in _LOUD:
                self.said.append(_words(message["params"]))
        raise AssertionError(f"the browser has ended at {method}")

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            one, end, rest = self._rest.partition(b"\0")
            if end:
                self._rest = rest
                yield json.loads(one)
                continue
            ready, _, _ = select.select([self._reading], [], [], _PATIENCE_S)
            assert ready, "the browser does not answer"
            part = os.read(self._reading, 1 << 20)
            if not part:
                return
            self._rest += part


def _words(message: dict[str, Any]) -> str:
    """Return what an entry of the console says."""
    if "exceptionDetails" in message:
        details = message["exceptionDetails"]
        return str(details.get("exception", {}).get("description", details["text"]))
    values = message.get("args") or [{"value": message.get("entry", {}).get("text")}]
    return " ".join(str(one.get("value", one.get("description"))) for one in values)


@cache
def browser() -> Driven:
    """The browser of this process; skips where there is none, fails instead where CI promises one."""
    if not CHROMIUM:
        if os.environ.get("CI") == "true" or os.environ.get("LBMTUNE_REQUIRE_ALL") == "1":
            pytest.fail("Chromium is not installed, but this run must not skip: apt-get install chromium")
        pytest.skip("Chromium is not installed")
    folder = tempfile.mkdtemp(prefix="lbmtune-browser-")
    (to_read, to_write), (from_read, from_write) = os.pipe(), os.pipe()
    # the browser reads commands from 3 and writes answers to 4
    moved = f'exec "$@" 3<&{to_read} 4>&{from_write}'
    process = subprocess.Popen(
        ["bash", "-c", moved, "bash", CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(to_read, from_write),
        env={**os.environ, "HOME": folder},
    )
    os.close(to_read)
    os.close(from_write)
    atexit.register(_end, process, folder)
    return Driven(from_read, to_write)


def _end(process: subprocess.Popen[bytes], folder: str) -> None:
    process.terminate()
    process.wait(30)
    shutil.rmtree(folder, ignore_errors=True)
