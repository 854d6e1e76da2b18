"""Find the place of this process among those that were started together, and share a few bytes with them.

Launchers (torchrun, Open MPI, MPICH and Intel MPI, Slurm) tell each process its rank by environment variables.
MASTER_ADDR and MASTER_PORT name where rank 0 is, as by torchrun.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from selectors import EVENT_READ, BaseSelector, DefaultSelector
from threading import Thread
from typing import NamedTuple

from lbmtune.errors import DeviceUnavailableError, InputError

_STARTED_BY = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)
"""Variables of a rank, of their number, and of the rank on its host; the first launcher that set them counts."""
_HOST, _PORT = "127.0.0.1", 29500
WAIT_S = 120.0
"""Seconds in which all ranks have to start."""
_RETRY_S = 0.1
_NUMBER = struct.Struct("!I")


@dataclass(frozen=True)
class Rank:
    """The place of a process among those of a run. local: its rank on its host, which is the index of its GPU.

    host, port: where rank 0 listens.
    """

    number: int
    count: int
    local: int
    host: str = _HOST
    port: int = _PORT + 1


def rank_of(environment: Mapping[str, str]) -> Rank:
    """Return the rank of a process by its environment variables. Raises InputError."""
    names = next((names for names in _STARTED_BY if names[0] in environment and names[1] in environment), None)
    if names is None:
        raise InputError(
            "this process has no rank: start one for each GPU with torchrun, mpirun or srun, or set RANK, WORLD_SIZE "
            "and LOCAL_RANK."
        )
    number, count = (_whole(environment, name) for name in names[:2])
    local = _whole(environment, names[2]) if names[2] in environment else number
    if number >= count:
        raise InputError(f"{names[0]}={number} is not supported for {names[1]}={count} (use 0 to {count - 1}).")
    # torchrun itself listens at the port that it names
    port = (_whole(environment, "MASTER_PORT") if "MASTER_PORT" in environment else _PORT) + 1
    return Rank(number, count, local, environment.get("MASTER_ADDR", _HOST), port)


def _whole(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not (text.isascii() and text.isdecimal()):
        raise InputError(f"{name}={text} is not supported (use a whole number): it says which rank a process has.")
    return int(text)


class Meeting(NamedTuple):
    """The content that rank 0 sent, and open connections by the numbers of ranks: of rank 0 to all, of others to it."""

    content: bytes
    connections: Mapping[int, socket.socket]


def meet(place: Rank, made: Callable[[], bytes], wait_s: float = WAIT_S) -> Meeting:
    """Return what rank 0 makes, in every rank. Raises DeviceUnavailableError if not all of them start in time."""
    try:
        return _told(place, made(), wait_s) if place.number == 0 else _heard(place, wait_s)
    except OSError as error:
        raise DeviceUnavailableError(
            f"rank {place.number} of {place.count} found no others in {wait_s:.0f} s at {place.host}, port "
            f"{place.port} ({error}): start all ranks, or set MASTER_ADDR and MASTER_PORT to where rank 0 runs."
        ) from error


def watch(met: Meeting, ended: Callable[[int], None]) -> None:
    """Call a function once, in a thread, with the number of the first rank whose process ends."""
    selector = DefaultSelector()
    for rank, connection in met.connections.items():
        selector.register(connection, EVENT_READ, rank)
    if met.connections:
        Thread(target=_wait, args=(selector, ended), daemon=True).start()


def _wait(selector: BaseSelector, ended: Callable[[int], None]) -> None:
    with selector:
        ended(selector.select()[0][0].data)  # nobody sends: what is to be read is the end


def _told(place: Rank, content: bytes, wait_s: float) -> Meeting:
    found: dict[int, socket.socket] = {}
    with closing(socket.create_server((place.host, place.port))) as server:
        server.settimeout(wait_s)
        for _ in range(place.count - 1):
            connection, _ = server.accept()
            connection.settimeout(wait_s)
            (rank,) = _NUMBER.unpack(_read(connection, _NUMBER.size))
            connection.sendall(_NUMBER.pack(len(content)) + content)
            found[rank] = connection
    return Meeting(content, found)


def _heard(place: Rank, wait_s: float) -> Meeting:
    last = time.monotonic() + wait_s
    while True:
        try:
            connection = socket.create_connection((place.host, place.port), timeout=wait_s)
            connection.sendall(_NUMBER.pack(place.number))
            (size,) = _NUMBER.unpack(_read(connection, _NUMBER.size))
            return Meeting(_read(connection, size), {0: connection})
        except ConnectionRefusedError:
            if time.monotonic() > last:
                raise
            time.sleep(_RETRY_S)


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise ConnectionResetError(f"{len(found)} of {size} bytes came")
        found += more
    return found
