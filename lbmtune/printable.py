"""Texts that come from files or arguments, as a terminal may have them."""

import re

_BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that turn the order of those around them."""
_CONTROL = {*range(0x20), *range(0x7F, 0xA0), *_BIDIRECTIONAL, 0x2028, 0x2029} - {ord("\t"), ord("\n")}
_UNSAFE = re.compile(r"[^\w ().,@+/-]")
_SHOWN = {code: f"\\u{code:04x}" for code in _CONTROL}


def printable(text: str) -> str:
    r"""Return a text with control characters as they are written in JSON: \u001b; tabs and ends of lines stay."""
    return text.translate(_SHOWN)


def plain(text: str) -> str:
    """Return the letters, digits and a few signs of a text: it then ends no comment and no string of a program."""
    return _UNSAFE.sub("", text)


def shortened(text: str, most: int, end: int = 150) -> str:
    """Return a text of at most some characters: if it has more, its beginning and the last `end` characters."""
    return text if len(text) <= most else f"{text[: most - end - 5]} ... {text[-end:]}"
