"""Reproduce published experiments on a device and judge their claims."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psutil

from lbmtune import __version__
from lbmtune.api.machines import devices, measured_machines
from lbmtune.api.several_devices.parts import same_kind
from lbmtune.backend.registry import backend_of, open_device
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.claims.plan import Entry, Here
from lbmtune.claims.run import Observer, Run, check_same_device, run_claims
from lbmtune.codegen.render import render
from lbmtune.measure.profiling.counters import counted_each
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.measure.workers.worker_pool import WorkerPool
from lbmtune.model.machine.description import Machine
from lbmtune.records import Trial, made_of
from lbmtune.records.claims import Claims, ClaimsHeader, Document
from lbmtune.records.parts import Compared
from lbmtune.records.profile import Counters
from lbmtune.records.remarks import last_cache
from lbmtune.records.spec import TimingProtocol
from lbmtune.search.lock import device_locks, folder_lock

_LIMIT_S = 180.0
"""Time limit of a group's measurement: a domain that is staged through the host is slow."""
_COUNTERS_LIMIT_S = 75.0
"""After this time counters are read of no further kernel."""


def reproduce(
    documents: Sequence[Document],
    device: str,
    folder: Path,
    *,
    others: Sequence[str] = (),
    budget_bytes: int = 1 << 30,
    resume: bool = False,
    machine: Machine | None = None,
    observer: Observer | None = None,
) -> Claims:
    """Run published experiments on a device and return the verdicts on their claims; every finished group is kept.

    documents: of `files.claimsfile.load_documents`; others: further GPUs, for experiments on several devices;
    budget_bytes: memory that stands for a small device where capacity is the question; machine: the description of the
    device, measured if left out.
    Raises InputError if the folder holds a run of another device, DeviceUnavailableError.
    """
    machine = machine or measured_machines.measured_machine(device)
    limits = devices.bounds(device).limits
    here = Here(
        backend=backend_of(device),
        limits=limits,
        physical_cores=psutil.cpu_count(logical=False) or limits.cores,
        budget_bytes=budget_bytes,
        last_cache_bytes=last_cache(machine.environment.backend, machine.caches_bytes),
        memory_bytes=machine.environment.memory_bytes,
        devices=1 + len(others),
    )
    if resume:
        check_same_device(folder, machine.environment)
    # counters are of one device; experiments on several say nothing of its memory
    count = None if BACKENDS[here.backend].shares_host or others else partial(_counted, device)

    protocol = TimingProtocol(finalists=max(len(one.variants) for one in documents), measure_limit_s=_LIMIT_S)
    with (
        device_locks([machine.environment, *(open_device(one).environment for one in {*others} - {device})]),
        folder_lock(folder),
        WorkerPool(partial(open_device, device), protocol) as pool,
    ):

        def opened(case: Case) -> Evaluator:
            return Evaluator(case, device, protocol, pool=pool)

        run = Run(
            here=here,
            open_evaluator=opened,
            folder=folder,
            observer=observer or Observer(),
            count=count,
            on_parts=partial(_on_parts, (device, *others)) if others else None,
        )
        return run_claims(run, _header(machine, documents, here), documents)


def _on_parts(names: Sequence[str], case: Case, entries: Sequence[Entry]) -> Sequence[tuple[Trial, Compared | None]]:
    from lbmtune.api.several_devices.reproduced import measured_on_parts  # here: one device needs none of it

    return measured_on_parts(case, entries, same_kind(names))


def _counted(device: str, kernels: Sequence[tuple[Case, KernelConfig]]) -> Sequence[Counters]:
    return counted_each([render(*kernel) for kernel in kernels], device, limit_s=_COUNTERS_LIMIT_S)


def _header(machine: Machine, documents: Sequence[Document], here: Here) -> ClaimsHeader:
    return made_of(
        ClaimsHeader,
        machine,
        backend=here.backend,
        budget_bytes=here.budget_bytes,
        last_cache_bytes=here.last_cache_bytes,
        devices=here.devices,
        documents=tuple(document.name for document in documents),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
    )
