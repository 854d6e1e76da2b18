"""Paths of the repository and of its recorded sets."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "studies" / "recorded"
