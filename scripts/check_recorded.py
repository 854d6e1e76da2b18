"""Check that recorded sets are not stale: codegen prints the recorded source for each of their configurations.

The sets are below studies/recorded by default; finding none fails, too, unless --allow-none is given. The best.json of
a set must hold a kernel of the set as it would be exported now. The tables of README.md must agree with the sets;
--write updates them. Recorded claims (claims.json.gz) are stale if the published documents have changed, if an
experiment is missing, or if a verdict would differ now. Dated ones (claims-DATE.json.gz) answer earlier questions: they
are stale if codegen no longer prints their kernels, or if a verdict on the documents that they hold would differ now.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from itertools import dropwhile
from pathlib import Path
from typing import NamedTuple

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import from_flat
from lbmtune.claims.judge import verdicts
from lbmtune.claims.plan import plans
from lbmtune.claims.store import RESULTS, decoded
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.export import exported
from lbmtune.files.claimsfile import load_documents
from lbmtune.measure.workers.side_tasks import with_side_task
from lbmtune.records import Measurement, Trial
from lbmtune.records.best_json.document import read_best
from lbmtune.records.best_json.kernel import Kernel
from lbmtune.records.claims import Claims, Document, Group
from lbmtune.records.comparison.statistics import paired_ratio
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import HEADER
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_bytes
from scripts.paths import RECORDED
from scripts.recorded.rejudge import host_of

CLAIMS = f"{RESULTS}.gz"
DATED_CLAIMS = "claims-*.json.gz"
SETS = "| set | trials | verified, by digest of the code | seconds | verified per second |\n|---|---:|---:|---:|---:|\n"
FINALS = "| set | best of | MLUPS | of the best | memory |\n|---|---|---:|---:|---:|\n"


def stale_trials(study: StudyRecord) -> list[str]:
    """Return a line for each measured trial whose source codegen no longer prints."""
    case = study.header.spec.case
    found = []
    for trial in study.ranked:
        digest = render(case, from_flat(trial.config)).digest
        if digest != trial.source_digest:
            found.append(f"trial {trial.number} ({trial.key}): recorded {trial.source_digest[:12]}, now {digest[:12]}")
    return found


def stale_best(study: StudyRecord, folder: Path) -> list[str]:
    """Return a line if best.json is missing or damaged, holds a kernel of no trial, or would be written otherwise.

    Launches, buffers and the kernel of one step, which the digest does not cover, are compared, too.
    """
    try:
        found = read_best(folder / "best.json")
    except InputError as error:
        return [str(error)]
    kernel = found.kernel
    trial = next((trial for trial in study.ranked if trial.key == found.key), None)
    if trial is None:
        return [f"best.json holds a kernel that is none of the set ({found.key})"]
    program = render(study.header.spec.case, from_flat(trial.config))
    kernel, now = map(_code, (kernel, exported(program, trial, study.header.environment)))
    changed = [field.name for field in fields(now) if getattr(now, field.name) != getattr(kernel, field.name)]
    return [f"best.json: of its kernel {', '.join(changed)} would be written otherwise now"] if changed else []


def _code(kernel: Kernel) -> Kernel:
    """Return the kernel with its code for its text: a comment may change."""
    single = kernel.single and replace(
        kernel.single, source=code_of(kernel.target, kernel.single.source), source_digest=""
    )
    return replace(kernel, source=code_of(kernel.target, kernel.source), source_digest="", single=single)


def row(name: str, study: StudyRecord) -> str:
    """Return a set as a line of the table: trials, verified binaries, seconds of the search, binaries per second."""
    pace = f"{study.verified_per_s:.1f}" if study.verified_per_s else "-"
    return f"| {name} | {len(study.trials)} | {study.verified_binaries} | {study.search_s:.0f} | {pace} |"


def finals(name: str, study: StudyRecord) -> list[str]:
    """Return each kind that had a final as a line: speed, paired ratio to the fastest, bytes of all buffers."""
    had = [(trial, trial.final) for trial in study.ranked if trial.final]
    had.sort(key=lambda one: one[0] is not study.overtaken)
    return [
        f"| {name} | {kind_of(from_flat(trial.config))} | {final.mlups:,.0f} | "
        f"{_of_the_best(had[0][1], final):.3f} | {_size(trial)} |"
        for trial, final in had
        if trial.stands_for
    ]


def _of_the_best(best: Measurement, final: Measurement) -> float:
    """Return the median ratio of two finals by the rounds of both: what is slower for sure leaves the others early."""
    rounds = min(len(best.samples_s), len(final.samples_s))
    return paired_ratio(best.samples_s[:rounds], final.samples_s[:rounds]).median


def _size(trial: Trial) -> str:
    return format_bytes(trial.prediction.footprint_bytes) if trial.prediction else "-"


def with_rows(text: str, table: str, rows: Sequence[str]) -> str:
    """Return a page with these rows in the table that begins with two given lines. Raises ValueError without one."""
    before, head, rest = text.partition(table)
    if not head:
        raise ValueError(f"no table that begins with {table!r}")
    after = list(dropwhile(lambda line: line.startswith("|"), rest.splitlines(keepends=True)))
    return "".join([before, head, *(f"{line}\n" for line in rows), *after])


def stale_claims(claims: Claims, shipped: Mapping[str, Document]) -> list[str]:
    """Return a line for each difference from what a run would record now. shipped: documents by name."""
    found = [line for group in claims.groups for line in _other_sources(group)]
    recorded = {document.name: document for document in claims.documents}
    for name, document in shipped.items():
        if name not in recorded:
            found.append(f"{name}: this document is not in the record")
        elif recorded[name] != document:
            found.append(f"{name}: the document has changed since")
        found += _unmeasured(claims, document)
    rates, backend = claims.header.rates, claims.header.backend
    judged = [
        verdict
        for name in recorded.keys() & shipped.keys()
        if recorded[name] == shipped[name]
        for verdict in verdicts(shipped[name], claims.groups, backend, rates)
    ]
    found += [f"{v.document}.{v.claim}: now {v.holding}, {v.reason}" for v in judged if v not in claims.verdicts]
    return found


def _other_sources(group: Group) -> Iterator[str]:
    """Yield a line for each measured variant whose source codegen no longer prints."""
    for row in group.rows:
        if row.trial and not row.why_not:
            digest = with_side_task(render(group.case, from_flat(row.config)), row.duty).digest
            if digest != row.trial.source_digest:
                where = f"{group.document}.{row.variant} ({group.series})"
                yield f"{where}: recorded {row.trial.source_digest[:12]}, now {digest[:12]}"


def _unmeasured(claims: Claims, document: Document) -> Iterator[str]:
    """Yield a line for each experiment, domain, variant and accuracy that the record lacks.

    A series past capacity has any domain; one on main memory that of the processor's cache.
    """
    backend = claims.header.backend
    on_host = BACKENDS[backend].shares_host
    grown = {plan.series.name: plan.case for plan in plans(document, host_of(claims))} if on_host else {}
    groups = [group for group in claims.groups if group.document == document.name]
    for series in document.series:
        for given in series.cases.get(backend, ()):
            case = grown[series.name] if on_host and series.main_memory else given
            same = [g for g in groups if g.series == series.name and (series.past_capacity or g.case == case)]
            tried = {row.variant: row.trial for group in same for row in group.rows}
            where = f"{series.name}, {'x'.join(map(str, case.domain))}"
            for variant in document.variants:
                if series.name in variant.series and backend in variant.configs and variant.name not in tried:
                    yield f"{document.name}.{variant.name} ({where}): this is not in the record"
            if given is series.cases[backend][-1]:
                without = [v for v in document.of_accuracy if (trial := tried.get(v)) and not trial.accuracy]
                yield from (f"{document.name}.{v} ({where}): its accuracy is not in the record" for v in without)


def _read_claims(path: Path) -> Claims:
    return decoded(gzip.decompress(path.read_bytes()), path)


def main(arguments: list[str]) -> int:
    """Check every set below a folder; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--allow-none", action="store_true", help="succeed if there is no set")
    parser.add_argument("--write", action="store_true", help="update the tables of README.md")
    given = parser.parse_args(arguments)
    folders = sorted(header.parent for header in given.folder.rglob(HEADER))
    with ProcessPoolExecutor() as pool:
        dated = [pool.submit(_of_claims, path, dated=True) for path in sorted(given.folder.rglob(DATED_CLAIMS))]
        claims = [pool.submit(_of_claims, path) for path in sorted(given.folder.rglob(CLAIMS))]
        names = [str(path.relative_to(given.folder)) for path in folders]
        of_sets = [_printed(one) for one in pool.map(_of_set, folders, names)]
        sets = [one.is_stale for one in of_sets]
        print(f"{len(folders)} recorded sets, {sum(sets)} stale")
        tables = {SETS: [one.row for one in of_sets], FINALS: [line for one in of_sets for line in one.finals]}
        sets += [_printed(one).is_stale for one in _of_page(given.folder / "README.md", tables, write=given.write)]
        sets += [_printed(one.result()).is_stale for one in [*claims, *dated]]
    return 1 if any(sets) or not (folders or given.allow_none) else 0


class Finding(NamedTuple):
    """The text on a set, whether it is stale, and its rows of the tables."""

    text: str
    is_stale: bool
    row: str = ""
    finals: Sequence[str] = ()


def _printed(one: Finding) -> Finding:
    print(one.text)
    return one


def _finding(path: Path, what: str, stale: list[str]) -> Finding:
    head = f"{path}: {what}, {'STALE' if stale else 'up to date'}"
    return Finding("\n".join([head, *(f"    {line}" for line in stale)]), bool(stale))


def _of_set(folder: Path, name: str) -> Finding:
    study = read_study(folder)
    measured = f"{len(study.ranked)} measured trials of {len({t.binary_digest for t in study.ranked})} binaries"
    one = _finding(folder, measured, [*stale_trials(study), *stale_best(study, folder)])
    return one._replace(row=row(name, study), finals=finals(name, study))


def _of_page(path: Path, tables: Mapping[str, Sequence[str]], *, write: bool) -> Iterator[Finding]:
    """Check the page that lists the sets, if there is one. tables: rows by the first lines of a table."""
    if not path.exists():
        return
    text = path.read_text()
    now = text
    for table, rows in tables.items():
        now = with_rows(now, table, rows)
    if write:
        path.write_text(now)
    missing = sorted(set(now.splitlines()) - set(text.splitlines()))
    wrong = [f"its table lacks {line}" for line in missing] or ["its table has other rows"]
    yield _finding(path, f"{sum(map(len, tables.values()))} rows", [] if write or now == text else wrong)


def _of_claims(path: Path, *, dated: bool = False) -> Finding:
    try:
        claims = _read_claims(path)
    except InputError as error:
        return Finding(f"{path}: STALE\n    {error}", True)
    variants = sum(row.trial is not None for group in claims.groups for row in group.rows)
    documents = claims.documents if dated else load_documents((), claims.header.devices)
    lines = stale_claims(claims, {document.name: document for document in documents})
    return _finding(path, f"{variants} variants in {len(claims.groups)} groups", lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
