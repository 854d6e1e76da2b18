"""A digest of the code that what is kept for later runs was computed by."""

import hashlib
from functools import cache
from pathlib import Path

from lbmtune.codegen.skeleton import kernels_folder

PACKAGE = Path(__file__).resolve().parents[1]


@cache
def code_digest(*packages: str) -> str:
    """Return a digest of the files of packages of lbmtune, all if none is named, and of the skeletons of kernels.

    packages: their folders, such as 'measure/verification'.
    """
    digest = hashlib.sha256()
    folders = [*(PACKAGE / name for name in packages or (".",)), kernels_folder()]
    for path in sorted({path for folder in folders for path in folder.rglob("*.*") if path.suffix != ".pyc"}):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()
