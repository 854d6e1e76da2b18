"""Limits of control groups and of ulimit, read from files of either version."""

import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from lbmtune import cores, quotas
from tests.support.paths import ROOT

GIB = 1 << 30
JOB = "/slurm/job_7"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the root of made-up control groups of a host with 64 GiB, of which 60 are free."""
    memory = psutil.virtual_memory()._replace(total=64 * GIB, available=60 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(quotas, "_MOUNTED", tmp_path / "groups")
    monkeypatch.setattr(quotas, "_OWN", tmp_path / "own")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(16)))
    return tmp_path


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def group_of(host: Path, version: int, controller: str, path: str = JOB) -> Path:
    """Return the folder of a group that this process is in."""
    own = f"0::{path}\n" if version == 2 else f"4:memory:{path}\n3:cpu,cpuacct:{path}\n0::/elsewhere\n"
    (host / "own").write_text(own)
    return host / "groups" / (controller if version == 1 else "") / path.strip("/")


def limit_memory(folder: Path, version: int, limit: object, used: int, file: int) -> None:
    if version == 1:
        stat = f"inactive_file 5\ntotal_inactive_file {file}"
        write(folder, memory__limit_in_bytes=limit, memory__usage_in_bytes=used, memory__stat=stat)
    else:
        write(folder, memory__max=limit, memory__current=used, memory__stat=f"anon 5\ninactive_file {file}")


@pytest.mark.parametrize("version", [1, 2])
def test_memory_is_what_the_control_group_leaves(host: Path, version: int) -> None:
    folder = group_of(host, version, "memory")
    limit_memory(folder, version, 4 * GIB, 2 * GIB, GIB)
    assert quotas.memory() == (4 * GIB, 3 * GIB, True)
    limit_memory(folder.parent, version, 3 * GIB, 2 * GIB, 0)
    assert quotas.memory() == (3 * GIB, GIB, True), "that of a group above is the least"


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_sees_its_group_at_the_root(host: Path, version: int) -> None:
    root = group_of(host, version, "memory").parent.parent
    limit_memory(root, version, 4 * GIB, 5 * GIB, 0)
    assert quotas.memory() == (4 * GIB, 0, True)


@pytest.mark.parametrize(("version", "unlimited"), [(1, 9223372036854771712), (2, "max")])
def test_without_a_limit_memory_is_that_of_the_host(host: Path, version: int, unlimited: object) -> None:
    limit_memory(group_of(host, version, "memory"), version, unlimited, GIB, 0)
    assert quotas.memory() == (64 * GIB, 60 * GIB, False)
    (host / "own").unlink()
    assert quotas.memory() == (64 * GIB, 60 * GIB, False)
    assert quotas.cores() is None
    assert quotas.oom_kills() == 0
    assert cores.usable_cores() == 16


def test_the_address_space_is_memory_as_well(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 40, resource.RLIM_INFINITY))
    assert quotas.memory() == (64 * GIB, 60 * GIB, False)
    monkeypatch.undo()
    told = [sys.executable, "-c", "from lbmtune.quotas import memory; print(*memory())"]
    limited = subprocess.run(["prlimit", f"--as={GIB}", *told], capture_output=True, text=True, cwd=ROOT, check=True)
    total, available, less = limited.stdout.split()
    assert (int(total), less) == (GIB, "True")
    assert 0 < int(available) < GIB


@pytest.mark.parametrize(("quota", "found"), [(250_000, 2), (50_000, 1), (6_400_000, 16)])
@pytest.mark.parametrize("version", [1, 2])
def test_processors_are_those_of_the_quota(host: Path, version: int, quota: int, found: int) -> None:
    folder = group_of(host, version, "cpu")
    if version == 1:
        write(folder, cpu__cfs_quota_us=quota, cpu__cfs_period_us=100_000)
        write(folder.parent, cpu__cfs_quota_us=-1, cpu__cfs_period_us=100_000)
    else:
        write(folder, cpu__max=f"{quota} 100000")
        write(folder.parent, cpu__max="max 100000")
    assert cores.usable_cores() == found


def test_processors_of_one_core_count_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of 16 processors 0 and 8 are one core, 1 and 9, and so on; 3 is a core by itself if the system says nothing."""
    monkeypatch.setattr(cores, "_TOPOLOGY", str(tmp_path / "{}"))
    for processor in range(16):
        (tmp_path / str(processor)).write_text(f"{processor % 8},{processor % 8 + 8}\n", encoding="ascii")
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(16)))
    assert cores.physical_cores() == 8
    assert cores.physical_cores({0, 8, 1}) == 2
    (tmp_path / "3").unlink()
    assert cores.physical_cores() == 9


@pytest.mark.parametrize("version", [1, 2])
def test_kills_for_want_of_memory_are_counted(host: Path, version: int) -> None:
    folder = group_of(host, version, "memory")
    if version == 1:
        write(folder, memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 3")
    else:
        write(folder, memory__events="low 0\noom 4\noom_kill 3\noom_group_kill 0")
    assert quotas.oom_kills() == 3
