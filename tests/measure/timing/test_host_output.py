"""Files of density and velocity: their content, their size, and what is said of a disk that takes no more."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from lbmtune.errors import InputError
from lbmtune.measure.timing.host_output import FieldFile


def test_a_file_holds_what_was_written_last(tmp_path: Path) -> None:
    file = FieldFile(tmp_path)
    for size in (1000, 10):
        fields = np.arange(size, dtype=np.float32)
        file.write(fields)
        assert file.content() == fields.tobytes()
    file.close()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FieldFile(tmp_path)

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot write 8.0 MB of .*: No space left on device;"):
        file.write(np.zeros(1_000_000))


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot create a file in .*nowhere: No such file"):
        FieldFile(tmp_path / "nowhere")


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, fields = FieldFile(tmp_path), np.arange(100.0)
    write = file._file.write
    monkeypatch.setattr(file, "_file", _Slow(file._file, write))
    file.write(fields)
    assert file.content() == fields.tobytes()


class _Slow:
    """A file that takes few bytes at once."""

    def __init__(self, file: object, write: object) -> None:
        self._of, self._write = file, write

    def write(self, content: memoryview) -> int:
        return self._write(content[:7])  # type: ignore[operator, no-any-return]

    def __getattr__(self, name: str) -> object:
        return getattr(self._of, name)
