"""Write the pages that follow from the code: families and knobs, exit codes, schema of best.json, scaling, decisions.

    python -m scripts.docs.reference [--check]

Writes docs/reference/*.md, docs/guide/eight-h200.md and docs/decisions/README.md; with --check, writes nothing and
fails if a page is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lbmtune import errors
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import FAMILIES
from lbmtune.catalogue.family_knobs import knobs
from lbmtune.catalogue.knobs import Acts, Knob, own_knobs
from lbmtune.decomposition.coupling import Coupling
from lbmtune.errors import LbmtuneError
from scripts.docs.scaling import scaling_lines
from scripts.paths import ROOT

FOLDER = ROOT / "docs" / "reference"
DECISIONS, GUIDE = ROOT / "docs" / "decisions", ROOT / "docs" / "guide"
SCHEMA = ROOT / "lbmtune" / "records" / "best_json" / "best.schema.json"
_WRITTEN = "<!-- Written by scripts/docs/reference.py from the code; edit the code, not this page. -->"
_KNOB_COLUMNS = ("knob", "meaning", "unit", "default", "values", "acts if")
_OTHER_CODES = {
    0: "Done. `explain` of an illegal configuration is an answer, too.",
    130: "Stopped with Ctrl-C, SIGTERM or SIGHUP. Every finished trial is kept; `--resume` continues.",
}


class Family(NamedTuple):
    """A kernel family with its knobs; summary: a sentence."""

    backend: str
    name: str
    summary: str
    knobs: Sequence[Knob]
    by_device: Mapping[str, str]


def families() -> Iterator[Family]:
    """Yield every family with its knobs, in the order of the backends."""
    for backend in BACKENDS:
        for name, record in FAMILIES[backend].items():
            yield Family(backend, name, _first_line(record), knobs(record), record.by_device)


def families_page() -> str:
    """Return the page of families and knobs."""
    lines = [
        "# Families and their knobs",
        "",
        "A configuration names its family and sets knobs: `family=column,z_cells=8`. A knob that is left out has its",
        "default; without `family` it is `direct`. A knob of another family is refused. The [glossary](glossary.md)",
        "explains the words.",
        "`lbmtune list` prints the same for a case.",
        "",
        "Defaults never change, because they are part of recorded keys. Dots mean that other values are allowed, too.",
        "A knob that does not act has its default. The default of a device is filled in when it is known.",
    ]
    for family in families():
        lines += ["", f"## {family.backend}: {family.name}", "", family.summary, ""]
        rows = [_cells(one, family.by_device) for one in family.knobs]
        lines += _table(_KNOB_COLUMNS, rows)
    said = "How the parts of a domain exchange (`--coupling`), whatever the family."
    rows = [_cells(one, {}) for one in own_knobs(Coupling)]
    lines += ["", "## Several devices", "", said, "", *_table(_KNOB_COLUMNS, rows)]
    lines += ["", "## Which families have a knob", "", *_table(("knob", "cuda", "cpu"), list(_knob_rows()))]
    return _page(lines)


def _cells(one: Knob, by_device: Mapping[str, str]) -> tuple[str, ...]:
    values = ", ".join(map(str, one.allowed or one.search)) + ("" if one.allowed else ", ...")
    default = f"of the device: {by_device[one.name]}" if one.name in by_device else f"`{one.default}`"
    conditions = "; ".join(map(_condition, one.acts)) or "-"
    return (f"`{one.name}`", one.meaning, one.unit or "-", default, values, conditions)


def _condition(acts: Acts) -> str:
    return f"`{acts.on}` {'not ' if acts.unless else ''}{', '.join(map(str, acts.values))}"


def _knob_rows() -> Iterator[tuple[str, ...]]:
    found = list(families())
    for name in sorted({one.name for family in found for one in family.knobs}):
        have = [family for family in found if any(one.name == name for one in family.knobs)]
        yield f"`{name}`", *(", ".join(f.name for f in have if f.backend == backend) or "-" for backend in BACKENDS)


def exit_codes_page() -> str:
    """Return the page of exit codes."""
    found = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, LbmtuneError)]
    raised = {one.exit_code: f"{_first_line(one)} Python: `{one.__name__}`." for one in found if one != LbmtuneError}
    rows = [(str(code), text) for code, text in sorted({**_OTHER_CODES, **raised}.items())]
    return _page(
        [
            "# Exit codes",
            "",
            "An error is one sentence on standard error, of 400 characters at most. It gives the value, the rule that",
            "it breaks and what to do. Control characters of a file or an argument are shown: `\\u001b`.",
            "Errors are subclasses of `lbmtune.errors.LbmtuneError`; any other exception is a bug.",
            "",
            *_table(("code", "meaning"), rows),
            "",
            "Output that nobody reads, because its reader has ended (`head`) or it was closed (`>&-`), is dropped: the",
            "work goes on, its files are written, the code is the same. A standard output without room ends with 2.",
        ]
    )


def _first_line(found: type) -> str:
    return (found.__doc__ or "").strip().split("\n")[0]


def schema_page() -> str:
    """Return the page of the schema of best.json."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    lines = [
        "# The schema of best.json",
        "",
        f"{schema['title']}. The JSON Schema itself is `{SCHEMA.relative_to(ROOT)}`. How to use the file is in",
        "[best.json for the author of a solver](../guide/best-json.md). A field without a default is required.",
    ]
    for name, record in schema["$defs"].items():
        lines += ["", f"## {name}", "", *_paragraphs(record.get("description", "")), ""]
        required = record.get("required", [])
        rows = [(f"`{key}`", _type(one), _default(key, one, required)) for key, one in record["properties"].items()]
        lines += _table(("field", "type", "default"), rows)
    return _page(lines)


def _paragraphs(text: str) -> list[str]:
    """Return a docstring as Markdown: its paragraphs on lines of their own, with blank lines in between."""
    blocks = [" ".join(line.strip() for line in block.splitlines()) for block in text.split("\n\n")]
    return "\n\n".join(block for block in blocks if block).replace("<", "&lt;").split("\n")


def _default(key: str, found: Mapping[str, Any], required: Sequence[str]) -> str:
    if "const" in found:
        return f"always `{json.dumps(found['const'])}`"
    return "-" if key in required else f"`{json.dumps(found.get('default', {}))}`"


def decisions_page() -> str:
    """Return the list of decisions, by topic and title."""
    lines = ["# Decisions", "", "One short file each: what was decided, why, and what was rejected."]
    for topic in sorted(path for path in DECISIONS.iterdir() if path.is_dir()):
        titles = sorted((_title(path), path.relative_to(DECISIONS).as_posix()) for path in topic.glob("*.md"))
        lines += ["", f"## {topic.name.capitalize()}", "", *(f"- [{title}]({path})" for title, path in titles)]
    return _page(lines)


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").split("\n")[0].removeprefix("# ")


def _type(found: Mapping[str, Any]) -> str:
    """Return the type of a field in a few words."""
    if "$ref" in found:
        name = found["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in found:
        return " or ".join(map(_type, found["anyOf"]))
    if "enum" in found:
        return ", ".join(f"`{value}`" for value in found["enum"])
    if found.get("type") == "array":
        if parts := found.get("prefixItems"):
            return f"{len(parts)} x {_type(parts[0])}"
        return f"list of {_type(found['items'])}"
    if found.get("type") == "object" and "additionalProperties" in found:
        return f"name -> {_type(found['additionalProperties'])}"
    return str(found.get("type", "any"))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _page(lines: Sequence[str]) -> str:
    return "\n".join([lines[0], "", _WRITTEN, *lines[1:]]) + "\n"


def pages() -> Mapping[Path, str]:
    """Return the text of each page by its path."""
    return {
        FOLDER / "families.md": families_page(),
        FOLDER / "exit-codes.md": exit_codes_page(),
        FOLDER / "best-json-schema.md": schema_page(),
        DECISIONS / "README.md": decisions_page(),
        GUIDE / "eight-h200.md": _page(scaling_lines()),
    }


def main(arguments: Sequence[str]) -> int:
    """Write or check every page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    given = parser.parse_args(arguments)
    stale = {path: text for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        print(f"{path.relative_to(ROOT)}: {'out of date' if given.check else 'written'}")
        if not given.check:
            path.write_text(text, encoding="utf-8")
    return int(given.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
