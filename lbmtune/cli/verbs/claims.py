"""Published claims on the device at hand: claims."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lbmtune import __version__
from lbmtune.backend.registry import backend_of
from lbmtune.cli.arguments.numbers import memory_bytes
from lbmtune.cli.arguments.options import RESULTS, Device, Json
from lbmtune.cli.verbs.results import write_claims
from lbmtune.errors import InputError, NothingValidError

if TYPE_CHECKING:
    from rich.table import Table

    from lbmtune.catalogue.config import KernelConfig
    from lbmtune.catalogue.problem.case import Case
    from lbmtune.claims.plan import Here
    from lbmtune.measure.workers.evaluate import Evaluator
    from lbmtune.model.machine.description import Machine
    from lbmtune.records.claims import Claims, ClaimsHeader, Document, Verdict
    from lbmtune.records.profile import Counters

BUDGET = "1GiB"
_LIMIT_S = 180.0
"""Time limit of a group's measurement: a domain that is staged through the host takes its time."""
_COUNTERS_LIMIT_S = 75.0
"""After which counters are read of no other kernel."""


def claims(
    device: Device = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="a document, or a file of one; may be repeated")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="default: claims-DEVICE under lbmtune-studies")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in the output folder")] = False,
    max_footprint: Annotated[
        str,
        typer.Option(
            "--max-footprint",
            metavar="SIZE",
            help="memory that stands for a small device, where capacity is the question",
        ),
    ] = BUDGET,
    as_json: Json = False,
) -> None:
    """Runs published experiments here and says which claims hold."""
    from lbmtune.claims.store import PAGE
    from lbmtune.claims.store import RESULTS as STORED
    from lbmtune.cli.arguments import devices as here
    from lbmtune.cli.files.claimsfile import load_documents

    budget, documents = memory_bytes("--max-footprint", max_footprint, BUDGET), load_documents(only or ())
    where = here.chosen(device)
    folder = out or RESULTS / f"claims-{where if where == 'cpu' else f'gpu{where}'}"
    _check_folder(folder, (folder / STORED).exists(), resume=resume)
    described = here.machine(where)
    try:
        found = _carried_out(documents, where, described, folder, budget, resume=resume)
    except KeyboardInterrupt:
        _stopped(where, only or (), folder, max_footprint)
        raise typer.Exit(130) from None
    write_claims(found, folder / PAGE)
    _show(found, folder, as_json=as_json)


def _check_folder(folder: Path, exists: bool, *, resume: bool) -> None:
    """Raises InputError."""
    if exists and not resume:
        raise InputError(f"{folder} already holds claims; add --resume to go on with them, or choose another --out.")
    if resume and not exists:
        raise InputError(f"{folder} holds no claims to resume; give their folder with --out, or leave --resume out.")


def _carried_out(
    documents: Sequence[Document], device: str, described: Machine, folder: Path, budget_bytes: int, *, resume: bool
) -> Claims:
    import psutil

    from lbmtune.claims.plan import Here
    from lbmtune.claims.run import Run, check_same_device, run_claims
    from lbmtune.cli.arguments import devices as here
    from lbmtune.cli.format.claims_progress import ClaimsProgress
    from lbmtune.cli.format.output import stderr
    from lbmtune.search.lock import device_lock, folder_lock

    backend, bounds = backend_of(device), here.bounds(device)
    where = Here(
        backend=backend,
        limits=bounds.limits,
        physical_cores=psutil.cpu_count(logical=False) or bounds.limits.cores,
        budget_bytes=budget_bytes,
    )
    if resume:
        check_same_device(folder, described.environment)
    with (
        device_lock(described.environment),
        folder_lock(folder),
        ClaimsProgress(stderr(), described.name, len(documents)) as progress,
    ):
        count = None if backend == "cpu" else partial(_counted, device)
        run = Run(here=where, open_evaluator=_opener(device), folder=folder, observer=progress, count=count)
        return run_claims(run, _header(described, documents, where), documents)


def _counted(device: str, kernels: Sequence[tuple[Case, KernelConfig]]) -> Sequence[Counters]:
    """By Nsight Compute."""
    from lbmtune.codegen.render import render
    from lbmtune.measure.profiling.counters import counted_each

    return counted_each([render(*kernel) for kernel in kernels], device, limit_s=_COUNTERS_LIMIT_S)


class _opener:  # noqa: N801  # a function with one value bound
    """Opens evaluators on a device."""

    def __init__(self, device: str) -> None:
        self._device = device

    def __call__(self, case: Case, size: int) -> AbstractContextManager[Evaluator]:
        from lbmtune.measure.workers.evaluate import Evaluator
        from lbmtune.records.study import TimingProtocol

        return Evaluator(case, self._device, TimingProtocol(finalists=size, measure_limit_s=_LIMIT_S))


def _header(described: Machine, documents: Sequence[Document], where: Here) -> ClaimsHeader:
    from lbmtune.records.claims import ClaimsHeader

    return ClaimsHeader(
        backend=where.backend,
        environment=described.environment,
        copy_bytes_per_s=described.copy_bytes_per_s,
        in_place_bytes_per_s=described.in_place_bytes_per_s,
        budget_bytes=where.budget_bytes,
        documents=tuple(document.name for document in documents),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
    )


def _stopped(device: str, only: Sequence[str], folder: Path, budget: str) -> None:
    from lbmtune.cli.format.output import note

    again = ["lbmtune", "claims", "--device", device, "--out", str(folder), "--max-footprint", budget, "--resume"]
    again += [part for name in only for part in ("--only", name)]
    note(f"stopped; every finished group is in {folder}. Go on with: {shlex.join(again)}")


def _show(found: Claims, folder: Path, *, as_json: bool) -> None:
    from lbmtune.claims.store import PAGE
    from lbmtune.claims.store import RESULTS as STORED
    from lbmtune.cli.format import output

    if as_json:
        output.emit_json(found)
    else:
        for document in found.documents:
            output.stdout().print(variant_table(found, document), "", verdict_table(found, document), "")
        output.stdout().print(f"claims  {folder / STORED}", markup=False)
        output.stdout().print(f"page    {folder / PAGE}", markup=False)
    if not any(row.trial and not row.why_not for group in found.groups for row in group.rows):
        raise NothingValidError(f"no configuration was measured; {folder / STORED} says why.")


def verdict_table(found: Claims, document: Document) -> Table:
    """The verdicts on a document's claims."""
    from lbmtune.claims.evidence import evidence, reasons
    from lbmtune.cli.format.output import table

    named = {claim.name: claim for claim in document.claims}
    mine = [verdict for verdict in found.verdicts if verdict.document == document.name]

    def why(verdict: Verdict) -> str:
        claim = named[verdict.claim]
        because = reasons(claim, evidence(found, document, claim), found.header.rates)
        return "; ".join((f"{verdict.reason}{' (disturbed)' if verdict.disturbed else ''}", *because))

    rows = ((str(verdict.holding), named[verdict.claim].sentence, why(verdict)) for verdict in mine)
    return table("claims", ("verdict", "claim", "why"), rows)


def variant_table(found: Claims, document: Document) -> Table:
    """The table of a document: published beside measured."""
    from lbmtune.claims.figures import figures
    from lbmtune.cli.format.output import table

    columns = ("domain", "variant", "published (on)>", "MLUPS here>", "95 % interval>", "ratio>", "why not")
    rows = (
        (
            f.domain,
            f.title,
            "; ".join(f.published_texts),
            f.measured_text,
            f.interval_text,
            "; ".join(f.ratio_texts),
            f.why_not,
        )
        for f in figures(found, document)
    )
    return table(f"{document.name}: {document.title}", columns, rows)
