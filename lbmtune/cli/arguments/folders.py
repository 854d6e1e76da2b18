"""A cache for every run: the user's, or one that lasts as long as the run if that cannot be written."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile

from lbmtune.records.store import CACHE_VARIABLE, cache_folder

LOG = logging.getLogger("lbmtune")


def provide_cache() -> None:
    """Give this process and its workers a temporary cache, with a remark, if the user's cannot be written."""
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
    LOG.warning(
        f"cannot write {root} ({reason}): compiled kernels and rankings of this run are not kept, and other runs on "
        f"the device are not noticed; set {CACHE_VARIABLE} to a folder that can be written."
    )
