"""The modules that generated CPU kernels import."""

import hashlib
import re
from functools import cache
from pathlib import Path

from lbmtune.codegen.code_text import code_of

_FOLDER = Path(__file__).resolve().parents[1] / "backend" / "cpu"
_ALWAYS = ("simd", "translate", "vectors")
_OTHERS = ("lists", "lanes", "chase", "places", "walls", "prefetches")
_IMPORTED = re.compile(r"^from lbmtune\.backend\.cpu import (.*)$", re.MULTILINE)
_MADE_FOR = re.compile(r"support module it was made for: (\w+)")


@cache
def support_digest(*others: str) -> str:
    """Return the digest of the support modules, so that code compiled with other ones is not reused.

    others: names of modules beside those that every kernel imports, in any order.
    """
    needed = {*others, "lists"} if "walls" in others else others  # `walls` imports `lists`
    names = (*_ALWAYS, *(name for name in _OTHERS if name in needed))
    texts = (code_of("cpu", (_FOLDER / f"{name}.py").read_text(encoding="utf-8")) for name in names)
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def support_of(source: str) -> tuple[str, str] | None:
    """Return the digest of the support modules that a kernel was made for ('' if missing), and that of those here.

    None for a text that imports no support module.
    """
    made_for, imported = _MADE_FOR.search(source), _IMPORTED.search(source)
    if not imported:
        return None
    return made_for[1] if made_for else "", support_digest(*imported[1].split(", "))
