"""Skeletons of kernels: how their regions are filled, and that no printed text is searched and replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from lbmtune.catalogue.config import FAMILIES
from lbmtune.codegen import skeleton as skeletons
from lbmtune.codegen.cuda.shared import assemble

CODEGEN = Path(skeletons.__file__).resolve().parent
COMMENTS_REMOVED = "code_text.py"
"""The one module that edits text: it takes comments out of a copy, which is digested and never compiled."""
MOST_FILES = 15

SKELETON = """\
first
//@begin example
shown
//@end example
    //@default kept
    outer
    //@begin inner
    inner
    //@end inner
    //@end kept
last
//@begin variants
//@begin kept
other
//@end kept
//@begin example
//@end example
//@end variants
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A skeleton on disk; its name."""
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "some.cu").write_text(SKELETON)
    monkeypatch.setattr(skeletons, "kernels_folder", lambda: tmp_path)
    yield "some.cu"
    for cached in (skeletons.skeleton, assemble._lines, assemble._range, assemble._pieces):
        cached.cache_clear()


def test_regions_are_filled_and_defaults_stay(written: str) -> None:
    found = assemble.fill(written, {"example": "given", "inner": "within", "variants": ""})
    assert found.splitlines() == [
        '#line 1 "kernels/cuda/some.cu"',
        "first",
        '#line 1 "example"',
        "given",
        '#line 6 "kernels/cuda/some.cu"',
        "    outer",
        '#line 1 "inner"',
        "within",
        '#line 11 "kernels/cuda/some.cu"',
        "last",
    ]


def test_a_variant_replaces_a_default_with_all_that_is_inside(written: str) -> None:
    variants = assemble.variants(written, {})
    assert variants == {"kept": '#line 14 "kernels/cuda/some.cu"\nother', "example": ""}
    found = assemble.fill(written, {**variants, "variants": ""})
    assert [line for line in found.splitlines() if not line.startswith("#line")] == ["first", "other", "last"]


def test_a_region_without_default_has_to_be_given(written: str) -> None:
    with pytest.raises(KeyError, match="example"):
        assemble.fill(written, {"variants": ""})


def edits(text: str) -> list[int]:
    """Lines of a module that replace parts of a string: str.replace and re.sub; not dataclasses.replace."""
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    named = ((call, call.func) for call in calls if isinstance(call.func, ast.Attribute))
    return [
        call.lineno
        for call, function in named
        if function.attr in ("sub", "subn", "translate") or (function.attr == "replace" and len(call.args) > 1)
    ]


def test_the_check_tells_replacements_of_text_from_those_of_fields() -> None:
    assert edits("a.replace('x', 'y')\nb = _PATTERN.sub('', text)\nre.sub('x', '', text)") == [1, 2, 3]
    assert edits("replace(config, steps=1)\ndataclasses.replace(config, steps=1)\nsums[k] -= 1") == []


def test_no_module_searches_and_replaces_kernel_text() -> None:
    modules = [path for path in CODEGEN.rglob("*.py") if path.name != COMMENTS_REMOVED]
    found = {path.relative_to(CODEGEN).as_posix(): edits(path.read_text(encoding="utf-8")) for path in modules}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_every_family_has_a_module_and_a_folder_of_skeletons() -> None:
    kernels = skeletons.kernels_folder() / "cuda"
    for family in FAMILIES["cuda"]:
        name = family.replace("-", "_")
        assert callable(import_module(f"lbmtune.codegen.cuda.{name}").render)
        assert list((kernels / name).glob("*.cu"))
    folders = [*(path for path in kernels.rglob("*") if path.is_dir()), kernels, CODEGEN, *(CODEGEN / "cuda").iterdir()]
    for folder in folders:
        assert len([path for path in folder.glob("*.*") if path.is_file()]) <= MOST_FILES, folder
