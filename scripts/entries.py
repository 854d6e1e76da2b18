"""Tells the entries of recorded kernels apart, and what their code says: compiles them again, without a GPU.

    python -m scripts.entries [FOLDER]

Looks below studies/recorded by default, at sets of GPUs whose trials say of a kernel what its largest entry uses, as
all did before there were entries, or of a march nothing of the words that it overtakes. Kernels of several entries and
marches are compiled, if something is spilled: of one entry the largest is its own, and where the largest spills nothing
none does. Where the very binary comes out that was recorded, its entries go into the record, and the compiler into
study.json (`entries_by`); others stay as they are, and are counted. Exit code 2 where there is no set.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections import Counter
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.backend.protocol import CompileError
from lbmtune.catalogue.config import CudaConfig, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render
from lbmtune.cores import pool, usable_cores
from lbmtune.records import Entry, Trial
from lbmtune.records.store import HEADER, TRIALS, read_study, write_atomically

DEFAULT = Path(__file__).resolve().parent.parent / "studies" / "recorded"
_SHARE = 8
"""Trials that a process looks at before it asks for more."""


class Found(NamedTuple):
    """Of a trial. entries: none where there is nothing to tell, or nothing that can be told; what: why not, or ''."""

    entries: dict[str, Entry]
    what: str = ""


def told_apart(case: Case, architecture: str, trial: Trial) -> Found:
    """The entries of a trial, compiled again. Raises DeviceUnavailableError without NVRTC."""
    config, known = from_flat(trial.config), trial.resources
    if known is None or not known.spill_bytes:
        return Found({})
    unseen = isinstance(config, CudaConfig) and config.marches and known.overtaken is None
    if known.entries and not unseen:
        return Found({})
    program = render(case, config)
    if program.digest != trial.source_digest:
        return Found({}, "of another text")
    if len(program.entries) == 1 and not unseen:
        return Found({})
    try:
        found = compile_cuda(program, architecture)
    except CompileError:
        return Found({}, "not compiled")
    return Found(found.resources.entries) if found.digest == trial.binary_digest else Found({}, "not reproduced")


def with_entries(line: bytes, entries: dict[str, Entry]) -> bytes:
    """A trial as it is written, and its entries."""
    values: dict[str, Any] = msgspec.json.decode(line)
    values["resources"]["entries"] = entries
    return msgspec.json.encode(values)


def fill(folder: Path, processes: int) -> Counter[str]:
    """Writes the entries of a set into its trials; what became of those that needed it, each counted."""
    header, packed = read_study(folder).header, folder / f"{TRIALS}.gz"
    lines = gzip.decompress(packed.read_bytes()).splitlines()
    trials = [msgspec.json.decode(line, type=Trial) for line in lines]
    work = partial(told_apart, header.spec.case, header.environment.architecture)
    if processes < 2:
        found = list(map(work, trials))
    else:
        with pool(processes) as workers:
            found = list(workers.map(work, trials, chunksize=_SHARE))
    if any(one.entries for one in found):
        filled = [
            with_entries(line, one.entries) if one.entries else line for line, one in zip(lines, found, strict=True)
        ]
        write_atomically(packed, gzip.compress(b"".join(line + b"\n" for line in filled), mtime=0))
        values = msgspec.json.decode((folder / HEADER).read_bytes())
        values["entries_by"] = f"NVRTC {version('nvidia-cuda-nvrtc')}"
        write_atomically(folder / HEADER, msgspec.json.format(msgspec.json.encode(values)) + b"\n")
    return Counter("told apart" if one.entries else one.what for one in found if one.entries or one.what)


def main(arguments: list[str]) -> int:
    """Every set of a GPU below a folder; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT)
    given = parser.parse_args(arguments)
    folders = [trials.parent for trials in sorted(given.folder.rglob(f"{TRIALS}.gz"))]
    if not folders:
        print(f"no recorded set below {given.folder}", file=sys.stderr)
        return 2
    for folder in folders:
        if read_study(folder).header.backend == "cuda":
            done = fill(folder, usable_cores())
            print(
                f"{folder}: {', '.join(f'{n} {what}' for what, n in done.items()) or 'nothing to tell apart'}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
