"""Knobs of kernel configurations: each is declared once, where its record declares the field.

From the declaration follow the record's field and default, the values that a study searches, the check of values,
`lbmtune list`, the study file's keys and the reference page.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache, cached_property, lru_cache
from typing import Any, TypeVar, cast

from lbmtune.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
Scalar = int | str
Extent = tuple[int, ...]
_METADATA = "knob"


@dataclass(frozen=True, kw_only=True)
class Acts:
    """A condition under which a knob acts: another knob has one of some values, or (unless) none of them.

    because: ends the sentence that refuses another value; neutral: the value that the knob then has (None: default).
    """

    on: str
    values: tuple[Scalar, ...]
    because: str
    unless: bool = False
    neutral: Scalar | None = None

    def holds(self, others: Mapping[str, Scalar]) -> bool:
        """Return whether the condition holds; it does if the other knob is not given."""
        return self.on not in others or (others[self.on] in self.values) != self.unless


@dataclass(frozen=True, kw_only=True)
class Knob:
    """One tuning parameter of a family.

    meaning: a noun phrase; unit: of a number, empty for names; default: frozen, because it is part of recorded keys;
    search: values that a study searches unless its file says otherwise; allowed: all values (empty: any number from
    `least` up, or any extents); acts: conditions under which it acts; words: names of numbers that a device decides.
    """

    name: str
    meaning: str
    unit: str
    default: Scalar
    search: tuple[Scalar, ...]
    allowed: tuple[Scalar, ...]
    least: int
    acts: tuple[Acts, ...]
    words: tuple[str, ...] = ()

    def neutral(self, others: Mapping[str, Scalar]) -> Scalar | None:
        """Return the value that the knob must have because another keeps it from acting, or None if it acts."""
        for condition in self.acts:
            if not condition.holds(others):
                return self.default if condition.neutral is None else condition.neutral
        return None

    @cached_property
    def is_name(self) -> bool:
        """Return whether its values are names."""
        return isinstance(self.default, str) and not _is_extent_text(self.default)

    @cached_property
    def is_extent(self) -> bool:
        """Return whether its values are extents such as 32x4x1."""
        return isinstance(self.default, str) and _is_extent_text(self.default)

    @cached_property
    def kind(self) -> type[Scalar] | None:
        """Return the type of its values, None for extents."""
        return None if self.is_extent else type(self.default)

    @property
    def use(self) -> str:
        """Return the values that it may have, in words: 'use 1, 2 or 4'."""
        if self.allowed:
            if len(self.allowed) > 3 and self._consecutive:
                return f"use {self.allowed[0]} to {self.allowed[-1]}"
            *most, last = map(str, self.allowed)
            return f"use {', '.join(most)} or {last}" if most else f"use {last}"
        if self.is_extent:
            return f"use extents such as {self.default}"
        return f"use a whole number from {self.least} up"

    @property
    def _consecutive(self) -> bool:
        numbers = [value for value in self.allowed if isinstance(value, int)]
        return numbers == list(range(numbers[0], numbers[0] + len(self.allowed))) if numbers else False


def _is_extent_text(text: str) -> bool:
    parts = text.split("x")
    return len(parts) > 1 and all(part.isdecimal() for part in parts)


def knob(
    default: Any,
    meaning: str,
    *,
    unit: str = "",
    search: tuple[Scalar, ...] | None = None,
    allowed: tuple[Scalar, ...] = (),
    least: int | None = None,
    acts: tuple[Acts, ...] = (),
    words: tuple[str, ...] = (),
) -> Any:
    """Declare a field of a configuration record as a knob; see `Knob` for the arguments.

    least: 1 if the default is 1 (a count), else 0, unless given.
    """
    usual = scalar(default)
    declared = {
        "meaning": meaning,
        "unit": unit,
        "default": usual,
        "search": (usual,) if search is None else search,
        "allowed": allowed,
        "least": int(usual == 1) if least is None else least,
        "acts": acts,
        "words": words,
    }
    return field(default=default, metadata={_METADATA: declared})


def declared(found: Field[Any]) -> Knob | None:
    """Return the knob that a field of a record declares, or None."""
    assert found.default is not MISSING or _METADATA not in found.metadata
    values = found.metadata.get(_METADATA)
    return None if values is None else Knob(name=found.name, **values)


def cached(function: F) -> F:
    """Cache the results of a function of a record's type; mypy takes the types of frozen records for unhashable."""
    return cast(F, cache(function))


@cached
def own_knobs(record: type) -> tuple[Knob, ...]:
    """Return the knobs that a record declares, in the order of its fields."""
    return tuple(one for one in map(declared, fields(record)) if one)


def scalar(value: object) -> Scalar:
    """Return a value as text or number: extents as '32x4x1', a named object as its name."""
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, (int, str)):
        return value
    name = getattr(value, "name", None)
    assert isinstance(name, str)
    return name


def converted(one: Knob, value: object) -> Any:
    """Return a value in the type that the knob's field has. Raises InputError."""
    if type(value) is one.kind:
        return value
    if one.is_name:
        return str(value)
    if one.is_extent:
        return _extent(one, value)
    try:
        return int(str(value))
    except ValueError:
        raise InputError(f"{one.name}={value!r} is not a whole number; {one.use}.") from None


def _extent(one: Knob, value: object) -> Extent:
    count = str(one.default).count("x") + 1
    found = _whole_numbers("x".join(map(str, value)) if isinstance(value, tuple) else str(value))
    if len(found) != count:
        numbers = {2: "two", 3: "three"}[count]
        raise InputError(f"{one.name}={value!r} is not of the form {one.default}; give {numbers} whole numbers.")
    return found


@lru_cache(4096)
def _whole_numbers(text: str) -> Extent:
    """Return the numbers of '32x4x1'; none if it is not of that form."""
    try:
        return tuple(int(part) for part in text.split("x"))
    except ValueError:
        return ()


def field_names(record: type) -> tuple[str, ...]:
    """Return the names of a record's fields."""
    return tuple(f.name for f in fields(record))
