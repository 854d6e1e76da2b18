"""First lines of docstrings are understood alone; those of public functions are sentences (docs/style.md)."""

import ast
from collections.abc import Iterator

from tests.support.paths import ROOT

MODULES = sorted((ROOT / "lbmtune").rglob("*.py"))
OTHERS = sorted(path for name in ("scripts", "tests") for path in (ROOT / name).rglob("*.py"))
HALF = ("What ", "Of ", "The same ", "Whether ", "How ", "When ", "Where ", "Which ")
"""Openers of half a sentence."""


def public(node: ast.AST) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield the public functions and classes in a module or a class, and what is public in those classes."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)) and not one.name.startswith("_"):
            yield one
            if isinstance(one, ast.ClassDef):
                yield from public(one)


def title(text: str) -> str:
    """Return the first line of the docstring of a module."""
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def faults(text: str) -> list[str]:
    """Return the first lines in a module that are no sentence, and those of functions that begin with a noun."""
    found = []
    for one in public(ast.parse(text)):
        line = (ast.get_docstring(one) or "").partition("\n")[0]
        noun = isinstance(one, ast.FunctionDef) and line.startswith(("The ", "A ", "An ", "Number ", "True "))
        if line and (noun or line.startswith(HALF) or not line.endswith(".")):
            found.append(f"{one.name}: {line}")
    return found


def test_first_lines_are_sentences() -> None:
    found = {str(module.relative_to(ROOT)): faults(module.read_text(encoding="utf-8")) for module in MODULES}
    assert len(found) > 300
    assert {module: lines for module, lines in found.items() if lines} == {}


def test_titles_of_modules_are_no_half_sentences() -> None:
    titles = {str(module.relative_to(ROOT)): title(module.read_text("utf-8")) for module in (*MODULES, *OTHERS)}
    assert sum(map(bool, titles.values())) > 900
    assert {module: line for module, line in titles.items() if line.startswith(HALF)} == {}
    assert title('"""What it has.\n\nMore."""').startswith(HALF)


def test_a_line_that_is_none_is_found() -> None:
    text = '''
class Whole:
    """A whole."""

    @property
    def part(self):
        """{}"""
'''
    assert faults(text.format("Return the part.")) == []
    for line in ("The part.", "Whether it has parts.", "Return the part", "What it has."):
        assert faults(text.format(line)) == [f"part: {line}"]
