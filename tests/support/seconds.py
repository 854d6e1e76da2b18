"""Comparison of seconds of an update: picoseconds, which are nothing to `pytest.approx` unless it is told otherwise."""

from __future__ import annotations

from typing import Any

import pytest


def close(expected: Any, rel: float = 1e-6) -> Any:
    """Equal but for so small a part, however little that is: by default 1e-12 more or less is equal."""
    return pytest.approx(expected, rel=rel, abs=0)
