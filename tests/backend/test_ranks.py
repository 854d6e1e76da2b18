"""Ranks by the variables of launchers, and the bytes that rank 0 tells the others."""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest

from lbmtune.backend.ranks import Rank, meet, rank_of, watch
from lbmtune.errors import DeviceUnavailableError, InputError

OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
SLURM = {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}
TORCHRUN = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "node7", "MASTER_PORT": "29400"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        (OPEN_MPI, Rank(3, 4, 1)),
        (SLURM, Rank(2, 4, 0)),
        (SLURM | OPEN_MPI, Rank(3, 4, 1)),
        (TORCHRUN | SLURM, Rank(1, 2, 1, "node7", 29401)),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, Rank(1, 2, 1)),
    ],
)
def test_launchers_name_ranks(environment: dict[str, str], rank: Rank) -> None:
    assert rank_of(environment) == rank


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "this process has no rank: start one for each GPU with torchrun, mpirun or srun"),
        (TORCHRUN | {"RANK": "two"}, r"RANK=two is not supported \(use a whole number\)"),
        (TORCHRUN | {"RANK": "2"}, r"RANK=2 is not supported for WORLD_SIZE=2 \(use 0 to 1\)"),
        (TORCHRUN | {"WORLD_SIZE": "-1"}, "WORLD_SIZE=-1 is not supported"),
        (TORCHRUN | {"MASTER_PORT": "²"}, "MASTER_PORT=² is not supported"),
    ],
)
def test_a_rank_that_is_none_is_refused(environment: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        rank_of(environment)


def test_every_rank_hears_what_the_first_one_makes() -> None:
    port = free_port()
    places = [Rank(number, 3, number, port=port) for number in (2, 1, 0)]  # the first one starts last
    with ThreadPoolExecutor(len(places)) as pool:
        found = list(pool.map(lambda place: meet(place, lambda: bytes(range(128)), 20), places))
    assert [one.content for one in found] == [bytes(range(128))] * 3
    assert [sorted(one.connections) for one in found] == [[0], [0], [1, 2]]
    ended = Queue[tuple[int, int]]()
    for place, met in zip(places, found, strict=True):
        watch(met, lambda rank, here=place.number: ended.put((here, rank)))
    found[1].connections[0].close()  # rank 1 ends, which rank 0 hears, and its own watch does not
    assert ended.get(timeout=20) == (0, 1)
    for connection in found[2].connections.values():
        connection.close()
    assert ended.get(timeout=20) == (2, 0), "the others hear it of rank 0, which cannot go on"


@pytest.mark.parametrize("number", [0, 1])
def test_ranks_that_nobody_started_are_not_waited_for(number: int) -> None:
    port = free_port()
    said = f"rank {number} of 2 found no others in 0 s at 127.0.0.1, port {port} ("
    with pytest.raises(DeviceUnavailableError, match=re.escape(said)):
        meet(Rank(number, 2, 0, port=port), lambda: b"", 0.05)
