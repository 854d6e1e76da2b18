"""Compares what codegen prints for the same kernels in two revisions of the repository.

    python -m scripts.compare_digests REVISION                 against the working tree
    python -m scripts.compare_digests REVISION --before FILE   keeps what REVISION printed, or reads it again

The kernels are those of every measured trial of the recorded sets, as REVISION records them, and those of the
conformance run, as REVISION draws them. Compared is the code (`lbmtune.codegen.code_text`): comments, `#line` marks and
the digest of the support modules are left out, which are compared by themselves. Each kernel that differs is a line;
the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.code_text import Language, code_of
from lbmtune.codegen.render import render
from lbmtune.cores import usable_cores
from lbmtune.errors import InputError
from lbmtune.records.legacy.configurations import config_of
from scripts.paths import ROOT

_MADE_FOR = "Generated text; the support module it was made for"
_DUMP = """
import importlib, json, sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
import msgspec
sys.path[:0] = [".", "tests"]
from lbmtune.catalogue.config import from_flat
from lbmtune.codegen.render import render
from lbmtune.records.store import read_study
from lbmtune.records.whole_files import HEADER

def first(*names):
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            pass

def printed(sample):
    case, flat = sample
    program = render(case, from_flat(flat))
    return {"case": msgspec.to_builtins(case), "config": flat, "target": program.target,
            "options": program.options, "source": program.source}

def samples():
    for header in sorted(Path("studies/recorded").rglob(HEADER)):
        study = read_study(header.parent)
        for trial in study.ranked:
            yield study.header.spec.case, trial.config
    covering = first("tests.support.conformance.covering", "tests.support.covering", "covering")
    for backend in ("cuda", "cpu"):
        for case, config in covering.everything(backend).samples:
            yield case, config.flat()

if __name__ == "__main__":
    with ProcessPoolExecutor() as pool:
        for line in pool.map(printed, samples(), chunksize=50):
            print(json.dumps(line))
"""


def digest_of(target: Language, options: tuple[str, ...], source: str) -> str:
    """Return the digest of the code of a text and its options, without that of the support modules."""
    code = "\n".join(line for line in code_of(target, source).splitlines() if not line.startswith(_MADE_FOR))
    return hashlib.sha256("\0".join((target, *options, code)).encode()).hexdigest()[:16]


def printed_before(revision: str) -> Iterator[dict[str, Any]]:
    """Yield case, configuration and digest of each kernel, as the code of a revision prints it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "--detach", folder, revision], cwd=ROOT, check=True)
        try:
            command = [sys.executable, "-c", _DUMP]
            environment = {**os.environ, "PYTHONPATH": folder}
            with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout
                for line in process.stdout:
                    told = json.loads(line)
                    digest = digest_of(told["target"], tuple(told["options"]), told["source"])
                    yield {"case": told["case"], "config": told["config"], "digest": digest}
            if process.returncode:
                raise SystemExit(f"revision {revision} could not print its kernels (exit code {process.returncode}).")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


def differs(told: dict[str, Any]) -> str | None:
    """Return a line if the working tree prints other code for a kernel."""
    case = msgspec.convert(told["case"], Case)
    try:
        program = render(case, config_of(told["config"]))
    except InputError as error:
        return f"{told['config']}: {error}"
    now = digest_of(program.target, program.options, program.source)
    return None if now == told["digest"] else f"{told['config']}: {told['digest']} before, {now} now"


def main() -> int:
    """Print every kernel that differs and how many were compared; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision")
    parser.add_argument("--before", type=Path, help="gzipped JSON lines of what REVISION printed; made if missing")
    parser.add_argument("--every", type=int, default=1, help="compare only every n-th kernel")
    given = parser.parse_args()
    if given.before and given.before.exists():
        before = [json.loads(line) for line in gzip.decompress(given.before.read_bytes()).splitlines()]
    else:
        before = list(printed_before(given.revision))
    if given.before and not given.before.exists():
        given.before.write_bytes(gzip.compress("\n".join(map(json.dumps, before)).encode()))
    before = before[:: given.every]
    with ProcessPoolExecutor(usable_cores()) as pool:
        found = [line for line in pool.map(differs, before, chunksize=50) if line]
    print("\n".join(found[:100]))
    print(f"{len(before)} kernels compared, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
