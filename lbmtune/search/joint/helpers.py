"""Workers on further devices of this host, as processes of their own."""

import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

LOG = logging.getLogger("lbmtune")
_EXIT_S = 30.0
"""How long a worker may take to end after the search: it may be in the middle of a trial."""


@contextmanager
def helping(devices: Sequence[str], storage: str, folder: Path, name: str) -> Iterator[None]:
    """Run a worker on each of these devices while the block runs; what it says goes to a log in the folder.

    name: of the study in the storage, which has begun. A worker that fails is told at once. If the block ends with an
    error, so do the workers.
    """
    command = [sys.executable, "-m", "lbmtune", "worker", "--study", name, "--storage", storage]
    with ExitStack() as left:
        for device in devices:
            log = folder / f"worker-{device}.log"
            with log.open("wb") as told:
                process = subprocess.Popen(
                    [*command, "--device", device], stdin=subprocess.DEVNULL, stdout=told, stderr=told
                )
            ended = Event()
            watch = Thread(target=_watch, args=(process, log, ended), daemon=True)
            watch.start()
            left.callback(watch.join)
            left.callback(_end, process, ended)
            left.push(lambda kind, *_, watch=watch: None if kind else watch.join(_EXIT_S))
        yield


def _watch(process: subprocess.Popen[bytes], log: Path, ended: Event) -> None:
    """Wait until a worker ends, and say if it failed. ended: set before this program ends it."""
    code = process.wait()
    if code and not ended.is_set():
        LOG.warning("a worker ended with exit code %d: %s says why", code, log)


def _end(process: subprocess.Popen[bytes], ended: Event) -> None:
    ended.set()
    if process.poll() is None:
        process.terminate()
    process.wait()
