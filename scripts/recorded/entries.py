"""Record the resources of kernels by entry: compile recorded kernels again, without a GPU.

    python -m scripts.recorded.entries [FOLDER]

Sets below studies/recorded by default, of GPUs, whose trials have the resources of the largest entry alone, or of a
kernel of temporal blocking no count of spill hazards. Kernels with spills are compiled if they have several entries or
lack that count. If the result is the recorded binary, its entries go into the record, and the compiler into study.json
(`entries_by`); others stay unchanged, and are counted. Exit code 2 if there is no set.
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
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render
from lbmtune.cores import usable_cores
from lbmtune.process_pool import mapped, pool
from lbmtune.records import Entry, Trial
from lbmtune.records.legacy.configurations import config_of
from lbmtune.records.store import read_study
from lbmtune.records.whole_files import HEADER, TRIALS, replace_file
from scripts.paths import RECORDED

_SHARE = 8
"""Trials that a process takes at once."""
_LOOPING = {"temporal-blocking"}
"""Families of CUDA whose spill hazards are counted."""


class Result(NamedTuple):
    """Result of a trial. entries: empty if none is missing or none can be had; what: why none can be had, or ''."""

    entries: dict[str, Entry]
    what: str = ""


def compiled_entries(case: Case, architecture: str, trial: Trial) -> Result:
    """Return the entries of a trial, compiled again. Raises DeviceUnavailableError without NVRTC."""
    config, known = config_of(trial.config), trial.resources
    if known is None or not known.spill_bytes:
        return Result({})
    unseen = config.family in _LOOPING and known.overtaken is None
    if known.entries and not unseen:
        return Result({})
    program = render(case, config)
    if program.digest != trial.source_digest:
        return Result({}, "of another text")
    if len(program.entries) == 1 and not unseen:
        return Result({})
    try:
        found = compile_cuda(program, architecture)
    except CompileError:
        return Result({}, "not compiled")
    return Result(found.resources.entries) if found.digest == trial.binary_digest else Result({}, "not reproduced")


def with_entries(line: bytes, entries: dict[str, Entry]) -> bytes:
    """Return a line of a trial with its entries."""
    values: dict[str, Any] = msgspec.json.decode(line)
    values["resources"]["entries"] = entries
    return msgspec.json.encode(values)


def fill(folder: Path, processes: int) -> Counter[str]:
    """Write the entries of a set into its trials; return the counts of what became of those that needed it."""
    header, packed = read_study(folder).header, folder / f"{TRIALS}.gz"
    lines = gzip.decompress(packed.read_bytes()).splitlines()
    trials = [msgspec.json.decode(line, type=Trial) for line in lines]
    work = partial(compiled_entries, header.spec.case, header.environment.architecture)
    if processes < 2:
        found = list(map(work, trials))
    else:
        with pool(processes) as workers:
            found = list(mapped(workers, work, trials, _SHARE))
    if any(one.entries for one in found):
        filled = [
            with_entries(line, one.entries) if one.entries else line for line, one in zip(lines, found, strict=True)
        ]
        replace_file(packed, gzip.compress(b"".join(line + b"\n" for line in filled), mtime=0))
        values = msgspec.json.decode((folder / HEADER).read_bytes())
        values["entries_by"] = f"NVRTC {version('nvidia-cuda-nvrtc')}"
        replace_file(folder / HEADER, msgspec.json.format(msgspec.json.encode(values)) + b"\n")
    return Counter("told apart" if one.entries else one.what for one in found if one.entries or one.what)


def main(arguments: list[str]) -> int:
    """Fill every set of a GPU below a folder; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    given = parser.parse_args(arguments)
    folders = [trials.parent for trials in sorted(given.folder.rglob(f"{TRIALS}.gz"))]
    if not folders:
        print(f"no recorded set below {given.folder}", file=sys.stderr)
        return 2
    for folder in folders:
        if BACKENDS[read_study(folder).header.backend].reports_resources:
            done = fill(folder, usable_cores())
            print(
                f"{folder}: {', '.join(f'{n} {what}' for what, n in done.items()) or 'nothing to tell apart'}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
