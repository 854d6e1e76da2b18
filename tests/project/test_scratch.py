"""Temporary folders: those of dead processes go, those of living ones and of others stay."""

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from lbmtune.errors import InputError
from lbmtune.scratch import remove_scratch, scratch, scratch_folder

OWNER = """
from lbmtune.scratch import scratch_folder
folder = scratch_folder()
(folder / "1.pickle").write_bytes(b"a program")
print(folder, flush=True)
input()
"""


@pytest.fixture
def root(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_process_left_goes_with_the_next_start(root):
    other = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(root)},
    )
    left = root / other.stdout.readline().strip()
    assert (left / "pid").read_text() == str(other.pid)
    stranger = root / "lbmtune-of-somebody"
    stranger.mkdir()
    with scratch() as ours, scratch():
        assert {left, stranger, ours} < set(root.iterdir())
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        with scratch():
            assert not left.exists()
            assert ours.exists()
    assert list(root.iterdir()) == [stranger]


def test_a_folder_named_by_another_user_is_left_alone(root):
    folder = scratch_folder()
    remove_scratch(folder)
    folder.mkdir()
    (folder / "pid").write_text("1")
    os.chown(folder, 65534, 65534) if os.geteuid() == 0 else (folder / "pid").unlink()
    with scratch():
        assert folder.exists()


def test_a_link_in_place_of_a_folder_is_not_followed(root):
    (root / "precious").mkdir()
    (root / "precious" / "pid").write_text("1")
    (root / "lbmtune-link").symlink_to(root / "precious")
    with scratch():
        assert (root / "precious" / "pid").exists()


def test_no_room(monkeypatch, root):
    monkeypatch.setattr(tempfile, "tempdir", str(root / "gone"))
    with pytest.raises(InputError, match="no folder for temporary files"), scratch():
        pass
