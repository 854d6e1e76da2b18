"""Give lbmtune damaged and hostile input: each ends as documented, in one short line, without a traceback or a hang.

    python -m scripts.fuzz --count 5000

Study files, configurations, machine files, best.json, records, voxel files and command lines go through calls of
lbmtune.cli.main and lbmtune.load. Inputs follow from the seed. Those that end otherwise are kept under build/fuzz with
what became of them.
"""

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import lbmtune
from lbmtune.cli import main as lbmtune_main
from lbmtune.errors import LbmtuneError
from scripts import fuzz_values as values
from scripts.paths import RECORDED, ROOT

LONGEST = 400
"""Characters of an error on the command line."""
_SECONDS, _WALL_SECONDS = 30, 180
_MEMORY_BYTES = 8 << 30
Random = random.Random


@dataclass(frozen=True)
class Input:
    """Files by name, and a command line that reads them, or, if that is None, the file that lbmtune.load reads."""

    kind: str
    files: dict[str, bytes] = field(default_factory=dict)
    arguments: tuple[str, ...] | None = None
    load: str = ""


class HangError(BaseException):
    """Raised when a call takes too long."""


def fault(given: Input, folder: Path) -> str:
    """Return what is wrong with the answer to an input; empty if it is as documented."""
    for name, content in given.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with _limited():
                code = _load(given.load) if given.arguments is None else _call(given.arguments)
        except HangError:
            return "hangs"
        except BaseException as error:  # whatever it is, it is a fault
            ours = [at for at in traceback.extract_tb(error.__traceback__) if str(ROOT / "lbmtune") in at.filename]
            at = ours[-1] if ours else traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}: {str(error)[:200]}"
    return _judged(code, out.getvalue(), err.getvalue(), api=given.arguments is None)


def _call(arguments: Sequence[str]) -> int:
    try:
        lbmtune_main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    raise AssertionError("main returned")


def _load(path: str) -> int:
    try:
        lbmtune.load(path, domain=(32, 32, 32))
    except LbmtuneError as error:
        sys.stderr.write(f"lbmtune: {error}\n")
        return error.exit_code
    return 0


def _judged(code: int, out: str, err: str, *, api: bool) -> str:
    """Return how the answer breaks the rules, or nothing. 3: of a GPU kernel where there is no GPU; 4: of compare."""
    lines = err.splitlines()
    if code not in (0, 1, 2, 3, 4):
        return f"exit code {code}"
    if raw := {one for one in out + err if unicodedata.category(one) in ("Cc", "Cf") and one not in "\n\t\u00ad"}:
        return f"control characters {sorted(raw)!r}"
    if code and (not lines or not lines[-1].startswith("lbmtune: ")):
        return f"exit code {code} without a sentence: {err[-200:]!r}"
    if sum(line.startswith("lbmtune: ") for line in lines) != bool(code):
        return f"exit code {code} with several sentences: {err[:300]!r}"
    if code and not api and len(lines[-1]) > len("lbmtune: ") + LONGEST:
        return f"a line of {len(lines[-1])} characters: {lines[-1][:100]!r}"
    if code and lines[-1][-1] not in ".?":
        return f"no sentence: {lines[-1][-100:]!r}"
    return ""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise HangError after seconds of the processor, or of a clock; a call that wants all memory gets MemoryError."""

    def hang(*_: object) -> None:
        raise HangError

    before = {one: signal.signal(one, hang) for one in (signal.SIGPROF, signal.SIGALRM)}
    memory = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, memory[1]))
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    signal.alarm(_WALL_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, memory)
        for one, handler in before.items():
            signal.signal(one, handler)


# -- inputs


def study_files(r: Random) -> Input:
    """Return a study file with other values, or damaged."""
    text = r.choice(sorted((ROOT / "studies" / "spaces").glob("*.toml"))).read_text(encoding="utf-8")
    if r.random() < 0.25:
        text = text.replace("[budget]", f"{r.choice(values.CASES)}\n[budget]", 1)
        content = text.encode()
    else:
        content = values.toml(text, r) if r.random() < 0.7 else values.damaged(text.encode(), r)
    verb = r.choice(
        (
            "explain scheme=aa --device cpu",
            "explain scheme=pull --machine h200",
            "list --device cpu",
            "list --machine h200",
        )
    )
    return Input("study file", {"s.toml": content}, (*verb.split(), "--study", "s.toml"))


def configurations(r: Random) -> Input:
    """Return a configuration of random knobs, and overrides of a case."""
    place = r.choice(
        ("--device cpu", "--machine h200", "--machine a100 --study porous", "--device cpu --study d2q9-box")
    )
    more = ["--set", values.override(r)] if r.random() < 0.4 else []
    more += ["--json"] if r.random() < 0.2 else []
    verb = r.choice(("explain", "explain", "render", "predict"))
    return Input("configuration", {}, (verb, values.configuration(r), *place.split(), *more))


def machine_files(r: Random) -> Input:
    """Return the description of a machine with other values, or damaged."""
    files = [*sorted((ROOT / "machines").glob("*.toml")), *sorted(RECORDED.glob("*/machine.toml"))]
    text = r.choice(files).read_text(encoding="utf-8")
    content = values.toml(text, r) if r.random() < 0.7 else values.damaged(text.encode(), r)
    verb = r.choice(("explain scheme=aa", "predict scheme=pull", "predict backend=cuda,scheme=aa", "list"))
    return Input("machine file", {"m.toml": content}, (*verb.split(), "--machine", "m.toml"))


def best_files(r: Random) -> Input:
    """Return a best.json with other values, or damaged; its digest is right again if that may lead further."""
    path = r.choice([RECORDED / "xeon-2-cores" / "d3q19-box-fp32", *sorted(RECORDED.glob("nvidia-h200/d3q19-*"))])
    content = values.best(json.loads((path / "best.json").read_bytes()), r)
    if r.random() < 0.25:
        content = values.damaged(content, r)
    if r.random() < 0.4:
        return Input("best.json", {"b.json": content}, None, "b.json")
    verb, place = (
        r.choice(("explain", "render", "predict")),
        r.choice(("--machine h200", "--device cpu", "--machine a100")),
    )
    return Input("best.json", {"b.json": content}, (verb, "b.json", *place.split()))


@cache
def _records() -> tuple[tuple[dict[str, Any], tuple[dict[str, Any], ...]], ...]:
    """Return headers and a few trials of small recorded studies, with their finals."""
    names = ("nvidia-h200/porous-direct-fp32", "nvidia-h200/d3q19-small-32", "zen3-2-cores/d3q19-box-fast-fp32")
    found = []
    for folder in (RECORDED / name for name in names):
        lines = map(json.loads, gzip.decompress((folder / "trials.jsonl.gz").read_bytes()).splitlines())
        latest = list({line["number"]: line for line in lines}.values())
        finals = [line for line in latest if line.get("final")]
        found.append((json.loads((folder / "study.json").read_bytes()), (*latest[:5], *finals[:3])))
    return tuple(found)


def records(r: Random) -> Input:
    """Return the folder of a study whose header or trials have other values, or are damaged."""
    header, trials = r.choice(_records())
    lines = [json.dumps(one).encode() for one in trials]
    head = json.dumps(header).encode()
    whole = {"g/study.json": head, "g/trials.jsonl": b"".join(line + b"\n" for line in lines)}
    place = r.randrange(len(lines) + 1)
    if place == len(lines):
        head = values.json_tree(header, r) if r.random() < 0.7 else values.damaged(head, r)
    else:
        lines[place] = values.json_tree(trials[place], r) if r.random() < 0.8 else values.damaged(lines[place], r)
    content = b"".join(line + b"\n" for line in lines)
    files = {"f/study.json": head, "f/trials.jsonl": content}
    if r.random() < 0.2:
        files = {"f/study.json": head, "f/trials.jsonl.gz": values.damaged(gzip.compress(content, 1, mtime=0), r)}
    key = str(trials[-1]["key"])
    asked = r.choice(
        (
            "report f",
            "report f --json",
            "report g f",
            "compare g f",
            "compare f g --json",
            "export f",
            "export f",
            f"explain {key} --study f",
            "list --study f --machine h200",
        )
    )
    return Input("records", files | whole, tuple(asked.split()))


def voxel_files(r: Random) -> Input:
    """Return a voxel file of some form, damaged, and a study of it."""
    name, content = values.voxels(r)
    part = (
        f"file:path={name}{r.choice(('', ':shape=8x8x8', ':array=solid', ':invert=1', ':dtype=uint16', ':shape=0x1'))}"
    )
    asked = (
        "explain",
        r.choice(("family=sparse", "flags=memory", "scheme=aa")),
        "--device",
        "cpu",
        "--study",
        "porous",
    )
    sets = ("--set", f"case.geometry={part}", "--set", "case.domain=8x8x8")
    return Input("voxel file", {name: content}, (*asked, *sets))


def command_lines(r: Random) -> Input:
    """Return verbs with options and values that need not fit."""
    return Input("command line", {}, values.command(r))


KINDS: tuple[Callable[[Random], Input], ...] = (
    study_files, configurations, machine_files, best_files, records, voxel_files, command_lines,
)  # fmt: skip


def inputs(count: int, seed: int) -> Iterator[Input]:
    """Yield inputs of all kinds in turn."""
    r = random.Random(seed)
    for number in range(count):
        yield KINDS[number % len(KINDS)](r)


def faults(given: Sequence[Input] | Iterator[Input], keep: Path | None = None) -> dict[str, list[str]]:
    """Return what is wrong, by where it is, with the numbers of the inputs. keep: a folder for these inputs."""
    found: dict[str, list[str]] = {}
    for number, one in enumerate(given):
        folder = Path(tempfile.mkdtemp(prefix="lbmtune-fuzz-"))
        try:
            if wrong := fault(one, folder):
                found.setdefault(": ".join(wrong.split(": ")[:1]), []).append(f"{number} {one.kind}: {wrong}")
                if keep:
                    kept = keep / str(number)
                    shutil.copytree(folder, kept, dirs_exist_ok=True)
                    (kept / "fault.txt").write_text(f"{wrong}\n{one.arguments}\n", encoding="utf-8", errors="replace")
        finally:
            shutil.rmtree(folder)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Try inputs, print what is wrong with the answers, and return 1 if anything is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=ROOT / "build" / "fuzz")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as own:
        os.environ.update(LBMTUNE_CACHE=f"{own}/cache", LBMTUNE_CONFIG=f"{own}/config", COLUMNS="100")
        begin, found = time.monotonic(), faults(inputs(asked.count, asked.seed), asked.keep)
    for one in sorted(found.values(), key=len, reverse=True):
        print(f"{len(one)} x {one[0]}")
    kinds = dict(Counter(one.kind for one in inputs(asked.count, asked.seed)))
    took, wrong = time.monotonic() - begin, sum(map(len, found.values()))
    print(f"{asked.count} inputs in {took:.0f} s: {kinds}; faults: {wrong}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
