"""Profile one kernel: where its speed goes, from the data sheet to what is measured."""

import sys
from pathlib import Path

from lbmtune.api.machines import measured_machines
from lbmtune.api.machines.devices import LOG
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.measure.profiling import profile as profiling
from lbmtune.measure.profiling.loss_breakdown import ProfileRequest
from lbmtune.measure.profiling.profiler_target import text_on_disk, write_request
from lbmtune.model.machine.description import Machine
from lbmtune.records.profile import Profile
from lbmtune.records.spec import TimingProtocol
from lbmtune.search.lock import device_lock


def profile(
    case: Case,
    config: KernelConfig,
    device: str,
    *,
    machine: Machine | None = None,
    protocol: TimingProtocol | None = None,
    counters: bool = True,
    sources: Path | None = None,
) -> Profile:
    """Return the loss breakdown of a kernel: times from data sheet to measurement beside those of the model.

    device: 'cpu' or the index of a GPU; machine: by default its own calibrated description; counters: also read those
    of the hardware (Nsight Compute, perf); sources: a folder for the kernel's text.
    Raises InputError, NothingValidError if the kernel is wrong or cannot run, DeviceUnavailableError.
    """
    machine = machine or measured_machines.measured_machine(device, extent="full")
    if machine.environment.backend != config.backend:
        raise InputError(f"machine {machine.name} is no {config.backend} device and the configuration is for one.")
    subject = ProfileRequest(case, config, machine, protocol or TimingProtocol(), counters)
    folder = str(sources.resolve()) if sources else ""
    return profiling.profile(device, subject, LOG.info, alone=device_lock, sources=folder)


def profiler_target(case: Case, config: KernelConfig, device: str, folder: Path) -> tuple[Path, str]:
    """Write the text of a kernel and what runs it alone into a folder; return the text, and what profiles it."""
    text = text_on_disk(render(case, config), folder)
    request = text.with_suffix(".json")
    write_request(request, case, config, device, str(folder.resolve()))
    over = f"{sys.executable} -m lbmtune.measure.profiling.profiler_target {request}"
    return text, f"ncu --profile-from-start off --set full --import-source yes -o report {over}"
