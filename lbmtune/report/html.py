"""Fill templates with figures and plotly.js into pages that work offline."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbmtune.report.drawing import Figure, thin

if TYPE_CHECKING:
    from jinja2 import Environment

_PAGE = Path(__file__).with_name("page")
_THINNED = " Some of the points are drawn, evenly: zooming in draws the others."


@dataclass(frozen=True)
class Panel:
    """A figure of a page. figure: packed Plotly JSON; wide: it has a row of its own."""

    name: str
    title: str
    caption: str
    figure: str
    wide: bool = False


def panel(name: str, title: str, caption: str, figure: Figure) -> Panel:
    """Return a figure as a panel of a page."""
    said = caption + _THINNED if thin(figure) else caption
    return Panel(name, title, said, packed(str(figure.to_json())))


def filled(template: str, scripts: Sequence[str], panels: Sequence[Panel], **values: Any) -> str:
    """Return the HTML text of a template with its values, style, scripts and plotly.js. panels: all of the page."""
    return (
        _templates()
        .get_template(template)
        .render(
            style=(_PAGE / "style.css").read_text(encoding="utf-8"),
            script="".join((_PAGE / name).read_text(encoding="utf-8") for name in scripts),
            plotly=_shipped("plotly-cartesian.min.js.gz"),
            panels=panels,
            table_library=_shipped("tabulator.min.js.gz"),
            table_style=_shipped("tabulator.min.css.gz"),
            **values,
        )
    )


def figure_page(title: str, figure: Figure, height: str, text: str = "") -> bytes:
    """Return a self-contained page of one figure, with text below it."""
    picture = figure.to_html(full_html=False, include_plotlyjs=True, default_height=height)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>"
        "<body style='font-family: sans-serif; margin: 2em'>"
        f"<h1 style='font-size: 1.2em; overflow-wrap: anywhere; white-space: pre-line'>{escape(title)}</h1>"
        f"{picture}<pre>{escape(text)}</pre></body></html>\n"
    ).encode()


def script_json(values: object) -> str:
    """Return JSON that cannot end the script element that holds it."""
    text = json.dumps(values, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def _shipped(name: str) -> str:
    return base64.b64encode((_PAGE / "libraries" / name).read_bytes()).decode()


def packed(text: str | bytes) -> str:
    """Return a text as base64 of gzip, which the page unpacks."""
    plain = text.encode() if isinstance(text, str) else text
    return base64.b64encode(gzip.compress(plain, 9, mtime=0)).decode()
