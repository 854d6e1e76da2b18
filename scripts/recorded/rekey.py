"""Brings recorded sets of version 0.1 to the names, keys and digests of today, and proves that nothing else changed.

    python -m scripts.recorded.rekey REVISION        REVISION: the last one of version 0.1

Each configuration becomes the record of its family (`lbmtune.records.legacy`), each key that of the record. A recorded
digest is replaced if REVISION still prints the recorded text for the configuration, and if the working tree prints the
same code; anything else ends the run with exit code 1 and leaves that file as it was. All other values stay.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.probes.walks import walks_digest
from lbmtune.codegen.render import render
from lbmtune.codegen.streams import streams_digest
from lbmtune.export import best, encode_best
from lbmtune.measure.workers.side_tasks import with_side_task
from lbmtune.records.claims import SideTask
from lbmtune.records.header import StudyHeader
from lbmtune.records.legacy.configurations import config_of, is_legacy
from lbmtune.records.store import FAMILIES_SINCE, current_header, read_study
from lbmtune.records.whole_files import HEADER, TRIALS
from scripts.compare_digests import digest_of
from scripts.paths import RECORDED, ROOT

_BEFORE = """
import json, sys
import msgspec
sys.path[:0] = ["."]
from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import from_flat
from lbmtune.codegen.render import render
from lbmtune.measure.duties import equipped
from lbmtune.records.claims import Duty
for line in sys.stdin:
    asked = json.loads(line)
    duty = msgspec.convert(asked["duty"], Duty | None)
    program = equipped(render(msgspec.convert(asked["case"], Case), from_flat(asked["config"])), duty)
    told = {"digest": program.digest, "target": program.target, "options": program.options, "source": program.source}
    print(json.dumps(told), flush=True)
"""


class Before:
    """An earlier revision, which a process of its own asks what it prints."""

    def __init__(self, folder: str) -> None:
        environment = {**os.environ, "PYTHONPATH": folder}
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", _BEFORE]
        self._process = subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True)
        self._known: dict[str, dict[str, Any]] = {}

    def printed(self, case: Any, config: Mapping[str, Any], duty: Any) -> dict[str, Any]:
        """Return digest, target, options and text of a kernel."""
        asked = json.dumps({"case": case, "config": config, "duty": duty}, sort_keys=True)
        if asked not in self._known:
            assert self._process.stdin
            assert self._process.stdout
            print(asked, file=self._process.stdin, flush=True)
            self._known[asked] = json.loads(self._process.stdout.readline())
        return self._known[asked]


class Rekey:
    """Rewrites JSON values; counts what it replaced, and lists what it could not prove."""

    def __init__(self, before: Before) -> None:
        self._before = before
        self.configs, self.digests, self.unproved = 0, 0, list[str]()

    def rewritten(self, value: Any, case: Any = None, duty: Any = None) -> Any:
        """Return a JSON value by the names of today. case, duty: of the kernels in it."""
        if isinstance(value, list):
            return [self.rewritten(one, case, duty) for one in value]
        if not isinstance(value, dict):
            return value
        case, duty = value.get("case", case), value.get("duty", duty)
        inner = {name: self.rewritten(one, case, duty) for name, one in value.items()}
        flat = value.get("config")
        if not (isinstance(flat, dict) and flat and is_legacy(flat)):
            return inner
        config = config_of(flat)
        self.configs += 1
        inner["config"] = config.flat()
        if value.get("key"):
            inner["key"] = config.key
        if value.get("source_digest"):
            inner["source_digest"] = self._digest(value, _case_of(value, case), flat, duty)
        return inner

    def _digest(self, value: Mapping[str, Any], case: Any, flat: Mapping[str, Any], duty: Any) -> str:
        """Return the digest of today of a recorded kernel, if it is the same code."""
        recorded = str(value["source_digest"])
        told = self._before.printed(case, flat, duty)
        program = render(msgspec.convert(case, Case), config_of(flat))
        program = with_side_task(program, msgspec.convert(duty, SideTask | None))
        then = digest_of(told["target"], tuple(told["options"]), told["source"])
        now = digest_of(program.target, program.options, program.source)
        if told["digest"] != recorded or then != now:
            what = "is not what the revision prints" if told["digest"] != recorded else "has other code now"
            self.unproved.append(f"{recorded[:12]} {what}: {flat}")
            return recorded
        self.digests += 1
        return program.digest


def _case_of(value: Mapping[str, Any], case: Any) -> Any:
    """Return the case of a kernel: of the vortex, if only its accuracy was measured."""
    accuracy = value.get("accuracy")
    if case is not None or not isinstance(accuracy, dict):
        return case
    nx, ny, nz = accuracy["domain"]
    return msgspec.to_builtins(box(accuracy["lattice"], accuracy["collision"], (nx, ny, nz)))


def studies(rekey: Rekey) -> Iterator[Path]:
    """Rewrite trials, header and best.json of each set; yield its folder."""
    for path in sorted(RECORDED.rglob(HEADER)):
        folder = path.parent
        header = msgspec.json.decode(path.read_bytes(), type=StudyHeader)
        if header.schema >= FAMILIES_SINCE:
            continue
        case = msgspec.to_builtins(header.spec.case)
        packed = folder / f"{TRIALS}.gz"
        lines = gzip.decompress(packed.read_bytes()).splitlines()
        trials = [rekey.rewritten(json.loads(line), case) for line in lines]
        text = b"".join(msgspec.json.encode(trial) + b"\n" for trial in trials)
        packed.write_bytes(gzip.compress(text, mtime=0))
        path.write_bytes(msgspec.json.format(msgspec.json.encode(current_header(header))) + b"\n")
        study = read_study(folder)
        current = replace(study, header=replace(study.header, version=header.version))
        (folder / "best.json").write_bytes(encode_best(best(current)))
        yield folder


def others(rekey: Rekey) -> Iterator[Path]:
    """Rewrite the other recorded files; yield each."""
    found = [p for p in RECORDED.rglob("*.json") if p.name not in (HEADER, "best.json", "physics.json")]
    for path in sorted([*found, *RECORDED.rglob("claims*.json.gz")]):
        packed = path.suffix == ".gz"
        content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        value = json.loads(content)
        now = rekey.rewritten(value)
        if now == value:
            continue
        text = json.dumps(now, ensure_ascii=False, indent=None if packed else 1).encode()
        path.write_bytes(gzip.compress(text, mtime=0) if packed else text + b"\n")
        yield path


def machines(before: str) -> Iterator[Path]:
    """Replace the digests of micro-benchmarks whose texts have the same code; yield each description."""
    ask = "from lbmtune.codegen.streams import streams_digest as s; from lbmtune.codegen.walks import walks_digest as w"
    command = [sys.executable, "-c", f"{ask}; print(s('cuda'), s('cpu'), w())"]
    environment = {**os.environ, "PYTHONPATH": before}
    told = subprocess.run(command, cwd=before, env=environment, capture_output=True, text=True, check=True).stdout
    now = (streams_digest("cuda"), streams_digest("cpu"), walks_digest())
    for path in sorted(RECORDED.rglob("machine.toml")):
        text = path.read_text()
        for old, new in zip(told.split(), now, strict=True):
            text = text.replace(f'digest = "{old}"', f'digest = "{new}"')
        if text != path.read_text():
            path.write_text(text)
            yield path


def main() -> int:
    """Rewrite all recorded files and print what was done; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder, given.revision], cwd=ROOT, check=True)
        try:
            rekey = Rekey(Before(folder))
            paths = [*studies(rekey), *others(rekey), *machines(folder)]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)
    print("\n".join(rekey.unproved))
    counted = f"{rekey.configs} configurations and {rekey.digests} digests"
    print(f"{len(paths)} files, {counted} brought to today, {len(rekey.unproved)} not proved")
    return 1 if rekey.unproved else 0


if __name__ == "__main__":
    sys.exit(main())
