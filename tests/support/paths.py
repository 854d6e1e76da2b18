"""Where the repository lies, and the recorded sets in it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "studies" / "recorded"
