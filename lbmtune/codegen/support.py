"""The modules that generated CPU kernels import."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1] / "backend" / "cpu"
_ALWAYS = ("simd", "translate", "vectors")


@cache
def support_digest(*others: str) -> str:
    """Names the text of the support modules, so that what was compiled with other ones is not reused.

    others: those beside the ones that every kernel imports.
    """
    texts = ((_FOLDER / f"{name}.py").read_bytes() for name in (*_ALWAYS, *others))
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]
