"""The modules that generated CPU kernels import."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1] / "backend" / "cpu"
_ALWAYS = ("simd", "translate", "vectors")


@cache
def support_digest(*, indirect: bool = False, lanes: bool = False, chased: bool = False) -> str:
    """Names the text of the support modules, so that what was compiled with other ones is not reused."""
    names = [*_ALWAYS, *(["lists"] if indirect else []), *(["lanes"] if lanes else []), *(["chase"] if chased else [])]
    return hashlib.sha256(b"".join((_FOLDER / f"{name}.py").read_bytes() for name in names)).hexdigest()[:16]
