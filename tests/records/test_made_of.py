"""Records made of the fields that another one has."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lbmtune.records import made_of


@dataclass(frozen=True)
class _Measured:
    mlups: float
    samples: tuple[float, ...]
    disturbed: bool = True


@dataclass(frozen=True, kw_only=True)
class _Printed:
    mlups: float
    samples: int
    disturbed: bool = False
    date: str = ""


def test_fields_are_those_given_then_those_of_the_other_record_then_defaults() -> None:
    found = made_of(_Printed, _Measured(5.0, (1.0, 2.0)), samples=2)
    assert found == _Printed(mlups=5.0, samples=2, disturbed=True, date="")


def test_a_field_that_nobody_has_is_missing() -> None:
    with pytest.raises(TypeError, match="samples"):
        made_of(_Printed, object(), mlups=1.0)
