"""A cache for every run: the user's, or one that lasts as long as the run where that cannot be written."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from lbmtune.cli.format.output import note
from lbmtune.records.caches import CACHE_VARIABLE, cache_folder


def provide_cache() -> None:
    """Says once where nothing can be kept, and gives this process and its workers a folder of their own then."""
    root = cache_folder("")
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            return
    except OSError as error:
        reason = error.strerror
    for_now = tempfile.mkdtemp(prefix="lbmtune-cache-")
    atexit.register(shutil.rmtree, for_now, ignore_errors=True)
    os.environ[CACHE_VARIABLE] = for_now
    note(
        f"cannot write {root} ({reason}): compiled kernels and rankings of this run are not kept, and other runs on "
        f"the device are not noticed; set {CACHE_VARIABLE} to a folder that can be written."
    )
