"""Faults of the machine in the way of processes: a disk without room, a limit of processes."""

import errno
import os
import tempfile

from lbmtune.errors import InputError
from lbmtune.records.store import CACHE_VARIABLE, cache_folder

_NO_NEW_THREAD = "can't start new thread"
"""Words of Python for the same."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def too_many_processes(what: str) -> InputError:
    """Return the error for a limit of processes or threads. what: what failed."""
    return InputError(f"{what}; raise the limit of processes (ulimit -u, pids of a control group) and try again.")


def fault_of_machine(error: BaseException) -> InputError | None:
    """Return the error for a disk without room or a limit of processes; None for a fault of what runs."""
    if isinstance(error, RuntimeError) and str(error).startswith(_NO_NEW_THREAD):
        return too_many_processes(str(error))
    if not isinstance(error, OSError) or error.errno not in (*_NO_ROOM, errno.EAGAIN):
        return None
    if error.errno == errno.EAGAIN:
        return too_many_processes(f"a process cannot be started ({error.strerror})")
    temporary = os.environ.get("TMPDIR", tempfile.gettempdir())  # the latter is another one once that is full
    where = error.filename or f"a file in {temporary} (TMPDIR) or {cache_folder('')} ({CACHE_VARIABLE})"
    return InputError(f"cannot write {where}: {error.strerror}; make room and try again, a study with --resume.")
