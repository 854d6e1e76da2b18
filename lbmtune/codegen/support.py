"""The modules that generated CPU kernels import."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from lbmtune.codegen.code_text import code_of

_FOLDER = Path(__file__).resolve().parents[1] / "backend" / "cpu"
_ALWAYS = ("simd", "translate", "vectors")


@cache
def support_digest(*others: str) -> str:
    """Names the text of the support modules, so that what was compiled with other ones is not reused.

    others: those beside the ones that every kernel imports.
    """
    texts = (code_of("cpu", (_FOLDER / f"{name}.py").read_text(encoding="utf-8")) for name in (*_ALWAYS, *others))
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]
