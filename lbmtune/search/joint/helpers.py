"""Workers on further devices of this host, as processes of their own."""

import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

LOG = logging.getLogger("lbmtune")
_EXIT_S = 30.0
"""How long a worker may take to end after the search: it may be in the middle of a trial."""


@contextmanager
def helping(devices: Sequence[str], storage: str, folder: Path, name: str) -> Iterator[None]:
    """Run a worker on each of these devices while the block runs; what it says goes to a log in the folder.

    name: of the study in the storage, which has begun. If the block ends with an error, so do the workers.
    """
    command = [sys.executable, "-m", "lbmtune", "worker", "--study", name, "--storage", storage]
    with ExitStack() as left:
        for device in devices:
            log = folder / f"worker-{device}.log"
            with log.open("wb") as told:
                process = subprocess.Popen(
                    [*command, "--device", device], stdin=subprocess.DEVNULL, stdout=told, stderr=told
                )
            left.callback(_end, process)
            left.push(lambda kind, *_, process=process, log=log: None if kind else _await(process, log))
        yield


def _await(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a worker ends by itself, and say if it failed."""
    try:
        code = process.wait(_EXIT_S)
    except subprocess.TimeoutExpired:
        code = None
    if code:
        LOG.warning("a worker ended with exit code %d: %s says why", code, log)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    process.wait()
