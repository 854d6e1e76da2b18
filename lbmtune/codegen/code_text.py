"""The code of a text: what a compiler translates, without what only readers need."""

import re
from collections.abc import Mapping
from typing import Literal

Language = Literal["cuda", "cpu"]
_DOCSTRING = re.compile(r'^[ \t]*"""(?:.|\n)*?"""[ \t]*$', re.MULTILINE)
_MADE_FOR = re.compile(r"^Generated text; the support module it was made for: \w+$", re.MULTILINE)
"""The line of a docstring that is part of the code: the digest of the imported support modules."""
_COMMENTS: Mapping[Language, re.Pattern[str]] = {
    "cuda": re.compile(r"^[ \t]*#line .*$|//.*$", re.MULTILINE),
    "cpu": re.compile(r"(?:^|\s)#.*$", re.MULTILINE),
}


def code_of(language: Language, text: str) -> str:
    """Return the text without comments, docstrings, `#line` marks, blank lines and trailing blanks.

    Two texts with the same code compile to the same instructions, so records name the code and a comment may change.
    language: "cuda" for CUDA C++, "cpu" for Python. The kernels have no comment marks inside of string literals.
    """
    bare = _COMMENTS[language].sub("", _DOCSTRING.sub(lambda found: "\n".join(_MADE_FOR.findall(found[0])), text))
    lines = (line.rstrip() for line in bare.splitlines())
    return "\n".join(line for line in lines if line)
