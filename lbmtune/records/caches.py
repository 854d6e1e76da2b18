"""Folders of the user's cache, for results that can be computed again."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "LBMTUNE_CACHE"


def cache_folder(name: str) -> Path:
    """Return a folder of the user's cache, below LBMTUNE_CACHE if it is set."""
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("lbmtune")) / name
