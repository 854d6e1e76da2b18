"""Workers of a joint study: they measure with others what one search chooses from, on devices of one kind."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.api.machines import measured_machines
from lbmtune.api.machines.devices import chosen
from lbmtune.api.predicted.estimates import predictor
from lbmtune.api.studies.accuracies import Accuracies
from lbmtune.api.studies.earlier import kept, lessons
from lbmtune.api.studies.run import by_accuracy, compiled_first_of, searched
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.errors import InputError
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Environment
from lbmtune.records.header import StudyHeader
from lbmtune.scratch import scratch
from lbmtune.search.interfaces import Observer, Search
from lbmtune.search.joint.ledger import Ledger, awaited, header_of, open_storage, study_id
from lbmtune.search.joint.sharing import shared
from lbmtune.search.lock import device_lock
from lbmtune.search.optuna_view.storage import without_password
from lbmtune.search.study import search_alone


def work(
    name: str,
    storage: str,
    device: str | None = None,
    *,
    seconds: float = 0.0,
    wait_s: float = 0.0,
    observer: Observer | None = None,
) -> int:
    """Help a study that was begun with a storage until its search is over, and return how many trials it saw.

    name: of the study, as it begins in the storage; storage: URL of the database, or grpc://HOST:PORT of Optuna's
    proxy; seconds: of this worker alone, 0 for no limit; wait_s: for a study that has not begun. The process that began
    the study holds the finals.
    Raises InputError, also if the device is unlike that of the study, DeviceUnavailableError.
    """
    where, opened = chosen(device), open_storage(storage)
    name = awaited(opened, name, wait_s)
    header = header_of(opened, study_id(opened, name))
    machine = measured_machines.measured_machine(where, extent="quick")
    check_alike(header, machine.environment, name, storage)
    if seconds:
        header = replace(header, spec=replace(header.spec, budget=replace(header.spec.budget, seconds=seconds)))
    spec, expected = header.spec, predictor(header.spec.case, machine)
    with Evaluator(spec.case, where, spec.protocol, expected) as evaluator, device_lock(evaluator.environment):
        accuracies = Accuracies(spec.case, evaluator)
        space = searched(spec, header.backend, evaluator.limits, accuracies)
        with Ledger(opened, name, space.configs) as ledger, scratch() as folder:
            prior = lessons(kept(None, header, folder), spec, space.configs, machine, folder)
            search = Search(
                evaluator=evaluator,
                predict=expected,
                folder=folder,
                observer=observer or Observer(),
                **by_accuracy(spec, space, accuracies, [one.source for one in prior]),
                compiled=compiled_first_of(machine),
            )
            return search_alone(shared(search, ledger), header, space)


def check_alike(header: StudyHeader, here: Environment, name: str, storage: str) -> None:
    """Raise InputError if speeds of a device do not belong into the ranking of a study."""
    kept, shown = header.environment, without_password(storage)
    if kept.device != here.device:
        raise InputError(
            f"study {name} at {shown} ranks {kept.device}, and this worker has {here.device} (start a study of its "
            "own): speeds of unlike devices are not one ranking."
        )
    own = "" if BACKENDS[header.backend].shares_host else "device_id"
    for field, was, now in kept.differences(here):
        if field != own:
            raise InputError(
                f"study {name} at {shown} was begun with {field} {was!r}, and this worker has {now!r} (start a study "
                "of its own): speeds of unlike devices are not one ranking."
            )
