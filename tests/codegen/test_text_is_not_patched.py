"""Kernel text is composed of named regions and policies, and not changed by search and replace."""

import ast
from pathlib import Path

import pytest

from tests.support.paths import ROOT

CODEGEN = ROOT / "lbmtune" / "codegen"
PATCHES = {"replace", "sub", "subn", "translate"}
OF_COMMENTS = "code_text.py"
"""Leaves comments out for a digest; what it returns is no kernel."""


def patches(text: str) -> list[str]:
    """Return the calls of methods that change a text by search and replace."""
    calls = [one.func for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Call)]
    methods = [one for one in calls if isinstance(one, ast.Attribute) and one.attr in PATCHES]
    return [ast.unparse(one) for one in methods if ast.unparse(one.value) != "dataclasses"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("source.replace(*one)", ["source.replace"]),
        ("re.sub('a', 'b', text)", ["re.sub"]),
        ("_SIGNATURE.subn('', text)", ["_SIGNATURE.subn"]),
        ("replace(program, source='')\ndataclasses.replace(program)\nfill('x', {})", []),
    ],
)
def test_a_patch_is_found(text: str, found: list[str]) -> None:
    assert patches(text) == found


@pytest.mark.parametrize("path", sorted(CODEGEN.rglob("*.py")), ids=lambda path: str(path.relative_to(CODEGEN)))
def test_no_module_patches_a_text(path: Path) -> None:
    found = patches(path.read_text(encoding="utf-8"))
    assert len(found) <= {OF_COMMENTS: 2}.get(str(path.relative_to(CODEGEN)), 0), found
