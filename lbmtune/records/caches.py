"""Where what can be worked out again is kept."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "LBMTUNE_CACHE"


def cache_folder(name: str) -> Path:
    """A folder of the user's cache; LBMTUNE_CACHE says where that is."""
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("lbmtune")) / name
