"""Workers that share a study in PostgreSQL, which the test starts on this host."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.search.joint.test_joint_study import three_share

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
needed = pytest.mark.skipif(PROGRAMS is None and not os.environ.get("LBMTUNE_REQUIRE_ALL"), reason="needs PostgreSQL")


@pytest.fixture
def postgres() -> Iterator[str]:
    """Start a server on a free port of the loopback, and yield its URL."""
    assert PROGRAMS
    root = os.geteuid() == 0  # under which it does not run
    folder = Path(tempfile.mkdtemp(prefix="lbmtune-pg-"))
    if root:
        shutil.chown(folder, "postgres")

    def run(program: str, *arguments: str) -> None:
        command = [str(PROGRAMS / program), *arguments]
        done = subprocess.run(
            command,
            user="postgres" if root else None,
            extra_groups=[] if root else None,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run("initdb", "-D", f"{folder}/data", "-A", "trust", "-N", "-U", "postgres")
    options = f"-k {folder} -h 127.0.0.1 -p {port} -c fsync=off"
    run("pg_ctl", "-D", f"{folder}/data", "-w", "-o", options, "-l", f"{folder}/log", "start")
    yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    run("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop")
    shutil.rmtree(folder)


@needed
def test_three_workers_share_a_study_in_postgres(tmp_path: Path, postgres: str) -> None:
    three_share(tmp_path, postgres)
