"""Files that are written where a user says, and those that are never read or replaced."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lbmtune.errors import InputError
from lbmtune.records.whole_files import HEADER, PROFILE, TRIALS, write_atomically
from lbmtune.regular_file import regular_bytes


@pytest.mark.parametrize("record", [HEADER, TRIALS, f"{TRIALS}.gz", PROFILE])
@pytest.mark.parametrize("by_link", [False, True])
def test_records_of_a_study_are_not_replaced(tmp_path: Path, record: str, by_link: bool) -> None:
    (tmp_path / HEADER).write_text("{}")
    (tmp_path / record).write_text("kept")
    (tmp_path / "link").symlink_to(record)
    with pytest.raises(InputError, match="it is a record of the study in its folder; choose another output folder"):
        write_atomically(tmp_path / ("link" if by_link else record), b"page")
    assert (tmp_path / record).read_text() == "kept"
    assert {one.name for one in tmp_path.iterdir()} == {HEADER, record, "link"}


def test_a_file_of_that_name_elsewhere_may_be_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / PROFILE, b"mine")
    assert (tmp_path / PROFILE).read_bytes() == b"mine"


def test_a_pipe_is_written_into_and_stays_one(tmp_path: Path) -> None:
    pipe, content, read = tmp_path / "pipe", bytes(200_000), list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    for _ in range(1000):  # until the reader has opened its end
        with suppress(InputError):
            write_atomically(pipe, content)
            break
        time.sleep(0.01)
    reader.join()
    assert read == [content]
    assert pipe.is_fifo()


def test_a_pipe_that_nobody_reads_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"cannot write .*pipe: No such device or address"):
        write_atomically(tmp_path / "pipe", b"page")
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    (tmp_path / "link").symlink_to("page.html")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "page.html").read_text() == "new"


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in ((tmp_path / "pipe", "it is no regular file"), (tmp_path, "Is a directory")):
        with pytest.raises(OSError, match=why):
            regular_bytes(path)
