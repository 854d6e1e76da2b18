"""Integer expressions that print themselves: with them a layout returns text instead of numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traced:
    """A non-negative integer expression as C text (`floor_division` '/') or Python text ('//')."""

    text: str
    floor_division: str = "/"

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: object) -> Traced | int:
        return self if other == 0 else self._join("+", other)

    def __radd__(self, other: object) -> Traced | int:
        return self if other == 0 else self._join("+", other, swap=True)

    def __sub__(self, other: object) -> Traced | int:
        return self if other == 0 else self._join("-", other)

    def __mul__(self, other: object) -> Traced | int:
        return 0 if other == 0 else self if other == 1 else self._join("*", other)

    def __rmul__(self, other: object) -> Traced | int:
        return 0 if other == 0 else self if other == 1 else self._join("*", other, swap=True)

    def __floordiv__(self, other: object) -> Traced | int:
        return self if other == 1 else self._join(self.floor_division, other)

    def __mod__(self, other: object) -> Traced | int:
        return 0 if other == 1 else self._join("%", other)

    def _join(self, operator: str, other: object, *, swap: bool = False) -> Traced:
        left, right = (other, self) if swap else (self, other)
        return Traced(f"({left} {operator} {right})", self.floor_division)


def plain(value: object) -> str:
    """Return the text of an expression without parentheses around the whole."""
    text = str(value)
    return text[1:-1] if text.startswith("(") and _closing(text) == len(text) - 1 else text


def _closing(text: str) -> int:
    """Return the position of the parenthesis that closes the first character's."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position
    raise AssertionError(text)
