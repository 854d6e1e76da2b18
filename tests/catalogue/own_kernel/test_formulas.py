"""Formulas have the values that Python gives them, and read nothing but their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.own_kernel.formulas import FormulaError, evaluated, names_of, whole

VALUES = {"nx": 512, "TILE": 48, "HALF": 0.5, "LAYOUT": "SOA"}
LEAVES = st.sampled_from(["nx", "TILE", "HALF"]) | st.integers(0, 99).map(str)


def _joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "<=", "==", " and ", " or "])
    pairs = st.tuples(parts, operators, parts).map(lambda p: f"({p[0]}{p[1]}{p[2]})")
    return pairs | parts.map(lambda p: f"(-{p})") | st.tuples(parts, parts).map(lambda p: f"max({p[0]}, {p[1]})")


@given(st.recursive(LEAVES, _joined, max_leaves=6))
def test_a_formula_has_the_value_that_python_gives_it(formula: str) -> None:
    try:
        expected = eval(formula, {"max": max}, dict(VALUES))
    except ZeroDivisionError:
        with pytest.raises(FormulaError, match="divides by zero"):
            evaluated(formula, VALUES)
        return
    found = evaluated(formula, VALUES)
    both = " and " in formula or " or " in formula
    assert bool(found) == bool(expected) if both else found == expected


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("ceildiv(nx, TILE)", 11),
        ("nx if LAYOUT == 'SOA' else 9", 512),
        ("LAYOUT != 'AOS' and 1 <= TILE < 64", True),
        ("not TILE", False),
        ("ceil(nx / TILE) + floor(HALF)", 11),
    ],
)
def test_what_formulas_have(formula: str, value: object) -> None:
    assert evaluated(formula, VALUES) == value


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("__import__('os').system('true')", "has Call"),
        ("open('/etc/passwd')", "has Call"),
        ("nx.__class__", "has Attribute"),
        ("[n for n in range(9)]", "has ListComp"),
        ("(lambda: 1)()", "has Call"),
        ("f'{nx}'", "has JoinedStr"),
        ("nx ** nx ** nx", "has BinOp"),
        ("1 << 99", "has BinOp"),
        ("LAYOUT * 9", "computes with the word 'SOA'"),
        ("LAYOUT < 3", "mixes words and numbers"),
        ("ny + 1", "reads 'ny', which is none of nx, TILE, HALF, LAYOUT"),
        ("nx +", "is no formula"),
        ("", "is no formula"),
        ("nx" + " + nx" * 100, "has more than 500 characters"),
        ("1" + "0" * 40, "too large"),
        ("*".join(["nx"] * 20), "too large"),
        ("max()", "has Call"),
        ("ceildiv(nx)", "mixes words and numbers"),
    ],
)
def test_what_formulas_do_not_have(formula: str, why: str) -> None:
    with pytest.raises(FormulaError, match=why.replace("(", r"\(")):
        evaluated(formula, VALUES)


def test_names_and_whole_numbers() -> None:
    assert names_of("max(nx, TILE) * 9") == {"nx", "TILE"}
    assert whole("nx / 2", VALUES) == 256
    for formula in ("nx / 3", "-1", "LAYOUT", "nx < 3"):
        with pytest.raises(FormulaError, match="has to be a whole number from 0 up"):
            whole(formula, VALUES)
