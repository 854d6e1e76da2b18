"""Fields that records of several types have under one name."""

from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def made_of(kind: type[T], record: object, **given: Any) -> T:
    """Return a record of a type with the fields as given, and those that another record has, too, as they are there."""
    names = (one.name for one in fields(kind))  # type: ignore[arg-type]  # a dataclass
    return kind(**{name: getattr(record, name) for name in names if hasattr(record, name)} | given)
