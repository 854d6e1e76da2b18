"""Modules ask a backend and a family for traits, and not for their names."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import FAMILIES
from tests.support.paths import ROOT

PACKAGE = ROOT / "lbmtune"
RECORDS = {"CudaConfig", "CpuConfig", *(record.__name__ for found in FAMILIES.values() for record in found.values())}
NAMES = {name for found in FAMILIES.values() for name in found}
FORMATS = {"kind"}
"""Names of variables for export formats, one of which is called as a backend is."""
BACKENDS_ASKED = {
    "backend/cpu/__init__.py": 1,  # the name of a device
    "measure/profiling/profiler_target.py": 1,
}
FAMILIES_ASKED = {
    "claims/run.py": 1,
    "decomposition/coupling.py": 3,
    "export/lbmpy_terms.py": 1,
    "records/legacy/spaces.py": 1,
    "search/kinds.py": 1,
    "search/spaces/usual.py": 1,
}


def backends_asked(tree: ast.AST) -> list[str]:
    """Return comparisons with the name of a backend, and checks of the type of a configuration."""
    compared = [one for one in _comparisons(tree) if _texts(one) & {*BACKENDS} and not _names(one) & FORMATS]
    return [ast.unparse(one) for one in [*compared, *_type_checks(tree)]]


def families_asked(tree: ast.AST) -> list[str]:
    """Return comparisons with the name of a family, and tests of whether it is one of a group."""
    compared = [one for one in _comparisons(tree) if _texts(one) & NAMES or _is_in_group(one)]
    return [ast.unparse(one) for one in compared]


def _comparisons(tree: ast.AST) -> Iterator[ast.Compare]:
    return (one for one in ast.walk(tree) if isinstance(one, ast.Compare))


def _operands(one: ast.Compare) -> Iterator[ast.expr]:
    """Yield what is compared, and the elements of tuples and sets among that."""
    for operand in (one.left, *one.comparators):
        yield from operand.elts if isinstance(operand, ast.Tuple | ast.Set | ast.List) else (operand,)


def _texts(one: ast.Compare) -> set[object]:
    return {operand.value for operand in _operands(one) if isinstance(operand, ast.Constant)}


def _names(one: ast.Compare) -> set[str]:
    return {operand.id for operand in _operands(one) if isinstance(operand, ast.Name)}


def _is_in_group(one: ast.Compare) -> bool:
    """Return whether the family of a configuration is looked up in a constant of the module."""
    asked = isinstance(one.left, ast.Attribute) and one.left.attr == "family"
    return asked and isinstance(one.ops[0], ast.In | ast.NotIn) and any(map(str.isupper, _names(one)))


def _type_checks(tree: ast.AST) -> Iterator[ast.Call]:
    calls = (one for one in ast.walk(tree) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name))
    checks = (one for one in calls if ast.unparse(one.func) in ("isinstance", "issubclass"))
    return (one for one in checks if {ast.unparse(part) for part in ast.walk(one.args[1])} & RECORDS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = 'c' if study.backend == 'cpu' else 'cu'", 1),
        ("if target not in ('cuda', 'hip'): pass", 1),
        ("isinstance(config, CudaConfig | str)", 1),
        ("if kind == 'cuda': pass", 0),
        ("if backend != other: pass\nvalues.get('backend', 'cpu') in known\nisinstance(config, KernelConfig)", 0),
    ],
)
def test_a_question_for_a_backend_is_found(text: str, found: int) -> None:
    assert len(backends_asked(ast.parse(text))) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("if config.family == 'sparse': pass", 1),
        ("return [one for one in all if 'persistent' != one.family]", 1),
        ("if config.family in _ON_CHIP: pass", 1),
        ("if trial.family == family or one.family in shown: pass", 0),
    ],
)
def test_a_question_for_a_family_is_found(text: str, found: int) -> None:
    assert len(families_asked(ast.parse(text))) == found


def _is_of_a_family(path: Path) -> bool:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:2] == ("catalogue", "families") or any(part.replace("_", "-") in NAMES for part in parts)


def _asked(questions: Callable[[ast.AST], list[str]], paths: list[Path]) -> Counter[str]:
    found = {str(path.relative_to(PACKAGE)): questions(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    return Counter({path: len(asked) for path, asked in found.items() if asked})


def test_no_module_asks_for_the_name_of_a_backend() -> None:
    assert _asked(backends_asked, sorted(PACKAGE.rglob("*.py"))) == BACKENDS_ASKED


def test_no_module_outside_the_families_asks_for_the_name_of_one() -> None:
    others = [path for path in sorted(PACKAGE.rglob("*.py")) if not _is_of_a_family(path)]
    assert _asked(families_asked, others) == FAMILIES_ASKED
